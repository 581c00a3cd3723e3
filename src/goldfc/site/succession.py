"""By which model rows were labelled last: the next one must come after it, or at least from the same one before.

It is remembered beside the data, for federations that messages were made for there; only models with a lineage count.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from goldfc.errors import BadMessage, BadSettings
from goldfc.files import PRIVATE_FOLDER, private_folder, write_durably
from goldfc.message.descent import MOST_ANCESTORS
from goldfc.message.message import canonical_json
from goldfc.message.model import Model
from goldfc.site.seals import remembered

MEMORY = "models.json"


@dataclass(frozen=True)
class Last:
    """What is remembered of a model."""

    digest: str
    generation: int
    after: str | None

    @classmethod
    def of(cls, model: Model) -> "Last":
        """Of this one."""
        return cls(model.digest, 0 if model.descent is None else model.descent.generation, model.after)

    def may_be_followed_by(self, model: Model) -> bool:
        """Whether it is the same, came after this one, or takes its place; of far later ones nobody can tell."""
        now = Last.of(model)
        if now.digest == self.digest or now.generation == self.generation == 0:
            return True
        ancestors = () if model.descent is None else model.descent.ancestors
        too_far = now.generation - self.generation >= MOST_ANCESTORS
        return too_far or bool({self.digest, self.after} & set(ancestors))


def last_of(data: Path) -> dict[str, Last]:
    """Of every federation the model by which rows beside this data were labelled last."""
    path = data.parent / PRIVATE_FOLDER / MEMORY
    try:
        return {federation: Last(**facts) for federation, facts in json.loads(path.read_bytes()).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise BadSettings(f"{path} cannot be read; move it away.", "models-unreadable") from error


def check_succession(data: Path, model: Model, *, said: bool) -> None:
    """Refuse an older model than the last, or one of another lineage, unless that is `said` to be meant."""
    last = last_of(data).get(model.terms.federation)
    if last is not None and not said and not last.may_be_followed_by(model):
        raise BadMessage(
            f"Model {model.fingerprint} does not come after the one by which rows were labelled last: it is older, or "
            "of another lineage; ask for the latest one.",
            "model-not-after",
        )


def remember_model(data: Path, model: Model) -> None:
    """Keep it in mind, where messages of its federation were made."""
    federation, known = model.terms.federation, last_of(data)
    if federation in remembered(data) and known.get(federation) != Last.of(model):
        facts = {name: asdict(last) for name, last in {**known, federation: Last.of(model)}.items()}
        write_durably(private_folder(data) / MEMORY, canonical_json(facts).encode() + b"\n", private=True)
