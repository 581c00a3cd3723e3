"""Make the tables of three hospitals: the same four kinds of patients, but no hospital sees all of them."""

import csv
from pathlib import Path

import numpy as np

# Of every kind: mean age, blood pressure and glucose; how many smoke; how many come as an emergency.
KINDS = np.array([[40.0, 124.0, 4.9], [62.0, 155.0, 7.8], [74.0, 132.0, 5.6], [24.0, 104.0, 4.2]])
SPREAD = np.array([4.0, 6.0, 0.4])
SMOKERS, EMERGENCIES = np.array([0.1, 0.8, 0.1, 0.1]), np.array([0.03, 0.05, 0.97, 0.03])
HOSPITALS = {
    "north": (420, [0.55, 0.45, 0.0, 0.0]),
    "south": (310, [0.0, 0.4, 0.6, 0.0]),
    "west": (380, [0.2, 0.0, 0.3, 0.5]),
}


def write_hospital(folder: Path, name: str, n_rows: int, shares: list[float], rng: np.random.Generator) -> None:
    """One table; `truth.csv` has the kinds, for whoever wants to check."""
    kind = rng.choice(len(KINDS), n_rows, p=shares)
    values = np.round(KINDS[kind] + rng.normal(size=(n_rows, 3)) * SPREAD, 1)
    smoker, emergency = rng.random(n_rows) < SMOKERS[kind], rng.random(n_rows) < EMERGENCIES[kind]
    with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["patient", "age", "pressure", "glucose", "smoker", "admission"])
        for number in range(n_rows):
            yes_or_no = "yes" if smoker[number] else "no"
            admission = "emergency" if emergency[number] else "planned"
            writer.writerow([f"{name}-{number:03}", *values[number], yes_or_no, admission])
    with (folder / f"{name}.truth.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["patient", "kind"], *([f"{name}-{n:03}", k] for n, k in enumerate(kind))])


def main() -> None:
    """All three, into the current folder, each in a folder of its own."""
    rng = np.random.default_rng(2026)
    for name, (n_rows, shares) in HOSPITALS.items():
        Path(name).mkdir(exist_ok=True)
        write_hospital(Path(name), name, n_rows, shares, rng)


if __name__ == "__main__":
    main()
