"""Two threads where order counts: one gets what comes next, while the other works on what is there."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

Item = TypeVar("Item")


def ahead(items: Generator[Item, None, None]) -> Iterator[Item]:
    """The same items in the same order; the next one is made while one is worked on."""
    with closing(items), ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(next, items, items)
        # The generator itself, which is none of its items, stands for the end.
        while (item := waiting.result()) is not items:
            waiting = thread.submit(next, items, items)
            yield item  # type: ignore[misc] # an item, as it is not the end
