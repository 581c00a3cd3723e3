"""Whether clusters keep their ids from round to round, and what changes is named."""
