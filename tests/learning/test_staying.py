"""Clusters that go on from one model to the next, and what becomes of them."""

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.micro_clusters import MicroClusters, standardized
from goldfc.learning.mixture import clusters_of, one_hot
from goldfc.learning.staying import Evidence, Past, begin, best_step, carry_on

CENTRES = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0], [12.0, 12.0]])


def heaps(*centres: FloatArray, each: int = 40, seed: int = 0) -> MicroClusters:
    """Micro-clusters around some centres, one after another."""
    rng = np.random.default_rng(seed)
    points = np.vstack([rng.normal(centre, 1.0, size=(each, 2)) for centre in centres])
    return MicroClusters(points, np.ones(len(points)), 0.1 * len(points) * np.eye(2))


def past_of(micro: MicroClusters, labels: IntArray, means: FloatArray | None = None) -> Past:
    """Clusters that were before where they are now, or where it is said."""
    clusters = clusters_of(micro, one_hot(labels))
    return Past(labels, clusters.means if means is None else means, clusters.mass, own=False, by_gaps=False)


def partition_of(labels: IntArray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}


FOUR = standardized(heaps(*CENTRES))[0]
TRUE = np.repeat(np.arange(4), 40)


def test_clusters_go_on_to_the_last_micro_cluster_where_nothing_has_happened() -> None:
    np.testing.assert_array_equal(carry_on(FOUR, past_of(FOUR, TRUE), own=False), TRUE)


def test_a_cluster_of_two_heaps_splits_and_the_others_stay() -> None:
    together = np.minimum(TRUE, 2)
    assert partition_of(carry_on(FOUR, past_of(FOUR, together), own=False)) == partition_of(TRUE)


def test_two_that_have_come_together_become_one() -> None:
    micro = standardized(heaps(CENTRES[0], CENTRES[1], CENTRES[2], CENTRES[2]))[0]
    before = clusters_of(FOUR, one_hot(TRUE)).means
    found = carry_on(micro, past_of(micro, TRUE, before), own=False)
    assert partition_of(found) == partition_of(np.minimum(TRUE, 2))


def test_clusters_that_were_always_near_to_each_other_are_not_given_up() -> None:
    micro = standardized(heaps(CENTRES[0], CENTRES[1], CENTRES[2], CENTRES[2]))[0]
    np.testing.assert_array_equal(carry_on(micro, past_of(micro, TRUE), own=False), TRUE)


def test_a_cluster_of_which_only_a_stray_is_left_is_given_up() -> None:
    micro = standardized(heaps(*CENTRES[:3]))[0]
    stray = np.repeat(np.arange(3), 40)
    stray[0] = 3
    means = np.vstack([clusters_of(micro, one_hot(stray)).means[:3], [[9.0, 9.0]]])
    past = Past(stray, means, np.ones(4), own=False, by_gaps=False)
    assert partition_of(carry_on(micro, past, own=False)) == partition_of(np.repeat(np.arange(3), 40))


def test_there_are_always_two_clusters() -> None:
    micro = standardized(heaps(CENTRES[0], CENTRES[0]))[0]
    labels = np.repeat([0, 1], 40)
    apart = past_of(micro, labels, np.array([[0.0, 0.0], [30.0, 0.0]]))
    assert len(set(carry_on(micro, apart, own=False).tolist())) == 2


def test_every_step_has_more_evidence_than_the_one_before() -> None:
    state, said = begin(FOUR, past_of(FOUR, np.minimum(TRUE, 1))), []
    while (step := best_step(FOUR, state, own=False)) is not None:
        one, other = (Evidence.of(FOUR, at.labels, own=False) for at in (step, state))
        said.append(one.less(other, FOUR)[0])
        state = step
    assert len(said) == 2
    assert min(said) > 0.0
