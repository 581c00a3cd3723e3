"""What pages show alike."""

import numpy as np
import pytest

from goldfc.learning.levels import Levels
from goldfc.learning.proposal import Candidate, Proposal
from goldfc.report.drawings import (
    CURVE_BOTTOM,
    CURVE_LEFT,
    LABEL_HEIGHT,
    LABEL_WIDTH,
    draw_curve,
    draw_levels,
    draw_tree,
    place_marks,
    round_values,
)


def test_the_curve_ends_where_there_is_less_evidence_than_for_one_cluster() -> None:
    proposal = Proposal((1, 2, 3, 4, 5, 6), (0.0, 1.0, 3.0, 2.0, 0.5, -9.0), (Candidate(3, "best"),))
    curve = draw_curve(proposal, true_number=4)
    assert curve.last == 5
    assert len(curve.points) == 5
    heights = [y for _, y in curve.points]
    assert heights.index(min(heights)) == 2  # y goes down
    assert curve.marks[0].n_clusters == 3
    assert curve.true_x == pytest.approx(curve.points[3][0])


def test_the_numbers_of_neighbouring_candidates_do_not_cover_each_other() -> None:
    marks = place_marks({k: (100.0 + 5.0 * k, 200.0 - k) for k in range(6)})
    for number, mark in enumerate(marks):
        for other in marks[:number]:
            assert abs(mark.x - other.x) >= LABEL_WIDTH or abs(mark.label_y - other.label_y) >= LABEL_HEIGHT


def test_every_fine_cluster_has_one_main_branch_at_least() -> None:
    levels = Levels(np.array([[0, 0], [1, 0], [2, 1], [2, 0], [2, 1]]), (3, 2))
    tree = draw_tree(levels, np.array([0, 0, 1, 1, 1]))
    assert len(tree.nodes) == 5
    assert sum(branch.main for branch in tree.branches) == 3
    assert sum(not branch.main for branch in tree.branches) == 1
    assert [node.size for node in tree.nodes] == [1, 1, 3, 3, 2]


def test_nothing_of_a_curve_is_cut_off_where_one_cluster_fits_best() -> None:
    proposal = Proposal((1, 2, 3, 4), (5.0, 1.0, 0.5, -2.0), (Candidate(2, "the best of two or more"),))
    curve = draw_curve(proposal)
    assert curve.top < min(y for _, y in curve.points)
    assert curve.top < min(mark.label_y for mark in curve.marks)


def test_nobody_needs_to_know_the_true_number() -> None:
    proposal = Proposal((1, 2, 3, 4), (0.0, 1.0, 3.0, -2.0), (Candidate(3, "best"),))
    curve = draw_curve(proposal)
    assert curve.true_x is None
    assert (curve.last, curve.best) == (3, 3)
    assert [text for _, text in curve.x_ticks] == ["1", "2", "3"]


def test_a_candidate_is_drawn_even_where_there_is_little_evidence() -> None:
    proposal = Proposal((1, 2, 3, 4, 5), (0.0, 5.0, -9.0, -8.0, -9.0), (Candidate(2, "best"), Candidate(4, "peak")))
    curve = draw_curve(proposal)
    assert curve.last == 4
    assert [mark.n_clusters for mark in curve.marks] == [2, 4]


def test_a_candidate_that_is_not_on_the_curve_is_not_drawn() -> None:
    proposal = Proposal((1, 2, 3), (0.0, 5.0, 4.0), (Candidate(2, "best"), Candidate(9, "the clearest gaps")))
    curve = draw_curve(proposal)
    assert [mark.n_clusters for mark in curve.marks] == [2]
    assert curve.last == 3


def test_a_curve_of_gaps_begins_with_two_clusters_and_goes_from_0_to_1() -> None:
    proposal = Proposal((2, 3, 4, 5), (1.0, 0.4, 0.0, 0.3), (Candidate(2, "clearest"), Candidate(12, "if round")))
    curve = draw_curve(proposal, true_number=3)
    assert (curve.best, curve.last) == (2, 5)
    assert len(curve.points) == 4
    assert curve.points[0][0] > CURVE_LEFT
    assert [y for _, y in curve.points] == pytest.approx([20.0, 154.4, CURVE_BOTTOM, 176.8])
    assert [text for _, text in curve.x_ticks] == ["1", "2", "3", "4", "5"]
    assert [text for _, text in curve.y_ticks] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    only = draw_curve(Proposal((2,), (0.5,), (Candidate(2, "all there is"),)))
    assert len(only.points) == len(only.marks) == 1
    nothing = draw_curve(Proposal((2, 3), (-1.0, -2.0), (Candidate(2, "from a stranger"),)))
    for point in (*only.points, *nothing.points):
        assert np.isfinite(point).all()


def test_the_global_clusters_are_the_last_line_and_empty_ones_have_no_place() -> None:
    tree = draw_levels(Levels(np.array([[0], [2], [2]]), (3,)), np.array([0, 2, 2]), range(3))
    assert [clusters for _, clusters in tree.rows] == [3, 3]
    assert [node.cluster for node in tree.nodes] == [0, 2, 0, 2]


@pytest.mark.parametrize(
    ("low", "high", "whole", "values"),
    [
        (0.0, 1.0, False, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (1.0, 3.0, True, [1.0, 2.0, 3.0]),
        (1.0, 40.0, True, [10.0, 20.0, 30.0, 40.0]),
        (-310.0, 950.0, False, [0.0, 500.0]),
        (-3e-5, 2e-5, False, [-3e-5, -2e-5, -1e-5, 0.0, 1e-5, 2e-5]),
        (2.0, 2.0, False, [2.0]),
        (0.0, 5e-324, False, [0.0]),
    ],
)
def test_ticks_are_round_values_inside_the_axis(low: float, high: float, whole: bool, values: list[float]) -> None:
    assert round_values(low, high, whole=whole) == pytest.approx(values)


@pytest.mark.parametrize("seed", range(50))
def test_an_axis_has_two_to_seven_ticks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, length = rng.normal(), 10.0 ** rng.uniform(-6.0, 8.0)
    values = round_values(low, low + length, whole=False)
    assert 2 <= len(values) <= 7
    assert low - 1e-6 * length <= values[0] <= values[-1] <= low + length * (1.0 + 1e-6)
