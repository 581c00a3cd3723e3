"""Whether compilation is still to come is told without the compiler, once, and only if it is."""

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from goldfc.learning.paper import compilation
from goldfc.learning.paper.compilation import LEARNING, announce, must_be_compiled

VERSION = f"py{sys.version_info.major}{sys.version_info.minor}"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where compiled functions of this package would be kept."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compilation, "_ANNOUNCED", set())
    folder = tmp_path / "paper_0123"
    folder.mkdir()
    return folder


def test_an_empty_cache_means_compilation_and_it_is_told_once(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert must_be_compiled(LEARNING)
    with caplog.at_level(logging.INFO, "goldfc"):
        announce(LEARNING)
        announce(LEARNING)
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert caplog.messages == ["Compiling for this machine; this happens once and takes about half a minute."]
    assert list(cache.iterdir()) == []


def test_nothing_is_told_when_all_is_compiled(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    (cache / f"_epoch.epoch-1.{VERSION}.nbi").touch()
    assert not must_be_compiled(LEARNING)
    with caplog.at_level(logging.INFO, "goldfc"):
        announce(LEARNING)
    assert caplog.messages == []


def test_what_was_compiled_from_older_code_does_not_count_and_is_forgotten(cache: Path) -> None:
    indices = [cache / f"{name}-1.{VERSION}.nbi" for name in ("_epoch.epoch", "_kernels.compact")]
    for index in indices:
        index.touch()
        os.utime(index, (0, 0))
    assert must_be_compiled(LEARNING)
    announce(LEARNING)
    assert not any(index.exists() for index in indices)


def test_it_looks_where_the_compiler_really_keeps_it(tmp_path: Path) -> None:
    script = (
        "import numpy as np; from goldfc.learning.paper._fusion_kernels import best_matches\n"
        "from goldfc.learning.paper.compilation import must_be_compiled\n"
        "part = '_fusion_kernels', 'best_matches', 'a second'; before = must_be_compiled(part)\n"
        "codes = np.zeros((3, 2), dtype=int); best_matches(codes, codes, np.ones((3, 2)), np.zeros(3, dtype=int))\n"
        "raise SystemExit(not before or must_be_compiled(part))"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", script], env=environment, check=False).returncode == 0  # noqa: S603


@pytest.mark.parametrize("script", ["import goldfc", "from goldfc.cli import main; main(['--help'])"])
def test_neither_the_import_nor_help_loads_the_compiler_or_compiles(script: str, tmp_path: Path) -> None:
    watched = (
        "import atexit, os, sys\n"
        "atexit.register(lambda: {'numba', 'sklearn'} & set(sys.modules) and os._exit(9))\n" + script
    )
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        run = subprocess.run(  # noqa: S603 (our own script)
            [sys.executable, "-c", watched],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            check=False,
        )
        seconds.append(time.perf_counter() - begin)
        assert run.returncode == 0
    assert list(tmp_path.iterdir()) == []
    assert min(seconds) < 5.0  # well below one where nobody else computes


def test_the_command_line_says_so_on_the_error_stream(tmp_path: Path) -> None:
    script = (
        "from goldfc.cli import main; from goldfc.learning.paper import compilation\n"
        "try: main(['inspect', '--help'])\n"
        "except SystemExit: pass\n"
        "compilation.announce(compilation.LEARNING)"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert run.stderr == "Compiling for this machine; this happens once and takes about half a minute.\n"
    assert "Compiling" not in run.stdout
