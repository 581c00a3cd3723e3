"""What a privacy level promises, and which message will do where a level was agreed on."""

import pytest
from pydantic import ValidationError

from goldfc.message.levels import LEVELS, PLAIN, Level, Private, Suppressed, a_level, level_of

AGREED = Private(eps=1.0, delta=1e-5, most_rows=2)


@pytest.mark.parametrize(
    ("agreed", "told"),
    [
        (PLAIN, Suppressed()),
        (Suppressed(), Suppressed(smallest=9)),
        (Suppressed(), AGREED),
        (AGREED, AGREED),
        (AGREED, Private(eps=0.5, delta=1e-6, most_rows=3)),
    ],
)
def test_what_is_as_strict_as_agreed_will_do(agreed: Level, told: Level) -> None:
    assert agreed.missing_in(told) is None


@pytest.mark.parametrize(
    ("agreed", "told", "missing"),
    [
        (Suppressed(), PLAIN, "its level is 'plain', not 'suppressed'"),
        (Suppressed(), Suppressed(smallest=3), "micro-clusters from 3 rows on, not from 5"),
        (AGREED, Suppressed(), "its level is 'suppressed', not 'private'"),
        (AGREED, Private(eps=2.0, most_rows=2), "(2, 1e-05) for any person with up to 2 rows"),
        (AGREED, Private(delta=1e-4, most_rows=2), "(1, 0.0001) for any person with up to 2 rows"),
        (AGREED, Private(), "(1, 1e-05) for any row"),
    ],
)
def test_a_weaker_level_than_agreed_is_named(agreed: Level, told: Level, missing: str) -> None:
    assert agreed.missing_in(told) == missing


@pytest.mark.parametrize("name", LEVELS)
def test_a_level_says_its_name_and_what_it_promises(name: str) -> None:
    assert LEVELS[name]().promise.startswith(f"{name}: ")


@pytest.mark.parametrize("level", [PLAIN, Suppressed(smallest=7), AGREED], ids=lambda level: level.name)
def test_a_level_travels(level: Level) -> None:
    assert level_of(a_level(level.to_fact())) == level


def test_a_level_that_does_not_exist_or_hides_a_setting_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no privacy level 'secret', but plain, private, suppressed"):
        level_of({"name": "secret"})
    with pytest.raises(ValueError, match="with all its settings"):
        a_level({"name": "suppressed"})
    with pytest.raises(ValidationError):
        level_of({"name": "private", "eps": 1e9})
