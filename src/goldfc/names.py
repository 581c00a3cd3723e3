"""What people call the clusters: one file, `names.toml`, beside the model; written by hand or by the page."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from goldfc.errors import BadSettings
from goldfc.message.columns import Strict, look_of_text, plain_text, read_settings, refuse_alike
from goldfc.message.model import Model

NAMES_FILE = "names.toml"
MOST_BYTES_OF_NAMES = 128 * 1024
LONGEST_NAME, LONGEST_NOTE = 60, 500


class Called(Strict):
    """What one cluster is called, by the number that it has everywhere."""

    id: Annotated[int, Field(ge=0, le=10**15)]
    name: Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(plain_text)] = ""
    note: Annotated[str, Field(max_length=LONGEST_NOTE), AfterValidator(plain_text)] = ""


class Names(Strict):
    """The content of `names.toml`; those of clusters that a model does not have are left alone."""

    # The fingerprint of the model whose clusters they are.
    model: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")] | None = None
    clusters: Annotated[tuple[Called, ...], Field(strict=False, max_length=4096)] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        refuse_alike("cluster", (str(one.id) for one in self.clusters), str)
        refuse_alike("cluster name", (one.name for one in self.clusters if one.name), look_of_text)
        return self

    def of(self, number: int) -> Called:
        """What a cluster is called, if it has a name or a note."""
        return next((one for one in self.clusters if one.id == number), Called(id=number))

    def in_model(self, model: Model) -> tuple[Called, ...]:
        """What every cluster of a model is called, in the order of its arrays."""
        return tuple(self.of(number) for number in ids_of(model))


NAMELESS = Names()


def ids_of(model: Model) -> tuple[int, ...]:
    """The number by which every cluster is known, in the order of the model's arrays."""
    return tuple(model.ids.tolist())


def read_names(path: Path, model: Model) -> Names:
    """From their file, for the model or one that it came after; the numbers of any other mean other clusters."""
    names, before = read_settings(path, Names, MOST_BYTES_OF_NAMES), model.descent.ancestors if model.descent else ()
    if names.model not in {None, model.fingerprint, *(digest[: len(model.fingerprint)] for digest in before)}:
        raise BadSettings(
            f"{path} names the clusters of model {names.model!r}, and this is {model.fingerprint}; name its clusters "
            "anew, or, if they are the same, remove the line that begins with model.",
            "names-of-other-model",
        )
    return names


def names_beside(place: Path, model: Model) -> Names:
    """From the file beside a model, if there is one."""
    path = place.parent / NAMES_FILE
    return read_names(path, model) if path.is_file() else NAMELESS
