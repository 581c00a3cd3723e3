"""One round in one process: what crosses, what stays, and what is refused."""

import numpy as np
import pytest

from goldfc import Client, Learning, LocalPort, Membership, Model, Summary, errors, fuse, label, run_round, summarize
from goldfc._types import FloatArray
from goldfc.errors import BadMessage, BadRows, BadSettings, GoldError
from goldfc.model import predict
from goldfc.protocol.federation import generator
from goldfc.protocol.message import Message, Task

NAMES = ("ward-b", "ward-a", "ward-c")


def rows_of(name: str) -> FloatArray:
    rng = generator(1, name)
    return rng.normal(size=(90, 3)) * 0.2 + 4.0 * np.eye(3)[rng.integers(3, size=90)]


def clients(names: tuple[str, ...] = NAMES) -> list[Client]:
    return [Client(name, rows_of(name), generator(0, "client", name)) for name in names]


def summaries() -> list[Summary]:
    return [summarize(rows_of(name), name, Learning(), generator(0, "client", name))[0] for name in NAMES]


def test_a_round_labels_every_row_at_its_client() -> None:
    sites = clients()
    result = run_round(LocalPort(sites), 3, Learning(), generator(0, "server"))
    for site in sites:
        assert len(site.labels) == 90
        own = [client == site.name for client in result.model.micro_clients]
        np.testing.assert_array_equal(site.labels, result.model.micro_labels[own][site.membership.micro_clusters])
    assert result.model.clients == ("ward-a", "ward-b", "ward-c")


def test_every_client_answers_exactly_once_and_sends_only_centroids() -> None:
    port = LocalPort(clients())
    result = run_round(port, 3, Learning(), generator(0, "server"))
    upward = [crossing for crossing in port.ledger.crossings if crossing.upward]
    assert sorted(crossing.client for crossing in upward) == sorted(NAMES)
    assert {crossing.kind for crossing in upward} == {"summary"}
    for summary in result.summaries:
        message = summary.to_message()
        assert set(message.arrays) == {"centroids"}
        assert set(message.facts) == {"client"}


def test_the_ledger_counts_what_the_messages_weigh() -> None:
    port = LocalPort(clients())
    result = run_round(port, 3, Learning(), generator(0, "server"))
    centroids = sum(summary.centroids.nbytes for summary in result.summaries)
    assert port.ledger.bytes_up == sum(summary.to_message().nbytes for summary in result.summaries)
    assert centroids < port.ledger.bytes_up < centroids + 100 * len(NAMES)
    down = Task(Learning()).to_message().nbytes + result.model.to_message().nbytes
    assert port.ledger.bytes_down == len(NAMES) * down
    assert port.ledger.downlinks == 2 * len(NAMES)


def test_the_model_has_no_place_for_micro_centroids() -> None:
    message = fuse(summaries(), 3, Learning(), generator(0, "server")).to_message()
    assert set(message.arrays) == {"centroids", "micro_labels", "levels"}
    assert message.arrays["centroids"].shape == (3, 3)
    sent = {tuple(centroid) for summary in summaries() for centroid in summary.centroids}
    assert not sent & {tuple(centroid) for centroid in message.arrays["centroids"]}


def test_order_of_arrival_changes_nothing() -> None:
    first = fuse(summaries(), 3, Learning(), generator(0, "server"))
    second = fuse(summaries()[::-1], 3, Learning(), generator(0, "server"))
    np.testing.assert_array_equal(first.centroids, second.centroids)
    np.testing.assert_array_equal(first.micro_labels, second.micro_labels)
    assert first.clients == second.clients


def test_a_clients_summary_does_not_hang_on_who_else_takes_part() -> None:
    few = LocalPort(clients(("ward-a", "ward-c")))
    many = LocalPort(clients())
    task = Task(Learning()).to_message()
    np.testing.assert_array_equal(
        few.ask(task)["ward-c"].arrays["centroids"], many.ask(task)["ward-c"].arrays["centroids"]
    )


def test_messages_survive_the_way_there_and_back() -> None:
    task, summary = Task(Learning(0.1, 0.4, 7)), summaries()[0]
    model = fuse(summaries(), 3, Learning(), generator(0, "server"))
    assert Task.from_message(task.to_message()) == task
    np.testing.assert_array_equal(Summary.from_message(summary.to_message()).centroids, summary.centroids)
    back = Model.from_message(model.to_message())
    np.testing.assert_array_equal(back.levels.labels, model.levels.labels)
    assert (back.clients, back.micro_counts, back.levels.n_clusters) == (
        model.clients,
        model.micro_counts,
        model.levels.n_clusters,
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


def test_predict_takes_rows_that_took_no_part() -> None:
    model = fuse(summaries(), 3, Learning(), generator(0, "server"))
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
        summarize(rows, "a", Learning(), generator(0))


def test_summaries_that_do_not_fit_together_are_refused() -> None:
    rng = generator(0)
    with pytest.raises(BadMessage, match="at least one client"):
        fuse([], 2, Learning(), rng)
    with pytest.raises(BadMessage, match="'a' sent two summaries"):
        fuse([Summary("a", np.ones((2, 2)))] * 2, 2, Learning(), rng)
    with pytest.raises(BadMessage, match="'b' sent 3 features, client 'a' sent 2"):
        fuse([Summary("a", np.ones((2, 2))), Summary("b", np.ones((2, 3)))], 2, Learning(), rng)
    with pytest.raises(BadSettings, match="n_clusters must be a whole number from 1 on"):
        fuse([Summary("a", np.ones((2, 2)))], 0, Learning(), rng)


def test_bad_summaries_are_refused() -> None:
    with pytest.raises(BadMessage, match="must hold a table of centroids"):
        Summary("a", np.ones((0, 2)))
    for value in (np.nan, np.inf, 1e200):
        with pytest.raises(BadMessage, match="not finite numbers of at most 1e"):
            Summary("a", np.array([[value]]))
    with pytest.raises(BadMessage, match="not numbers"):
        Summary("a", np.array([["x"]]))


def test_whole_number_centroids_are_taken_as_the_numbers_they_are() -> None:
    centroids = np.random.default_rng(0).integers(9, size=(60, 2))
    whole = fuse([Summary("a", centroids)], 2, Learning(), generator(0))  # type: ignore[arg-type]
    real = fuse([Summary("a", centroids.astype(float))], 2, Learning(), generator(0))
    np.testing.assert_array_equal(whole.centroids, real.centroids)
    assert whole.levels.n_clusters == real.levels.n_clusters


def test_messages_that_lack_something_are_refused() -> None:
    with pytest.raises(BadMessage, match="not as it should be: 'centroids'"):
        Summary.from_message(Message("summary", facts={"client": "a"}))
    with pytest.raises(BadMessage, match="not as it should be"):
        Task.from_message(Message("summarize", facts={"speed": 3}))
    with pytest.raises(BadMessage, match="There is no client 'ward-x'"):
        LocalPort(clients()).ask(Task(Learning()).to_message(), ["ward-x"])


def test_messages_out_of_turn_are_refused() -> None:
    site = clients()[0]
    model = fuse(summaries(), 3, Learning(), generator(0, "server"))
    with pytest.raises(BadMessage, match="has not summarised its rows yet"):
        site.answer(model.to_message())
    with pytest.raises(BadMessage, match="has not received a model yet"):
        _ = site.labels
    with pytest.raises(BadMessage, match="no answer to a message of kind 'gossip'"):
        site.answer(Message("gossip"))
    with pytest.raises(BadMessage, match="Expected a message of kind 'model', got 'summarize'"):
        Model.from_message(Task(Learning()).to_message())


def test_a_model_of_other_clients_is_refused() -> None:
    model = fuse(summaries(), 3, Learning(), generator(0, "server"))
    with pytest.raises(BadMessage, match="'ward-x' took no part in this model; its clients are ward-a, ward-b, ward-c"):
        label(Membership("ward-x", np.array([0])), model)
    for other in (0, 999):
        with pytest.raises(BadMessage, match="made from another summary"):
            label(Membership("ward-a", np.array([other])), model)


def test_names_are_unique_in_a_federation() -> None:
    with pytest.raises(BadMessage, match="same name"):
        LocalPort(clients(("a", "a")))


def test_every_error_is_a_gold_error() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), GoldError), name
