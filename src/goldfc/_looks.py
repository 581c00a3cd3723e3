"""What a result looks like, asked of the result itself.

Pages, tables and plots stand far above messages. This is the one door from a message up to them: what is behind it is
imported when somebody looks, and not before.
"""

from collections.abc import Mapping
from copy import copy
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from goldfc.message.model import Model
    from goldfc.message.summary import Summary
    from goldfc.names import Names
    from goldfc.report.result import Result


class Shown:
    """What a notebook shows as a table, and not as numbers."""

    def _repr_html_(self) -> str:
        from goldfc.report.notebook import html_of

        return html_of(self)


class Explored:
    """What a model and a fitted estimator can be looked at by."""

    _names: "Names | None" = None

    def _told(self) -> "tuple[Model, tuple[Summary, ...]]":
        """The model, and what the sites sent, where that is at hand."""
        raise NotImplementedError

    def _result(self) -> "Result":
        from goldfc.report.result import Result

        model, summaries = self._told()
        return Result(model, summaries) if self._names is None else Result(model, summaries, self._names)

    def _repr_html_(self) -> str:
        from goldfc.report.notebook import html_of_result

        return html_of_result(self._result())

    def called(self, names: "Names | Mapping[int, str] | str | PathLike[str]") -> Self:
        """The same with names for its clusters, which tables, plots and pages then have.

        Parameters
        ----------
        names
            By number, such as `{0: "young", 2: "old"}`, or a file such as names.toml.

        Returns
        -------
        Model or estimator
            A copy that shares all arrays.
        """
        from goldfc.report.result import names_from

        named = copy(self)
        object.__setattr__(named, "_names", names_from(names, self._told()[0]))
        return named

    def clusters(self) -> Any:
        """A line for every cluster: its size, whose it is, what sets it apart, and a rule of at most three columns.

        Returns
        -------
        DataFrame or list of dict
            Of pandas where that is installed, or else of polars. `share` is of all rows, and `rows` about how many;
            where sites withhold that, `share` is of micro-clusters. `precision` is the share of what fits the rule that
            is of the cluster, `covered` the share of the cluster that fits: both of rows drawn as the model describes
            its clusters.
        """
        return self._result().clusters()

    def profiles(self) -> Any:
        """A line for every column in every cluster: its mean, its spread among the rows, and how far it is from all.

        Returns
        -------
        DataFrame or list of dict
            `spread` is one standard deviation inside the cluster, `all` the mean of all rows, and `deviations` how many
            standard deviations of all rows the cluster's mean is above that.
        """
        return self._result().profiles()

    def contrast(self, one: int | str, other: int | str) -> Any:
        """What tells two clusters apart: a line for every column, the most different one first.

        Parameters
        ----------
        one, other
            Clusters, by their numbers or names.

        Returns
        -------
        DataFrame or list of dict
            `apart` is how many spreads inside the two the first mean is above the second.
        """
        return self._result().contrast(one, other)

    def plot_map(self, ax: "Axes | None" = None) -> "Axes":
        """Where micro-clusters are, in the two directions in which clusters differ most; of a model alone its means.

        Parameters
        ----------
        ax
            Where to draw; new axes if not given.

        Returns
        -------
        Axes
            Of matplotlib, with the drawing.
        """
        from goldfc.report.plots import plot_map

        return plot_map(self._result(), ax)

    def plot_evidence(self, ax: "Axes | None" = None) -> "Axes":
        """The evidence for every number of clusters, where it was weighed, with the candidates and the number taken.

        Parameters
        ----------
        ax
            Where to draw; new axes if not given.

        Returns
        -------
        Axes
            Of matplotlib, with the drawing.
        """
        from goldfc.report.plots import plot_evidence

        return plot_evidence(self._result(), ax)

    def plot_levels(self, ax: "Axes | None" = None) -> "Axes":
        """The partitions of the micro-clusters from fine to coarse, as a tree; the clusters that were taken last.

        Parameters
        ----------
        ax
            Where to draw; new axes if not given.

        Returns
        -------
        Axes
            Of matplotlib, with the drawing.
        """
        from goldfc.report.plots import plot_levels

        return plot_levels(self._result(), ax)

    def plot_profiles(self, ax: "Axes | None" = None) -> "Axes":
        """Every column in every cluster: its mean, and in colour how far that is from all.

        Parameters
        ----------
        ax
            Where to draw; new axes if not given.

        Returns
        -------
        Axes
            Of matplotlib, with the drawing; of very many columns those that differ most.
        """
        from goldfc.report.plots import plot_profiles

        return plot_profiles(self._result(), ax)

    def report(self, path: "str | PathLike[str]") -> None:
        """Write the page of the clusters, one file that loads nothing, as `goldfc report` does.

        Parameters
        ----------
        path
            Such as page.html; what is there is replaced.
        """
        self._result().report(path)
