"""Tables of five hospitals as real files are: other formats, encodings, decimal marks, units, names and codes.

    python examples/five-tables/make_data.py FOLDER

Made up: three kinds of patients, of which no hospital sees all alike. `kind.csv` beside each table says which is
which; no command reads it.
"""

import csv
import gzip
import sys
from pathlib import Path

import numpy as np
from openpyxl import Workbook

KINDS = {  # age, ldl in mmol/L, weight in kg, share of smokers, share of women
    0: (34, 2.6, 68, 0.15, 0.7),
    1: (58, 4.9, 92, 0.6, 0.3),
    2: (76, 3.4, 71, 0.1, 0.55),
}
SITES = {"oslo": (0, 1, 2), "berlin": (0, 1), "chicago": (1, 2), "delhi": (0, 2), "espoo": (0, 1, 2)}


def patients(name: str, kinds: tuple[int, ...], n_rows: int = 400) -> list[dict[str, object]]:
    """Patients of one hospital."""
    rng = np.random.default_rng([7, *name.encode()])
    found = list[dict[str, object]]()
    for number in range(n_rows):
        kind = int(rng.choice(kinds))
        age, ldl, weight, smoker, female = KINDS[kind]
        found.append(
            {
                "patient": f"{name[0].upper()}-{rng.integers(10**6):06d}-{number:03d}",
                "age": int(np.clip(rng.normal(age, 6), 18, 99)),
                "ldl": round(float(rng.normal(ldl, 0.5)), 2),
                "weight": round(float(rng.normal(weight, 7)), 1),
                "smoker": bool(rng.random() < smoker),
                "sex": "female" if rng.random() < female else "male",
                "kind": kind,
            }
        )
    return found


def write_text(path: Path, rows: list[list[object]], *, separator: str = ",", encoding: str = "utf-8") -> None:
    """As a table in text, packed if it is called so."""
    lines = "".join(separator.join(map(str, row)) + "\r\n" for row in rows).encode(encoding)
    path.write_bytes(gzip.compress(lines, mtime=0) if path.suffix == ".gz" else lines)


def oslo(folder: Path, rows: list[dict[str, object]]) -> None:
    """A plain table."""
    names = ["patient", "age", "ldl [mmol/L]", "weight [kg]", "smoker", "sex"]
    table = [[row[name.split(" ")[0]] for name in names] for row in rows]
    text = [
        [{True: "yes", False: "no"}.get(cell, cell) if isinstance(cell, bool) else cell for cell in row]
        for row in table
    ]
    write_text(folder / "patients.csv", [list[object](names), *text])


def berlin(folder: Path, rows: list[dict[str, object]]) -> None:
    """German: semicolons, decimal commas, cp1252, other names, w and m."""
    table: list[list[object]] = [["Patient", "Alter", "LDL", "Weight", "Smoker", "Sex", "Straße"]]
    for row in rows:
        ldl, weight = (str(row[name]).replace(".", ",") for name in ("ldl", "weight"))
        sex, smokes = "w" if row["sex"] == "female" else "m", "ja" if row["smoker"] else "nein"
        table.append([row["patient"], row["age"], ldl, weight, smokes, sex, "Königsallee"])
    write_text(folder / "patienten.csv", table, separator=";", encoding="cp1252")


def chicago(folder: Path, rows: list[dict[str, object]]) -> None:
    """Packed, cholesterol in mg/dL, pounds, values that are missing in several ways."""
    table: list[list[object]] = [["Patient", "AGE", "ldl (mg/dL)", "weight (lb)", "Smoker", "Sex"]]
    for number, row in enumerate(rows):
        ldl: object = round(float(str(row["ldl"])) * 38.67)
        if number % 40 == 0:
            ldl = ("-", "#N/A", -9)[number // 40 % 3]
        weight = round(float(str(row["weight"])) * 2.2046, 1)
        table.append([row["patient"], row["age"], ldl, weight, "Y" if row["smoker"] else "N", str(row["sex"]).upper()])
    write_text(folder / "export.csv.gz", table)


def delhi(folder: Path, rows: list[dict[str, object]]) -> None:
    """A workbook with two sheets."""
    book = Workbook()
    book.active.append(["made by", "the records office"])
    book.active.append(["questions to", "records@example.org"])
    sheet = book.create_sheet("2026")
    sheet.append(["patient", "age", "ldl", "weight", "smoker", "sex"])
    for row in rows:
        sheet.append([row["patient"], row["age"], row["ldl"], row["weight"], int(bool(row["smoker"])), row["sex"]])
    with (folder / "records.xlsx").open("wb") as file:
        book.save(file)


def espoo(folder: Path, rows: list[dict[str, object]]) -> None:
    """What a spreadsheet calls Unicode text: UTF-16, tabs, and a column in another order."""
    table: list[list[object]] = [["sex", "smoker", "weight", "ldl", "age", "patient"]]
    for number, row in enumerate(rows):
        age = "." if number == 17 else row["age"]
        sex = str(row["sex"]).capitalize()
        table.append([sex, "TRUE" if row["smoker"] else "FALSE", row["weight"], row["ldl"], age, row["patient"]])
    write_text(folder / "data.txt", table, separator="\t", encoding="utf-16")


def main(folder: Path) -> None:
    """All of them."""
    for write in (oslo, berlin, chicago, delhi, espoo):
        own = folder / write.__name__
        own.mkdir(parents=True, exist_ok=True)
        rows = patients(write.__name__, SITES[write.__name__])
        write(own, rows)
        with (own / "kind.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["patient", "kind"], *([row["patient"], row["kind"]] for row in rows)])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
