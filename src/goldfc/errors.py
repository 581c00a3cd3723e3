"""Everything goldfc raises on purpose.

GoldError
├── TooFewMicroClusters   more clusters asked for than the uploaded centroids can tell apart (a ValueError)
├── BadSettings           a setting outside its range (a ValueError)
├── BadRows               rows that cannot be learned from: not a number, not finite, too large (a ValueError)
├── BadMessage            a message that does not fit the protocol or the other messages (a ValueError)
├── TooFewSites         fewer sites than were agreed on have sent something
└── AuditRefused          a message that would give away too much, and was not written
    └── PolicyRefused     what was agreed on is not what the site's own policy allows
"""

__all__ = [
    "AuditRefused",
    "BadMessage",
    "BadRows",
    "BadSettings",
    "GoldError",
    "PolicyRefused",
    "TooFewMicroClusters",
    "TooFewSites",
]


class GoldError(Exception):
    """The root: catch this to catch whatever goldfc refuses to do."""


class TooFewMicroClusters(GoldError, ValueError):
    """More clusters were asked for than the uploaded centroids can tell apart."""


class BadSettings(GoldError, ValueError):
    """A setting is outside its range."""


class BadRows(GoldError, ValueError):
    """Rows that cannot be learned from."""


class BadMessage(GoldError, ValueError):
    """A message that does not fit the protocol, or does not fit the other sites' messages."""


class TooFewSites(GoldError):
    """Fewer sites than were agreed on have sent something."""


class AuditRefused(GoldError):
    """A message that would give away too much, and was not written."""


class PolicyRefused(AuditRefused):
    """What was agreed on is not what the site's own policy allows."""
