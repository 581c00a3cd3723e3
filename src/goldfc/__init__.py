"""goldfc: one-shot federated clustering.

Cluster rows that several sites hold and may not share: each site sends one small message, once.
"""

from importlib.metadata import version

from goldfc import errors
from goldfc.estimator import GOLD
from goldfc.learning.competition import Learning
from goldfc.protocol.client import Client, Membership, label, summarize
from goldfc.protocol.federation import LocalPort
from goldfc.protocol.message import Model, Summary
from goldfc.protocol.server import fuse, run_round

__version__ = version("goldfc")

__all__ = [
    "GOLD",
    "Client",
    "Learning",
    "LocalPort",
    "Membership",
    "Model",
    "Summary",
    "errors",
    "fuse",
    "label",
    "run_round",
    "summarize",
]
