"""Attacks on messages, on real tables: what whoever reads one can find out, before and after the level was repaired.

One file for each: `reconstruction` (rows from sums), `membership` (was a row in it), `attributes` (a column of somebody
whose others are known), `differencing` (the row that came between two messages), `neighbours` (one site against the
other), `homogeneity` (what a group has in common). `sites` has the tables and who holds them, `before` the level as it
was, `run` goes through all, `page` tells it.
"""
