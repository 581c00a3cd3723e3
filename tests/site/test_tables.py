"""Tables as numbers, or a sentence that names column and row."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from goldfc.cli import main
from goldfc.errors import BadRows, BadSettings
from goldfc.message.columns import Column
from goldfc.message.wire import decode
from goldfc.site.init import guess_columns
from goldfc.site.table import readers
from goldfc.site.table.readers import READERS, Part, Raw, read_raw
from goldfc.site.table.table import Table, as_table
from sites import agreement, rows_in, rows_of, write_agreement

AGE = Column(name="age", unit="years", range=(0.0, 120.0))
SMOKER = Column(name="smoker", kind="boolean")
WARD = Column(name="ward", kind="category", categories=("A", "B", "?"))
PLAIN = "id,age,smoker,ward\nx,40,yes,A\ny,50.5,No,B\nz,60,1,?\n"


def file_with(tmp_path: Path, text: str, name: str = "data.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def kept_in(table: Table) -> list[int]:
    return np.flatnonzero(table.missing[:] == 0).tolist()


def test_numbers_yes_and_no_and_categories_are_encoded_the_same_way_everywhere(tmp_path: Path) -> None:
    wanted = [[40, 1, 1, 0, 0], [50.5, 0, 0, 1, 0], [60, 1, 0, 0, 1]]
    for name, separator in (("a.csv", ","), ("b.csv", ";"), ("c.tsv", "\t")):
        raw = read_raw(file_with(tmp_path, PLAIN.replace(",", separator), name))
        table = as_table(raw, [AGE, SMOKER, WARD], id_column="id")
        np.testing.assert_array_equal(rows_in(table), wanted)
        assert list(table.ids()) == [("x", "y", "z")]
    turned = "ward,id,smoker,age\r\nA,x,true,40\r\nB,y,false,50.5\r\n\r\n?,z,yes,60\r\n"
    raw = read_raw(file_with(tmp_path, "\ufeff" + turned))
    np.testing.assert_array_equal(rows_in(as_table(raw, [AGE, SMOKER, WARD], id_column="id")), wanted)


def test_parquet_is_read_like_csv(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="goldfc[parquet] is not installed")
    from pyarrow import parquet  # noqa: PLC0415

    table = pyarrow.table({"age": [40, 50.5], "smoker": [True, False], "ward": ["A", "B"]})
    parquet.write_table(table, tmp_path / "data.parquet")
    rows = rows_in(as_table(read_raw(tmp_path / "data.parquet"), [AGE, SMOKER, WARD]))
    np.testing.assert_array_equal(rows, [[40, 1, 1, 0, 0], [50.5, 0, 0, 1, 0]])
    (tmp_path / "bad.parquet").write_bytes(b"no table")
    with pytest.raises(BadRows, match=r"bad.parquet cannot be read as Parquet"):
        read_raw(tmp_path / "bad.parquet")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            PLAIN.replace("50.5", ""),
            r"Column 'age', row 2 below the header has no value; fill it in, or agree in federation.toml",
        ),
        (PLAIN.replace("50.5", "NA"), r"Column 'age', row 2 below the header has no value"),
        (
            PLAIN.replace("50.5", "old"),
            r"Column 'age', row 2 below the header holds 'old', which is not a number; make the column",
        ),
        (PLAIN.replace("50.5", '"50,5"'), r"row 2 .* holds '50,5', .* write decimals with a point"),
        (PLAIN.replace("50.5", '"1,050"'), r"row 2 .* holds '1,050', .* without thousands separators"),
        (
            PLAIN.replace("50.5", "inf"),
            r"Column 'age', row 2 .* holds 'inf', which is too large or endless; correct it",
        ),
        (PLAIN.replace("50.5", "1e308"), r"Column 'age', row 2 .* holds '1e308', which is too large"),
        (PLAIN.replace("50.5", "505"), r"row 2 .* holds 505, outside of the agreed range from 0 to 120; correct it"),
        (PLAIN.replace("No", "maybe"), r"Column 'smoker', row 2 .* holds 'maybe', which is neither yes nor no"),
        (
            PLAIN.replace(",B", ",C"),
            r"Column 'ward', row 2 .* holds 'C', which is none of the agreed categories \(A, B, \?\)",
        ),
        (PLAIN.replace("age", "Age"), r"There is no column 'age'; the file has 'id', 'Age', 'smoker', 'ward'"),
        (PLAIN.replace("smoker", "age"), r"data.csv has two columns called 'age'"),
        (PLAIN.replace("y,50.5", "y,50.5,7"), r"data.csv, line 3: there are 5 values, but 4 columns"),
        (PLAIN.replace("y,", '"y"x,'), r"data.csv cannot be read as a table"),
        ("", r"data.csv is empty; it needs a header"),
        (PLAIN.splitlines()[0] + "\n", r"There are no rows"),
    ],
)
def test_what_cannot_become_a_number_is_refused_by_column_row_and_remedy(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(BadRows, match=sentence):
        as_table(read_raw(file_with(tmp_path, text)), [AGE, SMOKER, WARD], id_column="id")


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes("größe\n1\n".encode("latin-1"))
    with pytest.raises(BadRows, match=r"data.csv is not written in UTF-8"):
        read_raw(tmp_path / "data.csv")
    with pytest.raises(BadRows, match="There is no file"):
        read_raw(tmp_path / "nothing.csv")


def test_missing_values_are_dropped_or_filled_only_where_that_was_agreed(tmp_path: Path) -> None:
    raw = read_raw(file_with(tmp_path, PLAIN.replace("50.5", "NA")))
    dropped = as_table(raw, [AGE, SMOKER, WARD], drop=True, id_column="id")
    assert kept_in(dropped) == [0, 2]
    assert "1 rows with missing values are left out." in dropped.notes
    filled = as_table(raw, [AGE.model_copy(update={"fill": 45.0}), SMOKER, WARD], id_column="id")
    assert rows_in(filled)[:, 0].tolist() == [40.0, 45.0, 60.0]


def test_in_a_single_column_a_blank_line_is_a_missing_value(tmp_path: Path) -> None:
    raw = read_raw(file_with(tmp_path, "age\n40\n\n50\n\n"))
    with pytest.raises(BadRows, match="Column 'age', row 2 below the header has no value"):
        as_table(raw, [AGE])
    assert kept_in(as_table(raw, [AGE], drop=True)) == [0, 2]


def test_what_is_odd_but_usable_is_said(tmp_path: Path) -> None:
    raw = read_raw(file_with(tmp_path, "age,name\n40,x\n40,y\n40,z\n"))
    notes = " ".join(as_table(raw, [AGE]).notes)
    assert "Not used, and not in the message: 'name'." in notes
    assert "'age' is 40 in all rows" in notes
    assert "2 rows are the same as an earlier one" in notes
    assert "There is one column only" in notes


def test_the_id_column_cannot_be_learned_from(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="'age' tells rows apart"):
        as_table(read_raw(file_with(tmp_path, PLAIN)), [AGE], id_column="age")


def test_kinds_are_guessed_by_the_look_of_the_values(tmp_path: Path) -> None:
    names = "\n".join(f"name{number},{number},yes,{'AB'[number % 2]}" for number in range(30))
    raw = read_raw(file_with(tmp_path, f"who,age,smoker,ward\n{names}\n"))
    columns, odd = guess_columns(raw)
    assert [(column.name, column.kind) for column in columns] == [
        ("age", "number"),
        ("smoker", "boolean"),
        ("ward", "category"),
    ]
    assert list(odd) == ["who"]
    assert odd["who"].startswith("it holds 'name0', which is not a number; make the column boolean or a category")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("54,7", "write decimals with a point"),
        ("6.1 mmol/l", "leave what stands behind '6.1' out of the cells"),
    ],
)
def test_columns_that_are_nearly_numbers_are_left_out_with_the_reason(
    tmp_path: Path, value: str, sentence: str
) -> None:
    lines = "\n".join(f'{row},"{value}"' for row in range(30))
    columns, odd = guess_columns(read_raw(file_with(tmp_path, f"age,weight\n{lines}\n")))
    assert [column.name for column in columns] == ["age"]
    assert sentence in odd["weight"]


def test_a_column_that_numbers_the_rows_is_noticed(tmp_path: Path) -> None:
    raw = read_raw(file_with(tmp_path, "Fall-Nr,age\n7,40\n3,50\n9,40\n"))
    notes = " ".join(as_table(raw, [Column(name="Fall-Nr"), AGE]).notes)
    assert "Column 'Fall-Nr' looks like an id. If it is, keep it out: --id-column Fall-Nr." in notes
    assert "'age' looks like an id" not in notes
    twice = as_table(read_raw(file_with(tmp_path, "id,age\n1,40\n1,50\n")), [AGE], id_column="id").notes
    assert "Values of 'id' are there more than once: labels will be hard to join." in twice


def test_a_workbook_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(BadRows, match=r"data.xlsx is a workbook; save the sheet as CSV"):
        read_raw(file_with(tmp_path, "PK", "data.xlsx"))


class Pairs:
    """A format of its own: a line for every value, `name=value`."""

    def names(self, path: Path) -> list[str]:
        """Said by the lines."""
        return list(self.columns(path))

    def parts(self, path: Path, names: Sequence[str], size: int) -> Iterator[Part]:
        """Some at a time."""
        columns = self.columns(path)
        for start in range(0, len(columns[names[0]]), size):
            yield Raw({name: columns[name][start : start + size] for name in names}), start, len(columns[names[0]])

    def size_in_memory(self, path: Path) -> int:
        """As in the file."""
        return path.stat().st_size

    @staticmethod
    def columns(path: Path) -> dict[str, list[str]]:
        """All of them."""
        columns = dict[str, list[str]]()
        for name, value in (line.split("=") for line in path.read_text(encoding="utf-8").splitlines()):
            columns.setdefault(name, []).append(value)
        return columns


def test_whoever_registers_a_reader_can_summarize_files_of_that_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"age={age!r}\npressure={pressure!r}\n" for age, pressure in rows_of(0).tolist()]
    data = file_with(tmp_path, "".join(lines), "data.pairs")
    write_agreement(tmp_path, agreement())
    monkeypatch.setitem(READERS, ".pairs", Pairs())
    monkeypatch.setattr(readers, "BLOCK", 50)
    result = CliRunner().invoke(main, ["summarize", str(data), "-o", str(tmp_path / "east.summary")])
    assert result.exit_code == 0, result.output
    summary = agreement().read_summary(decode((tmp_path / "east.summary").read_bytes()))
    assert "120 rows" in result.output
    assert len(summary.centroids) > 1
