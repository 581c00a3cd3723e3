"""What a hostile hospital might try: five messages, each meant to spoil the result."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from goldfc.agreement import Agreement, context_of, read_agreement
from goldfc.message.envelope import PrivateKey, PublicKey, seal
from goldfc.message.levels import with_fewest
from goldfc.message.summary import Summary
from goldfc.message.wire import encode


def main(federation: Path, key_file: Path, inbox: Path) -> None:
    """Put them into the inbox."""
    agreement, key = read_agreement(federation), PrivateKey.read(key_file)
    honest = invented(agreement)
    huge = replace(honest, centroids=honest.centroids * 1e6)
    many = replace(honest, centroids=np.repeat(honest.centroids, 500, axis=0))
    messages = {
        "west-1-huge": sealed(encode(huge.to_message()), "west", agreement, key),
        "west-2-thousands": sealed(encode(many.to_message()), "west", agreement, key),
        "west-3-as-north": sealed(encode(replace(honest, site="north").to_message()), "north", agreement, key),
        "west-4-unsigned": encode(honest.to_message()),
        "west-5-junk": bytes(range(256)) * 40,
    }
    for name, content in messages.items():
        (inbox / f"{name}.summary").write_bytes(content)


def invented(agreement: Agreement) -> Summary:
    """Patients who do not exist."""
    rng = np.random.default_rng(0)
    centroids = rng.uniform(0.0, 1.0, (30, agreement.terms.n_features))
    return Summary("west", centroids, level=with_fewest(agreement.smallest), terms=agreement.terms)


def sealed(body: bytes, site: str, agreement: Agreement, key: PrivateKey) -> bytes:
    """In an envelope, signed with the hostile hospital's own key whatever name it uses."""
    return seal(body, context_of(agreement, site, "server"), key, PublicKey(agreement.server.key or ""))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
