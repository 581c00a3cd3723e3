"""What a site remembers of the federations that it sends messages to: the server's key, or that there is none.

A model that nobody signed says what its maker likes, also that it is of a federation without keys. So what a site knows
of its own messages decides whether it takes one.
"""

import json
from pathlib import Path

from goldfc.agreement import FILE, Agreement
from goldfc.errors import BadSettings
from goldfc.files import PRIVATE_FOLDER, check_private, private_folder, write_durably
from goldfc.message.message import canonical_json

MEMORY = "federations.json"
ServerKeys = dict[str, str | None]


def remembered(data: Path) -> ServerKeys:
    """Of every federation that messages were made for beside this data: the server's key, if they were sealed."""
    check_private(data.parent / PRIVATE_FOLDER)
    path = data.parent / PRIVATE_FOLDER / MEMORY
    try:
        return dict(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        raise BadSettings(f"{path} cannot be read; move it away, and use {FILE}.", "memory-unreadable") from error


def remember(data: Path, agreement: Agreement) -> None:
    """Keep in mind whether messages of this federation are sealed."""
    known = remembered(data)
    if (agreement.federation, agreement.server.key) not in known.items():
        facts = {**known, agreement.federation: agreement.server.key}
        write_durably(private_folder(data) / MEMORY, canonical_json(facts).encode() + b"\n", private=True)


def check_unsigned(data: Path, agreement: Agreement | None, federation: str, *, said: bool) -> None:
    """Refuse a model that is not signed, unless that is as agreed, as remembered, or `said` to be meant."""
    known = remembered(data)
    if agreement is not None:
        if known.get(agreement.federation):
            raise BadSettings(
                f"Messages of federation {agreement.federation!r} were sealed at this site, but {FILE} has no keys; "
                "ask for the one that has, or make a message with this one first.",
                "keys-gone",
            )
    elif not said and any(known.values()):
        raise BadSettings(
            f"This model is not signed, and messages of this site were sealed; use {FILE}, which has the keys.",
            "unsigned-after-sealed",
        )
    elif not said and federation not in known:
        raise BadSettings(
            f"This model is not signed, there is no {FILE}, and no message of federation {federation!r} was made "
            "beside this data; use the file that was agreed on.",
            "unsigned-of-unknown",
        )
