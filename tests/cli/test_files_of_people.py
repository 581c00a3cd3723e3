"""Files as people have them end in the labels of the plain file, or in the one right remedy, and with it in labels."""

import csv
import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from openpyxl import Workbook
from pyarrow import feather, parquet

from goldfc import OneShot, fuse, summarize
from goldfc.agreement import Agreement
from goldfc.cli import main
from goldfc.message.columns import Column
from goldfc.message.wire import encode
from goldfc.randomness import generator
from goldfc.site.table.table import as_table
from sites import rows_in, write_agreement

COLUMNS = (
    Column(name="age", unit="years"),
    Column(name="income", unit="EUR"),
    Column(name="ldl", unit="mmol/L"),
    Column(name="smoker", kind="boolean"),
    Column(name="ward", kind="category", categories=("01", "02")),
    Column(name="sex", kind="category", categories=("female", "male")),
)
HEADER = ["id", *(column.name for column in COLUMNS)]
Row = list[object]


def patients() -> list[Row]:
    """Two kinds."""
    rng = np.random.default_rng(0)
    found = []
    for number in range(60):
        kind = number % 2
        age, income, ldl = rng.normal((30, 2500, 2.5) if kind else (70, 5200, 5.0), (3.0, 100.0, 0.3)).round(2).tolist()
        words = ("yes", "01", "female") if kind else ("no", "02", "male")
        found.append([f"p{number}", age, round(income), ldl, *words])
    return found


PATIENTS = patients()


def text(
    path: Path, rows: Sequence[Row], header: Sequence[str] = HEADER, *, separator: str = ",", encoding: str = "utf-8"
) -> None:
    with path.open("w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=separator).writerows([header, *rows])


def changed(column: str, change: Callable[[object], object]) -> list[Row]:
    """The rows with one column written otherwise."""
    place = HEADER.index(column)
    return [[change(cell) if number == place else cell for number, cell in enumerate(row)] for row in PATIENTS]


def called(column: str, name: str) -> list[str]:
    return [name if one == column else one for one in HEADER]


def packed(path: Path) -> None:
    text(path.with_name("plain.csv"), PATIENTS)
    path.write_bytes(gzip.compress(path.with_name("plain.csv").read_bytes()))


def packed_by_arrow(path: Path) -> None:
    text(path.with_name("plain.csv"), PATIENTS)
    with pa.CompressedOutputStream(str(path), "zstd") as file:
        file.write(path.with_name("plain.csv").read_bytes())


def zipped(path: Path) -> None:
    text(path.with_name("plain.csv"), PATIENTS)
    with ZipFile(path, "w") as archive:
        archive.write(path.with_name("plain.csv"), "patients.csv")


def in_a_folder(path: Path) -> None:
    path.mkdir()
    text(path / "january.csv", PATIENTS[:20])
    text(path / "march.tsv", PATIENTS[20:], separator="\t")


def with_a_title(path: Path) -> None:
    text(path, [[], list[object](HEADER), *PATIENTS], ["Patients of March"])


def workbook(path: Path) -> None:
    book = Workbook()
    for row in [HEADER, *PATIENTS]:
        book.active.append(row)
    with path.open("wb") as file:
        book.save(file)


def typed() -> pa.Table:
    """A database's numbers are numbers, and its codes are codes."""
    return pa.table({name: [row[n] for row in PATIENTS] for n, name in enumerate(HEADER)})


def with_commas(path: Path) -> None:
    marks = str.maketrans(".,", ",.")
    rows = [
        [f"{cell:,}".translate(marks) if isinstance(cell, (int, float)) else cell for cell in row] for row in PATIENTS
    ]
    text(path, rows, separator=";")


def missing(code: str) -> Callable[[Path], None]:
    """The first patient's age is not known."""
    rows = [
        [code if (number, place) == (0, 1) else cell for place, cell in enumerate(row)]
        for number, row in enumerate(PATIENTS)
    ]
    return partial(text, rows=rows)


def dated(cell: object) -> str:
    """A day of birth that gives about this age in 2000."""
    return (date(2000, 1, 1) - timedelta(days=round(float(str(cell)) * 365.25))).strftime("%d.%m.%Y")


@dataclass(frozen=True)
class Form:
    """A file of some form; what `check` says is wrong with it, if anything is, and the options that help."""

    name: str
    write: Callable[[Path], None]
    wrong: str = ""
    options: tuple[str, ...] = ()
    without: int = 0  # rows that get no label


FORMS = {
    "a plain file": Form("data.csv", partial(text, rows=PATIENTS)),
    "a workbook": Form("data.xlsx", workbook),
    "a packed file": Form("data.csv.gz", packed),
    "a file packed by zstd": Form("data.csv.zst", packed_by_arrow),
    "an archive": Form("data.zip", zipped),
    "tabs": Form("data.tsv", partial(text, rows=PATIENTS, separator="\t")),
    "a folder": Form("data", in_a_folder),
    "lines before the header": Form(
        "data.csv",
        with_a_title,
        "the file has 'Patients of March'. If the header is another line, or",
        ("--header", "3"),
    ),
    "colons between values": Form(
        "data.csv",
        partial(text, rows=PATIENTS, separator=":"),
        "the file has 'id:age:income:ldl:smoker:ward:sex'. If the header is another line, or another sign",
        ("--separator", ":"),
    ),
    "Parquet": Form("data.parquet", lambda path: parquet.write_table(typed(), path)),
    "Feather": Form("data.feather", lambda path: feather.write_feather(typed(), path)),
    "UTF-16": Form("data.txt", partial(text, rows=PATIENTS, separator="\t", encoding="utf-16")),
    "cp1252": Form("data.csv", partial(text, rows=PATIENTS, header=[*HEADER[:-1], "Sex "], encoding="cp1252")),
    "decimal commas and points between thousands": Form("data.csv", with_commas),
    "a dash for no value": Form("data.csv", missing("-"), without=1),
    "a point for no value": Form("data.csv", missing("."), without=1),
    "#N/A for no value": Form("data.csv", missing("#N/A"), without=1),
    "a number for no value": Form("data.csv", missing("-9"), "", ("--missing=-9",), without=1),
    "a word for no value": Form(
        "data.csv", missing("refused"), "say in site.toml that this means a missing value", ("--missing", "refused"), 1
    ),
    "dates": Form(
        "data.csv",
        partial(text, rows=changed("age", dated)),
        'which is a date; say in site.toml what it is to count as (dates = "years" or "days")',
        ("--dates", "age=years", "--factor", "age=-1", "--offset", "age=2000"),
    ),
    "1 and 0": Form("data.csv", partial(text, rows=changed("smoker", lambda cell: int(cell == "yes")))),
    "other words for yes and no": Form(
        "data.csv", partial(text, rows=changed("smoker", lambda cell: "ja" if cell == "yes" else "Nein"))
    ),
    "words of one's own for yes and no": Form(
        "data.csv",
        partial(text, rows=changed("smoker", lambda cell: "daily" if cell == "yes" else "never")),
        "which is neither yes nor no; write true or false, yes or no, 1 or 0, or give it an alias in site.toml",
        ("--alias", "smoker:daily=yes", "--alias", "smoker:never=no"),
    ),
    "codes that lost their zero": Form(
        "data.csv",
        partial(text, rows=changed("ward", lambda cell: int(str(cell)))),
        "which is none of the agreed categories (01, 02); correct it, give it an alias in site.toml",
        ("--alias", "ward:1=01", "--alias", "ward:2=02"),
    ),
    "a unit in the header": Form("data.csv", partial(text, rows=PATIENTS, header=called("ldl", "LDL [mmol/l]"))),
    "another unit in the header": Form(
        "data.csv",
        partial(
            text,
            rows=changed("ldl", lambda cell: round(38.67 * float(str(cell)), 1)),
            header=called("ldl", "ldl (mg/dL)"),
        ),
        "'ldl' was agreed on in 'mmol/L'; convert it, or say in site.toml by which factor it is to be multiplied "
        "(0.0258598 would fit)",
        ("--factor", "ldl=0.0258598"),
    ),
    "values in another case": Form("data.csv", partial(text, rows=changed("sex", lambda cell: str(cell).upper()))),
    "values spelled otherwise": Form(
        "data.csv",
        partial(text, rows=changed("sex", lambda cell: "w" if cell == "female" else "m")),
        "which is none of the agreed categories (female, male); correct it, give it an alias in site.toml",
        ("--alias", "sex:w=female", "--alias", "sex:m=male"),
    ),
    "one column renamed": Form(
        "data.csv",
        partial(text, rows=PATIENTS, header=called("age", "Alter")),
        "There is no column 'age'; the file has 'id', 'Alter'",
        ("--rename", "Alter=age"),
    ),
}


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an agreement and a model of two kinds of patients."""
    folder = tmp_path_factory.mktemp("federation")
    what = Agreement(federation="wards", columns=COLUMNS, missing="drop")
    write_agreement(folder, what.model_copy(update={"missing": "refuse"}))
    file = folder / "federation.toml"
    file.write_text(f'missing = "drop"\nid_column = "id"\n{file.read_text(encoding="utf-8")}', encoding="utf-8")
    arrays = {name: [row[place] for row in PATIENTS] for place, name in enumerate(HEADER)}
    rows = rows_in(as_table(pa.record_batch(arrays), COLUMNS, id_column="id"))
    way = OneShot()
    summaries = [summarize(rows, name, way.task, terms=what.terms)[0] for name in ("a", "b", "c")]
    (folder / "global.model").write_bytes(encode(fuse(summaries, 2, way, generator(0)).to_message()))
    return folder


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner(env={"COLUMNS": "300"}).invoke(main, [str(one) for one in arguments], catch_exceptions=False)
    return result.exit_code, result.output


def labels_in(data: Path, federation: Path, *options: str) -> tuple[int, list[str]]:
    out = data.with_name("labels.csv")
    code, _ = run(
        "label", data, "--model", federation / "global.model", "-o", out,
        "--federation", federation / "federation.toml", *options,
    )  # fmt: skip
    if not out.exists():
        return code, []
    return code, [line.split(",")[1] for line in out.read_text(encoding="utf-8").splitlines()[1:]]


@pytest.mark.parametrize("name", FORMS)
def test_files_as_people_have_them_end_in_labels_or_in_the_one_right_remedy(
    tmp_path: Path, federation: Path, name: str
) -> None:
    form = FORMS[name]
    data = tmp_path / form.name
    form.write(data)
    code, said = run("check", data, "--federation", federation / "federation.toml")
    assert code == (2 if form.wrong else 0), said
    assert form.wrong in said
    code, labels = labels_in(data, federation, *form.options)
    assert code == 0
    assert labels[: form.without] == [""] * form.without
    # The two kinds take turns.
    truth = [labels[2], labels[3]] * (len(PATIENTS) // 2)
    assert labels[2] != labels[3]
    assert labels[form.without :] == truth[form.without :]
    # The next command knows it already.
    assert labels_in(data, federation) == (0, labels)
    assert (tmp_path / "site.toml").exists() == bool(form.options)


def test_one_odd_new_row_does_not_stop_the_labelling_of_a_file(tmp_path: Path, federation: Path) -> None:
    rows = [*PATIENTS[:4], ["new", "unknown age", *PATIENTS[4][2:]], *PATIENTS[4:]]
    text(tmp_path / "data.csv", rows)
    code, labels = labels_in(tmp_path / "data.csv", federation)
    assert code == 0
    assert [number for number, label in enumerate(labels) if not label] == [4]
    line = (tmp_path / "labels.csv").read_text(encoding="utf-8").splitlines()[5]
    assert line.startswith("new,,,,'age' is not a number,")
    assert labels_in(tmp_path / "data.csv", federation, "--strict")[0] == 2


def test_a_table_of_which_no_row_can_be_used_is_wrong(tmp_path: Path, federation: Path) -> None:
    text(tmp_path / "data.csv", changed("age", lambda _: "-"))
    words = (tmp_path / "data.csv", "--federation", federation / "federation.toml")
    code, said = run("check", *words)
    assert code == 2
    assert "Wrong: No row has a value in every column." in said
    assert run("summarize", *words, "-o", tmp_path / "a.summary")[0] == 2


# --- wrong results without a word ---


def test_values_that_lost_their_mark_of_thousands_are_told(tmp_path: Path, federation: Path) -> None:
    text(
        tmp_path / "data.csv",
        changed("income", lambda cell: float(str(cell)) / 1000 if float(str(cell)) > 5000 else cell),
    )
    code, said = run("check", tmp_path / "data.csv", "--federation", federation / "federation.toml")
    assert code == 0
    assert "was a mark of thousands taken for a decimal mark? Then say in site.toml which mark is which" in said


def test_an_odd_value_is_told_with_its_row_in_the_file(tmp_path: Path, federation: Path) -> None:
    rows = [
        [
            cell if place != 1 else ("" if number == 0 else 900 if number == 7 else cell)
            for place, cell in enumerate(row)
        ]
        for number, row in enumerate(PATIENTS)
    ]
    text(tmp_path / "data.csv", rows)
    words = (tmp_path / "data.csv", "--federation", federation / "federation.toml")
    said = run("check", *words)[1]
    assert "Note: Column 'age' holds 900 in row 8 below the header: " in said
    code, said = run("summarize", *words, "-o", tmp_path / "a.summary", "--dry-run")
    assert code == 0, said
    assert "Column 'age' holds 900 in row 8 below the header: " in said


def test_without_a_federation_file_ids_stay_at_the_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    numbers = rng.permutation(10_000)[:60]
    text(
        tmp_path / "a.csv",
        [[number, *row[1:4]] for number, row in zip(numbers, PATIENTS, strict=True)],
        ["patient", *HEADER[1:4]],
    )
    code, said = run("summarize", "a.csv", "-o", "a.summary")
    assert code == 0, said
    assert "Column 'patient' tells rows apart; it stays here." in said
    columns = json.loads(run("inspect", "a.summary", "--json")[1])["terms"]["columns"]
    assert [column["name"] for column in columns] == HEADER[1:4]
