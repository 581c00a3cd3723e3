"""What is no error in a table, but should be known: found while its blocks go by."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from goldfc._types import FloatArray
from goldfc.message.columns import Column
from goldfc.site.table.cells import Encoded
from goldfc.site.table.numerals import LARGEST_WHOLE

LIKE_AN_ID = re.compile(r"(^|[^a-z])(id|nr|no|number|case|patient|fall)([^a-z]|$)")


class Numbering:
    """Whether a column numbers the rows: whole numbers, all different, in order, or called so."""

    def __init__(self, name: str) -> None:
        self.called_so = LIKE_AN_ID.search(name.lower()) is not None
        self.rows = 0
        self.last = np.empty(0)
        self.whole = self.rising = self.falling = self.different = True

    def add(self, numbers: FloatArray) -> None:
        """The next numbers; not a number where there is none."""
        self.rows += len(numbers)
        if not self.whole:
            return
        few = numbers[np.abs(numbers) < LARGEST_WHOLE]
        self.whole = bool((few == np.trunc(few)).all())
        with np.errstate(invalid="ignore"):  # endless ones
            steps = np.diff(np.concatenate([self.last, numbers]))
        self.last = numbers[-1:] if len(numbers) else self.last
        self.rising, self.falling = self.rising and bool((steps > 0).all()), self.falling and bool((steps < 0).all())
        if self.called_so and self.different and not (self.rising or self.falling):
            # Within a block: to compare all rows would take all of them in memory.
            self.different = len(np.unique(numbers, equal_nan=False)) == len(numbers)

    @property
    def looks_like_an_id(self) -> bool:
        """By all that went by."""
        return self.rows >= 2 and self.whole and (self.rising or self.falling or (self.called_so and self.different))


class Seen:
    """What was seen of a table so far."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns
        self.rows = self.left_out = self.blank = self.gaps = 0
        self.done = Counter[str]()
        features = sum(column.features for column in columns)
        self.low, self.high = np.full(features, np.inf), np.full(features, -np.inf)
        self.numberings = {column.name: Numbering(column.name) for column in columns if column.kind == "number"}

    def add(self, own: Encoded) -> None:
        """A block."""
        self.rows += len(own.rows)
        self.left_out += int(own.left_out.sum())
        self.gaps += len(np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(gap.rows for gap in own.gaps)])))
        self.blank += sum(len(one.rows) for one in own.blank)
        self.done += own.done
        if len(own.rows):
            self.low = np.minimum(self.low, own.rows.min(axis=0))
            self.high = np.maximum(self.high, own.rows.max(axis=0))
        for name, numbers in own.numbers.items():
            self.numberings[name].add(numbers)

    def notes(
        self, id_column: str | None, *, unused: Sequence[str] = (), drop: bool, ids_twice: bool, twins: int
    ) -> Iterator[str]:
        """Sentences, at the end."""
        if unused:
            yield f"Not used, and not in the message: {', '.join(map(repr, unused))}."
        for what, count in self.done.items():
            yield f"{what}: {count:,} {'value' if count == 1 else 'values'}."
        if self.blank:
            what = "row without any value is" if self.blank == 1 else "rows without any value are"
            yield f"{self.blank:,} {what} left out."
        if self.gaps and drop:
            what = "row with a missing value is" if self.gaps == 1 else "rows with missing values are"
            yield f"{self.gaps:,} {what} left out."
        features = [name for column in self.columns for name in column.feature_names]
        for name, low, high in zip(features, self.low, self.high, strict=True):
            if low == high:
                yield (
                    f"{name!r} is {low:g} in all rows: here it tells nothing apart. Leave it out if it is so "
                    "everywhere."
                )
        for name, numbering in self.numberings.items():
            if numbering.looks_like_an_id:
                yield f"Column {name!r} looks like an id. If it is, keep it out: --id-column {name}."
        if ids_twice:
            yield f"Values of {id_column!r} are there more than once: labels will be hard to join."
        if twins:
            yield f"{twins:,} {'row is' if twins == 1 else 'rows are'} the same as an earlier one; all of them count."
        if len(features) == 1:
            yield "There is one column only: clusters will be stretches of it."
