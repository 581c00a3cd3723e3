"""A round: every site is asked once, the answers are fused, and every site gets the model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from goldfc.agreement import Agreement
from goldfc.message.message import Message
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.randomness import generator
from goldfc.server.admit import check_enough, far_out
from goldfc.server.fusions import Fusion, check_n_clusters, fuse, fusion_named, in_order
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


def run_round(port: Port, n_clusters: int | None, fusion: Fusion | str, rng: np.random.Generator) -> Round:
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

    Returns
    -------
    Round
        The `summaries` in the order of the sites' names, and the `model`.
    """
    check_n_clusters(n_clusters)  # before anybody works for it
    chosen = fusion_named(fusion) if isinstance(fusion, str) else fusion
    answers = port.ask(chosen.task.to_message())
    summaries = in_order(Summary.from_message(answer) for answer in answers.values())
    model = fuse(summaries, n_clusters, chosen, rng)
    port.ask(model.to_message())
    return Round(summaries, model)


def fuse_admitted(
    summaries: Sequence[Summary],
    agreement: Agreement,
    n_clusters: int | None,
    on_judged: Callable[[Mapping[str, str], tuple[str, ...]], None] = lambda _left_out, _odd: None,
) -> Round:
    """The model of the summaries that were admitted, whatever way they came; implausible ones are left out."""
    ordered = in_order(summaries)
    left_out, odd = judged(ordered, agreement)
    on_judged(left_out, odd)
    usable = tuple(summary for summary in ordered if summary.site not in left_out)
    check_enough(len(usable), agreement)
    model = fuse(usable, n_clusters, fusion_of(agreement), generator(agreement.seed, "server"))
    return Round(usable, model, left_out, odd)


def judged(summaries: Sequence[Summary], agreement: Agreement) -> tuple[dict[str, str], tuple[str, ...]]:
    """Who is left out, and why; and what is odd at the others."""
    left_out = far_out(summaries)
    found = odd_columns(Looks.of([summary for summary in summaries if summary.site not in left_out]))
    if agreement.implausible == "refuse":
        left_out |= {site: str(error) for site, error in implausible(found).items()}
    return left_out, said([one for one in found if one.site not in left_out])
