"""What the benchmark raises on purpose, besides what goldfc does."""

from goldfc.errors import GoldError


class DataNotFound(GoldError, FileNotFoundError):
    """A data set that is neither in the data folder nor can be fetched."""
