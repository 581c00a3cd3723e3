"""What the benchmark does over Flower: rival methods, and what the network costs."""
