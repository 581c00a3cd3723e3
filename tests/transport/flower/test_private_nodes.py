"""Private messages live: the stored message of a node is the one that the same site sends by file, and costs once."""

from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="goldfc[flower] is not installed")

from goldfc.agreement import Agreement
from goldfc.message.levels import Private
from goldfc.message.summary import Summary
from goldfc.message.wire import decode
from goldfc.site.ledger import Ledger
from goldfc.site.policy import Policy
from goldfc.site.private.send import SPENT
from goldfc.transport.flower.server_app import run_job
from sites import COLUMNS, NAMES, agreement, write_policy
from transport.flower.test_port import command, grid_of, job_in, nodes_of, sites_in

RANGED = tuple(column.model_copy(update={"range": column.range or (50.0, 250.0)}) for column in COLUMNS)


@pytest.fixture(scope="module")
def private() -> Agreement:
    return agreement(privacy="private", columns=RANGED)


def test_a_live_round_of_private_sites(tmp_path: Path, private: Agreement) -> None:
    sites = sites_in(tmp_path, private)
    run_job(grid_of(nodes_of(sites)), job_in(tmp_path, private, expect=4))
    for name, settings in sites.items():
        sent = (tmp_path / "server" / "accepted" / f"{name}.summary").read_bytes()
        assert Summary.from_message(decode(sent)).level == Private()
        command("summarize", settings["data"], "-o", tmp_path / f"{name}.summary")
        assert (tmp_path / f"{name}.summary").read_bytes() == sent
        events = [line["event"] for line in Ledger.of(Path(settings["data"]), Policy()).lines()]
        assert events == ["spent", "sent", "sent again"]
        assert Path(settings["data"]).with_name("data.labels.csv").exists()


def test_a_node_whose_budget_is_spent_still_sends_what_it_sent(tmp_path: Path, private: Agreement) -> None:
    sites = sites_in(tmp_path, private)
    write_policy(tmp_path / NAMES[0], "most_eps_a_year = 1.2")
    for turn in ("first", "again"):
        (tmp_path / turn).mkdir()
        result = run_job(grid_of(nodes_of(sites)), job_in(tmp_path / turn, private, expect=4))
        assert set(result.model.sites) == set(NAMES)
    assert spent_by(sites[NAMES[0]]) == 1


def spent_by(settings: Mapping[str, object]) -> int:
    """How many messages a site has paid for."""
    lines = Ledger.of(Path(str(settings["data"])), Policy()).lines()
    return sum(line["event"] == SPENT for line in lines)


def test_a_node_without_budget_says_no_more_than_that_its_policy_does_not_allow_it(
    tmp_path: Path, private: Agreement
) -> None:
    sites = sites_in(tmp_path, private)
    write_policy(tmp_path / NAMES[0], "most_eps_a_year = 0.5")
    result = run_job(grid_of(nodes_of(sites)), job_in(tmp_path, private, expect=4))
    assert set(result.model.sites) == set(NAMES[1:])
    status = (tmp_path / "server" / "status.json").read_text(encoding="utf-8")
    assert "its own policy does not allow what was agreed on" in status
