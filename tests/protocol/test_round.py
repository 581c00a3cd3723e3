"""One round in one process: what crosses, what stays, and what is refused."""

from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from goldfc import (
    Client,
    Consensus,
    Learning,
    LocalPort,
    Membership,
    Model,
    Remc,
    Summary,
    Task,
    errors,
    fuse,
    label,
    run_round,
    summarize,
)
from goldfc._types import FloatArray
from goldfc.errors import BadMessage, BadRows, BadSettings, GoldError
from goldfc.protocol.label import predict
from goldfc.protocol.federation import generator
from goldfc.protocol.fusion import FUSIONS, Fusion, fusion_with
from goldfc.protocol.message import Message

NAMES = ("ward-b", "ward-a", "ward-c")
both_fusions = pytest.mark.parametrize("fusion", [Consensus(), Remc()], ids=["consensus", "remc"])


def rows_of(name: str) -> FloatArray:
    rng = generator(1, name)
    return rng.normal(size=(90, 3)) * 0.2 + 4.0 * np.eye(3)[rng.integers(3, size=90)]


def clients(names: tuple[str, ...] = NAMES) -> list[Client]:
    return [Client(name, rows_of(name), generator(0, "client", name)) for name in names]


def summaries(fusion: Fusion) -> list[Summary]:
    return [summarize(rows_of(name), name, fusion.task, generator(0, "client", name))[0] for name in NAMES]


def server() -> np.random.Generator:
    return generator(0, "server")


def assert_same_model(one: Model, other: Model) -> None:
    first, second = one.to_message(), other.to_message()
    assert first.facts == second.facts
    assert set(first.arrays) == set(second.arrays)
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(array, second.arrays[name], err_msg=name)


@both_fusions
def test_a_round_labels_every_row_at_its_client(fusion: Fusion) -> None:
    sites = clients()
    result = run_round(LocalPort(sites), 3, fusion, server())
    for site in sites:
        assert len(site.labels) == len(site.certainty) == 90
        own = [client == site.name for client in result.model.micro_clients]
        micro = site.membership.micro_clusters
        np.testing.assert_array_equal(site.labels, result.model.micro_labels[own][micro])
        np.testing.assert_array_equal(site.certainty, result.model.micro_certainty[own][micro])
        assert ((site.certainty >= 0.0) & (site.certainty <= 1.0)).all()
    assert result.model.clients == ("ward-a", "ward-b", "ward-c")


def test_every_client_answers_exactly_once_and_sends_only_centroids_the_papers_way() -> None:
    port = LocalPort(clients())
    result = run_round(port, 3, Remc(), server())
    upward = [crossing for crossing in port.ledger.crossings if crossing.upward]
    assert sorted(crossing.client for crossing in upward) == sorted(NAMES)
    assert {crossing.kind for crossing in upward} == {"summary"}
    for summary in result.summaries:
        message = summary.to_message()
        assert set(message.arrays) == {"centroids"}
        assert set(message.facts) == {"client"}


def test_every_client_answers_exactly_once_and_sends_mass_and_shape_for_the_consensus() -> None:
    port = LocalPort(clients())
    result = run_round(port, 3, Consensus(), server())
    upward = [crossing for crossing in port.ledger.crossings if crossing.upward]
    assert sorted(crossing.client for crossing in upward) == sorted(NAMES)
    assert {crossing.kind for crossing in upward} == {"summary"}
    for summary in result.summaries:
        message = summary.to_message()
        assert set(message.arrays) == {"centroids", "mass", "shape"}
        assert set(message.facts) == {"client"}
        assert message.arrays["shape"].shape == (3, 3)
        assert message.arrays["mass"].sum() == 90
        assert len(message.arrays["mass"]) == len(message.arrays["centroids"]) <= 90 // 5


def test_centroid_mass_and_shape_are_those_of_the_rows() -> None:
    for name in NAMES:
        rows = rows_of(name)
        summary, membership = summarize(rows, name, Consensus().task, generator(0, "client", name))
        labels = membership.micro_clusters
        np.testing.assert_array_equal(summary.mass, np.bincount(labels))
        for number, centroid in enumerate(summary.centroids):
            np.testing.assert_allclose(centroid, rows[labels == number].mean(axis=0), rtol=1e-9)
        apart = rows - summary.centroids[labels]
        np.testing.assert_allclose(summary.shape, sum(np.outer(row, row) for row in apart) / 90, atol=1e-12)  # type: ignore[arg-type]


@both_fusions
def test_the_ledger_counts_what_the_messages_weigh(fusion: Fusion) -> None:
    port = LocalPort(clients())
    result = run_round(port, 3, fusion, server())
    numbers = sum(array.nbytes for summary in result.summaries for array in summary.to_message().arrays.values())
    assert port.ledger.bytes_up == sum(summary.to_message().nbytes for summary in result.summaries)
    assert numbers < port.ledger.bytes_up < numbers + 100 * len(NAMES)
    down = fusion.task.to_message().nbytes + result.model.to_message().nbytes
    assert port.ledger.bytes_down == len(NAMES) * down
    assert port.ledger.downlinks == 2 * len(NAMES)


@both_fusions
def test_the_model_has_no_place_for_micro_centroids(fusion: Fusion) -> None:
    message = fuse(summaries(fusion), 3, fusion, server()).to_message()
    assert set(message.arrays) == {"centroids", "covariance", "reach", "micro_labels", "micro_certainty", "levels"}
    assert message.arrays["centroids"].shape == (3, 3)
    assert message.arrays["covariance"].shape == ((3,) if fusion.plain_distances else (3, 3))
    assert message.arrays["reach"].shape == (3,)
    sent = {tuple(centroid) for summary in summaries(fusion) for centroid in summary.centroids}
    assert not sent & {tuple(centroid) for centroid in message.arrays["centroids"]}


@pytest.mark.parametrize("n_clusters", [3, None])
@both_fusions
def test_order_of_arrival_changes_nothing(fusion: Fusion, n_clusters: int | None) -> None:
    first = fuse(summaries(fusion), n_clusters, fusion, server())
    assert (first.proposal is None) == (n_clusters is not None)
    assert_same_model(first, fuse(summaries(fusion)[::-1], n_clusters, fusion, server()))


@both_fusions
def test_number_of_threads_changes_nothing(fusion: Fusion) -> None:
    alone, together = (run_round(LocalPort(clients(), n_jobs=n), None, fusion, server()).model for n in (1, 3))
    assert_same_model(alone, together)


def test_number_of_threads_of_the_libraries_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 60)) + 9.0 * rng.integers(3, size=(1500, 1))
    fusion = Consensus(Learning(max_epochs=1), most=None, granularities=(1.0,), starts=2)
    models = []
    for limit in (1, 2, 4):
        with threadpool_limits(limits=limit):
            summary = summarize(rows, "a", fusion.task, generator(0, "client", "a"))[0]
            models.append(fuse([summary], 3, fusion, server()))
    assert len(models[0].micro_labels) > 100
    for model in models[1:]:
        assert_same_model(models[0], model)


@both_fusions
def test_a_clients_summary_does_not_hang_on_who_else_takes_part(fusion: Fusion) -> None:
    few = LocalPort(clients(("ward-a", "ward-c")))
    many = LocalPort(clients())
    task = fusion.task.to_message()
    one, other = few.ask(task)["ward-c"], many.ask(task)["ward-c"]
    assert set(one.arrays) == set(other.arrays)
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name])


@pytest.mark.parametrize("n_clusters", [3, None])
@both_fusions
def test_messages_survive_the_way_there_and_back(fusion: Fusion, n_clusters: int | None) -> None:
    for task in (Task(Learning(0.1, 0.4, 7)), Task(Learning(), 30, 4, True, False), fusion.task):
        assert Task.from_message(task.to_message()) == task
    summary = summaries(fusion)[0]
    back_up = Summary.from_message(summary.to_message())
    for part in ("centroids", "mass", "shape"):
        np.testing.assert_array_equal(getattr(back_up, part), getattr(summary, part))
    model = fuse(summaries(fusion), n_clusters, fusion, server())
    back = Model.from_message(model.to_message())
    assert_same_model(back, model)
    assert (back.clients, back.micro_counts, back.levels.n_clusters, back.proposal) == (
        model.clients,
        model.micro_counts,
        model.levels.n_clusters,
        model.proposal,
    )


def test_the_two_sides_share_no_memory() -> None:
    centroids = np.ones((2, 2))
    message = Summary("a", centroids).to_message()
    centroids[0, 0] = 5.0
    assert message.arrays["centroids"][0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        message.arrays["centroids"][0, 0] = 2.0


def test_some_clients_can_be_asked_alone() -> None:
    port = LocalPort(clients())
    assert set(port.ask(Task(Learning()).to_message(), ["ward-c"])) == {"ward-c"}
    assert port.ledger.uplinks == 1


def test_progress_is_told_for_every_client() -> None:
    done: list[str] = []
    LocalPort(clients(), on_answer=done.append).ask(Task(Learning()).to_message())
    assert sorted(done) == sorted(NAMES)


@both_fusions
def test_predict_takes_rows_that_took_no_part(fusion: Fusion) -> None:
    model = fuse(summaries(fusion), 3, fusion, server())
    np.testing.assert_array_equal(predict(model, model.centroids), np.arange(3))
    with pytest.raises(BadRows, match="made from 3 features, but the rows have 2"):
        predict(model, np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (np.zeros((0, 2)), "at least one row and one column"),
        (np.zeros(3), "at least one row and one column"),
        (np.array([[1.0, np.nan]]), "Client 'a': row 0, column 1 holds nan; fill or drop missing values"),
        (np.array([[1.0], [np.inf]]), "Client 'a': row 1, column 0 holds inf"),
        (np.array([[1e200]]), "rescale values beyond 1e"),
    ],
)
def test_rows_that_cannot_be_learned_from_are_refused_by_place(rows: FloatArray, sentence: str) -> None:
    with pytest.raises(BadRows, match=sentence):
        summarize(rows, "a", Task(Learning()), generator(0))


@both_fusions
def test_summaries_that_do_not_fit_together_are_refused(fusion: Fusion) -> None:
    rng = generator(0)
    with pytest.raises(BadMessage, match="at least one client"):
        fuse([], 2, fusion, rng)
    with pytest.raises(BadMessage, match="'a' sent two summaries"):
        fuse([Summary("a", np.ones((2, 2)))] * 2, 2, fusion, rng)
    with pytest.raises(BadMessage, match="'b' sent 3 features, client 'a' sent 2"):
        fuse([Summary("a", np.ones((2, 2))), Summary("b", np.ones((2, 3)))], 2, fusion, rng)
    for bad in (0, -1, 2.5, "3"):
        with pytest.raises(BadSettings, match=r"n_clusters must be a whole number from 1 on, or None to have it prop"):
            fuse([Summary("a", np.ones((2, 2)))], bad, fusion, rng)  # type: ignore[arg-type]
        with pytest.raises(BadSettings, match="n_clusters must be a whole number"):
            run_round(LocalPort(clients()), bad, fusion, rng)  # type: ignore[arg-type]


def test_bad_summaries_are_refused() -> None:
    with pytest.raises(BadMessage, match="must hold a table of centroids"):
        Summary("a", np.ones((0, 2)))
    for value in (np.nan, np.inf, 1e200):
        with pytest.raises(BadMessage, match="not finite numbers of at most 1e"):
            Summary("a", np.array([[value]]))
    with pytest.raises(BadMessage, match="not numbers"):
        Summary("a", np.array([["x"]]))


@both_fusions
def test_whole_number_centroids_are_taken_as_the_numbers_they_are(fusion: Fusion) -> None:
    centroids = np.random.default_rng(0).integers(9, size=(60, 2))
    whole = fuse([Summary("a", centroids)], 2, fusion, generator(0))  # type: ignore[arg-type]
    real = fuse([Summary("a", centroids.astype(float))], 2, fusion, generator(0))
    np.testing.assert_array_equal(whole.centroids, real.centroids)
    assert whole.levels.n_clusters == real.levels.n_clusters


def test_messages_that_lack_something_are_refused() -> None:
    with pytest.raises(BadMessage, match="not as it should be: 'centroids'"):
        Summary.from_message(Message("summary", facts={"client": "a"}))
    with pytest.raises(BadMessage, match="not as it should be"):
        Task.from_message(Message("summarize", facts={"speed": 3}))
    with pytest.raises(BadMessage, match="not as it should be"):
        Task.from_message(Message("summarize", facts={**Task(Learning()).to_message().facts, "speed": 3}))
    model = fuse(summaries(Consensus()), 3, Consensus(), server()).to_message()
    for kept in (model.arrays, model.facts):
        for missing in kept:
            arrays = {name: array for name, array in model.arrays.items() if name != missing}
            facts = {name: fact for name, fact in model.facts.items() if name != missing}
            with pytest.raises(BadMessage, match=f"not as it should be: '{missing}'"):
                Model.from_message(Message("model", arrays, facts))
    with pytest.raises(BadMessage, match="There is no client 'ward-x'"):
        LocalPort(clients()).ask(Task(Learning()).to_message(), ["ward-x"])


def test_messages_out_of_turn_are_refused() -> None:
    site = clients()[0]
    model = fuse(summaries(Consensus()), 3, Consensus(), server())
    with pytest.raises(BadMessage, match="has not summarised its rows yet"):
        site.answer(model.to_message())
    with pytest.raises(BadMessage, match="has not received a model yet"):
        _ = site.labels
    with pytest.raises(BadMessage, match="has not received a model yet"):
        _ = site.certainty
    with pytest.raises(BadMessage, match="no answer to a message of kind 'gossip'"):
        site.answer(Message("gossip"))
    with pytest.raises(BadMessage, match="Expected a message of kind 'model', got 'summarize'"):
        Model.from_message(Task(Learning()).to_message())


@both_fusions
def test_a_model_of_other_clients_is_refused(fusion: Fusion) -> None:
    model = fuse(summaries(fusion), 3, fusion, server())
    with pytest.raises(BadMessage, match="'ward-x' took no part in this model; its clients are ward-a, ward-b, ward-c"):
        label(Membership("ward-x", np.array([0]), model.digests[0]), model)
    with pytest.raises(BadMessage, match="made from another summary"):
        label(Membership("ward-a", np.array([0]), model.digests[1]), model)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"most": 0}, "most must be a whole number from 1 on, or None for no limit, got 0"),
        ({"most": 2.5}, "most must be a whole number from 1 on, or None for no limit, got 2.5"),
        ({"rows_each": 0}, "rows_each must be a whole number from 1 on, got 0"),
        ({"rows_each": None}, "rows_each must be a whole number from 1 on, got None"),
    ],
)
def test_tasks_that_nobody_could_do_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadSettings, match=sentence):
        Task(Learning(), **settings)
    facts = {**Task(Learning()).to_message().facts, **settings}
    with pytest.raises(BadSettings, match=sentence):
        Task.from_message(Message("summarize", facts=facts))


@pytest.mark.parametrize("n_rows", [1, 2, 4, 5, 9, 40, 300])
@pytest.mark.parametrize(("most", "rows_each"), [(None, 1), (None, 5), (7, 1), (7, 5), (1, 1), (100, 1000)])
def test_no_client_has_more_micro_clusters_than_the_task_allows(n_rows: int, most: int | None, rows_each: int) -> None:
    task = Task(Learning(max_epochs=2), most, rows_each, mass=True)
    rows = np.random.default_rng(n_rows).normal(size=(n_rows, 2))
    summary, membership = summarize(rows, "a", task, generator(0))
    assert 1 <= len(summary.centroids) <= max(1, min(most or n_rows, n_rows // rows_each))
    np.testing.assert_array_equal(summary.mass, np.bincount(membership.micro_clusters))
    for number, centroid in enumerate(summary.centroids):
        np.testing.assert_allclose(centroid, rows[membership.micro_clusters == number].mean(axis=0), atol=1e-12)


def test_fusions_go_by_name_and_take_the_settings_of_learning() -> None:
    assert set(FUSIONS) == {"consensus", "remc"}
    usual = {"learning_rate": 0.05, "initial_fraction": 0.5}
    assert fusion_with("consensus", **usual, max_epochs=None) == Consensus()
    assert fusion_with("remc", **usual, max_epochs=None) == Remc()
    assert fusion_with("remc", learning_rate=0.1, initial_fraction=0.2, max_epochs=3).learning == Learning(0.1, 0.2, 3)
    with pytest.raises(BadSettings, match="fusion must be one of consensus, remc, got 'average'"):
        fusion_with("average", **usual, max_epochs=None)


def test_names_are_unique_in_a_federation() -> None:
    with pytest.raises(BadMessage, match="same name"):
        LocalPort(clients(("a", "a")))


def test_every_error_is_a_gold_error() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), GoldError), name
