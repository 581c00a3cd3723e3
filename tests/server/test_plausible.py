"""Columns of a site that do not look like the others' are named, and no site can have an honest one thrown out."""

from dataclasses import replace

import numpy as np
import pytest

from goldfc import Summary, summarize
from goldfc._types import FloatArray
from goldfc.agreement import Agreement
from goldfc.errors import BadMessage, TooFewSites
from goldfc.message.columns import Column
from goldfc.message.units import Look, likely
from goldfc.server.one_shot import fusion_of
from goldfc.server.plausible import MOST_SAID, Looks, Odd, implausible, odd_columns, said
from goldfc.server.round import fuse_admitted
from sentences import refused

NUMBERS = (Column(name="ldl", unit="mmol/L"), Column(name="temperature", unit="°C"), Column(name="age", unit="years"))
MIDDLE, SPREAD = np.array([3.3, 36.8, 55.0]), np.array([0.9, 0.6, 15.0])


def told(means: FloatArray, spreads: FloatArray) -> Looks:
    """Sites that tell these, and two micro-clusters each."""
    n_sites, n_columns = means.shape
    names = tuple(column.name for column in NUMBERS[:n_columns])
    units = tuple(column.unit for column in NUMBERS[:n_columns])
    halves = tuple(np.array([mean - spread, mean + spread]) for mean, spread in zip(means, spreads, strict=True))
    return Looks(tuple(f"s{n}" for n in range(n_sites)), names, units, means, spreads, halves, (np.ones(2),) * n_sites)


def honest(n_sites: int, seed: int) -> Looks:
    """Sites that see different clusters: means and spreads differ."""
    rng = np.random.default_rng(seed)
    means = MIDDLE + SPREAD * rng.normal(size=(n_sites, 3)) * 0.6
    return told(means, SPREAD * rng.uniform(0.4, 1.3, size=(n_sites, 3)))


def changed(them: Looks, site: int, column: int, *, factor: float = 1.0, by: float = 0.0) -> Looks:
    """The same with one column of one site in other units, or moved."""
    means, spreads = them.means.copy(), them.spreads.copy()
    means[site, column] = factor * means[site, column] + by
    spreads[site, column] *= factor
    return replace(them, means=means, spreads=spreads)


def names(odd: list[Odd]) -> list[tuple[str | None, str]]:
    return [(one.site, one.column) for one in odd]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n_sites", [3, 5, 8])
def test_honest_sites_that_see_different_clusters_are_left_alone(n_sites: int, seed: int) -> None:
    assert odd_columns(honest(n_sites, seed)) == []


@pytest.mark.parametrize("n_sites", [3, 5, 8])
@pytest.mark.parametrize("factor", [38.67, 18.02, 1 / 38.67, 1000.0, 0.001])
@pytest.mark.parametrize("seed", range(2))
def test_other_units_are_named_with_site_column_and_factor(n_sites: int, factor: float, seed: int) -> None:
    odd = odd_columns(changed(honest(n_sites, seed), 1, 0, factor=factor))
    assert names(odd) == [("s1", "ldl")]
    assert "Column 'ldl': s1's mean is" in odd[0].sentence
    assert "other units? (a factor of " in odd[0].sentence
    assert odd[0].sure == (n_sites >= 5)


def test_a_sentence_tells_both_values_and_what_would_fit() -> None:
    means = np.array([[3.9], [205.0], [4.2], [5.1], [4.4]])
    (odd,) = odd_columns(told(means, means * 0.3))
    assert odd.sentence == (
        "Column 'ldl': s1's mean is 205, the others' 3.9 to 5.1; other units? (a factor of 38.67 would fit, as between "
        "cholesterol (LDL, HDL) in mg/dL and mmol/L)"
    )


def test_a_moved_column_is_named_with_what_it_is_moved_by() -> None:
    (odd,) = odd_columns(changed(honest(8, 0), 2, 1, by=273.15))
    assert (odd.site, odd.column) == ("s2", "temperature")
    assert "are all values moved? (+273.15 would fit, as between K and °C)" in odd.sentence
    fahrenheit = odd_columns(changed(honest(8, 0), 2, 1, factor=1.8, by=32.0))
    assert "(a factor of 1.8 and +32 would fit, as between °F and °C)" in fahrenheit[0].sentence
    (age,) = odd_columns(changed(honest(8, 0), 2, 2, by=1900.0))
    assert "are all values moved? (+1890 would fit)" in age.sentence


def test_wide_values_around_the_same_mean_are_named_by_their_spread() -> None:
    them = honest(8, 0)
    them.spreads[3, 0] *= 200.0
    (odd,) = odd_columns(them)
    assert "s3's values spread by" in odd.sentence
    assert "other units, or stray values?" in odd.sentence


def test_a_cluster_that_one_site_alone_sees_is_no_fault() -> None:
    them = honest(8, 0)
    ill = np.array([them.means[3], them.means[3] + [40.0, 0.0, 0.0]])
    mean, spread = ill.mean(axis=0), ill.std(axis=0) + 0.1
    means, spreads = them.means.copy(), them.spreads.copy()
    means[3, 0], spreads[3, 0] = mean[0], spread[0]
    lying = replace(them, means=means, spreads=spreads)
    assert names(odd_columns(lying)) == [("s3", "ldl")]  # the micro-clusters have another mean than is told
    seen = tuple(ill if site == 3 else own for site, own in enumerate(them.centroids))
    assert odd_columns(replace(lying, centroids=seen)) == []


def test_a_constant_column_is_named_unless_the_others_have_that_value_too() -> None:
    them = honest(8, 0)
    them.spreads[4, 2] = 0.0
    (odd,) = odd_columns(them)
    assert (odd.kind, odd.site, odd.sure) == ("constant", "s4", False)
    assert "all rows of s4 have" in odd.sentence
    natural = tuple(np.full_like(own, them.means[4]) for own in them.centroids)
    assert odd_columns(replace(them, centroids=natural)) == []
    # Told in steps, of which the nearest is beside it.
    steps = tuple(
        np.column_stack([own[:1].repeat(9, 0)[:, :2], them.means[4, 2] + 0.4 * spread[2] * (np.arange(9) - 4.5)])
        for own, spread in zip(them.centroids, them.spreads, strict=True)
    )
    masses = (np.array([1.0, 1.0, 1.0, 1.0, 4.0, 1.0, 1.0, 1.0, 1.0]),) * 8
    assert odd_columns(replace(them, centroids=steps, masses=masses)) == []
    them.spreads[5, 2] = 0.0  # of two sites it is nothing special
    assert odd_columns(them) == []


def test_swapped_columns_are_recognised() -> None:
    them = honest(8, 1)
    for values in (them.means, them.spreads):
        values[2, [1, 2]] = values[2, [2, 1]]
    (odd,) = odd_columns(them)  # ages are so various that a temperature may be one
    assert odd.column == "temperature"
    assert odd.sentence.endswith("is it swapped with 'age'?")


def test_of_two_sites_nobody_is_the_odd_one() -> None:
    (odd,) = odd_columns(changed(honest(2, 0), 1, 0, factor=38.67))
    assert (odd.kind, odd.site, odd.sure) == ("apart", None, False)
    assert "nobody can say who is right" in odd.sentence
    assert "s0" in odd.sentence
    assert "s1" in odd.sentence
    assert odd_columns(honest(1, 0)) == []


@pytest.mark.parametrize("n_sites", [4, 6, 8])
def test_of_two_halves_neither_is_the_odd_one(n_sites: int) -> None:
    them = honest(n_sites, 0)
    for site in range(n_sites // 2):
        them = changed(them, site, 0, factor=38.67)
    (odd,) = odd_columns(them)
    assert (odd.kind, odd.site) == ("apart", None)
    assert implausible([odd]) == {}


def test_two_of_eight_in_the_same_other_units_are_both_named() -> None:
    them = changed(changed(honest(8, 0), 1, 0, factor=38.67), 6, 0, factor=38.67)
    assert sorted(names(odd_columns(them))) == [("s1", "ldl"), ("s6", "ldl")]


def test_who_tells_one_mean_only_is_compared_by_it_and_has_no_vote() -> None:
    them = honest(8, 0)
    them.spreads[:3] = np.nan
    assert odd_columns(them) == []
    assert names(odd_columns(changed(them, 0, 0, factor=38.67))) == [("s0", "ldl")]
    assert names(odd_columns(changed(them, 5, 1, by=100.0))) == [("s5", "temperature")]
    them.spreads[:] = np.nan
    assert odd_columns(changed(them, 5, 1, by=100.0)) == []  # nobody has a vote


# --- hostile sites ---


def hostile_looks(rng: np.random.Generator, means: FloatArray, spreads: FloatArray, victim: int) -> tuple[float, float]:
    """What a site may tell of a column that wants another one to look odd, or to hide."""
    others = np.delete(np.arange(len(means)), victim)
    furthest = others[np.abs(means[others] - means[victim]).argmax()]
    ways = (
        (means[furthest], 1e-6 * spreads[furthest]),
        (float(np.median(means[others])), 1e-9),
        (1e50, 1e50),
        (means[furthest] * 1e-3, spreads[furthest] * 1e-3),
        (means[furthest] * 10 ** rng.uniform(-9, 9), spreads[furthest] * 10 ** rng.uniform(-9, 9)),
        (-means[furthest], 1e30),
        (float(np.sort(means[others])[rng.integers(len(others))]), 10 ** rng.uniform(-12, 3)),
    )
    mean, spread = ways[rng.integers(len(ways))]
    return float(mean), float(spread)


@pytest.mark.parametrize(("n_sites", "n_hostile"), [(8, 2), (5, 1)])
@pytest.mark.parametrize("seed", range(30))
def test_a_few_hostile_sites_get_no_honest_one_refused(n_sites: int, n_hostile: int, seed: int) -> None:
    rng, them = np.random.default_rng(seed), honest(n_sites, seed)
    for column in range(3):
        own = slice(n_hostile, None)
        for evil in range(n_hostile):
            victim = int(rng.integers(n_sites - n_hostile))
            look = hostile_looks(rng, them.means[own, column], them.spreads[own, column], victim)
            them.means[evil, column], them.spreads[evil, column] = look
    assert set(implausible(odd_columns(them))) <= {f"s{evil}" for evil in range(n_hostile)}


@pytest.mark.parametrize("seed", range(20))
def test_two_hostile_of_eight_cannot_hide_that_a_third_is_in_other_units(seed: int) -> None:
    rng, them = np.random.default_rng(seed), changed(honest(8, seed), 7, 0, factor=38.67)
    for evil in range(2):
        them.means[evil, 0], them.spreads[evil, 0] = rng.choice([-1e30, 0.0, 3.3, 1e30]), rng.choice([1e-9, 1.0, 1e30])
    odd = odd_columns(them)
    assert ("s7", "ldl") in names(odd)
    assert "s7" in implausible(odd)


def test_three_sites_name_one_and_refuse_nobody() -> None:
    (odd,) = odd_columns(changed(honest(3, 0), 0, 0, factor=1000.0))
    assert odd.site == "s0"
    assert implausible([odd]) == {}


def test_masses_do_not_count() -> None:
    them = changed(honest(8, 0), 1, 0, factor=38.67)
    heavy = replace(them, masses=(np.full(2, 1e8),) * 2 + them.masses[2:])
    assert odd_columns(heavy) == odd_columns(them)


def test_the_order_of_sites_does_not_matter() -> None:
    them = changed(honest(8, 0), 1, 0, factor=38.67)
    turned = told(them.means[::-1], them.spreads[::-1])
    assert [one.times for one in odd_columns(turned)] == pytest.approx([one.times for one in odd_columns(them)])


# --- in a round ---


def summaries(what: Agreement, n_sites: int = 6) -> list[Summary]:
    """As sites send them; the second has mg/dL, the last kelvin."""
    found = []
    for site in range(n_sites):
        rng = np.random.default_rng(site)
        rows = MIDDLE + SPREAD * (rng.normal(size=(150, 3)) + 0.3 * rng.normal(size=3))
        rows[:, 0] *= 38.67 if site == 1 else 1.0
        rows[:, 1] += 273.15 if site == n_sites - 1 else 0.0
        found.append(summarize(rows, f"s{site}", fusion_of(what).task, terms=what.terms)[0])
    return found


def agreed(**changes: object) -> Agreement:
    return Agreement.model_validate({"federation": "wards", "columns": NUMBERS, **changes})


def test_a_round_warns_and_fuses_all_unless_agreed_otherwise() -> None:
    what = agreed()
    told_to: list[object] = []
    result = fuse_admitted(summaries(what), what, 2, lambda *judged: told_to.append(judged))
    assert len(result.summaries) == 6
    assert result.left_out == {}
    assert [sentence.partition(":")[0] for sentence in result.odd] == ["Column 'temperature'", "Column 'ldl'"]
    assert told_to == [(result.left_out, result.odd)]


def test_where_it_is_agreed_on_implausible_sites_are_refused_and_named() -> None:
    what = agreed(implausible="refuse")
    result = fuse_admitted(summaries(what), what, 2)
    assert sorted(result.left_out) == ["s1", "s5"]
    assert "Column 'ldl': s1's mean is" in result.left_out["s1"]
    assert result.odd == ()
    with pytest.raises(TooFewSites):
        fuse_admitted(summaries(what), agreed(implausible="refuse", limits={"least_sites": 5}), 2)


def test_a_refusal_has_a_code() -> None:
    error = implausible(odd_columns(changed(honest(8, 0), 1, 0, factor=38.67)))["s1"]
    with refused(BadMessage, "column-implausible"):
        raise error


def test_without_columns_of_numbers_there_is_nothing_to_compare() -> None:
    what = Agreement(federation="wards", columns=(Column(name="smoker", kind="boolean"),))
    rng = np.random.default_rng(0)
    rows = [(rng.random((60, 1)) < share).astype(float) for share in (0.1, 0.9, 0.5)]
    sent = [summarize(own, f"s{n}", fusion_of(what).task, terms=what.terms)[0] for n, own in enumerate(rows)]
    assert odd_columns(Looks.of(sent)) == []


def test_what_is_told_without_moments_follows_from_the_micro_clusters() -> None:
    what = agreed()
    sent = summaries(what)
    exact, derived = Looks.of(sent), Looks.of([replace(summary, moments=None) for summary in sent])
    np.testing.assert_allclose(derived.means, exact.means, rtol=0.05)
    np.testing.assert_allclose(derived.spreads, exact.spreads, rtol=0.3)
    alone = replace(sent[0], centroids=sent[0].centroids[:1], mass=None, shape=None, moments=None)
    assert not Looks.of([alone]).tells_spreads.any()


def test_no_more_is_said_than_anybody_reads() -> None:
    odd = odd_columns(changed(honest(8, 0), 1, 0, factor=38.67)) * (MOST_SAID + 3)
    assert len(said(odd)) == MOST_SAID + 1
    assert said(odd)[-1] == "And 3 more columns that look odd."


# --- what would fit ---


@pytest.mark.parametrize(
    ("own", "others", "about", "text"),
    [
        (Look(3250.0, 900.0), Look(3.2, 0.9), "", "a factor of 1000 would fit, as between values with and without"),
        (Look(170.0, 10.0), Look(67.0, 4.0), "height cm", "a factor of 2.54 would fit"),
        (Look(99.0, 0.8), Look(4.0, 0.03), "", "a factor of 24.8 would fit"),
        (Look(105.0, 26.0), Look(5.8, 1.5), "glucose mmol/L", "a factor of 18.02 would fit"),
        (Look(1.0, 0.3), Look(88.0, 26.0), "creatinine µmol/L", "a factor of 1/88.4 would fit"),
        (Look(-40.0, 1.0), Look(50.0, 1.0), "", "-90 would fit"),
        (Look(6.0, float("nan")), Look(0.1, 0.01), "", "a factor of 60 would fit"),
    ],
)
def test_known_units_come_first_and_else_what_was_measured(own: Look, others: Look, about: str, text: str) -> None:
    guess = likely(own, others, others.spread, about)
    assert guess is not None
    assert guess.text.startswith(text)


def test_where_mean_and_spread_disagree_nothing_fits() -> None:
    assert likely(Look(1e6, 0.001), Look(1.0, 1.0), 1.0) is None
    assert likely(Look(5.0, 0.0), Look(0.0, 0.0), 0.0) is None
    assert likely(Look(1e100, 1e100), Look(1e-100, 1e-90), 1e-90) is None
