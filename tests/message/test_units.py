"""A value in one unit becomes one in another where both are known by name, and only there."""

import pytest

from goldfc.message.units import to_unit


@pytest.mark.parametrize(
    ("column", "unit", "wanted", "value", "converted"),
    [
        ("weight", "lb", "kg", 220.5, 100.0),
        ("weight", "kg", "pounds", 100.0, 220.5),
        ("glucose", "mg/dL", "mmol/L", 90.1, 5.0),
        ("Glucose, fasting", "mmol/L", "mg/dL", 5.0, 90.1),
        ("temperature", "°F", "Celsius", 98.6, 37.0),
        ("creatinine", "umol/l", "mg/dl", 88.4, 1.0),
    ],
)
def test_units_are_known_by_their_names(column: str, unit: str, wanted: str, value: float, converted: float) -> None:
    found = to_unit(column, unit, wanted)
    assert found is not None
    assert value * found.factor + found.offset == pytest.approx(converted)


@pytest.mark.parametrize(("column", "unit", "wanted"), [("urea", "mg/dL", "mmol/L"), ("weight", "stones", "kg")])
def test_a_unit_that_means_something_else_or_is_not_known_is_not_guessed(column: str, unit: str, wanted: str) -> None:
    assert to_unit(column, unit, wanted) is None
