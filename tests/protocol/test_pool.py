"""What the server makes of all summaries together: pooled, withheld parts filled, merged where they are too many."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldfc import Client, Consensus, LocalPort, Remc, Summary, fuse, run_round, summarize
from goldfc._types import FloatArray
from goldfc.learning.mixture import MOST_FEATURES_FOR_CORRELATIONS, MicroClusters
from goldfc.protocol.client import Part
from goldfc.protocol.federation import generator
from goldfc.protocol.server import merge, pool, thin_by_client
from strategies import blobs, micro_clusters, same_partition, seeds

Withheld = Sequence[Literal["mass", "shape"]]
NAMES = ("east", "north", "west")
ROWS = dict(zip(NAMES, np.split(blobs(3, 300, 3, seed=0)[0], 3), strict=True))


def summary_of(name: str, *withhold: Part) -> Summary:
    return summarize(ROWS[name], name, Consensus().task, generator(0, "client", name), withhold=withhold)[0]


def all_scatter(micro: MicroClusters) -> FloatArray:
    """Of all rows around the mean of all."""
    centred = micro.centroids - np.average(micro.centroids, axis=0, weights=micro.mass)
    between = centred.T @ (centred * micro.mass[:, None])
    return micro.scatter + (np.diagonal(between) if micro.scatter.ndim == 1 else between)


# --- pool ------------------------------------------------------------------------------------------------------------


def test_pooled_mass_and_scatter_are_those_of_all_rows() -> None:
    micro = pool([summary_of(name) for name in NAMES])
    X = np.vstack(list(ROWS.values()))
    assert micro.total_mass == len(X)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(all_scatter(micro), centred.T @ centred, rtol=1e-9, atol=1e-9 * (centred**2).sum())


def test_who_withholds_masses_has_the_others_mean_mass() -> None:
    known, silent = summary_of("east"), summary_of("north", "mass")
    assert known.mass is not None
    micro = pool([known, silent])
    np.testing.assert_array_equal(micro.mass[: len(known.mass)], known.mass)
    np.testing.assert_allclose(micro.mass[len(known.mass) :], known.mass.mean())
    both = pool([summary_of("east", "mass"), silent])
    np.testing.assert_array_equal(both.mass, np.ones(len(both.centroids)))


def test_who_withholds_the_shape_has_the_others_mean_shape() -> None:
    first, second, silent = summary_of("east"), summary_of("north"), summary_of("west", "shape")
    assert first.shape is not None
    assert second.shape is not None
    assert silent.mass is not None
    micro = pool([first, second, silent])
    known = 100 * first.shape + 100 * second.shape
    np.testing.assert_allclose(micro.scatter, known * 300 / 200)
    nothing = pool([summary_of(name, "shape") for name in NAMES])
    np.testing.assert_array_equal(nothing.scatter, np.zeros((3, 3)))


def test_a_shape_without_masses_counts_as_many_rows_as_its_micro_clusters_stand_for() -> None:
    known, silent = summary_of("east"), summary_of("north", "mass")
    assert known.mass is not None
    assert known.shape is not None
    assert silent.shape is not None
    micro = pool([known, silent])
    rows_of_silent = known.mass.mean() * len(silent.centroids)
    np.testing.assert_allclose(micro.scatter, 100 * known.shape + rows_of_silent * silent.shape)


def test_masses_count_for_nothing_where_the_fusion_does_not_ask_for_them() -> None:
    micro = pool([summary_of(name) for name in NAMES], by_mass=False)
    np.testing.assert_array_equal(micro.mass, np.ones(len(micro.centroids)))


def test_order_of_features_and_of_micro_clusters_is_kept() -> None:
    parts = [summary_of("east"), summary_of("north", "mass", "shape"), summary_of("west", "mass")]
    np.testing.assert_array_equal(pool(parts).centroids, np.vstack([part.centroids for part in parts]))


# --- withholding -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("withheld", [(), ("mass",), ("shape",), ("mass", "shape"), ("shape", "mass")])
def test_what_a_client_withholds_is_not_in_its_message(withheld: Withheld) -> None:
    message = summary_of("east", *withheld).to_message()
    assert set(message.arrays) == {"centroids", "mass", "shape"} - set(withheld)
    np.testing.assert_array_equal(message.arrays["centroids"], summary_of("east").centroids)


@pytest.mark.parametrize("withheld", [{"east": ("mass",)}, {"east": ("mass", "shape"), "west": ("shape",)}])
def test_clients_that_withhold_and_clients_that_do_not_can_take_part_together(withheld: dict[str, Withheld]) -> None:
    sites = [
        Client(name, rows, generator(0, "client", name), withhold=withheld.get(name, ())) for name, rows in ROWS.items()
    ]
    result = run_round(LocalPort(sites), None, Consensus(), generator(0, "server"))
    for summary in result.summaries:
        assert (summary.mass is None) == ("mass" in withheld.get(summary.client, ()))
        assert (summary.shape is None) == ("shape" in withheld.get(summary.client, ()))
    labels = np.concatenate([site.labels for site in sites])
    assert same_partition(labels, blobs(3, 300, 3, seed=0)[1])


def test_nobody_tells_more_than_the_task_asks_for() -> None:
    summary = summarize(ROWS["east"], "east", Remc().task, generator(0))[0]
    assert summary.mass is None
    assert summary.shape is None


def test_with_many_features_a_whole_round_goes_by_variances() -> None:
    n_features = MOST_FEATURES_FOR_CORRELATIONS + 1
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 3
    X = rng.normal(size=(120, n_features)) + 8.0 * (np.arange(n_features) % 3 == truth[:, None])
    sites = [Client(name, X[start::2], generator(0, name)) for start, name in enumerate(("a", "b"))]
    result = run_round(LocalPort(sites), None, Consensus(), generator(0, "server"))
    assert [summary.shape.shape for summary in result.summaries if summary.shape is not None] == [(n_features,)] * 2
    assert result.model.covariance.shape == (n_features,)
    assert len(result.model.centroids) == 3
    for start, site in enumerate(sites):
        assert same_partition(site.labels, truth[start::2])


# --- merging ---------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(micro=micro_clusters(), seed=seeds, diagonal=st.booleans())
def test_merging_keeps_all_mass_and_all_scatter(micro: MicroClusters, seed: int, diagonal: bool) -> None:
    if diagonal:
        micro = MicroClusters(micro.centroids, micro.mass, np.diagonal(micro.scatter))
    raw = np.random.default_rng(seed).integers(6, size=len(micro.centroids)).tolist()
    seen = list(dict.fromkeys(raw))
    group = np.array([seen.index(number) for number in raw])
    merged = merge(micro, group)
    assert len(merged.centroids) == group.max() + 1
    assert merged.total_mass == micro.total_mass
    size = np.abs(all_scatter(micro)).max()
    np.testing.assert_allclose(all_scatter(merged), all_scatter(micro), rtol=1e-6, atol=1e-9 * size + 1e-18)
    for number in range(group.max() + 1):
        own = group == number
        expected = np.average(micro.centroids[own], axis=0, weights=micro.mass[own])
        np.testing.assert_allclose(merged.centroids[number], expected, rtol=1e-9, atol=1e-12)


def test_merging_nothing_changes_nothing() -> None:
    micro = pool([summary_of(name) for name in NAMES])
    same = merge(micro, np.arange(len(micro.centroids)))
    np.testing.assert_array_equal(same.centroids, micro.centroids)
    np.testing.assert_array_equal(same.scatter, micro.scatter)


@settings(max_examples=150, deadline=None)
@given(counts=st.lists(st.integers(1, 30), min_size=1, max_size=8), at_most=st.integers(1, 120), seed=seeds)
def test_thinning_leaves_as_many_as_it_may_one_per_client_at_least_and_mixes_no_clients(
    counts: list[int], at_most: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    total = sum(counts)
    micro = MicroClusters(rng.normal(size=(total, 2)), rng.integers(1, 9, size=total).astype(float), np.zeros((2, 2)))
    group = thin_by_client(micro, counts, at_most)
    assert len(group) == total
    left = len(np.unique(group))
    assert list(dict.fromkeys(group.tolist())) == list(range(left))
    client = np.repeat(np.arange(len(counts)), counts)
    assert len(np.unique(np.column_stack([client, group]), axis=0)) == left
    assert min(at_most, total) - len(counts) < left <= max(at_most, len(counts))


def test_without_a_bound_nothing_is_thinned() -> None:
    micro = pool([summary_of(name) for name in NAMES])
    counts = [len(summary_of(name).centroids) for name in NAMES]
    np.testing.assert_array_equal(thin_by_client(micro, counts, None), np.arange(sum(counts)))


@pytest.mark.parametrize("n_clusters", [3, None])
def test_more_micro_clusters_than_the_server_takes_are_all_labelled(n_clusters: int | None) -> None:
    summaries = [summary_of(name) for name in NAMES]
    total = sum(len(summary.centroids) for summary in summaries)
    fusion = Consensus(at_most=30)
    model = fuse(summaries, n_clusters, fusion, generator(0, "server"))
    usual = fuse(summaries, n_clusters, Consensus(), generator(0, "server"))
    assert total > 30
    for each in (model.micro_labels, model.micro_certainty, model.levels.labels):
        assert len(each) == total
    assert same_partition(model.micro_labels, usual.micro_labels)
    matching = ((model.centroids[:, None] - usual.centroids) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_allclose(model.centroids, usual.centroids[matching], rtol=1e-9)
    np.testing.assert_allclose(model.covariance, usual.covariance, rtol=1e-6, atol=1e-9)


def test_a_client_may_send_any_number_of_micro_clusters() -> None:
    lone = Summary("tiny", np.zeros((1, 3)))
    model = fuse([summary_of("east"), lone], 3, Consensus(at_most=10), generator(0))
    assert model.micro_counts[1] == 1
    assert len(model.labels_of("tiny")) == 1
