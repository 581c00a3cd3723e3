"""A site's side: what stays, what leaves, and labels for rows that were or were not summarised."""

import csv
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from goldfc import Model, files, label
from goldfc.agreement import Agreement
from goldfc.errors import AuditRefused, BadMessage, BadSettings
from goldfc.message.density import is_far
from goldfc.message.summary import Summary
from goldfc.message.wire import decode, encode
from goldfc.server.round import fuse_admitted
from goldfc.site.labels import LABEL_COLUMNS, Labels, labels_of, lines_text, write_labels
from goldfc.site.seals import check_unsigned, remember, remembered
from goldfc.site.send import draft_summary, open_model, send
from goldfc.site.table.readers import read_all
from goldfc.site.table.scratch import Scratch
from goldfc.site.table.table import Table, as_table
from sentences import refused
from sites import NAMES, Keys, agreement, rows_of


def write_rows(path: Path, rows: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> Path:
    lines = [f"{age!r},{pressure!r}" for age, pressure in rows.tolist()]
    path.write_text("age,pressure\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def site(folder: Path, number: int = 0) -> Path:
    folder.mkdir(exist_ok=True)
    return write_rows(folder / "data.csv", rows_of(number))


def table_of(data: Path, what: Agreement) -> Table:
    return as_table(read_all(data), what.columns)


def sent_from(data: Path, name: str, what: Agreement) -> Summary:
    out = data.with_name(f"{name}.summary")
    send(draft_summary(table_of(data, what), name, what, data), what, data, out, key=None)
    return what.read_summary(decode(out.read_bytes()))


def model_from(tmp_path: Path, what: Agreement) -> Model:
    summaries = [sent_from(site(tmp_path / name, number), name, what) for number, name in enumerate(NAMES)]
    return fuse_admitted(summaries, what, 3).model


def test_no_byte_of_a_row_or_a_path_is_in_the_message(tmp_path: Path) -> None:
    what, data = agreement(), site(tmp_path / "secret-place")
    sent_from(data, "east", what)
    message = (tmp_path / "secret-place" / "east.summary").read_bytes()
    assert b"secret-place" not in message
    assert b"data.csv" not in message
    for row in rows_of(0):
        assert row.tobytes() not in message


def test_the_audit_names_the_row_of_the_file_though_others_are_left_out(tmp_path: Path) -> None:
    what, rows = agreement(missing="drop"), rows_of(0)
    rows[[3, 8, 40], 0], rows[17, 1] = np.nan, 1e6
    data = write_rows(tmp_path / "data.csv", rows)
    draft = draft_summary(as_table(read_all(data), what.columns, drop=True), "east", what, data)
    assert draft.audit.dominated == (("pressure", 1, 17),)
    assert any("look at row 18" in warning.sentence for warning in draft.audit.warnings)


def test_the_same_data_gives_the_same_bytes(tmp_path: Path) -> None:
    what, messages = agreement(), set()
    for name in ("one", "two"):
        sent_from(site(tmp_path / name), "east", what)
        messages.add((tmp_path / name / "east.summary").read_bytes())
    assert len(messages) == 1


def test_rows_get_the_label_that_the_model_gives_them_wherever_they_stand(tmp_path: Path) -> None:
    what = agreement()
    model, data = model_from(tmp_path, what), tmp_path / "east" / "data.csv"
    first = next(labels_of(table_of(data, what), model))
    cluster, certainty = label(rows_of(0), model)
    np.testing.assert_array_equal(first.cluster, cluster)
    np.testing.assert_array_equal(first.certainty, certainty)
    np.testing.assert_array_equal(first.far, is_far(model, rows_of(0)))
    assert not first.far.any()
    order = np.random.default_rng(0).permutation(120)
    new = np.array([[30.0, 111.0], [119.0, 9000.0]])
    other = write_rows(tmp_path / "east" / "other.csv", np.vstack([rows_of(0)[order], new]))
    labels = next(labels_of(table_of(other, what), model))
    np.testing.assert_array_equal(labels.cluster[:-2], first.cluster[order])
    np.testing.assert_allclose(labels.certainty[:-2], first.certainty[order], rtol=1e-12)
    assert labels.far[-2:].tolist() == [False, True]
    assert np.isfinite(labels.certainty).all()


def test_labels_are_the_same_with_and_without_what_a_site_keeps(tmp_path: Path) -> None:
    what = agreement()
    model, data = model_from(tmp_path, what), tmp_path / "east" / "data.csv"
    with_it = lines_text(next(labels_of(table_of(data, what), model)), "m")
    shutil.rmtree(tmp_path / "east" / ".goldfc")
    assert lines_text(next(labels_of(table_of(data, what), model)), "m") == with_it
    elsewhere = site(tmp_path / "elsewhere", 0)
    assert lines_text(next(labels_of(table_of(elsewhere, what), model)), "m") == with_it


def test_a_row_has_one_label_whoever_holds_it(tmp_path: Path) -> None:
    what = agreement()
    model, data = model_from(tmp_path, what), site(tmp_path / "elsewhere", 1)
    labels = next(labels_of(table_of(data, what), model))
    own = next(labels_of(table_of(tmp_path / "north" / "data.csv", what), model))
    assert lines_text(labels, "m") == lines_text(own, "m")


def test_rows_with_missing_values_get_no_cluster(tmp_path: Path) -> None:
    what = agreement(missing="drop")
    model, data = model_from(tmp_path, what), tmp_path / "east" / "data.csv"
    lines = data.read_text(encoding="utf-8").splitlines()
    lines.insert(3, ",120")
    data.write_text("\n".join(lines), encoding="utf-8")
    labels = next(labels_of(as_table(read_all(data), what.columns, drop=True), model))
    assert np.flatnonzero(labels.cluster == -1).tolist() == np.flatnonzero(np.isnan(labels.certainty)).tolist() == [2]
    assert not labels.far[2]
    assert lines_text(labels, "m").splitlines()[2] == "3,,,,no value in 'age',m"
    np.testing.assert_array_equal(np.delete(labels.cluster, 2), label(rows_of(0), model)[0])


def test_what_stays_is_for_the_owner_alone(tmp_path: Path) -> None:
    sent_from(site(tmp_path / "a"), "east", agreement())
    private = tmp_path / "a" / ".goldfc"
    assert private.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in private.iterdir()} == {0o600}


def test_the_ledger_says_what_left_from_which_data(tmp_path: Path) -> None:
    data = site(tmp_path / "a")
    for number in (3, 4):
        sent_from(data, "east", agreement(round=number))
    lines = (tmp_path / "a" / ".goldfc" / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    facts = [json.loads(line) for line in lines]
    assert [(fact["data"], fact["round"], fact["rows"], fact["site"]) for fact in facts] == [
        ("data.csv", 3, 120, "east"),
        ("data.csv", 4, 120, "east"),
    ]


def test_a_few_people_more_or_less_than_last_time_are_refused(tmp_path: Path) -> None:
    what, data = agreement(), site(tmp_path / "a")
    sent_from(data, "east", what)
    assert draft_summary(table_of(data, what), "east", what, data).audit.change is None
    write_rows(data, rows_of(0)[1:])
    found = draft_summary(table_of(data, what), "east", what, data).audit
    assert any("only 0 people came and 1 went" in failure.sentence for failure in found.failures)
    with refused(AuditRefused, "audit-refused", "wait until 5 have"):
        sent_from(data, "east", what)
    write_rows(data, rows_of(0)[30:])
    found = draft_summary(table_of(data, what), "east", what, data).audit
    assert not found.failures
    write_rows(data, rows_of(5))
    assert draft_summary(table_of(data, what), "east", what, data).audit.change is None


def test_a_failed_audit_writes_nothing_unless_the_risk_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    data = write_rows(tmp_path / "a" / "data.csv", rows_of(0))
    what = agreement()
    draft = draft_summary(table_of(data, what), "east", what, data)
    bad = replace(draft, audit=replace(draft.audit, exact_matches=2))
    out = tmp_path / "a" / "east.summary"
    with refused(AuditRefused, "audit-refused", "east.summary is not written: 2 of "):
        send(bad, what, data, out, key=None)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["data.csv"]
    assert not draft.ledger.folder.exists()
    send(bad, what, data, out, key=None, accept_risk=True)
    assert out.is_file()
    assert '"accepted_risk":true' in (tmp_path / "a" / ".goldfc" / "ledger.jsonl").read_text(encoding="utf-8")


def test_what_stays_are_digests_of_rows_the_message_the_secret_and_the_ledger(tmp_path: Path) -> None:
    data = site(tmp_path / "a")
    summary = sent_from(data, "east", agreement())
    private = tmp_path / "a" / ".goldfc"
    digest = summary.to_message().digest
    names = [".lock", f"{digest}.message", f"{digest}.rows", "federations.json", "ledger.jsonl", "secret"]
    assert sorted(path.name for path in private.iterdir()) == names
    content = next(private.glob("*.rows")).read_bytes()
    for row in rows_of(0):
        assert row.tobytes() not in content


def test_a_damaged_private_file_is_named(tmp_path: Path) -> None:
    what, data = agreement(), site(tmp_path / "a")
    sent_from(data, "east", what)
    (path,) = (tmp_path / "a" / ".goldfc").glob("*.rows")
    for content in (b"nothing", path.read_bytes()[:100]):
        path.write_bytes(content)
        with refused(BadSettings, "digests-damaged", "rows is damaged"):
            draft_summary(table_of(data, what), "west", what, data)


def test_sealing_takes_the_right_key(tmp_path: Path) -> None:
    keys = Keys.new()
    what, data = keys.agreement(), site(tmp_path / "a")
    draft, out = draft_summary(table_of(data, what), "east", what, data), tmp_path / "a" / "east.summary"
    with refused(BadSettings, "site-key-missing", "federation.toml"):
        send(draft, what, data, out, key=None)
    with refused(BadSettings, "site-key-wrong", "'east'", "federation.toml"):
        send(draft, what, data, out, key=keys.sites["west"])
    assert not out.exists()
    assert send(draft, what, data, out, key=keys.sites["east"]).startswith(b"goldfc sealed")


def test_a_model_that_nobody_signed_is_refused_where_there_are_keys(tmp_path: Path) -> None:
    keys, what = Keys.new(), agreement()
    body = encode(model_from(tmp_path, what).to_message())
    assert open_model(body, "global.model", what, "east", None).sites == NAMES
    with refused(BadMessage, "model-unsigned", "global.model", "federation.toml"):
        open_model(body, "global.model", keys.agreement(), "east", keys.sites["east"])
    with refused(BadMessage, "model-of-other-terms", "global.model", "it is of round 3, not of round 2"):
        open_model(body, "global.model", agreement(round=2), "east", None)
    assert open_model(body, "global.model", agreement(round=4), "east", None).terms.round == 3  # an earlier one will do


def test_the_private_folder_is_no_link_and_nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    what, data, elsewhere = agreement(), site(tmp_path / "east"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "east" / ".goldfc").symlink_to(elsewhere)
    with refused(BadSettings, "private-folder-link", ".goldfc"):
        sent_from(data, "east", what)
    with refused(BadSettings, "private-folder-link", ".goldfc"):
        Scratch(data)
    assert list(elsewhere.iterdir()) == []
    assert not (tmp_path / "east" / "east.summary").exists()
    (tmp_path / "east" / ".goldfc").unlink()
    sent_from(data, "east", what)
    monkeypatch.setattr(files, "me", lambda: os.getuid() + 1)
    with refused(BadSettings, "private-folder-foreign", ".goldfc"):
        sent_from(data, "east", what)


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("+1+1", "'+1+1"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("  =1", "'  =1"),
        ("\t=1", "'\t=1"),
        ("\uff1d1", "'\uff1d1"),
        ("-5", "-5"),
        ("+4.5", "+4.5"),
        ("a=b", "a=b"),
        ("row-1", "row-1"),
        ("", ""),
    ],
)
def test_no_id_and_no_header_is_a_formula(cell: str, written: str, tmp_path: Path) -> None:
    labels = Labels((cell,), np.array([0]), np.array([1.0]), np.array([False]), ("",))
    write_labels([labels], tmp_path / "labels.csv", cell, "0a1b")
    with (tmp_path / "labels.csv").open(encoding="utf-8", newline="") as file:
        header, row = csv.reader(file)
    assert header == [written, *LABEL_COLUMNS]
    assert row == [written, "0", "1.000", "no", "", "0a1b"]


def test_labels_are_for_their_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("row,cluster,certainty,far\n", encoding="utf-8")
    (tmp_path / "labels.csv").chmod(0o644)
    labels = Labels(("1",), np.array([0]), np.array([1.0]), np.array([False]), ("",))
    write_labels([labels], tmp_path / "labels.csv", "row", "0a1b")
    assert (tmp_path / "labels.csv").stat().st_mode & 0o777 == 0o600


def test_the_last_message_decides_whether_a_model_must_be_signed(tmp_path: Path) -> None:
    keys, data = Keys.new(), site(tmp_path / "a")
    check_unsigned(data, agreement(), "wards", said=False)
    check_unsigned(data, None, "wards", said=True)
    with refused(BadSettings, "unsigned-of-unknown", "'wards'"):
        check_unsigned(data, None, "wards", said=False)
    remember(data, agreement())
    check_unsigned(data, None, "wards", said=False)
    remember(data, keys.agreement())
    with refused(BadSettings, "keys-gone", "'wards'", "federation.toml"):
        check_unsigned(data, agreement(), "wards", said=False)
    for federation in ("wards", "unnamed", "others"):
        with refused(BadSettings, "unsigned-after-sealed", "federation.toml"):
            check_unsigned(data, None, federation, said=False)
    remember(data, agreement())
    check_unsigned(data, agreement(), "wards", said=False)
    (tmp_path / "a" / ".goldfc" / "federations.json").write_text("[1]", encoding="utf-8")
    with refused(BadSettings, "memory-unreadable", "federations.json"):
        remembered(data)
