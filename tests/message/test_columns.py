"""What a message is about: columns that fit together, and in words where two differ."""

from pathlib import Path

import pytest

from goldfc.errors import BadSettings
from goldfc.message.columns import UNNAMED, Column, Strict, Terms, ranges_of, read_settings
from sentences import refused

AGE = Column(name="age", range=(0.0, 120.0))


def test_ranges_are_asked_of_columns_that_have_them() -> None:
    low, high = ranges_of(Terms(columns=(AGE, Column(name="ill", kind="boolean"))))
    assert (low.tolist(), high.tolist()) == ([0.0, 0.0], [120.0, 1.0])
    with refused(BadSettings, "range-missing", "'weight'"):
        ranges_of(Terms(columns=(AGE, Column(name="weight"))))
    with refused(BadSettings, "ranges-unnamed"):
        ranges_of(UNNAMED)


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (Terms(federation="beds", round=2, columns=(AGE,)), "it is of federation 'beds', not of 'wards'"),
        (Terms(federation="wards", round=3, columns=(AGE,)), "it is of round 3, not of round 2"),
        (Terms(federation="wards", round=2), "it has 0 columns, not 1"),
        (
            Terms(federation="wards", round=2, columns=(Column(name="age"),)),
            "column 1 ('age') has the range None, not (0.0, 120.0)",
        ),
    ],
)
def test_terms_that_differ_say_in_what(other: Terms, difference: str) -> None:
    terms = Terms(federation="wards", round=2, columns=(AGE,))
    assert terms.difference(other) == difference
    assert terms.difference(terms) is None


def test_a_file_of_settings_that_is_no_text_or_too_long_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    with refused(BadSettings, "settings-unreadable", "site.toml"):
        read_settings(path, Strict, 10)
    path.write_bytes(b'x = "\xff"')
    with refused(BadSettings, "not-utf-8", "site.toml"):
        read_settings(path, Strict, 10)
    with refused(BadSettings, "settings-large", "site.toml"):
        read_settings(path, Strict, 5)
