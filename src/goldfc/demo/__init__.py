"""The demo: handwritten digits at simulated sites; the simulator of Non-ICD sites, and their degree."""
