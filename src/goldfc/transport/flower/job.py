"""What a live round is to do, and how it stands: files at the server, between `goldfc federate` and the ServerApp.

They are files because a run's own settings go to every node, and where the server has its key is none of their
business: they learn where the job is and the token of its round, and nothing else.

A SuperLink that died and is started again takes up the run that it died in. By then another round may have begun in the
same folder; the token tells one from the other, and who finds another one than its own there writes no more.
"""

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError

from goldfc.agreement import FILE, Agreement, read_agreement
from goldfc.errors import BadSettings, GoldError
from goldfc.files import read_whole, write_durably
from goldfc.message.columns import Strict, complaint_code, first_complaint
from goldfc.message.envelope import PrivateKey
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.message.wire import decode, read_message
from goldfc.server.admit import server_key
from goldfc.server.deliver import read_model, write_model
from goldfc.server.fusions import check_before

JOB, STATUS = "job.json", "status.json"
ACCEPTED, SITES = "accepted", "sites"

Seconds = Annotated[float, Field(gt=0.0, allow_inf_nan=False, strict=False)]
SiteNames = Annotated[tuple[str, ...], Field(strict=False)]
Reasons = dict[str, str]
State = Literal["joining", "summarizing", "fusing", "labelling", "done", "failed"]


class Paper(Strict):
    """Something that is handed over as a file."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """From its file."""
        try:
            return cls.model_validate_json(read_whole(path))
        except OSError as error:
            raise BadSettings(f"{path} cannot be read ({error.strerror}).", "job-unreadable") from error
        except ValidationError as error:
            raise BadSettings(
                f"{path.name} is not as it should be: {first_complaint(error)}.",
                complaint_code(error, "settings-invalid"),
            ) from error

    def write(self, path: Path) -> None:
        """Whole or not at all."""
        write_durably(path, self.model_dump_json(indent=1).encode() + b"\n", private=True)


class Job(Paper):
    """A round to run; paths are those of the server's machine."""

    round: str = Field(default_factory=lambda: secrets.token_hex(16))  # its token
    federation: str
    out: str
    key: str | None = None
    clusters: Annotated[int, Field(ge=1)] | None = None
    number: int | None = None  # which round it is, if not that of the federation file
    after: str | None = None  # the last model
    kept: str | None = None  # a folder of summaries of earlier rounds
    expect: Annotated[int, Field(ge=1)]
    join: Seconds = 60.0
    answer: Seconds = 600.0
    tables: SiteNames = ()  # of the sites, where they are simulated

    @property
    def file(self) -> Path:
        """Where it is handed over."""
        return Path(self.out) / JOB

    def before(self, agreement: Agreement) -> Model | None:
        """The last model, if this round's is to be made after one."""
        if self.after is None:
            return None
        model = read_model(Path(self.after))
        check_before(model, agreement.terms, agreement.terms.n_features)
        return model

    def remembered(self, agreement: Agreement) -> dict[str, tuple[Summary, bytes]]:
        """The summaries of earlier rounds, and their bodies, by site; not of those that are no longer listed."""
        found = {}
        for path in sorted(Path(self.kept).glob("*.summary")) if self.kept else ():
            if not agreement.names or path.stem in agreement.names:
                body = read_message(path)
                summary = agreement.read_summary(decode(body, path.name), or_earlier=True)
                found[summary.site] = summary, body
        return found

    def check_current(self) -> None:
        """Refuse to go on if another round has begun in the folder."""
        if Job.read(self.file).round != self.round:
            raise GoldError(
                f"Another round has begun in {self.out}: this one ends, and leaves the folder alone.", "another-round"
            )

    def load(self) -> tuple[Agreement, PrivateKey | None]:
        """What was agreed on, and the server's key where messages are sealed; refused if they do not fit the job."""
        agreement = read_agreement(Path(self.federation))
        if self.number is not None:
            agreement = agreement.in_round(self.number)
        key = None if self.key is None else PrivateKey.read(Path(self.key))
        server_key(agreement, key)
        if self.expect < (least := agreement.limits.least_sites):
            raise BadSettings(
                f"{self.expect} sites are expected, but at least {least} are agreed on in {FILE}; "
                "expect more, or agree on fewer.",
                "expect-too-few",
            )
        if self.tables and agreement.sealed:
            raise BadSettings(
                f"A simulation has no private keys of the sites; use a {FILE} without keys.", "simulation-sealed"
            )
        return agreement, key


class Trouble(Strict):
    """Why a round failed: the name of an error of goldfc, and its sentence."""

    kind: str
    sentence: str


class Status(Paper):
    """How a round stands: who is there, and what became of everybody."""

    round: str = ""  # the token
    state: State = "joining"
    expected: int
    joined: int = 0
    accepted: SiteNames = ()  # sites whose summary was accepted
    unchanged: SiteNames = ()  # sites that have nothing new
    remembered: SiteNames = ()  # sites whose summary is of an earlier round
    refused: Reasons = Field(default_factory=dict)  # who did not, or could not be used, and why
    silent: SiteNames = ()
    missing: SiteNames = ()  # sites that are listed, and whose summary is not in
    left_out: Reasons = Field(default_factory=dict)
    odd: SiteNames = ()  # which columns look odd at whom
    model: str = ""  # its fingerprint, once there is one
    labelled: SiteNames = ()
    unlabelled: Reasons = Field(default_factory=dict)
    trouble: Trouble | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in {"done", "failed"}

    @property
    def took_part(self) -> tuple[str, ...]:
        """Whose summaries are in the model."""
        return tuple(site for site in sorted({*self.accepted, *self.remembered}) if site not in self.left_out)


@dataclass
class Keeper:
    """Where the server keeps what came, what it made and how things stand, while the folder is this round's."""

    job: Job
    last: Status = field(init=False)  # how things stood when they were told the last time

    def __post_init__(self) -> None:
        """Nobody is there yet."""
        self.tell(Status(expected=self.job.expect))

    @property
    def private(self) -> bool:
        """Whether messages are sealed."""
        return self.job.key is not None

    def tell(self, news: Status) -> None:
        """How things stand."""
        self.last = news.model_copy(update={"round": self.job.round})
        self.last.write(self._place(STATUS))

    def keep(self, summary: Summary, body: bytes) -> None:
        """A summary, before it is spoken of."""
        write_durably(self._place(ACCEPTED, f"{summary.site}.summary"), body, private=self.private)

    def deliver(self, model: Model, letters: dict[str, bytes]) -> None:
        """The model, before it is sent; where it is sealed, also as each site gets it."""
        check = self.job.check_current
        write_model(Path(self.job.out), model, letters, sealed=self.private, before_each=check)

    def _place(self, *parts: str) -> Path:
        """Where to write something now: asked before every write, for another round may begin at any time."""
        self.job.check_current()
        path = Path(self.job.out, *parts)
        path.parent.mkdir(exist_ok=True)
        return path
