"""A first federation.toml: nothing that few rows have is in it."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldfc.agreement import parse_agreement
from goldfc.site.init import Guess, agreement_text, guess_columns, nice_range


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
    assert not [word for word in rare if word in text]
    assert "117" not in text
    assert "3.75" not in text
    if len(common) >= 2:
        assert all(f'"{word}"' in text for word in common)
    assert ("values that fewer than" in text) == bool(rare)


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
