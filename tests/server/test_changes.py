"""Clusters that last from round to round, and what is said to have changed."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_moons

from goldfc import Model, OneShot, OneShotClustering, Summary, fuse, label, summarize
from goldfc._types import FloatArray
from goldfc.errors import BadMessage
from goldfc.message.columns import UNNAMED, Column, Terms
from goldfc.message.descent import LARGEST_ID, MOST_ANCESTORS, Change, Descent, Move
from goldfc.message.wire import decode, encode
from goldfc.randomness import generator
from goldfc.report.changes import change_sentences
from goldfc.server.changes import in_order_of_ids
from goldfc.server.gold import Gold
from goldfc.server.one_shot import freshness
from sentences import refused

FUSION = OneShot(starts=4)
# Far enough apart that everybody sees the same clusters.
CENTRES = {"a": (0.0, 0.0), "b": (20.0, 0.0), "c": (0.0, 20.0), "d": (20.0, 20.0)}
SITES = ("north", "south", "west")
SPREAD = 1.0


def rows_of(centres: Mapping[str, tuple[float, float]], seed: int, each: int = 60) -> FloatArray:
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(centre, SPREAD, size=(each, 2)) for centre in centres.values()])


@cache
def sent(centres: tuple[tuple[str, tuple[float, float]], ...], seed: int, number: int = 0) -> tuple[Summary, ...]:
    """What all sites send in a round."""
    terms = Terms(federation="wards", round=number, columns=(Column(name="age"), Column(name="pressure")))
    rows = (rows_of(dict(centres), 10 * seed + place) for place in range(len(SITES)))
    return tuple(summarize(own, site, FUSION.task, terms=terms)[0] for site, own in zip(SITES, rows, strict=True))


def summaries(centres: Mapping[str, tuple[float, float]] = CENTRES, seed: int = 0, number: int = 0) -> list[Summary]:
    return list(sent(tuple(centres.items()), seed, number))


def model_of(given: list[Summary], after: Model | None = None, n_clusters: int | None = None) -> Model:
    return fuse(given, n_clusters, FUSION, generator(0, "server"), after=after)


FIRST = model_of(summaries())


def id_at(model: Model, point: tuple[float, float]) -> int:
    return int(label(np.array([point]), model)[0][0])


def changes(model: Model) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    assert model.descent is not None
    return [(one.what, one.before, one.now) for one in model.descent.changes]


# --- ids


def test_a_first_model_has_the_ids_0_1_and_so_on_and_says_nothing_of_them() -> None:
    assert FIRST.ids.tolist() == [0, 1, 2, 3]
    assert FIRST.after is None
    assert "ids" not in FIRST.to_message().arrays


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_quiet_round_changes_no_id_and_says_so(seed: int) -> None:
    model = model_of(summaries(seed=seed), FIRST)
    assert all(id_at(model, centre) == id_at(FIRST, centre) for centre in CENTRES.values())
    assert change_sentences(model) == ("Nothing changed.",)
    assert model.after == FIRST.digest


def test_the_same_summaries_again_change_nothing_at_all() -> None:
    model = model_of(summaries(), FIRST)
    assert np.array_equal(model.centroids, FIRST.centroids)
    assert change_sentences(model) == ("Nothing changed.",)


def test_the_order_of_sites_does_not_matter() -> None:
    given = summaries(seed=1)
    assert model_of(given[::-1], FIRST).digest == model_of(given, FIRST).digest


def test_a_model_with_a_lineage_survives_the_way_to_the_sites() -> None:
    model = model_of(summaries({**CENTRES, "e": (40.0, 40.0)}, seed=1), FIRST)
    found = Model.from_message(decode(encode(model.to_message())))
    assert found.digest == model.digest
    assert found.ids.tolist() == model.ids.tolist()
    assert found.descent is not None
    assert model.descent is not None
    assert found.descent.changes == model.descent.changes


def test_any_fusion_gets_lasting_ids() -> None:
    given = [replace(one, mass=None, shape=None, moments=None, terms=UNNAMED) for one in summaries()]
    first = fuse(given, 4, Gold(fewer=True), generator(0, "server"))
    again = fuse(given, 4, Gold(fewer=True), generator(0, "server"), after=first)
    rows = rows_of(CENTRES, 0)
    assert np.array_equal(label(rows, first)[0], label(rows, again)[0])


@pytest.mark.parametrize("each", [60, 89, 90])
def test_clusters_are_found_anew_when_there_are_half_as_many_rows_again_as_when_they_last_were(each: int) -> None:
    rows = (rows_of(CENTRES, place, each) for place in range(len(SITES)))
    terms = summaries()[0].terms
    given = [summarize(own, site, FUSION.task, terms=terms)[0] for site, own in zip(SITES, rows, strict=True)]
    model = model_of(given, FIRST)
    anew = each >= 90
    assert (model.why == model_of(given).why) == anew
    assert model.found == (model if anew else FIRST).mass.sum()


# --- what is planted is named


def test_a_cluster_that_emerges_gets_an_id_that_no_cluster_ever_had() -> None:
    model = model_of(summaries({**CENTRES, "e": (40.0, 40.0)}, seed=1), FIRST)
    assert changes(model) == [("emerged", (), (4,))]
    assert id_at(model, (40.0, 40.0)) == 4
    assert change_sentences(model) == ("Cluster 4 emerged: 20 % of all rows, at north, south and west.",)


def test_a_cluster_that_disappears_takes_its_id_along() -> None:
    gone = id_at(FIRST, CENTRES["b"])
    without = {name: centre for name, centre in CENTRES.items() if name != "b"}
    model = model_of(summaries(without, seed=1), FIRST)
    assert changes(model) == [("disappeared", (gone,), ())]
    again = model_of(summaries(seed=2), model)
    assert changes(again) == [("emerged", (), (4,))]
    assert id_at(again, CENTRES["b"]) == 4


def test_the_largest_part_of_a_cluster_that_splits_keeps_the_id() -> None:
    split = {**CENTRES, "a": (-3.5, 0.0), "a2": (-4.0, 0.5), "e": (3.5, 0.0)}
    was = id_at(FIRST, CENTRES["a"])
    model = model_of(summaries(split, seed=1), FIRST)
    assert [one for one in changes(model) if one[0] == "split"] == [("split", (was,), (was, 4))]
    assert id_at(model, (-3.7, 0.2)) == was
    assert id_at(model, (3.5, 0.0)) == 4


def test_the_id_of_the_largest_goes_on_where_clusters_merge() -> None:
    apart = {**CENTRES, "e": (40.0, 40.0), "e2": (40.5, 40.0), "f": (47.0, 40.0)}
    before = model_of(summaries(apart, seed=1), FIRST)
    large, small = id_at(before, (40.0, 40.0)), id_at(before, (47.0, 40.0))
    assert large != small
    near = {**CENTRES, "e": (42.5, 40.0), "e2": (43.0, 40.0), "f": (44.0, 40.0)}
    model = model_of(summaries(near, seed=2), before)
    assert changes(model) == [("merged", tuple(sorted([large, small])), (large,))]


def test_a_cluster_that_moves_says_which_columns_and_how_far() -> None:
    model = model_of(summaries({**CENTRES, "d": (21.5, 20.0)}, seed=1), FIRST)
    moved = id_at(FIRST, CENTRES["d"])
    assert changes(model) == [("moved", (moved,), (moved,))]
    assert change_sentences(model)[0].startswith(f"Cluster {moved} moved: age from ")


def test_a_cluster_that_grows_is_told_with_its_share() -> None:
    larger = {**CENTRES, "b2": CENTRES["b"], "b3": CENTRES["b"]}
    grown = id_at(FIRST, CENTRES["b"])
    sentences = change_sentences(model_of(summaries(larger, seed=1), FIRST))
    assert f"Cluster {grown} grew from 25 % of all rows to 50 %." in sentences


def test_sites_that_join_and_leave_are_named() -> None:
    first = model_of(summaries()[:2])
    model = model_of(summaries(seed=1)[1:], first)
    assert change_sentences(model)[:2] == ("west joined.", "north left.")


def test_no_id_is_ever_used_again() -> None:
    model, ever = FIRST, set(FIRST.ids.tolist())
    for number in range(1, 5):
        place = 40.0 + 20.0 * number
        model = model_of(summaries({**CENTRES, "e": (place, place)}, seed=number), model)
        assert id_at(model, (place, place)) not in ever
        ever |= set(model.ids.tolist())


# --- memory


def test_summaries_of_several_rounds_are_fused_after_a_model_only() -> None:
    mixed = [*summaries(number=1)[:2], *summaries(seed=1, number=2)[2:]]
    first = model_of(summaries(number=1))
    assert model_of(mixed, first).terms.round == 2
    with refused(BadMessage, "summaries-differ"):
        model_of(mixed)


def test_what_is_older_by_a_half_life_counts_half() -> None:
    mixed = [*summaries(number=1)[:1], *summaries(number=2)[1:2], *summaries(number=4)[2:]]
    assert freshness(mixed, 2.0) == [0.5**1.5, 0.5, 1.0]
    assert freshness(mixed, None) == [1.0, 1.0, 1.0]


# --- the number of rounds


def test_a_model_does_not_grow_with_the_number_of_rounds() -> None:
    model, given = FIRST, summaries()
    sizes = []
    for _ in range(MOST_ANCESTORS + 6):
        model = fuse(given, 4, OneShot(starts=1), generator(0, "server"), after=model)
        sizes.append(model.to_message().nbytes)
    assert model.descent is not None
    assert model.descent.generation == MOST_ANCESTORS + 6
    assert len(model.descent.ancestors) == MOST_ANCESTORS
    assert sizes[-1] == sizes[-3]


# --- strangers' models


def forged(**what: object) -> Model:
    model = model_of(summaries(seed=1), FIRST)
    assert model.descent is not None
    return replace(model, descent=replace(model.descent, **what))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ({"ids": np.array([0, 1, 1, 2])}, "model-ids"),
        ({"ids": np.array([1, 0, 2, 3])}, "model-ids"),
        ({"ids": np.array([0, 1, 2, 4])}, "model-ids"),
        ({"ids": np.array([0, 1, 2])}, "model-ids"),
        ({"ancestors": ("0" * 32, "0" * 32), "generation": 2}, "model-lineage"),
        ({"generation": 2}, "model-lineage"),
        ({"joined": ("north",), "left": ("north",)}, "model-lineage"),
        ({"changes": (Change(what="emerged", now=(3,)), Change(what="split", before=(4,)))}, "model-lineage"),
        ({"changes": (Change(what="emerged", now=(7,)),)}, "model-lineage"),
        ({"changes": (Change(what="moved", moves=(Move(feature=2, before=0.0, now=1.0),)),)}, "model-lineage"),
    ],
)
def test_a_forged_lineage_is_refused(what: dict[str, object], code: str) -> None:
    with refused(BadMessage, code):
        Model.from_message(forged(**what).to_message())


def test_a_model_of_another_federation_or_of_a_later_round_is_not_followed() -> None:
    elsewhere = replace(FIRST, terms=FIRST.terms.model_copy(update={"federation": "heart"}))
    with refused(BadMessage, "model-before-other"):
        model_of(summaries(), elsewhere)
    with refused(BadMessage, "model-before-later"):
        model_of(summaries(number=1), replace(FIRST, terms=FIRST.terms.model_copy(update={"round": 2})))


def test_ids_that_are_used_up_are_refused() -> None:
    first = replace(FIRST, descent=Descent(FIRST.ids, LARGEST_ID, 1, 1.0, ("0" * 32,), (), (), ()))
    with refused(BadMessage, "ids-used-up"):
        model_of(summaries({**CENTRES, "e": (40.0, 40.0)}, seed=1), first)


# --- the estimator


def test_fit_after_an_estimator_keeps_its_labels() -> None:
    rows, sites = rows_of(CENTRES, 0), np.repeat(["a", "b"], 120)
    one = OneShotClustering(random_state=0).fit(rows, groups=sites)
    fewer = OneShotClustering(random_state=1).fit(rows[60:], groups=sites[60:], after=one)
    assert np.array_equal(fewer.labels_, one.labels_[60:])
    assert fewer.cluster_ids_.tolist() == sorted(set(one.labels_[60:].tolist()))
    assert [change.what for change in fewer.changes_] == ["disappeared"]
    assert np.array_equal(fewer.cluster_ids_[fewer.predict_proba(rows[60:]).argmax(axis=1)], fewer.predict(rows[60:]))


# --- every kind of cluster


def moons(seed: int) -> FloatArray:
    return np.asarray(make_moons(900, noise=0.05, random_state=seed)[0])


def test_clusters_that_are_not_convex_keep_their_ids() -> None:
    one = OneShotClustering(random_state=0).fit(moons(0), groups=np.arange(900) % 3)
    two = OneShotClustering(random_state=1).fit(moons(1), groups=np.arange(900) % 3, after=one)
    assert (one.kind_, two.kind_) == ("linked", "linked")
    assert two.changes_ == ()
    assert np.mean(two.predict(moons(2)) == one.predict(moons(2))) > 0.99
    turned = in_order_of_ids(one.model_, np.array([1, 0]))
    assert np.array_equal(label(moons(2), Model.from_message(turned.to_message()))[0], 1 - one.predict(moons(2)))


def test_categories_tell_clusters_that_go_on() -> None:
    rng = np.random.default_rng(0)

    def rows(shares: tuple[float, float]) -> FloatArray:
        kind = np.repeat([0, 1], 300)
        answers = rng.random((600, 3)) < np.array([[0.05] * 3, [0.95] * 3])[kind]
        return np.column_stack([answers, rng.random(600) < np.array(shares)[kind]]).astype(np.float64)

    sites = np.arange(600) % 3
    one = OneShotClustering(2, categorical=range(4), random_state=0).fit(rows((0.1, 0.1)), groups=sites)
    two = OneShotClustering(2, categorical=range(4), random_state=0).fit(rows((0.1, 0.9)), groups=sites, after=one)
    moved = int(two.labels_[-1])
    assert [(change.what, change.now) for change in two.changes_] == [("moved", (moved,))]
    assert two.cluster_ids_.tolist() == [0, 1]
