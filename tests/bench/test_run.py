"""The runner: a row for every run, nothing lost when it is killed, nothing tried again in silence."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from goldfc.errors import BadSettings
from goldfc_bench.cases import dataset_of, split_of
from goldfc_bench.errors import DataNotFound
from goldfc_bench.methods import method_named
from goldfc_bench.run import Job, Rows, Run, code_of, run_job, run_jobs

SLOW_METHOD = '''
"""A method that takes its time, and one that breaks."""
import time
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from goldfc_bench.methods.protocol import Answer, Site
from goldfc.message.message import Message

@dataclass(frozen=True)
class Slow:
    """One cluster, slowly."""
    name: ClassVar[str] = "slow"
    uploads_rows: ClassVar[str] = "never"
    seconds: float = 0.05
    def site(self, name, rows, rng):
        return Site(name, rows, rng)
    def serve(self, port, n_clusters, rng):
        time.sleep(self.seconds)
        centroids = rng.normal(size=(n_clusters, 4))
        port.ask(Message("centroids", {"centroids": centroids}))
        return Answer(centroids, uplinks=0)

@dataclass(frozen=True)
class Broken(Slow):
    """Breaks."""
    def serve(self, port, n_clusters, rng):
        raise ZeroDivisionError("on purpose")
'''


@pytest.fixture
def own_method(tmp_path: Path) -> str:
    path = tmp_path / "own.py"
    path.write_text(SLOW_METHOD, encoding="utf-8")
    return f"{path}:Slow"


def without_clock(run: Run) -> Run:
    return replace(run, seconds_sites=0.0, seconds_server=0.0)


def test_a_row_survives_the_way_to_disk_and_back(tmp_path: Path) -> None:
    run = run_job(Job("iris", "non-icd-3-1", "GOLD", 0))
    rows = Rows(tmp_path / "rows.jsonl")
    rows.append(run)
    (back,) = rows.read()
    assert back.key == run.key
    assert back.to_json() == run.to_json()
    assert back.status == "done"
    assert back.uplinks == back.declared_uplinks == 3


def test_same_seed_same_row_whatever_the_number_of_jobs(tmp_path: Path) -> None:
    jobs = [Job("iris", "non-icd-3-1", method, seed) for method in ("GOLD", "coreset k-means") for seed in range(3)]
    alone = run_jobs(jobs, Rows(tmp_path / "a.jsonl"), 1, lambda _: None)
    together = run_jobs(jobs, Rows(tmp_path / "b.jsonl"), 2, lambda _: None)
    for one, other in zip(alone, together, strict=True):
        assert without_clock(one).to_json() == without_clock(other).to_json()


def test_a_run_that_cannot_answer_is_a_row_that_says_why_and_counts_as_one_cluster() -> None:
    run = run_job(Job("SD-12x2", "even-1", "GOLD", 0))
    assert run.status == "failed"
    assert "5 clusters were asked for" in run.reason
    assert run.scores["federated", "ARI"] == 0.0
    assert run.scores["federated", "Purity"] == pytest.approx(0.25)
    assert np.isnan(run.scores["global", "SC"])


def test_a_run_that_breaks_or_takes_too_long_is_a_row_too(own_method: str) -> None:
    broken = run_job(Job("iris", "even-2", own_method.replace("Slow", "Broken"), 0))
    assert (broken.status, broken.reason) == ("error", "ZeroDivisionError: on purpose")
    late = run_job(Job("iris", "even-2", own_method, 0, {"seconds": 5.0}, limit=0.2))
    assert (late.status, late.reason) == ("timeout", "not done within 0.2 s")
    assert late.seconds_server < 2.0


def test_rows_that_are_there_are_not_made_again_and_others_are_kept(tmp_path: Path, own_method: str) -> None:
    rows = Rows(tmp_path / "rows.jsonl")
    run_jobs([Job("iris", "even-2", own_method, seed) for seed in range(2)], rows, 1, lambda _: None)
    marked = [replace(run, reason="from before") for run in rows.read()]
    rows.rewrite([replace(marked[0], dataset="another"), *marked])
    heard: list[Run] = []
    runs = run_jobs([Job("iris", "even-2", own_method, seed) for seed in range(4)], rows, 1, heard.append)
    assert [run.reason for run in runs] == ["from before", "from before", "", ""]
    assert len(heard) == 4
    assert [run.dataset for run in rows.read()] == ["another"] + ["iris"] * 4


def test_rows_of_other_code_are_made_anew(tmp_path: Path, own_method: str) -> None:
    rows = Rows(tmp_path / "rows.jsonl")
    jobs = [Job("iris", "even-2", own_method, seed) for seed in range(3)]
    run_jobs(jobs, rows, 1, lambda _: None)
    codes = ["", "of older code", code_of(own_method)]
    rows.rewrite([replace(run, reason="from before", code=code) for run, code in zip(rows.read(), codes, strict=True)])
    runs = run_jobs(jobs, rows, 1, lambda _: None)
    assert [run.reason for run in runs] == ["", "", "from before"]
    assert {run.code for run in rows.read()} == {code_of(own_method)}


def test_what_took_too_long_is_not_tried_with_a_larger_size(tmp_path: Path, own_method: str) -> None:
    sizes = {0.01: 1, 3.0: 2, 0.02: 3}
    jobs = [Job("iris", "even-2", own_method, 0, {"seconds": s}, 0.3, "slow", size) for s, size in sizes.items()]
    rows = Rows(tmp_path / "rows.jsonl")
    run_jobs(jobs[:2], rows, 1, lambda _: None)  # as if killed after the second
    runs = run_jobs(jobs, rows, 1, lambda _: None)
    assert [run.status for run in runs] == ["done", "timeout", "not tried"]
    assert runs[2].reason == "not done within 0.3 s at size 2"
    assert [run.was_tried for run in runs] == [True, True, False]


def test_killed_and_started_again_gives_the_rows_of_an_uninterrupted_run(tmp_path: Path, own_method: str) -> None:
    jobs = [Job("iris", "even-3", method, seed) for seed in range(12) for method in (own_method, "GOLD")]
    whole, cut = Rows(tmp_path / "whole.jsonl"), Rows(tmp_path / "cut.jsonl")
    run_jobs(jobs, whole, 1, lambda _: None)
    for n_jobs, rows_more in ((1, 3), (2, 2)):
        killed_in_the_middle([*COMMAND, "--method", own_method, "--jobs", str(n_jobs)], cut, rows_more)
    assert 0 < len(cut.read()) < 24
    cut.path.write_bytes(cut.path.read_bytes() + b'{"dataset": "ir')  # what a kill in the middle of writing leaves
    run_jobs(jobs, cut, 1, lambda _: None)
    expected, found = ([json.loads(without_clock(run).to_json()) for run in rows.read()] for rows in (whole, cut))
    assert found == expected
    assert len(found) == 24


COMMAND = [sys.executable, "-m", "goldfc_bench", "run", "--dataset", "iris", "--split", "even-3"]
COMMAND += ["--method", "GOLD", "--seeds", "12"]


def killed_in_the_middle(command: list[str], rows: Rows, rows_more: int) -> None:
    """Start it, and kill it and its children some time after it has written some rows."""
    enough = len(rows.read()) + rows_more
    with subprocess.Popen(  # noqa: S603 (our own command)
        [*command, "--out", str(rows.path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        while len(rows.read()) < enough and process.poll() is None:
            time.sleep(0.01)
        time.sleep(random.Random(time.time_ns()).uniform(0.0, 0.1))  # noqa: S311 (any moment will do)
        os.killpg(process.pid, signal.SIGKILL)


def test_cases_are_fixed_by_their_names() -> None:
    assert dataset_of("SD-50x3").X.shape == (50, 3)
    split = split_of("iris", "even-4")
    assert sorted(split.row) == list(range(150))
    assert split.n_sites == 4
    np.testing.assert_array_equal(split_of("iris", "non-icd-2-5").row, split_of("iris", "non-icd-2-5").row)
    with pytest.raises(BadSettings, match="no sites called 'odd'"):
        split_of("iris", "odd")


def test_a_table_of_your_own_is_a_data_set(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("a,b,kind\n1,2,x\n3,4,y\n5,6,x\n", encoding="utf-8")
    dataset = dataset_of(str(path))
    assert dataset.X.shape == (3, 2)
    assert dataset.class_names == ("x", "y")
    words = tmp_path / "words.csv"
    words.write_text("a,b,kind\n1,two,x\n", encoding="utf-8")
    with pytest.raises(DataNotFound, match="not a table of numbers"):
        dataset_of(str(words))
    with pytest.raises(DataNotFound, match="no file"):
        dataset_of("nowhere.csv")


def test_methods_are_found_by_name_file_and_settings(own_method: str) -> None:
    assert method_named("GOLD", {"max_epochs": 5}).name == "GOLD"
    assert method_named(own_method).name == "slow"
    with pytest.raises(BadSettings, match="no method 'BRONZE'; the known ones are"):
        method_named("BRONZE")
    with pytest.raises(BadSettings, match="GOLD cannot take the settings"):
        method_named("GOLD", {"colour": "red"})
    with pytest.raises(BadSettings, match="no Python file"):
        method_named("nowhere.py:Thing")
