"""What differential privacy costs: the level `private` against no protection, and against simpler mechanisms."""
