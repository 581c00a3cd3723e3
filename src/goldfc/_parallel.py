"""Independent work side by side, on whatever joblib is set to: threads, processes, a cluster.

Threads do it unless `joblib.parallel_config` says otherwise: compiled code lets go of the interpreter lock.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Literal, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

Item = TypeVar("Item")
Result = TypeVar("Result")
Workers = Literal["threads", "processes"]

# Where results cannot be had one by one, so many pieces of work for each worker are given out at a time.
AT_A_TIME = 4


def side_by_side(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    n_jobs: int | None,
    *,
    prefer: Workers = "threads",
    ordered: bool = True,
) -> Iterator[Result]:
    """The results, in the order of the items unless that does not matter; only a few items are taken ahead.

    As everywhere in joblib, None is what `parallel_config` says, or one.
    """
    backend, configured = get_active_backend(prefer=prefer)
    jobs = configured if n_jobs is None else n_jobs
    if jobs == 1:
        yield from map(work, items)
    elif backend.supports_return_generator:
        order = "generator" if ordered else "generator_unordered"
        yield from Parallel(jobs, prefer=prefer, return_as=order, batch_size=1)(map(delayed(work), items))
    else:
        left, many = iter(items), AT_A_TIME * effective_n_jobs(jobs)
        with Parallel(jobs, prefer=prefer) as parallel:
            while few := list(islice(left, many)):
                yield from parallel(map(delayed(work), few))


def shares_memory() -> bool:
    """Whether work is done in this process, so that it may change what it works on."""
    return bool(getattr(get_active_backend(prefer="threads")[0], "supports_sharedmem", False))
