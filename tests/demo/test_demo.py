"""The demo's page stands by itself and shows what happened."""

import re
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from goldfc.cli.demo import demo_sentences
from goldfc.demo.report import digit_cards, png, write_report
from goldfc.demo.run import UNSURE, Demo, means_by_cluster, run_demo
from goldfc.learning.judge import KINDS
from goldfc.learning.proposal import Candidate, Proposal
from goldfc.report.drawings import COLOURS, draw_curve
from pages import addresses_in, policy_of, tags_of, text_of


@pytest.fixture(scope="module")
def demo() -> Demo:
    return run_demo(seed=0)


@pytest.fixture(scope="module")
def page(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("demo") / "report.html"
    write_report(demo, path)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def text(page: str) -> str:
    return text_of(page)


def test_all_rows_are_labelled_and_counted_once(demo: Demo) -> None:
    assert demo.truth_by_cluster.sum() == demo.rows
    for site in demo.sites:
        assert site.sizes.sum() == site.truth.sum() == site.clusters.sum() == site.rows
        assert len(site.sizes) == len(site.centroids) == len(site.micro_labels) == len(site.micro_certainty)
    assert demo.sure.rows + demo.unsure.rows == demo.rows
    assert demo.sure.hits + demo.unsure.hits == demo.truth_by_cluster.max(axis=1).sum()


def test_federating_beats_being_alone(demo: Demo) -> None:
    assert min(demo.scores.together, demo.scores.told) > demo.scores.alone


def test_the_number_of_clusters_is_proposed(demo: Demo) -> None:
    assert len(demo.model.centroids) == demo.proposal.best


def test_sure_rows_are_more_often_right_than_unsure_ones(demo: Demo) -> None:
    assert demo.sure.share > demo.unsure.share


def test_a_site_sends_centroids_sizes_one_shape_the_moments_of_its_columns_and_its_name(demo: Demo) -> None:
    n_features = demo.dataset.X.shape[1]
    for site in demo.sites:
        assert site.bytes_shape == 8 * n_features**2
        moments = 2 * 8 * n_features
        name = site.bytes_up - site.bytes_shape - site.centroids.nbytes - site.sizes.nbytes - moments
        assert 0 < name < 50
    assert sum(site.bytes_up for site in demo.sites) == demo.traffic.bytes_up


def test_a_site_with_one_class_has_no_score(demo: Demo) -> None:
    for site in demo.sites:
        assert np.isnan(site.scores.together) == ((site.truth > 0).sum() == 1)


def test_the_page_loads_nothing_from_outside(page: str) -> None:
    assert addresses_in(page) == []
    assert "<script" not in page
    assert policy_of(page) == "default-src 'none'; style-src our style; base-uri 'none'; img-src data:"


def test_the_page_is_well_formed(page: str) -> None:
    assert tags_of(page)[0] == "html"


def test_the_page_shows_every_micro_cluster_level_and_global_cluster(demo: Demo, page: str) -> None:
    assert len(re.findall('class="micro[ "]', page)) == len(demo.model.micro_labels)
    assert page.count('<section class="card ') == len(demo.model.centroids)
    assert page.count('class="node"') == sum(demo.model.levels.n_clusters) + len(demo.model.centroids)


def test_the_page_shows_the_evidence_and_every_candidate_with_its_reason(demo: Demo, page: str, text: str) -> None:
    curve = page[page.index('<svg class="curve"') : page.index("</svg>", page.index('<svg class="curve"'))]
    assert curve.count('class="candidate"') == len(demo.proposal.candidates)
    assert curve.count("<circle cx=") == sum(k <= draw_curve(demo.proposal, 10).last for k in demo.proposal.n_clusters)
    numbers = re.findall(r'font-weight="700"[^>]*>(\d+)</text>', curve)
    assert numbers == [str(candidate.n_clusters) for candidate in demo.proposal.candidates]
    for candidate in demo.proposal.candidates:
        assert f"{candidate.n_clusters}{candidate.reason}" in text
    assert f"There are ten digits, and {demo.proposal.best} clusters were proposed." in text


def test_what_is_unsure_looks_so(demo: Demo, page: str) -> None:
    assert len(re.findall('class="micro e[0-9]+ unsure"', page)) == (demo.model.micro_certainty < UNSURE).sum() > 0


def test_the_page_says_which_kind_of_clusters_is_believed_and_why(demo: Demo, page: str, text: str) -> None:
    kinds = page[page.index('<ul class="shortlist kinds">') : page.index("</ul>")]
    assert re.findall(r"<b>(\w+)</b>", kinds) == list(KINDS)
    assert re.findall(r'class="best"><b>(\w+)</b>', kinds) == [demo.model.kind]
    assert f"believed here, because {demo.model.why}" in text


def test_a_card_shows_the_mean_certainty_of_its_rows(demo: Demo, text: str) -> None:
    for number, mean in enumerate(100 * demo.certainty_by_cluster):
        rows = sum(site.clusters[number] for site in demo.sites)
        micro = sum((site.micro_labels == number).sum() for site in demo.sites)
        assert re.search(rf"Cluster {number} {rows} rows; {micro} micro-clusters certainty {mean:.0f} %", text)


def test_certainty_is_averaged_over_the_rows_of_a_cluster() -> None:
    means = means_by_cluster(np.array([0.5, 1.0, 0.7]), np.array([0, 0, 2]), 4)
    np.testing.assert_allclose(means, [0.75, np.nan, 0.7, np.nan])


def test_sites_beside_a_card_are_those_that_have_rows_in_the_cluster(demo: Demo) -> None:
    for card in digit_cards(demo):
        assert card.sites == tuple(site.clusters[card.number] > 0 for site in demo.sites)
        assert card.rows == sum(site.clusters[card.number] for site in demo.sites)


def test_a_cluster_without_rows_says_nothing_of_them(demo: Demo, tmp_path: Path) -> None:
    truth, certainty = demo.truth_by_cluster.copy(), demo.certainty_by_cluster.copy()
    truth[0], certainty[0] = 0, np.nan
    write_report(replace(demo, truth_by_cluster=truth, certainty_by_cluster=certainty), tmp_path / "report.html")
    assert "nan" not in text_of((tmp_path / "report.html").read_text(encoding="utf-8"))


def test_evidence_by_gaps_is_said_to_be_such(demo: Demo, tmp_path: Path) -> None:
    candidates = (Candidate(3, "the clearest gaps"), Candidate(40, "if clusters were round or stretched"))
    proposal = Proposal((2, 3, 4), (0.2, 0.9, 0.3), candidates)
    write_report(replace(demo, model=replace(demo.model, proposal=proposal)), tmp_path / "report.html")
    text = text_of((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "how clear the gaps between so many clusters are" in text
    assert "40if clusters were round or stretched" in text


def test_the_page_says_what_left_the_sites(demo: Demo, text: str) -> None:
    kilobytes = f"The 8 shapes are {demo.bytes_shape / 1000:.0f} of the {demo.traffic.bytes_up / 1000:.0f} kB."
    assert kilobytes in text
    assert "one shape, a 64 \N{MULTIPLICATION SIGN} 64 matrix" in text
    assert "the mean and spread of every column" in text
    assert "no sizes" not in text
    assert demo.single_rows > 0
    assert f"{demo.single_rows} of the {len(demo.model.micro_labels)} micro-clusters had a single row" in text


def test_the_page_gives_all_five_scores(demo: Demo, text: str) -> None:
    for score, what in (
        (demo.scores.together, f"ARI of OneShot, with the {demo.proposal.best} clusters that it proposed itself"),
        (demo.scores.told, "ARI of OneShot from the same messages, had it been told that there are ten"),
        (demo.scores.paper, "ARI of GOLD, the paper's method"),
        (demo.scores.alone, "ARI of k-means at every site alone"),
        (demo.scores.pooled, "ARI of k-means on all rows in one place"),
    ):
        assert f"{score:.2f}{what}" in text


def without_paper(demo: Demo) -> list[str]:
    """What is said where the paper's method is not installed."""
    return list(demo_sentences(replace(demo, scores=replace(demo.scores, paper=np.nan))))


def test_the_terminal_names_the_proposal_its_rivals_and_what_being_told_is_worth(demo: Demo) -> None:
    best, *others = demo.proposal.candidates
    first, *rivals, kind, truth, paper, traffic = demo_sentences(demo)
    assert first == f"How many clusters? OneShot proposes [bold]{best.n_clusters}[/]: {best.reason}."
    assert rivals == [f"  Or {other.n_clusters}: {other.reason}." for other in others]
    assert kind == f"What kind? [bold]{demo.model.kind}[/]: {demo.model.why}."
    assert f"{demo.scores.told:.2f} instead of {demo.scores.together:.2f}" in truth
    assert f"{demo.scores.paper:.2f}" in paper
    assert r"needs goldfc\[paper]" in without_paper(demo)[-2]
    assert f"{demo.traffic.bytes_up / 1000:.0f} kB" in traffic


def test_no_two_clusters_of_the_demo_have_the_same_colour(demo: Demo) -> None:
    assert len(set(COLOURS)) == len(COLOURS) >= len(demo.model.centroids)


def test_a_picture_is_a_png_with_a_byte_per_pixel() -> None:
    file = png(np.array([[0, 128, 255], [7, 8, 9]], dtype=np.uint8))
    assert file.startswith(b"\x89PNG\r\n\x1a\n")
    width, height, depth = struct.unpack(">IIB", file[16:25])
    assert (width, height, depth) == (3, 2, 8)
    start = file.index(b"IDAT")
    (length,) = struct.unpack(">I", file[start - 4 : start])
    body = file[start + 4 : start + 4 + length]
    assert zlib.decompress(body) == bytes([0, 0, 128, 255, 0, 7, 8, 9])
    assert struct.unpack(">I", file[start + 4 + length : start + 8 + length]) == (zlib.crc32(b"IDAT" + body),)
