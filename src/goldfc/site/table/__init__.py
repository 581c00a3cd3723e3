"""Tables of data as numbers, by the columns that were agreed on."""
