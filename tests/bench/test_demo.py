"""The demo's page stands by itself and shows what happened."""

import re

import numpy as np
import pytest

from goldfc.bench.demo import UNSURE, Demo, run_demo
from goldfc.bench.demo_report import write_report
from goldfc.cli.experiments import demo_sentences
from goldfc.drawings import COLOURS, draw_curve
from pages import addresses_in, tags_of, text_of


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
        assert site.sizes.sum() == site.truth.sum() == site.rows
        assert len(site.sizes) == len(site.centroids) == len(site.micro_labels) == len(site.micro_certainty)
    assert demo.sure.rows + demo.unsure.rows == demo.rows
    assert demo.sure.hits + demo.unsure.hits == demo.truth_by_cluster.max(axis=1).sum()


def test_federating_beats_being_alone(demo: Demo) -> None:
    assert min(demo.scores.together, demo.scores.told) > demo.scores.alone


def test_the_number_of_clusters_is_proposed(demo: Demo) -> None:
    assert len(demo.model.centroids) == demo.proposal.best


def test_sure_rows_are_more_often_right_than_unsure_ones(demo: Demo) -> None:
    assert demo.sure.share > demo.unsure.share


def test_a_site_sends_centroids_sizes_one_shape_and_its_name(demo: Demo) -> None:
    n_features = demo.dataset.X.shape[1]
    for site in demo.sites:
        assert site.bytes_shape == 8 * n_features**2
        name = site.bytes_up - site.bytes_shape - site.centroids.nbytes - site.sizes.nbytes
        assert 0 < name < 50
    assert sum(site.bytes_up for site in demo.sites) == demo.ledger.bytes_up


def test_a_site_with_one_class_has_no_score(demo: Demo) -> None:
    for site in demo.sites:
        assert np.isnan(site.scores.together) == ((site.truth > 0).sum() == 1)


def test_the_page_loads_nothing_from_outside(page: str) -> None:
    assert addresses_in(page) == []
    assert "<script" not in page


def test_the_page_is_well_formed(page: str) -> None:
    assert tags_of(page)[0] == "html"


def test_the_page_shows_every_micro_cluster_level_and_global_cluster(demo: Demo, page: str) -> None:
    assert len(re.findall('class="micro[ "]', page)) == len(demo.model.micro_labels)
    assert page.count('class="card"') == len(demo.model.centroids)
    assert page.count('class="node"') == sum(demo.model.levels.n_clusters) + len(demo.model.centroids)


def test_the_page_shows_the_evidence_and_every_candidate_with_its_reason(demo: Demo, page: str, text: str) -> None:
    curve = page[page.index('<svg class="curve"') : page.index("</svg>")]
    assert curve.count('class="candidate"') == len(demo.proposal.candidates)
    assert curve.count("<circle cx=") == sum(k <= draw_curve(demo.proposal, 10).last for k in demo.proposal.n_clusters)
    numbers = re.findall(r'font-weight="700"[^>]*>(\d+)</text>', curve)
    assert numbers == [str(candidate.n_clusters) for candidate in demo.proposal.candidates]
    for candidate in demo.proposal.candidates:
        assert f"{candidate.n_clusters}{candidate.reason}" in text
    assert f"There are ten digits, and {demo.proposal.best} clusters were proposed." in text


def test_what_is_unsure_looks_so(demo: Demo, page: str) -> None:
    assert page.count('class="micro unsure"') == (demo.model.micro_certainty < UNSURE).sum() > 0


def test_a_card_shows_the_mean_certainty_of_its_rows(demo: Demo, text: str) -> None:
    for number in range(len(demo.model.centroids)):
        own = [site.micro_labels == number for site in demo.sites]
        sizes = np.concatenate([site.sizes[those] for site, those in zip(demo.sites, own, strict=True)])
        certainty = np.concatenate([site.micro_certainty[those] for site, those in zip(demo.sites, own, strict=True)])
        mean = 100 * sizes @ certainty / sizes.sum()
        assert re.search(
            rf"Cluster {number} {sizes.sum()} rows in {len(sizes)} micro-clusters certainty {mean:.0f} %", text
        )


def test_the_page_says_what_left_the_sites(demo: Demo, text: str) -> None:
    kilobytes = f"The 8 shapes are {demo.bytes_shape / 1000:.0f} of the {demo.ledger.bytes_up / 1000:.0f} kB."
    assert kilobytes in text
    assert "one shape, a 64 \N{MULTIPLICATION SIGN} 64 matrix" in text
    assert "no sizes" not in text
    assert demo.single_rows > 0
    assert f"{demo.single_rows} of the {len(demo.model.micro_labels)} micro-clusters had a single row" in text


def test_the_page_gives_all_five_scores(demo: Demo, text: str) -> None:
    for score, what in (
        (demo.scores.together, f"ARI of GOLD, with the {demo.proposal.best} clusters that it proposed itself"),
        (demo.scores.told, "ARI of GOLD from the same messages, had it been told that there are ten"),
        (demo.scores.paper, "ARI of GOLD as its paper has it"),
        (demo.scores.alone, "ARI of k-means at every site alone"),
        (demo.scores.pooled, "ARI of k-means on all rows in one place"),
    ):
        assert f"{score:.2f}{what}" in text


def test_the_terminal_names_the_proposal_its_rivals_and_what_being_told_is_worth(demo: Demo) -> None:
    best, *others = demo.proposal.candidates
    first, *rivals, truth, traffic = demo_sentences(demo)
    assert first == f"How many clusters? GOLD proposes [bold]{best.n_clusters}[/]: {best.reason}."
    assert rivals == [f"  Or {other.n_clusters}: {other.reason}." for other in others]
    assert f"{demo.scores.told:.2f} instead of {demo.scores.together:.2f}" in truth
    assert f"{demo.ledger.bytes_up / 1000:.0f} kB" in traffic


def test_no_two_clusters_of_the_demo_have_the_same_colour(demo: Demo) -> None:
    assert len(set(COLOURS)) == len(COLOURS) >= len(demo.model.centroids)
