"""Independent work side by side, on whatever joblib is set to: threads, processes, a cluster.

Threads are what is used unless `joblib.parallel_config` says otherwise: compiled code lets go of the interpreter lock.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

Item = TypeVar("Item")
Result = TypeVar("Result")

# Where results can't be had one by one, so many pieces of work per worker are given out at a time.
AT_A_TIME = 8


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None) -> Iterator[Result]:
    """The results in the order of the items; only a few items are taken ahead, so that few are in memory."""
    if n_jobs in (None, 1):
        yield from map(work, items)
        return
    if get_active_backend(prefer="threads")[0].supports_return_generator:
        yield from Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(map(delayed(work), items))
        return
    left = iter(items)
    with Parallel(n_jobs=n_jobs, prefer="threads") as parallel:
        while few := list(islice(left, AT_A_TIME * parallel.n_jobs if parallel.n_jobs > 0 else 8 * AT_A_TIME)):
            yield from parallel(map(delayed(work), few))


def shares_memory() -> bool:
    """Whether the work is done in this process, so that it may change what it works on."""
    return bool(get_active_backend(prefer="threads")[0].supports_sharedmem)
