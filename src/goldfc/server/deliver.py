"""The model on its way to the sites: as a file, and, where messages are sealed, in an envelope for each."""

from collections.abc import Callable, Collection
from pathlib import Path

from goldfc.agreement import Agreement, context_of
from goldfc.files import write_durably
from goldfc.message.envelope import PrivateKey, seal
from goldfc.message.model import Model
from goldfc.message.wire import decode, encode, naming, read_message

MODEL, SEALED = "global.model", "sealed"


def letters_of(model: Model, agreement: Agreement, key: PrivateKey | None) -> dict[str, bytes]:
    """The model as every site gets it, listed ones that sent nothing as well; in envelopes, if there are keys."""
    return letters_to({*model.sites, *agreement.names}, model, agreement, key)


def letters_to(sites: Collection[str], model: Model, agreement: Agreement, key: PrivateKey | None) -> dict[str, bytes]:
    """The model as some sites get it."""
    body = encode(model.to_message())
    if key is None:
        return dict.fromkeys(sorted(sites), body)
    return {
        site: seal(body, context_of(agreement, site, "site"), key, agreement.key_of(site)) for site in sorted(sites)
    }


def read_model(path: Path) -> Model:
    """The model in a file."""
    message = decode(read_message(path), path.name)
    with naming(path.name):
        return Model.from_message(message)


def write_model(
    folder: Path,
    model: Model,
    letters: dict[str, bytes],
    *,
    sealed: bool,
    before_each: Callable[[], None] = lambda: None,
) -> None:
    """Into the server's folder: first what sites get, then the model, whose being there says that all is."""
    if sealed:
        for site, letter in letters.items():
            before_each()
            (folder / SEALED).mkdir(exist_ok=True)
            write_durably(folder / SEALED / f"{site}.model", letter)
    before_each()
    write_durably(folder / MODEL, encode(model.to_message()), private=sealed)
