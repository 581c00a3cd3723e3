"""Rows that come in parts: nothing is counted twice, nothing is lost, and no more is kept than was said."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.metrics import adjusted_rand_score

from goldfc import OneShotClustering, Summary
from goldfc._types import FloatArray
from goldfc.cli import main
from goldfc.errors import BadRows, BadSettings
from goldfc.learning.rows import InMemory
from goldfc.message.levels import PLAIN, Private, Suppressed
from goldfc.message.task import Task
from goldfc.message.wire import decode
from goldfc.site import reservoir
from goldfc.site.digests import Hashes
from goldfc.site.ledger import Ledger
from goldfc.site.membership import Guess
from goldfc.site.parts import Parts, as_bytes, from_bytes
from goldfc.site.policy import Policy
from goldfc.site.reservoir import NewRows, Reservoir, limit_of
from goldfc.site.summarize import summarize
from sentences import refused
from sites import agreement, rows_of, write_agreement

SECRET = bytes(32)
posix = pytest.mark.skipif(os.name == "nt", reason="Windows does not tell who may read a file")
PLAINLY = agreement(privacy="plain")


@pytest.fixture(autouse=True)
def each_attack_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is made: it takes long, and it is that of any table."""
    monkeypatch.setattr("goldfc.site.summarize.membership_of", lambda *_: Guess(0.5, 0.0))


def grown(parts: Sequence[FloatArray], most: int, persons: Sequence[Hashes] | None = None) -> Reservoir:
    """What is kept of some parts."""
    named = [None] * len(parts) if persons is None else persons
    new = [NewRows(InMemory(rows), who) for rows, who in zip(parts, named, strict=True)]
    kept = Reservoir.empty(new[0])
    for part in new:
        kept = kept.added(part, SECRET, most)
    return kept


def mixture(n_rows: int, seed: int = 0) -> FloatArray:
    """Rows of three kinds."""
    return rows_of(seed, n_rows)


def in_order(rows: FloatArray) -> FloatArray:
    return rows[np.lexsort(rows.T)]


def test_up_to_the_limit_it_is_the_table_of_all_rows() -> None:
    rows = mixture(500)
    kept = grown(np.array_split(rows, 7), most=500)
    np.testing.assert_array_equal(kept.rows, rows)
    assert kept.stands_for is None


def test_beyond_it_the_order_of_parts_does_not_matter() -> None:
    parts = np.array_split(mixture(3_000), 6)
    one, other = grown(parts, most=400), grown(parts[::-1], most=400)
    assert one.rows.shape == (400, 2)
    assert one.stands_for == other.stands_for == 3_000
    np.testing.assert_array_equal(in_order(one.rows), in_order(other.rows))


def test_every_row_stays_as_likely_as_any_other() -> None:
    rows = np.arange(4_000.0)[:, None]
    kept = grown(np.array_split(rows, 40), most=1_000).rows[:, 0]
    each = np.histogram(kept, bins=10, range=(0, 4_000))[0]
    assert abs(each - 100).max() < 40  # four deviations


def test_persons_stay_with_their_rows() -> None:
    rows = np.arange(900.0)[:, None]
    persons = (rows[:, 0] // 3).astype(np.uint64)
    kept = grown(np.array_split(rows, 9), 200, np.array_split(persons, 9))
    assert kept.persons is not None
    np.testing.assert_array_equal(kept.persons, kept.rows[:, 0] // 3)
    table = kept.table()
    assert table.people is not None
    assert len(table.people) == 200


def test_the_same_part_counts_once_and_the_same_rows_are_refused() -> None:
    parts = np.array_split(mixture(600), 3)
    kept = grown(parts, most=1_000)
    assert kept.added(NewRows(InMemory(parts[1])), SECRET, 1_000) is kept
    with refused(BadRows, "rows-known"):
        kept.added(NewRows(InMemory(np.concatenate(parts)[::-1])), SECRET, 1_000)
    sampled = grown(parts, most=150)
    with refused(BadRows, "rows-known"):
        sampled.added(NewRows(InMemory(parts[1][::-1].copy())), SECRET, 150)


def test_rows_that_are_alike_by_chance_are_no_repetition() -> None:
    rng = np.random.default_rng(0)
    parts = [rng.integers(4, size=(200, 2)).astype(np.float64) for _ in range(5)]
    assert grown(parts, most=10_000).total == 1_000


@pytest.mark.parametrize("smallest", [1, 5])
def test_a_sample_counts_as_all_rows(smallest: int) -> None:
    rows = mixture(5_000)
    kept = grown(np.array_split(rows, 50), most=1_000)
    level = PLAIN if smallest == 1 else Suppressed(smallest=smallest)
    summary, _ = summarize(kept.rows, "a", Task(level=level), stands_for=kept.stands_for)
    assert summary.mass is not None
    assert summary.moments is not None
    assert summary.mass.sum() == summary.moments.count == pytest.approx(5_000, rel=0.01)
    assert not (summary.mass % (1 if smallest == 1 else 5)).any()
    np.testing.assert_allclose(summary.moments.mean, rows.mean(axis=0), rtol=0.03)


def test_fifty_parts_are_labelled_as_all_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservoir, "MOST_ROWS_KEPT", 2_000)
    rows = np.concatenate([mixture(5_000, seed) for seed in range(2)])
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    groups = np.arange(len(rows)) % 3
    whole = OneShotClustering(3, random_state=0).fit(rows, groups=groups)
    model = OneShotClustering(3, random_state=0)
    for own in np.array_split(np.arange(len(rows)), 50):
        model.partial_fit(rows[own], groups=groups[own])
    assert len(model.labels_) == 200
    assert adjusted_rand_score(whole.labels_, model.predict(rows)) > 0.99


def test_parts_of_an_estimator_up_to_the_limit_are_all_rows_at_once() -> None:
    rows = mixture(400)
    groups = np.arange(400) % 3
    whole = OneShotClustering(3, random_state=0).fit(rows, groups=groups)
    model = OneShotClustering(3, random_state=0).partial_fit(rows[:150], groups=groups[:150])
    model.partial_fit(rows[150:], groups=groups[150:])
    np.testing.assert_array_equal(model.micro_centroids_, whole.micro_centroids_)
    assert adjusted_rand_score(model.labels_, whole.labels_[150:]) == 1.0
    # A site that has nothing new still counts; who fits begins anew.
    assert model.partial_fit(mixture(50, 5), groups=["new"] * 50).model_.sites == ("0", "1", "2", "new")
    assert model.fit(rows, groups=groups).model_.fingerprint == whole.model_.fingerprint


# --- by files ---


def run(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(main, [str(word) for word in words])
    return result.exit_code, " ".join(result.output.split())


def write_part(path: Path, rows: FloatArray) -> Path:
    lines = [f"{age!r},{pressure!r}" for age, pressure in rows.tolist()]
    path.write_text("\n".join(["age,pressure", *lines]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A site with four parts, and a table of all of their rows."""
    monkeypatch.chdir(tmp_path)
    write_agreement(tmp_path, PLAINLY)
    rows = mixture(400)
    (tmp_path / "whole").mkdir()
    write_part(tmp_path / "whole" / "data.csv", rows)
    return [write_part(tmp_path / f"part-{n}.csv", own) for n, own in enumerate(np.array_split(rows, 4))]


def kept_in(folder: Path) -> list[Path]:
    return sorted((folder / ".goldfc").glob("*.reservoir"))


def test_parts_make_the_message_of_the_table_of_all_rows(tmp_path: Path, parts: list[Path]) -> None:
    for part in parts[:-1]:
        code, said = run("summarize", "--add", part, "--site", "north")
        assert code == 0, said
    assert not (tmp_path / ".goldfc" / "ledger.jsonl").exists()  # nothing left
    code, said = run("summarize", "--add", parts[-1], "-o", "north.summary")
    assert code == 0, said
    assert "north: 4 parts with 400 rows so far." in said
    assert run("summarize", "whole/data.csv", "-o", "whole/north.summary")[0] == 0
    assert Path("north.summary").read_bytes() == Path("whole/north.summary").read_bytes()
    # Once more: it counts once, and the very message is sent again.
    code, said = run("summarize", "--add", parts[-1], "-o", "again.summary", "--site", "north")
    assert code == 0, said
    assert "added before; it counts once" in said
    assert Path("again.summary").read_bytes() == Path("north.summary").read_bytes()


def test_a_dry_run_keeps_nothing(tmp_path: Path, parts: list[Path]) -> None:
    code, said = run("summarize", "--add", parts[0], "-o", "north.summary", "--dry-run")
    assert code == 0, said
    assert not (tmp_path / ".goldfc").exists()


def test_a_few_new_rows_are_not_told_until_there_are_more(tmp_path: Path, parts: list[Path]) -> None:
    write_agreement(tmp_path, agreement())
    assert run("summarize", "--add", parts[0], "-o", "north.summary")[0] == 0
    few = write_part(tmp_path / "few.csv", mixture(3, 7))
    code, said = run("summarize", "--add", few, "-o", "north.summary")
    assert code == 5
    assert "only 3 people came" in said
    code, said = run("summarize", "--add", parts[1], "-o", "north.summary")  # the three are in, and no longer alone
    assert code == 0, said
    assert "3 parts with 203 rows" in said


def test_a_sample_is_told_with_the_people_who_came_into_it_and_went(
    tmp_path: Path, parts: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reservoir, "MOST_ROWS_KEPT", 150)
    monkeypatch.setattr("goldfc.site.ledger.secrets.token_bytes", bytes)
    write_agreement(tmp_path, agreement())
    assert run("summarize", "--add", parts[0], "-o", "north.summary")[0] == 0
    for part in parts[1:]:
        code, said = run("summarize", "--add", part, "-o", "north.summary")
        assert code == 0, said
    assert "400 rows so far, of which 150 are kept" in said
    summary = Summary.from_message(decode(Path("north.summary").read_bytes()))
    assert summary.rows == pytest.approx(400, abs=10)
    few = write_part(tmp_path / "few.csv", mixture(4, 10))
    code, said = run("summarize", "--add", few, "-o", "north.summary")
    assert code == 5
    assert "since the message of" in said


@posix
def test_what_is_kept_is_for_its_owner_alone_bounded_and_forgotten(
    tmp_path: Path, parts: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reservoir, "MOST_ROWS_KEPT", 100)
    sizes = []
    for part in parts:
        assert run("summarize", "--add", part, "--site", "north")[0] == 0
        (kept,) = kept_in(tmp_path)
        assert kept.stat().st_mode & 0o077 == 0
        sizes.append(kept.stat().st_size)
    assert max(sizes) < sizes[0] + 200
    code, said = run("forget", parts[0], "--yes")
    assert code == 0
    assert "0 messages and all rows that were added in parts are forgotten" in said
    assert not kept_in(tmp_path)


@posix
def test_what_is_not_as_it_was_written_is_refused(tmp_path: Path, parts: list[Path]) -> None:
    assert run("summarize", "--add", parts[0], "--site", "north")[0] == 0
    (kept,) = kept_in(tmp_path)
    whole = kept.read_bytes()
    facts, good = from_bytes(whole)
    bad = [
        whole[:-1],
        whole[:40],
        b"",
        as_bytes(replace(good, total=3), facts),
        as_bytes(replace(good, lots=good.lots[1:]), facts),
        as_bytes(replace(good, rows=np.full_like(good.rows, np.nan)), facts),
        as_bytes(replace(good, rows=good.rows.astype(np.float32)), facts),
        as_bytes(replace(good, rows=good.rows[:, :1].copy()), facts),
        as_bytes(replace(good, persons=good.lots), facts),
        as_bytes(replace(good, parts=good.parts[:, None]), facts),
    ]
    for content in bad:
        kept.write_bytes(content)
        code, said = run("summarize", "--add", parts[1], "--site", "north")
        assert code == 2
        assert "is damaged; remove it, and add all parts again" in said
    kept.write_bytes(whole)
    kept.chmod(0o644)
    assert "must be for its owner alone" in run("summarize", "--add", parts[1], "--site", "north")[1]
    kept.unlink()
    kept.symlink_to(parts[0])
    assert run("summarize", "--add", parts[1], "--site", "north")[0] == 1
    assert parts[0].read_text(encoding="utf-8").startswith("age")


def test_parts_have_the_same_columns(tmp_path: Path, parts: list[Path]) -> None:
    assert run("summarize", "--add", parts[0], "--site", "north")[0] == 0
    write_agreement(tmp_path, agreement(privacy="plain", columns=PLAINLY.columns[:1]))
    code, said = run("summarize", "--add", parts[1], "--site", "north")
    assert code == 2
    assert "have other columns" in said


def test_a_part_needs_a_name_and_a_message_a_file(parts: list[Path]) -> None:
    assert "Missing option '--site'" in run("summarize", "--add", parts[0])[1]
    assert "Missing option '-o'" in run("summarize", parts[0])[1]


def test_at_the_level_private_no_row_drives_another_one_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservoir, "MOST_ROWS_KEPT", 100)
    monkeypatch.setattr(reservoir, "MOST_NUMBERS_KEPT", 500)
    assert limit_of(Private(), 2) == 250
    table = grown([mixture(200)], 250).table()
    parts = Parts("north", PLAINLY, Private(), Ledger(tmp_path / ".goldfc"))
    assert len(parts.add(table)[0].rows) == 200
    with refused(BadSettings, "private-sampled"):
        parts.add(grown([mixture(51, 1)], 250).table())
    assert len(parts.tried(table)[0].rows) == 200  # the refused part is not in
    sampled = Parts("south", PLAINLY, PLAIN, Ledger.of(tmp_path / "data.csv", Policy()))
    assert len(sampled.add(table)[0].rows) == 100
    with refused(BadSettings, "private-sampled"):
        replace(sampled, level=Private()).add(table)


def test_private_parts_are_paid_for_when_they_are_told(tmp_path: Path, parts: list[Path]) -> None:
    what = agreement(
        privacy="private",
        columns=tuple(column.model_copy(update={"range": (0.0, 200.0)}) for column in PLAINLY.columns),
    )
    write_agreement(tmp_path, what)
    for part in parts[:-1]:
        code, said = run("summarize", "--add", part, "--site", "north")
        assert code == 0, said
    assert "Private messages: 0." in run("budget", parts[0])[1]
    code, said = run("summarize", "--add", parts[-1], "-o", "north.summary", "--accept-risk")
    assert code == 0, said
    assert "400 rows so far" in said
    assert "Private messages: 1." in run("budget", parts[0])[1]


def test_a_part_is_in_or_it_is_not(tmp_path: Path, parts: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("summarize", "--add", parts[0], "--site", "north")[0] == 0
    (kept,) = kept_in(tmp_path)
    before = kept.read_bytes()
    words = ["summarize", "--add", str(parts[1]), "--site", "north"]
    for moment in ("goldfc.files.os.fsync", "goldfc.files.patiently"):
        with monkeypatch.context() as broken:
            broken.setattr(moment, ended)
            with pytest.raises(SystemError):
                CliRunner().invoke(
                    main, ["summarize", "--add", str(parts[1]), "--site", "north"], catch_exceptions=False
                )
        assert kept.read_bytes() == before
    assert "2 parts with 200 rows" in run(*words)[1]
    assert not list((tmp_path / ".goldfc").glob("*.part"))


def ended(*_: object) -> None:
    """As if the process ended here."""
    raise SystemError
