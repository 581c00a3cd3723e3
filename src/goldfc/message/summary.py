"""What leaves a site: its micro-clusters."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from goldfc._looks import Shown
from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadMessage
from goldfc.learning.micro_clusters import Layout, diagonal_of, form_of_shape
from goldfc.learning.moments import LARGEST_VALUE, Moments
from goldfc.message.columns import UNNAMED, Name, Terms, as_facts
from goldfc.message.levels import PLAIN, Level, LevelFact, level_of
from goldfc.message.schema import Array, Content, Fact, array, fact, group

# More rows than this in one micro-cluster are no data, but an attempt to outweigh everybody else.
LARGEST_MASS = 10**8
Count = Annotated[int, Field(ge=1, le=LARGEST_MASS)]
# How far a shape may be from symmetric, and from having no negative variance in any direction: rounding.
ROUNDING_OF_SHAPE = 1e-9
# Numbers below this have fewer digits than others, and are as good as zero.
FEWER_DIGITS = 1e-290


@dataclass(frozen=True, repr=False)
class Summary(Shown, Content):
    """All that leaves a site: its micro-clusters, by their centroids, and, unless withheld, their mass and shape."""

    site: str = fact(Name)  #: who sends it
    centroids: FloatArray = array(2)  #: (micro-clusters, features)
    mass: IntArray | None = array(1, default=None)  #: (micro-clusters,) rows in each
    #: Of numbers: (numbers, numbers), or with many (numbers,); how rows lie around their micro-centroids.
    shape: FloatArray | None = array(1, 2, default=None)
    #: of every column, where sites learn in scales of their own
    moments: Moments | None = group(
        Moments, default=None, count=Fact(Count, read=float, write=int), mean=Array((1,)), squares=Array((1,))
    )
    level: Level = fact(LevelFact, default=PLAIN, read=level_of, write=Level.to_fact)  #: the privacy level
    terms: Terms = fact(Terms, default=UNNAMED, read=Terms.model_validate, write=as_facts)  #: what it is about
    #: Where there is noise in the micro-centroids: (numbers,) its variance, in the mean over rows, in units squared.
    error: FloatArray | None = array(1, default=None)
    #: so many it stands for: a gateway's for all of its devices
    sites: int = fact(Count, default=1)

    KIND = "summary"

    def __repr__(self) -> str:
        """What it is, and no arrays."""
        micro, features = self.centroids.shape
        return f"<Summary of site {self.site!r}: {micro} micro-clusters of {features} features>"

    def __post_init__(self) -> None:
        """Refuse what no server could use."""
        object.__setattr__(self, "centroids", self._numbers("centroids that are", self.centroids))
        if self.centroids.ndim != 2 or 0 in self.centroids.shape:
            raise BadMessage(
                f"The summary of site {self.site!r} must hold a table of centroids, "
                f"at least 1 x 1; its shape is {self.centroids.shape}.",
                "centroids-form",
            )
        if not (np.abs(self.centroids) <= LARGEST_VALUE).all():
            raise BadMessage(
                f"The summary of site {self.site!r} holds centroids that are not finite numbers of at most "
                f"{LARGEST_VALUE:g} in size.",
                "centroids-not-finite",
            )
        if self.terms.columns and self.terms.n_features != self.centroids.shape[1]:
            raise BadMessage(
                f"The summary of site {self.site!r} has centroids of {self.centroids.shape[1]} features, but its "
                f"columns make {self.terms.n_features}.",
                "features-not-columns",
            )
        if self.mass is not None:
            object.__setattr__(self, "mass", self._checked_mass(self._numbers("masses that are", self.mass)))
        if self.shape is not None:
            object.__setattr__(self, "shape", self._checked_shape(self._numbers("a shape that is", self.shape)))
        if self.error is not None:
            object.__setattr__(self, "error", self._checked_error(self._numbers("errors that are", self.error)))
        if self.moments is not None:
            self._check_moments(self.moments)

    @property
    def layout(self) -> Layout:
        """Which features are numbers."""
        return self.terms.layout(self.centroids.shape[1])

    @property
    def masses(self) -> FloatArray:
        """The mass of every micro-cluster; the same for all where it is not told."""
        return np.ones(len(self.centroids)) if self.mass is None else self.mass.astype(np.float64)

    @property
    def rows(self) -> float | None:
        """How many rows it stands for, if it tells."""
        if self.mass is not None:
            return float(self.mass.sum())
        return None if self.moments is None else self.moments.count

    def _numbers(self, what: str, values: NDArray[Any]) -> FloatArray:
        try:
            return np.require(values, np.float64, ["C"])
        except (TypeError, ValueError) as error:
            raise BadMessage(f"The summary of site {self.site!r} holds {what} not numbers.", "not-numbers") from error

    def _checked_mass(self, mass: FloatArray) -> IntArray:
        if mass.shape != (len(self.centroids),):
            raise BadMessage(
                f"The summary of site {self.site!r} must hold one mass per micro-cluster, {len(self.centroids)}; "
                f"it has the shape {mass.shape}.",
                "mass-form",
            )
        if not ((mass >= self.level.fewest) & (mass <= LARGEST_MASS) & (mass == np.floor(mass))).all():
            raise BadMessage(
                f"The summary of site {self.site!r} holds masses that are not whole numbers from {self.level.fewest} "
                f"to {LARGEST_MASS}.",
                "mass-not-whole",
            )
        return mass.astype(np.int64)

    def _checked_shape(self, shape: FloatArray) -> FloatArray:
        if not len(self.layout.numbers):
            raise BadMessage(
                f"The summary of site {self.site!r} holds a shape, but no column of numbers.", "shape-without-numbers"
            )
        wanted = form_of_shape(len(self.layout.numbers))
        if shape.shape != wanted:
            raise BadMessage(
                f"The summary of site {self.site!r} must hold a shape of {' x '.join(map(str, wanted))} numbers; "
                f"it has {' x '.join(map(str, shape.shape))}.",
                "shape-form",
            )
        if not (np.abs(shape) <= LARGEST_VALUE**2).all():
            raise BadMessage(
                f"The summary of site {self.site!r} holds a shape with numbers that are not finite or too large.",
                "shape-not-finite",
            )
        if not is_covariance(shape):
            raise BadMessage(
                f"The summary of site {self.site!r} holds a shape that no rows can have: it is not symmetric, or "
                "some direction would have a negative variance.",
                "shape-impossible",
            )
        return shape

    def _checked_error(self, error: FloatArray) -> FloatArray:
        if error.shape != (len(self.layout.numbers),) or not ((error >= 0.0) & (error <= LARGEST_VALUE**2)).all():
            raise BadMessage(
                f"The summary of site {self.site!r} must hold one finite error for every number, and none below 0.",
                "error-form",
            )
        return error

    def _check_moments(self, moments: Moments) -> None:
        width = (self.centroids.shape[1],)
        sizes = np.abs(np.concatenate([moments.mean, np.sqrt(np.abs(moments.squares))]))
        if moments.mean.shape != width or moments.squares.shape != width:
            raise BadMessage(
                f"The summary of site {self.site!r} must hold one mean and one M2 for every feature.", "moments-form"
            )
        if not (sizes <= LARGEST_VALUE).all() or (moments.squares < 0.0).any():
            raise BadMessage(
                f"The summary of site {self.site!r} holds moments that are not finite, too large or negative.",
                "moments-not-finite",
            )
        if not (1 <= moments.count <= LARGEST_MASS and moments.count == int(moments.count)):
            raise BadMessage(
                f"The summary of site {self.site!r} counts {moments.count:g} rows; it must be a whole number from "
                f"1 to {LARGEST_MASS}.",
                "count-not-whole",
            )
        # Each mass and the count are rounded on their own.
        if self.mass is not None and abs(self.mass.sum() - moments.count) > self.level.fewest * (len(self.mass) + 1):
            raise BadMessage(
                f"The summary of site {self.site!r} counts {moments.count:g} rows, but its micro-clusters have "
                f"{self.mass.sum()}.",
                "count-not-mass",
            )
        if not self._spreads_as(moments):
            raise BadMessage(
                f"The summary of site {self.site!r} tells moments that its micro-clusters cannot have: they spread "
                "further.",
                "moments-impossible",
            )

    def _spreads_as(self, moments: Moments) -> bool:
        """Whether the spread of the micro-clusters and the shape are no more than the moments tell.

        M2 = the masses times the squared distances of the micro-centroids from the mean + rows times the variance
        around them. Masses, centroids and moments are rounded, each on its own, by up to a standard deviation.
        """
        mass = np.full(len(self.centroids), float(self.level.fewest)) if self.mass is None else self.mass
        told = mass @ (self.centroids - moments.mean) ** 2
        if self.shape is not None:
            told[self.layout.numbers] += moments.count * diagonal_of(self.shape)
        steps = np.array([column.step or 0.0 for column in self.terms.features] or [0.0])
        slack = moments.count * (moments.scale + 4.0 * steps) ** 2
        return bool((told <= 20.0 * moments.squares + slack).all())


def is_covariance(shape: FloatArray) -> bool:
    """Whether there are rows that lie like this, up to rounding; of several covariances, whether all are such."""
    if shape.ndim == 1:
        return bool((shape >= 0.0).all())
    variance = np.abs(diagonal_of(shape))
    scale = np.where(variance > FEWER_DIGITS, np.sqrt(variance), 1.0)
    with np.errstate(over="ignore"):
        relative = shape / (scale[..., :, None] * scale[..., None, :])
    # No correlation is above 1, and far larger ones cannot be calculated with.
    if not (np.abs(relative) <= 2.0).all() or np.abs(relative - relative.swapaxes(-2, -1)).max() > ROUNDING_OF_SHAPE:
        return False
    return bool(np.linalg.eigvalsh(relative).min() >= -ROUNDING_OF_SHAPE * shape.shape[-1])
