"""The measurement of speed, growth and memory: its formulas, its verdicts, and the commands with tiny sizes."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from goldfc import OneShot
from goldfc._types import FloatArray, IntArray
from goldfc.demo.data import sites_of
from goldfc.learning.mixture import fit_mixture
from goldfc.learning.paper.competition import start
from goldfc.server.fusions import fuse
from goldfc.site.summarize import summarize
from goldfc.transport.local import LocalPort
from goldfc_bench.cases import split_of
from goldfc_bench.cli import main
from goldfc_bench.methods.oneshot import OneShotMethod
from goldfc_bench.scale import first, fusion, growth, learner, limits, memory, needs, page, stages, whole
from goldfc_bench.scale.clock import in_turn, median_ratio
from goldfc_bench.scale.machine import Machine
from goldfc_bench.scale.memory import Peak, in_fresh_process, peak_bytes, peak_of_process, state_bytes
from goldfc_bench.scale.needs import Need
from goldfc_bench.scale.page import Circumstances
from goldfc_bench.scale.parts import Table, Target, short
from goldfc_bench.scale.picture import draw_growth
from goldfc_bench.scale.plan import FULL, QUICK, Size
from goldfc_bench.scale.whole import CORESET, K_FED, OURS, POOLED, RIVALS, Race, Sample

NAN = float("nan")
SPLIT = split_of("SD-400x10", "even-8")


def race(rows: int, features: int, **seconds: list[float]) -> Race:
    names = {"ours": OURS, "k_fed": K_FED, "coreset": CORESET, "pooled": POOLED}
    samples = {names[key]: [Sample(one, one / 2) for one in taken] for key, taken in seconds.items()}
    return Race(Size(rows, features), SPLIT, samples)


# --- clocks and ratios ---


def test_works_take_turns_until_they_have_had_their_time() -> None:
    order: list[str] = []
    ticks: list[int] = []

    def taking(name: str, seconds: float) -> float:
        order.append(name)
        return seconds

    works = {"quick": lambda: taking("quick", 1.0), "slow": lambda: taking("slow", 5.0)}
    samples = in_turn(works, 3, 4.0, lambda: ticks.append(1))
    assert samples == {"quick": [1.0, 1.0, 1.0], "slow": [5.0]}
    assert order == ["quick", "slow", "quick", "quick"]
    assert len(ticks) == 6


def test_ratios_are_of_the_same_turn() -> None:
    # A machine that is ten times as slow in the second turn is so to both.
    assert median_ratio([2.0, 20.0, 2.0], [1.0, 10.0, 1.0]) == 2.0
    assert median_ratio([2.0, 20.0], [1.0]) == 2.0


def test_exponents_of_powers_are_exact() -> None:
    sizes = (10_000, 30_000, 100_000, 1_000_000)
    for power in (0.5, 1.0, 1.44, 2.0):
        assert growth.exponent(sizes, [3.0 * size**power for size in sizes]) == pytest.approx(power)
    assert np.isnan(growth.exponent((10,), (1.0,)))


def test_a_constant_part_makes_growth_look_slower() -> None:
    sizes = (10_000, 100_000, 1_000_000)
    assert growth.exponent(sizes, [0.3 + 1e-5 * size for size in sizes]) < 1.0


# --- targets ---


def test_verdicts_follow_from_the_figures() -> None:
    assert Target("x", 1.5, 1.5).verdict == "met"
    assert Target("x", 1.51, 1.5).verdict == "not met"
    assert Target("x", NAN, 1.5).verdict == "not measured"


def test_the_named_sizes_have_targets_and_the_others_have_none() -> None:
    measured = [learner.Measurement(*size, 3.0, 1.0, 3.0, 30, 5) for size in FULL.learner]
    targets = learner.section(measured).targets
    assert [target.limit for target in targets] == [1.5, 3.0, 4.0]
    assert [target.verdict for target in targets] == ["not met", "met", "met"]
    races = [race(rows, 10, ours=[6.0], k_fed=[1.0], coreset=[1.0], pooled=[1.0]) for rows in FULL.compared_rows]
    assert [(target.what, target.limit, target.verdict) for target in whole.section(races, FULL).targets] == [
        ("OneShot / k-Fed, N = 100k", 5.0, "not met"),
        ("OneShot / pooled KMeans(n_init=1), N = 100k", 10.0, "met"),
        ("OneShot / pooled KMeans(n_init=1), N = 1M", 4.0, "not met"),
    ]


def test_every_growth_has_its_limit() -> None:
    growths = [
        growth.Growth(growth.BLOCKS, "rows", (10, 100), (1.0, 10.0)),
        growth.Growth(growth.BLOCKS, "features", (10, 100), (1.0, 100.0)),
    ]
    section = growth.section(growths)
    assert [(target.limit, target.verdict) for target in section.targets] == [(1.05, "met"), (1.1, "not met")]
    assert [figure["exponent"] for figure in section.figures] == pytest.approx([1.0, 2.0])


# --- the whole ---


def test_a_rival_that_would_take_too_long_is_left_out_with_a_reason() -> None:
    small, large = race(100_000, 10, ours=[1.0], coreset=[10.0]), race(1_000_000, 10, ours=[], coreset=[])
    calls: list[str] = []

    def runner(method: str) -> whole.Runner:
        def run(_split: object, _seed: int) -> Sample:
            calls.append(method)
            return Sample(1.0, 0.5)

        return run

    whole.take_turn(large, [small, large], {name: runner(name) for name in (OURS, CORESET)}, 0, FULL)
    assert calls == [OURS]
    assert large.skipped == {CORESET: "left out: about 100 s to expect"}
    assert whole.cell(large, CORESET) == "left out: about 100 s to expect"
    assert np.isnan(large.ratio(CORESET))


def test_only_sizes_that_differ_in_one_number_tell_what_to_expect() -> None:
    races = [race(10_000, 10, k_fed=[1.0]), race(500, 1_000, k_fed=[7.0])]
    assert whole.expected_seconds(K_FED, Size(100_000, 10), races) == 10.0
    assert whole.expected_seconds(K_FED, Size(500, 10_000), races) == 70.0
    assert whole.expected_seconds(K_FED, Size(500, 1_000), races) == 0.0


def test_rivals_are_run_where_the_plan_says() -> None:
    assert [(size.rows, size.features) for size in FULL.with_rivals] == [
        (10_000, 10),
        (100_000, 10),
        (1_000_000, 10),
        (500, 1_000),
        (500, 10_000),
    ]


# --- stages ---


def test_a_stage_inside_another_stops_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(100))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(now)))
    clock = stages.StageClock()  # at 0
    inner = clock.watch(stages.Probe("inner", None, ""), lambda: None)
    outer = clock.watch(stages.Probe("outer", None, ""), inner)
    outer()  # outer from 1, inner from 2 to 3, outer to 4
    assert clock.seconds == {stages.ELSE: 1.0, "outer": 2.0, "inner": 1.0}


def test_needs_go_to_the_stage_that_calls() -> None:
    clock = stages.StageClock()
    helper = clock.watch(stages.Probe(None, None, "", lambda _result, flops: Need(flops=flops)), lambda _flops: None)
    clock.watch(stages.Probe("learning", None, ""), lambda: helper(5.0))()
    assert dict(clock.needs) == {"learning": Need(flops=5.0)}


def test_probes_are_in_place_for_the_time_being_only() -> None:
    before = [getattr(probe.owner, probe.name) for probe in stages.PROBES]
    with stages.under(stages.StageClock()):
        assert all(
            getattr(probe.owner, probe.name) is not function
            for probe, function in zip(stages.PROBES, before, strict=True)
        )
    assert [getattr(probe.owner, probe.name) for probe in stages.PROBES] == before


def test_a_site_of_many_rows_goes_through_all_stages_of_a_site() -> None:
    rows = np.random.default_rng(0).normal(size=(30_000, 3))
    clock = stages.StageClock()
    with stages.under(clock):
        summarize(rows, "a", OneShot().task)
    for stage in stages.STAGES[: stages.STAGES.index("measuring, shape") + 1]:
        assert clock.seconds[stage] > 0.0, stage
        need = clock.needs[stage]
        assert need.bytes + need.flops > 0.0, stage


def test_a_federation_of_clusters_that_overlap_goes_through_all_stages_of_the_server() -> None:
    clock = stages.profile(LocalPort(sites_of(OneShotMethod().site, stages.overlapping(2_000), 0)), 5, 0)
    for stage in stages.STAGES[stages.STAGES.index("putting sites together") :]:
        assert clock.seconds[stage] > 0.0, stage
    for stage in ("judge: spanning tree", "judge: mixtures", "judge: embedding, cut", "labelling"):
        assert clock.needs[stage].flops > 0.0, stage
    assert sum(clock.seconds.values()) > 2.0 * clock.seconds[stages.ELSE]


def test_the_nearer_limit_is_the_one_that_takes_longer() -> None:
    machine = Machine(bandwidth=10.0, flops_float64=100.0, flops_float32=200.0)
    assert Need(bytes=10.0, flops=10.0).seconds_at_best(machine) == (1.0, "bandwidth")
    assert Need(bytes=1.0, flops=50.0).seconds_at_best(machine) == (0.5, "operations")
    stage = stages.stage_of("learning", 2.0, 4.0, Need(flops=100.0), machine)
    assert (stage.per_cent_of_peak, stage.share, stage.limit) == (50.0, 0.5, "operations")
    assert stages.need_cells(stage)[-1] == "50 % of peak"
    assert stages.need_cells(stages.stage_of(stages.ELSE, 2.0, 4.0, Need(), machine)) == ("-",) * 4


def test_needs_are_counted_by_formula() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 4))
    assert needs.of_rows(2, None, rows).bytes == 2 * rows.nbytes
    assert needs.of_shape(None, SimpleNamespace(mean=np.zeros((4, 4))), slice(60), rows) == Need(
        rows.nbytes, 2 * 60 * 16
    )
    assert needs.of_product(None, rows, np.zeros((4, 7))).flops == 2 * 60 * 4 * 7
    assert needs.of_all_pairs(None, rows).flops == 3 * 4 * 60 * 60 / 2
    micro = fusion.overlapping(60, 4, 3)
    for own, squares in ((False, 0), (True, 4 * 16)):
        clusters = fit_mixture(micro, np.arange(60) % 3, own=own).clusters
        assert needs.of_em_step(clusters, micro).flops == 60 * 3 * (4 * 4 + squares + 20)
    summary, _ = summarize(rows, "a", OneShot().task)
    model = fuse([summary], 2, OneShot(), np.random.default_rng(0))
    undone = 2 * model.covariance.size if model.covariance.ndim > 1 else 0
    compared = 2 if model.prototypes is None else len(model.prototypes.points)
    assert needs.of_labelling(None, rows, model) == Need(rows.nbytes, 60 * (undone + 2 * 4 * compared))


# --- memory ---


def test_state_is_what_a_competition_starts_with() -> None:
    rows = np.random.default_rng(0).normal(size=(40, 3))
    _, clusters = start(rows, np.ones(40), 20, np.random.default_rng(0))
    assert state_bytes(20, 3) == sum(array.nbytes for array in clusters)


def test_the_peak_is_seen_although_it_is_gone_at_the_end() -> None:
    length, extra = peak_bytes(lambda: len(np.ones(20_000_000)))
    assert length == 20_000_000
    assert np.isnan(extra) or 150e6 < extra < 300e6


def test_the_peak_of_a_process_counts_what_was_there_before() -> None:
    held = np.ones(10_000_000)
    taken, peak = peak_of_process(lambda: len(np.ones(20_000_000)))
    assert taken > 0.0
    assert np.isnan(peak) or peak > 240e6 + held.nbytes / 2


def test_a_fresh_process_is_another_one() -> None:
    assert in_fresh_process(os.getpid) != os.getpid()


def test_peaks_are_measured_in_their_unit() -> None:
    peaks = [Peak("site", 5e6, 10e6, 10e6, "its data", 3.0), Peak("fusion", 3e9, 0.0, 1e9, "GB", 2.0)]
    section = memory.section(peaks)
    assert [target.figure for target in section.targets] == [1.5, 3.0]
    assert [target.verdict for target in section.targets] == ["met", "not met"]


# --- limits ---


def test_seconds_and_memory_of_every_case_have_their_limits() -> None:
    section = limits.section([limits.Limited("wide", 61.0, 1.5e9), limits.Limited("fleet", 10.0, NAN)])
    assert [(target.figure, target.limit, target.verdict) for target in section.targets[:3]] == [
        (61.0, 60.0, "not met"),
        (1.5, 2.0, "met"),
        (10.0, 60.0, "met"),
    ]
    assert section.targets[3].verdict == "not measured"


def test_a_fleet_has_as_many_sites_as_it_says_and_wide_rows_as_many_features(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []

    class Recorder:
        def __init__(self, *_arguments: object, **_options: object) -> None:
            pass

        def fit(self, rows: FloatArray, groups: IntArray) -> None:
            seen.append((*rows.shape, len(np.unique(groups)), int(np.bincount(groups).max())))

    monkeypatch.setattr(limits, "OneShotClustering", Recorder)
    assert limits.cluster_wide(160, 20).what == "8 sites, 160 rows x 20"
    assert limits.cluster_fleet(1_200, 5).what == "1 200 sites, 5 rows x 10 each"
    assert seen == [(160, 20, 8, 20), (6_000, 10, 1_200, 5)]


def test_the_first_summary_is_made_with_an_empty_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[str] = []
    caches: list[str] = []

    def run(command: list[str], *, env: dict[str, str], **_options: object) -> None:
        commands.append(command[-1])
        caches.append(env.get("NUMBA_CACHE_DIR", ""))

    monkeypatch.setattr("subprocess.run", run)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    section = first.measure(QUICK, 2, lambda: None)
    assert commands == ["site.summary", "import sklearn.cluster"] * 2
    assert len({cache for cache in caches if cache}) == 2
    assert not any(Path(cache).exists() for cache in caches if cache)
    assert [target.limit for target in section.targets] == [4.0]


# --- pages and commands ---


def test_numbers_are_short() -> None:
    assert [short(number) for number in (500, 1_000, 12_500, 1_000_000)] == ["500", "1k", "12.5k", "1M"]
    assert Table(("a", "b"), [("1", "2")]).as_markdown() == ["| a | b |", "| --- | --- |", "| 1 | 2 |"]


def test_a_busy_machine_is_said_to_be_one() -> None:
    assert not Circumstances("x", 1, 0.1).load_sentence
    assert not Circumstances("x", 1, NAN).load_sentence
    assert "a load of 7.0" in Circumstances("x", 1, 7.0).load_sentence


def test_the_picture_has_both_panels_and_all_lines() -> None:
    races = [
        race(rows, features, ours=[1.0], k_fed=[0.1], coreset=[2.0], pooled=[0.2])
        for rows, features in ((10_000, 10), (100_000, 10), (500, 1_000), (500, 10_000))
    ]
    growths = [growth.Growth(growth.BLOCKS, along, (1_000, 10_000), (0.1, 1.0)) for along in ("rows", "features")]
    svg = draw_growth(races, growths)
    for text in ("Seconds against rows", "Seconds against features", "GOLD in blocks, 1 site", *RIVALS):
        assert text in svg, text


def test_bench_speed_fills_all_tables_and_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in (memory, limits):
        monkeypatch.setattr(module, "in_fresh_process", lambda work: work())  # new processes take their time to start
    result = CliRunner().invoke(main, ["speed", "--quick", "--repeats", "1", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "speed" / "README.md").read_text(encoding="utf-8")
    for title in ("one distance matrix", "against others", "time grows", "Two cores", "time goes", "Peak memory"):
        assert title in text
    for title in ("Wide rows, and a fleet", "The first summary", "OneShot's server"):
        assert f"## {title}" in text
    assert "| SD, 500 x 4 |" in text
    assert "no figure here means anything" in text
    assert "% of peak" in text
    figures = json.loads((tmp_path / "speed" / "figures.json").read_text(encoding="utf-8"))
    parts = {"learner", "whole", "growth", "limits", "first", "two_jobs", "stages", "fusion", "memory"}
    assert set(figures["figures"]) == parts
    assert {figure["method"] for figure in figures["figures"]["whole"]} == {OURS, *RIVALS}
    assert (tmp_path / "speed" / "growth.svg").read_text(encoding="utf-8").startswith("<svg")


def test_the_page_counts_the_targets_that_are_met() -> None:
    measured = [learner.Measurement(*size, 3.0, 1.0, 3.0, 30, 5) for size in FULL.learner]
    text = page.as_markdown([learner.section(measured)], Circumstances("goldfc-bench speed", 3, 0.0))
    assert "## Targets: 2 of 3 met" in text
    assert "| FCPL / one distance matrix, SD, 12500 x 10 | 3 | 1.5 | not met |" in text
    assert QUICK.judged is False
