"""What a test may need that is not on every machine."""

import os

import pytest

from goldfc.bench.datasets import data_folder

needs_data = pytest.mark.skipif(
    not (data_folder() / "full").is_dir(), reason="the ten sets are not here: `goldfc data fetch`, or set GOLDFC_DATA"
)
needs_splits = pytest.mark.skipif(
    not (data_folder() / "splits").is_dir(), reason="the paper's splits are not here: set GOLDFC_DATA"
)

# Real processes that are killed and waited for: minutes.
takes_minutes = pytest.mark.skipif(
    not os.environ.get("GOLDFC_LIVE"), reason="takes minutes: `make test-live` runs it (GOLDFC_LIVE=1)"
)
