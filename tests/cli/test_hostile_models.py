"""A model that is well-formed and says what no fusion would: its labels and its page are right, or there is a sentence.

Never a traceback, a number that is none, or a wait without end.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from goldfc import Model
from goldfc._types import FloatArray
from goldfc.cli import main
from goldfc.errors import BadMessage
from goldfc.learning.levels import Levels
from goldfc.learning.micro_clusters import form_of_shape
from goldfc.learning.moments import Moments
from goldfc.learning.proposal import Candidate, Proposal
from goldfc.message.columns import LARGEST_TOLD, Column, Terms
from goldfc.message.model import Prototypes
from goldfc.message.wire import decode, encode
from goldfc.report.describe import describe
from goldfc.report.listing import csv_of
from goldfc.report.model_page import write_model_report
from goldfc.report.site_page import write_site_report
from goldfc.site.labels import Labels, label_rows, lines_text
from report.own import own_rows

ANY = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 5e-324, 1e-300, -1e-200, 1e-160, 1e-100, 1e15, 1e50, 1e99, 1e100, -1e100]
)
POSITIVE = np.array([5e-324, 1e-300, 1e-160, 1e-100, 1e-8, 1.0, 3.0, 1e8, 1e15, 1e99, 1e100, 1e150, 1e200])
BATCHES, MODELS_EACH = 4, 40
Chance = np.random.Generator


def some(rng: Chance, shape: int | tuple[int, ...]) -> FloatArray:
    """Numbers: each of another size, all ordinary, all of one odd size, or all alike."""
    ordinary = rng.normal(size=shape)
    kinds = (rng.choice(ANY, size=shape), ordinary, ordinary * rng.choice(ANY), np.full(shape, rng.choice(ANY)))
    return np.asarray(kinds[int(rng.integers(4))])


def positive(rng: Chance, shape: int | tuple[int, ...], most: float) -> FloatArray:
    """The same, above 0."""
    sizes = POSITIVE[most >= POSITIVE]
    kinds = (rng.choice(sizes, size=shape), rng.random(shape) + 0.1, np.full(shape, rng.choice(sizes)))
    return np.asarray(kinds[int(rng.integers(3))])


def covariance(rng: Chance, size: int) -> FloatArray:
    """Of any scale in every direction, and nearly singular or not."""
    deviation, close = np.sqrt(positive(rng, size, 1e200)), rng.choice([0.0, 0.9, 0.999999, 1.0 - 1e-12])
    relative = close * np.ones((size, size)) + (1.0 - close) * np.eye(size)
    return np.asarray(relative * np.outer(deviation, deviation))


def columns(rng: Chance) -> Terms:
    """One to four, of any kind."""
    kinds = rng.choice(["number", "boolean", "category"], size=rng.integers(1, 5)).tolist()
    levels = {"category": ("a", "b", "c")}
    return Terms(
        federation="wards",
        columns=tuple(Column(name=f"c{n}", kind=kind, categories=levels.get(kind, ())) for n, kind in enumerate(kinds)),
    )


def model(rng: Chance) -> Model:
    """Anything that can be said."""
    terms, count, kind = columns(rng), int(rng.choice([1, 2, 3, 5, 40])), str(rng.choice(["shared", "own", "linked"]))
    layout = terms.layout(terms.n_features)
    size = max(1, len(layout.numbers))
    centroids = some(rng, (count, terms.n_features))
    for levels in layout.categories:
        centroids[:, levels] = np.clip(centroids[:, levels], -0.5, 1.5)
    whole = covariance(rng, size)
    if kind == "own":
        whole = np.array([covariance(rng, size) for _ in range(count)])
    elif form_of_shape(size) != whole.shape or rng.integers(2):
        whole = np.diagonal(whole).copy()
    micro = rng.integers(1, 4, size=rng.choice([1, 2, 30]))
    of_micro = rng.integers(0, micro.sum(), size=(micro.sum(), rng.integers(1, 4)))
    return Model(
        kind=kind,  # type: ignore[arg-type]
        why="because",
        centroids=centroids,
        mass=positive(rng, count, 1e15),
        covariance=whole,
        reach=positive(rng, count, 1e100) * rng.integers(2),
        sites=tuple(f"site-{n}" for n in range(len(micro))),
        micro_counts=tuple(micro.tolist()),
        micro_labels=rng.integers(count, size=micro.sum()),
        micro_certainty=rng.random(micro.sum()),
        levels=Levels(of_micro, tuple((of_micro.max(axis=0) + rng.choice([1, 2, 1000, 10**7])).tolist())),
        digests=("0" * 32,) * len(micro),
        agreement=float(rng.choice([0.0, 0.5, 1.0])),
        prototypes=prototypes(rng, count, terms.n_features) if kind == "linked" else None,
        proposal=proposal(rng) if rng.integers(2) else None,
        moments=moments(rng, terms.n_features) if rng.integers(2) else None,
        terms=terms,
    )


def prototypes(rng: Chance, count: int, n_features: int) -> Prototypes:
    labels = np.sort(np.concatenate([np.arange(count), rng.integers(count, size=3)]))
    return Prototypes(some(rng, (len(labels), n_features)), labels, positive(rng, len(labels), 1e15))


def proposal(rng: Chance) -> Proposal:
    tried = sorted(set(rng.choice([1, 2, 3, 10, 1000, 10**8], size=rng.integers(1, 5)).tolist()))
    evidence = rng.choice([0.0, 1e8, -1e8, 1.0, 5e-324], size=len(tried)).tolist()
    return Proposal(
        tuple(tried), tuple(evidence), tuple(Candidate(n, "so") for n in rng.choice(tried, size=2).tolist())
    )


def moments(rng: Chance, n_features: int) -> Moments:
    count = float(rng.choice([5e-324, 1e-300, 1.0, 1e8, 1e300]))
    squares = np.abs(some(rng, n_features)) * rng.choice([0.0, 1.0, 1e100])
    return Moments(count, some(rng, n_features), squares)


def rows_for(rng: Chance, one: Model) -> FloatArray:
    """Rows of a table that this model fits: some at its centroids, some anywhere."""
    rows = np.vstack([some(rng, (5, one.centroids.shape[1])), one.centroids[:3], rng.normal(size=one.centroids.shape)])
    for levels in one.layout.categories:
        chosen = rng.integers(max(2, len(levels)), size=len(rows))
        rows[:, levels] = np.eye(3)[chosen] if len(levels) > 1 else chosen[:, None]
    return np.clip(rows, -LARGEST_TOLD, LARGEST_TOLD)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_well_formed_model_has_a_page_and_labels_or_is_refused(batch: int, tmp_path: Path) -> None:
    taken = 0
    for number in range(MODELS_EACH):
        rng = np.random.default_rng((batch, number))
        try:
            one = Model.from_message(decode(encode(model(rng).to_message())))
        except BadMessage as error:
            assert "does not fit together" in str(error)  # noqa: PT017 (most are taken, which is counted)
            continue
        taken += 1
        rows = rows_for(rng, one)
        cluster, certainty, far = label_rows(rows, one)
        assert ((certainty >= 0.0) & (certainty <= 1.0 + 1e-9)).all()
        ids = tuple(map(str, range(len(rows))))
        lines_text(Labels(ids, cluster, certainty, far, ("",) * len(rows)), one.fingerprint)
        write_model_report(one, tmp_path / "page.html")
        write_site_report(*own_rows(one, rows), tmp_path / "own.html")
        for page in ("page.html", "own.html"):
            assert not re.search(r"\b(nan|inf)\b", (tmp_path / page).read_text(encoding="utf-8"))
        assert list(describe(one.to_message()))
        assert not re.search(rb"\b(nan|inf)\b", csv_of(one._result()))
    assert taken > MODELS_EACH / 2


ORDINARY = Model(
    kind="shared",
    why="because",
    centroids=np.array([[0.0], [1.0]]),
    mass=np.ones(2),
    covariance=np.ones(1),
    reach=np.ones(2),
    sites=("north",),
    micro_counts=(3,),
    micro_labels=np.array([0, 1, 0]),
    micro_certainty=np.ones(3),
    levels=Levels(np.array([[0], [1], [1]]), (2,)),
    digests=("0" * 32,),
    terms=Terms(federation="wards", columns=(Column(name="age"),)),
)
YES_OR_NO = Terms(federation="wards", columns=(Column(name="age", kind="boolean"),))
ODD: dict[str, Callable[[], dict[str, Any]]] = {
    "more spread than can be told": lambda: {"moments": Moments(1e-200, np.zeros(1), np.full(1, 1e200))},
    "hardly any rows": lambda: {"moments": Moments(5e-324, np.zeros(1), np.full(1, 1e100))},
    "no columns": lambda: {"terms": Terms(federation="wards")},
    "a column that is not there": lambda: {"terms": Terms(federation="wards", columns=(Column(name="=1+1"),))},
    "a value that stands for others and is none": lambda: {
        "terms": Terms(federation="wards", columns=(Column(name="age", fill="much"),))
    },
    "shares far below 0": lambda: {"terms": YES_OR_NO, "centroids": np.array([[-1e100], [1e100]])},
    "shares a little below 0": lambda: {"terms": YES_OR_NO, "centroids": np.array([[-0.01], [1.02]])},
    "the same evidence for all": lambda: {"proposal": Proposal((1, 2), (0.0, 0.0), (Candidate(2, "so"),))},
    "more clusters than anybody has": lambda: {"proposal": Proposal((1, 10**8), (0.0, 1.0), (Candidate(10**8, "so"),))},
    "levels of many clusters": lambda: {"levels": Levels(ORDINARY.levels.labels, (10**8,))},
    "many levels": lambda: {"levels": Levels(np.tile(ORDINARY.levels.labels, 500), (2,) * 500)},
    "nothing is far": lambda: {"reach": np.full(2, 1e100)},
    "no spread": lambda: {"covariance": np.full(1, 5e-324), "centroids": np.array([[5e-324], [1e-323]])},
}


@pytest.mark.parametrize("odd", ODD)
def test_commands_end_in_a_result_or_a_sentence_whatever_a_model_says(
    odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("age\n0\n1\n1\n", encoding="utf-8")
    Path("global.model").write_bytes(encode(replace(ORDINARY, **ODD[odd]()).to_message()))
    for words in (
        ("report", "global.model"),
        ("profile", "global.model", "-o", "profiles.csv"),
        ("label", "data.csv", "--model", "global.model", "-o", "labels.csv", "--unsigned"),
        ("inspect", "global.model"),
    ):
        result = CliRunner().invoke(main, words)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code in {0, 2, 3}
        assert result.exit_code == 0 or result.output.startswith("goldfc: ")
