"""The methods that are compared, one file each, by the names of the paper's tables."""

import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from goldfc.errors import BadSettings
from goldfc_bench.methods.ablation import AblatedGold
from goldfc_bench.methods.afcl import AFCL
from goldfc_bench.methods.chosen import ChosenK
from goldfc_bench.methods.coreset import CoresetKMeans
from goldfc_bench.methods.fedsc import FedSC
from goldfc_bench.methods.ffcm import FFCMAverage, FFCMKMeans
from goldfc_bench.methods.gold import Gold
from goldfc_bench.methods.kfed import KFed
from goldfc_bench.methods.nnfc import NNFC
from goldfc_bench.methods.oneshot import OneShotMethod
from goldfc_bench.methods.osfsc import OSFSCSparse, OSFSCThreshold
from goldfc_bench.methods.pooled import PooledKMeans
from goldfc_bench.methods.protocol import Method

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        KFed(),
        FFCMAverage(),
        FFCMKMeans(),
        OSFSCSparse(),
        OSFSCThreshold(),
        FedSC(),
        NNFC(),
        AFCL(),
        Gold(),
        OneShotMethod(),
        PooledKMeans(),
        CoresetKMeans(),
    )
}
# Not for comparison with all others, only with what they are variants of.
VARIANTS: dict[str, Method] = {method.name: method for method in (AblatedGold(), ChosenK())}


def method_named(name: str, settings: Mapping[str, Any] | None = None) -> Method:
    """A method by its name, or `path/to/file.py:ClassName` for one of your own, with some settings changed."""
    method = _from_file(name) if ".py:" in name else (METHODS | VARIANTS).get(name)
    if method is None:
        raise BadSettings(f"There is no method {name!r}; the known ones are {', '.join(METHODS)}.")
    try:
        # Every method is a dataclass, which a protocol cannot say.
        return replace(method, **dict(settings or {}))  # type: ignore[type-var]
    except TypeError as error:
        raise BadSettings(f"{name} cannot take the settings {dict(settings or {})}: {error}.") from error


def module_of(name: str) -> str:
    """The module of a method, or the file it is from."""
    return name.rsplit(":", maxsplit=1)[0] if ".py:" in name else type(method_named(name)).__module__


def _from_file(name: str) -> Method:
    path, class_name = name.rsplit(":", maxsplit=1)
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise BadSettings(f"There is no Python file {path!r} to take the method {class_name!r} from.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    method: Method = getattr(module, class_name)()
    return method
