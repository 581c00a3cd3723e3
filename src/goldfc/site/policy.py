"""What a site allows, whatever a federation agrees on: `policy.toml` beside its data.

It belongs to the site: it is never taken from the federation or from the current folder, and it can only make what was
agreed on stricter. A site without one has the defaults. Its fingerprint is in every line of the ledger.
"""

import hashlib
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from goldfc.agreement import FILE, Agreement
from goldfc.errors import BadSettings, PolicyRefused
from goldfc.message.columns import MOST_FEATURES, Number, Strict, Text, read_settings
from goldfc.message.levels import Private
from goldfc.message.message import canonical_json
from goldfc.message.task import Task, rows_each
from goldfc.site.audit import MOST_AUC, MOST_FOUND, WARNINGS, Limits

POLICY = "policy.toml"
MOST_BYTES_OF_A_POLICY = 2**16

ShareSetting = Annotated[float, Field(ge=0.0, le=1.0, strict=False)]
Eps = Annotated[float, Field(ge=0.05, le=64.0, strict=False)]
Days = Annotated[int, Field(ge=1, le=36_500)]


class Policy(Strict):
    """The content of `policy.toml`; docs/privacy.md explains every line."""

    smallest: Annotated[int, Field(ge=1, le=10_000)] = 5
    steps: Annotated[dict[Text, Number], Field(max_length=MOST_FEATURES)] = Field(default_factory=dict)
    never: Annotated[tuple[Text, ...], Field(strict=False, max_length=MOST_FEATURES)] = ()
    person: Text | None = None
    least_sites: Annotated[int, Field(ge=1)] = 3
    most_messages: Annotated[int, Field(ge=1)] = 12
    most_questions: Annotated[int, Field(ge=1)] = 3
    days: Days = 365
    least_changed: Annotated[int, Field(ge=0)] | None = None  # None: as many as `smallest`
    most_auc: ShareSetting = MOST_AUC
    most_tpr: ShareSetting = MOST_FOUND
    privacy: Literal["private"] | None = None  # whatever was agreed on, this site's messages are private
    most_eps: Eps = 2.0  # of a message; where more was agreed on, this is what is sent
    most_delta: Annotated[float, Field(ge=1e-12, le=1e-3, strict=False)] = 1e-5
    most_eps_a_year: Eps = 8.0  # of all private messages of a year together
    accept: Annotated[tuple[str, ...], Field(strict=False)] = ()
    least_seconds: Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=False)] = 60.0
    keep_days: Days = 365
    ledger: Text | None = None  # a folder for what stays at the site; None: `.goldfc` beside the data

    @field_validator("steps")
    @classmethod
    def _are_steps(cls, steps: dict[str, float]) -> dict[str, float]:
        if bad := [name for name, step in steps.items() if not step > 0.0]:
            raise BadSettings(f"the step of column {bad[0]!r} must be above 0", "step-not-positive")
        return steps

    @field_validator("accept")
    @classmethod
    def _are_warnings(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [name for name in names if name not in WARNINGS]:
            raise BadSettings(f"there is no warning {unknown[0]!r}; there are {', '.join(WARNINGS)}", "warning-unknown")
        return names

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.keep_days < self.days:
            raise BadSettings(
                f"messages of {self.days} days are counted, but forgotten after {self.keep_days}; keep_days must be "
                "at least days",
                "keep-days",
            )
        return self

    @cached_property
    def fingerprint(self) -> str:
        """What it says, in short; two policies with the same lines have the same."""
        return hashlib.sha256(canonical_json(self.model_dump(mode="json")).encode()).hexdigest()

    def check(self, agreement: Agreement) -> None:
        """Refuse what was agreed on, if it is less than what the site wants."""
        self._check_sites(agreement)
        self._check_columns([column.name for column in agreement.columns])

    def _check_sites(self, agreement: Agreement) -> None:
        if agreement.limits.least_sites < self.least_sites:
            raise PolicyRefused(
                f"{FILE} is content with {agreement.limits.least_sites} sites, but this site's policy wants at least "
                f"{self.least_sites}, so that no site can subtract its own part; agree on a larger least_sites, or "
                f"say least_sites = {agreement.limits.least_sites} in {POLICY} if you may.",
                "policy-least-sites",
            )

    def _check_columns(self, names: list[str]) -> None:
        if found := [name for name in self.never if name in names]:
            raise PolicyRefused(
                f"Column {found[0]!r} is in {FILE}, but by the {POLICY} of this site it never leaves; agree "
                "on the other columns.",
                "policy-never",
            )
        if self.person in names:
            raise PolicyRefused(
                f"Column {self.person!r} says whose a row is by this site's {POLICY}, so it cannot be learned from; "
                f"take it out of {FILE}.",
                "policy-person",
            )

    def tightened(self, agreement: Agreement) -> Task:
        """What this site does of what was agreed on, if that is allowed at all."""
        self.check(agreement)
        task = agreement.task
        if self.privacy == "private" or isinstance(task.level, Private):
            return replace(task, level=self.private_level(agreement))
        smallest = max(task.smallest, self.smallest)
        return task if smallest == task.smallest else task.with_smallest(smallest, rows_each(smallest))

    def private_level(self, agreement: Agreement) -> Private:
        """With the agreed settings, or stricter ones."""
        if agreement.without_range:
            raise PolicyRefused(
                f"This site's {POLICY} wants privacy = 'private', which needs a range for every column; "
                f"{agreement.without_range[0]!r} has none in {FILE}.",
                "policy-range",
            )
        agreed = Private.agreed(vars(agreement))
        return agreed.model_copy(
            update={"eps": min(agreed.eps, self.most_eps), "delta": min(agreed.delta, self.most_delta)}
        )

    def limits(self, smallest: int) -> Limits:
        """What the audit goes by, where no micro-cluster may have fewer rows than `smallest`."""
        least = max(smallest, 2) if self.least_changed is None else self.least_changed
        return Limits(self.most_auc, self.most_tpr, least, self.most_messages, self.most_questions)

    def person_column(self, agreement: Agreement) -> str | None:
        """The column that says whose a row is: the site's, or the agreed one."""
        return self.person or agreement.person_column


def policy_beside(data: Path) -> Path:
    """Where a site's policy is looked for."""
    return data.parent / POLICY


def read_policy(data: Path, named: Path | None = None) -> Policy:
    """The policy beside the data, or the one that the site named; the defaults if there is none."""
    path = named or policy_beside(data)
    return Policy() if named is None and not path.exists() else read_settings(path, Policy, MOST_BYTES_OF_A_POLICY)
