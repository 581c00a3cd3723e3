"""Messages are sealed where that was agreed on, and only there."""

import pytest

from goldfc.errors import BadMessage, BadSettings
from goldfc.server.admit import read_body
from goldfc.server.fusions import fusion_named
from sentences import refused
from sites import Keys, agreement, bodies

KEYS = Keys.new()
SEALED, OPEN = KEYS.agreement(), agreement()
BODY = bodies(OPEN, ("north",))["north"]


def test_what_is_sealed_as_agreed_is_opened_and_what_is_open_as_agreed_is_read() -> None:
    assert read_body(KEYS.sealed(BODY, "north", SEALED), SEALED, KEYS.server) == BODY
    assert read_body(BODY, OPEN, None) == BODY


def test_what_is_sealed_or_open_otherwise_than_agreed_is_refused() -> None:
    with refused(BadMessage, "envelope-unexpected"):
        read_body(KEYS.sealed(BODY, "north", SEALED), OPEN, None)
    with refused(BadMessage, "summary-unsigned"):
        read_body(BODY, SEALED, KEYS.server)


@pytest.mark.parametrize("name", ["", "silver"])
def test_a_fusion_that_does_not_exist_is_refused(name: str) -> None:
    with refused(BadSettings, "fusion-unknown", "one-shot"):
        fusion_named(name)
