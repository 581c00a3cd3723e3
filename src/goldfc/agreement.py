"""What all sites agree on before anybody sends anything: one file, `federation.toml`, the same everywhere."""

import re
import stat
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, field_validator, model_validator

from goldfc.errors import BadMessage, BadSettings
from goldfc.message.columns import (
    LARGEST_TOLD,
    Column,
    Name,
    Strict,
    Terms,
    Text,
    look_of_name,
    refuse_alike,
    settings_in,
)
from goldfc.message.envelope import Context, PublicKey
from goldfc.message.levels import LEVELS, Level
from goldfc.message.message import Message
from goldfc.message.summary import Summary
from goldfc.message.task import Part, Task, rows_each

FILE = "federation.toml"
MOST_BYTES = 64 * 1024
MOST_ROUNDS = 10**9
# Of a key with dots, such as limits.least_sites; a parser of TOML takes the square of their number in memory.
MOST_PARTS_OF_A_KEY = 8
# What dots may stand in without making a key longer: texts, of all four kinds, and remarks.
NO_KEYS = re.compile(
    r"""\"{3}(?:\\.|[^\\])*?(?:"{3,5}|\\?\Z)|'{3}.*?(?:'{3,5}|\Z)|"(?:\\.|[^"\\\n])*+"?|'[^'\n]*+'?|\#[^\n]*+""",
    flags=re.DOTALL,
)
LONG_KEY = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{MOST_PARTS_OF_A_KEY}}}")


class Bounds(Strict):
    """How much anybody may bring, and how many must be there."""

    least_sites: Annotated[int, Field(ge=1)] = 3
    most_micro_clusters: Annotated[int, Field(ge=1, le=20_000)] = 100
    mass_cap: Annotated[float, Field(gt=0.0, allow_inf_nan=False, strict=False)] = 1.0
    sites_behind: Annotated[int, Field(ge=1, le=10**6)] = 1  # one summary: more than 1 where gateways merge


class Memory(Strict):
    """How long summaries of earlier rounds count; by default for ever, and as much as new ones."""

    half_life: Annotated[float, Field(gt=0.0, allow_inf_nan=False, strict=False)] | None = None  # in rounds
    window: Annotated[int, Field(ge=1)] | None = None  # so many rounds, this one among them


class ListedSite(Strict):
    """Somebody who may take part, and her public key."""

    name: Name
    key: str | None = None

    @field_validator("key")
    @classmethod
    def _is_a_key(cls, key: str | None) -> str | None:
        return checked_key(key)


class Server(Strict):
    """The public key of whoever fuses."""

    key: str | None = None

    @field_validator("key")
    @classmethod
    def _is_a_key(cls, key: str | None) -> str | None:
        return checked_key(key)


def checked_key(key: str | None) -> str | None:
    """The key, if it is one."""
    return None if key is None else PublicKey(key).text


def known_level(name: str) -> str:
    """The name of a privacy level."""
    if name not in LEVELS:
        raise ValueError(f"must be one of {', '.join(sorted(LEVELS))}")
    return name


class Agreement(Strict):
    """The content of `federation.toml`; docs/federation-file.md explains every line."""

    federation: Name
    round: Annotated[int, Field(ge=0, le=MOST_ROUNDS)] = 1
    title: Text = ""
    privacy: Annotated[str, AfterValidator(known_level)] = "suppressed"
    smallest: Annotated[int, Field(ge=2, le=10_000)] = 5
    eps: Annotated[float, Field(ge=0.05, le=64.0, strict=False)] = 1.0  # where sites are private, as is all of these
    delta: Annotated[float, Field(ge=1e-12, le=1e-3, strict=False)] = 1e-5
    most_rows: Annotated[int, Field(ge=1, le=1_000)] = 1  # of one person
    scaling: Literal["pooled", "ranges"] = "pooled"
    missing: Literal["refuse", "drop"] = "refuse"
    implausible: Literal["warn", "refuse"] = "warn"  # columns of a site that are unlike the others'
    withhold: Annotated[tuple[Part, ...], Field(strict=False)] = ()
    id_column: Text | None = None  # of the sites' tables; it is never in a message
    person_column: Text | None = None  # says whose a row is; never in a message either
    seed: Annotated[int, Field(ge=0)] = 0
    deadline: datetime | None = None
    repeats: bool = False  # live: a server may go on to later rounds without a new file
    limits: Bounds = Bounds()
    memory: Memory = Memory()
    server: Server = Server()
    sites: Annotated[tuple[ListedSite, ...], Field(strict=False)] = ()
    columns: Annotated[tuple[Column, ...], Field(strict=False, min_length=1)]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        refuse_alike("site", self.names, look_of_name)
        if self.server.key and (without := [site.name for site in self.sites if site.key is None]):
            raise BadSettings(f"the server has a key, but site {without[0]!r} has none", "site-without-key")
        if self.server.key and not self.sites:
            raise BadSettings(
                "the server has a key, but no site is listed; add [[sites]], each with name and key",
                "key-without-sites",
            )
        if self.deadline is not None and self.deadline.tzinfo is None:
            raise BadSettings("the deadline needs a time zone, such as 2027-01-31T18:00:00Z", "deadline-without-zone")
        if self.id_column in [column.name for column in self.columns]:
            raise BadSettings(
                f"column {self.id_column!r} tells rows apart, so it cannot be learned from", "id-column-learned"
            )
        if self.person_column in [column.name for column in self.columns]:
            raise BadSettings(
                f"column {self.person_column!r} says whose a row is, so it cannot be learned from",
                "person-column-learned",
            )
        if self.scaling == "ranges" and self.without_range:
            raise BadSettings(
                f"scaling by ranges needs a range for every column; {self.without_range[0]!r} has none", "range-missing"
            )
        if self.privacy == "private" and self.without_range:
            raise BadSettings(
                f"privacy needs a range for every column of numbers; {self.without_range[0]!r} has none",
                "private-range-missing",
            )
        if self.most_rows > 1 and not (self.person_column or self.id_column):
            raise BadSettings("most_rows counts rows of a person, so it needs a person_column", "person-column-missing")
        _ = self.terms
        return self

    @property
    def without_range(self) -> tuple[str, ...]:
        """Columns of numbers that have none."""
        return tuple(column.name for column in self.columns if column.kind == "number" and not column.range)

    @property
    def terms(self) -> Terms:
        """The part that every message repeats."""
        return Terms(federation=self.federation, round=self.round, columns=self.columns)

    @property
    def task(self) -> Task:
        """What is asked of every site."""
        return Task(
            most=min(Task().most, self.limits.most_micro_clusters),
            rows_each=rows_each(self.level.fewest),
            scaling=self.scaling,
            level=self.level,
        )

    @property
    def level(self) -> Level:
        """The privacy level."""
        return LEVELS[self.privacy].agreed(vars(self))

    @property
    def sealed(self) -> bool:
        """Whether messages travel in envelopes."""
        return self.server.key is not None

    @property
    def names(self) -> tuple[str, ...]:
        """Who may take part; nobody listed: everybody."""
        return tuple(site.name for site in self.sites)

    def in_round(self, number: int) -> Self:
        """The same in this or a later round, if rounds may follow one another without a new file."""
        if number != self.round and not (self.repeats and self.round < number <= MOST_ROUNDS):
            raise BadMessage(
                f"It is of round {number}, but {FILE} is of round {self.round}, and does not say that later ones may "
                "follow (repeats = true).",
                "round-not-agreed",
            )
        return self.model_copy(update={"round": number})

    def key_of(self, site: str) -> PublicKey:
        """A site's public key."""
        key = next((one.key for one in self.sites if one.name == site), None)
        if key is None:
            raise BadMessage(
                f"Site {site!r} is not among the sites of {FILE}, so its key is not known.", "site-key-unknown"
            )
        return PublicKey(key)

    def read_summary(self, message: Message, *, or_earlier: bool = False) -> Summary:
        """A summary of this round, or of one before if `or_earlier`; each site's influence is limited here."""
        summary = Summary.from_message(message)
        who = f"The summary of site {summary.site!r}"
        self._check_origin(summary, who, or_earlier)
        self._check_level(summary, who)
        self._check_parts(summary, who)
        self._check_ranges(summary, who)
        return summary

    def _check_origin(self, summary: Summary, who: str, or_earlier: bool) -> None:
        if self.sites and summary.site not in self.names:
            raise BadMessage(f"{who} is from a site that is not listed in {FILE}.", "site-not-listed")
        is_earlier = or_earlier and summary.terms.round < self.round
        if difference := self.terms.difference(summary.terms, any_round=is_earlier):
            raise BadMessage(
                f"{who} does not fit {FILE}: {difference}; it must be made again with the same file.",
                "summary-of-other-terms",
            )

    def _check_level(self, summary: Summary, who: str) -> None:
        if summary.sites > self.limits.sites_behind:
            raise BadMessage(
                f"{who} stands for {summary.sites} sites, and at most {self.limits.sites_behind} are agreed on "
                f"(sites_behind in {FILE}).",
                "sites-behind",
            )
        if len(summary.centroids) > self.limits.most_micro_clusters:
            raise BadMessage(
                f"{who} has {len(summary.centroids)} micro-clusters, and at most "
                f"{self.limits.most_micro_clusters} are allowed.",
                "too-many-micro-clusters",
            )
        if missing := self.level.missing_in(summary.level):
            raise BadMessage(f"{who} has a lower privacy level than agreed: {missing}.", "privacy-level-low")

    def _check_parts(self, summary: Summary, who: str) -> None:
        task, told = self.task, self.task.mass and "mass" not in self.withhold
        if (summary.mass is not None) != told:
            raise BadMessage(f"{who} must {'tell' if told else 'not tell'} its mass, as agreed.", "mass-not-as-agreed")
        # A site with few rows tells neither, and several micro-clusters only with moments.
        if summary.shape is not None and (not task.shape or "shape" in self.withhold):
            raise BadMessage(f"{who} must not tell its shape, as agreed.", "shape-not-agreed")
        wanted = self.scaling == "pooled" and summary.level.tells_moments
        if summary.moments is not None and not wanted:
            raise BadMessage(f"{who} must not tell its moments, as agreed.", "moments-not-agreed")
        if summary.moments is None and wanted and len(summary.centroids) > 1:
            raise BadMessage(f"{who} must tell its moments, as agreed.", "moments-missing")
        sizes = np.abs(summary.centroids).max(axis=0)
        if (sizes > LARGEST_TOLD).any() or ((sizes > 0.0) & (sizes < 1.0 / LARGEST_TOLD)).any():
            raise BadMessage(
                f"{who} holds columns whose values are above {LARGEST_TOLD:g} or all below {1.0 / LARGEST_TOLD:g}; "
                "use other units.",
                "units",
            )

    def _check_ranges(self, summary: Summary, who: str) -> None:
        low, high = np.array([column.limits for column in self.terms.features]).T
        points = summary.centroids if summary.moments is None else np.vstack([summary.centroids, summary.moments.mean])
        # Rounding to the grid may carry a mean over the end of its range.
        slack = np.array([column.step or 0.0 for column in self.terms.features]) + 0.01 * np.minimum(high - low, 1e300)
        outside = (points < low - slack) | (points > high + slack)
        if outside.any():
            row, feature = np.argwhere(outside)[0]
            raise BadMessage(
                f"{who} has the value {points[row, feature]:g} in {self.terms.feature_names[feature]!r}, outside "
                f"the agreed range from {low[feature]:g} to {high[feature]:g}.",
                "outside-range",
            )


def read_agreement(path: Path) -> Agreement:
    """From its file, or a sentence that says which line to correct."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadSettings(f"{path} is not a file; give the file that was agreed on.", "agreement-missing")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadSettings(
            f"{path} cannot be read ({error.strerror}); give the file that was agreed on.", "agreement-unreadable"
        ) from error
    return parse_agreement(content, path.name)


def parse_agreement(text: str | bytes, source: str) -> Agreement:
    """From its text, which may be a stranger's: what would take long to read is refused before it is read."""
    content = text.encode() if isinstance(text, str) else text
    if len(content) > MOST_BYTES:
        raise BadSettings(
            f"{source} has more than {MOST_BYTES} bytes, which is the limit; leave out comments and lines that say "
            "what is the default, or agree on fewer columns.",
            "agreement-large",
        )
    if LONG_KEY.search(NO_KEYS.sub("_", content.decode(errors="replace"))):
        raise BadSettings(
            f"{source} is not as it should be: a key has more than {MOST_PARTS_OF_A_KEY} parts, and no setting has.",
            "key-of-many-parts",
        )
    return settings_in(content, source, Agreement)


def context_of(agreement: Agreement, site: str, to: str) -> Context:
    """What an envelope is for."""
    return Context(federation=agreement.federation, round=agreement.round, site=site, to=to)
