"""A first federation.toml: nothing that few rows have is in it."""

import csv
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from goldfc.agreement import parse_agreement
from goldfc.errors import BadRows
from goldfc.site.init import Guess, agreement_text, guess_columns, nice_range
from sentences import refused


def table(folder: Path, columns: dict[str, list[object]], name: str = "data.csv") -> Path:
    lines = [";".join(columns), *(";".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / name


def written(found: Guess, missing: str = "refuse") -> str:
    text = agreement_text(
        "wards", found.columns, found.id_column, missing=missing, gaps=found.gaps, remarks=found.remarks
    )
    parse_agreement(text, "it")
    return text


def kinds(found: Guess) -> dict[str, str]:
    return {column.name: column.kind for column in found.columns}


WORDS = st.text("abcdefgh", min_size=6, max_size=9)


@settings(max_examples=60, deadline=None)
@given(
    common=st.lists(WORDS, min_size=2, max_size=4, unique=True),
    rare=st.lists(WORDS, min_size=1, max_size=6, unique=True),
    smallest=st.integers(5, 9),
    data=st.data(),
)
def test_no_value_that_few_rows_have_is_written(
    tmp_path_factory: pytest.TempPathFactory, common: list[str], rare: list[str], smallest: int, data: st.DataObject
) -> None:
    rare = [word for word in rare if word not in common]
    values: list[object] = [word for word in common for _ in range(smallest)]
    for word in rare:
        values += [word] * data.draw(st.integers(1, smallest - 1))
    # One patient is far older than all others, and one far younger.
    ages: list[object] = [30 + row % 40 for row in range(len(values))]
    ages[0], ages[-1] = 117.25, -3.75
    found = guess_columns([table(tmp_path_factory.mktemp("init"), {"word": values, "age": ages})], smallest=smallest)
    text = written(found)
    assert not set(rare) & set(re.findall(r"\w+", text))
    assert "117" not in text
    assert "3.75" not in text
    if len(common) >= 2:
        assert all(f'"{word}"' in text for word in common)
    assert ("values that fewer than" in text) == bool(rare)


def people(rng: np.random.Generator, smallest: int, n_rare: int, rare: np.random.Generator) -> dict[str, list[object]]:
    """A table of many columns, in each of which some rows have values of their own, which are made by `rare`."""
    n = 8 * smallest

    def word() -> str:
        return "".join(rare.choice(list("abcdefgh"), 8))

    def with_rare(common: list[object], value: Callable[[], object]) -> list[object]:
        for place in rng.choice(n, n_rare, replace=False):
            common[place] = value()
        return common

    cycle = [
        list[object](np.resize(words, n)) for words in (["heart", "lung"], ["yes", "no"], ["01", "02"], ["A", "a", "B"])
    ]
    return {
        "patient": list[object](f"P-{row}-{word()}" for row in range(n)),
        "ward": with_rare(cycle[0], word),
        "smoker": with_rare(cycle[1], word),
        "code": with_rare(cycle[2], lambda: f"0{rare.integers(10, 10**6)}"),
        "grade": with_rare(cycle[3], lambda: word().upper()),
        "age [years]": with_rare(list(range(20, 20 + n)), lambda: round(rare.uniform(200, 1e5), 3)),
        "balance": with_rare(list(range(n)), lambda: -round(rare.uniform(200, 1e5), 3)),
        "ldl": with_rare([2 + row % 7 / 10 for row in range(n)], lambda: f"{word()} {word()}"),
        "stay": with_rare([row % 9 for row in range(n)], lambda: f"{rare.integers(10, 99)} d"),
        "visits": with_rare([row % 9 for row in range(n)], lambda: rare.choice(["", "4"])),
        "born": list[object](f"{rare.integers(1, 28)}.3.19{rare.integers(10, 99)}" for _ in range(n)),
        "note": list[object](f"{word()}, {word()}" for _ in range(n)),
        "doctor": list[object](word() for _ in range(n)),
    }


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), smallest=st.integers(5, 8), n_tables=st.integers(1, 3))
def test_what_few_rows_have_may_be_anything_without_a_change_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, seed: int, smallest: int, n_tables: int
) -> None:
    split = np.bincount(np.arange(smallest - 1) % n_tables, minlength=n_tables)  # of the rare ones, over all tables
    texts = []
    for turn in range(2):
        folder = tmp_path_factory.mktemp("init")
        tables = [
            people(np.random.default_rng([seed, n]), smallest, n_rare, np.random.default_rng([seed, n, turn]))
            for n, n_rare in enumerate(split)
        ]
        paths = [table(folder, one, f"{number}.csv") for number, one in enumerate(tables)]
        texts.append(written(guess_columns(paths, smallest=smallest)))
    assert texts[0] == texts[1]
    names = re.findall(r'^name = "(.*)"', texts[0], flags=re.MULTILINE)
    assert names == ["ward", "smoker", "grade", "age", "balance", "visits"]
    assert texts[0].count("# range = ") == 3


def test_the_same_table_twice_is_one(tmp_path: Path) -> None:
    data = table(tmp_path, {"ward": [*["heart"] * 5, *["lung"] * 5, *["eye"] * 3], "x": [row % 4 for row in range(13)]})
    assert guess_columns([data, data]).columns[0].categories == ("heart", "lung")


@pytest.mark.parametrize(
    "row", ["p7,63.5,2.4,female", "p7,NA,2.4,male", "63,2,1,0", "female,lung", '"63,5","2,4",heart', "63.5,,2.4"]
)
def test_a_row_that_stands_in_place_of_the_header_names_no_columns(tmp_path: Path, row: str) -> None:
    values = next(csv.reader([row]))
    words = {"female": "male", "male": "female", "heart": "lung", "lung": "heart"}
    lines = [
        [words.get(value, value.replace("3", str(n % 7)).replace("2", str(n % 5))) for value in values]
        for n in range(9)
    ]
    with (tmp_path / "data.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([values, *lines, *[values] * 9])
    with refused(BadRows, "header-absent"):
        guess_columns([tmp_path / "data.csv"])


@pytest.mark.parametrize("names", [["2019", "2020"], ["0", "1", "2"], ["400.5", "402.25", "404.5", "409", "500"]])
def test_columns_may_be_called_by_numbers_that_count(tmp_path: Path, names: list[str]) -> None:
    columns: dict[str, list[object]] = {name: [row % (5 + len(names[0])) for row in range(30)] for name in names}
    assert list(kinds(guess_columns([table(tmp_path, columns)]))) == names


def test_a_table_without_rows_says_nothing_of_columns(tmp_path: Path) -> None:
    with refused(BadRows, "no-rows"):
        guess_columns([table(tmp_path, {"age": [], "sex": []})])


def test_a_name_that_no_agreement_can_have_is_left_out(tmp_path: Path) -> None:
    parquet.write_table(
        pa.table({"a\nb": [1.5, 2.5] * 9, " ": [2, 3] * 9, "age": [40, 50, 60] * 6}), tmp_path / "a.parquet"
    )
    found = guess_columns([tmp_path / "a.parquet"])
    assert list(kinds(found)) == ["age"]
    assert set(found.odd) == {"a\nb", " "}


def test_kinds_units_ids_dates_codes_and_remarks_are_told_apart(tmp_path: Path) -> None:
    n = 40
    columns: dict[str, list[object]] = {
        "patient": [f"P-{row:04d}" for row in range(n)],
        "weight [kg]": [f"{60 + row % 13}.5" for row in range(n)],
        "dead": [row % 2 for row in range(n)],
        "smoker": [("ja", "nein")[row % 2] for row in range(n)],
        "zip": [f"0{1000 + row % 9}" for row in range(n)],
        "born": [f"{1 + row % 28}.3.1980" for row in range(n)],
        "note": [f"fell at home, {row} times" for row in range(n)],
        "pain": [("none", "mild", "severe")[row % 3] for row in range(n)],
        "ward": [7] * n,
        "ldl": ["" if row % 4 == 0 else 2 + row % 5 / 10 for row in range(n)],
    }
    found = guess_columns([table(tmp_path, columns)])
    assert kinds(found) == {
        "weight": "number",
        "dead": "boolean",
        "smoker": "boolean",
        "pain": "category",
        "ward": "number",
        "ldl": "number",
    }
    assert found.id_column == "patient"
    assert found.columns[0].unit == "kg"
    assert found.columns[3].categories == ("mild", "none", "severe")
    assert "codes that begin with 0" in found.odd["zip"]
    assert "dates" in found.odd["born"]
    assert "text" in found.odd["note"]
    said = " ".join(found.said)
    assert "'ward' has the same value in all rows" in said
    assert "'ldl' has no value in 10 of 40 rows" in said
    text = written(found)
    assert '# To be decided by all: "ldl" have missing values' in text
    assert "# To be decided" not in written(found, "drop")
    assert 'unit = "kg"' in text
    assert "fell" not in text


def test_a_number_that_counts_the_rows_is_left_out_unless_it_is_asked_for(tmp_path: Path) -> None:
    data = table(tmp_path, {"nr": list(range(30)), "age": [row % 7 for row in range(30)]})
    found = guess_columns([data])
    assert (kinds(found), found.id_column) == ({"age": "number"}, "nr")
    assert kinds(guess_columns([data], ["nr", "age"])) == {"nr": "number", "age": "number"}
    numbered = table(tmp_path, {"position": list(range(30)), "age": [row % 7 for row in range(30)]})
    assert "looks like an id" in guess_columns([numbered]).odd["position"]


def test_several_tables_are_one_guess(tmp_path: Path) -> None:
    one = table(tmp_path, {"id": list(range(9)), "ward": ["heart"] * 9}, "a.csv")
    other = table(tmp_path, {"id": list(range(9)), "ward": ["lung"] * 9}, "b.csv")
    assert guess_columns([one, other]).columns[0].categories == ("heart", "lung")
    assert "no two values" in guess_columns([one]).odd["ward"]


def test_columns_and_values_that_are_written_otherwise_in_several_tables_are_one(tmp_path: Path) -> None:
    n = 12
    one = table(
        tmp_path,
        {"ldl [mmol/L]": [2 + row % 5 for row in range(n)], "sex": ["female", "male"] * 6, "on": ["yes", "no"] * 6},
    )
    folder = tmp_path / "other"
    folder.mkdir()
    columns: dict[str, list[object]] = {
        "LDL (mg/dL)": [80 + 9 * (row % 5) for row in range(n)],
        "Sex": ["FEMALE", "w"] * 6,
        "On": [1, 0] * 6,
        "Alter": list(range(40, 40 + n)),
        "mine": ["a", "b"] * 6,
    }
    other = table(folder, columns)
    (folder / "site.toml").write_text('[columns.sex.aliases]\nw = "male"\n', encoding="utf-8")
    found = guess_columns([one, other])
    assert kinds(found) == {"ldl": "number", "sex": "category", "on": "boolean"}
    assert found.columns[1].categories == ("female", "male")
    assert found.columns[0].unit == "mmol/L"
    assert "But 'ldl' is in 'mg/dL' in another table: whose it is must convert it." in found.said
    assert found.odd["mine"].startswith("only data.csv of 2 tables has it")
    text = written(found)
    assert 'in tables also in "mg/dL"' in text
    assert "# range" not in text


def test_a_value_that_few_write_in_one_way_is_written_in_small_letters(tmp_path: Path) -> None:
    words: list[object] = [*["HEART", "Heart", "heart"] * 2, *["LUNG"] * 5, "lung", *["Rare"] * 4]
    found = guess_columns([table(tmp_path, {"ward": words, "x": [row % 3 for row in range(len(words))]})])
    assert found.columns[0].categories == ("LUNG", "heart")
    assert "Rare" not in written(found)
    assert "rare" not in written(found)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_a_range_is_wider_than_what_it_was_made_of_and_round(low: float, width: float) -> None:
    first, last = nice_range(low, low + width)
    assert first <= low
    assert last >= low + width
    assert last - first < 50 * width
    assert (first < 0.0) <= (low < 0.0)


def test_a_large_table_is_not_kept(tmp_path: Path) -> None:
    data = table(tmp_path, {"id": list(range(20_000)), "age": [row * 7919 % 20_011 / 7 for row in range(20_000)]})
    found = guess_columns([data])
    assert kinds(found) == {"age": "number"}
    assert re.search(r"# range = \[0, \d+\]", written(found))
