"""The dossier: what a federation's file means for security and privacy, for those who have to allow it.

One content in two forms: a page that loads nothing from anywhere, and Markdown. What is claimed names what shows it.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from goldfc.agreement import Agreement
from goldfc.message.columns import Column
from goldfc.message.levels import MULTIPLE, Private
from goldfc.message.message import canonical_json
from goldfc.report.evidence import (
    ATTACKS,
    CLAIMS,
    DESCRIBED,
    FOR_OWNER_ALONE,
    MEASURED,
    NOTHING_ELSE,
    PLAINLY,
    SEALED_HIDES,
    SUM_OF_DEVICES,
    SUMMARIES_STAY,
    WHAT_REMAINS,
)
from goldfc.report.materials import Component
from goldfc.report.page import sealed_page
from goldfc.site.audit import FEWEST_PEOPLE, MOST_AUC, MOST_FOUND, TELLS_MEMBERS
from goldfc.site.policy import Policy

TITLE = "Security and privacy of the federation"
# What Markdown would take for more than a sign; and where addresses in names from a file would become links.
SIGNS = re.compile(r"([\\`*_\[\]<>&|~#!@])|(?<=:)(?=//)|(?<=www)(?=\.)", flags=re.IGNORECASE)


@dataclass(frozen=True)
class Row:
    """A line of a table, and what shows that it is true."""

    cells: tuple[str, ...]
    shown_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A heading, and what stands below it."""

    title: str
    sentences: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    picture: bool = False


def sections_of(agreement: Agreement, components: Sequence[Component] = ()) -> tuple[Section, ...]:
    """The whole dossier; without `components` it is about the agreement alone."""
    return (
        in_short(agreement),
        before_signing(agreement),
        Section("How data flow", (way_of(agreement),), picture=True),
        what_leaves(agreement),
        Section(
            "Which columns",
            head=("column", "kind", "values", "what is told"),
            rows=tuple(map(column_row, agreement.columns)),
        ),
        thresholds(agreement),
        Section("Who can see what", head=("who", "sees", "shown by"), rows=tuple(sights(agreement))),
        keys(agreement),
        claims(agreement),
        attack_section(agreement),
        Section(
            "What is not protected",
            (f"In full, with what was tried: {DESCRIBED} in the source.",),
            tuple(sentence for sentence, levels in WHAT_REMAINS if agreement.privacy in levels),
        ),
        software(components),
    )


def digest_of_agreement(agreement: Agreement) -> str:
    """Of what was agreed on, however it is written; whoever has the same file can make the same dossier."""
    return hashlib.sha256(canonical_json(agreement.model_dump(mode="json")).encode()).hexdigest()[:16]


def in_short(agreement: Agreement) -> Section:
    """For who reads no further."""
    sites, columns = len(agreement.names) or "Several", len(agreement.columns)
    stay = "" if agreement.privacy == "plain" else "Rows stay where they are: "
    bound = " This is no differential privacy." if agreement.privacy == "suppressed" else ""
    return Section(
        "In short",
        (
            f"{sites} sites hold rows with {columns} column{'s' * (columns > 1)}, and want clusters of all of them "
            f"together. {stay}{'every' if stay else 'Every'} site sends one message a round, and gets one model back, "
            "by which it labels its own rows.",
            f"The level of privacy is {agreement.level.promise}.{bound}",
            f"Made by goldfc from a federation.toml with the fingerprint {digest_of_agreement(agreement)}, for round "
            f"{agreement.round}. A site's own policy.toml may be stricter than what stands here, never laxer.",
        ),
    )


def before_signing(agreement: Agreement) -> Section:
    """What whoever agrees should have looked at."""
    points = tuple(sentence for holds, sentence in remarks(agreement) if holds)
    return Section("Before you agree", () if points else ("Nothing in the file needs a remark.",), points)


def remarks(agreement: Agreement) -> Iterator[tuple[bool, str]]:
    """What may be in a file that not everybody would sign, and whether it is."""
    level, least = agreement.level, agreement.limits.least_sites
    yield (
        agreement.privacy == "plain",
        (
            f"{PLAINLY} The level plain is for research, and not for data of people; sites with the default policy are "
            "at the level suppressed all the same."
        ),
    )
    yield (
        not agreement.sealed,
        (
            "Messages are not sealed: whoever carries or stores them can read them, and nobody can tell who wrote "
            "them. Keys for the server and every site change that."
        ),
    )
    yield not agreement.names, "No sites are listed, so anybody who has the file may take part."
    yield (
        least < Policy().least_sites,
        (
            f"The federation is content with {least} sites. Each of two could subtract its own part; by their default "
            f"policy sites refuse fewer than {Policy().least_sites}."
        ),
    )
    yield (
        agreement.privacy == "suppressed" and agreement.smallest < Policy().smallest,
        (
            f"Micro-clusters of {agreement.smallest} people are allowed; sites with the default policy use "
            f"{Policy().smallest}."
        ),
    )
    yield (
        isinstance(level, Private) and level.eps > Policy().most_eps,
        (f"eps is above {Policy().most_eps:g}, which sites with the default policy use instead."),
    )
    yield (
        not (agreement.person_column or agreement.id_column),
        (
            "No column says whose a row is, so every row counts as somebody else's. If people have several rows, name "
            "a person_column."
        ),
    )


def way_of(agreement: Agreement) -> str:
    """From where to where."""
    envelope = "signed by the site and sealed for the server" if agreement.sealed else "not sealed"
    back = "signed by the server and sealed for each site" if agreement.sealed else "not sealed"
    return (
        f"Site: rows, ids, labels, ledger. One summary goes up, {envelope}. Server: checks it, and fuses all "
        f"summaries. One model comes down, {back}. Site: labels its own rows."
    )


def what_leaves(agreement: Agreement) -> Section:
    """The content of a summary at the agreed level."""
    return Section(
        "What leaves a site",
        ("At most this; a site with few people tells less, or nothing. Rows, ids and labels do not leave.",)
        if agreement.privacy != "plain"
        else ("All of this. A mean may be a row.",),
        tuple(parts_told(agreement)),
    )


def parts_told(agreement: Agreement) -> Iterator[str]:
    """One for every part of a summary."""
    exact = {
        "plain": "exactly",
        "suppressed": "each rounded to its standard error or coarser",
        "private": "with noise",
    }[agreement.privacy]
    most = agreement.task.most
    yield f"The means of at most {most} micro-clusters, {exact}; of categories, the share of every value."
    if "mass" not in agreement.withhold:
        rounded = f", in multiples of {MULTIPLE}" if agreement.privacy == "suppressed" else ""
        yield f"About how many rows each has{rounded}." if agreement.privacy != "plain" else "How many rows each has."
    if agreement.level.tells_moments and agreement.scaling == "pooled":
        yield f"Mean and variance of every column over all rows of the site, {exact}."
    if "shape" not in agreement.withhold:
        yield f"How rows lie around these means: one covariance for the whole site, {exact}."
    yield "The names and units of the columns, and the names of federation and site."


def column_row(column: Column) -> Row:
    """One column, and what is told of it."""
    values = f"{column.range[0]:g} to {column.range[1]:g}" if column.range else ", ".join(column.categories) or "any"
    told = "means" if column.kind == "number" else "shares"
    step = f", in steps of {column.step:g} or coarser" if column.step else ""
    sensitive = "; sensitive: never all or none" if column.sensitive else ""
    return Row((column.name, column.kind, f"{values} {column.unit}".strip(), f"{told}{step}{sensitive}"))


def thresholds(agreement: Agreement) -> Section:
    """Numbers that decide whether something leaves, or is taken."""
    return Section(
        "Thresholds", head=("what", "value", "set by"), rows=tuple(Row(line) for line in each_threshold(agreement))
    )


def each_threshold(agreement: Agreement) -> Iterator[tuple[str, str, str]]:
    """What is limited, to how much, and by whom."""
    usual, level = Policy(), agreement.level
    agreed, own, built_in = "the agreement", "the site's policy (its default)", "goldfc"
    if agreement.privacy == "suppressed":
        yield "People in a micro-cluster, at least", str(agreement.smallest), f"{agreed}; a policy may want more"
        yield "People at a site, at least", str(FEWEST_PEOPLE), built_in
        yield "A site tells less, if members can be guessed with an AUC above", f"{TELLS_MEMBERS:g}", built_in
        yield "Nothing leaves, if they can with an AUC above", f"{MOST_AUC:g}", own
        yield "or if more of them are found at 1 % false alarms than", f"{MOST_FOUND:.0%}", own
        yield (
            "People who came or went since an earlier message, at least",
            str(max(agreement.smallest, usual.smallest)),
            own,
        )
        yield f"Messages of largely the same people in {usual.days} days, at most", str(usual.most_messages), own
        yield "Different questions (columns, settings) that these answer, at most", str(usual.most_questions), own
    if isinstance(level, Private):
        yield "eps of a message", f"{level.eps:g}", f"{agreed}; a policy may want less"
        yield "delta of a message", f"{level.delta:g}", f"{agreed}; a policy may want less"
        yield "Rows of one person that count", str(level.most_rows), agreed
        yield "eps of all messages of a year, at most", f"{usual.most_eps_a_year:g}", own
    yield "Sites that must be in before anything is fused", str(agreement.limits.least_sites), agreed
    yield "Micro-clusters of a site, at most", str(agreement.limits.most_micro_clusters), agreed
    yield "Rows of a site count, times those of the median site, at most", f"{agreement.limits.mass_cap:g}", agreed


def sights(agreement: Agreement) -> Iterator[Row]:
    """Everybody who is near, and what they see."""
    yield Row(("Who works at a site", "Its own rows, labels and messages, and the model"), (FOR_OWNER_ALONE,))
    kept = "Every site's summary, which it keeps for later rounds, and the model; no label"
    yield Row(("The server", kept), (NOTHING_ELSE, SUMMARIES_STAY))
    if agreement.limits.sites_behind > 1:
        yield Row(("A gateway", "The summaries of its devices; the server gets their sum alone"), (SUM_OF_DEVICES,))
    yield Row(
        (
            "Other sites",
            "The model: clusters, their sizes, the names of all sites, how many micro-clusters each sent and where "
            "these fell",
        ),
        (DESCRIBED,),
    )
    if agreement.sealed:
        cover = "Which federation and round it is of, which site sent it or gets it, its size"
        yield Row(("Whoever carries or stores a message", cover), (SEALED_HIDES,))
    else:
        yield Row(("Whoever carries or stores a message", "All of it"), (DESCRIBED,))


def keys(agreement: Agreement) -> Section:
    """Who may speak, and how that is known."""
    if not agreement.sealed:
        return Section("Keys", ("There are none: messages are neither signed nor sealed.",), tuple(agreement.names))
    return Section(
        "Keys",
        (
            "Every message is signed (Ed25519) and sealed (HPKE: X25519, HKDF-SHA256, ChaCha20-Poly1305), and bound "
            "to federation, round, site and receiver. Private keys never leave their owner; compare these public "
            "ones by telephone.",
        ),
        head=("who", "fingerprint of the public key"),
        rows=tuple(Row((name, digest_of(key))) for name, key in public_keys(agreement)),
    )


def public_keys(agreement: Agreement) -> Iterator[tuple[str, str]]:
    """Everybody, with the public key."""
    yield "the server", agreement.server.key or ""
    for site in agreement.sites:
        yield site.name, site.key or ""


def digest_of(key: str) -> str:
    """Short enough to be read out."""
    return hashlib.sha256(key.encode()).hexdigest()[:16]


def claims(agreement: Agreement) -> Section:
    """What holds, and what shows it."""
    hold = [one for one in CLAIMS if agreement.privacy in one.levels and (agreement.sealed or not one.sealed)]
    return Section(
        "What holds, and what shows it",
        (
            "Each of these is checked by tests, which are named by their place in goldfc's source, and run before "
            "every release.",
        ),
        head=("what holds", "shown by"),
        rows=tuple(Row((one.sentence,), one.shown_by) for one in hold),
    )


# What stands in place of measured figures.
NOT_MEASURED = {
    "plain": "The risk of a message was not measured: rows may be in it.",
    "private": "The risk of a message is bounded by a proof, whatever the attack: docs/differential-privacy.md.",
}


def attack_section(agreement: Agreement) -> Section:
    """Attacks and what came of them, where they were measured."""
    if agreement.privacy in NOT_MEASURED:
        return Section("Attacks", (NOT_MEASURED[agreement.privacy],))
    return Section(
        "Attacks, and what came of them",
        (
            "Measured at this level with its defaults, on fifteen public tables with 20 to 3 000 rows a site, by "
            "somebody who reads the message, knows how it is made, and has up to 3 000 rows of her own. Your rows "
            "are others: goldfc summarize --dry-run attacks the message of your own table, and says what it found "
            "before anything leaves.",
        ),
        head=("attack", "result", "shown by"),
        rows=tuple(Row((one.meaning, one.figure), (ATTACKS,)) for one in MEASURED),
    )


def software(components: Sequence[Component]) -> Section:
    """What runs at a site."""
    if not components:
        return Section(
            "Software", ("It depends on the installation: goldfc dossier lists what is installed where it is run.",)
        )
    return Section(
        "Software",
        ("What is installed where this dossier was made, with what its makers say of their licences.",),
        head=("distribution", "version", "licence"),
        rows=tuple(Row((one.name, one.version, one.licence)) for one in components),
    )


def as_page(agreement: Agreement, components: Sequence[Component] = ()) -> str:
    """For a browser; names from the file are text and nothing else."""
    return sealed_page(
        "dossier.html",
        style="dossier.css",
        script=None,
        title=f"{TITLE} {agreement.federation}",
        about=agreement.title,
        sections=sections_of(agreement, components),
    )


def as_markdown(agreement: Agreement, components: Sequence[Component] = (), to_source: str | None = None) -> str:
    """The same as text, with links to what shows it if the source is at `to_source`."""
    lines = [
        f"# {without_markup(TITLE)} {without_markup(agreement.federation)}",
        "",
        *([without_markup(agreement.title), ""] if agreement.title else []),
    ]
    for section in sections_of(agreement, components):
        lines += [f"## {section.title}", "", *lines_of(section, to_source)]
    return "\n".join(lines).rstrip("\n") + "\n"


def lines_of(section: Section, to_source: str | None) -> Iterator[str]:
    """A section as Markdown."""
    for sentence in section.sentences:
        yield from (without_markup(sentence), "")
    yield from (f"- {without_markup(point)}" for point in section.points)
    if section.points:
        yield ""
    if section.rows:
        yield from (table_line(section.head), "|" + "---|" * len(section.head))
        for row in section.rows:
            shown_by = [", ".join(linked(place, to_source) for place in row.shown_by)] if row.shown_by else []
            yield table_line([*map(without_markup, row.cells), *shown_by])
        yield ""


def table_line(cells: Sequence[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def linked(place: str, to_source: str | None) -> str:
    """A test or a page of figures, as a link if the source is there."""
    path, _, test = place.partition("::")
    return f"`{place}`" if to_source is None else f"[`{test or path}`]({to_source}{path})"


def without_markup(text: str) -> str:
    """A text in which nothing means more than it says."""
    return SIGNS.sub(lambda sign: f"\\{sign[0]}", text)


def is_dossier(head: bytes) -> bool:
    """Whether a file looks like one of these pages."""
    return head.startswith(b"<!doctype html") and TITLE.encode() in head


def is_markdown(head: bytes) -> bool:
    """Whether a file looks like such a text."""
    return head.startswith(f"# {TITLE}".encode())


# By the suffix of the file: what writes it, and how one of ours is recognised.
FORMS: dict[str, tuple[Callable[[Agreement, Sequence[Component]], str], Callable[[bytes], bool]]] = {
    ".html": (as_page, is_dossier),
    ".md": (as_markdown, is_markdown),
}
