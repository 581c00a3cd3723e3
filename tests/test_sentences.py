"""Every refusal has a code, a code has one meaning, and the table of the tests has the sentence of each once."""

import ast
import copy
import pickle
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import goldfc
from goldfc import errors
from goldfc.cli.shared import HINTS, with_hint
from goldfc.errors import BadMessage, BadSettings, GoldError
from goldfc.message.wire import naming
from sentences import SENTENCES

PACKAGE = Path(goldfc.__file__).parent
# What makes a refusal from a sentence and a code.
MAKERS = {*errors.__all__, "Rule"}


@dataclass(frozen=True)
class Refusal:
    """A place where something is refused."""

    place: str
    kind: str
    sentence: str  # with a question mark for every value
    codes: tuple[str, ...]  # more than one where an error's own code comes first
    passes_on: bool  # whether it keeps the code of another error


def refusals() -> Iterator[Refusal]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
                codes = tuple(
                    part.value
                    for argument in node.args[1:2]
                    for part in ast.walk(argument)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                )
                passes_on = any(not isinstance(argument, ast.Constant) for argument in node.args[1:2])
                yield Refusal(f"{name}:{node.lineno}", node.func.id, sentence_in(node.args[0]), codes, passes_on)


def sentence_in(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "?" for part in node.values)
    return sentence_in(node.body) if isinstance(node, ast.IfExp) else "?"


REFUSALS = list(refusals())


def test_every_refusal_has_a_code() -> None:
    assert not [one.place for one in REFUSALS if not one.codes and not one.passes_on]


def test_the_table_has_every_code_and_no_other() -> None:
    assert {code for one in REFUSALS for code in one.codes} == set(SENTENCES)
    assert set(HINTS) <= set(SENTENCES)


def test_codes_and_sentences_are_each_there_once_and_codes_are_slugs() -> None:
    assert list(SENTENCES) == sorted(SENTENCES)
    assert all(re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", code) for code in SENTENCES)
    told = [sentence for sentence in SENTENCES.values() if sentence != ".+"]
    assert len(set(told)) == len(told)


def test_a_code_has_one_meaning() -> None:
    kinds = defaultdict[str, set[str]](set)
    for one in REFUSALS:
        for code in one.codes:
            kinds[code].add("BadMessage" if one.kind == "Rule" else one.kind)
            assert re.search(SENTENCES[code], one.sentence), one
    assert not {code: kinds[code] for code in kinds if len(kinds[code]) > 1}


def test_sentences_of_the_library_know_no_option_and_no_command() -> None:
    for one in REFUSALS:
        if not one.place.startswith("cli/"):
            assert not re.search(r"(^|\s)--[a-z]|`goldfc", one.sentence), one


def test_the_command_line_adds_which_option_helps() -> None:
    error = BadSettings("Messages are sealed, so the server's private key is needed.", "server-key-missing")
    assert with_hint(error) == f"{str(error)[:-1]}; name it with --key."
    assert with_hint(BadSettings("No.")) == "No."
    assert with_hint(OSError("no")) == "no"


@pytest.mark.parametrize("name", errors.__all__)
def test_a_code_survives_copies_and_processes(name: str) -> None:
    error: GoldError = getattr(errors, name)("It is so.", "so")
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301 (our own)
        assert (type(again), str(again), again.code) == (type(error), "It is so.", "so")


def test_a_code_survives_the_name_of_the_file() -> None:
    with pytest.raises(BadMessage) as caught, naming("a.summary"):
        raise BadMessage("it is cut off", "cut-off")
    assert (str(caught.value), caught.value.code) == ("a.summary: it is cut off.", "cut-off")
