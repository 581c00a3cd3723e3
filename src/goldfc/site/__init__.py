"""What a site does, whoever carries the message."""
