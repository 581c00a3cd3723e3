"""A result can be looked at: as tables, plots, a page and in a notebook; a name is text in all of them."""

import csv
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import sklearn
from click.testing import CliRunner
from matplotlib import pyplot as plt
from sklearn.exceptions import NotFittedError

import goldfc
from goldfc import GOLD, Model, OneShotClustering, Summary, fuse
from goldfc.cli import main
from goldfc.errors import BadMessage, BadSettings
from goldfc.learning.proposal import Candidate, Proposal
from goldfc.message.columns import Column, Terms
from goldfc.message.wire import encode
from goldfc.names import NAMES_FILE
from goldfc.randomness import generator
from goldfc.report.listing import csv_of, is_csv_of_result
from goldfc.server.one_shot import fusion_of
from pages import tags_of
from sentences import refused
from sites import NAMES, Keys, agreement, summary_of

EVIL = "=cmd|' /C calc'!A0 <script>alert(1)</script> $x^{$"
PLOTS = ("plot_map", "plot_evidence", "plot_levels", "plot_profiles")

mpl.use("agg")


@pytest.fixture(scope="module")
def summaries() -> list[Summary]:
    return [summary_of(number, name, agreement())[0] for number, name in enumerate(NAMES)]


@pytest.fixture(scope="module")
def model(summaries: list[Summary]) -> Model:
    return fuse(summaries, None, fusion_of(agreement()), generator(0, "server"))


@pytest.fixture(scope="module")
def patients() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=300)
    return pd.DataFrame(
        {
            EVIL: np.array([20.0, 50.0, 80.0])[kind] + rng.normal(scale=3.0, size=300),
            "smoker": rng.random(300) < np.array([0.9, 0.1, 0.1])[kind],
            "ward": np.array(["<b>red</b>", "@blue", "green"])[(kind + (rng.random(300) < 0.05)) % 3],
        }
    )


@pytest.fixture(scope="module")
def fitted(patients: pd.DataFrame) -> OneShotClustering:
    return OneShotClustering(random_state=0).fit(patients, groups=["a", "b", "<i>"] * 100)


@pytest.fixture(autouse=True)
def figures_are_closed() -> Any:
    yield
    plt.close("all")


# --- tables


def test_every_cluster_has_a_line_and_shares_add_up(model: Model, summaries: list[Summary]) -> None:
    told = model.clusters()
    assert told["cluster"].tolist() == model.ids.tolist()
    assert told["share"].sum() == pytest.approx(1.0)
    assert told["rows"].sum() == pytest.approx(sum(one.rows or 0.0 for one in summaries), rel=0.05)
    assert told["micro_clusters"].sum() == len(model.micro_labels)
    assert set(", ".join(told["sites"]).split(", ")) == set(NAMES)
    assert told["sets_apart"].str.contains("age .* years").all()


def test_profiles_are_what_the_model_tells(model: Model) -> None:
    told = model.profiles()
    means = told.pivot_table(index="cluster", columns="column", values="mean")[["age", "pressure"]]
    assert np.array_equal(means.to_numpy(), model.centroids)
    assert (told["spread"] > 0.0).all()
    assert set(told["unit"]) == {"years", "mmHg"}


def test_a_contrast_is_the_same_the_other_way_round(model: Model) -> None:
    one, other = model.contrast(0, 1), model.contrast(1, 0)
    assert one["apart"].abs().is_monotonic_decreasing
    assert (one["apart"] == -other["apart"]).all()
    assert (one["first"] == other["second"]).all()


def test_clusters_are_known_by_number_and_by_name_and_others_are_refused(model: Model) -> None:
    named = model.called({0: "young", 1: "old"})
    assert named.contrast("young", "1").equals(model.contrast(0, 1))
    with refused(BadSettings, "cluster-unknown", "'middle'", "0 young"):
        named.contrast("middle", 0)


def test_names_are_in_tables_and_the_model_stays_what_it_is(model: Model) -> None:
    named = model.called({0: "young"})
    assert named.clusters()["name"].tolist()[:2] == ["young", ""]
    assert set(named.profiles()["name"]) == {"young", ""}
    assert (model.clusters()["name"] == "").all()
    assert named.fingerprint == model.fingerprint


def test_names_that_no_file_could_have_are_refused(model: Model) -> None:
    with refused(BadSettings, "text-not-printable"):
        model.called({0: "a\u202eb"})
    with pytest.raises(BadSettings):
        model.called({0: "same", 1: "same"})


def test_without_pandas_a_table_is_of_polars_and_without_both_it_is_lines(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = model.clusters()
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(DataFrame=lambda lines: ("polars", lines)))
    library, lines = model.clusters()
    assert library == "polars"
    monkeypatch.setitem(sys.modules, "polars", None)
    assert model.clusters() == lines == frame.to_dict("records")


def test_a_table_for_spreadsheets_has_every_column_in_every_cluster_and_no_formula(fitted: OneShotClustering) -> None:
    content = csv_of(fitted.called({0: EVIL})._result())
    assert is_csv_of_result(content[:4096])
    lines = list(csv.reader(StringIO(content.decode())))
    assert len(lines) == 1 + fitted.n_clusters_ * 5
    numbers = [cell for line in lines for cell in line if cell.startswith("-")]
    assert all(float(cell) <= 0.0 for cell in numbers)
    assert not [cell for line in lines for cell in line if cell.startswith(("=", "@", "+"))]
    assert {f"'{EVIL}"} <= {line[1] for line in lines} & {line[2] for line in lines}


# --- an estimator


def test_an_estimator_tells_columns_and_categories_by_their_names(fitted: OneShotClustering) -> None:
    assert set(fitted.profiles()["column"]) == {EVIL, "smoker", "ward=<b>red</b>", "ward=@blue", "ward=green"}
    assert "x0" in fitted.model_.terms.feature_names  # no message does


def test_an_estimator_counts_its_rows_as_it_labelled_micro_clusters(fitted: OneShotClustering) -> None:
    own = np.bincount(fitted.micro_labels_, weights=fitted.micro_mass_)
    assert fitted.clusters()["rows"].tolist() == own.tolist()
    assert fitted.micro_mass_.sum() == 300.0


def test_before_it_is_fitted_there_is_nothing_to_look_at() -> None:
    with pytest.raises(NotFittedError):
        OneShotClustering().clusters()
    assert "goldfc" not in OneShotClustering()._repr_html_()


def test_the_papers_method_can_be_looked_at_too(patients: pd.DataFrame) -> None:
    gold = GOLD(3, random_state=0).fit(patients.iloc[:, :2].to_numpy(dtype=float), groups=["a", "b"] * 150)
    assert len(gold.clusters()) == gold.n_clusters_
    assert gold.plot_map().get_title().startswith(f"{len(gold.micro_mass_)} micro-clusters")


# --- files


def test_what_is_in_a_file_is_opened_and_says_what_it_is(
    model: Model, summaries: list[Summary], tmp_path: Path
) -> None:
    (tmp_path / "global.model").write_bytes(encode(model.to_message()))
    (tmp_path / "east.summary").write_bytes(encode(summaries[0].to_message()))
    opened, summary = goldfc.load(tmp_path / "global.model"), goldfc.load(str(tmp_path / "east.summary"))
    assert isinstance(opened, Model)
    assert repr(opened).startswith(f"<Model {model.fingerprint}: {len(model.centroids)} clusters from ")
    assert repr(summary).startswith("<Summary of site 'east': ")
    (tmp_path / NAMES_FILE).write_text('[[clusters]]\nid = 1\nname = "old"\n', encoding="utf-8")
    named = goldfc.load(tmp_path / "global.model")
    assert isinstance(named, Model)
    assert named.clusters()["name"][1] == "old"
    assert opened.called(tmp_path / NAMES_FILE).clusters().equals(named.clusters())


def test_what_is_sealed_or_no_message_is_not_opened(tmp_path: Path) -> None:
    keys, what = Keys.new(), agreement()
    sealed = keys.sealed(encode(summary_of(0, "east", what)[0].to_message()), "east", keys.agreement())
    for content in (sealed, b"age,pressure\n1,2\n"):
        (tmp_path / "some.file").write_bytes(content)
        with pytest.raises(BadMessage, match=r"some\.file"):
            goldfc.load(tmp_path / "some.file")


def test_the_page_is_that_of_the_command_line(model: Model, fitted: OneShotClustering, tmp_path: Path) -> None:
    model.report(tmp_path / "model.html")
    fitted.called({0: EVIL}).report(str(tmp_path / "estimator.html"))
    page = (tmp_path / "estimator.html").read_text(encoding="utf-8")
    assert tags_of(page).count("script") == tags_of((tmp_path / "model.html").read_text(encoding="utf-8")).count(
        "script"
    )
    assert "i" not in tags_of(page)


# --- notebooks


def test_names_in_a_notebook_are_text(fitted: OneShotClustering, summaries: list[Summary]) -> None:
    proposal = Proposal((1, 2), (0.0, 1.0), (Candidate(2, EVIL),))
    strange = replace(summaries[0], terms=Terms.model_construct(columns=(Column(name=EVIL), Column(name="<b>"))))
    named = replace(fitted.model_, proposal=proposal).called({0: EVIL})
    for fragment in (fitted._repr_html_(), named._repr_html_(), strange._repr_html_(), proposal._repr_html_()):
        own = fragment[fragment.rindex('<div class="goldfc">') :]
        assert "&lt;script&gt;" in own
        assert not {"script", "i", "img"} & set(tags_of(own))


def test_a_notebook_shows_an_estimator_as_scikit_learn_does_and_what_came_out(fitted: OneShotClustering) -> None:
    shown = fitted._repr_html_()
    assert "sk-estimator" in shown
    assert shown.index("sk-estimator") < shown.index('<div class="goldfc">')
    assert fitted._repr_mimebundle_()["text/html"].count('<div class="goldfc">') == 1
    with sklearn.config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
        assert list(fitted._repr_mimebundle_()) == ["text/plain"]


def test_of_very_many_clusters_a_notebook_shows_the_largest() -> None:
    centres = np.stack(np.meshgrid(range(6), range(6)), axis=-1).reshape(-1, 2) * 20.0
    rows = np.repeat(centres, 30, axis=0) + np.random.default_rng(0).normal(size=(1080, 2))
    fitted = OneShotClustering(36, random_state=0).fit(rows)
    assert f"And {fitted.n_clusters_ - 30} smaller clusters more." in fitted._repr_html_()


# --- plots


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_draws_into_given_axes_or_new_ones(fitted: OneShotClustering, name: str) -> None:
    named = fitted.called({0: EVIL})
    new = getattr(named, name)()
    new.figure.canvas.draw()  # no name is taken for a formula
    assert new.has_data()
    given = plt.figure().add_subplot()
    assert getattr(named, name)(given) is given
    assert given.has_data()


def test_the_map_of_an_estimator_shows_micro_clusters_and_that_of_a_model_means(
    fitted: OneShotClustering, model: Model
) -> None:
    assert len(np.asarray(fitted.plot_map().collections[0].get_offsets())) == len(fitted.micro_mass_)
    assert len(np.asarray(model.plot_map().collections[0].get_offsets())) == len(model.centroids)


def test_the_number_that_was_taken_is_marked_on_the_curve(model: Model) -> None:
    proposal = Proposal((1, 2, 3, 4, 5), (0.0, 1.0, 3.0, 2.0, 1.0), (Candidate(3, "best"), Candidate(5, "peak")))
    ax = replace(model, proposal=proposal).plot_evidence()
    taken = len(model.centroids)
    filled = {line.get_fillstyle(): line.get_xdata() for line in ax.lines[1:]}
    assert np.asarray(filled["full"]).tolist() == [taken]
    assert sorted(text.get_text() for text in ax.texts) == sorted({"3", "5", str(taken)})


def test_where_numbers_were_not_weighed_there_is_no_evidence(model: Model) -> None:
    with refused(BadSettings, "no-proposal"):
        replace(model, proposal=None).plot_evidence()


@pytest.mark.parametrize("name", PLOTS)
def test_without_matplotlib_a_plot_says_what_to_install(
    model: Model, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with refused(BadSettings, "no-matplotlib"):
        getattr(model, name)()


# --- the command


@pytest.fixture
def folder(model: Model, tmp_path: Path) -> Path:
    (tmp_path / "global.model").write_bytes(encode(model.to_message()))
    (tmp_path / NAMES_FILE).write_text('[[clusters]]\nid = 0\nname = "[red]young"\n', encoding="utf-8")
    return tmp_path


def run(folder: Path, *arguments: str, code: int = 0) -> str:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["profile", str(folder / "global.model"), *arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_profile_tells_every_cluster_and_writes_a_table_again_and_again(folder: Path, model: Model) -> None:
    out = folder / "profiles.csv"
    for _ in range(2):
        told = run(folder, "-o", str(out))
    assert "Cluster 0 [red]young" in told
    assert all(f"Cluster {number}" in told for number in model.ids)
    assert told.count("% of what fits is of it") == len(model.ids)
    with out.open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == model.centroids.size
    assert out.stat().st_mode & 0o777 == 0o600
    run(folder, "-o", str(folder / NAMES_FILE), code=2)


def test_profile_tells_what_sets_two_clusters_apart(folder: Path) -> None:
    told = run(folder, "--contrast", "[red]young", "1")
    assert "What tells 0 [red]young from 1" in told
    assert "spreads apart" in told
    run(folder, "--contrast", "0", "99", code=2)
