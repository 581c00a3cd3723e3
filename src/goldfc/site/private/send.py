"""A private message by file or live: once for every request, within the site's budget.

What depends on rows is noise and sums alone. So nothing is audited or compared, no warning or refusal tells anything of
rows, and the same request is answered by the stored message, byte by byte, whatever has become of the rows.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

from goldfc.agreement import Agreement
from goldfc.errors import BudgetRefused
from goldfc.files import write_durably
from goldfc.message.columns import as_facts
from goldfc.message.envelope import PrivateKey
from goldfc.message.levels import Private
from goldfc.message.message import canonical_json
from goldfc.message.task import Task
from goldfc.message.wire import encode
from goldfc.site.ledger import SENT, SENT_AGAIN, Ledger
from goldfc.site.policy import Policy
from goldfc.site.privacy import Rules
from goldfc.site.private.budget import eps_of, rho_of
from goldfc.site.private.tell import tell_privately
from goldfc.site.seals import remember
from goldfc.site.send import sealed_for_server
from goldfc.site.table.table import Table

YEAR = timedelta(days=365)
SPENT = "spent"


@dataclass(frozen=True)
class Request:
    """What a site is asked for; the same request has the same answer."""

    site: str
    agreement: Agreement
    task: Task
    level: Private
    policy: Policy

    @classmethod
    def of(cls, site: str, agreement: Agreement, policy: Policy) -> "Request | None":
        """What is asked of a site, as strictly as its policy wants it; None where that is not private."""
        task = policy.tightened(agreement)
        return cls(site, agreement, task, task.level, policy) if isinstance(task.level, Private) else None

    @property
    def digest(self) -> str:
        """By everything that the answer depends on, but the rows; and by whom it is for."""
        asked = [self.site, self.task.to_message().header, as_facts(self.agreement.terms), self.agreement.withhold]
        asked += [self.agreement.server.key or "", self.policy.steps, self.policy.person_column(self.agreement) or ""]
        return hashlib.blake2b(canonical_json(asked).encode(), digest_size=16).hexdigest()

    @property
    def rho(self) -> Fraction:
        """What an answer costs, at most."""
        return rho_of(*self.level.budget)


@dataclass(frozen=True)
class Budget:
    """What a site has spent in the last year, and may."""

    spent: Fraction
    policy: Policy

    @classmethod
    def of(cls, ledger: Ledger, policy: Policy) -> "Budget":
        """By the ledger, whatever tables the messages were of: people may be in several."""
        since = datetime.now(UTC) - YEAR
        lines = [line for line in ledger.lines() if line["event"] == SPENT]
        return cls(sum((Fraction(str(line["rho"])) for line in lines if time_of(line) > since), Fraction()), policy)

    def eps(self, delta: Fraction, more: Fraction = Fraction()) -> Fraction:
        """What was spent, and a little more, as eps."""
        rho = self.spent + more
        return eps_of(rho, delta) if rho else Fraction()

    def check(self, request: Request) -> None:
        """Refuse what would overdraw it."""
        delta = request.level.budget[1]
        eps = self.eps(delta, request.rho)
        if eps > self.policy.most_eps_a_year:
            raise BudgetRefused(
                f"With this message, eps of a year would be {float(eps):.3g} at delta {float(delta):g}, and "
                f"{self.policy.most_eps_a_year:g} is the most that this site's policy allows; ask for a smaller "
                "eps, or wait until earlier messages are a year old.",
                "budget-overdrawn",
            )


def time_of(line: dict[str, object]) -> datetime:
    """When something was noted."""
    return datetime.fromisoformat(str(line["time"]))


@dataclass(frozen=True)
class Sent:
    """A message, and whether it is one that left before."""

    message: bytes
    again: bool


def stored(request: Request, ledger: Ledger) -> bytes | None:
    """The answer to a request, if there is one already."""
    path = ledger.message_file(request.digest)
    return path.read_bytes() if path.is_file() else None


def send_privately(
    request: Request, table: Table, data: Path, policy: Policy, out: Path | None, key: PrivateKey | None
) -> Sent:
    """Answer a request, and write the answer. It is paid for before it is made, and stored before it leaves."""
    ledger, agreement = Ledger.of(data, policy), request.agreement
    sealed_for_server(b"", request.site, agreement, key)
    facts = facts_of_request(request, data, policy)
    with ledger.locked():
        message = stored(request, ledger)
        again = message is not None
        if message is None:
            Budget.of(ledger, policy).check(request)
            ledger.note(SPENT, **facts, rho=str(request.rho))
            rules = Rules(agreement.terms, agreement.withhold, policy.steps)
            summary = tell_privately(table.rows, request.site, request.task, rules, table.people)
            agreement.read_summary(summary.to_message())
            message = sealed_for_server(encode(summary.to_message()), request.site, agreement, key)
            write_durably(ledger.message_file(request.digest), message, private=True)
        ledger.note(SENT_AGAIN if again else SENT, **facts, sha256=hashlib.sha256(message).hexdigest())
        remember(data, agreement)
        if out is not None:
            write_durably(out, message)
    return Sent(message, again)


def facts_of_request(request: Request, data: Path, policy: Policy) -> dict[str, str | int]:
    """What the ledger says of a message; nothing in it is of the rows."""
    terms, level = request.agreement.terms, request.level
    return {
        "data": data.name,
        "site": request.site,
        "federation": terms.federation,
        "round": terms.round,
        "policy": policy.fingerprint,
        "digest": request.digest,
        "eps": repr(level.eps),
        "delta": repr(level.delta),
        "most_rows": level.most_rows,
    }
