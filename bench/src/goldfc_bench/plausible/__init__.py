"""Whether columns that are in other units, moved or constant at one site are found, and honest ones left alone."""
