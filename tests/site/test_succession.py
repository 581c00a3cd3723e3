"""A site labels by a model that comes after the last one it labelled by."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from goldfc import Model, OneShot, fuse, summarize
from goldfc.agreement import Agreement
from goldfc.errors import BadMessage, BadSettings
from goldfc.files import PRIVATE_FOLDER
from goldfc.message.columns import Column
from goldfc.message.descent import MOST_ANCESTORS
from goldfc.randomness import generator
from goldfc.site.seals import remember
from goldfc.site.succession import MEMORY, Last, check_succession, remember_model
from sentences import refused

AGREEMENT = Agreement(federation="wards", columns=(Column(name="age"), Column(name="pressure")))


def model_after(before: Model | None, seed: int = 0) -> Model:
    rows = np.random.default_rng(seed).normal(size=(60, 2)) + np.repeat([[0.0], [20.0]], 30, axis=0)
    fusion = OneShot(starts=1)
    summary = summarize(rows, "north", fusion.task, terms=AGREEMENT.terms)[0]
    return fuse([summary], 2, fusion, generator(0, "server"), after=before)


FIRST = model_after(None)
SECOND = model_after(FIRST, 1)
THIRD = model_after(SECOND, 2)
SECOND_MADE_ANEW = model_after(FIRST, 3)
OTHER = model_after(None, 4)
THIRD_OF_ANOTHER = model_after(model_after(OTHER, 5), 6)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Where a message was made."""
    path = tmp_path / "data.csv"
    remember(path, AGREEMENT)
    return path


@pytest.mark.parametrize(
    ("last", "now"),
    [
        (FIRST, SECOND),
        (FIRST, THIRD),
        (SECOND, THIRD),
        (SECOND, SECOND),
        (SECOND, SECOND_MADE_ANEW),
        (SECOND_MADE_ANEW, THIRD),
        (FIRST, OTHER),
    ],
    ids=["next", "one left out", "third", "again", "in its place", "after what took its place", "no lineage"],
)
def test_a_model_that_comes_after_the_last_one_is_taken(data: Path, last: Model, now: Model) -> None:
    remember_model(data, last)
    check_succession(data, now, said=False)


@pytest.mark.parametrize(
    ("last", "now"),
    [(SECOND, FIRST), (THIRD, SECOND), (SECOND, THIRD_OF_ANOTHER), (SECOND, OTHER)],
    ids=["the first", "older", "of another lineage", "of none"],
)
def test_an_older_model_or_one_of_another_lineage_is_refused_unless_it_is_meant(
    data: Path, last: Model, now: Model
) -> None:
    remember_model(data, last)
    with refused(BadMessage, "model-not-after"):
        check_succession(data, now, said=False)
    check_succession(data, now, said=True)


def test_of_a_model_that_is_far_later_nobody_can_tell() -> None:
    assert THIRD.descent is not None
    later = replace(THIRD, descent=replace(THIRD.descent, generation=2 + MOST_ANCESTORS, ancestors=("0" * 32,)))
    assert Last.of(SECOND).may_be_followed_by(later)
    assert Last(SECOND.digest, 1, FIRST.digest).may_be_followed_by(THIRD)


def test_nothing_is_remembered_where_no_message_was_made(tmp_path: Path) -> None:
    remember_model(tmp_path / "data.csv", FIRST)
    assert not (tmp_path / PRIVATE_FOLDER).exists()


def test_a_memory_that_cannot_be_read_is_refused(data: Path) -> None:
    remember_model(data, FIRST)
    (data.parent / PRIVATE_FOLDER / MEMORY).write_text('{"wards": 3}')
    with refused(BadSettings, "models-unreadable"):
        check_succession(data, SECOND, said=False)
