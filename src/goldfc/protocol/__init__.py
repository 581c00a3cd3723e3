"""Who computes what, and what crosses: one Summary up, one Model down."""
