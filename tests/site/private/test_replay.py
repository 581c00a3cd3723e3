"""A neighbour's rows change every release by one bounded vector, and nothing else: the heart of the proof, replayed.

Every release is recorded; then the mechanism runs on rows with one person more, or fewer, and is handed the very same
releases. Whatever it asks for must have the same form, and sums must differ by no more than the noise was made for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldfc._types import FloatArray, IntArray
from goldfc.learning.rows import InMemory
from goldfc.site.private.budget import cost_of, sigma_of
from goldfc.site.private.curator import UNIT, Curator, Sums, Touch, first_rows, whole
from goldfc.site.private.mechanism import find_private

Asked = tuple[str, tuple[int, int], float, Fraction]


@dataclass
class Recorder(Curator):
    """Keeps what was asked for, the sums without noise, and what was released; or hands out earlier releases."""

    asked: list[Asked] = field(default_factory=list)
    sums: list[IntArray] = field(default_factory=list)
    released: list[FloatArray] = field(default_factory=list)
    given: list[FloatArray] | None = None

    def release(self, what: str, touch: Touch, form: tuple[int, int], bound: float, rho: Fraction) -> FloatArray:
        """Sums of blocks of seven rows, and noise that is quick to draw."""
        collected = Sums(touch, form, bound, UNIT // self.most_rows, self.counts)
        for start in range(0, len(rows_of(self)), 7):  # whichever the blocks are
            collected.see(slice(start, start + 7), rows_of(self)[start : start + 7])
        unit = UNIT // self.most_rows
        sigma = sigma_of(unit * self.most_rows, rho)
        self.spent.append((what, cost_of(unit * self.most_rows, sigma)))
        self.asked.append((what, form, bound, rho))
        self.sums.append(collected.total.astype(np.int64))
        # Whatever was released before, the next touch must keep to its bounds: these draws are quick.
        noise = np.rint(sigma * np.random.default_rng(len(self.sums)).standard_normal(form))
        released = (collected.total + noise) * (bound / unit)
        self.released.append(released if self.given is None else self.given[len(self.released)])
        return self.released[-1]


def rows_of(curator: Curator) -> FloatArray:
    return curator.source.read(0, curator.source.shape[0])


def run(rows: FloatArray, people: IntArray | None, most_rows: int, rho: Fraction, **settings: Any) -> Recorder:
    rows = np.ascontiguousarray(rows)
    curator = Recorder(
        InMemory(rows), first_rows(people, most_rows), most_rows, np.random.default_rng(1).bytes, **settings
    )
    low, high = -np.ones(rows.shape[1]), np.ones(rows.shape[1])
    found = find_private(curator, low, high, rho, 20, np.random.default_rng(0))
    assert sum((cost for _, cost in curator.spent), Fraction()) <= rho
    assert np.isfinite(found.centroids).all()
    assert (found.mass > 0.0).all()
    return curator


def differ_by_one_person(one: Recorder, other: Recorder, most_rows: int) -> None:
    assert one.asked == other.asked
    for mine, others in zip(one.sums, other.sums, strict=True):
        change = mine - others
        assert sum(int(value) ** 2 for value in change.ravel()) <= UNIT**2
        assert (change != 0).any(axis=1).sum() <= most_rows


ODD = [0.0, -0.0, 1.0, -1.0, 1e300, -1e300, np.nan, np.inf, -np.inf, 5e-324]


@st.composite
def cases(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, int]:
    """Rows, one row more, and its place: clusters, a single value, corners, and what is no number."""
    n_features, n_rows = draw(st.integers(1, 5)), draw(st.integers(0, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["clusters", "same", "corners", "odd", "wide"]))
    made: dict[str, Callable[[], FloatArray]] = {
        "clusters": lambda: rng.choice([-0.6, 0.5], (n_rows, 1)) + 0.1 * rng.standard_normal((n_rows, n_features)),
        "same": lambda: np.full((n_rows, n_features), 0.25),
        "corners": lambda: rng.choice([-1.0, 1.0], (n_rows, n_features)),
        "odd": lambda: rng.choice(ODD, (n_rows, n_features)),
        "wide": lambda: 1e6 * rng.standard_normal((n_rows, n_features)),
    }
    rows = made[kind]()
    another: FloatArray = draw(
        st.sampled_from(
            [rng.uniform(-1, 1, n_features), rng.choice([-1.0, 1.0], n_features), rng.choice(ODD, n_features)]
        )
    )
    return rows, another, draw(st.integers(0, n_rows))


@settings(max_examples=1_000, deadline=None)
@given(cases(), st.sampled_from([Fraction(1, 100), Fraction(1, 8), Fraction(2)]))
def test_a_row_changes_every_release_by_one_bounded_vector(
    case: tuple[FloatArray, FloatArray, int], rho: Fraction
) -> None:
    rows, another, place = case
    one = run(rows, None, 1, rho)
    other = run(np.insert(rows, place, another, axis=0), None, 1, rho, given=one.released)
    differ_by_one_person(one, other, 1)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 30), st.integers(1, 4), st.integers(1, 8), st.integers(0, 2**32))
def test_a_person_with_several_rows_does_no_more(n_others: int, most_rows: int, own: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    people = np.sort(rng.integers(0, 6, n_others))
    rows = rng.uniform(-1, 1, (n_others, 2))
    places = np.sort(rng.integers(0, n_others + 1, own))
    more = np.insert(rows, places, rng.choice([-1.0, 1.0], (own, 2)), axis=0)
    one = run(rows, people, most_rows, Fraction(1, 10))
    other = run(more, np.insert(people, places, 6), most_rows, Fraction(1, 10), given=one.released)
    differ_by_one_person(one, other, most_rows)


@given(st.lists(st.lists(st.floats(), min_size=3, max_size=3), min_size=1, max_size=10), st.integers(1, UNIT))
def test_vectors_in_whole_numbers_are_never_too_long(vectors: list[list[float]], unit: int) -> None:
    found = whole(np.array(vectors), unit)
    assert (found == np.trunc(found)).all()
    assert all(sum(int(value) ** 2 for value in vector) <= unit**2 for vector in found)


# --- faults that are planted are found by this


def test_a_count_that_does_not_pass_through_the_curator_is_found() -> None:
    rng = np.random.default_rng(3)
    rows = rng.uniform(-1, 1, (30, 2))

    def leaky(curator: Recorder) -> None:
        count = len(rows_of(curator))
        curator.release(
            "votes",
            lambda own: (np.zeros(len(own), dtype=np.int64), np.ones((len(own), 1))),
            (count, 1),
            1.0,
            Fraction(1),
        )

    one, other = (Recorder(InMemory(some)) for some in (rows, rows[:-1]))
    leaky(one)
    leaky(other)
    with pytest.raises(AssertionError):
        differ_by_one_person(one, other, 1)


def test_a_vector_that_is_longer_than_its_bound_is_cut() -> None:
    rows = np.ones((5, 2))
    touch = lambda own: (np.zeros(len(own), dtype=np.int64), 10.0 * own)  # noqa: E731
    one, other = (Recorder(InMemory(some)) for some in (rows, rows[:-1]))
    for curator in (one, other):
        curator.release("sums", touch, (1, 2), 1.0, Fraction(1))
    differ_by_one_person(one, other, 1)


def test_rows_are_seen_in_no_other_way() -> None:
    class Guarded(InMemory):
        """Rows that can be read while something is released, and not otherwise."""

        open = False

        def read(self, start: int, stop: int) -> FloatArray:
            assert Guarded.open, "rows are read outside of a release"
            return super().read(start, stop)

        def take(self, _: Any) -> FloatArray:
            raise AssertionError("rows are taken")

    class Watching(Curator):
        def release(self, *asked: Any) -> FloatArray:
            Guarded.open = True
            try:
                return super().release(*asked)
            finally:
                Guarded.open = False

    rows = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    find_private(Watching(Guarded(rows)), -np.ones(3), np.ones(3), Fraction(1, 10), 20, np.random.default_rng(0))
