"""The paper's server: MCPL at all granularities, and REMC of these.

Nothing else of the package is called GOLD, and nothing here serves anything else; docs/method.md has the paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadSettings
from goldfc.learning.judge import Verdict
from goldfc.learning.levels import Levels
from goldfc.learning.micro_clusters import MicroClusters, means_of
from goldfc.learning.paper.competition import Learning
from goldfc.learning.paper.fusion import fuse_levels, level_matches
from goldfc.learning.paper.granularity import find_levels
from goldfc.message.compete import Compete
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.server.fusions import one_thread, warn_of_fewer
from goldfc.server.one_shot import reach_of


@dataclass(frozen=True)
class Gold:
    """The paper's fusion, MCPL and REMC.

    Where the levels cannot tell so many clusters apart that is an error, or with `fewer` a warning and fewer clusters.
    """

    learning: Learning = field(default_factory=Learning)
    fewer: bool = False

    @property
    def task(self) -> Compete:
        """What is asked of every site: FCPL."""
        return Compete(self.learning)

    def fuse(self, summaries: Sequence[Summary], n_clusters: int | None, rng: np.random.Generator) -> Model:
        """MCPL at all granularities, and REMC of these."""
        if n_clusters is None:
            raise BadSettings("n_clusters must be a whole number from 1 on; GOLD does not propose one.", "n-clusters")
        centroids = np.vstack([summary.centroids for summary in summaries])
        with one_thread():
            levels = find_levels(centroids, self.learning, rng)
            labels = (fuse_fewer if self.fewer else fuse_levels)(levels, n_clusters, rng)
            return model_of(summaries, centroids, labels, levels)


def fuse_fewer(levels: Levels, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """REMC into as many clusters as the levels can tell apart; some may lose all their micro-clusters."""
    told_apart = len(np.unique(levels.labels, axis=0))
    labels = fuse_levels(levels, min(n_clusters, told_apart), rng)
    warn_of_fewer(n_clusters, int(labels.max()) + 1)
    return labels


def model_of(summaries: Sequence[Summary], centroids: FloatArray, labels: IntArray, levels: Levels) -> Model:
    """What goes back; new rows go to the nearest centroid as the crow flies, so all features have one variance."""
    mass = np.ones(len(centroids))
    means, certainty = means_of(centroids, labels, mass), level_matches(levels, labels)
    variance = float(((centroids - means[labels]) ** 2).mean()) or 1.0
    covariance = np.full(centroids.shape[1], variance)
    verdict = Verdict("shared", "GOLD's clusters are told by their centroids", labels, certainty, levels)
    micro = MicroClusters(centroids, mass, np.zeros(centroids.shape[1]))
    return Model(
        kind=verdict.kind,
        why=verdict.why,
        centroids=means,
        # Equal ones: the nearest centroid decides.
        mass=np.ones(len(means)),
        covariance=covariance,
        reach=reach_of(micro, verdict, covariance),
        sites=tuple(summary.site for summary in summaries),
        micro_counts=tuple(len(summary.centroids) for summary in summaries),
        micro_labels=labels,
        micro_certainty=certainty,
        levels=levels,
        digests=tuple(summary.to_message().digest for summary in summaries),
    )
