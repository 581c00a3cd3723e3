"""goldfc: one-shot federated clustering.

Cluster rows that several sites hold and may not share: each site sends one small message, once.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from goldfc import errors

if TYPE_CHECKING:
    from goldfc.estimators import GOLD, OneShotClustering
    from goldfc.message.model import Model
    from goldfc.message.summary import Summary
    from goldfc.message.task import Task
    from goldfc.report.result import load
    from goldfc.server.fusions import fuse
    from goldfc.server.one_shot import OneShot
    from goldfc.server.round import run_round
    from goldfc.site.label import label
    from goldfc.site.participant import Site
    from goldfc.site.summarize import summarize
    from goldfc.transport.local import LocalPort

__all__ = [
    "GOLD",
    "LocalPort",
    "Model",
    "OneShot",
    "OneShotClustering",
    "Site",
    "Summary",
    "Task",
    "errors",
    "fuse",
    "label",
    "load",
    "run_round",
    "summarize",
]

__version__ = version("goldfc")

# scikit-learn and the compiler take a second to load, so each name is imported when it is first asked for.
_HOMES = {
    "goldfc.estimators": ("GOLD", "OneShotClustering"),
    "goldfc.message.model": ("Model",),
    "goldfc.message.summary": ("Summary",),
    "goldfc.message.task": ("Task",),
    "goldfc.report.result": ("load",),
    "goldfc.server.fusions": ("fuse",),
    "goldfc.server.one_shot": ("OneShot",),
    "goldfc.server.round": ("run_round",),
    "goldfc.site.label": ("label",),
    "goldfc.site.participant": ("Site",),
    "goldfc.site.summarize": ("summarize",),
    "goldfc.transport.local": ("LocalPort",),
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
