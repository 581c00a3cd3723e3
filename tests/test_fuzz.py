"""Two thousand mutants of good messages; `make fuzz` tries a hundred thousand."""

import sys
from pathlib import Path

import pytest
from tools import fuzz

from goldfc.learning.judge import KINDS
from goldfc.message import wire
from goldfc.message.message import Message
from goldfc.message.model import Model


def test_no_mutant_of_a_message_breaks_the_law() -> None:
    tally = fuzz.run(2000, seed=1, fuse_one_in=5)
    assert not [f"{number}: {mutant[1:4]} {what}" for number, mutant, what in tally.violations]
    assert tally.slowest < fuzz.MOST_SECONDS
    assert tally.megabytes < fuzz.MOST_MEGABYTES
    # A fuzzer that is refused at the first hurdle, or taken at once, tries nothing.
    assert tally.count == 2000 == tally.rules.total() + tally.taken.total()
    assert len(tally.rules) > 50
    assert 50 < tally.taken.total() < 500
    assert tally.used["fused"] > 5
    assert tally.used["labelled with"] > 20
    mutations = {name.split(": ")[1] for _, name in tally.kinds}
    assert mutations == {one.__name__ for one in (*fuzz.BYTES, *fuzz.JSON, *fuzz.ARRAYS, fuzz.moved_tensors)}
    assert {way for way, _ in tally.kinds} == {"plain", "sealed", "envelope"}
    assert not [name for way, name in tally.taken if way == "envelope"], "an envelope was changed, and taken"


def test_models_of_every_kind_and_tables_of_every_kind_of_column_are_mutated_and_some_are_taken() -> None:
    scene = fuzz.stages()
    kinds = [stage.messages[Model.KIND].facts["cluster_kind"] for stage in scene]
    assert set(kinds) == set(KINDS)
    columns = {tuple(sorted({column.kind for column in stage.agreement.columns})) for stage in scene}
    assert columns == {("boolean", "category", "number"), ("number",), ("boolean", "category")}
    taken = set()
    for number in range(1500):
        mutant = fuzz.mutant_of(scene, 2, number)
        if mutant.way == "plain" and mutant.kind == Model.KIND:
            model, _ = fuzz.read(mutant)
            if isinstance(model, Model):
                taken.add((model.kind, mutant.mutation.split(": ")[0]))
    assert {kind for kind, _ in taken} == set(KINDS)
    assert {layer for _, layer in taken} >= {"arrays", "facts"}


def test_a_mutant_is_the_same_in_every_run() -> None:
    one, other = fuzz.stages(), fuzz.stages()
    for number in range(100):
        first, second = fuzz.mutant_of(one, 7, number), fuzz.mutant_of(other, 7, number)
        assert first[1:4] == second[1:4]
        if first.way == "plain":
            assert first.content == second.content
        else:  # the one-time key differs, and nothing else
            assert [str(result) for result in fuzz.read(first)] == [str(result) for result in fuzz.read(second)]


def test_a_bug_would_be_found_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    decode = wire.decode

    def with_a_bug(body: bytes, source: str = "the message") -> Message:
        if b"F16" in body:
            raise KeyError("dtype")
        return decode(body, source)

    monkeypatch.setattr(wire, "decode", with_a_bug)
    out = tmp_path / "fuzz" / "README.md"
    monkeypatch.setattr(sys, "argv", ["fuzz", "--count", "300", "--seed", "3", "--out", str(out)])
    assert fuzz.main() == 1
    assert "raises KeyError" in capsys.readouterr().err
    assert "## Violations" in out.read_text(encoding="utf-8")
    kept = [path.read_bytes() for path in out.parent.glob("violation-3-*.bin")]
    assert kept
    assert any(b"F16" in content for content in kept)
