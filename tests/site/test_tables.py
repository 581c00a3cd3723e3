"""Tables as numbers, or a sentence that names column and row."""

import gzip
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner
from openpyxl import Workbook
from pyarrow import feather, parquet

from goldfc.cli import main
from goldfc.errors import BadRows, BadSettings
from goldfc.message.columns import Column
from goldfc.message.wire import decode
from goldfc.site.init import guess_columns
from goldfc.site.table import readers
from goldfc.site.table.form import Form
from goldfc.site.table.readers import READERS, Block, Format, read_all
from goldfc.site.table.table import Table, as_table, open_table
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
    return np.flatnonzero(table.left_out[:] == 0).tolist()


def test_numbers_yes_and_no_and_categories_are_encoded_the_same_way_everywhere(tmp_path: Path) -> None:
    wanted = [[40, 1, 1, 0, 0], [50.5, 0, 0, 1, 0], [60, 1, 0, 0, 1]]
    for name, separator in (("a.csv", ","), ("b.csv", ";"), ("c.tsv", "\t")):
        raw = read_all(file_with(tmp_path, PLAIN.replace(",", separator), name))
        table = as_table(raw, [AGE, SMOKER, WARD], id_column="id")
        np.testing.assert_array_equal(rows_in(table), wanted)
        assert list(table.ids()) == [("x", "y", "z")]
    turned = "ward,id,smoker,age\r\nA,x,true,40\r\nB,y,false,50.5\r\n\r\n?,z,yes,60\r\n"
    raw = read_all(file_with(tmp_path, "\ufeff" + turned))
    np.testing.assert_array_equal(rows_in(as_table(raw, [AGE, SMOKER, WARD], id_column="id")), wanted)


def test_parquet_is_read_like_csv(tmp_path: Path) -> None:
    table = pa.table({"age": [40, 50.5], "smoker": [True, False], "ward": ["A", "B"]})
    parquet.write_table(table, tmp_path / "data.parquet")
    rows = rows_in(as_table(read_all(tmp_path / "data.parquet"), [AGE, SMOKER, WARD]))
    np.testing.assert_array_equal(rows, [[40, 1, 1, 0, 0], [50.5, 0, 0, 1, 0]])
    (tmp_path / "bad.parquet").write_bytes(b"no table")
    with pytest.raises(BadRows, match=r"bad.parquet cannot be read as Parquet"):
        read_all(tmp_path / "bad.parquet")


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
        (
            PLAIN.replace("50.5", '"50,5"').replace("40", "40.25"),
            r"row 2 .* holds '50,5', which is written otherwise than the other numbers, .*; write all numbers alike",
        ),
        (
            PLAIN.replace("50.5", '"1,050"'),
            r"row 2 .* holds '1,050', which may mean 1.050 or 1050; say in site.toml which \(decimal = \",\" or",
        ),
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
        (PLAIN.replace("age", "Alter"), r"There is no column 'age'; the file has 'id', 'Alter', 'smoker', 'ward'"),
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
        as_table(read_all(file_with(tmp_path, text)), [AGE, SMOKER, WARD], id_column="id")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadRows, match="There is no file"):
        read_all(tmp_path / "nothing.csv")


def test_missing_values_are_dropped_or_filled_only_where_that_was_agreed(tmp_path: Path) -> None:
    raw = read_all(file_with(tmp_path, PLAIN.replace("50.5", "NA")))
    dropped = as_table(raw, [AGE, SMOKER, WARD], drop=True, id_column="id")
    assert kept_in(dropped) == [0, 2]
    assert "1 row with a missing value is left out." in dropped.notes
    filled = as_table(raw, [AGE.model_copy(update={"fill": 45.0}), SMOKER, WARD], id_column="id")
    assert rows_in(filled)[:, 0].tolist() == [40.0, 45.0, 60.0]


def test_a_row_is_named_by_its_place_in_the_file_not_among_those_that_are_kept(tmp_path: Path) -> None:
    ages = ["NA", *map(str, range(20, 40)), "NA", "90", "NA", "91"]
    raw = read_all(file_with(tmp_path, "id,age\n" + "".join(f"{number},{age}\n" for number, age in enumerate(ages))))
    table = as_table(raw, [AGE], drop=True, id_column="id")
    for row, (age,) in enumerate(rows_in(table)):
        assert float(ages[table.place_in_file(row)]) == age


def test_in_a_single_column_a_blank_line_is_a_missing_value(tmp_path: Path) -> None:
    raw = read_all(file_with(tmp_path, "age\n40\n\n50\n\n"))
    with pytest.raises(BadRows, match="Column 'age', row 2 below the header has no value"):
        as_table(raw, [AGE])
    assert kept_in(as_table(raw, [AGE], drop=True)) == [0, 2]


def test_what_is_odd_but_usable_is_said(tmp_path: Path) -> None:
    raw = read_all(file_with(tmp_path, "age,name\n40,x\n40,y\n40,z\n"))
    notes = " ".join(as_table(raw, [AGE]).notes)
    assert "Not used, and not in the message: 'name'." in notes
    assert "'age' is 40 in all rows" in notes
    assert "2 rows are the same as an earlier one" in notes
    assert "There is one column only" in notes


def test_the_id_column_cannot_be_learned_from(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="'age' tells rows apart"):
        as_table(read_all(file_with(tmp_path, PLAIN)), [AGE], id_column="age")


def test_kinds_are_guessed_by_the_look_of_the_values(tmp_path: Path) -> None:
    names = "\n".join(f"name{number},{number % 7},yes,{'AB'[number % 2]}" for number in range(30))
    found = guess_columns([file_with(tmp_path, f"who,age,smoker,ward\n{names}\n")])
    assert [(column.name, column.kind) for column in found.columns] == [
        ("age", "number"),
        ("smoker", "boolean"),
        ("ward", "category"),
    ]
    assert found.odd == {"who": "it is text in which no two values are had by 5 rows or more"}


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("1,050", "which may mean 1.050 or 1050; say in site.toml which"),
        ("6.1 mmol/l", "leave what stands beside '6.1' out of the cells"),
        ("31.12.1980", "it holds dates"),
        ("0123", "it holds codes that begin with 0"),
        ("fell at home", "it holds text such as 'fell at home'; if these are categories, list them yourself"),
    ],
)
def test_columns_that_are_nearly_numbers_are_left_out_with_the_reason(
    tmp_path: Path, value: str, sentence: str
) -> None:
    lines = "\n".join(f'{row % 7},"{value}"' for row in range(30))
    found = guess_columns([file_with(tmp_path, f"age,weight\n{lines}\n")])
    assert [column.name for column in found.columns] == ["age"]
    assert sentence in found.odd["weight"]


def test_a_column_that_numbers_the_rows_is_noticed(tmp_path: Path) -> None:
    raw = read_all(file_with(tmp_path, "Fall-Nr,age\n7,40\n3,50\n9,40\n"))
    notes = " ".join(as_table(raw, [Column(name="Fall-Nr"), AGE]).notes)
    assert "Column 'Fall-Nr' looks like an id. If it is, keep it out: --id-column Fall-Nr." in notes
    assert "'age' looks like an id" not in notes
    twice = as_table(read_all(file_with(tmp_path, "id,age\n1,40\n1,50\n")), [AGE], id_column="id").notes
    assert "Values of 'id' are there more than once: labels will be hard to join." in twice


# --- files as people have them ---

ROWS: list[list[Any]] = [
    ["id", "age", "smoker", "größe"],
    ["x", 40, True, "A"],
    ["y", 50.5, False, "B"],
    ["z", 60, True, "?"],
]
AS_CSV = "\n".join(",".join(map(str, row)) for row in ROWS).replace("True", "yes").replace("False", "no")
SIZE = Column(name="größe", kind="category", categories=("A", "B", "?"))
AS_NUMBERS = [[40, 1, 1, 0, 0], [50.5, 0, 0, 1, 0], [60, 1, 0, 0, 1]]


def in_zip(path: Path, *names: str) -> None:
    with ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, AS_CSV)


def locked(path: Path) -> None:
    """An archive that says of its file that it has a password."""
    in_zip(path, "a.csv")
    content = bytearray(path.read_bytes())
    for place in (6, content.rfind(b"PK\1\2") + 8):
        content[place] |= 1
    path.write_bytes(bytes(content))


def workbook(path: Path, **sheets: list[list[Any]]) -> None:
    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    with path.open("wb") as file:
        book.save(file)


def arrow_table() -> pa.Table:
    return pa.table({name: [row[place] for row in ROWS[1:]] for place, name in enumerate(ROWS[0])})


ENDS = (b"\n", b"\r\n", b"\r", b"")


def with_text_as(kind: pa.DataType) -> pa.Schema:
    schema = arrow_table().schema
    return pa.schema([field.with_type(kind) if field.type == pa.string() else field for field in schema])


def with_age_as(kind: pa.DataType) -> pa.Table:
    table = arrow_table()
    return table.set_column(1, "age", table["age"].cast(kind))


def in_runs(table: pa.Table, name: str) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, pc.run_end_encode(table[name]))


def compressed(kind: str) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        with pa.CompressedOutputStream(str(path), kind) as file:
            file.write(AS_CSV.encode())

    return write


def written(encoding: str = "utf-8", separator: str = ",") -> Callable[[Path], object]:
    return lambda path: path.write_bytes(AS_CSV.replace(",", separator).encode(encoding))


FILES: dict[str, Callable[[Path], object]] = {
    "plain.csv": written(),
    "no-suffix": written(),
    "UPPER.CSV": written(),
    "mark.csv": written("utf-8-sig"),
    "utf-16.csv": written("utf-16", "\t"),
    "utf-16-be.txt": lambda path: path.write_bytes(b"\xfe\xff" + AS_CSV.replace(",", ";").encode("utf-16-be")),
    "cp1252.csv": written("cp1252", ";"),
    "semicolons.csv": written(separator=";"),
    "tabs.tsv": written(separator="\t"),
    "tabs.txt": written(separator="\t"),
    "bars.csv": written(separator="|"),
    "packed.csv.gz": compressed("gzip"),
    "packed-under-another-name.csv": compressed("gzip"),
    "packed-twice.csv.gz": lambda path: path.write_bytes(
        gzip.compress(AS_CSV[:30].encode()) + gzip.compress(AS_CSV[30:].encode())
    ),
    "packed.csv.bz2": compressed("bz2"),
    "packed.csv.lz4": compressed("lz4"),
    "packed.csv.zst": compressed("zstd"),
    "packed.zip": lambda path: in_zip(path, "data.csv", "__MACOSX/._data.csv"),
    "table.parquet": lambda path: parquet.write_table(arrow_table(), path),
    "table.feather": lambda path: feather.write_feather(arrow_table(), path),
    "views.feather": lambda path: feather.write_feather(arrow_table().cast(with_text_as(pa.string_view())), path),
    "bytes.parquet": lambda path: parquet.write_table(arrow_table().cast(with_text_as(pa.binary())), path),
    "runs.arrow": lambda path: feather.write_feather(in_runs(arrow_table(), "age"), path),
    "decimals.parquet": lambda path: parquet.write_table(with_age_as(pa.decimal128(10, 2)), path),
    "parquet-under-another-name.csv": lambda path: parquet.write_table(arrow_table(), path),
    "utf-16-without-a-mark.csv": written("utf-16-le"),
    "utf-16-be-without-a-mark.csv": written("utf-16-be", ";"),
    "says-its-separator.csv": lambda path: path.write_text(f"sep=;\n{AS_CSV.replace(',', ';')}", encoding="utf-8-sig"),
    "more-separators.csv": lambda path: path.write_text(AS_CSV.replace("\n", ",,\n") + ",,", encoding="utf-8"),
    "lines-of-all-kinds.csv": lambda path: path.write_bytes(
        b"".join(line.encode() + end for line, end in zip(AS_CSV.split("\n"), ENDS, strict=True))
    ),
    "book.xlsx": lambda path: workbook(path, data=[*ROWS, [None, None]], empty=[]),
}


@pytest.mark.parametrize("name", FILES)
def test_files_as_people_have_them_are_the_same_table(tmp_path: Path, name: str) -> None:
    FILES[name](tmp_path / name)
    with open_table(tmp_path / name, [AGE, SMOKER, SIZE], id_column="id") as table:
        np.testing.assert_array_equal(rows_in(table), AS_NUMBERS)
        assert list(table.ids()) == [("x", "y", "z")]
        assert any("it is read as cp1252" in note for note in table.notes) == (name == "cp1252.csv")


def test_whole_numbers_of_a_workbook_are_whole(tmp_path: Path) -> None:
    workbook(tmp_path / "a.xlsx", data=[["id", None, "age"], [17, None, 1 / 3], [18, None, "n/a"]])
    with open_table(tmp_path / "a.xlsx", [Column(name="age")], drop=True, id_column="id") as table:
        assert list(table.ids()) == [("17", "18")]
        assert rows_in(table).tolist() == [[1 / 3]]


@pytest.mark.parametrize(
    ("name", "write", "sentence"),
    [
        ("a.xlsx", lambda path: path.write_bytes(b"PK"), r"a.xlsx cannot be read as a workbook"),
        (
            "a.xlsx",
            lambda path: workbook(path, one=[]),
            r"a.xlsx is empty; it needs a header line with the names of the columns",
        ),
        (
            "a.xlsx",
            lambda path: workbook(path, one=ROWS, two=ROWS),
            r"a.xlsx has 2 sheets with rows \('one', 'two'\); say which in site.toml \(sheet = ...\), or save",
        ),
        ("a.csv", lambda path: workbook(path, one=ROWS), r"a.csv is a workbook under another name; call it .xlsx"),
        ("a.zip", lambda path: in_zip(path, "a.csv", "b.csv"), r"a.zip holds 2 files; unpack it, and name the table"),
        ("a.zip", lambda path: path.write_bytes(b"PK\3\4"), r"a.zip cannot be unpacked"),
        ("a.gz", lambda path: path.write_bytes(gzip.compress(AS_CSV.encode())[:-12]), r"a.gz cannot be unpacked"),
        (
            "a.sav",
            lambda path: path.write_bytes(b"$FL2@(#)\0\0\2"),
            r"a.sav holds no text; unpack it, if it is packed, or save the table as CSV",
        ),
        ("a.zip", locked, r"a.zip cannot be unpacked: File 'a.csv' is encrypted.*; unpack it by other means"),
        ("a.parquet", written(), r"a.parquet cannot be read as Parquet: .*; write it again, or, if it is of another"),
        (
            "a.csv",
            written(separator=":"),
            r"There are no columns .* the file has 'id:age:smoker:größe'. If the header is another",
        ),
        (
            "a.csv",
            lambda path: path.write_text(f"Report\n\n{AS_CSV}", encoding="utf-8"),
            r"the file has 'Report'. If the header is another line, or another sign stands between values, say so in",
        ),
        ("a.feather", lambda path: path.write_bytes(b"ARROW1"), r"a.feather cannot be read as Arrow \(Feather\)"),
        ("folder", Path.mkdir, r"There is no table in the folder folder"),
    ],
)
def test_what_is_no_table_is_told_with_the_remedy(
    tmp_path: Path, name: str, write: Callable[[Path], object], sentence: str
) -> None:
    write(tmp_path / name)
    with pytest.raises(BadRows, match=sentence), open_table(tmp_path / name, [AGE, SMOKER, SIZE]):
        pass


def test_a_column_without_a_name_is_called_by_its_place(tmp_path: Path) -> None:
    workbook(tmp_path / "a.xlsx", data=[["id", "vitals", None], ["x", 40, 3], ["y", 50, 4]])
    for path in (tmp_path / "a.xlsx", file_with(tmp_path, "id,vitals,\nx,40,3\ny,50,4\n")):
        form = Form(rename={"vitals": "age", "column 3": "ldl"})
        with open_table(path, [AGE, Column(name="ldl")], form=form, id_column="id") as table:
            assert rows_in(table).tolist() == [[40, 3], [50, 4]]


def test_numbers_of_a_workbook_are_numbers_however_texts_beside_them_are_written(tmp_path: Path) -> None:
    workbook(tmp_path / "a.xlsx", data=[["age", "ldl"], ["40,5", 2.5], ["50,25", 1e300], ["60", None]])
    with open_table(tmp_path / "a.xlsx", [AGE, Column(name="ldl", fill=0.0)], refuse="nothing") as table:
        assert rows_in(table).tolist() == [[40.5, 2.5], [60, 0]]
        assert list(table.faults.sentences()) == [
            "Column 'ldl', row 2 below the header holds 1e+300, which is too large or endless; correct it, or leave "
            "the row out"
        ]


def test_without_calamine_a_workbook_has_its_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(BadRows, match=r"data.xlsx is a workbook; to read it, install goldfc\[excel\], or save"):
        read_all(file_with(tmp_path, "PK", "data.xlsx"))


def test_a_folder_of_files_is_one_table(tmp_path: Path) -> None:
    data = tmp_path / "wards"
    data.mkdir()
    file_with(data, AS_CSV, "a.csv")
    parquet.write_table(arrow_table().select(["größe", "age", "id", "smoker"]), data / "b.parquet")
    file_with(data, "nothing", "federation.toml")
    with open_table(data, [AGE, SMOKER, SIZE], id_column="id") as table:
        np.testing.assert_array_equal(rows_in(table), AS_NUMBERS * 2)
        assert "Values of 'id' are there more than once: labels will be hard to join." in table.notes
        assert "In wards these are not read: 'federation.toml'; tables are known by their suffix." in table.notes
    file_with(data, "kept by a spreadsheet", "~$a.xlsx")
    with open_table(data, [AGE]) as table:
        assert [number for numbers in table.ids() for number in numbers] == list("123456")
    file_with(data, AS_CSV.replace("60", "old"), "c.csv")
    with pytest.raises(BadRows, match=r"'age', row 3 below the header of c.csv holds 'old'"), open_table(data, [AGE]):
        pass
    file_with(data, "id,age\n1,2\n", "c.csv")
    sentence = r"a.csv and c.csv do not have the same columns: only one has 'größe'"
    with pytest.raises(BadRows, match=sentence), open_table(data, [AGE]):
        pass


# --- formats ---


class Pairs(Format):
    """A format of its own: a line for every value, `name=value`."""

    def names(self, path: Path) -> list[str]:
        """Said by the lines."""
        return list(self.columns(path))

    def blocks(self, path: Path, names: Sequence[str], size: int) -> Iterator[Block]:
        """Some at a time."""
        columns = self.columns(path)
        for start in range(0, len(columns[names[0]]), size):
            rows = pa.record_batch({name: columns[name][start : start + size] for name in names})
            yield Block(rows, start, len(columns[names[0]]))

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
    monkeypatch.setitem(READERS, ".pairs", Pairs)
    monkeypatch.setattr(readers, "BYTES_OF_A_BLOCK", 50)
    result = CliRunner().invoke(main, ["summarize", str(data), "-o", str(tmp_path / "east.summary")])
    assert result.exit_code == 0, result.output
    summary = agreement().read_summary(decode((tmp_path / "east.summary").read_bytes()))
    assert "120 rows" in result.output
    assert len(summary.centroids) > 1
