"""Adding something touches few places: a toy of each, as CONTRIBUTING counts them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from goldfc import LocalPort, Model, OneShot, Site, Summary, Task, run_round, summarize
from goldfc.agreement import Agreement
from goldfc.errors import BadMessage
from goldfc.message import levels, wire
from goldfc.message.columns import Column, Terms, Text
from goldfc.message.levels import Level
from goldfc.message.schema import fact
from goldfc.report.describe import describe
from goldfc.server import fusions
from goldfc.site.audit import Limits
from goldfc.site.privacy import Rules, Told
from goldfc.site.rows import Rows
from goldfc.site.summarize import TELLERS, tell_plainly
from strategies import blobs

ROWS, _ = blobs(3, 300, 2, seed=0)


def sites() -> list[Site]:
    return [Site(name, rows) for name, rows in zip("abc", np.split(ROWS, 3), strict=True)]


# --- a fusion: a class, and a line in FUSIONS


@dataclass(frozen=True)
class Halves:
    """Two clusters: what lies left of the middle, and what lies right of it."""

    task: Task = Task(shape=False)  # noqa: RUF009 (it is frozen)

    def fuse(self, summaries: Sequence[Summary], n_clusters: int | None, rng: np.random.Generator) -> Model:
        """Whatever was asked for."""
        model = OneShot().fuse(summaries, 2, rng)
        middle = np.median(np.vstack([summary.centroids for summary in summaries])[:, 0])
        right = np.concatenate([summary.centroids[:, 0] > middle for summary in summaries])
        return replace(model, micro_labels=right.astype(np.int64), why=f"halves, not {n_clusters}")


def test_a_fusion_is_a_class_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fusions.FUSIONS, "halves", f"{__name__}:Halves")
    result = run_round(LocalPort(sites()), 5, "halves", np.random.default_rng(0))
    assert result.model.why == "halves, not 5"
    assert all(summary.shape is None for summary in result.summaries)
    assert set(result.model.micro_labels.tolist()) == {0, 1}


# --- a field of a message: its line, who fills it in, who uses it


@dataclass(frozen=True)
class WithRemark(Summary):
    """A summary that says something more: the line."""

    remark: str = fact(Text, default="")

    KIND = "summary with remark"


def test_a_field_of_a_message_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(wire.KNOWN_PARTS, WithRemark.KIND, wire.known_of(WithRemark))
    terms = Terms(federation="heart", columns=(Column(name="age"), Column(name="weight")))
    sent = WithRemark("ward-a", ROWS[:4], terms=terms, remark="from the night shift")  # who fills it in
    found = WithRemark.from_message(wire.decode(wire.encode(sent.to_message())))
    assert found.remark == "from the night shift"  # who uses it


# --- a privacy level: a class, what a site does for it, and its settings in the agreement (this one has none)


class Rounded(Level):
    """Micro-centroids without decimals."""

    @property
    def promise(self) -> str:
        """What it means, in words."""
        return "rounded: means have no decimals"


def tell_rounded(rows: Rows, site: str, task: Task, rules: Rules, limits: Limits) -> Told:
    told = tell_plainly(rows, site, task, rules, limits)
    return replace(told, summary=replace(told.summary, centroids=np.round(told.summary.centroids), shape=None))


def test_a_privacy_level_is_a_class_and_what_a_site_does_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(levels.LEVELS, "rounded", Rounded)
    monkeypatch.setitem(TELLERS, Rounded, tell_rounded)  # type: ignore[misc] # it takes classes for functions
    columns = (Column(name="age"), Column(name="weight"))
    agreed = Agreement(federation="heart", privacy="rounded", columns=columns)
    summary, _ = summarize(ROWS, "a", agreed.task, terms=agreed.terms)
    taken = agreed.read_summary(wire.decode(wire.encode(summary.to_message())))
    assert taken.level.promise == dict(describe(taken.to_message()))["privacy level"]
    np.testing.assert_array_equal(taken.centroids, np.round(taken.centroids))
    plain, _ = summarize(ROWS, "a", replace(agreed.task, level=levels.PLAIN), terms=agreed.terms)
    with pytest.raises(BadMessage, match="lower privacy level"):
        agreed.read_summary(plain.to_message())
