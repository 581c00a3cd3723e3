"""Sources of rows: whatever is gone through in blocks is all there, once, in order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldfc import OneShot, summarize
from goldfc._types import FloatArray
from goldfc.errors import BadRows
from goldfc.learning import rows as rows_module
from goldfc.learning.rows import Chosen, InMemory, RowSource, Sample, blocks_of, sample_of, sweep
from goldfc.message.levels import with_fewest
from goldfc.message.task import Task
from goldfc.site.audit import audit
from goldfc.site.rows import Rows, checked
from goldfc.site.summarize import tell
from sites import Counted

WAY = OneShot(Task(level=with_fewest(5), rows_each=8))


def table(n_rows: int, n_features: int = 3) -> FloatArray:
    rng = np.random.default_rng(n_rows)
    return rng.normal(size=(n_rows, n_features)) + 4.0 * rng.integers(0, 3, (n_rows, 1))


@settings(max_examples=100, deadline=None)
@given(n_rows=st.integers(1, 60), size=st.integers(1, 70), most=st.integers(1, 70), data=st.data())
def test_blocks_samples_and_choices_are_slices_of_the_table(
    n_rows: int, size: int, most: int, data: st.DataObject
) -> None:
    rows = table(n_rows, 2)
    places = np.array(sorted(data.draw(st.sets(st.integers(0, n_rows - 1), min_size=1))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "MOST_ROWS", size)
        np.testing.assert_array_equal(np.concatenate([block for _, block in blocks_of(InMemory(rows))]), rows)
        chosen = Chosen(InMemory(rows), places)
        assert chosen.shape == (len(places), 2)
        np.testing.assert_array_equal(np.concatenate([block for _, block in blocks_of(chosen, 3)]), rows[places])
        np.testing.assert_array_equal(chosen.take(np.arange(len(places))[::2]), rows[places[::2]])
        collected = Sample(InMemory(rows), most)
        sweep(InMemory(rows), collected)
        sample = sample_of(InMemory(rows), most)
    assert 1 <= len(sample) <= most
    np.testing.assert_array_equal(sample, rows[:: -(-n_rows // most)])
    np.testing.assert_array_equal(collected.rows, sample)


def test_the_moments_of_blocks_are_those_of_all_rows() -> None:
    rows = table(25_000)
    found = Rows.of(rows).moments
    assert found.count == 25_000
    np.testing.assert_allclose(found.mean, rows.mean(axis=0))
    np.testing.assert_allclose(found.variance, rows.var(axis=0))


@pytest.mark.parametrize("n_rows", [300, 10_000, 10_001, 23_000])
def test_it_does_not_matter_where_rows_are(n_rows: int) -> None:
    rows = table(n_rows)
    elsewhere: RowSource = Counted(rows)
    here, there = (tell(checked(some, "a"), "a", WAY.task) for some in (rows, elsewhere))
    assert here.summary.to_message().digest == there.summary.to_message().digest
    np.testing.assert_array_equal(here.found.labels, there.found.labels)
    one = audit(here, required=5)
    assert one == audit(there, required=5)
    assert one.membership is not None
    assert not one.failures


def test_bad_values_are_named_by_their_row_in_any_block() -> None:
    rows = table(12_000)
    rows[11_005, 1] = np.nan
    with pytest.raises(BadRows, match="row 11005, column 1 holds nan"):
        summarize(rows, "a", WAY.task)


def test_a_mean_that_is_one_rows_value_is_found_among_many_rows() -> None:
    rows = table(12_000)
    rows[11_017, 1] = -999_999.0
    report = audit(tell(checked(rows, "a"), "a", WAY.task), required=5)
    assert [(name, row) for name, _, row in report.dominated] == [("1", 11_017)]


def test_what_alternates_in_a_table_is_not_missed() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12_000, 2))
    rows[::2] += 50.0
    summary, _ = summarize(rows, "a", WAY.task)
    assert summary.mass is not None
    right = summary.centroids[:, 0] > 25.0
    assert 5_900 <= summary.mass[right].sum() <= 6_100
