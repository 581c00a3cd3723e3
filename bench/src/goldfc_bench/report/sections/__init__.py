"""One file per experiment: its rows become the parts of a section."""
