"""What a notebook shows of a result: a fragment of a page in which nothing runs, and every name is text."""

from typing import Any

from goldfc._looks import Shown
from goldfc.message.summary import Summary
from goldfc.report.describe import describe_summary
from goldfc.report.features import features_in
from goldfc.report.page import templates
from goldfc.report.result import Result

# More lines nobody reads in a notebook.
LINES_SHOWN = 30


def html_of(thing: Shown) -> str:
    """What a site sends, or how many clusters there may be."""
    return html_of_summary(thing) if isinstance(thing, Summary) else fragment("proposal", proposal=thing)


def html_of_result(result: Result) -> str:
    """Its clusters, the largest first."""
    lines = sorted(result.cluster_lines(), key=lambda line: -line["share"])
    return fragment("result", model=result.model, lines=lines[:LINES_SHOWN], more=lines[LINES_SHOWN:], rows=result.rows)


def html_of_summary(summary: Summary) -> str:
    """All that leaves a site, and its columns."""
    told = summary.moments
    features = [] if told is None else features_in(summary.terms, told.mean, told.scale)
    lines = [
        (one.name, one.text(one.mean), "" if one.is_share else one.text(one.deviation), one.unit) for one in features
    ]
    facts = list(describe_summary(summary))
    return fragment("summary", facts=facts, lines=lines[:LINES_SHOWN], more=lines[LINES_SHOWN:])


def fragment(kind: str, **content: Any) -> str:
    """One of the kinds, as text."""
    return templates().get_template("notebook.html").render(kind=kind, **content)
