"""A round: every site is asked once, the answers are fused, and every site gets the model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from goldfc.agreement import Agreement
from goldfc.message.message import Message
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.randomness import generator
from goldfc.server.admit import check_enough, far_out
from goldfc.server.fusions import Fusion, check_before, check_n_clusters, fuse, fuse_after, fusion_named, in_order
from goldfc.server.one_shot import fusion_of
from goldfc.server.plausible import Looks, implausible, odd_columns, said


class Port(Protocol):
    """The one way from a server program to its sites; in process, by file or over a network."""

    def ask(self, message: Message, sites: Sequence[str] | None = None) -> dict[str, Message]:
        """Send a message to some sites, or to all; the answers of those that have one, by site name."""
        ...


@dataclass(frozen=True)
class Round:
    """One finished round: what came up, in the order of the sites' names, and what went down."""

    summaries: tuple[Summary, ...]
    model: Model
    left_out: Mapping[str, str] = field(default_factory=dict)  # sites whose summary was not fused, and why
    odd: tuple[str, ...] = ()  # which columns look odd at whom, the oddest first


def run_round(
    port: Port, n_clusters: int | None, fusion: Fusion | str, rng: np.random.Generator, after: Model | None = None
) -> Round:
    """Ask every site once, fuse what they send, and send them the model.

    Parameters
    ----------
    port
        The way to the sites, such as `LocalPort`.
    n_clusters
        How many clusters; None has the number proposed.
    fusion
        `OneShot` with its settings, or the name of a fusion ("one-shot", "gold").
    rng
        All that is left to chance at the server.
    after
        The model before: clusters that go on keep their ids.

    Returns
    -------
    Round
        The `summaries` in the order of the sites' names, and the `model`.
    """
    check_n_clusters(n_clusters)  # before anybody works for it
    chosen = fusion_named(fusion) if isinstance(fusion, str) else fusion
    answers = port.ask(chosen.task.to_message())
    summaries = in_order(Summary.from_message(answer) for answer in answers.values())
    model = fuse(summaries, n_clusters, chosen, rng, after)
    port.ask(model.to_message())
    return Round(summaries, model)


def fuse_admitted(
    summaries: Sequence[Summary],
    agreement: Agreement,
    n_clusters: int | None,
    on_judged: Callable[[Mapping[str, str], tuple[str, ...]], None] = lambda _left_out, _odd: None,
    after: Model | None = None,
) -> Round:
    """The model of the summaries that were admitted, whatever way they came; implausible ones are left out.

    They may be of earlier rounds, unless these are forgotten.
    """
    ordered = in_order(summaries, any_round=True)
    left_out, odd = judged(ordered, agreement)
    on_judged(left_out, odd)
    usable = tuple(summary for summary in ordered if summary.site not in left_out)
    check_enough(len(usable), agreement)
    model = fuse_usable(usable, agreement, n_clusters, after)
    return Round(usable, replace(model, terms=agreement.terms), left_out, odd)


def fuse_usable(usable: Sequence[Summary], agreement: Agreement, n_clusters: int | None, after: Model | None) -> Model:
    """As was agreed on, after a model if there is one."""
    check_n_clusters(n_clusters)
    fusion, rng = replace(fusion_of(agreement), explain=True), generator(agreement.seed, "server")
    if after is None:
        return fusion.fuse(usable, n_clusters, rng)
    check_before(after, agreement.terms, agreement.terms.n_features)
    return fuse_after(after, usable, n_clusters, fusion, rng)


def judged(summaries: Sequence[Summary], agreement: Agreement) -> tuple[dict[str, str], tuple[str, ...]]:
    """Who is left out, and why; and what is odd at the others."""
    left_out = forgotten(summaries, agreement)
    left_out |= far_out([summary for summary in summaries if summary.site not in left_out])
    found = odd_columns(Looks.of([summary for summary in summaries if summary.site not in left_out]))
    if agreement.implausible == "refuse":
        left_out |= {site: str(error) for site, error in implausible(found).items()}
    return left_out, said([one for one in found if one.site not in left_out])


def forgotten(summaries: Sequence[Summary], agreement: Agreement) -> dict[str, str]:
    """Whose summary is too old."""
    window = agreement.memory.window
    return {
        summary.site: f"its summary is of round {summary.terms.round}; {window} rounds are remembered."
        for summary in summaries
        if window is not None and summary.terms.round <= agreement.round - window
    }
