"""What safety costs and what it holds against: scaling, suppression, hostile sites, a thousand summaries.

By file a site learns in its own scale, suppresses small micro-clusters and rounds; the server bounds everybody's
influence. Here this is measured: on the paper's ten splits in raw units, on digits at eight sites one of which is
hostile, and with a thousand sites.
"""

import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np

from goldfc._types import FloatArray
from goldfc.agreement import Agreement
from goldfc.demo.data import Split
from goldfc.errors import BadMessage
from goldfc.files import write_durably
from goldfc.learning.micro_clusters import diagonal_of
from goldfc.learning.moments import Moments
from goldfc.message.columns import Column
from goldfc.message.levels import with_fewest
from goldfc.message.message import Message
from goldfc.message.summary import LARGEST_MASS, Summary
from goldfc.message.wire import encode
from goldfc.server.admit import far_out
from goldfc.server.folder import Folder
from goldfc.server.one_shot import fusion_of
from goldfc.server.round import fuse_admitted
from goldfc.site.audit import Audit, audit
from goldfc.site.label import predict
from goldfc.site.privacy import Rules
from goldfc.site.rows import checked
from goldfc.site.summarize import summarize, tell
from goldfc_bench.cases import split_of
from goldfc_bench.datasets import DATASETS, load
from goldfc_bench.methods.oneshot import OneShotMethod
from goldfc_bench.run import Job, Run
from goldfc_bench.score import ari

METHOD = OneShotMethod.name
# What is compared: the data, and the settings.
VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    "all rows scaled together (impossible)": ("", {"scaling": "given"}),
    "own scale, pooled by the server": ("-raw", {"scaling": "pooled"}),
    "by file: pooled scale, suppressed, capped": ("-raw", {"by_file": True}),
}


# --- what scaling and suppression cost ---


def jobs(datasets: Sequence[str], seeds: int) -> list[Job]:
    """All variants on the paper's splits."""
    return [
        Job(dataset + raw, "paper", METHOD, seed, settings)
        for raw, settings in VARIANTS.values()
        for seed in range(seeds)
        for dataset in datasets
    ]


def cost_table(runs: Sequence[Run]) -> Iterator[str]:
    """Federated ARI by data set and variant, and what each variant costs in the mean."""
    datasets = [name for name in DATASETS if any(run.dataset == name for run in runs)]
    yield f"| | {' | '.join(datasets)} | mean | cost |"
    yield "|---|" + "---|" * (len(datasets) + 2)
    first = None
    for title, (raw, settings) in VARIANTS.items():
        chosen = [run for run in runs if run.settings == settings]
        means = [
            fmean(run.scores["federated", "ARI"] for run in chosen if run.dataset == name + raw) for name in datasets
        ]
        first = fmean(means) if first is None else first
        figures = [f"{figure:.3f}" for figure in (*means, fmean(means))]
        yield f"| {title} | {' | '.join(figures)} | {first - fmean(means):+.3f} |"


def membership_table(datasets: Sequence[str]) -> Iterator[str]:
    """What the audit finds at the eight sites of every split, at the default level."""
    yield "| | rows of a site | micro-clusters | smallest | centroids that are a row | AUC, median (worst) |"
    yield "|---|---|---|---|---|---|"
    for name in datasets:
        rows_of_sites = split_of(f"{name}-raw", "paper").rows_per_site()
        found = [audit_of(rows) for rows in rows_of_sites if len(rows) >= 20]
        aucs = [one.membership.auc for one in found if one.membership is not None]
        yield (
            f"| {name} | {min(one.rows for one in found)} to {max(one.rows for one in found)} "
            f"| {min(one.micro_clusters for one in found)} to {max(one.micro_clusters for one in found)} "
            f"| {min(one.smallest for one in found)} | {sum(one.exact_matches for one in found)} "
            f"| {np.median(aucs):.2f} ({max(aucs):.2f}) |"
        )


def audit_of(rows: FloatArray) -> Audit:
    """At the default level."""
    what = agreement_for(rows.shape[1])
    told = tell(checked(rows, "a"), "a", fusion_of(what).task, Rules(what.terms))
    return audit(told, required=what.smallest)


def agreement_for(n_features: int) -> Agreement:
    """Columns without meaning, and the defaults."""
    return Agreement(federation="bench", columns=tuple(Column(name=f"x{number}") for number in range(n_features)))


# --- a hostile site ---


@dataclass(frozen=True)
class Federation:
    """Digits at eight sites, as the demo has them but in grey values, and what each would send."""

    split: Split
    agreement: Agreement
    summaries: tuple[Summary, ...]

    def score(self, messages: Sequence[Summary | Message], without: int) -> float:
        """The ARI of the rows of all sites but one."""
        fitting = [summary for message in messages if (summary := self._taken(message)) is not None]
        model = fuse_admitted(fitting, self.agreement, len(np.unique(self.split.y))).model
        others = self.split.site != without
        return ari(self.split.y[others], predict(model, self.split.X[others]))

    def keeps_out(self, others: Sequence[Summary], message: Summary | Message) -> bool:
        """Whether a message is refused, or left out when it comes to fusing."""
        summary = self._taken(message)
        return summary is None or summary.site in far_out([*others, summary])

    def _taken(self, message: Summary | Message) -> Summary | None:
        try:
            return self.agreement.read_summary(message if isinstance(message, Message) else message.to_message())
        except BadMessage:
            return None


def digits_at_eight_sites(seed: int) -> Federation:
    """Everybody honest. No ranges are agreed on, which would refuse what lies outside of them."""
    split, complete = split_of("digits", f"non-icd-8-{seed}"), load("digits", standardize=False).X
    grey = np.round(split.X * complete.std(axis=0) + complete.mean(axis=0), 6)
    agreement = agreement_for(grey.shape[1])
    summaries = tuple(
        summarize(grey[split.site == number], f"site-{number}", agreement.task, terms=agreement.terms)[0]
        for number in np.unique(split.site)
    )
    return Federation(replace(split, X=grey), agreement, summaries)


def lie(summary: Summary, centroids: FloatArray, mass: FloatArray) -> Summary:
    """Another summary of the same site, with moments that agree with it."""
    mean = np.average(centroids, axis=0, weights=mass)
    within = 0.0 if summary.shape is None else diagonal_of(summary.shape)
    squares = mass @ (centroids - mean) ** 2 + mass.sum() * within
    return replace(
        summary, centroids=centroids, mass=mass.astype(np.int64), moments=Moments(float(mass.sum()), mean, squares)
    )


def far_corner(summary: Summary) -> Summary:
    """As many micro-clusters as allowed, where all values are largest."""
    corner = 16.0 - np.random.default_rng(0).random((100, summary.centroids.shape[1]))
    return lie(summary, corner, np.full(100, 10_000.0))


def huge_counts(summary: Summary) -> Summary:
    """Its own micro-clusters, as if each had nearly as many rows as a message can say."""
    count = len(summary.centroids)
    return lie(summary, summary.centroids, np.full(count, float(LARGEST_MASS // (2 * count))))


def one_huge_count(summary: Summary) -> Summary:
    """One of its micro-clusters outweighs all others."""
    mass = np.full(len(summary.centroids), float(summary.level.fewest))
    mass[0] = LARGEST_MASS // 2
    return lie(summary, summary.centroids, mass)


def thousands_of_points(summary: Summary) -> Summary:
    """Five thousand points everywhere."""
    points = 16.0 * np.random.default_rng(0).random((5_000, summary.centroids.shape[1]))
    return lie(summary, points, np.full(5_000, float(summary.level.fewest)))


def points_everywhere(summary: Summary) -> Summary:
    """The same, but not more than allowed."""
    points = 16.0 * np.random.default_rng(0).random((100, summary.centroids.shape[1]))
    return lie(summary, points, np.full(100, 10_000.0))


def huge_magnitudes(summary: Summary) -> Summary:
    """A billion times too large."""
    return lie(summary, summary.centroids * 1e9, np.full(len(summary.centroids), max(50.0, summary.level.fewest)))


def two_faces(summary: Summary) -> Message:
    """Centroids thirty times as far out, beside moments that look honest."""
    message = summary.to_message()
    return Message(message.kind, {**message.arrays, "centroids": summary.centroids * 30.0}, message.facts)


ATTACKS: Mapping[str, Callable[[Summary], Summary | Message]] = {
    "far corner": far_corner,
    "huge counts": huge_counts,
    "one huge count": one_huge_count,
    "thousands of uniform points": thousands_of_points,
    "uniform points, as many as allowed": points_everywhere,
    "huge magnitudes": huge_magnitudes,
    "far out beside honest moments": two_faces,
}


@dataclass(frozen=True)
class Loss:
    """What one hostile site costs the others in ARI: against all when all are honest, and against the others alone."""

    from_all: float
    from_others: float
    kept_out: bool


def losses_to(federation: Federation, evil: int) -> dict[str, Loss]:
    """What each attack by one of the sites costs; against all, the loss of its own rows counts, too."""
    honest = federation.summaries[evil]
    others = [summary for summary in federation.summaries if summary is not honest]
    everybody, alone = federation.score(federation.summaries, evil), federation.score(others, evil)
    losses = {}
    for name, attack in ATTACKS.items():
        message = attack(honest)
        score = federation.score([*others, message], evil)
        losses[name] = Loss(everybody - score, alone - score, federation.keeps_out(others, message))
    return losses


def attack_table(
    seeds: Sequence[int], hostile: Sequence[int] = range(8), on_site: Callable[[], None] = lambda: None
) -> Iterator[str]:
    """What each attack costs the other seven sites in ARI; in every draw, each of some sites is the hostile one."""
    yield "| | against eight honest sites: mean | against the seven alone: mean | worst | refused or left out |"
    yield "|---|---|---|---|---|"
    found: dict[str, list[Loss]] = {name: [] for name in ATTACKS}
    for federation in (digits_at_eight_sites(seed) for seed in seeds):
        for evil in hostile:
            for name, loss in losses_to(federation, evil).items():
                found[name].append(loss)
            on_site()
    for name, losses in found.items():
        from_others = [loss.from_others for loss in losses]
        yield (
            f"| {name} | {fmean(loss.from_all for loss in losses):+.3f} | {fmean(from_others):+.3f} "
            f"| {max(from_others):+.3f} | {sum(loss.kept_out for loss in losses)} of {len(losses)} |"
        )


# --- a thousand sites ---


def thousand_summaries(folder: Path, n_sites: int = 1_000) -> Iterator[str]:
    """Take in and fuse a thousand messages of 100 x 36, from files on the disk."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 36)) * 3.0
    what = agreement_for(36)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "inbox").mkdir()
    columns = "".join(f'[[columns]]\nname = "{column.name}"\n' for column in what.columns)
    write_durably(folder / "federation.toml", f'federation = "bench"\n{columns}'.encode())
    for number in range(n_sites):
        points = np.round(centres[rng.integers(0, 10, 100)] + rng.normal(size=(100, 36)), 2)
        moments = Moments.of(points)
        summary = Summary(
            f"site-{number:04}",
            points,
            mass=np.full(100, 10),
            shape=np.eye(36),
            moments=Moments(1000.0, moments.mean, moments.squares * 10.0 + 1000.0),
            level=with_fewest(5),
            terms=what.terms,
        )
        (folder / "inbox" / f"site-{number:04}.summary").write_bytes(encode(summary.to_message()))
    begin = time.perf_counter()
    place = Folder(folder)
    taken = [event.outcome for event in place.take_in()]
    middle = time.perf_counter()
    result = place.fuse(None)
    end = time.perf_counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield (
        f"{taken.count('accepted')} summaries of 100 x 36 were taken in within {middle - begin:.1f} s and fused within "
        f"{end - middle:.1f} s into {len(result.model.centroids)} clusters (10 were there); "
        f"the process had {memory:.2f} GB at most."
    )


def as_markdown(parts: Mapping[str, Sequence[str]], command: str) -> str:
    """The page."""
    lines = ["# What safety costs, and what it holds against", "", f"Made by `{command}`. docs/privacy.md explains it."]
    for title, content in parts.items():
        lines += ["", f"## {title}", "", *content]
    return "\n".join(lines) + "\n"
