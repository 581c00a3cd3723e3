"""The paper's experiments and ours, each as a list of runs; `quick` is a small form of the same."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from goldfc.demo.degree import non_icd_degree
from goldfc_bench.cases import split_of
from goldfc_bench.methods import METHODS
from goldfc_bench.methods.chosen import CRITERIA, ChosenK
from goldfc_bench.methods.coreset import CoresetKMeans
from goldfc_bench.methods.gold import Gold
from goldfc_bench.methods.oneshot import OneShotMethod
from goldfc_bench.methods.pooled import PooledKMeans
from goldfc_bench.run import Job

TEN = ("EC", "US", "VE", "EP", "YE", "CA", "LA", "WI", "PE", "LE")
FIVE = ("EC", "US", "VE", "YE", "CA")
SIX = ("EC", "US", "VE", "EP", "YE", "CA")
RATES = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0)
FRACTIONS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True)
class Experiment:
    """A name for the command, one sentence for people, and the runs."""

    name: str
    title: str
    jobs: Callable[[bool], list[Job]]
    one_at_a_time: bool = False  # where seconds are the result


def performance(quick: bool) -> list[Job]:
    """All methods on the paper's own splits."""
    datasets, seeds = (("EC", "US"), 1) if quick else (TEN, 10)
    return [
        Job(dataset, "paper", method, seed, limit=60.0 if quick else 900.0)
        for seed in range(seeds)
        for dataset in datasets
        for method in METHODS
    ]


def degree(quick: bool) -> list[Job]:
    """All methods on draws of the simulator that go from hardly to heavily Non-ICD."""
    datasets, candidates, kept, seeds = (("US",), 6, 2, 1) if quick else (FIVE, 40, 7, 3)
    return [
        Job(dataset, split, method, seed, limit=120.0)
        for dataset in datasets
        for split in spread_of_degrees(dataset, candidates, kept)
        for method in METHODS
        for seed in range(seeds)
    ]


def exchange(quick: bool) -> list[Job]:
    """Lambda alone: the same rows at sites of the same sizes, from as drawn to fully mixed."""
    datasets, draws, seeds = (("US",), 1, 1) if quick else (FIVE, 6, 3)
    return [
        Job(dataset, f"exchanged-8-{draw}-{per_cent}", method, seed, limit=120.0)
        for dataset in datasets
        for draw in range(draws)
        for per_cent in (0, 50, 100)
        for method in (OneShotMethod.name, Gold.name, CoresetKMeans.name)
        for seed in range(seeds)
    ]


def spread_of_degrees(dataset: str, candidates: int, kept: int) -> list[str]:
    """Of many draws of eight sites, some whose lambdas are spread evenly from the smallest to the largest."""
    names = [f"non-icd-8-{seed}" for seed in range(candidates)]
    degrees = np.array([degree_of(dataset, name) for name in names])
    targets = np.linspace(degrees.min(), degrees.max(), kept)
    nearest = [int(np.abs(degrees - target).argmin()) for target in targets]
    return [names[number] for number in dict.fromkeys(nearest)]


def degree_of(dataset: str, split: str) -> float:
    """Lambda of the sites of a case."""
    return non_icd_degree(split_of(dataset, split).rows_per_site())


def ablation(quick: bool) -> list[Job]:
    """FCPL and MCPL, each on or replaced by k-means."""
    datasets, seeds = (("EC", "US"), 2) if quick else (SIX, 10)
    return [
        Job(dataset, "paper", "GOLD ablated", seed, {"fcpl": fcpl, "mcpl": mcpl})
        for dataset in datasets
        for fcpl in (False, True)
        for mcpl in (False, True)
        for seed in range(seeds)
    ]


def granularity(quick: bool) -> list[Job]:
    """Levels added one by one from the finest on, and each level left out."""
    datasets, seeds, deepest = (("US",), 2, 3) if quick else (SIX, 10, 6)
    return [
        Job(dataset, "paper", "GOLD ablated", seed, {"levels": which, "level": level})
        for dataset in datasets
        for which in ("first", "without")
        for level in range(1, deepest + 1)
        for seed in range(seeds)
    ]


def unknown(quick: bool) -> list[Job]:
    """Nobody says how many clusters there are: our proposal, and choices on the pooled rows."""
    datasets, numbers, seeds, pooled_seeds = (("US",), (3, 7), 1, 1) if quick else (TEN, range(2, 31), 10, 2)
    chosen = [{"by": by, "then": then} for by in CRITERIA for then in (OneShotMethod.name, PooledKMeans.name)]
    return [
        *(
            Job(dataset, "paper", OneShotMethod.name, seed, {"given_k": given})
            for dataset in datasets
            for given in (True, False)
            for seed in range(seeds)
        ),
        *(
            Job(dataset, "paper", ChosenK.name, seed, settings)
            for dataset in datasets
            for settings in chosen
            for seed in range(pooled_seeds)
        ),
        *(
            Job(f"separate-{number}-{draw}", f"non-icd-8-{draw}", OneShotMethod.name, 0, {"given_k": False})
            for number in numbers
            for draw in range(1 if quick else 3)
        ),
    ]


def sites(quick: bool) -> list[Job]:
    """From a hundred to a thousand sites."""
    datasets, numbers, limit = (("US",), (10, 20), 5.0) if quick else (SIX, tuple(range(100, 1001, 100)), 20.0)
    # These two are compared with each other at all sizes, so neither may run out of time.
    limits = {} if quick else dict.fromkeys((OneShotMethod.name, CoresetKMeans.name), 200.0)
    return [
        Job(
            dataset,
            f"non-icd-{number}-0",
            method,
            0,
            limit=limits.get(method, limit),
            chain=f"{dataset} {method}",
            size=number,
        )
        for dataset in datasets
        for number in numbers
        for method in METHODS
    ]


def seconds(quick: bool) -> list[Job]:
    """Growth with the number of rows, and of features."""
    shapes = [(n, 10, "rows") for n in range(10_000, 100_001, 10_000)]
    shapes += [(500, d, "features") for d in range(1_000, 10_001, 1_000)]
    limit = 20.0
    if quick:
        shapes, limit = (
            [(500, 10, "rows"), (1_000, 10, "rows"), (80, 250, "features"), (80, 500, "features")],
            5.0,
        )
    return [
        Job(f"SD-{rows}x{features}", "even-8", method, 0, limit=limit, chain=f"{method}, {axis}", size=rows * features)
        for rows, features, axis in shapes
        for method in METHODS
    ]


def hyper(quick: bool) -> list[Job]:
    """GOLD over learning rates and first candidates."""
    datasets, seeds, rates, fractions = (
        (("US",), 1, RATES[::3], FRACTIONS[::3]) if quick else (SIX, 5, RATES, FRACTIONS)
    )
    return [
        Job(dataset, "paper", "GOLD", seed, {"learning_rate": rate, "initial_fraction": fraction})
        for dataset in datasets
        for rate in rates
        for fraction in fractions
        for seed in range(seeds)
    ]


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment("performance", "All methods on the paper's ten splits", performance),
        Experiment("degree", "From hardly to heavily Non-ICD sites", degree),
        Experiment("exchange", "The same rows, more and less Non-ICD", exchange),
        Experiment("ablation", "What FCPL and MCPL are worth", ablation),
        Experiment("granularity", "What each level is worth", granularity),
        Experiment("unknown", "The number of clusters nobody knows", unknown),
        Experiment("sites", "From 100 to 1000 sites", sites),
        Experiment("time", "Seconds against rows and features", seconds, one_at_a_time=True),
        Experiment("hyper", "Learning rate and first candidates", hyper),
    )
}
