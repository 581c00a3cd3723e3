"""goldfc: one-shot federated clustering.

Cluster rows that several sites hold and may not share: each site sends one small message, once.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from goldfc import errors

if TYPE_CHECKING:
    from goldfc.estimators import GOLD, OneShotClustering
    from goldfc.protocol.client import Client, summarize
    from goldfc.protocol.federation import LocalPort
    from goldfc.protocol.fusion import OneShot
    from goldfc.protocol.label import label
    from goldfc.protocol.message import Model, Summary, Task
    from goldfc.protocol.server import fuse, run_round

__all__ = [
    "GOLD",
    "Client",
    "LocalPort",
    "Model",
    "OneShot",
    "OneShotClustering",
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
    "goldfc.estimators": ("GOLD", "OneShotClustering"),
    "goldfc.protocol.client": ("Client", "summarize"),
    "goldfc.protocol.federation": ("LocalPort",),
    "goldfc.protocol.fusion": ("OneShot",),
    "goldfc.protocol.label": ("label",),
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
