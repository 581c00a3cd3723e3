"""The page of a model stands by itself and says what the clusters are."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_moons

from goldfc import Model, OneShot, Summary, fuse, summarize
from goldfc._types import FloatArray
from goldfc.errors import BadMessage
from goldfc.learning.paper.competition import Learning
from goldfc.learning.proposal import Candidate, Proposal
from goldfc.message.columns import Column, Terms
from goldfc.message.levels import Private, with_fewest
from goldfc.message.task import Task
from goldfc.randomness import generator
from goldfc.report.columns_by_site import MOST_COLUMNS, MOST_SITES_SHOWN
from goldfc.report.features import Feature, overall
from goldfc.report.model_page import Support, as_data, write_model_report
from goldfc.report.profiles import MOST_TRAITS, Profiles, alike_in, most_special
from goldfc.server.gold import Gold
from goldfc.server.influence import LeftOut
from goldfc.site.gold import GoldSite
from pages import addresses_in, policy_of, tags_of, text_of
from sentences import refused

WAY = OneShot(Task(level=with_fewest(5), rows_each=8), starts=3)
TERMS = Terms(
    federation="heart-study",
    round=3,
    columns=(
        Column(name="age", unit="years"),
        Column(name="CRP", unit="mg/L"),
        Column(name="smoker", kind="boolean"),
        Column(name="sex", kind="category", categories=("female", "male")),
    ),
)


def patients(kinds: Sequence[int], n_rows: int, seed: int) -> FloatArray:
    """Three kinds: young women who smoke, old men who do not, and old people with an inflammation."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(kinds, size=n_rows)
    age, crp = np.array([35.0, 72.0, 70.0])[kind], np.array([3.0, 4.0, 60.0])[kind]
    smoker = rng.random(n_rows) < np.array([0.9, 0.1, 0.2])[kind]
    female = rng.random(n_rows) < np.array([0.95, 0.05, 0.5])[kind]
    numbers = np.column_stack([age, crp]) + rng.normal(size=(n_rows, 2)) * [4.0, 1.0]
    return np.column_stack([numbers, smoker, female, ~female])


@pytest.fixture(scope="module")
def summaries() -> list[Summary]:
    sites = {"city": (0, 1), "rural": (0, 1), "st-mary": (0, 1), "clinic": (0, 1, 2)}
    return [
        summarize(patients(kinds, 120, number), name, WAY.task, terms=TERMS)[0]
        for number, (name, kinds) in enumerate(sites.items())
    ]


@pytest.fixture(scope="module")
def model(summaries: list[Summary]) -> Model:
    """Told three clusters, with what would have been proposed."""
    proposal = Proposal((1, 2, 3, 4), (0.0, 1.0, 3.0, 2.5), (Candidate(3, "the best"), Candidate(4, "not much worse")))
    return replace(fuse(summaries, 3, WAY, generator(0)), proposal=proposal, asked=None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "report.html"


def page_of(
    model: Model,
    path: Path,
    summaries: Sequence[Summary] = (),
    *,
    left_out: Sequence[LeftOut] = (),
    expected: Sequence[str] = (),
    refused: Mapping[str, str] = {},
) -> str:
    write_model_report(model, path, summaries, left_out=left_out, expected=expected, refused=refused)
    return path.read_text(encoding="utf-8")


def section(page: str, name: str) -> str:
    """From one heading to the next."""
    start = page.index(f'<h2 id="{name}"')
    return page[start : page.find("<h2", start + 1)]


def cards_of(page: str) -> list[str]:
    return [text_of("<body>" + card) for card in re.findall(r'<section class="card .*?</section>', page, re.DOTALL)]


def test_the_page_stands_by_itself(model: Model, summaries: list[Summary], path: Path) -> None:
    for page in (page_of(model, path), page_of(model, path, summaries, left_out=[LeftOut("city", 0.9, 3)])):
        assert addresses_in(page) == []
        assert tags_of(page).count("script") == 2  # its own, and the data that it works with


def test_the_page_runs_its_own_style_and_script_and_nothing_else(model: Model, path: Path) -> None:
    policy = "default-src 'none'; style-src our style; script-src our script; base-uri 'none'"
    assert policy_of(page_of(model, path)) == policy


def test_data_on_the_page_begin_and_end_nothing() -> None:
    told = as_data({"</script><!--&": ["\u2028"]})
    assert not set("<>&\u2028") & set(told)
    assert json.loads(told) == {"</script><!--&": ["\u2028"]}


def test_the_page_answers_in_a_sentence_first(model: Model, summaries: list[Summary], path: Path) -> None:
    sites, sure = "rows of city, clinic, rural, st-mary", "Labels are at most about"
    answer = rf"{sites} are in 3 clusters, all of one form, .* {sure} \d+ % sure"
    assert re.search(answer, text_of(page_of(model, path, summaries)))
    assert "So many were asked for" in text_of(page_of(replace(model, proposal=None), path))


def test_a_page_on_which_little_agrees_says_so_on_top(model: Model, path: Path) -> None:
    sentence = "What was tried agrees little (40 %)"
    assert sentence not in text_of(page_of(model, path))
    assert sentence in text_of(page_of(replace(model, agreement=0.4), path))


def test_the_page_tells_what_left_each_site(model: Model, summaries: list[Summary], path: Path) -> None:
    text = text_of("<body>" + section(page_of(model, path, summaries), "left"))
    assert "suppressed: no micro-cluster of fewer than 5 rows" in text
    assert all(summary.site in text for summary in summaries)
    assert 'id="left"' not in page_of(model, path)


def test_the_page_is_for_its_owner_alone(model: Model, path: Path) -> None:
    page_of(model, path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_names_from_strangers_are_text_and_nothing_else(summaries: list[Summary], path: Path) -> None:
    evil = "<script>alert(1)</script>"
    columns = (
        Column(name=evil, unit='"><img src=x onerror=alert(2)>'),
        Column(name="CRP' onload='alert(3)"),
        Column(name="smoker</style>", kind="boolean"),
        Column(name="sex", kind="category", categories=("<b>", "</td>&amp;")),
    )
    strange = [replace(summary, terms=Terms(columns=columns)) for summary in summaries]
    model = replace(
        fuse(strange, 3, WAY, generator(0)), proposal=Proposal((1, 3), (0.0, 1.0), (Candidate(3, "<i>because</i>"),))
    )
    page = page_of(
        model, path, strange, expected=[evil], refused={"<u>": "<s>no</s>"}, left_out=[LeftOut("<q>", 0.5, 3)]
    )
    assert not {"img", "u", "s", "q"} & set(tags_of(page))
    assert tags_of(page).count("script") == 2
    assert "<i>because" not in page
    text = text_of(page)
    for name in (evil, "sex=</td>&amp;", "smoker</style>", "<s>no</s>", "<i>because</i>"):
        assert name in text


def test_columns_by_site_marks_and_names_what_is_odd(summaries: list[Summary], path: Path) -> None:
    usual = page_of(fuse(summaries, 3, WAY, generator(0)), path, summaries)
    assert "No column of a site is odd." in section(usual, "columns")
    assert 'class="odd"' not in usual
    moments = summaries[1].moments
    assert moments is not None
    months = replace(moments, mean=moments.mean * [12, 1, 1, 1, 1], squares=moments.squares * [144, 1, 1, 1, 1])
    own = summaries[1].centroids * [12, 1, 1, 1, 1]
    them = [summaries[0], replace(summaries[1], centroids=own, moments=months, shape=None), *summaries[2:]]
    page = section(page_of(fuse(them, 3, WAY, generator(0)), path, them), "columns")
    assert page.count('<td class="odd">') == 1
    assert "as between months and years" in page
    assert "Column &#39;age&#39;: rural&#39;s mean is" in page
    assert 'id="columns"' not in page_of(fuse(them, 3, WAY, generator(0)), path)


def test_columns_by_site_are_few_and_say_so(path: Path) -> None:
    rng = np.random.default_rng(0)
    them = [
        summarize(rng.normal(size=(30, MOST_COLUMNS + 5)), f"s{n}", Task(most=3))[0]
        for n in range(MOST_SITES_SHOWN + 2)
    ]
    page = section(page_of(fuse(them, 2, WAY, generator(0)), path, them), "columns")
    assert page.count("<tr>") == MOST_COLUMNS + 1
    assert page.count("<td") == MOST_COLUMNS * MOST_SITES_SHOWN
    assert f"Shown are the {MOST_COLUMNS} of {MOST_COLUMNS + 5} columns" in page
    assert f"Shown are {MOST_SITES_SHOWN} of {MOST_SITES_SHOWN + 2} sites" in page


def test_the_page_says_who_took_part_who_is_missing_and_who_was_left_out(model: Model, path: Path) -> None:
    page = page_of(
        model, path, expected=["city", "north", "old-town", "rural"], refused={"old-town": "its key is not known."}
    )
    text = text_of(page)
    assert "Federation heart-study, round 3" in text
    assert "3 clusters from 4 sites" in text
    assert "4sites took part; 1 missing; 1 message not used" in text
    assert "Expected, but nothing camenorth Not used: old-townits key is not known." in text
    everybody = page_of(model, path)
    assert "Expected" not in everybody
    assert "Not used" not in everybody


def test_the_page_says_why_there_are_so_many(model: Model, path: Path) -> None:
    proposed = section(page_of(model, path), "why")
    assert proposed.count('class="candidate"') == 2
    assert "3the best: taken here 4not much worse" in text_of("<body>" + proposed)
    assert "digits" not in proposed
    asked = section(page_of(replace(model, proposal=None), path), "why")
    assert "<svg" not in asked
    assert "Somebody said how many there should be; 3 clusters can be told apart." in asked
    only = Proposal((1,), (0.0,), (Candidate(1, "all micro-clusters are the same"),))
    assert "all micro-clusters are the same" in section(page_of(replace(model, proposal=only), path), "why")


def test_a_number_that_is_given_is_marked_in_the_evidence_for_all(summaries: list[Summary], path: Path) -> None:
    page = page_of(fuse(summaries, 4, replace(WAY, explain=True), generator(0)), path)
    assert "So many were asked for. The evidence speaks for 3 (why)." in text_of(page)
    why = section(page, "why")
    assert "3the best balance of fit and simplicity 4asked for: taken here" in text_of("<body>" + why)
    assert re.search(r'r="7" fill="#b7791f"[^>]*/>\s*<text [^>]*>4</text>', why)
    assert "Nobody said" not in why


def test_a_page_with_nothing_to_find_says_so_on_top(model: Model, path: Path) -> None:
    sentence = "A single cluster fits as well: there may be nothing to find."
    assert sentence not in page_of(model, path)
    one = Proposal((1, 2, 3, 4), (9.0, 1.0, 3.0, 2.5), (Candidate(3, "the best of two or more"),))
    assert sentence in page_of(replace(model, proposal=one), path)


def test_the_page_has_the_fingerprint_of_its_model(model: Model, path: Path) -> None:
    assert f"<code>{model.fingerprint}</code>" in page_of(model, path)


def test_the_page_says_what_kind_of_clusters_there_are_and_why(model: Model, path: Path) -> None:
    for kind, sentence in (
        ("shared", "all by how rows lie around the means on the whole. (Kind: shared.)"),
        ("own", "by its mean and by how its own rows lie around that. (Kind: own.)"),
    ):
        text = text_of(page_of(replace(model, kind=kind, why="they <i>are</i> so"), path))  # type: ignore[arg-type]
        assert "What they are like: they <i>are</i> so." in text
        assert sentence in text


def test_the_page_of_clusters_that_are_not_convex_tells_of_gaps_and_prototypes(path: Path) -> None:
    rows = make_moons(900, noise=0.03, random_state=0)[0]
    sent = [summarize(rows[n::3], "abc"[n], WAY.task)[0] for n in range(3)]
    model = fuse(sent, None, WAY, generator(0))
    assert model.kind == "linked"
    assert model.prototypes is not None
    assert model.proposal is not None
    page = page_of(model, path, sent)
    text = text_of(page)
    tags_of(page)
    assert f"Each is told by its prototypes, {len(model.prototypes.points)} in all" in text
    assert "The mean of a cluster may lie outside of it. (Kind: linked.)" in text
    assert f"numbers from 2 to {model.proposal.n_clusters[-1]} were tried" in text
    assert "how clear the gaps between so many clusters are, from 0 to 1" in text
    assert f"{len(model.prototypes.points)} prototypes (means of micro-clusters, some of a single one)" in text
    assert "No row is in it. But a prototype is the mean of a micro-cluster that some site sent" in text
    assert "no site's own centroids" not in text


def test_a_candidate_that_other_evidence_speaks_for_is_listed_but_not_on_the_curve(model: Model, path: Path) -> None:
    candidates = (Candidate(3, "the best"), Candidate(40, "the clearest gaps"))
    proposal = Proposal((1, 2, 3, 4), (0.0, 1.0, 3.0, 2.5), candidates)
    why = section(page_of(replace(model, proposal=proposal), path), "why")
    assert why.count('class="candidate"') == 1
    assert "40the clearest gaps" in text_of("<body>" + why)
    assert "well so many clusters fit, less a price" in why


def test_the_page_of_a_table_without_numbers(path: Path) -> None:
    terms = Terms(columns=TERMS.columns[2:])
    sent = [summarize(patients((0, 1), 200, n)[:, 2:], "abc"[n], WAY.task, terms=terms)[0] for n in range(3)]
    page = page_of(fuse(sent, 2, WAY, generator(0)), path, sent)
    tags_of(page)
    assert all(len(re.findall(r"sex=(?:fe)?male\d+ % [+\N{MINUS SIGN}]", card)) == 1 for card in cards_of(page))


def test_a_card_says_in_its_own_units_what_is_special(model: Model, summaries: list[Summary], path: Path) -> None:
    cards = cards_of(page_of(model, path, summaries))
    assert len(cards) == 3
    inflamed = int(model.centroids[:, 1].argmax())
    young = int(model.centroids[:, 0].argmin())
    assert re.search(r"CRP(5\d|6\d) ± \d mg/L \+\d\.\d SD, far above all", cards[inflamed])
    assert re.search(r"age3\d ± \d years \N{MINUS SIGN}\d\.\d SD, well below allall: \d\d years", cards[young])
    assert re.search(r"smoker\d\d % \+\d\.\d SD, above allall: \d\d %", cards[young])
    # One of two levels says it all: women are more, or men are fewer.
    assert re.search(r"sex=female\d+ % \+|sex=male\d+ % \N{MINUS SIGN}", cards[young])
    assert cards[young].split("Most like")[0].count("sex=") == 1


def test_what_only_one_site_has_is_flagged(model: Model, path: Path) -> None:
    flagged = ["one site only" in card for card in cards_of(page_of(model, path))]
    assert flagged == [len(Support.of(model, ()).sites_of(number)) == 1 for number in range(3)]
    assert sum(flagged) == 1


def test_rows_are_told_where_all_sites_tell_them(model: Model, summaries: list[Summary], path: Path) -> None:
    rows = np.concatenate(
        [summary.mass for summary in sorted(summaries, key=lambda s: s.site) if summary.mass is not None]
    )
    cards = cards_of(page_of(model, path, summaries))
    for number, card in enumerate(cards):
        own = rows[model.micro_labels == number]
        assert f"{100 * own.sum() / rows.sum():.0f} % of all rows" in card
        assert f"{len(own)} micro-clusters, {own.sum()} rows" in card
    for page in (page_of(model, path), page_of(model, path, summaries[:2])):
        assert all("of all micro-clusters" in card and " rows" not in card for card in cards_of(page))


def test_the_table_of_sites_adds_up(model: Model, summaries: list[Summary]) -> None:
    support = Support.of(model, [*summaries[:3], replace_mass(summaries[3])])
    assert support.sites == ("city", "clinic", "rural", "st-mary")
    assert support.micro.sum(axis=1).tolist() == list(model.micro_counts)
    assert support.micro.sum(axis=0).tolist() == np.bincount(model.micro_labels).tolist()
    assert [None if rows is None else int(rows.sum()) for rows in support.rows] == [
        None if summary.site == "clinic" else summary.rows for summary in sorted(summaries, key=lambda s: s.site)
    ]
    assert support.all_rows is None


def replace_mass(summary: Summary) -> Summary:
    return replace(summary, mass=None)


def test_every_feature_of_every_cluster_is_in_the_table(model: Model, path: Path) -> None:
    table = section(page_of(model, path), "features")
    assert table.count("<tr>") == 1 + 5
    assert table.count("<td") == 5 * (1 + 3)
    for name in ("age", "years", "smoker", "sex=<wbr>female", "sex=<wbr>male"):
        assert name in table


def test_the_levels_are_drawn_and_the_global_clusters_last(model: Model, path: Path) -> None:
    assert section(page_of(model, path), "levels").count('class="node"') == sum(model.levels.n_clusters) + 3


def test_who_matters_most_comes_first(model: Model, summaries: list[Summary], path: Path) -> None:
    left_out = [LeftOut("city", 0.99, 3), LeftOut("clinic", 0.4, 2), LeftOut("rural", 0.93, 3)]
    text = text_of("<body>" + section(page_of(model, path, summaries, left_out=left_out), "without"))
    assert "clinic0.402much changes: look at this site first" in text
    assert text.index("clinic0.40") < text.index("rural0.93") < text.index("city0.99")
    assert "Not known from the model alone" in section(page_of(model, path), "without")
    two = fuse(summaries[:2], 2, WAY, generator(0))
    assert "fewer than 3 sites" in section(page_of(two, path), "without")


def test_the_page_says_what_the_model_tells(model: Model, summaries: list[Summary], path: Path) -> None:
    assert "This page tells more than the model" not in page_of(model, path)
    text = text_of(page_of(model, path, summaries))
    assert "This page tells more than the model: it was made with the summaries of 4 sites" in text
    assert "Rows are rounded to multiples of 5" in text
    assert "a single micro-cluster" not in text
    many = fuse(summaries, len(model.micro_labels) - 1, WAY, generator(0))
    assert "a single micro-cluster" in text_of(page_of(many, path))


def test_the_page_says_what_every_sites_message_promises(path: Path) -> None:
    terms = Terms(federation="wards", columns=(Column(name="age", range=(0.0, 120.0)),))
    rows = np.random.default_rng(0).normal([[50.0]], 10.0, (200, 1))
    levels = {"east": Private(most_rows=3), "north": Private(most_rows=3), "west": with_fewest(5)}
    summaries = [summarize(rows, site, Task(level=level), terms=terms)[0] for site, level in levels.items()]
    text = text_of(page_of(fuse(summaries, 1, WAY, generator(0)), path, summaries))
    assert "east, north promises: private: (1, 1e-05)-differential privacy for any person with up to 3 rows" in text
    assert "west promises: suppressed: no micro-cluster of fewer than 5 rows" in text


def test_summaries_that_were_not_fused_are_refused(model: Model, summaries: list[Summary], path: Path) -> None:
    assert summaries[0].mass is not None
    with refused(BadMessage, "model-of-other-summary", "'city'"):
        write_model_report(model, path, [replace(summaries[0], mass=summaries[0].mass[::-1])])
    assert not path.exists()


def test_columns_without_names_are_counted(path: Path) -> None:
    rows, way = patients((0, 1, 2), 100, seed=0), OneShot(starts=3)
    sent = [summarize(rows[n::2], "ab"[n], way.task)[0] for n in range(2)]
    learning = Learning()
    asked = Gold(learning).task.to_message()
    sites = [GoldSite("ab"[n], rows[n::2], generator(n)) for n in range(2)]
    answers = [site.answer(asked) for site in sites]
    papers = [Summary.from_message(answer) for answer in answers if answer is not None]
    for model in (fuse(sent, 2, way, generator(0)), fuse(papers, 2, Gold(learning), generator(0))):
        page = page_of(model, path)
        assert "column 1" in page
        assert "column 5" in section(page, "features")
        assert "goldfc" in page


def test_a_cluster_that_nothing_is_in_is_shown_as_empty(model: Model, path: Path) -> None:
    empty = replace(
        model,
        centroids=np.vstack([model.centroids, model.centroids[:1]]),
        mass=np.append(model.mass, 1.0),
        reach=np.append(model.reach, 1.0),
    )
    assert "0 % of all micro-clusters 0 micro-clusters" in cards_of(page_of(empty, path))[3]


def test_without_moments_the_spread_comes_from_centroids_and_covariance(model: Model, summaries: list[Summary]) -> None:
    weight = Support.of(model, summaries).weight
    mean, deviation = overall(model, weight)
    other_mean, other_deviation = overall(replace(model, moments=None), weight)
    np.testing.assert_allclose(other_deviation, deviation, rtol=0.1)
    assert (np.abs(other_mean - mean) < 0.1 * deviation).all()


def test_a_column_is_special_once_and_little_is_not_special(model: Model) -> None:
    alike = alike_in(model)
    assert most_special(np.array([0.1, -2.0, 0.5, -1.0, 1.0]), alike) == [(1, []), (4, [3]), (2, [])]
    assert len(most_special(np.ones(9), np.eye(9, dtype=bool))) == MOST_TRAITS


def test_numbers_that_are_correlated_inside_clusters_are_named_once(path: Path) -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 400)
    size = 8.0 * kind + rng.normal(size=400)
    rows = np.column_stack([size, 2.0 * size + 0.1 * rng.normal(size=400), 3.0 * kind + rng.normal(size=400)])
    terms = Terms(columns=tuple(Column(name=name) for name in ("radius", "perimeter", "age")))
    sent = [summarize(rows[n::3], "abc"[n], WAY.task, terms=terms)[0] for n in range(3)]
    model = fuse(sent, 2, WAY, generator(0))
    profiles = Profiles.of(model, np.ones(2, dtype=np.int64))
    assert {(trait.feature.name, trait.also) for trait in profiles.traits(0)} in (
        {("radius", ("perimeter",)), ("age", ())},
        {("perimeter", ("radius",)), ("age", ())},
    )
    assert "The same thing in other words: " in cards_of(page_of(model, path))[0]


@pytest.mark.parametrize(
    ("value", "deviation", "text"),
    [
        (71.234, 12.0, "71"),
        (5.6789, 0.45, "5.68"),
        (1.0e6, 2.0e5, "1,000,000"),
        (-3.21, 1.5, "\N{MINUS SIGN}3.2"),
        (-0.01, 12.0, "0"),
        (1.2341e-9, 1e-9, "1.234e\N{MINUS SIGN}09"),
        (1.2341e12, 1e11, "1.234e+12"),
    ],
)
def test_values_have_the_digits_that_their_spread_is_worth(value: float, deviation: float, text: str) -> None:
    assert Feature("x", "x", "", is_share=False, mean=0.0, deviation=deviation).text(value) == text


def test_shares_are_per_cent() -> None:
    share = Feature("x", "x", "", is_share=True, mean=0.5, deviation=0.5)
    assert [share.text(value) for value in (0.8, 1.0, -0.001)] == ["80 %", "100 %", "0 %"]
