"""How a site writes its tables: the same table in every form, and what was made of it is said."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

from goldfc.errors import BadRows, BadSettings
from goldfc.message.columns import Column
from goldfc.site.table.form import AS_USUAL, Form, read_form
from goldfc.site.table.numerals import USUAL_STYLE, NumberStyle, fault_of, style_of, to_numbers
from goldfc.site.table.table import Table, as_table, open_table
from sentences import refused
from sites import rows_in

AGE, LDL = Column(name="age", unit="years"), Column(name="ldl", unit="mmol/L")
SMOKER = Column(name="smoker", kind="boolean")
SEX = Column(name="sex", kind="category", categories=("female", "male"))
COLUMNS = (AGE, LDL, SMOKER, SEX)
ROWS = [[40, 2.5, 1, 1, 0], [51.5, 4.25, 0, 0, 1], [1060, 3.0, 1, 1, 0]]
PLAINLY = "id,age,ldl,smoker,sex\nx,40,2.5,yes,female\ny,51.5,4.25,no,male\nz,1060,3,yes,female\n"


def opened(path: Path, form: str = "", columns: tuple[Column, ...] = COLUMNS, **settings: Any) -> Table:
    (path.parent / "site.toml").write_text(form, encoding="utf-8")
    with open_table(path, columns, id_column="id", **settings) as table:
        return table


def text(folder: Path, content: str, encoding: str = "utf-8", name: str = "data.csv") -> Path:
    (folder / name).write_bytes(content.encode(encoding))
    return folder / name


FORMS = {
    "plain": (PLAINLY, ""),
    "decimal commas and points between thousands": (
        "id;age;ldl;smoker;sex\nx;40;2,5;ja;female\ny;51,5;4,25;nein;male\nz;1.060;3;ja;female\n",
        "",
    ),
    "blanks between thousands": (PLAINLY.replace("1060", "1\u00a0060"), ""),
    "commas between thousands": (PLAINLY.replace("1060", '"1,060"'), ""),
    "an apostrophe between thousands, as said": (PLAINLY.replace("1060", "1'060"), 'thousands = "\'"'),
    "another case": (PLAINLY.replace("female", "FEMALE").replace("male\n", "Male\n").replace("FEMale", "Female"), ""),
    "names in another look": (PLAINLY.replace("id,age,ldl,smoker", "ID,Age ,LDL [mmol/l],Smoker"), ""),
    "another name": (PLAINLY.replace("age", "Alter"), '[rename]\nAlter = "age"'),
    "another unit": (
        PLAINLY.replace("ldl", "ldl (mg/dL)").replace("2.5", "97").replace("4.25", "164.9").replace(",3,", ",116.4,"),
        "[columns.ldl]\nfactor = 0.025773195876288658",
    ),
    "aliases": (PLAINLY.replace("female", "w").replace("male", "m"), "[columns.sex.aliases]\nw = 'female'\nm = 'male'"),
    "letters": (PLAINLY.replace("yes", "Y").replace("no", "N"), ""),
    "an encoding that is said": (PLAINLY.replace("age", "größe"), 'encoding = "cp850"\n[rename]\n"größe" = "age"'),
    "a header in another line": (f"Report of March,,,,\n,,,,\n{PLAINLY}", "header = 3"),
    "another separator": (PLAINLY.replace(",", ":"), 'separator = ":"'),
    "numbers for categories": (
        PLAINLY.replace("female", "1").replace("male", "0"),
        "[columns.sex.aliases]\n0 = 'male'\n1 = 'female'",
    ),
    "a minus sign as it is printed": (
        PLAINLY.replace("40", "\u221210").replace("51.5", "1.5").replace("1060", "1010"),
        "[columns.age]\noffset = 50",
    ),
    "an offset": (
        PLAINLY.replace("40", "20").replace("51.5", "31.5").replace("1060", "1040"),
        "[columns.age]\noffset = 20",
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_table_is_the_same_in_every_form(tmp_path: Path, name: str) -> None:
    content, form = FORMS[name]
    encoding = "cp850" if "cp850" in form else "utf-8"
    table = opened(text(tmp_path, content, encoding), form)
    np.testing.assert_allclose(rows_in(table), ROWS, rtol=1e-12)
    assert list(table.ids()) == [("x", "y", "z")]


@pytest.mark.parametrize("code", ["-", ".", "#N/A", "n.a.", "\u2014", "<NA>", "-9", "k.A.!"])
def test_codes_for_missing_values_are_missing_and_counted(tmp_path: Path, code: str) -> None:
    form = 'missing = ["-9", "K.A.!"]'
    table = opened(text(tmp_path, PLAINLY.replace("51.5", code)), form, drop=True)
    assert rows_in(table)[:, 0].tolist() == [40, 1060]
    assert f"Column 'age': {code!r} is read as a missing value: 1 value." in table.notes


def test_codes_of_typed_columns_are_missing_too() -> None:
    rows = pa.record_batch({"age": [40.0, -9.0, 60.0]})
    table = as_table(rows, [AGE], form=Form(missing=("-9",)), drop=True)
    assert rows_in(table).ravel().tolist() == [40, 60]


@pytest.mark.parametrize(
    ("date", "count", "wanted"),
    [
        ("1970-01-11", "days", 10.0),
        ("11.1.1970", "days", 10.0),
        ("1969-12-31", "days", -1.0),
        ("1980-01-01", "years", 1980.0),
        ("01.07.1981", "years", 1981 + 181 / 365),
        ("2000-12-31 12:00", "years", 2000 + 365.5 / 366),
    ],
)
def test_dates_count_as_days_or_years(tmp_path: Path, date: str, count: str, wanted: float) -> None:
    birth = Column(name="birth")
    data = text(tmp_path, f"id,birth\nx,{date}\n")
    table = opened(data, f'[columns.birth]\ndates = "{count}"', (birth,))
    assert rows_in(table)[0, 0] == pytest.approx(wanted, abs=1e-9)
    with pytest.raises(BadRows, match=r"which is a date; say in site.toml what it is to count as"):
        opened(data, "", (birth,))
    american = text(tmp_path, "id,birth\nx,01/11/1970\n")
    form = '[columns.birth]\ndates = "days"\nformat = "%m/%d/%Y"'
    assert rows_in(opened(american, form, (birth,)))[0, 0] == 10.0


def test_rows_without_any_value_are_left_out_whatever_was_agreed(tmp_path: Path) -> None:
    data = text(tmp_path, f"{PLAINLY},,,,\n, ,NA,,\n")
    filled = tuple(column.model_copy(update={"fill": 1}) for column in (AGE, LDL))
    for columns in (COLUMNS, filled):
        table = opened(data, columns=columns)
        assert len(rows_in(table)) == 3
        assert "2 rows without any value are left out." in table.notes
        assert (table.reasons, np.asarray(table.left_out[0:5]).tolist()) == (("no value at all",), [0, 0, 0, 1, 1])
    with refused(BadRows, "values-unusable", "row 4 below the header has no value"):
        opened(text(tmp_path, f"{PLAINLY}w,,,,\n"))


def test_whole_numbers_that_became_others_because_some_are_missing_are_categories_still() -> None:
    rows = pa.record_batch({"sex": [1.0, None, 0.0], "smoker": [1.0, 0.0, 1.0]})
    form = Form.model_validate({"columns": {"sex": {"aliases": {"1": "female", "0": "male"}}}})
    table = as_table(rows, [SEX, SMOKER], form=form, drop=True)
    assert rows_in(table).tolist() == [[1, 0, 1], [0, 1, 1]]
    assert "Column 'sex': '1' is read as 'female': 1 value." in table.notes


def test_a_sheet_of_several_is_chosen(tmp_path: Path) -> None:
    book = Workbook()
    book.active.append(["nothing"])
    sheet = book.create_sheet("2026")
    for row in (["id", "age", "ldl", "smoker", "sex"], ["x", 40, 2.5, 1, "female"]):
        sheet.append(row)
    with (tmp_path / "data.xlsx").open("wb") as file:
        book.save(file)
    assert rows_in(opened(tmp_path / "data.xlsx", 'sheet = "2026"')).tolist() == [ROWS[0]]
    with refused(BadRows, "sheets-several", "'2026'"):
        opened(tmp_path / "data.xlsx")


def test_all_that_is_wrong_is_told_at_once_with_counts(tmp_path: Path) -> None:
    lines = "".join(
        f"r{row},{row},{'old' if row % 10 == 3 else 2},yes,{'f' if row % 2 else 'm'}\n" for row in range(40)
    )
    data = text(tmp_path, f"id,years,ldl (mg/dL),smoker,sex\n{lines}")
    with pytest.raises(BadRows) as caught:
        opened(data)
    told = str(caught.value)
    assert told.startswith("4 things are wrong:\nThere is no column 'age'; the file has 'id', 'years'")
    assert "The file has 'ldl (mg/dL)', but column 'ldl' was agreed on in 'mmol/L'" in told
    assert "Column 'ldl', row 4 below the header holds 'old', which is not a number" in told
    assert "; so are 3 more rows." in told
    assert "Column 'sex', row 1 below the header holds 'm', and elsewhere 'f', which is none of the agreed" in told


def test_what_was_done_is_counted(tmp_path: Path) -> None:
    form = "[columns.age]\nfactor = 2\n[columns.sex.aliases]\nw = 'female'"
    notes = opened(text(tmp_path, PLAINLY.replace(",female", ",w").replace("age", "AGE")), form).notes
    assert "Columns are read under other names: 'AGE' as 'age'." in notes
    assert "Column 'age': multiplied by 2 (site.toml): 3 values." in notes
    assert "Column 'sex': 'w' is read as 'female': 2 values." in notes


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ("decimals = ','", "settings-invalid"),
        ("decimal = ','\nthousands = ','", "form-marks-alike"),
        ("encoding = 'utf-9'", "form-encoding-unknown"),
        ("header = 0", "settings-invalid"),
        ("separator = '::'", "form-separator"),
        ("[columns.age]\nfactor = 0", "form-factor"),
        ("[columns.weight]\nfactor = 2", "form-column-unknown"),
        ("[columns.sex.aliases]\nw = 'woman'", "form-alias-unknown"),
        ("decimal = ", "toml-invalid"),
        ("# " + "x" * 2**18, "settings-large"),
    ],
)
def test_a_form_that_cannot_be_obeyed_is_refused(tmp_path: Path, form: str, code: str) -> None:
    with refused(BadSettings, code):
        opened(text(tmp_path, PLAINLY), form)


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ("header = 9", "no-header"),
        ('[rename]\nyears = "age"', "rename-unknown"),
        ('[rename]\nage = "ldl"\nldl = "ldl"', "rename-twice"),
    ],
)
def test_a_form_that_does_not_fit_the_file_is_refused(tmp_path: Path, form: str, code: str) -> None:
    with refused(BadRows, code):
        opened(text(tmp_path, PLAINLY), form)


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "factor": st.floats(0.001, 1000),
        "offset": st.floats(-1000, 1000),
        "aliases": st.dictionaries(NAMES, NAMES, max_size=3),
        "missing": st.lists(NAMES, max_size=3),
        "dates": st.sampled_from(["days", "years"]),
    },
)


@given(
    st.fixed_dictionaries(
        {"rename": st.dictionaries(NAMES, NAMES, max_size=3), "columns": st.dictionaries(NAMES, VALUES, max_size=3)},
        optional={"decimal": st.just(","), "missing": st.lists(NAMES, max_size=3, unique=True), "sheet": NAMES},
    )
)
def test_a_form_that_is_written_is_read_again_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, said: dict[str, object]
) -> None:
    form = Form.model_validate(said)
    folder = tmp_path_factory.mktemp("site")
    (folder / "site.toml").write_text(form.text, encoding="utf-8")
    again = read_form(folder / "data.csv")
    assert again == form
    assert again.merged(AS_USUAL) == again


# --- numbers ---


@pytest.mark.parametrize(
    ("texts", "style"),
    [
        (["40", "60"], USUAL_STYLE),
        (["40", "54.7"], USUAL_STYLE),
        (["40", "54,7"], NumberStyle(",", ".")),
        (["0,250"], NumberStyle(",", ".")),
        (["1.250,5", "3.250"], NumberStyle(",", ".")),
        (["1,250.5", "3,250"], NumberStyle(".", ",")),
        (["3,250", "54.7"], NumberStyle(".", ",")),
        (["1,234,567"], NumberStyle(".", ",")),
        (["1 250,5"], NumberStyle(",", " ")),
        (["1\u202f250"], NumberStyle(".", " ")),
        (["1'250.5"], NumberStyle(".", "'")),
        (["3,250"], USUAL_STYLE),  # may be either, and is refused as a value
        (["54,7", "54.7"], USUAL_STYLE),  # two people wrote this
        (["abc", "12.3.2020", "A-1,5"], USUAL_STYLE),
    ],
)
def test_the_marks_of_numbers_are_told_by_the_digits_around_them(texts: list[str], style: NumberStyle) -> None:
    assert style_of(texts, AS_USUAL) == style


@given(
    st.lists(st.floats(-1e9, 1e9, width=32), min_size=1),
    st.sampled_from([(",", "."), (".", ","), (",", " "), (".", "'")]),
)
def test_numbers_in_every_style_are_the_same_numbers(numbers: list[float], marks: tuple[str, str]) -> None:
    decimal, thousands = marks
    texts = [f"{number:,.6f}".replace(",", "T").replace(".", decimal).replace("T", thousands) for number in numbers]
    wanted = [float(f"{number:.6f}") for number in numbers]
    np.testing.assert_array_equal(to_numbers(pa.array(texts), NumberStyle(decimal, thousands)), wanted)


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("70 %", "leave what stands beside '70' out of the cells"),
        ("\u20ac 70.5", "leave what stands beside '70.5' out of the cells"),
        ("27 kg/m2", "leave what stands beside '27' out of the cells"),
        ("<0.3", "which is a limit; write the number that is to stand for it"),
        ("5-10", "make the column boolean or a category"),
        ("12:30", "make the column boolean or a category"),
        (timedelta(1), "write numbers there"),
        ([1.5], "write numbers there"),
    ],
)
def test_what_is_no_number_has_a_remedy_of_its_own(value: object, remedy: str) -> None:
    assert remedy in fault_of(value)


def test_what_is_not_written_in_the_style_is_no_number() -> None:
    texts = pa.array(["1.5", "1.500", "15.00,5", "1,5", ""])
    found = to_numbers(texts, NumberStyle(",", "."))
    assert np.isnan(found).tolist() == [True, False, True, False, True]
    assert found[[1, 3]].tolist() == [1500, 1.5]
