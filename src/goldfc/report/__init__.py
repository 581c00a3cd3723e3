"""Pages for people: what is in a message, what a model is like."""
