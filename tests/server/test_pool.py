"""What the server makes of all summaries together: pooled, withheld parts filled, merged where they are too many."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score as ari

from goldfc import LocalPort, Model, OneShot, Site, Summary, fuse, run_round, summarize
from goldfc._types import FloatArray, IntArray
from goldfc.learning.micro_clusters import MOST_FEATURES_FOR_CORRELATIONS, Layout, MicroClusters
from goldfc.message.columns import Column, Terms
from goldfc.message.density import is_far
from goldfc.message.levels import with_fewest
from goldfc.message.task import Part, Task
from goldfc.randomness import generator
from goldfc.server import one_shot as server_module
from goldfc.server.one_shot import MOST_PROTOTYPES, merge_many, observations_of, spread_in
from goldfc.server.one_shot import pool as pool_of
from goldfc.site.label import predict
from strategies import blobs, micro_clusters, same_partition, seeds

Withheld = Sequence[Literal["mass", "shape"]]
NAMES = ("east", "north", "west")
ROWS = dict(zip(NAMES, np.split(blobs(3, 300, 3, seed=0)[0], 3), strict=True))


def summary_of(name: str, *withhold: Part) -> Summary:
    return summarize(ROWS[name], name, Task(), withhold=withhold)[0]


def pool(summaries: Sequence[Summary], *, by_mass: bool = True) -> MicroClusters:
    return pool_of(summaries, summaries[0].layout, by_mass=by_mass)


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


def test_who_withholds_the_shape_has_the_others_correlations() -> None:
    first, second, silent = summary_of("east"), summary_of("north"), summary_of("west", "shape")
    assert first.shape is not None
    assert second.shape is not None
    assert silent.mass is not None
    micro = pool([first, second, silent])
    told = 100 * first.shape + 100 * second.shape
    variances = np.diagonal(micro.scatter)
    # Its variances follow from its moments, its correlations are the others'.
    own = summary_of("west").shape
    assert own is not None
    np.testing.assert_allclose(variances, np.diagonal(told + 100 * own), rtol=1e-9)
    np.testing.assert_allclose(correlations_of(micro.scatter), correlations_of(told))
    nothing = pool([summary_of(name, "shape") for name in NAMES])
    np.testing.assert_allclose(nothing.scatter, np.diag(np.diagonal(pool([summary_of(n) for n in NAMES]).scatter)))
    bare = [replace(summary_of(name, "shape"), moments=None) for name in NAMES]
    np.testing.assert_array_equal(pool(bare).scatter, np.zeros((3, 3)))
    some = pool([first, second, bare[2]])
    np.testing.assert_allclose(some.scatter, told * 300 / 200)


def correlations_of(scatter: FloatArray) -> FloatArray:
    deviation = np.sqrt(np.diagonal(scatter))
    return np.asarray(scatter / np.outer(deviation, deviation))


def test_a_shape_without_masses_counts_as_many_rows_as_its_micro_clusters_stand_for() -> None:
    known, silent = summary_of("east"), summary_of("north", "mass")
    assert known.mass is not None
    assert known.shape is not None
    assert silent.shape is not None
    micro = pool([known, silent])
    rows_of_silent = known.mass.mean() * len(silent.centroids)
    np.testing.assert_allclose(micro.scatter, 100 * known.shape + rows_of_silent * silent.shape)


def test_a_micro_cluster_stands_for_more_where_all_are_noisy() -> None:
    exact = [summary_of(name) for name in NAMES]
    noisy = [replace(one, error=np.ones(3)) for one in exact]
    assert observations_of(noisy) > observations_of([*noisy[:2], exact[2]]) == observations_of(exact)


def test_masses_count_for_nothing_where_the_fusion_does_not_ask_for_them() -> None:
    micro = pool([summary_of(name) for name in NAMES], by_mass=False)
    np.testing.assert_array_equal(micro.mass, np.ones(len(micro.centroids)))


def test_order_of_features_and_of_micro_clusters_is_kept() -> None:
    parts = [summary_of("east"), summary_of("north", "mass", "shape"), summary_of("west", "mass")]
    np.testing.assert_array_equal(pool(parts).centroids, np.vstack([part.centroids for part in parts]))


# --- withholding -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("withheld", [(), ("mass",), ("shape",), ("mass", "shape"), ("shape", "mass")])
def test_what_a_site_withholds_is_not_in_its_message(withheld: Withheld) -> None:
    message = summary_of("east", *withheld).to_message()
    assert set(message.arrays) == {"centroids", "mass", "shape", "mean", "squares"} - set(withheld)
    np.testing.assert_array_equal(message.arrays["centroids"], summary_of("east").centroids)


@pytest.mark.parametrize("withheld", [{"east": ("mass",)}, {"east": ("mass", "shape"), "west": ("shape",)}])
def test_sites_that_withhold_and_sites_that_do_not_can_take_part_together(withheld: dict[str, Withheld]) -> None:
    sites = [Site(name, rows, withhold=withheld.get(name, ())) for name, rows in ROWS.items()]
    result = run_round(LocalPort(sites), None, OneShot(), generator(0, "server"))
    for summary in result.summaries:
        assert (summary.mass is None) == ("mass" in withheld.get(summary.site, ()))
        assert (summary.shape is None) == ("shape" in withheld.get(summary.site, ()))
    labels = np.concatenate([site.labels for site in sites])
    assert same_partition(labels, blobs(3, 300, 3, seed=0)[1])


def test_nobody_tells_more_than_the_task_asks_for() -> None:
    way = OneShot(Task(mass=False, shape=False, scaling="given"))
    summary = summarize(ROWS["east"], "east", way.task)[0]
    assert summary.mass is None
    assert summary.shape is None
    assert summary.moments is None
    assert set(summary.to_message().arrays) == {"centroids"}


def test_with_many_features_a_whole_round_goes_by_variances() -> None:
    n_features = MOST_FEATURES_FOR_CORRELATIONS + 1
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 3
    X = rng.normal(size=(120, n_features)) + 8.0 * (np.arange(n_features) % 3 == truth[:, None])
    sites = [Site(name, X[start::2]) for start, name in enumerate(("a", "b"))]
    result = run_round(LocalPort(sites), None, OneShot(), generator(0, "server"))
    assert [summary.shape.shape for summary in result.summaries if summary.shape is not None] == [(n_features,)] * 2
    assert result.model.covariance.shape == (n_features,)
    assert len(result.model.centroids) == 3
    for start, site in enumerate(sites):
        assert same_partition(site.labels, truth[start::2])


# --- sites that tell more, and sites that tell less ---


def told(n_rows: int, name: str, seed: int, n_features: int = 6) -> tuple[Summary, FloatArray, IntArray]:
    X, truth = blobs(3, n_rows, n_features, seed=0)
    rng = np.random.default_rng(seed)
    centers = np.array([X[truth == cluster].mean(axis=0) for cluster in range(3)])
    rows = centers[truth] + rng.normal(size=X.shape)
    return summarize(rows, name, Task(level=with_fewest(5), rows_each=8))[0], rows, truth


def test_sites_that_tell_a_covariance_moments_or_one_mean_are_fused_to_a_sensible_model() -> None:
    large, rows, truth = told(600, "large", 1)
    middle, others, theirs = told(45, "middle", 2)
    small, _, _ = told(11, "small", 3)
    assert large.shape is not None
    assert (middle.shape, small.shape, small.moments) == (None, None, None)
    assert middle.moments is not None
    assert len(middle.centroids) > len(small.centroids) == 1
    model = fuse([large, middle, small], 3, OneShot(Task(level=with_fewest(5))), generator(0))
    assert ari(truth, predict(model, rows)) > 0.95
    assert ari(theirs, predict(model, others)) > 0.95
    assert is_far(model, rows).mean() < 0.02
    alone = fuse([large], 3, OneShot(Task(level=with_fewest(5))), generator(0))
    size = np.trace(model.covariance) if model.covariance.ndim == 2 else model.covariance.sum()
    usual = np.trace(alone.covariance) if alone.covariance.ndim == 2 else alone.covariance.sum()
    assert 0.5 < size / usual < 2.0
    assert same_partition(predict(model, rows), predict(alone, rows))


@pytest.mark.parametrize("n_rows", [200, 1000])
def test_the_spread_that_follows_from_moments_is_that_of_the_rows(n_rows: int) -> None:
    X, _ = blobs(3, n_rows, 3, seed=1)
    plain = summarize(X, "a", Task())[0]
    assert plain.shape is not None
    exact = spread_in(replace(plain, shape=None))
    assert exact is not None
    np.testing.assert_allclose(exact, np.diagonal(plain.shape), rtol=1e-6)
    level = summarize(X, "a", Task(level=with_fewest(5), rows_each=8))[0]
    assert level.shape is not None
    rounded = spread_in(replace(level, shape=None))
    assert rounded is not None
    # Against the spread of all rows, in steps of which everything is rounded.
    assert (np.abs(rounded - np.diagonal(level.shape)) <= 0.05 * X.var(axis=0)).all()
    assert (rounded >= 0.0).all()
    assert spread_in(replace(level, shape=None, moments=None)) is None
    assert spread_in(replace(level, shape=None, mass=None)) is None


# --- mixed tables ----------------------------------------------------------------------------------------------------

MIXED = Terms(
    columns=(
        Column(name="ward", kind="category", categories=("a", "b", "c")),
        Column(name="x"),
        Column(name="ill", kind="boolean"),
    )
)


def mixed_rows(n_rows: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Two groups, by all columns a little."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n_rows)
    ward = np.where(rng.random(n_rows) < 0.8, truth, 2)
    ill = rng.random(n_rows) < np.array([0.1, 0.9])[truth]
    return np.column_stack([np.eye(3)[ward], 3.0 * truth + rng.normal(size=n_rows), ill]), truth


def test_of_mixed_tables_numbers_and_shares_are_pooled_apart() -> None:
    rows, _ = mixed_rows(300, 0)
    parts = [summarize(rows[n::3], f"{n}", Task(), terms=MIXED)[0] for n in range(3)]
    micro = pool(parts)
    assert micro.centroids.shape == (len(micro.mass), 1)
    assert micro.levels == (3, 2)
    np.testing.assert_allclose(micro.usual_shares[:3], rows[:, :3].mean(axis=0))
    np.testing.assert_allclose(micro.usual_shares[3:], [rows[:, 4].mean(), 1.0 - rows[:, 4].mean()])
    np.testing.assert_allclose(all_scatter(micro), [[((rows[:, 3] - rows[:, 3].mean()) ** 2).sum()]])


def test_shares_sum_to_one_whatever_was_told() -> None:
    layout = MIXED.layout(5)
    odd = np.array([[0.33, 0.33, 0.33, 7.0, 1.01], [-0.01, 0.5, 0.6, 7.0, -0.01], [1e90, 0.0, 1e90, 7.0, 1e90]])
    shares = layout.shares_of(odd)
    assert ((shares >= 0.0) & (shares <= 1.0)).all()
    np.testing.assert_allclose(shares[:, :3].sum(axis=1), 1.0)
    np.testing.assert_allclose(shares[:, 3:].sum(axis=1), 1.0)
    np.testing.assert_array_equal(layout.numbers_of(odd), [[7.0]] * 3)
    assert Layout(np.empty(0, dtype=np.int64), (np.arange(3),)).numbers_of(odd).shape == (3, 1)


@pytest.mark.parametrize("columns", [MIXED.columns, MIXED.columns[::2]], ids=["mixed", "without numbers"])
def test_tables_with_categories_are_clustered_with_or_without_numbers(columns: tuple[Column, ...]) -> None:
    terms = Terms(columns=columns)
    rows, truth = mixed_rows(900, 1)
    rows = rows if terms.n_features == 5 else rows[:, [0, 1, 2, 4]]
    sites = [Site(f"{n}", rows[n::3], terms=terms) for n in range(3)]
    result = run_round(LocalPort(sites), 2, OneShot(), generator(0, "server"))
    labels = np.empty(len(rows), dtype=np.int64)
    for start, site in enumerate(sites):
        labels[start::3] = site.labels
    assert ari(truth, labels) > 0.6
    assert result.model.kind != "linked"
    assert all((summary.shape is None) == (terms.n_features == 4) for summary in result.summaries)
    back = Model.from_message(result.model.to_message())
    np.testing.assert_array_equal(predict(back, rows), labels)


# --- merging ---------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(micro=micro_clusters(), seed=seeds, diagonal=st.booleans(), levels=st.integers(0, 4))
def test_merging_keeps_all_mass_all_scatter_and_all_shares(
    micro: MicroClusters, seed: int, diagonal: bool, levels: int
) -> None:
    rng = np.random.default_rng(seed)
    scatter = np.diagonal(micro.scatter) if diagonal else micro.scatter
    shares = rng.dirichlet(np.ones(levels), len(micro.mass)) if levels else np.empty((len(micro.mass), 0))
    micro = MicroClusters(micro.centroids, micro.mass, scatter, shares, (levels,) if levels else ())
    raw = rng.integers(6, size=len(micro.centroids)).tolist()
    seen = list(dict.fromkeys(raw))
    group = np.array([seen.index(number) for number in raw])
    merged = micro.merged(group)
    assert len(merged.centroids) == group.max() + 1
    assert merged.total_mass == micro.total_mass
    size = np.abs(all_scatter(micro)).max()
    np.testing.assert_allclose(all_scatter(merged), all_scatter(micro), rtol=1e-6, atol=1e-9 * size + 1e-18)
    np.testing.assert_allclose(merged.usual_shares, micro.usual_shares, rtol=1e-9)
    for number in range(group.max() + 1):
        own = group == number
        expected = np.average(micro.centroids[own], axis=0, weights=micro.mass[own])
        np.testing.assert_allclose(merged.centroids[number], expected, rtol=1e-9, atol=1e-12)


def test_merging_nothing_changes_nothing() -> None:
    micro = pool([summary_of(name) for name in NAMES])
    same = micro.merged(np.arange(len(micro.centroids)))
    np.testing.assert_array_equal(same.centroids, micro.centroids)
    np.testing.assert_array_equal(same.scatter, micro.scatter)


@pytest.mark.parametrize("at_most", [1, 7, 30, 59, 60, 5000])
def test_no_more_are_fused_than_may_be(at_most: int) -> None:
    micro = pool([summary_of(name) for name in NAMES])
    assert len(micro.mass) == 60
    group = merge_many(micro, at_most, generator(0))
    np.testing.assert_array_equal(np.unique(group), np.arange(min(at_most, 60)))
    if at_most >= 60:
        np.testing.assert_array_equal(group, np.arange(60))


def test_units_do_not_change_who_is_merged() -> None:
    micro = pool([summary_of(name) for name in NAMES])
    units = np.array([1e9, 1.0, 1e-6])
    moved = MicroClusters(micro.centroids * units, micro.mass, micro.scatter * np.outer(units, units))
    np.testing.assert_array_equal(merge_many(moved, 20, generator(0)), merge_many(micro, 20, generator(0)))


@pytest.mark.parametrize("n_clusters", [3, None])
def test_more_micro_clusters_than_the_server_takes_are_all_labelled(n_clusters: int | None) -> None:
    summaries = [summary_of(name) for name in NAMES]
    total = sum(len(summary.centroids) for summary in summaries)
    model = fuse(summaries, n_clusters, OneShot(at_most=30, kinds=("shared",)), generator(0, "server"))
    usual = fuse(summaries, n_clusters, OneShot(kinds=("shared",)), generator(0, "server"))
    assert total > 30
    for each in (model.micro_labels, model.micro_certainty, model.levels.labels):
        assert len(each) == total
    assert same_partition(model.micro_labels, usual.micro_labels)
    matching = ((model.centroids[:, None] - usual.centroids) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_allclose(model.centroids, usual.centroids[matching], rtol=1e-9)
    np.testing.assert_allclose(model.mass, usual.mass[matching])
    np.testing.assert_allclose(model.covariance, usual.covariance, rtol=1e-6, atol=1e-9)
    X = np.vstack(list(ROWS.values()))
    assert same_partition(predict(model, X), predict(usual, X))
    assert is_far(model, X).mean() <= 0.01


def test_many_sites_with_few_rows_each_are_merged_and_labelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MERGED", 150)
    X, truth = blobs(4, 4000, 3, seed=5)
    sites = [Site(f"{n:03}", X[n::200]) for n in range(200)]
    model = run_round(LocalPort(sites), None, OneShot(at_most=500), generator(0, "server")).model
    assert len(model.micro_labels) == 800
    assert len(model.centroids) == 4
    labels = np.empty(len(X), dtype=np.int64)
    for start, site in enumerate(sites):
        labels[start::200] = site.labels
    assert ari(truth, labels) > 0.99
    assert Model.from_message(model.to_message()).micro_counts == (4,) * 200


def test_a_site_may_send_any_number_of_micro_clusters() -> None:
    lone = Summary("tiny", np.zeros((1, 3)))
    model = fuse([summary_of("east"), lone], 3, OneShot(at_most=10), generator(0))
    assert model.micro_counts[1] == 1
    assert len(model.labels_of("tiny")) == 1


@pytest.mark.parametrize("seed", range(8))
def test_where_a_site_counts_less_than_its_rows_certainty_is_still_one_at_most(seed: int) -> None:
    X, _ = blobs(3, 600, 2, seed=seed)
    parts = np.split(X, [70, 170, 300])
    way = OneShot(mass_cap=1.0)
    sent = [summarize(part, f"{n}", way.task)[0] for n, part in enumerate(parts)]
    model = fuse(sent, 3, way, generator(0))
    assert model.mass.sum() == pytest.approx(70 + 3 * 100)
    assert model.agreement == pytest.approx(1.0, abs=0.1)
    assert Model.from_message(model.to_message()).micro_certainty.max() <= 1.0


# --- fewer than asked for --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_clusters", [4, 50])
def test_fewer_clusters_than_asked_for_are_an_answer_and_a_warning(n_clusters: int) -> None:
    centers = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    summaries = [Summary(name, centers.copy()) for name in NAMES]
    with pytest.warns(ConvergenceWarning, match=f"Only 3 clusters were found, and {n_clusters} were asked for"):
        model = fuse(summaries, n_clusters, OneShot(), generator(0))
    assert len(model.centroids) == 3
    assert Model.from_message(model.to_message()).micro_labels.max() == 2


def test_where_all_is_the_same_there_is_one_cluster() -> None:
    summaries = [Summary(name, np.ones((4, 2))) for name in NAMES]
    with pytest.warns(ConvergenceWarning, match="Only 1 cluster was found, and 2 were asked for"):
        model = fuse(summaries, 2, OneShot(), generator(0))
    assert len(model.centroids) == 1
    proposed = fuse(summaries, None, OneShot(), generator(0))
    assert proposed.proposal is not None
    assert proposed.proposal.best == len(proposed.centroids) == 1
    assert Model.from_message(proposed.to_message()).kind == "shared"


def test_a_single_cluster_has_no_gaps_around_it() -> None:
    model = fuse([summary_of(name) for name in NAMES], 1, OneShot(), generator(0))
    assert model.kind == "shared"
    assert "gaps" not in model.why


# --- prototypes ------------------------------------------------------------------------------------------------------


@cache
def moon_summaries(n_sites: int, n_rows: int, way: OneShot) -> tuple[list[Summary], FloatArray]:
    X = make_moons(n_rows, noise=0.03, random_state=0)[0]
    sites = [summarize(X[n::n_sites], f"{n:02}", way.task)[0] for n in range(n_sites)]
    return sites, X


def test_few_micro_clusters_are_prototypes_themselves() -> None:
    way = OneShot(Task(level=with_fewest(5), rows_each=8))
    summaries, _ = moon_summaries(4, 1200, way)
    model = fuse(summaries, 2, way, generator(0))
    assert model.kind == "linked"
    assert model.prototypes is not None
    sent = np.vstack([summary.centroids for summary in summaries])
    mass = np.concatenate([summary.mass for summary in summaries if summary.mass is not None])
    order = np.lexsort([mass, *sent.T, model.micro_labels])
    np.testing.assert_allclose(model.prototypes.points, sent[order], rtol=1e-12)
    np.testing.assert_array_equal(model.prototypes.labels, model.micro_labels[order])
    np.testing.assert_array_equal(model.prototypes.mass, mass[order])
    assert model.prototypes.mass.min() >= 5


def test_prototypes_do_not_tell_whose_they_are() -> None:
    way = OneShot(Task(level=with_fewest(5), rows_each=8))
    summaries, _ = moon_summaries(4, 1200, way)
    renamed = [replace(one, site=name) for one, name in zip(summaries, "dbca", strict=True)]
    one, other = (fuse(sent, 2, way, generator(0)).prototypes for sent in (summaries, renamed))
    assert one is not None
    assert other is not None
    both = [np.column_stack([those.points, those.mass]) for those in (one, other)]
    flip = not np.allclose(one.points[0], other.points[0])
    order = np.argsort(-other.labels if flip else other.labels, kind="stable")
    np.testing.assert_allclose(both[0], both[1][order], rtol=1e-12)


@pytest.mark.parametrize("units", [(1.0, 1.0), (1e9, 1e-6)])
def test_of_many_there_are_a_thousand_prototypes_at_most_and_none_of_few_rows(units: tuple[float, float]) -> None:
    way = OneShot(Task(level=with_fewest(5), rows_each=8))
    summaries, X = moon_summaries(12, 12_000, way)
    rng = np.random.default_rng(0)
    moved = [
        Summary(
            one.site,
            (one.centroids + 0.01 * rng.normal(size=one.centroids.shape)) * units,  # so that no two are the same
            one.mass,
            None if one.shape is None else one.shape * np.outer(units, units),
            level=with_fewest(5),
        )
        for one in summaries
    ]
    model = fuse(moved, 2, way, generator(0))
    total = sum(model.micro_counts)
    assert total > MOST_PROTOTYPES
    assert model.kind == "linked"
    assert model.prototypes is not None
    assert 0.9 * MOST_PROTOTYPES < len(model.prototypes.points) <= MOST_PROTOTYPES
    assert model.prototypes.mass.min() >= 5
    assert model.prototypes.mass.sum() == pytest.approx(model.mass.sum())
    # They lie where rows are, in all units: no prototype is a mean of points far from each other.
    nearest = ((model.prototypes.points[:, None] / units - X) ** 2).sum(axis=2).min(axis=1)
    assert np.sqrt(np.quantile(nearest, 0.98)) < 0.1
    assert np.sqrt(nearest.max()) < 0.2  # half a step of the smallest micro-cluster, in both features
    assert Model.from_message(model.to_message()).prototypes is not None


def test_many_clusters_share_the_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MOST_PROTOTYPES", 40)
    rng = np.random.default_rng(0)
    ring = np.linspace(0.0, 2.0 * np.pi, 200)
    lonely = 100.0 * np.column_stack([np.arange(1, 21), np.arange(1, 21) % 2])
    points = np.vstack([10.0 * np.column_stack([np.cos(ring), np.sin(ring)]), lonely])
    summary = Summary("a", points + 0.01 * rng.normal(size=points.shape))
    made = server_module.Made(
        summary.layout, summary.centroids, np.ones(220), np.concatenate([np.zeros(200, dtype=int), np.arange(1, 21)])
    )
    prototypes = server_module.prototypes_of(made, np.ones(2))
    assert len(prototypes.points) <= 40
    np.testing.assert_array_equal(np.unique(prototypes.labels), np.arange(21))
    assert prototypes.mass.sum() == 220
