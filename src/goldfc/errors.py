"""Everything goldfc raises on purpose: a class to catch, a sentence to read, and a code that outlives the sentence.

GoldError
├── TooFewMicroClusters   more clusters asked for than the uploaded centroids can tell apart (a ValueError)
├── BadSettings           a setting outside its range (a ValueError)
├── BadRows               rows that cannot be learned from: not a number, not finite, too large (a ValueError)
├── BadMessage            a message that does not fit the protocol or the other messages (a ValueError)
├── TooFewSites           fewer sites than were agreed on have sent something
└── AuditRefused          a message that would give away too much, and was not written
    └── PolicyRefused     what was agreed on is not what the site's own policy allows
        └── BudgetRefused     a message would spend more privacy than that policy allows
"""

__all__ = [
    "AuditRefused",
    "BadMessage",
    "BadRows",
    "BadSettings",
    "BudgetRefused",
    "GoldError",
    "PolicyRefused",
    "TooFewMicroClusters",
    "TooFewSites",
]


class GoldError(Exception):
    """The root: catch this to catch whatever goldfc refuses to do.

    The sentence says the rule, the value and the remedy; `code` names the refusal, such as "key-twice".
    """

    def __init__(self, sentence: str = "", code: str = "") -> None:
        """Keep the sentence where every exception has it."""
        super().__init__(sentence)
        self.code = code


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


class BudgetRefused(PolicyRefused):
    """A message would spend more privacy than the site's own policy allows."""


def code_of(error: BaseException | None, default: str) -> str:
    """The code of an error that is told again with more words, if it has one."""
    return getattr(error, "code", "") or default
