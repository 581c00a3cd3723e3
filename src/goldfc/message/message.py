"""What crosses between a site and the server, and nothing else does.

rows -> site -> Summary (one message up) -> server -> Model (one message down) -> site -> labels

A `Message` is a kind, some numeric arrays and a few plain facts: the shape that every transport carries. `Task`,
`Summary` and `Model` are its typed faces.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from goldfc.errors import BadMessage
from goldfc.message.columns import complaint_code, first_complaint

Face = TypeVar("Face")


@dataclass(frozen=True)
class Message:
    """A kind, numeric arrays and plain facts. All are copies, arrays read-only: the two sides share no memory."""

    kind: str
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Detach it from the sender's memory."""
        copies = {name: np.array(array, order="C") for name, array in self.arrays.items()}
        for array in copies.values():
            array.flags.writeable = False
        object.__setattr__(self, "arrays", copies)
        object.__setattr__(self, "facts", deepcopy(dict(self.facts)))

    @cached_property
    def header(self) -> str:
        """The kind and the facts as JSON, always in the same form."""
        return canonical_json({"kind": self.kind, **self.facts})

    @cached_property
    def nbytes(self) -> int:
        """Size on the way: the arrays, and the rest as compact JSON."""
        return len(self.header.encode()) + sum(array.nbytes for array in self.arrays.values())

    @property
    def digest(self) -> str:
        """A short text that no other content has."""
        content = hashlib.blake2b(self.header.encode(), digest_size=16)
        for name, array in sorted(self.arrays.items()):
            content.update(f"\0{name}{array.shape}".encode())
            content.update(array.astype("<f8").tobytes())
        return content.hexdigest()

    def once(self, read: Callable[["Message"], Face]) -> Face:
        """What `read` makes of it; that is done once for all sites of a process, of which there may be thousands."""
        if read not in self._faces:
            self._faces[read] = read(self)
        face: Face = self._faces[read]
        return face

    @cached_property
    def _faces(self) -> dict[Callable[["Message"], Any], Any]:
        return {}

    @contextmanager
    def read_as(self, kind: str) -> Iterator[None]:
        """Refuse to read a message as something that it is not, or that lacks what its kind must have."""
        if self.kind != kind:
            raise BadMessage(f"Expected a message of kind {kind!r}, got {self.kind!r}.", "kind-unexpected")
        try:
            yield
        except ValidationError as error:
            raise BadMessage(
                f"A message of kind {kind!r} is not as it should be: {first_complaint(error)}.",
                complaint_code(error, "message-invalid"),
            ) from error
        except (KeyError, TypeError) as error:
            raise BadMessage(
                f"A message of kind {kind!r} is not as it should be: {error}.", "message-invalid"
            ) from error


def canonical_json(value: object) -> str:
    """Compact JSON, sorted by key: the same content has the same text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
