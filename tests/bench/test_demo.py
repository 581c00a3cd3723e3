"""The demo's page stands by itself and shows what happened."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from goldfc.bench.demo import Demo, run_demo
from goldfc.bench.demo_report import write_report
from goldfc.bench.tree import draw_tree
from goldfc.learning.granularity import Levels


@pytest.fixture(scope="module")
def demo() -> Demo:
    return run_demo(seed=0)


@pytest.fixture(scope="module")
def page(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("demo") / "report.html"
    write_report(demo, path)
    return path.read_text(encoding="utf-8")


def test_all_rows_are_labelled_and_counted_once(demo: Demo) -> None:
    assert demo.truth_by_cluster.sum() == demo.rows
    for site in demo.sites:
        assert site.sizes.sum() == site.truth.sum() == site.rows
        assert len(site.sizes) == len(site.centroids) == len(site.micro_labels)


def test_federating_beats_being_alone(demo: Demo) -> None:
    assert demo.together > demo.alone


def test_a_site_with_one_class_has_no_score(demo: Demo) -> None:
    for site in demo.sites:
        assert np.isnan(site.together) == ((site.truth > 0).sum() == 1)


def test_the_page_loads_nothing_from_outside(page: str) -> None:
    assert not re.findall(r"https?:|//[a-z]", re.sub(r"base64,[^\"]*", "", page))
    assert "<script" not in page


def test_the_page_is_well_formed(page: str) -> None:
    class Checker(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []

        def handle_starttag(self, tag: str, attrs: object) -> None:
            del attrs
            if tag not in ("meta", "img"):
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    checker = Checker()
    checker.feed(re.sub(r"<(\w+)([^<>]*)/>", r"<\1\2></\1>", page))
    assert checker.open == []


def test_the_page_shows_every_micro_cluster_level_and_global_cluster(demo: Demo, page: str) -> None:
    assert page.count('class="micro"') == len(demo.model.micro_labels)
    assert page.count('class="card"') == len(demo.model.centroids)
    assert page.count("<title>") - 1 == sum(demo.model.levels.n_clusters)


def test_every_fine_cluster_has_one_main_branch_at_least() -> None:
    levels = Levels(np.array([[0, 0], [1, 0], [2, 1], [2, 0], [2, 1]]), (3, 2))
    tree = draw_tree(levels, np.array([0, 0, 1, 1, 1]))
    assert len(tree.nodes) == 5
    assert sum(branch.main for branch in tree.branches) == 3
    assert sum(not branch.main for branch in tree.branches) == 1
    assert [node.size for node in tree.nodes] == [1, 1, 3, 3, 2]
