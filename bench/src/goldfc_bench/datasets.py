"""The data of the experiments: ten public sets, the paper's site splits of them, and sets that need no file.

The package carries no data. Complete sets are `full/NAME.csv` and splits `splits/NAME.npz` in `data_folder()`;
`fetch` puts a complete set there for whoever has a network.
"""

import csv
import os
import urllib.request
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO, StringIO
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from goldfc._types import FloatArray
from goldfc.demo.data import Dataset, Split, bundled, scaled_columns
from goldfc.files import write_durably
from goldfc_bench.errors import DataNotFound


@dataclass(frozen=True)
class Table:
    """A data set as its source tells it: values, the class of every row in words, names of the columns."""

    values: FloatArray
    labels: tuple[str, ...]
    feature_names: tuple[str, ...]


def load(name: str, *, standardize: bool = True) -> Dataset:
    """A complete set by its abbreviation (EC ... LE), the synthetic SD, or one that scikit-learn carries.

    Columns are scaled to mean 0 and population standard deviation 1, as the paper does, unless told otherwise.
    """
    if name in DATASETS:
        dataset = _from_table(name, _read(_existing(name)))
    elif name in BUNDLED:
        dataset = bundled(name)
    elif name == SYNTHETIC:
        dataset = synthetic(10_000, 10, np.random.default_rng(0))
    else:
        raise DataNotFound(f"There is no data set {name!r}; the known ones are {', '.join(names())}.")
    scaled = scaled_columns(dataset.X) if standardize else dataset.X
    return Dataset(dataset.name, scaled, dataset.y, dataset.feature_names, dataset.class_names)


def load_csv(path: Path) -> Dataset:
    """A table of your own: a header, numbers, and in the last column the true class; standardised."""
    if not path.is_file():
        raise DataNotFound(f"There is no file {path}.")
    try:
        table = _read(path)
    except ValueError as reason:
        raise DataNotFound(f"{path} is not a table of numbers with the class in the last column: {reason}.") from reason
    classes, y = np.unique(table.labels, return_inverse=True)
    return Dataset(path.stem, scaled_columns(table.values), y.astype(np.int64), table.feature_names, tuple(classes))


def load_split(name: str) -> Split:
    """The paper's own eight sites of one of the ten sets; the values are standardised."""
    _facts(name)
    path = data_folder() / "splits" / f"{name}.npz"
    if not path.is_file():
        raise DataNotFound(
            f"The paper's split of {name} is not in {path.parent}; splits cannot be fetched: set GOLDFC_DATA to a "
            "folder that has them, or draw sites with goldfc.demo.split.simulate_split."
        )
    with np.load(path, allow_pickle=False) as arrays:
        return Split(name, arrays["X"], arrays["y"], arrays["client"], arrays["row"])


def synthetic(n_rows: int, n_features: int, rng: np.random.Generator, n_clusters: int = 5) -> Dataset:
    """SD: a mixture of round unit Gaussians of about equal size, their centres uniform in [-10, 10] per feature."""
    centres = rng.uniform(-10.0, 10.0, (n_clusters, n_features))
    y = rng.permutation(np.arange(n_rows, dtype=np.int64) % n_clusters)
    return Dataset(
        name=SYNTHETIC,
        X=centres[y] + rng.standard_normal((n_rows, n_features)),
        y=y,
        feature_names=tuple(f"x{feature}" for feature in range(n_features)),
        class_names=tuple(str(cluster) for cluster in range(n_clusters)),
    )


def well_separated(n_clusters: int, rng: np.random.Generator) -> Dataset:
    """Round unit Gaussians, at least a hundred rows each, whose centres are at least eight deviations apart."""
    n_features = int(rng.integers(5, 20, endpoint=True))
    centres = [rng.uniform(-12.0, 12.0, n_features)]
    while len(centres) < n_clusters:
        centre = rng.uniform(-12.0, 12.0, n_features)
        if min(np.linalg.norm(centre - other) for other in centres) >= SEPARATE:
            centres.append(centre)
    n_rows = max(1500, 100 * n_clusters)
    y = rng.permutation(np.arange(n_rows, dtype=np.int64) % n_clusters)
    return Dataset(
        name="separate",
        X=np.array(centres)[y] + rng.standard_normal((n_rows, n_features)),
        y=y,
        feature_names=tuple(f"x{feature}" for feature in range(n_features)),
        class_names=tuple(str(cluster) for cluster in range(n_clusters)),
    )


def fetch(name: str, folder: Path | None = None, *, force: bool = False) -> Path:
    """Download one of the ten sets, repair it as the paper's authors did, check it, and write `full/NAME.csv`.

    Nothing is written when the download is not the set the paper used. Its rows may come in another order.
    """
    facts = _facts(name)
    path = (folder or data_folder()) / "full" / f"{name}.csv"
    if path.exists() and not force:
        raise DataNotFound(f"{path} is there already, and splits may point into its rows; use --force to replace it.")
    try:
        table = facts.download(facts)
    except (OSError, ValueError, zipfile.BadZipFile) as reason:
        raise DataNotFound(
            f"{name} ({facts.title}) could not be downloaded: {reason}; check the network and try again, "
            "or set GOLDFC_DATA to a folder that has it."
        ) from reason
    table = facts.repair(table)
    _check(name, table, "the download")
    _write(path, table)
    return path


def data_folder() -> Path:
    """`GOLDFC_DATA`, or the user's cache."""
    if chosen := os.environ.get("GOLDFC_DATA"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "goldfc"


def names() -> tuple[str, ...]:
    """Everything `load` knows."""
    return (*DATASETS, SYNTHETIC, *BUNDLED)


# --- Downloads: where a set comes from ---


def from_openml(facts: "Facts") -> Table:
    """A table from OpenML; without a declared target, the last column is the class."""
    # Slow to import, and needed only here. The liac-arff parser is the one that works without pandas.
    from sklearn.datasets import fetch_openml  # noqa: PLC0415

    bunch = fetch_openml(data_id=facts.openml_id, as_frame=False, parser="liac-arff", cache=False)
    values, target, columns = bunch.data, bunch.target, tuple(bunch.feature_names)
    if target is None:
        values, target, columns = values[:, :-1], values[:, -1], columns[:-1]
    return Table(np.asarray(values, dtype=np.float64), _words(target), columns)


def from_uci_landsat(_: "Facts") -> Table:
    """LA from UCI: OpenML's copy lacks five of the rows."""
    address = "https://archive.ics.uci.edu/static/public/146/statlog+landsat+satellite.zip"
    with urllib.request.urlopen(address, timeout=60) as reply:
        archive = zipfile.ZipFile(BytesIO(reply.read()))
    rows = np.vstack([np.loadtxt(archive.open(part)) for part in ("sat.trn", "sat.tst")])
    columns = tuple(f"Attribute{number}" for number in range(1, rows.shape[1]))
    return Table(rows[:, :-1], _words(rows[:, -1]), columns)


def _words(target: Iterable[Any]) -> tuple[str, ...]:
    """Class names as the paper's splits have them: sources write the class 5 as 5, '5', '5.' or 5.0."""
    words = (str(label).strip() for label in target)
    return tuple(word.removesuffix("0").removesuffix(".") if word.endswith((".", ".0")) else word for word in words)


# --- Repairs: what the paper's authors did to the values ---


def as_it_is(table: Table) -> Table:
    """Nothing to repair."""
    return table


def drop_malformed_vehicle(table: Table) -> Table:
    """VE: the row that UCI's own table has shifted by one column, and that is in none of the paper's sites."""
    keep = [tuple(row) != VE_MALFORMED for row in table.values]
    return Table(table.values[keep], tuple(compress(table.labels, keep)), table.feature_names)


def merge_levels(table: Table) -> Table:
    """US: `very_low` and `Very Low` are one class. Sources spell or number the levels, so their sizes tell them."""
    sizes = Counter(table.labels)
    labels = tuple(US_LEVELS.get(sizes[label], label) for label in table.labels)
    return Table(table.values, labels, table.feature_names)


def keep_cardiotocogram(table: Table) -> Table:
    """CA: the 21 measurements, the six rates rounded half-up to three decimals (half-even is not what was used)."""
    column = _cardiotocogram_columns(table)
    if not _is_cardiotocogram(column):
        raise DataNotFound("The columns of the download of CA are not the known ones; its source must have changed.")
    column |= {rate: np.floor(column[rate] * 1000.0 + 0.5) / 1000.0 for rate in CA_RATES}
    return Table(np.column_stack([column[name] for name in CA_FEATURES]), table.labels, CA_FEATURES)


def _cardiotocogram_columns(table: Table) -> dict[str, FloatArray]:
    """By name where there are names. OpenML's columns have none: they are the sheet that has counts for rates."""
    spelling = {name.lower(): name for name in CTG_SHEET}
    names = [spelling.get(name.lower(), name) for name in table.feature_names]
    if len(names) != len(CTG_SHEET) + CTG_INDICATORS or "Width" in names:
        return dict(zip(names, table.values.T, strict=True))
    column = dict(zip(CTG_SHEET, table.values.T, strict=False))
    seconds = np.maximum(column["e"] - column["b"], 1.0)
    return column | {rate: column[rate] / seconds for rate in CA_RATES}


def _is_cardiotocogram(column: dict[str, FloatArray]) -> bool:
    """The histogram's width is its maximum less its minimum, and nothing happens more than once a second."""
    if not set(CA_FEATURES) <= set(column):
        return False
    fast = max(column[rate].max() for rate in CA_RATES)
    return bool(fast <= 1.0 and np.array_equal(column["Width"], column["Max"] - column["Min"]))


VE_MALFORMED = (100, 36, 73, 199, 73, 6, 162, 40, 20, 127, 189, 401, 125, 72, 6, 19, 200, 204)
US_LEVELS = {129: "Low", 122: "Middle", 102: "High", 50: "Very Low", 26: "Very Low", 24: "Very Low"}
CA_RATES = ("AC", "FM", "UC", "DL", "DS", "DP")
CA_FEATURES = (
    "LB", *CA_RATES, "ASTV", "MSTV", "ALTV", "MLTV", "Width", "Min", "Max", "Nmax", "Nzeros",
    "Mode", "Mean", "Median", "Variance", "Tendency",
)  # fmt: skip
# The sheet of counts: these columns, then indicators that only repeat the class.
CTG_SHEET = (
    "b", "e", "LBE", "LB", "AC", "FM", "UC", "ASTV", "MSTV", "ALTV", "MLTV", "DL", "DS", "DP", "DR", "Width", "Min",
    "Max", "Nmax", "Nzeros", "Mode", "Mean", "Median", "Variance", "Tendency",
)  # fmt: skip
CTG_INDICATORS = 10


# --- The facts, by which files and downloads are checked ---


@dataclass(frozen=True)
class Facts:
    """What is known of a set: its classes, in the order the paper's splits number them, and where it comes from."""

    title: str
    n_features: int
    class_counts: dict[str, int]
    sha256: str  # of the csv the paper's splits point into
    openml_id: int
    repair: Callable[[Table], Table] = as_it_is
    download: Callable[["Facts"], Table] = from_openml

    @property
    def n_rows(self) -> int:
        """n, the number of rows."""
        return sum(self.class_counts.values())

    @property
    def n_clusters(self) -> int:
        """k*, the number of classes."""
        return len(self.class_counts)


def _counts(text: str) -> dict[str, int]:
    """`one 3, the other 4` -> {"one": 3, "the other": 4}."""
    pairs = (entry.rsplit(maxsplit=1) for entry in text.split(","))
    return {label.strip(): int(count) for label, count in pairs}


DATASETS: dict[str, Facts] = {
    "EC": Facts(
        "Ecoli",
        7,
        _counts("cp 143, im 77, pp 52, imU 35, om 20, omL 5, imL 2, imS 2"),
        "97cfb7aa06d5bb67076976b3a10799871b3dfd061a5da8704fcb06ae249c8151",
        openml_id=39,
    ),
    "US": Facts(
        "User Knowledge Modeling",
        5,
        _counts("Very Low 50, Low 129, Middle 122, High 102"),
        "b09e112bb4a9a9f4272c388f87a098526162511ed13413fcd0bf845c2402d012",
        openml_id=1508,
        repair=merge_levels,
    ),
    "VE": Facts(
        "Vehicle Silhouettes",
        18,
        _counts("opel 212, saab 217, bus 217, van 199"),
        "9e05156b5c46d66324f44e1c6520dfa4fba00f7729a186d540a0108d7683e6f0",
        openml_id=54,
        repair=drop_malformed_vehicle,
    ),
    "EP": Facts(
        "Hepatitis C Virus for Egyptian Patients",
        28,
        _counts("1 336, 2 332, 3 355, 4 362"),
        "7ec8ff3ed9d0a5a2bc673d4323527a7db832f6eab1d4574816b3f113d21e3425",
        openml_id=46607,
    ),
    "YE": Facts(
        "Yeast",
        8,
        _counts("MIT 244, VAC 30, EXC 35, CYT 463, NUC 429, ME1 44, ME2 51, ME3 163, POX 20, ERL 5"),
        "cf766174a6e3c09f246ecda3bbf11034cea437706bd8aee7eee448660970ef77",
        openml_id=181,
    ),
    "CA": Facts(
        "Cardiotocography",
        21,
        _counts("1 384, 2 579, 3 53, 4 81, 5 72, 6 332, 7 252, 8 107, 9 69, 10 197"),
        "cbc23e5fabe6f20a78d29021820a00ac4c724adb3d664dfbf2a283aaa088d40b",
        openml_id=1466,
        repair=keep_cardiotocogram,
    ),
    "LA": Facts(
        "Landsat Satellite",
        36,
        _counts("1 1533, 2 703, 3 1358, 4 626, 5 707, 7 1508"),
        "1c730c4366ff7965be1af5841c7d1bb322f661b8e49636377ae20f307c674732",
        openml_id=182,
        download=from_uci_landsat,
    ),
    "WI": Facts(
        "Wine Quality",
        11,
        _counts("3 30, 4 216, 5 2138, 6 2836, 7 1079, 8 193, 9 5"),
        "d4dd8489bbcd24e93072fa16374a30deef793dbc4221728d4c1bf4eb6c7f62bc",
        openml_id=287,
    ),
    "PE": Facts(
        "Pen-Based Recognition of Handwritten Digits",
        16,
        _counts("0 1143, 1 1143, 2 1144, 3 1055, 4 1144, 5 1055, 6 1056, 7 1142, 8 1055, 9 1055"),
        "3bda5443d2f2abd75d57f41559d434a5559445fe2f4f974bc2f9e24bb81da0c7",
        openml_id=32,
    ),
    "LE": Facts(
        "Letter Recognition",
        16,
        _counts(
            "A 789, B 766, C 736, D 805, E 768, F 775, G 773, H 734, I 755, J 747, K 739, L 761, M 792, "
            "N 783, O 753, P 803, Q 783, R 758, S 748, T 796, U 813, V 764, W 752, X 787, Y 786, Z 734"
        ),
        "b0788516afc11b68d3d8684dbe2a35544d37dbbe0e2fc52964ee8c1c9c45f86e",
        openml_id=6,
    ),
}
BUNDLED = ("iris", "wine", "breast_cancer", "digits")
SYNTHETIC = "SD"
SEPARATE = 8.0  # deviations between the centres of clusters that everybody can tell apart


def _facts(name: str) -> Facts:
    if name not in DATASETS:
        raise DataNotFound(f"{name!r} is not one of the paper's ten sets: {', '.join(DATASETS)}.")
    return DATASETS[name]


def _check(name: str, table: Table, what: str) -> None:
    """Refuse a table that is not the set it claims to be."""
    facts = DATASETS[name]
    wanted, found = (facts.n_rows, facts.n_features), table.values.shape
    if found != wanted:
        raise DataNotFound(
            f"{name} has {wanted[0]} rows of {wanted[1]} values, but {what} has {found[0]} of {found[1]}; "
            "set GOLDFC_DATA to a folder that has the set as the paper used it."
        )
    if Counter(table.labels) != facts.class_counts or not np.isfinite(table.values).all():
        raise DataNotFound(
            f"The values or class sizes of {what} are not those of {name} ({facts.title}); "
            "set GOLDFC_DATA to a folder that has the set as the paper used it."
        )


# --- Files ---


def _existing(name: str) -> Path:
    path = data_folder() / "full" / f"{name}.csv"
    if not path.is_file():
        raise DataNotFound(
            f"{name} ({DATASETS[name].title}) is not in {path.parent}; get it with `goldfc-bench data fetch {name}`, "
            "or set GOLDFC_DATA to a folder that has full/ and splits/."
        )
    return path


def _read(path: Path) -> Table:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return Table(
        values=np.array([row[:-1] for row in rows], dtype=np.float64),
        labels=tuple(row[-1] for row in rows),
        feature_names=tuple(header[:-1]),
    )


def _write(path: Path, table: Table) -> None:
    """Whole or not at all: a broken download never leaves half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*table.feature_names, "label"])
    for row, label in zip(table.values, table.labels, strict=True):
        writer.writerow([*(np.format_float_positional(value, trim="-") for value in row), label])
    write_durably(path, text.getvalue().encode())


def _from_table(name: str, table: Table) -> Dataset:
    _check(name, table, "the file in the data folder")
    classes = tuple(DATASETS[name].class_counts)
    number = {label: position for position, label in enumerate(classes)}
    y = np.array([number[label] for label in table.labels], dtype=np.int64)
    return Dataset(name, table.values, y, table.feature_names, classes)
