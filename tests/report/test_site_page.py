"""The page of a site's own rows: right, small, for the site alone, and made in one pass however many rows there are."""

import csv
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from goldfc import Model, OneShot, fuse, summarize
from goldfc._types import FloatArray
from goldfc.cli import main
from goldfc.files import shared_with
from goldfc.message.columns import Column, Terms
from goldfc.message.density import distances, is_far
from goldfc.message.wire import encode
from goldfc.names import NAMELESS, Called, Names
from goldfc.randomness import generator
from goldfc.report.model_page import Badge, badges_of
from goldfc.report.own_rows import BINS, MOST_FAR, MOST_PICTURES, MOST_PLACES, MOST_TYPICAL, OwnRows
from goldfc.report.site_page import FEWEST_FOR_MEAN, called, far_row, site_cards, write_site_report
from goldfc.site.label import label
from goldfc.site.labels import LabelCounts, holds_labels
from goldfc.site.table import readers
from goldfc.site.table import table as stream
from pages import addresses_in, policy_of, tags_of, text_of
from report.own import own_rows

COLUMNS = (
    Column(name="age", unit="years"),
    Column(name="crp", unit="mg/L"),
    Column(name="smoker", kind="boolean"),
    Column(name="ward", kind="category", categories=("A", "B", "C")),
)
TERMS = Terms(federation="wards", round=3, columns=COLUMNS)


def patients(n_rows: int, seed: int, kinds: int = 3) -> FloatArray:
    """Three kinds of rows."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(kinds, size=n_rows)
    numbers = np.array([[45.0, 3.0], [68.0, 4.0], [55.0, 60.0]])[kind] + rng.normal(size=(n_rows, 2)) * [5.0, 2.0]
    smoker = rng.random(n_rows) < np.array([0.8, 0.1, 0.4])[kind]
    ward = np.eye(3)[np.where(rng.random(n_rows) < 0.8, kind, rng.integers(3, size=n_rows))]
    return np.column_stack([numbers, smoker, ward])


@pytest.fixture(scope="module")
def model() -> Model:
    way = OneShot(kinds=("shared",), starts=2)
    sent = [summarize(patients(300, n), name, way.task, terms=TERMS)[0] for n, name in enumerate(("a", "b", "c"))]
    return fuse(sent, 3, way, generator(0))


def page_of(own: OwnRows, counts: LabelCounts, path: Path, names: Names = NAMELESS, id_name: str | None = None) -> str:
    write_site_report(own, counts, path, names, id_name=id_name)
    return path.read_text(encoding="utf-8")


def badges(model: Model) -> list[Badge]:
    return badges_of(model, NAMELESS)


def test_quartiles_are_those_of_the_rows_up_to_the_width_of_a_bin(model: Model) -> None:
    rows = patients(2000, 7)
    own, _ = own_rows(model, rows, 300)
    labels = label(rows, model)[0]
    width = (own.histograms.high - own.histograms.low) / BINS
    for place in range(3):
        for column, f in enumerate(own.histograms.features.tolist()):
            exact = np.quantile(rows[labels == place, f], [0.0, 0.25, 0.5, 0.75, 1.0])
            assert own.histograms.quartiles(place, column) == pytest.approx(exact, abs=float(width[column]))
            assert own.histograms.bars(place, column).sum() == (labels == place).sum()


def test_quartiles_of_rows_beyond_the_bins_and_of_equal_rows_lie_between_their_ends(model: Model) -> None:
    rows = patients(30, 8)
    rows[:, 0] = 1e6
    own, _ = own_rows(model, rows)
    for place in np.flatnonzero(own.rows).tolist():
        assert own.histograms.quartiles(place, 0).tolist() == [1e6] * 5
    rows[::2, 0] = 2e6
    own, _ = own_rows(model, rows)
    for place in np.flatnonzero(own.rows).tolist():
        found = own.histograms.quartiles(place, 0)
        assert (np.diff(found) >= 0.0).all()
        assert 1e6 <= found[0] <= found[-1] <= 2e6


def test_the_page_is_the_same_however_many_rows_are_seen_at_a_time(model: Model, tmp_path: Path) -> None:
    rows = patients(500, 9)
    rows[::50, :2] *= 4.0
    rows[3::70] = np.nan
    first, *others = (page_of(*own_rows(model, rows, size), tmp_path / "page.html") for size in (500, 64, 7))
    assert [other == first for other in others] == [True, True]


def test_far_rows_are_the_furthest_by_their_place_in_the_file_and_those_that_come_first_of_equals(model: Model) -> None:
    rows = patients(400, 10)
    rows[5::4, 1] += np.arange(1, 100) * 40.0
    rows[[11, 200, 300]] = rows[9]
    own, _ = own_rows(model, rows, 37)
    far = is_far(model, rows)
    apart = (distances(model, rows) / model.reach).min(axis=1)
    order = [int(n) for n in np.lexsort((np.arange(400), -apart)) if far[n]]
    assert len(order) > MOST_FAR
    assert [row.number - 1 for row in own.far.rows] == order[:MOST_FAR]
    assert own.far_rows.sum() == far.sum()


def test_typical_rows_are_like_their_cluster_and_unsure_rows_lie_between_two(model: Model) -> None:
    rows = patients(600, 11)
    own, _ = own_rows(model, rows)
    for place, typical in enumerate(own.typical):
        assert len(typical.rows) == MOST_TYPICAL
        for row in typical.rows:
            assert (np.abs(own.profiles.unit(row.values) - own.profiles.z[place])[:2] < 0.5).all()
    sure, far = label(rows, model)[1], is_far(model, rows)
    least = [int(n) for n in np.argsort(sure, kind="stable") if sure[n] < own.sure and not far[n]]
    assert least
    assert [row.number - 1 for row in own.unsure.rows] == least[: len(own.unsure.rows)]
    assert own.unsure_rows == len(least)


def test_of_a_category_the_level_is_told_that_the_row_has_with_its_own_share(model: Model) -> None:
    rows = patients(60, 18)
    rows[7] = 55.0, 9_999.0, 0.0, 1.0, 0.0, 0.0
    own, _ = own_rows(model, rows)
    (far,) = (far_row(own, row, badges(model)) for row in own.far.rows)
    share = 100.0 * own.profiles.means[far.row.place, [one.name for one in own.profiles.features].index("ward=A")]
    assert far.words.startswith("crp 9999 mg/L (")
    assert [word for word in far.words.split(", ") if word.startswith("ward")] == [f"ward=A ({share:.0f} % there)"]


def test_what_is_kept_does_not_grow_with_the_rows(model: Model) -> None:
    def kept(n_rows: int) -> int:
        rows = patients(n_rows, 12)
        rows[::3, 1] += 500.0
        rows[1::3] = np.nan
        own, _ = own_rows(model, rows, 1000)
        shown = [*own.far.rows, *own.unsure.rows, *(row for one in own.typical for row in one.rows)]
        assert all(row.values.base is None for row in shown)
        arrays = [one for one in vars(own).values() if isinstance(one, np.ndarray)]
        numbers = [one for one in vars(own.histograms).values() if isinstance(one, np.ndarray)]
        assert all(len(places) <= MOST_PLACES for places in own.without.values())
        return len(shown) + sum(one.nbytes for one in (*arrays, *numbers))

    assert kept(12_000) <= kept(3_000) + MOST_FAR


def test_rows_that_cannot_be_read_are_told_with_its_reason_and_its_rows(model: Model, tmp_path: Path) -> None:
    rows = patients(40, 13)
    rows[[2, 6]] = np.nan
    page = page_of(*own_rows(model, rows, 5, reason="no value in 'crp'"), tmp_path / "page.html")
    assert "38 of our 40 rows have a label." in text_of(page)
    assert '<th scope="row">no value in &#39;crp&#39;</th><td>2</td><td class="left">3, 7</td>' in page


def test_a_site_of_which_no_row_has_a_label_has_a_page(model: Model, tmp_path: Path) -> None:
    page = page_of(*own_rows(model, np.full((5, 6), np.nan)), tmp_path / "page.html")
    tags_of(page)
    assert policy_of(page) == "default-src 'none'; style-src our style; script-src our script; base-uri 'none'"
    text = text_of(page)
    assert "0 of our 5 rows have a label." in text
    assert text.count("none of ours") == 3


def test_shares_are_those_of_our_rows_beside_those_of_all(model: Model, tmp_path: Path) -> None:
    rows = patients(200, 14, kinds=2)
    own, counts = own_rows(model, rows)
    cards = list(site_cards(own, badges(model)))
    labels = label(rows, model)[0]
    assert [card.rows for card in cards] == np.bincount(labels, minlength=3).tolist()
    assert sum(card.share for card in cards) == pytest.approx(1.0)
    assert [card.of_all for card in cards] == pytest.approx((model.mass / model.mass.sum()).tolist())
    empty = next(card for card in cards if not card.rows)
    assert "none of ours" in text_of(page_of(own, counts, tmp_path / "page.html"))
    assert empty.typical == ()


def test_of_few_rows_it_is_not_said_in_what_they_differ(model: Model) -> None:
    rows = patients(300, 15)
    rows[:, 0] += 20.0
    labels = label(rows, model)[0]
    some = np.concatenate([np.flatnonzero(labels == 0)[: FEWEST_FOR_MEAN - 1], np.flatnonzero(labels == 2)])
    few, _, many = site_cards(own_rows(model, rows[some])[0], badges(model))
    assert few.differs == ""
    assert many.differs.startswith("age (")


def test_a_page_of_many_columns_and_clusters_is_small(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    centres = 100.0 * rng.normal(size=(40, 80))
    rows = centres[np.arange(4000) % 40] + rng.normal(size=(4000, 80))
    terms = Terms(columns=tuple(Column(name=f"measure {n}") for n in range(80)))
    way = OneShot(kinds=("shared",), starts=1)
    sent = [summarize(rows[n::3], name, way.task, terms=terms)[0] for n, name in enumerate("abc")]
    model = fuse(sent, 40, way, generator(0))
    own, counts = own_rows(model, rows)
    page = page_of(own, counts, tmp_path / "page.html")
    assert page.count('class="strip"') <= MOST_PICTURES
    assert len(page) < 500_000


def test_whatever_rows_and_clusters_are_called_is_text(model: Model, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>=1+1\x1b[31m\u202e\x00\n" + "x" * 200
    rows = patients(200, 16)
    rows[4, 1] = 1e4
    names = Names(clusters=(Called(id=0, name="<b>=1+1</b>\"'", note="<img src=x onerror=alert(1)>"),))
    own, counts = own_rows(model, rows, name=lambda _: evil, reason=evil)
    page = page_of(own, counts, tmp_path / "page.html", names, "<i>id")
    assert not {"img", "i"} & set(tags_of(page))
    assert "&lt;b&gt;=1+1&lt;/b&gt;" in page
    assert tags_of(page).count("script") == 1
    assert not {"\x1b", "\x00", "\u202e"} & set(page)
    assert len(called(own.far.rows[0])) <= 60
    assert addresses_in(page.replace("http://www.w3.org", "")) == []


# --- by the command ---


@pytest.fixture
def here(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, and a table with gaps, mistakes and a far row."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "global.model").write_bytes(encode(model.to_message()))
    rows = patients(120, 17)
    with (tmp_path / "north.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "age", "crp", "smoker", "ward"])
        for number, (age, crp, smoker, *ward) in enumerate(rows):
            writer.writerow([f"=n{number}", age, crp, "yes" if smoker else "no", "ABC"[int(np.argmax(ward))]])
    text = (tmp_path / "north.csv").read_text(encoding="utf-8").splitlines()
    text[5] = "=n4,50,,yes,A"
    text[9] = "=n8,old,3,yes,A"
    text[31] = "=n30,50,9999,yes,A"
    (tmp_path / "north.csv").write_text("\n".join(text) + "\n", encoding="utf-8")
    return tmp_path


def labelled(*more: str) -> tuple[int, str]:
    words = [
        "label",
        "north.csv",
        "--model",
        "global.model",
        "-o",
        "labels.csv",
        "--unsigned",
        "--id-column",
        "id",
        *more,
    ]
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    return result.exit_code, " ".join(result.output.split())


def test_the_command_writes_the_page_beside_the_same_labels_and_says_that_it_stays(here: Path) -> None:
    assert labelled()[0] == 0
    alone = (here / "labels.csv").read_bytes()
    code, output = labelled("--report", "page.html")
    assert code == 0, output
    assert "page.html: a page of your own rows, for this site alone. Do not pass it on." in output
    assert (here / "labels.csv").read_bytes() == alone
    page = (here / "page.html").read_text(encoding="utf-8")
    text = text_of(page)
    assert "118 of our 120 rows have a label." in text
    assert "For this site alone: do not pass this page on." in text
    assert '<th scope="row">31</th><td>=n30</td>' in page
    assert "crp 9999 mg/L" in text
    assert shared_with((here / "page.html").stat()) == 0


def test_a_table_on_the_disk_has_the_same_page_as_in_memory(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labelled("--report", "memory.html")
    monkeypatch.setattr(stream, "LARGEST_IN_MEMORY", 0)
    monkeypatch.setattr(readers, "BYTES_OF_A_BLOCK", 400)
    labelled("--report", "disk.html")
    assert (here / "disk.html").read_bytes() == (here / "memory.html").read_bytes()


def test_the_page_is_not_written_over_anything_but_a_page(here: Path) -> None:
    (here / "notes.txt").write_text("mine", encoding="utf-8")
    assert labelled("--report", "notes.txt")[0] == 2
    assert labelled("--report", "north.csv")[0] == labelled("--report", "labels.csv")[0] == 2
    assert not (here / "labels.csv").exists()
    assert labelled()[0] == labelled("--report", "page.html")[0] == labelled("--report", "page.html")[0] == 0
    assert labelled("--report", "labels.csv")[0] == 2
    assert holds_labels((here / "labels.csv").read_bytes())
