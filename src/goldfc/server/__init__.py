"""What the server does, whoever carries the message."""
