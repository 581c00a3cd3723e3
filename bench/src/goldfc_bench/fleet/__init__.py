"""Fleets of devices behind gateways, and hostile ones among them."""
