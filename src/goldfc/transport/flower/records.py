"""What crosses on Flower: our own bytes and a few words, in one record.

A refusal crosses as one of a few known words, never as a text: what a site's error says may hold a value of a row. All
that may depend on rows is one word: which one it was would tell something of them.
"""

from dataclasses import dataclass

from flwr.app import ConfigRecord, Message, RecordDict

from goldfc.agreement import MOST_ROUNDS, Agreement
from goldfc.errors import AuditRefused, BadMessage, BadRows, BadSettings, PolicyRefused
from goldfc.message.columns import as_facts, plain_name
from goldfc.message.message import canonical_json

RECORD = "goldfc"
# What a node says that has nothing to tell since its last summary, which the server knows.
UNCHANGED = "unchanged"
SUMMARIZE, LABEL = "summarize", "label"

WITHHELD = "it keeps its answer to itself, because of its rows or of what it has sent before; its own log says why"
# What a node may say of its refusal, and what that means. More special ones first.
REFUSALS: tuple[tuple[type[Exception], str, str], ...] = (
    (PolicyRefused, "policy", "its own policy does not allow what was agreed on; its own log says what"),
    (AuditRefused, "withheld", WITHHELD),
    (BadRows, "withheld", WITHHELD),
    (BadMessage, "message", "what it was sent, or would send, does not fit its own federation file"),
    (BadSettings, "settings", "its settings are not as they must be; its own log says which"),
    (OSError, "disk", "it could not read or write a file of its own; its own log says which"),
    (Exception, "other", "something went wrong there; its own log says what"),
)
SENTENCES = {word: sentence for _, word, sentence in REFUSALS}


def word_for(error: Exception) -> str:
    """All that may leave of an error."""
    return next(word for kind, word, _ in REFUSALS if isinstance(error, kind))


def fingerprint(agreement: Agreement) -> str:
    """What both sides must have agreed on for a summary to be of use: the task and the terms, always in one form."""
    return canonical_json([agreement.task.to_message().header, as_facts(agreement.terms)])


def packed(**facts: str | bytes) -> RecordDict:
    """As it travels."""
    return RecordDict({RECORD: ConfigRecord(dict(facts))})


@dataclass(frozen=True)
class Answer:
    """What a node says: who it is, and its message or why there is none; neither where nothing is to be said.

    It may also say that nothing has changed, in the place of a refusal.
    """

    site: str
    body: bytes = b""
    refusal: str = ""

    def to_records(self) -> RecordDict:
        """As it travels."""
        return packed(site=self.site, body=self.body, refusal=self.refusal)

    @classmethod
    def from_message(cls, message: Message) -> "Answer":
        """From a stranger."""
        try:
            record = message.content.config_records[RECORD]
            site, body, refusal = record["site"], record["body"], record["refusal"]
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise BadMessage("its answer is not one that goldfc gives", "answer-invalid") from error
        if not (isinstance(site, str) and isinstance(body, bytes) and isinstance(refusal, str)):
            raise BadMessage("its answer is not one that goldfc gives", "answer-invalid")
        known = refusal in SENTENCES or refusal in {"", UNCHANGED}
        return cls(named_site(site), body, refusal if known else "other")


def named_site(site: str) -> str:
    """The name that a stranger gives itself, if it is one."""
    try:
        return plain_name(site)
    except ValueError:
        return ""


def read_question(message: Message, fact: str) -> str | bytes:
    """What the server sent, as it is named."""
    try:
        value = message.content.config_records[RECORD][fact]
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise BadMessage("The server's message is not one that goldfc sends.", "question-invalid") from error
    if not isinstance(value, str | bytes):
        raise BadMessage("The server's message is not one that goldfc sends.", "question-invalid")
    return value


def read_round(message: Message) -> int:
    """Of which round the server's question is."""
    text = read_question(message, "round")
    if not (isinstance(text, str) and text.isdecimal() and len(text) <= len(str(MOST_ROUNDS))):
        raise BadMessage("The server's message is not one that goldfc sends.", "question-invalid")
    return int(text)
