"""Everything goldfc raises on purpose.

GoldError
├── TooFewMicroClusters   more clusters asked for than the uploaded centroids can tell apart (a ValueError)
├── BadSettings           a setting outside its range (a ValueError)
├── BadRows               rows that cannot be learned from: not a number, not finite, too large (a ValueError)
├── BadMessage            a message that does not fit the protocol or the other messages (a ValueError)
└── DataNotFound          a data set that is neither in the data folder nor can be fetched (a FileNotFoundError)
"""

__all__ = ["BadMessage", "BadRows", "BadSettings", "DataNotFound", "GoldError", "TooFewMicroClusters"]


class GoldError(Exception):
    """The root: catch this to catch whatever goldfc refuses to do."""


class TooFewMicroClusters(GoldError, ValueError):
    """More clusters were asked for than the uploaded centroids can tell apart."""


class BadSettings(GoldError, ValueError):
    """A setting is outside its range."""


class BadRows(GoldError, ValueError):
    """Rows that cannot be learned from."""


class BadMessage(GoldError, ValueError):
    """A message that does not fit the protocol, or does not fit the other clients' messages."""


class DataNotFound(GoldError, FileNotFoundError):
    """A data set that is neither in the data folder nor can be fetched."""
