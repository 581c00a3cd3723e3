"""What a test may need that is not on every machine."""

import shutil

import pytest

from goldfc_bench.datasets import data_folder

needs_data = pytest.mark.skipif(
    not (data_folder() / "full").is_dir(),
    reason="the ten sets are not here: `goldfc-bench data fetch`, or set GOLDFC_DATA",
)
has_splits = (data_folder() / "splits").is_dir()
needs_splits = pytest.mark.skipif(not has_splits, reason="the paper's splits are not here: set GOLDFC_DATA")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="there is no Chromium here: install Debian's package `chromium`"
)
