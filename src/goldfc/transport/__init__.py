"""How messages travel: in one process, or over Flower."""
