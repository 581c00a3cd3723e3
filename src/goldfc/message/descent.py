"""Where a model comes from: the ids of its clusters, the models before it, and what has changed since the last."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from goldfc._types import IntArray
from goldfc.message.columns import Name, Number, Strict

# A model knows so many of those before it, and no more, so that it does not grow with the number of rounds.
MOST_ANCESTORS = 24
# Of a change: the columns that moved most, and who is concerned. Of all changes: those of so many clusters.
MOST_MOVES, MOST_SITES_NAMED, MOST_CHANGES = 5, 20, 200
# Labels travel as whole numbers below this.
LARGEST_ID = 2**31 - 1

What = Literal["emerged", "disappeared", "split", "merged", "grew", "shrank", "moved"]
Id = Annotated[int, Field(ge=0, le=LARGEST_ID)]
Share = Annotated[float, Field(ge=0.0, le=1.0, strict=False)]


class Move(Strict):
    """The mean of a feature in a cluster, before and now."""

    feature: Annotated[int, Field(ge=0)]
    before: Number
    now: Number


class Change(Strict):
    """What became of some clusters: their ids before and now, and the shares of all rows in them."""

    what: What
    before: Annotated[tuple[Id, ...], Field(strict=False, max_length=MOST_CHANGES)] = ()
    now: Annotated[tuple[Id, ...], Field(strict=False, max_length=MOST_CHANGES)] = ()
    share_before: Share = 0.0
    share_now: Share = 0.0
    moves: Annotated[tuple[Move, ...], Field(strict=False, max_length=MOST_MOVES)] = ()
    sites: Annotated[tuple[Name, ...], Field(strict=False, max_length=MOST_SITES_NAMED)] = ()


@dataclass(frozen=True)
class Descent:
    """What a model has from those before it. A first model has none; its clusters are 0, 1, ..."""

    ids: IntArray  # (clusters,) ascending: what users see; of a cluster that went on it is the same as before
    next_id: int  # the first that no cluster ever had
    generation: int  # how many models there were before
    found: float  # how many rows there were when clusters were last found anew
    ancestors: tuple[str, ...]  # digests of the last of them, the latest last
    joined: tuple[str, ...]  # sites that the last one had not
    left: tuple[str, ...]  # and sites that only the last one had
    changes: tuple[Change, ...]

    def fits(self, n_features: int) -> bool:
        """Whether there can be such a lineage."""
        known, told = len(self.ancestors), {one for change in self.changes for one in change.now}
        return (
            len(set(self.ancestors)) == known == min(self.generation, MOST_ANCESTORS)
            and not set(self.joined) & set(self.left)
            and told <= set(self.ids.tolist())
            and all(one < self.next_id for change in self.changes for one in change.before)
            and all(move.feature < n_features for change in self.changes for move in change.moves)
        )


def changes_in(facts: list[Any]) -> tuple[Change, ...]:
    """From what stands in a message."""
    return tuple(map(Change.model_validate, facts))
