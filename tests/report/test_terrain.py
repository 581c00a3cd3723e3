"""The map, its slider, and what is taken for what."""

from dataclasses import replace
from itertools import pairwise
from math import erfc, sqrt

import numpy as np
import pytest
from sklearn.datasets import make_moons

from goldfc import Model, OneShot, Summary, fuse
from goldfc._types import FloatArray
from goldfc.learning.judge import Kind
from goldfc.message.columns import Column, Terms
from goldfc.randomness import generator
from goldfc.report.confusion import MOST_CLUSTERS, confusion
from goldfc.report.profiles import Profiles
from goldfc.report.stops import AT_MOST_MORE, FEWER, Stop, stops
from goldfc.report.terrain import HEIGHT, WIDTH, Terrain

IDS = (0, 1, 2, 3)


def sent(points: FloatArray, spread: float = 1.0, *, mass: bool = True) -> list[Summary]:
    """Two sites with points in turn."""
    masses, shape = np.arange(5, 5 + len(points)), spread**2 * np.eye(points.shape[1])
    return [Summary(name, points[n::2], masses[n::2] if mass else None, shape) for n, name in enumerate("ab")]


def fused(summaries: list[Summary], n_clusters: int, kind: Kind = "shared") -> Model:
    return fuse(summaries, n_clusters, OneShot(kinds=(kind,), starts=2), generator(0))


def blobs(centres: FloatArray, each: int = 8) -> FloatArray:
    points = np.repeat(centres, each, axis=0)
    return np.asarray(points + np.random.default_rng(0).normal(size=points.shape))


CORNERS = np.array([[0.0, 0.0, 5.0], [40.0, 0.0, 5.0], [0.0, 60.0, 5.0], [46.0, 60.0, 5.0]])


@pytest.fixture(scope="module")
def summaries() -> list[Summary]:
    return sent(blobs(CORNERS))


@pytest.fixture(scope="module")
def model(summaries: list[Summary]) -> Model:
    return fused(summaries, 4)


def terrain_of(model: Model, summaries: list[Summary]) -> tuple[Terrain, Profiles]:
    profiles = Profiles.of(model, np.ones(len(model.centroids), dtype=np.int64))
    return Terrain.of(model, summaries, profiles), profiles


def stops_of(model: Model, summaries: list[Summary], *wanted: int) -> dict[int, Stop]:
    terrain, profiles = terrain_of(model, summaries)
    found = stops(model, terrain, profiles, range(len(model.centroids)), wanted)
    numbers = [stop.n_groups for stop in found]
    assert numbers == sorted(set(numbers))
    return {stop.n_groups: stop for stop in found}


def test_clusters_that_are_apart_are_apart_on_the_map_and_nothing_is_outside(
    model: Model, summaries: list[Summary]
) -> None:
    terrain, _ = terrain_of(model, summaries)
    places, labels = terrain.places, terrain.points.labels
    assert ((places >= 0.0) & (places <= [WIDTH, HEIGHT])).all()
    means = np.array([places[labels == cluster].mean(axis=0) for cluster in IDS])
    nearest = ((places[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == labels).all()


def test_units_do_not_matter_on_the_map(summaries: list[Summary], model: Model) -> None:
    feet_in_a_metre = np.array([3.28, 1.0, 1.0])

    def in_feet(one: Summary) -> Summary:
        assert one.shape is not None
        shape = one.shape * np.outer(feet_in_a_metre, feet_in_a_metre)
        return replace(one, centroids=one.centroids * feet_in_a_metre, shape=shape)

    feet = [in_feet(one) for one in summaries]
    places, others = terrain_of(model, summaries)[0].places, terrain_of(fused(feet, 4), feet)[0].places
    np.testing.assert_allclose(others, places, atol=0.5)


@pytest.mark.parametrize("mass", [True, False])
def test_areas_of_discs_are_as_masses_are(mass: bool) -> None:
    given = sent(blobs(CORNERS), mass=mass)
    terrain, _ = terrain_of(fused(given, 4), given)
    assert terrain.points.what == "micro-cluster"
    told = np.concatenate([np.ones(16) if one.mass is None else one.mass for one in given])
    np.testing.assert_allclose(terrain.radii**2 / terrain.radii.max() ** 2, told / told.max())
    assert ("rows" in terrain.points.titles[0]) == mass


def test_the_model_alone_shows_means_and_if_it_has_them_prototypes(model: Model, summaries: list[Summary]) -> None:
    assert terrain_of(model, [])[0].points.what == "mean"
    assert terrain_of(model, summaries[:1])[0].points.what == "mean"
    moons = sent(make_moons(80, noise=0.03, random_state=0)[0], 0.05)
    linked = fused(moons, 2, "linked")
    assert linked.prototypes is not None
    terrain, _ = terrain_of(linked, [])
    assert terrain.points.what == "prototype"
    assert len(terrain.places) == len(linked.prototypes.points)
    assert terrain_of(linked, moons)[0].points.what == "micro-cluster"


@pytest.mark.parametrize("n_clusters", [1, 2])
@pytest.mark.parametrize("features", [1, 2])
def test_few_clusters_and_few_columns_have_a_map(n_clusters: int, features: int) -> None:
    given = sent(blobs(CORNERS[1:3, :features]))
    model = fused(given, n_clusters)
    for told in (given, []):
        assert np.isfinite(terrain_of(model, told)[0].places).all()
        assert stops_of(model, told)[n_clusters].origin == "taken"


def test_fewer_are_the_clusters_merged_and_more_are_parts_of_them(model: Model, summaries: list[Summary]) -> None:
    found = stops_of(model, summaries)
    assert list(found) == list(range(2, 9))
    taken = found[4]
    assert taken.names == ("0", "1", "2", "3")
    np.testing.assert_array_equal(taken.groups, model.micro_labels)
    for one, other in pairwise(found.values()):
        if "level" not in {one.origin, other.origin}:  # levels are found independently of each other
            pairs = set(zip(other.groups.tolist(), one.groups.tolist(), strict=True))
            assert len(pairs) == other.n_groups
    assert found[2].origin == found[3].origin == "merged"
    assert all(name.count("+") == 1 for name in found[2].names)
    assert sorted(found[5].names) in [sorted({*"0123"} - {str(n)} | {f"{n}a", f"{n}b"}) for n in IDS]


def test_the_nearest_clusters_are_merged_first_and_what_they_differ_in_is_said(
    model: Model, summaries: list[Summary]
) -> None:
    west = [str(n) for n in np.argsort(model.centroids[:, 1])[:2]]
    sentence = stops_of(model, summaries)[3].sentence
    assert f"{min(west)} and {max(west)} become one; they differ in column 1 (" in sentence


def test_what_could_be_two_is_cut_first(summaries: list[Summary]) -> None:
    two = fused(summaries, 2)
    assert (two.centroids[:, 1].round(-1) == [0, 60]).all() or (two.centroids[:, 1].round(-1) == [60, 0]).all()
    found = stops_of(two, summaries)
    four = fused(summaries, 4)
    assert len(set(zip(found[4].groups.tolist(), four.micro_labels.tolist(), strict=True))) == 4
    assert "it differs in column 1 (" in found[3].sentence


def test_numbers_that_something_speaks_for_are_among_them_if_they_are_near(
    model: Model, summaries: list[Summary]
) -> None:
    assert 4 + AT_MOST_MORE in stops_of(model, summaries, 4 + AT_MOST_MORE)
    assert max(stops_of(model, summaries, 1000)) == 4 + AT_MOST_MORE
    many = fused(summaries, 14)
    assert min(stops_of(many, summaries, 2)) == len(many.centroids) - FEWER


def test_the_model_alone_has_fewer_clusters_only(model: Model) -> None:
    assert list(stops_of(model, [])) == [2, 3, 4]


def test_a_cluster_that_nothing_is_in_is_no_obstacle(model: Model, summaries: list[Summary]) -> None:
    empty = replace(
        model,
        centroids=np.vstack([model.centroids, model.centroids[:1]]),
        mass=np.append(model.mass, 1.0),
        reach=np.append(model.reach, 1.0),
    )
    assert stops_of(empty, summaries)[5].names == ("0", "1", "2", "3", "4")


def test_confusion_is_what_normal_distributions_overlap() -> None:
    model = replace(fused(sent(np.array([[0.0]] * 6 + [[2.0]] * 6)), 2), agreement=1.0, mass=np.ones(2))
    apart = abs(float(model.centroids[1, 0] - model.centroids[0, 0])) / sqrt(float(model.covariance.squeeze()))
    wrong = 0.5 * erfc(apart / 2.0 / sqrt(2.0))
    found = confusion(model)
    assert found is not None
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    # Each label counts by how likely it is: more is confused than by the likelier one, but less than twice as much.
    assert wrong - 0.03 < (found[0, 1] + found[1, 0]) / 2.0 < 2.0 * wrong * (1.0 - wrong) + 0.03


def test_what_is_far_apart_is_not_confused(model: Model) -> None:
    found = confusion(replace(model, agreement=1.0))
    assert found is not None
    np.testing.assert_allclose(found, np.eye(4), atol=1e-6)
    half = confusion(replace(model, agreement=0.5))
    assert half is not None
    np.testing.assert_allclose(half, 0.5 * np.eye(4) + 0.125, atol=1e-6)


def test_rows_of_categories_and_of_clusters_that_are_not_convex_are_drawn() -> None:
    columns = (Column(name="sick", kind="boolean"), Column(name="ward", kind="category", categories=("x", "y", "z")))
    shares = np.array([[0.0, 1.0, 0.0, 0.0]] * 6 + [[1.0, 0.0, 0.0, 1.0]] * 6)
    terms = Terms(columns=columns)
    given = [Summary(name, shares[n::2], np.full(6, 9), terms=terms) for n, name in enumerate(["a", "b"])]
    mixed = confusion(fused(given, 2))
    assert mixed is not None
    assert (np.diagonal(mixed) > 0.9).all()
    moons = confusion(fused(sent(make_moons(80, noise=0.03, random_state=0)[0], 0.05), 2, "linked"))
    assert moons is not None
    assert (np.diagonal(moons) > 0.6).all()


def test_there_is_nothing_to_confuse_in_one_cluster_and_no_table_of_very_many(summaries: list[Summary]) -> None:
    assert confusion(fused(summaries, 1)) is None
    many = blobs(np.arange(float(MOST_CLUSTERS + 1))[:, None] * 100.0, 2)
    assert confusion(fused(sent(many), MOST_CLUSTERS + 1)) is None
