"""Tables of numbers, categories and yes or no, from the files of three sites to labels."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.metrics import adjusted_rand_score as ari

from goldfc import Model, OneShotClustering, label
from goldfc._types import FloatArray, IntArray
from goldfc.agreement import read_agreement
from goldfc.cli import main
from goldfc.message.density import is_far
from goldfc.message.wire import decode
from goldfc.site.table.readers import read_all
from goldfc.site.table.table import as_table
from pages import text_of
from sites import rows_in, write_policy

SITES = {"east": (0, 1), "north": (1, 2), "west": (0, 1, 2)}
WARDS = ("heart", "lung", "skin")


def run(*words: str) -> str:
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def patients(kinds: tuple[int, ...], n_rows: int, seed: int) -> tuple[list[str], IntArray]:
    """Lines of a table, and the kind of every patient: no column alone tells them all apart."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(kinds, n_rows)
    age = np.array([30.0, 62.0, 62.0])[kind] + 6.0 * rng.normal(size=n_rows)
    grams = np.array([70_000.0, 70_000.0, 95_000.0])[kind] + 8_000.0 * rng.normal(size=n_rows)
    ward = np.where(rng.random(n_rows) < 0.8, np.array([0, 1, 1])[kind], 2)
    smokes = rng.random(n_rows) < np.array([0.8, 0.15, 0.85])[kind]
    lines = [
        f"{seed}-{row},{age[row]:.1f},{WARDS[ward[row]]},{grams[row]:.0f},{'yes' if smokes[row] else 'no'}"
        for row in range(n_rows)
    ]
    return lines, kind


@pytest.fixture
def truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, IntArray]:
    """Three sites with their tables and the federation file; what is known of their patients."""
    monkeypatch.chdir(tmp_path)
    known = {}
    for number, (name, kinds) in enumerate(SITES.items()):
        lines, known[name] = patients(kinds, 300 + 100 * number, number)
        (tmp_path / name).mkdir()
        table = "\n".join(["id,age,ward,grams,smokes", *lines]) + "\n"
        (tmp_path / name / "data.csv").write_text(table, encoding="utf-8")
    said = run("init", "west/data.csv", "--name", "mixed", "--id-column", "id")
    assert "4 columns: age (number), ward (category), grams (number), smokes (boolean)" in said
    return known


def labels_in(file: Path) -> tuple[IntArray, FloatArray, list[str]]:
    cells = [line.split(",") for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    _, cluster, certainty, far, _, _ = zip(*cells, strict=True)
    return np.array(cluster, dtype=np.int64), np.array(certainty, dtype=np.float64), list(far)


@pytest.mark.parametrize("options", [("-k", "3"), ()], ids=["number given", "number proposed"])
def test_mixed_tables_go_from_files_to_labels(
    tmp_path: Path, truth: dict[str, IntArray], options: tuple[str, ...]
) -> None:
    for name in SITES:
        run("summarize", f"{name}/data.csv", "-o", f"{name}.summary")
    said = run("inspect", "east.summary")
    assert "of each the mean of its rows (6 numbers)" in said
    assert "one 2 x 2 covariance of numbers" in said
    said = run("fuse", *(f"{name}.summary" for name in SITES), *options, "-o", "global.model")
    model = Model.from_message(decode((tmp_path / "global.model").read_bytes()))
    assert len(model.centroids) == 3
    assert f"What they are like: {model.why}." in said
    assert model.kind in {"shared", "own"}  # categories have no gaps
    assert model.proposal is not None
    assert model.asked == (3 if options else None)
    columns, found, known = read_agreement(tmp_path / "federation.toml").columns, [], []
    for name in SITES:
        run("label", f"{name}/data.csv", "--model", "global.model", "-o", f"{name}/labels.csv")
        cluster, certainty, far = labels_in(tmp_path / name / "labels.csv")
        rows = rows_in(as_table(read_all(tmp_path / name / "data.csv"), columns, id_column="id"))
        expected, sure = label(rows, model)
        np.testing.assert_array_equal(cluster, expected)
        np.testing.assert_allclose(certainty, sure, atol=6e-4)
        assert far == ["yes" if one else "no" for one in is_far(model, rows)]
        assert far.count("yes") <= 0.02 * len(far)
        found.append(cluster)
        known.append(truth[name])
    assert ari(np.concatenate(known), np.concatenate(found)) > 0.8
    assert [ari(one, other) > 0.7 for one, other in zip(known, found, strict=True)] == [True] * 3


@pytest.mark.usefixtures("truth")
def test_labels_of_mixed_tables_do_not_hang_on_the_private_folder(tmp_path: Path) -> None:
    for name in SITES:
        run("summarize", f"{name}/data.csv", "-o", f"{name}.summary")
    run("fuse", *(f"{name}.summary" for name in SITES), "-o", "global.model")
    written = []
    for out in ("with.csv", "without.csv"):
        run("label", "north/data.csv", "--model", "global.model", "-o", out)
        written.append((tmp_path / out).read_bytes())
        shutil.rmtree(tmp_path / "north" / ".goldfc", ignore_errors=True)
    assert written[0] == written[1]


@pytest.mark.usefixtures("truth")
@pytest.mark.parametrize("n_clusters", [3, None])
def test_by_files_and_in_one_process_rows_have_the_same_labels(tmp_path: Path, n_clusters: int | None) -> None:
    pandas = pytest.importorskip("pandas", reason="it is not installed")
    text = (tmp_path / "federation.toml").read_text(encoding="utf-8")
    # As in one process: nothing is rounded, and all rows count.
    plain = text.replace('privacy = "suppressed"', 'privacy = "plain"').replace("mass_cap = 1.0", "mass_cap = 100.0")
    (tmp_path / "federation.toml").write_text(plain, encoding="utf-8")
    agreed = read_agreement(tmp_path / "federation.toml")
    assert (agreed.privacy, agreed.limits.mass_cap) == ("plain", 100.0)
    for name in SITES:
        write_policy(tmp_path / name, "smallest = 1")
        run("summarize", f"{name}/data.csv", "-o", f"{name}.summary", "--accept-risk")
    options = () if n_clusters is None else ("-k", str(n_clusters))
    run("fuse", *(f"{name}.summary" for name in SITES), *options, "-o", "global.model")
    tables, found = [], []
    for name in SITES:
        run("label", f"{name}/data.csv", "--model", "global.model", "-o", f"{name}/labels.csv")
        found.append(labels_in(tmp_path / name / "labels.csv")[0])
        tables.append(pandas.read_csv(tmp_path / name / "data.csv").drop(columns="id"))
    groups = np.repeat(list(SITES), [len(table) for table in tables])
    fitted = OneShotClustering(n_clusters, random_state=0).fit(pandas.concat(tables), groups=groups)
    np.testing.assert_array_equal(fitted.labels_, np.concatenate(found))
    np.testing.assert_array_equal(fitted.predict(pandas.concat(tables)), np.concatenate(found))


@pytest.mark.usefixtures("truth")
def test_the_page_of_a_mixed_table_tells_shares_and_units(tmp_path: Path) -> None:
    for name in SITES:
        run("summarize", f"{name}/data.csv", "-o", f"{name}.summary")
    summaries = [f"{name}.summary" for name in SITES]
    run("fuse", *summaries, "-k", "3", "-o", "global.model")
    run("report", "global.model", *summaries)
    text = text_of((tmp_path / "report.html").read_text(encoding="utf-8"))
    for words in ("ward=heart", "smokes", "grams", "What they are like: clusters that are"):
        assert words in text
