"""Each message is written once: what crosses, what is read back and what is refused follow from its fields."""

import json
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import pytest
from pydantic import Field

from goldfc._types import FloatArray
from goldfc.errors import BadMessage
from goldfc.learning.proposal import Candidate, Proposal
from goldfc.message import wire
from goldfc.message.columns import Column, Terms, Text
from goldfc.message.message import Message
from goldfc.message.model import Model
from goldfc.message.schema import Content, Fact, Group, array, fact, leaves_of, part_in, schema_of
from goldfc.message.summary import Summary
from sentences import refused

TERMS = Terms(federation="heart", columns=(Column(name="age"), Column(name="weight")))


@dataclass(frozen=True)
class Toy(Summary):
    """A summary that tells something more: one line here, one where it is filled in, one where it is used."""

    colour: str = fact(Text, default="")
    height: FloatArray | None = array(1, default=None)

    KIND = "toy"


def toy(**more: object) -> Toy:
    return replace(Toy("ward-a", np.ones((2, 2)), terms=TERMS), **more)  # type: ignore[arg-type]


def test_a_new_field_of_a_message_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(wire.KNOWN_PARTS, Toy.KIND, wire.known_of(Toy))
    sent = toy(colour="red", height=np.arange(3.0))
    message = wire.decode(wire.encode(sent.to_message()))
    found = Toy.from_message(message)
    assert found.colour == "red"
    np.testing.assert_array_equal(found.height, [0.0, 1.0, 2.0])
    body = wire.encode(Message(message.kind, message.arrays, {**message.facts, "colour": "x" * 300}))
    with refused(BadMessage, "header-invalid colour"):
        wire.decode(body)


def test_what_is_at_its_default_does_not_travel() -> None:
    message = toy().to_message()
    assert set(message.arrays) == {"centroids"}
    assert set(message.facts) == {"site", "terms"}
    assert Toy.from_message(message).height is None


def test_of_a_group_all_parts_are_there_or_none() -> None:
    bare = Message("summary", {"centroids": np.ones((1, 1)), "mean": np.ones(1)}, {"site": "a"})
    with refused(BadMessage, "group-incomplete", "A summary", "count, mean and squares"):
        Summary.from_message(bare)


@pytest.mark.parametrize(("kind", "name"), [("summary", "centroids"), ("summary", "site")])
def test_what_has_no_default_must_be_there(kind: str, name: str) -> None:
    arrays, facts = {"centroids": np.ones((1, 1))}, {"site": "a"}
    left = Message(kind, {n: a for n, a in arrays.items() if n != name}, {n: f for n, f in facts.items() if n != name})
    with refused(BadMessage, "field-missing", repr(name)):
        Summary.from_message(left)


@pytest.mark.parametrize("content", [Summary, Model])
def test_no_two_parts_travel_under_one_name(content: type[Content]) -> None:
    names = [name for name, _, _ in leaves_of(content)]
    assert len(set(names)) == len(names)


def test_a_proposal_survives_the_way_there_and_back_even_as_json() -> None:
    proposal = Proposal((1, 2, 5), (-1.0, 0.5, 0.25), (Candidate(2, "the best fit"), Candidate(5, "a clear gap")))
    group = next(part for name, part, _ in schema_of(Model) if name == "proposal")
    assert isinstance(group, Group)
    facts = {
        part.name or own: part.write(getattr(proposal, own))
        for own, part in group.parts.items()
        if isinstance(part, Fact)
    }
    for told in (facts, json.loads(json.dumps(facts))):
        message = Message("model", facts=told)
        assert group.make(**{own: part_in(message, own, part) for own, part in group.parts.items()}) == proposal


def test_a_value_out_of_range_is_refused_when_it_comes_as_bytes_only() -> None:
    kind = Annotated[int, Field(ge=1)]
    assert part_in(Message("x", facts={"n": 0}), "n", Fact(kind)) == 0
    assert "level" in wire.KNOWN_PARTS[Summary.KIND].header.model_fields
