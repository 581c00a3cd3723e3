import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from goldfc_bench import datasets
from goldfc_bench.datasets import DATASETS, Table, data_folder, fetch, load, load_split, synthetic
from goldfc_bench.errors import DataNotFound
from needs import needs_data, needs_splits

# Fetched sets may have their rows in another order; with the paper's splits come the very files they point into.
every_set = pytest.mark.parametrize("name", DATASETS)


# --- The ten sets ---


def test_the_paper_has_ten_sets() -> None:
    assert list(DATASETS) == ["EC", "US", "VE", "EP", "YE", "CA", "LA", "WI", "PE", "LE"]


@needs_data
@every_set
def test_every_set_is_what_the_registry_says(name: str) -> None:
    facts, dataset = DATASETS[name], load(name, standardize=False)
    assert dataset.X.shape == (facts.n_rows, facts.n_features)
    assert len(dataset.feature_names) == facts.n_features
    assert dataset.n_clusters == facts.n_clusters
    assert np.bincount(dataset.y).tolist() == list(facts.class_counts.values())


@needs_splits
@every_set
def test_every_file_is_the_one_the_splits_point_into(name: str) -> None:
    assert _sha256(data_folder() / "full" / f"{name}.csv") == DATASETS[name].sha256


@needs_splits
@every_set
def test_every_row_of_a_split_is_the_row_it_points_to(name: str) -> None:
    split, complete = load_split(name), load(name)
    assert split.n_sites == 8
    assert np.abs(split.X - complete.X[split.row]).max() < 1e-8
    assert np.array_equal(split.y, complete.y[split.row])


@needs_splits
def test_sites_together_hold_all_rows_of_their_split() -> None:
    split = load_split("EC")
    assert np.array_equal(np.vstack(split.rows_per_site()), split.X)


# --- Sets that need no file ---


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits", "SD"])
def test_sets_without_a_file_load_everywhere(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOLDFC_DATA", str(tmp_path))
    dataset = load(name)
    assert dataset.X.shape == (len(dataset.y), len(dataset.feature_names))
    assert set(dataset.y.tolist()) == set(range(dataset.n_clusters))


def test_columns_are_standardised_with_the_population_deviation() -> None:
    X = load("wine").X
    assert np.allclose(X.mean(axis=0), 0.0)
    assert np.allclose(X.std(axis=0, ddof=0), 1.0)


def test_a_constant_column_is_exactly_zero() -> None:
    raw, scaled = load("digits", standardize=False), load("digits")
    constant = np.ptp(raw.X, axis=0) == 0.0
    assert constant.any()
    assert (scaled.X[:, constant] == 0.0).all()


def test_the_synthetic_set_is_always_the_same() -> None:
    assert load("SD").X.shape == (10_000, 10)
    assert load("SD").n_clusters == 5
    assert np.array_equal(load("SD").X, load("SD").X)


def test_synthetic_clusters_are_round_and_of_unit_variance() -> None:
    dataset = synthetic(5_000, 3, np.random.default_rng(1), n_clusters=4)
    for cluster in range(4):
        covariance = np.cov(dataset.X[dataset.y == cluster].T)
        assert np.allclose(covariance, np.eye(3), atol=0.15)


# --- The folder ---


def test_the_environment_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOLDFC_DATA", str(tmp_path))
    assert data_folder() == tmp_path


def test_otherwise_the_folder_is_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GOLDFC_DATA", raising=False)
    (tmp_path / "shared" / "data").mkdir(parents=True)
    (tmp_path / "checkout").mkdir()
    monkeypatch.chdir(tmp_path / "checkout")  # what lies next to it is nobody's business
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder() == tmp_path / "cache" / "goldfc"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_folder() == Path.home() / ".cache" / "goldfc"


# --- Refusals ---


def test_a_missing_set_says_where_it_was_looked_for_and_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GOLDFC_DATA", str(tmp_path))
    with pytest.raises(DataNotFound, match="goldfc-bench data fetch EC") as refusal:
        load("EC")
    assert str(tmp_path) in str(refusal.value)
    assert "GOLDFC_DATA" in str(refusal.value)


def test_a_missing_split_says_that_sites_can_be_simulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOLDFC_DATA", str(tmp_path))
    with pytest.raises(DataNotFound, match=r"cannot be fetched.*simulate_split") as refusal:
        load_split("EC")
    assert str(tmp_path) in str(refusal.value)


@pytest.mark.parametrize("use", [load, load_split, fetch])
def test_an_unknown_name_is_answered_with_the_known_ones(use: Callable[[str], object]) -> None:
    with pytest.raises(DataNotFound, match="EC, US, VE, EP, YE, CA, LA, WI, PE, LE"):
        use("../EC")


def test_a_file_that_is_another_set_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOLDFC_DATA", str(tmp_path))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "EC.csv").write_text("a,b,label\n1,2,cp\n")
    with pytest.raises(DataNotFound, match="336 rows of 7 values, but the file in the data folder has 1 of 2"):
        load("EC")


# --- Fetching, from sources made of the folder with the repairs undone ---


@needs_splits
@every_set
def test_a_fetched_set_is_the_papers_to_the_last_byte(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _serve(monkeypatch, UNDO.get(name, _unchanged)(_reference(name)))
    path = fetch(name, tmp_path)
    assert path == tmp_path / "full" / f"{name}.csv"
    assert _sha256(path) == DATASETS[name].sha256
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@needs_data
def test_a_fetched_set_can_be_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _serve(monkeypatch, _reference("EC"))
    monkeypatch.setenv("GOLDFC_DATA", str(tmp_path))
    fetch("EC")
    assert load("EC").X.shape == (336, 7)


@needs_data
def test_a_file_that_is_there_is_replaced_by_force_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _serve(monkeypatch, _reference("EC"))
    path = fetch("EC", tmp_path)
    path.write_text("precious", encoding="utf-8")
    with pytest.raises(DataNotFound, match=r"there already.*use --force"):
        fetch("EC", tmp_path)
    assert path.read_text(encoding="utf-8") == "precious"
    assert fetch("EC", tmp_path, force=True).stat().st_size > 1000


@needs_data
@pytest.mark.parametrize("spell", ["{}", "{}.", "{}.0"])
def test_classes_may_be_written_as_whole_numbers_or_fractions(
    spell: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wine = _reference("WI")
    spelt = tuple(spell.format(label) for label in wine.labels)
    _serve(monkeypatch, Table(wine.values, spelt, wine.feature_names))
    assert fetch("WI", tmp_path).is_file()


@needs_data
def test_without_a_declared_target_the_last_column_is_the_class(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    patients = _reference("EP")
    everything = np.column_stack([patients.values, np.array(patients.labels, dtype=np.float64)])
    bunch = SimpleNamespace(data=everything, target=None, feature_names=[*patients.feature_names, "staging"])
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: bunch)
    assert fetch("EP", tmp_path).is_file()


@needs_splits
def test_levels_may_be_numbered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spelt = _undo_us(_reference("US"))
    number = {"High": "1", "Low": "2", "Middle": "3", "Very Low": "4", "very_low": "5"}
    _serve(monkeypatch, Table(spelt.values, tuple(number[label] for label in spelt.labels), spelt.feature_names))
    assert _sha256(fetch("US", tmp_path)) == DATASETS["US"].sha256


@needs_splits
def test_cardiotocograms_may_come_as_named_rates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reference = _reference("CA")
    order = np.random.default_rng(0).permutation(21)
    names = tuple(reference.feature_names[column].upper() for column in order)
    _serve(monkeypatch, Table(reference.values[:, order], reference.labels, names))
    assert _sha256(fetch("CA", tmp_path)) == DATASETS["CA"].sha256


@needs_data
def test_the_malformed_vehicle_is_like_no_other() -> None:
    assert not (_reference("VE").values == datasets.VE_MALFORMED).all(axis=1).any()


@needs_data
def test_a_download_with_other_class_sizes_is_refused_and_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ecoli = _reference("EC")
    _serve(monkeypatch, Table(ecoli.values, ("im", *ecoli.labels[1:]), ecoli.feature_names))
    with pytest.raises(DataNotFound, match="class sizes of the download are not those of EC"):
        fetch("EC", tmp_path)
    assert list(tmp_path.iterdir()) == []


@needs_data
def test_a_download_that_lacks_rows_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ecoli = _reference("EC")
    _serve(monkeypatch, Table(ecoli.values[5:], ecoli.labels[5:], ecoli.feature_names))
    with pytest.raises(DataNotFound, match="336 rows of 7 values, but the download has 331 of 7"):
        fetch("EC", tmp_path)


@needs_data
def test_cardiotocograms_with_their_columns_in_another_order_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sheet = _undo_ca(_reference("CA"))
    _serve(monkeypatch, Table(sheet.values[:, ::-1], sheet.labels, sheet.feature_names))
    with pytest.raises(DataNotFound, match="columns of the download of CA"):
        fetch("CA", tmp_path)


def test_without_a_network_the_refusal_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unreachable(**_: Any) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", unreachable)
    with pytest.raises(
        DataNotFound, match=r"EC \(Ecoli\) could not be downloaded: no route to host; check the network"
    ):
        fetch("EC", tmp_path)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _reference(name: str) -> Table:
    dataset = load(name, standardize=False)
    return Table(dataset.X, tuple(dataset.class_names[label] for label in dataset.y), dataset.feature_names)


def _serve(monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """Stand in for OpenML, and for the one archive that comes from UCI."""
    bunch = SimpleNamespace(
        data=table.values, target=np.array(table.labels, dtype=object), feature_names=list(table.feature_names)
    )
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: bunch)
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: io.BytesIO(_landsat_archive(table)))


def _landsat_archive(table: Table) -> bytes:
    lines = [
        " ".join([*(f"{value:.0f}" for value in row), label]) + "\n"
        for row, label in zip(table.values, table.labels, strict=True)
    ]
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as parts:
        parts.writestr("sat.trn", "".join(lines[:4435]))
        parts.writestr("sat.tst", "".join(lines[4435:]))
    return archive.getvalue()


def _unchanged(table: Table) -> Table:
    return table


def _undo_us(table: Table) -> Table:
    """Two spellings: the first 24 of the class in one, the other 26 in the other."""
    spelt = np.array(table.labels, dtype=object)
    spelt[np.flatnonzero(spelt == "Very Low")[:24]] = "very_low"
    return Table(table.values, tuple(spelt.tolist()), table.feature_names)


def _undo_ve(table: Table) -> Table:
    values = np.insert(table.values, 752, datasets.VE_MALFORMED, axis=0)
    return Table(values, (*table.labels[:752], "bus", *table.labels[752:]), table.feature_names)


def _undo_ca(table: Table) -> Table:
    """Back to the nameless sheet of counts, over 2000 seconds; rates end on the half that is to be rounded up."""
    column = dict(zip(table.feature_names, table.values.T, strict=True))
    for rate in datasets.CA_RATES:
        column[rate] = np.maximum(np.round(column[rate] * 2000.0) - 1.0, 0.0)
    n = len(table.labels)
    column |= {"b": np.full(n, 10.0), "e": np.full(n, 2010.0), "LBE": column["LB"], "DR": np.zeros(n)}
    indicators = np.zeros((n, datasets.CTG_INDICATORS))
    values = np.column_stack([*(column[name] for name in datasets.CTG_SHEET), indicators])
    return Table(values, table.labels, tuple(f"V{number}" for number in range(1, values.shape[1] + 1)))


UNDO = {"US": _undo_us, "VE": _undo_ve, "CA": _undo_ca}
