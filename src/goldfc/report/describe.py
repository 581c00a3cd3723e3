"""What a message contains, in plain words."""

from collections.abc import Iterator, Sequence

import numpy as np

from goldfc.message.columns import Terms
from goldfc.message.levels import Private
from goldfc.message.message import Message
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.report.changes import change_sentences

Line = tuple[str, str]
# Of names and changes no more are listed.
MOST_LISTED = 20


def describe(message: Message) -> Iterator[Line]:
    """What it is and what it says, line by line."""
    if message.kind == Summary.KIND:
        yield from describe_summary(Summary.from_message(message))
    else:
        yield from describe_model(Model.from_message(message))


def describe_summary(summary: Summary) -> Iterator[Line]:
    """All that leaves a site."""
    count, features = summary.centroids.shape
    yield "what", f"the summary of site {summary.site!r}: all that leaves it"
    if summary.sites > 1:
        yield "it stands for", f"{summary.sites} sites, whose summaries a gateway merged"
    yield from describe_terms(summary.terms)
    noise = ", with noise" if isinstance(summary.level, Private) else ""
    yield "micro-clusters", f"{count}; of each the mean of its rows ({features} numbers){noise}"
    if summary.mass is None:
        yield "rows in each", "withheld"
    else:
        yield "rows in each", f"{summary.mass.min()} to {summary.mass.max()}, together {summary.mass.sum()}{noise}"
    if len(summary.layout.numbers):
        yield "shape", "withheld" if summary.shape is None else shape_words(summary) + noise
    if summary.moments is not None:
        yield "of every column", f"mean and variance of about {summary.moments.count:.0f} rows, to share one scale"
    yield "privacy level", summary.level.promise
    yield "not in it", "rows, their order, names or ids, file names"


def shape_words(summary: Summary) -> str:
    """What is told of how rows lie around their means."""
    numbers = len(summary.layout.numbers)
    if summary.shape is not None and summary.shape.ndim == 1:
        return f"one variance per number ({numbers}), the mean over all micro-clusters"
    return f"one {numbers} x {numbers} covariance of numbers, the mean over all micro-clusters"


def describe_terms(terms: Terms) -> Iterator[Line]:
    """What it is about."""
    yield "federation", f"{terms.federation or 'not named'}, round {terms.round}"
    if terms.columns:
        yield "columns", listed([f"{column.name} ({column.unit or column.kind})" for column in terms.columns])


def listed(words: Sequence[str]) -> str:
    """Some words; of many the first ones, and how many more there are."""
    more = f" and {len(words) - MOST_LISTED} more" if len(words) > MOST_LISTED else ""
    return ", ".join(words[:MOST_LISTED]) + more


def shown_of_clusters(model: Model) -> str:
    """What every site learns of the clusters."""
    if model.prototypes is not None:
        return (
            f"the clusters' means and sizes, {len(model.prototypes.points)} prototypes (means of micro-clusters, some "
            "of a single one) and the covariance around these"
        )
    each = "each cluster's covariance" if model.covariance.ndim == 3 else "their common covariance"
    return f"the clusters' means and sizes and {each}"


def describe_model(model: Model) -> Iterator[Line]:
    """All that comes back."""
    sizes = np.bincount(model.micro_labels, minlength=len(model.centroids))
    yield "what", "a model: what every site gets back"
    yield "fingerprint", f"{model.fingerprint}, which every label by it has"
    yield from describe_terms(model.terms)
    yield "clusters", f"{len(model.centroids)}, made of {', '.join(map(str, sizes))} micro-clusters"
    yield "their ids", ", ".join(map(str, model.ids[:MOST_LISTED])) + (" ..." if len(model.ids) > MOST_LISTED else "")
    yield "their kind", model.why
    if model.after is not None:
        yield "made after", f"model {model.after[:12]}"
        yield from (("what changed", sentence) for sentence in change_sentences(model)[:MOST_LISTED])
    yield "certainty", f"of labels at most about {model.agreement:.2f}: so far what was tried agrees, of 1"
    parts = zip(model.sites, model.micro_counts, strict=True)
    yield "sites", listed([f"{site} ({count})" for site, count in parts])
    if model.asked is not None:
        yield "asked for", f"{model.asked} clusters"
    if model.proposal is not None:
        for candidate in model.proposal.candidates:
            yield f"{candidate.n_clusters} clusters", candidate.reason
    yield (
        "it tells every site",
        f"{shown_of_clusters(model)}, the names of all sites, how many micro-clusters each has and which cluster each "
        "of these fell into",
    )
