"""The demo: handwritten digits at simulated sites; the simulator of Non-ICD clients, and their degree."""
