"""What safety costs is measured on what is shipped."""

from pathlib import Path

import numpy as np
from click.testing import CliRunner

from goldfc_bench import trust
from goldfc_bench.cases import split_of
from goldfc_bench.cli import main
from needs import needs_splits

# By the issue of a hostile site, per attack; counts are what can do most.
ALLOWED = {name: 0.13 if "count" in name else 0.05 for name in trust.ATTACKS}


@needs_splits
def test_the_quick_form_fills_all_tables(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["trust", "--quick", "--jobs", "1", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "trust" / "README.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in page for name in (*trust.VARIANTS, *trust.ATTACKS, "EC"))
    assert "20 summaries of 100 x 36 were taken in" in page


def test_a_hostile_site_of_eight_cannot_spoil_the_demos_digits() -> None:
    federation = trust.digits_at_eight_sites(0)
    losses = [trust.losses_to(federation, evil) for evil in (0, 3, 6)]
    mean = {name: np.mean([one[name].from_others for one in losses]) for name in trust.ATTACKS}
    assert {name: loss for name, loss in mean.items() if loss > ALLOWED[name]} == {}


@needs_splits
def test_raw_splits_are_the_papers_in_other_units() -> None:
    raw, scaled = split_of("EC-raw", "paper"), split_of("EC", "paper")
    np.testing.assert_array_equal(raw.site, scaled.site)
    assert abs(np.corrcoef(raw.X[:, 0], scaled.X[:, 0])[0, 1] - 1.0) < 1e-9
    assert raw.X[:, 0].min() >= -1e-9  # shares of a whole, before they were standardised


def test_exchanged_sites_have_the_same_rows_and_sizes() -> None:
    drawn = split_of("iris", "non-icd-4-0")
    for per_cent in (0, 50, 100):
        mixed = split_of("iris", f"exchanged-4-0-{per_cent}")
        np.testing.assert_array_equal(mixed.X, drawn.X)
        np.testing.assert_array_equal(np.bincount(mixed.site), np.bincount(drawn.site))
        moved = float((mixed.site != drawn.site).mean())
        assert (moved == 0.0) if per_cent == 0 else (0.2 < moved < per_cent / 100.0)
