"""One round in one process: what crosses, what stays, and what is refused."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from goldfc import LocalPort, Model, OneShot, Site, Summary, Task, errors, fuse, label, run_round, summarize
from goldfc._types import FloatArray
from goldfc.errors import BadMessage, BadRows, BadSettings, GoldError
from goldfc.learning.judge import KINDS
from goldfc.learning.paper.competition import Learning
from goldfc.message.levels import with_fewest
from goldfc.message.message import Message
from goldfc.message.task import rows_each
from goldfc.randomness import generator, site_generator
from goldfc.server.gold import Gold
from goldfc.site.gold import GoldSite
from goldfc.site.label import predict
from sentences import refused

NAMES = ("ward-b", "ward-a", "ward-c")
WAYS: dict[str, OneShot] = {
    "any kind": OneShot(),
    **{kind: OneShot(kinds=(kind,)) for kind in KINDS},
    "as given": OneShot(Task(scaling="given")),
    "suppressed": OneShot(Task(level=with_fewest(5), rows_each=rows_each(5))),
}
all_ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def rows_of(name: str) -> FloatArray:
    rng = generator(1, name)
    return rng.normal(size=(90, 3)) * 0.2 + 4.0 * np.eye(3)[rng.integers(3, size=90)]


def sites(names: tuple[str, ...] = NAMES) -> list[Site]:
    return [Site(name, rows_of(name)) for name in names]


def gold_sites() -> list[GoldSite]:
    return [GoldSite(name, rows_of(name), site_generator(0, name)) for name in NAMES]


@cache
def summary_of(name: str, way: OneShot) -> Summary:
    return summarize(rows_of(name), name, way.task)[0]


def summaries(way: OneShot) -> list[Summary]:
    return [summary_of(name, way) for name in NAMES]


def server() -> np.random.Generator:
    return generator(0, "server")


def assert_same_model(one: Model, other: Model) -> None:
    first, second = one.to_message(), other.to_message()
    assert first.facts == second.facts
    assert set(first.arrays) == set(second.arrays)
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(array, second.arrays[name], err_msg=name)


@all_ways
def test_a_round_labels_every_row_at_its_site_by_the_model_alone(way: OneShot) -> None:
    members = sites()
    result = run_round(LocalPort(members), 3, way, server())
    for site in members:
        assert len(site.labels) == len(site.certainty) == len(site.micro_clusters) == 90
        labels, certainty = label(rows_of(site.name), result.model)
        np.testing.assert_array_equal(site.labels, labels)
        np.testing.assert_array_equal(site.certainty, certainty)
        assert ((site.certainty >= 0.0) & (site.certainty <= 1.0)).all()
        # Clusters are far apart, so that rows are where their micro-clusters are.
        np.testing.assert_array_equal(site.labels, result.model.labels_of(site.name)[site.micro_clusters])
    assert result.model.sites == ("ward-a", "ward-b", "ward-c")


def test_in_the_papers_way_a_row_has_the_label_of_its_micro_cluster() -> None:
    members = gold_sites()
    model = run_round(LocalPort(members), 3, Gold(Learning()), server()).model
    for site in members:
        own = model.own(site.name)
        np.testing.assert_array_equal(site.labels, model.micro_labels[own][site.micro_clusters])
        np.testing.assert_array_equal(site.certainty, model.micro_certainty[own][site.micro_clusters])
    assert_same_model(Model.from_message(model.to_message()), model)


def test_every_site_answers_exactly_once_and_sends_only_centroids_the_papers_way() -> None:
    port = LocalPort(gold_sites())
    result = run_round(port, 3, Gold(Learning()), server())
    upward = [crossing for crossing in port.traffic.crossings if crossing.upward]
    assert sorted(crossing.site for crossing in upward) == sorted(NAMES)
    assert {crossing.kind for crossing in upward} == {"summary"}
    for summary in result.summaries:
        message = summary.to_message()
        assert set(message.arrays) == {"centroids"}
        assert set(message.facts) == {"site"}


def test_every_site_answers_exactly_once_and_sends_mass_shape_and_moments() -> None:
    port = LocalPort(sites())
    result = run_round(port, 3, OneShot(), server())
    upward = [crossing for crossing in port.traffic.crossings if crossing.upward]
    assert sorted(crossing.site for crossing in upward) == sorted(NAMES)
    assert {crossing.kind for crossing in upward} == {"summary"}
    for summary in result.summaries:
        message = summary.to_message()
        assert set(message.arrays) == {"centroids", "mass", "shape", "mean", "squares"}
        assert set(message.facts) == {"site", "count"}
        assert message.arrays["shape"].shape == (3, 3)
        assert message.arrays["mass"].sum() == 90
        assert len(message.arrays["mass"]) == len(message.arrays["centroids"]) <= 90 // 5


def test_centroid_mass_and_shape_are_those_of_the_rows() -> None:
    for name in NAMES:
        rows = rows_of(name)
        summary, labels = summarize(rows, name, Task())
        np.testing.assert_array_equal(summary.mass, np.bincount(labels))
        assert len(summary.centroids) == 90 // 5
        for number, centroid in enumerate(summary.centroids):
            np.testing.assert_allclose(centroid, rows[labels == number].mean(axis=0), rtol=1e-9)
        apart = rows - summary.centroids[labels]
        np.testing.assert_allclose(summary.shape, sum(np.outer(row, row) for row in apart) / 90, atol=1e-12)  # type: ignore[arg-type]


@all_ways
def test_the_ledger_counts_what_the_messages_weigh(way: OneShot) -> None:
    port = LocalPort(sites())
    result = run_round(port, 3, way, server())
    numbers = sum(array.nbytes for summary in result.summaries for array in summary.to_message().arrays.values())
    assert port.traffic.bytes_up == sum(summary.to_message().nbytes for summary in result.summaries)
    assert numbers < port.traffic.bytes_up < numbers + 100 * len(NAMES)
    down = way.task.to_message().nbytes + result.model.to_message().nbytes
    assert port.traffic.bytes_down == len(NAMES) * down
    assert port.traffic.downlinks == 2 * len(NAMES)


@pytest.mark.parametrize("kind", ["shared", "own", "the paper's"])
def test_the_model_has_no_place_for_micro_centroids_where_clusters_are_told_by_their_means(kind: str) -> None:
    way = WAYS.get(kind, OneShot(Task(mass=False, shape=False, scaling="given")))
    sent = summaries(way)
    model = fuse(sent, 3, way, server()) if kind in WAYS else fuse(sent, 3, Gold(Learning()), server())
    message = model.to_message()
    arrays = {"centroids", "cluster_mass", "covariance", "reach", "micro_labels", "micro_certainty", "levels"}
    assert set(message.arrays) - {"mean", "squares"} == arrays
    assert message.arrays["centroids"].shape == (3, 3)
    assert message.arrays["covariance"].shape == {"shared": (3, 3), "own": (3, 3, 3)}.get(kind, (3,))
    assert message.arrays["reach"].shape == message.arrays["cluster_mass"].shape == (3,)
    known = {tuple(centroid) for summary in sent for centroid in summary.centroids}
    assert not known & {tuple(centroid) for centroid in message.arrays["centroids"]}


@pytest.mark.parametrize("n_clusters", [3, None])
@all_ways
def test_order_of_arrival_changes_nothing(way: OneShot, n_clusters: int | None) -> None:
    first = fuse(summaries(way), n_clusters, way, server())
    assert (first.proposal is None) == (n_clusters is not None)
    assert_same_model(first, fuse(summaries(way)[::-1], n_clusters, way, server()))
    assert_same_model(first, fuse([summaries(way)[number] for number in (1, 2, 0)], n_clusters, way, server()))


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_arrival_changes_nothing_where_micro_clusters_are_merged(kind: Any) -> None:
    way = OneShot(at_most=20, kinds=(kind,), mass_cap=0.9)
    sent = summaries(way)
    sent[1] = summarize(rows_of("ward-a")[:40], "ward-a", way.task)[0]
    assert_same_model(fuse(sent, 3, way, server()), fuse(sent[::-1], 3, way, server()))


@all_ways
def test_number_of_threads_changes_nothing(way: OneShot) -> None:
    alone, together = (run_round(LocalPort(sites(), n_jobs=n), None, way, server()).model for n in (1, 3))
    assert_same_model(alone, together)


def test_number_of_threads_of_the_libraries_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 60)) + 9.0 * rng.integers(3, size=(1500, 1))
    way = OneShot(Task(most=300), starts=2)
    models = []
    for limit in (1, 2, 4):
        with threadpool_limits(limits=limit):
            summary = summarize(rows, "a", way.task)[0]
            models.append(fuse([summary], 3, way, server()))
    assert len(models[0].micro_labels) == 300
    for model in models[1:]:
        assert_same_model(models[0], model)


@all_ways
def test_a_sites_summary_does_not_hang_on_who_else_takes_part(way: OneShot) -> None:
    few = LocalPort(sites(("ward-a", "ward-c")))
    many = LocalPort(sites())
    task = way.task.to_message()
    one, other = few.ask(task)["ward-c"], many.ask(task)["ward-c"]
    assert set(one.arrays) == set(other.arrays)
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name])


@pytest.mark.parametrize("n_clusters", [3, None])
@all_ways
def test_messages_survive_the_way_there_and_back(way: OneShot, n_clusters: int | None) -> None:
    for task in (Task(), Task(30, 4, True, False, "ranges", with_fewest(3)), way.task):
        assert Task.from_message(task.to_message()) == task
    summary = summaries(way)[0]
    back_up = Summary.from_message(summary.to_message())
    for part in ("centroids", "mass", "shape"):
        np.testing.assert_array_equal(getattr(back_up, part), getattr(summary, part))
    assert back_up.to_message().digest == summary.to_message().digest
    model = fuse(summaries(way), n_clusters, way, server())
    back = Model.from_message(model.to_message())
    assert_same_model(back, model)
    assert (back.sites, back.micro_counts, back.levels.n_clusters, back.proposal) == (
        model.sites,
        model.micro_counts,
        model.levels.n_clusters,
        model.proposal,
    )
    assert (back.kind, back.why, back.agreement) == (model.kind, model.why, model.agreement)


@all_ways
def test_what_came_in_messages_is_read_only_and_can_be_fused_as_it_is(way: OneShot) -> None:
    sent = summaries(way)
    received = [Summary.from_message(summary.to_message()) for summary in sent]
    before = [summary.to_message().digest for summary in received]
    assert not received[0].centroids.flags.writeable
    assert_same_model(fuse(received, None, way, server()), fuse(sent, None, way, server()))
    assert [summary.to_message().digest for summary in received] == before


def test_rows_that_may_not_be_written_are_summarised_and_stay_as_they_are() -> None:
    for way in (OneShot(), WAYS["suppressed"]):
        rows = rows_of("ward-a")
        rows.flags.writeable = False
        summary, labels = summarize(rows, "a", way.task)
        same, again = summarize(rows_of("ward-a"), "a", way.task)
        assert summary.to_message().digest == same.to_message().digest
        np.testing.assert_array_equal(labels, again)
        np.testing.assert_array_equal(rows, rows_of("ward-a"))


def test_the_two_sides_share_no_memory() -> None:
    centroids = np.ones((2, 2))
    message = Summary("a", centroids).to_message()
    centroids[0, 0] = 5.0
    assert message.arrays["centroids"][0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        message.arrays["centroids"][0, 0] = 2.0


def test_some_sites_can_be_asked_alone() -> None:
    port = LocalPort(sites())
    assert set(port.ask(Task().to_message(), ["ward-c"])) == {"ward-c"}
    assert port.traffic.uplinks == 1


def test_progress_is_told_for_every_site() -> None:
    done: list[str] = []
    LocalPort(sites(), on_answer=done.append).ask(Task().to_message())
    assert sorted(done) == sorted(NAMES)


@all_ways
def test_predict_takes_rows_that_took_no_part(way: OneShot) -> None:
    model = fuse(summaries(way), 3, way, server())
    np.testing.assert_array_equal(predict(model, model.centroids), np.arange(3))
    with refused(BadRows, "rows-of-other-columns", "from 3 features", "(1, 2)"):
        predict(model, np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        (np.zeros((0, 2)), "rows-form (0, 2)"),
        (np.zeros(3), "rows-form (3,)"),
        (np.array([[1.0, np.nan]]), "rows-not-finite Site 'a': row 0, column 1 holds nan"),
        (np.array([[1.0], [np.inf]]), "rows-not-finite Site 'a': row 1, column 0 holds inf"),
        (np.array([[1e200]]), "rows-not-finite rescale values beyond 1e"),
    ],
)
def test_rows_that_cannot_be_learned_from_are_refused_by_place(rows: FloatArray, what: str) -> None:
    with refused(BadRows, what):
        summarize(rows, "a", Task())


def test_summaries_that_do_not_fit_together_are_refused() -> None:
    rng, way = generator(0), OneShot()
    with refused(BadMessage, "no-summaries"):
        fuse([], 2, way, rng)
    with refused(BadMessage, "two-summaries", "'a'"):
        fuse([Summary("a", np.ones((2, 2)))] * 2, 2, way, rng)
    with refused(BadMessage, "features-differ", "'b' sent 3", "'a' sent 2"):
        fuse([Summary("a", np.ones((2, 2))), Summary("b", np.ones((2, 3)))], 2, way, rng)
    for bad in (0, -1, 2.5, "3"):
        with refused(BadSettings, "n-clusters"):
            fuse([Summary("a", np.ones((2, 2)))], bad, way, rng)  # type: ignore[arg-type]
        with refused(BadSettings, "n-clusters"):
            run_round(LocalPort(sites()), bad, way, rng)  # type: ignore[arg-type]
        with refused(BadSettings, "n-clusters"):
            run_round(LocalPort(gold_sites()), bad, Gold(Learning()), rng)  # type: ignore[arg-type]


def test_bad_summaries_are_refused() -> None:
    with refused(BadMessage, "centroids-form"):
        Summary("a", np.ones((0, 2)))
    for value in (np.nan, np.inf, 1e200):
        with refused(BadMessage, "centroids-not-finite"):
            Summary("a", np.array([[value]]))
    with refused(BadMessage, "not-numbers"):
        Summary("a", np.array([["x"]]))


@all_ways
def test_whole_number_centroids_are_taken_as_the_numbers_they_are(way: OneShot) -> None:
    centroids = np.random.default_rng(0).integers(9, size=(60, 2))
    whole = fuse([Summary("a", centroids)], 2, way, generator(0))  # type: ignore[arg-type]
    real = fuse([Summary("a", centroids.astype(float))], 2, way, generator(0))
    np.testing.assert_array_equal(whole.centroids, real.centroids)
    assert whole.levels.n_clusters == real.levels.n_clusters


def test_messages_that_lack_something_are_refused() -> None:
    with refused(BadMessage, "field-missing", "'centroids'"):
        Summary.from_message(Message("summary", facts={"site": "a"}))
    with refused(BadMessage, "message-invalid"):
        Task.from_message(Message("summarize", facts={"speed": 3}))
    with refused(BadMessage, "message-invalid"):
        Task.from_message(Message("summarize", facts={**Task().to_message().facts, "speed": 3}))
    sent = summaries(OneShot(Task(scaling="given")))
    for way in (OneShot(Task(scaling="given")), OneShot(Task(scaling="given"), kinds=("linked",))):
        model = fuse(sent, 3, way, server()).to_message()
        for kept in (model.arrays, model.facts):
            for missing in set(kept) - {"asked"}:  # that may be left out
                arrays = {name: array for name, array in model.arrays.items() if name != missing}
                facts = {name: fact for name, fact in model.facts.items() if name != missing}
                with pytest.raises(BadMessage, match=missing) as caught:
                    Model.from_message(Message("model", arrays, facts))
                assert caught.value.code in {"field-missing", "group-incomplete"}
    with refused(BadMessage, "site-unknown", "'ward-x'"):
        LocalPort(sites()).ask(Task().to_message(), ["ward-x"])


def test_models_that_do_not_fit_together_are_refused_in_one_process_too() -> None:
    model = fuse(summaries(OneShot()), 3, WAYS["shared"], server())
    for changes, code in (
        ({"kind": "round"}, "model-kind"),
        ({"kind": "own"}, "model-covariance-form"),
        ({"kind": "linked"}, "model-linked"),
        ({"mass": np.array([1.0, 2.0, 0.0])}, "model-mass"),
        ({"agreement": 1.5}, "model-agreement"),
        ({"reach": np.array([1.0, 2.0])}, "model-reach-form"),
    ):
        with refused(BadMessage, code):
            Model.from_message(replace(model, **changes).to_message())


def test_messages_out_of_turn_are_refused() -> None:
    site, gold = sites()[0], gold_sites()[0]
    for one in (site, gold):
        with refused(BadMessage, "not-summarised"):
            _ = one.micro_clusters
    with refused(BadMessage, "no-model-yet"):
        _ = site.labels
    with refused(BadMessage, "no-model-yet"):
        _ = site.certainty
    with refused(BadMessage, "kind-unanswered", "'gossip'"):
        site.answer(Message("gossip"))
    with refused(BadMessage, "kind-unexpected", "'model'", "got 'summarize'"):
        Model.from_message(Task().to_message())
    with refused(BadMessage, "kind-unanswered", "'summarize'"):
        gold.answer(Task().to_message())


def test_who_took_no_part_can_label_by_a_model_but_has_no_micro_clusters_in_it() -> None:
    model = fuse(summaries(OneShot()), 3, OneShot(), server())
    stranger = Site("ward-x", rows_of("ward-x"))
    stranger.answer(model.to_message())
    np.testing.assert_array_equal(stranger.labels, label(rows_of("ward-x"), model)[0])
    with refused(BadMessage, "no-part-in-model", "'ward-x'", "ward-a, ward-b, ward-c"):
        model.labels_of("ward-x")
    with refused(BadMessage, "no-part-in-model", "'ward-x'"):
        GoldSite("ward-x", rows_of("ward-x"), generator(0)).answer(model.to_message())


def test_a_second_model_replaces_the_labels_of_the_first() -> None:
    site = sites()[0]
    for n_clusters in (3, 2):
        model = fuse(summaries(OneShot()), n_clusters, OneShot(), server())
        site.answer(model.to_message())
        np.testing.assert_array_equal(site.labels, label(rows_of(site.name), model)[0])
        np.testing.assert_array_equal(site.certainty, label(rows_of(site.name), model)[1])


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"most": 0}, "whole-number got 0"),
        ({"most": 2.5}, "whole-number got 2.5"),
        ({"most": None}, "whole-number got None"),
        ({"scaling": "own"}, "scaling got 'own'"),
        ({"rows_each": 0}, "whole-number got 0"),
        ({"rows_each": None}, "whole-number got None"),
    ],
)
def test_tasks_that_nobody_could_do_are_refused(settings: dict[str, Any], code: str) -> None:
    with refused(BadSettings, code):
        Task(**settings)
    facts = {**Task().to_message().facts, **settings}
    with refused(BadSettings, code):
        Task.from_message(Message("summarize", facts=facts))


@pytest.mark.parametrize("n_rows", [1, 2, 4, 5, 9, 40, 300])
@pytest.mark.parametrize(("most", "rows_each"), [(1000, 1), (1000, 5), (7, 1), (7, 5), (1, 1), (100, 1000)])
def test_a_site_has_as_many_micro_clusters_as_the_task_allows(n_rows: int, most: int, rows_each: int) -> None:
    task = Task(most, rows_each)
    rows = np.random.default_rng(n_rows).normal(size=(n_rows, 2))
    summary, labels = summarize(rows, "a", task)
    assert len(summary.centroids) == task.limit(n_rows) == max(1, min(most, n_rows // rows_each))
    np.testing.assert_array_equal(summary.mass, np.bincount(labels))
    for number, centroid in enumerate(summary.centroids):
        np.testing.assert_allclose(centroid, rows[labels == number].mean(axis=0), atol=1e-12)


def test_where_there_is_a_smallest_number_of_rows_there_are_more_rows_for_each() -> None:
    assert [rows_each(smallest) for smallest in (1, 2, 3, 5, 10, 100)] == [5, 5, 5, 8, 16, 160]


def test_names_are_unique_in_a_federation() -> None:
    with refused(BadMessage, "sites-same-name"):
        LocalPort(sites(("a", "a")))


def test_every_error_is_a_gold_error() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), GoldError), name
