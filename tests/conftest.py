"""For all tests: one thread for BLAS and OpenMP, as the runner has it; tests themselves run side by side."""

from collections.abc import Iterator

import pytest
import sklearn.cluster  # noqa: F401 (its thread pools must be loaded before they can be limited)
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    with threadpool_limits(limits=1):
        yield
