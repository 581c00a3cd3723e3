"""What crosses between the sites and the server, and nothing else."""
