"""goldfc: one-shot federated clustering.

Cluster rows that several sites hold and may not share: each site sends one small message, once.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from goldfc import errors

if TYPE_CHECKING:
    from goldfc.estimator import GOLD
    from goldfc.learning.competition import Learning
    from goldfc.protocol.client import Client, Membership, label, summarize
    from goldfc.protocol.federation import LocalPort
    from goldfc.protocol.fusion import Consensus, Remc
    from goldfc.protocol.message import Model, Summary, Task
    from goldfc.protocol.server import fuse, run_round

__all__ = [
    "GOLD",
    "Client",
    "Consensus",
    "Learning",
    "LocalPort",
    "Membership",
    "Model",
    "Remc",
    "Summary",
    "Task",
    "errors",
    "fuse",
    "label",
    "run_round",
    "summarize",
]

__version__ = version("goldfc")

# scikit-learn and the compiler take a second to load, so each name is imported when it is first asked for.
_HOMES = {
    "goldfc.estimator": ("GOLD",),
    "goldfc.learning.competition": ("Learning",),
    "goldfc.protocol.client": ("Client", "Membership", "label", "summarize"),
    "goldfc.protocol.federation": ("LocalPort",),
    "goldfc.protocol.fusion": ("Consensus", "Remc"),
    "goldfc.protocol.message": ("Model", "Summary", "Task"),
    "goldfc.protocol.server": ("fuse", "run_round"),
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'goldfc' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What there is to see."""
    return __all__
