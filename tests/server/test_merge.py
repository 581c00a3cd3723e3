"""Gateways: the summaries of many become one."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from goldfc import Summary, summarize
from goldfc._types import FloatArray
from goldfc.agreement import Agreement
from goldfc.errors import BadMessage, TooFewSites
from goldfc.learning.micro_clusters import MicroClusters
from goldfc.learning.moments import Moments, pool_moments
from goldfc.message.columns import Column
from goldfc.message.levels import PLAIN, Level, Private, Suppressed, weakest
from goldfc.message.wire import decode, encode
from goldfc.server.merge import Merged, merge, merge_admitted, with_enough
from goldfc.server.one_shot import fusion_of, shares_of
from goldfc.server.round import fuse_admitted
from goldfc.site.label import predict
from goldfc.site.membership import Guess
from sentences import refused
from sites import agreement, rows_of

PLAINLY = {"privacy": "plain", "limits": {"sites_behind": 1000, "mass_cap": 100.0}}
KINDS = (Column(name="age", range=(0.0, 120.0)), Column(name="kind", kind="category", categories=("a", "b", "c")))


def fleet(count: int, what: Agreement, n_rows: int = 40) -> list[Summary]:
    """The summaries of so many devices, each with rows of two of three kinds."""
    task = fusion_of(what).task
    return [
        summarize(rows_of(number, n_rows), f"device-{number:03}", task, terms=what.terms)[0] for number in range(count)
    ]


def merged(summaries: list[Summary], what: Agreement, region: str = "region") -> Merged:
    """One gateway's work, by one agreement for both sides."""
    return merge_admitted(summaries, what, what, region)


def greedy(summary: Summary, times: int) -> Summary:
    """As if it had so many times the rows."""
    assert summary.mass is not None
    return replace(summary, mass=summary.mass * times, moments=None)


def with_error(summary: Summary, error: float) -> Summary:
    """As if there were noise in it."""
    return replace(summary, error=np.full(2, error))


def test_one_summary_merged_is_that_summary() -> None:
    what = agreement(**PLAINLY)
    (one,) = fleet(1, what)
    same = merge([one], what, one.site)
    assert one.mass is not None
    assert one.shape is not None
    assert one.moments is not None
    assert same.shape is not None
    assert same.moments is not None
    np.testing.assert_array_equal(same.mass, one.mass)
    np.testing.assert_allclose(same.centroids, one.centroids, rtol=1e-12)
    np.testing.assert_allclose(same.shape, one.shape, rtol=1e-9)
    np.testing.assert_allclose(same.moments.squares, one.moments.squares, rtol=1e-9)


def test_masses_and_moments_add_up() -> None:
    what = agreement(**PLAINLY, columns=KINDS)
    rng = np.random.default_rng(0)
    tables = [np.column_stack([rng.normal(50, 9, 60), np.eye(3)[rng.integers(3, size=60)]]) for _ in range(30)]
    parts = [
        summarize(rows, f"device-{number:02}", fusion_of(what).task, terms=what.terms)[0]
        for number, rows in enumerate(tables)
    ]
    one = merge(parts, what, "region")
    assert one.mass is not None
    assert one.shape is not None
    assert one.moments is not None
    assert one.rows == 30 * 60
    assert len(one.centroids) == what.limits.most_micro_clusters
    expected = Moments.of(np.concatenate(tables))
    np.testing.assert_allclose(one.mass @ one.centroids / one.mass.sum(), expected.mean, rtol=1e-9)
    np.testing.assert_allclose(one.moments.mean, expected.mean, rtol=1e-9)
    np.testing.assert_allclose(one.moments.squares, expected.squares, rtol=1e-9)
    total = one.mass @ (one.centroids[:, 0] - expected.mean[0]) ** 2 + one.shape[0, 0] * one.mass.sum()
    assert total == pytest.approx(expected.squares[0])
    # The same where somebody does not tell moments.
    told = merge([*parts[1:], replace(parts[0], moments=None)], what, "region").moments
    assert told is not None
    np.testing.assert_allclose(told.squares, expected.squares, rtol=1e-9)


def test_the_order_of_summaries_does_not_matter() -> None:
    what = agreement(**PLAINLY)
    parts = fleet(20, what)
    one, other = (merged(some, what).summary.to_message() for some in (parts, parts[::-1]))
    assert encode(one) == encode(other)


def test_gateways_of_gateways_see_no_device_and_count_all_of_them() -> None:
    what = agreement(**PLAINLY)
    parts = fleet(24, what)
    regions = [merged(parts[first : first + 6], what, f"region-{first}").summary for first in range(0, 24, 6)]
    top = merged(regions, what, "country").summary
    assert top.sites == 24
    assert top.rows == 24 * 40
    for name in ("device", "region"):
        assert name.encode() not in encode(top.to_message())
    assert Summary.from_message(decode(encode(top.to_message()))).sites == 24


@pytest.mark.parametrize("privacy", ["plain", "suppressed"])
def test_fusing_regions_is_as_good_as_fusing_devices(privacy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goldfc.site.summarize.membership_of", lambda *_: Guess(0.5, 0.0))  # it takes long
    what = agreement(**{**PLAINLY, "privacy": privacy})
    parts = fleet(12, what, 60)
    regions = [merged(parts[first : first + 4], what, f"region-{first}").summary for first in range(0, 12, 4)]
    rows = np.concatenate([rows_of(number, 60) for number in range(12)])
    one, other = (predict(fuse_admitted(some, what, 3).model, rows) for some in (parts, regions))
    assert adjusted_rand_score(one, other) > 0.99


def test_a_gateway_has_the_checks_of_a_server() -> None:
    what = agreement(**PLAINLY)
    parts = fleet(8, what)
    with refused(TooFewSites, "too-few-sites"):
        merged(parts[:2], what)
    moments = pool_moments([part.moments for part in parts if part.moments])
    far = replace(parts[0], moments=Moments(40, moments.mean, moments.squares * 1e6), shape=np.eye(2) * 1e6)
    result = merged([far, *parts[1:]], what)
    assert set(result.left_out) == {"device-000"}
    assert result.summary.sites == 7


def test_more_sites_behind_a_summary_than_agreed_are_refused() -> None:
    with refused(BadMessage, "sites-behind"):
        merged(fleet(4, agreement(privacy="plain")), agreement(privacy="plain"))


def test_a_device_counts_no_more_at_a_gateway_than_at_a_server() -> None:
    what = agreement(privacy="plain", limits={"sites_behind": 100, "mass_cap": 1.0})
    parts = fleet(9, what)
    result = merge([greedy(parts[0], 10**6), *parts[1:]], what, "region", what.limits.mass_cap)
    assert result.rows == pytest.approx(9 * 40, abs=len(result.centroids))


def test_a_region_counts_as_all_of_its_sites_and_no_more() -> None:
    what = agreement(**PLAINLY)
    parts = fleet(30, what)
    small, large, usual = (merge(parts[a:b], what, name) for name, a, b in (("s", 0, 3), ("l", 3, 23), ("u", 23, 30)))
    assert shares_of([small, large, usual], 1.0) == [1.0, 1.0, 1.0]
    assert shares_of([small, greedy(large, 10), usual], 1.0) == [1.0, pytest.approx(0.1), 1.0]


def test_groups_that_are_too_small_to_be_told_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goldfc.site.summarize.membership_of", lambda *_: Guess(0.5, 0.0))
    what = agreement(privacy="suppressed", limits={"sites_behind": 100, "mass_cap": 1.0})
    parts = fleet(6, what, 60)
    result = merge([greedy(parts[0], 1000), *parts[1:]], what, "region", 1.0)
    assert result.mass is not None
    assert result.mass.min() >= 5
    assert result.rows == pytest.approx(6 * 60, rel=0.1)


@pytest.mark.parametrize(
    ("mass", "expected"),
    [([9.0, 9.0, 9.0], [0, 1, 2]), ([9.0, 2.0, 9.0], [0, 0, 1]), ([2.0, 2.0, 2.0], [0, 0, 0])],
    ids=["all enough", "one too few", "all too few"],
)
def test_a_group_with_too_few_rows_joins_the_nearest(mass: list[float], expected: list[int]) -> None:
    micro = MicroClusters(np.array([[0.0], [1.0], [9.0]]), np.array(mass))
    assert with_enough(micro, np.arange(3), 5).tolist() == expected


def test_what_is_withheld_stays_withheld() -> None:
    what = agreement(privacy="plain", withhold=["mass", "shape"], limits={"sites_behind": 100})
    task = fusion_of(what).task
    parts = [summarize(rows_of(n), f"device-{n}", task, withhold=what.withhold, terms=what.terms)[0] for n in range(5)]
    one = merged(parts, what).summary
    assert one.mass is None
    assert one.shape is None
    assert one.moments is not None
    assert one.moments.count == 5 * 120


def test_noise_is_told_as_much_as_is_left_of_it() -> None:
    columns = (KINDS[0], Column(name="pressure", range=(0.0, 200.0)))
    many, few = (
        agreement(
            privacy="plain", scaling="ranges", columns=columns, limits={"sites_behind": 9, "most_micro_clusters": most}
        )
        for most in (100, 1)
    )
    parts = [with_error(part, 4.0) for part in fleet(3, many)]
    apart, together = (merge(parts, what, "region") for what in (many, few))
    assert apart.error is not None
    assert together.error is not None
    np.testing.assert_allclose(apart.error, 4.0)  # every micro-cluster is its own
    assert together.error.max() < 1.0
    for one in (apart, together):
        np.testing.assert_allclose(total_of(one), total_of(apart), rtol=1e-6)


def test_private_devices_make_a_private_region() -> None:
    columns = tuple(column.model_copy(update={"range": (0.0, 200.0)}) for column in agreement().columns)
    what = agreement(privacy="private", eps=8.0, columns=columns, limits={"sites_behind": 100})
    task = fusion_of(what).task
    tables = [rows_of(number, 2_000) for number in range(6)]
    parts = [
        summarize(rows, f"device-{n}", task, terms=what.terms, randomness=np.random.default_rng(n).bytes)[0]
        for n, rows in enumerate(tables)
    ]
    regions = [merged(parts[first : first + 3], what, f"region-{first}").summary for first in (0, 3)]
    top = merge(regions, what, "country")
    assert top.level == what.level
    assert top.moments is None
    assert top.error is not None
    assert top.rows == pytest.approx(6 * 2_000, rel=0.05)
    np.testing.assert_allclose(total_of(top), np.concatenate(tables).var(axis=0), rtol=0.2)


def total_of(one: Summary) -> FloatArray:
    """The variance of all rows, without noise."""
    assert one.mass is not None
    assert one.shape is not None
    assert one.error is not None
    mean = one.mass @ one.centroids / one.mass.sum()
    between = one.mass @ (one.centroids - mean) ** 2 / one.mass.sum()
    return np.asarray(np.diag(one.shape) - one.error + between)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([PLAIN, Suppressed(smallest=5)], PLAIN),
        ([Suppressed(smallest=9), Suppressed(smallest=5), Private()], Suppressed(smallest=5)),
        ([Private(eps=1.0, delta=1e-6, most_rows=3), Private(eps=2.0)], Private(eps=2.0, delta=1e-5, most_rows=1)),
    ],
)
def test_what_is_merged_promises_what_all_promise(levels: list[Level], expected: Level) -> None:
    assert weakest(levels) == expected
