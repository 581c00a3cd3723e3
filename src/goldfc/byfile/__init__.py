"""The federation by files: tables in, one message out, one model in, labels out."""
