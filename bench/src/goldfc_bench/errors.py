"""What the benchmark raises on purpose, besides what goldfc does."""

from goldfc.errors import GoldError


class DataNotFound(GoldError, FileNotFoundError):
    """A data set that is neither in the data folder nor can be fetched."""


class NotForThis(Exception):
    """A method does not apply to such data or settings; not an error, but no figure either."""
