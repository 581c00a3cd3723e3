"""What is odd in a site's table, in words: it may be right, but somebody should look at it."""

from collections.abc import Iterator

from goldfc.site.outliers import outliers
from goldfc.site.table.form import FORM
from goldfc.site.table.table import Table

# What to do then.
REMEDIES = {
    "thousands": f"Then say in {FORM} which mark is which (thousands = ...).",
    "zero": "Then write all of them alike.",
    "code": f'Then say so in {FORM} (missing = ["{{value}}"]).',
    "stray": "Correct it, if it is wrong.",
}


def odd_values(table: Table) -> Iterator[str]:
    """What is odd in a table, in words, with the row in the file; that a column is constant is a note of the table."""
    names = [name for column in table.columns for name in column.feature_names]
    for one in outliers(table.rows, names) if table.rows.shape[0] else ():
        if one.kind != "constant":
            value, row = f"{one.value:.10g}", table.place_in_file(one.row) + 1
            many = "" if one.count == 1 else f"{one.count:,} odd values, such as "
            remedy = REMEDIES[one.kind].format(value=value)
            yield f"Column {one.column!r} holds {many}{value} in row {row:,} below the header: {one.suspicion} {remedy}"
