"""Who and what is admitted to a round: messages from others are hostile until they are checked."""

from collections.abc import Sequence

import numpy as np

from goldfc.agreement import FILE, Agreement, context_of
from goldfc.errors import BadMessage, BadSettings, TooFewSites
from goldfc.message.envelope import PrivateKey, is_sealed, read_cover, unseal
from goldfc.message.summary import Summary
from goldfc.message.wire import decode, naming

# A site whose values spread so many times as far as the median site's has other units, or other intentions.
FAR_OUT = 10.0


def far_out(summaries: Sequence[Summary]) -> dict[str, str]:
    """Sites whose values lie so much further out than the others' that they would set everybody's scale, and why.

    How far: the root mean square of a column around the median of the sites' means, against the median site's; and
    of all columns the median, because one that is rare at most sites may honestly be common at one. It takes three to
    know who is the odd one out.
    """
    told = {summary.site: summary.moments for summary in summaries if summary.moments is not None}
    if len(told) < 3:
        return {}
    means = np.array([moments.mean for moments in told.values()])
    variances = np.array([moments.variance for moments in told.values()])
    spread = np.sqrt(variances + (means - np.median(means, axis=0)) ** 2)
    usual = np.median(spread, axis=0)
    if not usual.any():
        return {}
    times = np.median(spread[:, usual > 0.0] / usual[usual > 0.0], axis=1)
    return {
        site: f"its columns spread {far:.3g} times as far as the median site's; are they in other units?"
        for site, far in zip(told, times, strict=True)
        if far > FAR_OUT
    }


def check_enough(count: int, agreement: Agreement) -> None:
    """Refuse to go on with too few."""
    if count < agreement.limits.least_sites:
        raise TooFewSites(
            f"There {'is' if count == 1 else 'are'} {count} to fuse, but at least {agreement.limits.least_sites} "
            f"are agreed on; wait for more, or agree on fewer (least_sites in {FILE}).",
            "too-few-sites",
        )


def server_key(agreement: Agreement, key: PrivateKey | None) -> PrivateKey | None:
    """The server's private key, where messages are sealed; refused if it is another one, or missing."""
    if key is not None and agreement.server.key != key.public.text:
        raise BadSettings(
            f"This is not the server's key in {FILE}; give the private key that belongs to it.", "server-key-wrong"
        )
    if agreement.sealed and key is None:
        raise BadSettings("Messages are sealed, so the server's private key is needed.", "server-key-missing")
    return key


def read_body(message: bytes, agreement: Agreement, key: PrivateKey | None) -> bytes:
    """The body of a message to the server, out of its envelope."""
    own = server_key(agreement, key)
    if not is_sealed(message):
        if own is not None:
            raise BadMessage(
                f"it is not in an envelope, but {FILE} has keys: it is not a message, or it is not signed",
                "summary-unsigned",
            )
        return message
    if own is None:
        raise BadMessage(f"it is in an envelope, but {FILE} has no keys to check it with", "envelope-unexpected")
    site = read_cover(message)[0].site
    return unseal(message, context_of(agreement, site, "server"), agreement.key_of(site), own)


def read_summary(
    message: bytes, source: str, agreement: Agreement, key: PrivateKey | None, *, or_earlier: bool = False
) -> tuple[Summary, bytes]:
    """The summary in a file, and its body, if this federation can use it; one of an earlier round if that will do."""
    with naming(source):
        body = read_body(message, agreement, key)
        sender = read_cover(message)[0].site if is_sealed(message) else None
    decoded = decode(body, source)
    with naming(source):
        summary = agreement.read_summary(decoded, or_earlier=or_earlier)
        if sender is not None and summary.site != sender:
            raise BadMessage(f"site {sender!r} signed it, but it speaks for {summary.site!r}", "signer-not-sender")
    return summary, body
