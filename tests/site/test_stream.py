"""Large files, gone through in blocks: the same messages, the same sentences, and nothing left behind."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from goldfc import label
from goldfc._types import FloatArray
from goldfc.errors import BadRows, BadSettings
from goldfc.files import write_durably
from goldfc.message.columns import Column
from goldfc.message.wire import decode
from goldfc.server.round import fuse_admitted
from goldfc.site import digests
from goldfc.site import rows as site_rows
from goldfc.site.digests import (
    Key,
    Looked,
    count_twins,
    difference,
    digest_of_cells,
    key_of_numbers,
    open_kept,
    write_kept,
)
from goldfc.site.labels import labels_of, write_labels
from goldfc.site.rows import Rows
from goldfc.site.send import draft_summary, send
from goldfc.site.table import readers
from goldfc.site.table import table as stream
from goldfc.site.table.readers import blocks_in, column_names, read_all
from goldfc.site.table.scratch import OnDisk, Scratch
from goldfc.site.table.table import Table, as_table, open_table
from goldfc_bench.stream import write_table
from sites import agreement, rows_in

AGE = Column(name="age", unit="years", range=(0.0, 120.0))
FILLED = Column(name="weight", fill=70.0)
SMOKER = Column(name="smoker", kind="boolean")
WARD = Column(name="ward", kind="category", categories=("A", "B", "?"))
COLUMNS = (AGE, FILLED, SMOKER, WARD)
SECRET = bytes(range(32))
HEADER = "note,age,weight,smoker,ward"


def lines_of(count: int, seed: int = 0) -> list[str]:
    """Rows of all kinds of columns; some weights are missing."""
    rng = np.random.default_rng(seed)
    return [
        f"n{row},{rng.normal(50, 10):.4f},{'' if row % 7 == 3 else repr(rng.normal(70, 9))},"
        f"{rng.choice(['yes', 'no', 'TRUE', '0'])},{rng.choice(['A', 'B', '?'])}"
        for row in range(count)
    ]


TEXT = "\n".join([HEADER, *lines_of(90)]) + "\n"
GAP = (r"\n(n5|n60),[^,]*", r"\n\1,NA")
WITH_GAPS = re.sub(*GAP, TEXT)
FORMS = {
    "plain": TEXT,
    "without a last line break": TEXT.rstrip("\n"),
    "blank lines at the end": TEXT + "\n\n\n",
    "blank lines between": TEXT.replace("\nn40", "\n\n\nn40"),
    "CRLF": TEXT.replace("\n", "\r\n"),
    "CR": TEXT.replace("\n", "\r"),
    "byte order mark": "\ufeff" + TEXT,
    "quotes": TEXT.replace("n7,", '"n, 7",').replace("n8,", '"n ""8""",'),
    "line breaks in quotes": TEXT.replace("n7,", '"n\n\n7",').replace("n61,", '"\r\nn,61",'),
    "a long text in quotes": TEXT.replace("n7,", '"' + "many words\n" * 60 + '",'),
    "blanks around values": TEXT.replace(",yes", ", yes ").replace(",A", ",A "),
    "not only ASCII": TEXT.replace("n7,", "größe 7 \N{SNOWMAN},"),
    "semicolons": TEXT.replace(",", ";"),
}


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is large, and borders of blocks are everywhere."""
    monkeypatch.setattr(stream, "LARGEST_IN_MEMORY", 10)
    monkeypatch.setattr(readers, "BYTES_OF_A_BLOCK", 1000)
    monkeypatch.setattr(digests, "MOST_READ", 8)


def file_with(folder: Path, text: str, name: str = "data.csv") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(text.encode())
    return path


def both_ways(path: Path, columns: Sequence[Column], **settings: bool | str) -> tuple[Table, Table]:
    """The table in memory, and on the disk: the same numbers."""
    drop, id_column = bool(settings.get("drop")), settings.get("id_column")
    id_column = id_column if isinstance(id_column, str) else None
    table = as_table(read_all(path), columns, drop=drop, id_column=id_column)
    with open_table(path, columns, drop=drop, id_column=id_column) as streamed:
        assert isinstance(streamed.rows, OnDisk)
        n_rows, _ = streamed.rows.shape
        assert streamed.rows.shape == table.rows.shape
        for places in ((0, n_rows), (n_rows // 3, n_rows // 2)):
            assert streamed.rows.read(*places).tobytes() == table.rows.read(*places).tobytes()
        assert (streamed.people is None) == (table.people is None)
        if streamed.persons is not None and table.persons is not None:
            np.testing.assert_array_equal(streamed.persons.number, table.persons.number)
            np.testing.assert_array_equal(streamed.persons.digest, table.persons.digest)
    return table, streamed


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("form", FORMS)
def test_blocks_of_text_are_the_whole_text(tmp_path: Path, form: str) -> None:
    path = file_with(tmp_path, FORMS[form])
    table, streamed = both_ways(path, COLUMNS)
    assert table.rows.shape[0] == 90
    assert streamed.notes == table.notes
    for size in (800, 1000, 10**6):
        parts = [block.rows for block in blocks_in(path, column_names(path), size)]
        assert (len(parts) > 1) == (size <= 1000)
        assert pa.concat_batches(parts).equals(read_all(path))


@pytest.mark.usefixtures("small_blocks")
def test_missing_values_are_dropped_and_tabs_separate(tmp_path: Path) -> None:
    for text, name in ((WITH_GAPS, "data.csv"), (WITH_GAPS.replace(",", "\t"), "data.tsv")):
        table, streamed = both_ways(file_with(tmp_path, text, name), COLUMNS, drop=True)
        assert table.rows.shape[0] == 88
        assert "2 rows with missing values are left out." in streamed.notes
        assert streamed.notes == table.notes


@pytest.mark.usefixtures("small_blocks")
def test_a_single_column_has_blank_lines_inside_but_not_at_its_end(tmp_path: Path) -> None:
    text = "age\n" + "".join(f"{row}\n" + "\n" * (100 if row == 30 else row % 2) for row in range(60)) + "\n" * 300
    table, streamed = both_ways(file_with(tmp_path, text), [AGE], drop=True)
    assert table.rows.shape[0] == 60
    assert streamed.notes == table.notes


@pytest.mark.usefixtures("small_blocks")
def test_what_is_odd_is_said_of_large_tables_too(tmp_path: Path) -> None:
    lines = [f"{row},{40 + row % 2},1,x,{(row * 37) % 101}" for row in range(100)]
    path = file_with(tmp_path, "\n".join(["nr,age,weight,name,case", *lines, lines[4]]))
    columns = [Column(name="age"), Column(name="weight"), Column(name="case")]
    table, streamed = both_ways(path, columns)
    assert "1 row is the same as an earlier one; all of them count." in streamed.notes
    assert "'weight' is 1 in all rows" in " ".join(streamed.notes)
    # Within every block the values of `case` are all different: that is all that is looked at.
    assert set(streamed.notes) - set(table.notes) == {
        "Column 'case' looks like an id. If it is, keep it out: --id-column case."
    }
    rising = both_ways(file_with(tmp_path, "\n".join(["nr,age,weight,name,case", *lines])), [Column(name="nr"), AGE])
    assert rising[0].notes == rising[1].notes
    assert "Column 'nr' looks like an id" in " ".join(rising[1].notes)


@pytest.mark.usefixtures("small_blocks")
def test_parquet_comes_in_batches(tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "data.parquet"
    weights = [None if row % 7 == 3 else float(value) for row, value in enumerate(rng.normal(70, 9, 90))]
    facts = {
        "note": [f"n{row}" for row in range(90)],
        "age": pa.array(rng.integers(20, 90, 90), pa.int16()),
        "weight": pa.array(weights, pa.float32()),
        "smoker": rng.integers(2, size=90) == 1,
        "ward": pa.array(rng.choice(["A", "B", "?"], 90)).dictionary_encode(),
    }
    parquet.write_table(pa.table(facts), path, row_group_size=40)
    table, streamed = both_ways(path, COLUMNS)
    assert table.rows.shape[0] == 90
    assert streamed.notes == table.notes
    table, streamed = both_ways(path, [AGE, FILLED.model_copy(update={"fill": None})], drop=True, id_column="note")
    assert table.rows.shape[0] == 77
    assert streamed.notes == table.notes
    with open_table(path, [Column(name="age"), Column(name="weight", fill=0.0)]) as wide:
        assert "Not used, and not in the message: 'note', 'smoker', 'ward'." in wide.notes


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "text",
    [
        WITH_GAPS,
        TEXT.replace("\nn70,", "\nn70,old"),
        TEXT.replace("\nn70,", "\nn70,1e60,1,yes,A\nn71,"),
        TEXT.replace("\nn70,", "\nn70,505,1,yes,A\nn71,"),
        TEXT.replace("\nn70,", "\nn70,50,1,maybe,A\nn71,"),
        TEXT.replace("\nn70,", "\nn70,50,1,yes,C\nn71,"),
        TEXT.replace("\nn70,", "\nn70,50,1,yes,A,more\nn71,"),
        TEXT.replace("n7,", '"n\n\n7",').replace("\nn70,", "\nn70,50,1,yes\nn71,"),
        TEXT.replace("n7,", '"n\n\n7",').replace("\nn70,", '\nn70,50,1,yes,"A"B\nn71,'),
        TEXT.replace("\nn70,", '\n"n70,'),
        TEXT.replace("\nn70,", f"\n{'n' * 3_000_000},"),
        HEADER + "\n",
        HEADER + "\n\n\n\n",
        HEADER.replace("age", "Age") + "\n" * 20,
        HEADER.replace("note", "age") + "\n" * 20,
        "\n" * 20,
    ],
)
def test_refusals_are_the_same_sentences_with_the_same_rows(tmp_path: Path, text: str) -> None:
    path = file_with(tmp_path / "a", text)
    with pytest.raises(BadRows) as at_once:
        as_table(read_all(path), COLUMNS)
    with pytest.raises(BadRows) as in_blocks, open_table(path, COLUMNS):
        pass
    assert str(in_blocks.value) == str(at_once.value)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.usefixtures("small_blocks")
def test_a_quotation_mark_that_is_not_closed_swallows_no_rows(tmp_path: Path) -> None:
    path = file_with(tmp_path, TEXT.replace("\nn70,", '\nn70,50,1,yes,"A\nn71,'))
    sentence = r"data.csv cannot be read as a table: line 93: unexpected end of data"
    with pytest.raises(BadRows, match=sentence), open_table(path, COLUMNS[:3]):
        pass


@pytest.mark.usefixtures("small_blocks")
def test_text_that_is_not_utf8_is_read_as_cp1252_and_refused_if_it_is_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goldfc.site.table.text.CHUNK", 500)
    path, last = file_with(tmp_path, TEXT), "größe,50,1,yes,A\n"
    path.write_bytes(path.read_bytes() + last.encode("latin-1"))
    with open_table(path, COLUMNS, id_column="note") as table:
        assert table.rows.shape[0] == 91
        assert table.notes[0] == "data.csv is not written in UTF-8; it is read as cp1252 (Windows, Western Europe)."
        assert [name for names in table.ids() for name in names][-1] == "größe"
    snowman = TEXT.replace("n1,", "\N{SNOWMAN},").encode()
    for content in (path.read_bytes() + b"\x81,50,1,yes,A\n", snowman + last.encode("latin-1")):
        path.write_bytes(content)
        with pytest.raises(BadRows, match=r"data.csv is not written in UTF-8, nor in"), open_table(path, [AGE]):
            pass


DECIMALS = st.one_of(
    st.floats(-1e50, 1e50).map(repr),
    st.decimals(-(10**9), 10**9, allow_nan=False).map(str),
    st.from_regex(r"[-+]?[0-9]{1,25}(\.[0-9]{0,25})?([eE][-+]?[0-9]{1,2})?", fullmatch=True).filter(
        lambda text: abs(float(text)) <= 1e50
    ),
)


@settings(deadline=None)
@given(st.lists(st.tuples(DECIMALS, DECIMALS), min_size=1, max_size=20), st.booleans())
def test_decimals_are_rounded_correctly(
    tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[str, str]], quoted: bool
) -> None:
    lines = [f'"{one}",{other}' if quoted else f"{one},{other}" for one, other in cells]
    path = file_with(tmp_path_factory.mktemp("decimals"), "\n".join(["a,b", *lines]))
    wanted = np.array([[float(one), float(other)] for one, other in cells])
    assert rows_in(as_table(read_all(path), [Column(name="a"), Column(name="b")])).tobytes() == wanted.tobytes()


# --- messages ---


def message_of(path: Path, name: str) -> tuple[bytes, bytes]:
    """What leaves, and what stays but for its date."""
    what = agreement(columns=COLUMNS, missing="drop")
    out = path.with_name(f"{name}.summary")
    (path.parent / ".goldfc").mkdir(mode=0o700)
    write_durably(path.parent / ".goldfc" / "secret", SECRET, private=True)
    with open_table(path, what.columns, drop=True) as table:
        send(draft_summary(table, name, what, path), what, path, out, key=None)
    (kept,) = (path.parent / ".goldfc").glob("*.rows")
    content = kept.read_bytes()
    return out.read_bytes(), content[8 + int.from_bytes(content[:8], "little") :]


@pytest.mark.parametrize("form", ["plain", "CRLF", "line breaks in quotes"])
def test_a_large_table_gives_the_same_message_and_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    text = re.sub(*GAP, FORMS[form])
    first = message_of(file_with(tmp_path / "a", text), "east")
    monkeypatch.setattr(stream, "LARGEST_IN_MEMORY", 10)
    monkeypatch.setattr(readers, "BYTES_OF_A_BLOCK", 1000)
    assert message_of(file_with(tmp_path / "b", text), "east") == first
    assert {path.name for path in (tmp_path / "b").iterdir()} == {"data.csv", "east.summary", ".goldfc"}
    assert len(list((tmp_path / "b" / ".goldfc").iterdir())) == 6


@pytest.mark.parametrize("n_rows", [12_000, 25_000])
def test_a_table_of_many_blocks_gives_the_same_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_rows: int
) -> None:
    text = "\n".join([HEADER, *lines_of(n_rows)])
    first = message_of(file_with(tmp_path / "a", text), "east")
    monkeypatch.setattr(stream, "LARGEST_IN_MEMORY", 10)
    monkeypatch.setattr(readers, "BYTES_OF_A_BLOCK", 10_000)
    assert message_of(file_with(tmp_path / "b", text), "east") == first


def test_what_is_kept_is_a_file_of_safetensors(tmp_path: Path) -> None:
    from safetensors.numpy import load_file  # noqa: PLC0415

    path = file_with(tmp_path, TEXT)
    message_of(path, "east")
    (kept,) = (tmp_path / ".goldfc").glob("*.rows")
    arrays = load_file(kept)
    assert set(arrays) == {"cells"}
    rows = rows_in(as_table(read_all(path), COLUMNS))
    digests = digest_of_cells(rows, rows.min(axis=0), rows.max(axis=0), Key.of(SECRET, b"cells"))
    np.testing.assert_array_equal(arrays["cells"], digests)
    with open_kept(kept) as found:
        assert found.facts["site"] == "east"
        np.testing.assert_array_equal(np.concatenate(list(found.blocks())), arrays["cells"])
        assert len(found) == 90
    assert kept.stat().st_mode & 0o777 == 0o600


# --- digests ---

# No three of these lie to each other as three others do: in no other unit are they the same.
ROWS = st.lists(st.sampled_from([0.0, 1.0, 3.7, 11.13, 29.3, 83.91, 301.7]), min_size=1, max_size=30)


@settings(deadline=None)
@given(ROWS, ROWS, st.integers(1, 40))
def test_rows_that_came_and_went_are_counted_in_blocks(
    tmp_path_factory: pytest.TempPathFactory, before: list[float], after: list[float], at_a_time: int
) -> None:
    before, after = [-1000.1, *before, 5000.5], [-1000.1, *after, 5000.5]
    old, new = (Looked(Rows.of(np.array(rows).reshape(-1, 1)), ("x",)) for rows in (before, after))
    counts = {value: after.count(value) - before.count(value) for value in {*before, *after}}
    came, went = sum(max(c, 0) for c in counts.values()), sum(max(-c, 0) for c in counts.values())
    path = tmp_path_factory.mktemp("kept") / "x.rows"
    write_kept(path, old, SECRET, {"site": "a", "sent": "2027-01-01T00:00:00+00:00", "sha256": "", "to": ""})
    with pytest.MonkeyPatch.context() as patch, open_kept(path) as kept:
        patch.setattr(digests, "MOST_READ", at_a_time)
        found = difference(kept, new, SECRET)
    if sum(value in before for value in after) >= 0.5 * len(after):  # otherwise it is another column
        assert (found.came, found.went) == (came, went)
    assert count_twins(key_of_numbers(np.array(after).reshape(-1, 1))) == len(after) - len(set(after))


# --- passes ---


@pytest.mark.parametrize("at_once", [1_000_000, 1_000])
def test_a_table_on_the_disk_is_passed_over_at_most_twelve_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Whatever fits into memory of it: also where half of it does not."""
    rng, n_rows, rows_read = np.random.default_rng(0), 25_000, list[int]()
    table = rng.normal(size=(n_rows, 3)) + 5.0 * rng.integers(0, 4, size=(n_rows, 1))
    path = file_with(tmp_path, "\n".join(["a,b,c", *(",".join(map(repr, row)) for row in table.tolist())]))
    read = OnDisk.read

    def counted(self: OnDisk, start: int, stop: int) -> FloatArray:
        rows_read.append(stop - start)
        return read(self, start, stop)

    monkeypatch.setattr(stream, "LARGEST_IN_MEMORY", 10)
    monkeypatch.setattr(site_rows, "MOST_NUMBERS_KEPT", at_once)
    monkeypatch.setattr(OnDisk, "read", counted)
    what = agreement(columns=[Column(name=name) for name in "abc"])
    with open_table(path, what.columns) as streamed:
        draft = draft_summary(streamed, "east", what, path)
        send(draft, what, path, tmp_path / "east.summary", key=None)
    assert draft.audit.membership is not None
    assert sum(rows_read) <= 12 * n_rows


def test_few_rows_of_many_are_taken_from_the_disk_without_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, bytes_read = np.random.default_rng(0).normal(size=(20_000, 8)), list[int]()
    preadv = os.preadv

    def counted(handle: int, buffers: Sequence[memoryview], offset: int) -> int:
        bytes_read.append(preadv(handle, buffers, offset))
        return bytes_read[-1]

    monkeypatch.setattr(os, "preadv", counted)
    with Scratch(tmp_path / "data.csv") as scratch:
        scratch.append(rows)
        for places in (np.arange(3, 20_000, 100), np.arange(0, 20_000, 3), np.array([7]), np.array([], dtype=np.int64)):
            bytes_read.clear()
            np.testing.assert_array_equal(OnDisk(scratch, 8).take(places), rows[places])
            assert sum(bytes_read) <= 3 * rows[places].nbytes


# --- labels ---


@pytest.mark.parametrize("id_column", [None, "note"])
def test_a_large_table_gets_the_same_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, id_column: str | None
) -> None:
    what = agreement(columns=COLUMNS, missing="drop", limits={"least_sites": 2})
    data = file_with(tmp_path, re.sub(*GAP, TEXT))
    body = decode(message_of(data, "east")[0])
    other = what.read_summary(decode(message_of(file_with(tmp_path / "b", TEXT.replace("1", "2")), "west")[0]))
    model = fuse_admitted([what.read_summary(body), other], what, 3).model
    lines = re.sub(*GAP, TEXT).splitlines()
    # Some rows stand elsewhere, some are new, and one is there twice.
    data.write_text("\n".join([HEADER, *lines[20:], *lines[1:20], lines_of(3, seed=9)[0], lines[4]]), encoding="utf-8")
    written, tallies = [], []
    for largest in (10**9, 10):
        monkeypatch.setattr(stream, "LARGEST_IN_MEMORY", largest)
        monkeypatch.setattr(readers, "BYTES_OF_A_BLOCK", 1000)
        with open_table(data, what.columns, drop=True, id_column=id_column) as table:
            assert isinstance(table.rows, OnDisk) == (largest == 10)
            tallies.append(write_labels(labels_of(table, model), tmp_path / "labels.csv", id_column or "row", "m"))
        written.append((tmp_path / "labels.csv").read_text(encoding="utf-8"))
    assert written[0] == written[1]
    assert tallies[0] == tallies[1]
    assert (tallies[0].rows, tallies[0].without) == (92, {"no value in 'age'": 2})
    labels, _ = label(rows_in(as_table(read_all(data), what.columns, drop=True)), model)
    told = [line.split(",")[1] for line in written[0].splitlines()[1:]]
    assert [int(cluster) for cluster in told if cluster] == labels.tolist()
    assert tallies[0].clusters == set(labels.tolist())
    assert {path.name for path in tmp_path.iterdir()} == {"data.csv", "east.summary", "labels.csv", ".goldfc", "b"}


# --- the disk ---


def test_scratch_files_are_private_and_have_no_name(tmp_path: Path) -> None:
    with Scratch(tmp_path / "data.csv") as scratch:
        scratch.append(np.arange(4.0))
        found = os.fstat(scratch.handle)
        assert (found.st_mode & 0o777, found.st_nlink, found.st_size) == (0o600, 0, 32)
        assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_too_small_is_told_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "LARGEST_IN_MEMORY", 10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1_000_000}))
    path = file_with(tmp_path, "\n".join([HEADER, *lines_of(20_000)]))
    sentence = r"takes 2 MB more beside the data, and 1 MB are free; make room"
    with pytest.raises(BadSettings, match=sentence), open_table(path, COLUMNS):
        pass
    assert list(tmp_path.iterdir()) == [path]


SLEEPS = """
import sys, time
from pathlib import Path
from goldfc.site.table import table as stream
from goldfc.message.columns import Column
stream.LARGEST_IN_MEMORY = 10
with stream.open_table(Path(sys.argv[1]), [Column(name="age")]) as table:
    print(table.rows.shape[0], flush=True)
    time.sleep(60)
"""


def test_a_process_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    path = file_with(tmp_path, TEXT)
    with subprocess.Popen([sys.executable, "-c", SLEEPS, str(path)], stdout=subprocess.PIPE) as process:  # noqa: S603
        assert process.stdout is not None
        assert process.stdout.readline() == b"90\n"
        process.send_signal(signal.SIGKILL)
    assert list(tmp_path.iterdir()) == [path]


SUMMARIZES = """
import sys
from goldfc.site.table import table as stream
from goldfc.cli import main
stream.LARGEST_IN_MEMORY = 10**6
try:
    main(["summarize", sys.argv[1], "-o", sys.argv[2]])
finally:
    print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell how much memory was used")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def peak_of(data: Path) -> float:
        command = [sys.executable, "-c", SUMMARIZES, str(data), str(data.with_suffix(".summary"))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 (our own script)
        return int(done.stdout.split()[-1]) / 1000

    small, large = tmp_path / "40.csv", tmp_path / "74.csv"
    # Before that, what is allocated to read it grows up to its most.
    write_table(small, 40)
    least = peak_of(small)
    write_table(large, 74)
    # All numbers of the larger file would take 25 MB more, and its text in memory 300 MB. How two threads take turns
    # makes some runs larger than the file asks for.
    assert any(peak_of(large) - least < 15 for _ in range(5))
