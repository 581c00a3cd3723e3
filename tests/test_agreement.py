"""The federation file: read in no time, whatever is in it, and nothing in it that looks like something else."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from goldfc.agreement import MOST_BYTES, parse_agreement, read_agreement
from goldfc.errors import BadSettings
from goldfc.message.columns import Column
from goldfc.message.envelope import PrivateKey
from goldfc.site.init import agreement_text
from sentences import refused

HEAD = 'federation = "wards"\n'
COLUMN = '[[columns]]\nname = "age"\n'
MANY = MOST_BYTES // 2
HOSTILE = {
    "200 kB of one key with dots": "a." * 100_000 + "b = 1",
    "as much of it as is allowed": "a." * (MANY - 10) + "b = 1",
    "with blanks around the dots": "a \t. " * (MOST_BYTES // 6) + "b = 1",
    "with quotes around the parts": '"a".' * (MANY // 2 - 10) + "b = 1",
    "behind a text that ends in quotes": 'x = ["""a"""", """"""]\n' + "a." * (MANY - 60) + "b = 1",
    "as a heading": "[" + "a." * (MANY - 10) + "b]",
    "many headings": "".join(f"[a{n}.b.c.d.e.f.g]\n" for n in range(3000)),
    "38 000 sites": HEAD + "sites = [" + ",".join(f'{{name="{n}"}}' for n in range(38_000)) + "]\n" + COLUMN,
    "as many sites as are allowed": HEAD + "sites = [" + ",".join(f'{{name="{n}"}}' for n in range(3900)) + "]\n",
    "columns": HEAD + "columns = [" + ",".join(f'{{name="{n}"}}' for n in range(3900)) + "]\n",
    "columns that are none": HEAD + "columns = [" + ",".join(f"{{nme={n}}}" for n in range(5000)) + "]\n",
    "categories": HEAD + COLUMN + 'kind = "category"\ncategories = [' + ",".join(f'"{n}"' for n in range(9000)) + "]",
    "settings that are none": HEAD + "".join(f"k{n} = 1\n" for n in range(6000)),
    "one long word": "a" * (MOST_BYTES - 1),
    "blanks": "a" + " " * (MOST_BYTES - 1),
    "quotes": '"' * MOST_BYTES,
    "escaped quotes": '\\"' * MANY,
    "three escaped quotes": '\\"""' * (MANY // 2),
    "a text that does not end": 'x = "' + '\\"' * (MANY - 5),
    "nested lists": "x = " + "[" * (MOST_BYTES - 4),
    "nested tables": "x = " + "{a=" * 20_000,
    "a long number": "x = " + "1" * (MOST_BYTES - 4),
    "a long number in hexadecimal digits": "x = 0x" + "f" * (MOST_BYTES - 6),
}
READ = """
import resource, sys, time
from pathlib import Path
from goldfc.errors import BadSettings
from goldfc.agreement import read_agreement
for path in sorted(Path(sys.argv[1]).glob("*.toml")):
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + 100 * 10**6, resource.RLIM_INFINITY))
    begin = time.process_time()
    try:
        read_agreement(path)
        how = "read"
    except BadSettings as error:
        how = f"refused: {error}"
    print(path.stem, f"{time.process_time() - begin:.3f}", how, sep="|")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory are those of Linux")
def test_no_federation_file_takes_a_second_or_a_hundred_megabytes(tmp_path: Path) -> None:
    for name, text in HOSTILE.items():
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    done = subprocess.run(  # noqa: S603 (our own code)
        [sys.executable, "-c", READ, str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    told = {name: (float(seconds), how) for name, seconds, how in (x.split("|") for x in done.stdout.splitlines())}
    assert told.keys() == HOSTILE.keys()
    assert max(seconds for seconds, _ in told.values()) < 1.0, told
    assert [name for name, (_, how) in told.items() if how == "read"] == ["columns"]


def test_a_file_that_is_too_large_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "federation.toml"
    path.write_text(HEAD + "#" * MOST_BYTES + "\n" + COLUMN, encoding="utf-8")
    with refused(BadSettings, "agreement-large", "federation.toml has", str(MOST_BYTES), "leave out comments"):
        read_agreement(path)


def test_dots_in_texts_and_remarks_make_no_key_longer() -> None:
    dots = "a." * 30
    texts = f"title = '{dots}' # {dots}\n" + f'[[columns]]\nname = """{dots}"""\nunit = "{dots}\\"{dots}"\n'
    assert parse_agreement(HEAD + texts, "it").columns[0].name == dots


def test_what_is_no_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "federation.toml")
    with refused(BadSettings, "agreement-missing"):
        read_agreement(tmp_path / "federation.toml")


@pytest.mark.parametrize("count", [10, 1500])
def test_the_first_file_of_a_wide_table_can_be_read(count: int) -> None:
    columns = [Column(name=f"pixel {n}") for n in range(count)]
    assert parse_agreement(agreement_text("wards", columns, None), "it").columns == tuple(columns)


@pytest.mark.parametrize(
    ("one", "other"),
    [("north", "North"), ("ward-1", "ward-l"), ("ward-I", "ward-l"), ("st.anna", "st_anna"), ("bern", "bem")],
)
def test_sites_whose_names_look_alike_are_refused(one: str, other: str) -> None:
    text = HEAD + "".join(f'[[sites]]\nname = "{name}"\n' for name in ("x", one, other)) + COLUMN
    with refused(BadSettings, "alike", f"sites '{one}' and '{other}'"):
        parse_agreement(text, "it")


def test_sites_that_are_there_twice_are_named() -> None:
    with refused(BadSettings, "twice", "site 'x'"):
        parse_agreement(HEAD + '[[sites]]\nname = "x"\n' * 2 + COLUMN, "it")


def test_columns_whose_names_look_alike_are_refused_and_units_are_not() -> None:
    with refused(BadSettings, "alike", "columns 'BMI'"):
        parse_agreement(HEAD + '[[columns]]\nname = "BMI"\n[[columns]]\nname = "\uff22\uff2d\uff29"\n', "it")
    text = HEAD + '[[columns]]\nname = "t (\u00b5s)"\nunit = "kg/m\u00b2"\n[[columns]]\nname = "T"\n'
    assert len(parse_agreement(text, "it").columns) == 2


@pytest.mark.parametrize(
    "sign", ["\u200b", "\u202e", "\u2066", "\u00ad", "\u3164", "\u115f", "\u2800", "\ufe0f", "\u034f", "\U000e0101"]
)
def test_texts_with_signs_that_cannot_be_seen_are_refused(sign: str) -> None:
    for line in (f'title = "a{sign}b"\n' + COLUMN, f'[[columns]]\nname = "a{sign}b"\n', f"federation = 'a{sign}b'\n"):
        text = line if line.startswith("federation") else HEAD + line
        with pytest.raises(BadSettings) as told:
            parse_agreement(text, "it")
        assert told.value.code in {"text-not-printable", "text-invisible", "name-not-plain"}
        assert re.fullmatch("[ -~]+", str(told.value))


def test_a_text_has_one_way_to_be_written() -> None:
    assert parse_agreement(HEAD + '[[columns]]\nname = "taill\u00e9"\n', "it").columns
    with refused(BadSettings, "text-not-normal"):
        parse_agreement(HEAD + '[[columns]]\nname = "taille\u0301"\n', "it")


KEY = f'key = "{PrivateKey.new().public.text}"\n'
LEVELS_OF_MANY = ",".join(f'"{n}"' for n in range(900))
NOT_TOGETHER = {
    "column-not-number": COLUMN + 'kind = "boolean"\nunit = "m"',
    "column-range": COLUMN + "range = [2, 1]",
    "column-step": COLUMN + "step = 0",
    "column-categories": COLUMN + 'kind = "category"\ncategories = ["a"]',
    "column-kind": COLUMN + 'categories = ["a", "b"]',
    "columns-too-wide": "".join(
        f'[[columns]]\nname = "{name}"\nkind = "category"\ncategories = [{LEVELS_OF_MANY}]\n' for name in "abcde"
    ),
    "site-without-key": f'{COLUMN}[server]\n{KEY}[[sites]]\nname = "north"',
    "key-without-sites": f"{COLUMN}[server]\n{KEY}",
    "deadline-without-zone": "deadline = 2027-01-31T18:00:00\n" + COLUMN,
    "id-column-learned": 'id_column = "age"\n' + COLUMN,
    "person-column-learned": 'person_column = "age"\n' + COLUMN,
    "range-missing": 'scaling = "ranges"\n' + COLUMN,
    "private-range-missing": 'privacy = "private"\n' + COLUMN,
    "person-column-missing": f'privacy = "private"\nmost_rows = 2\n{COLUMN}range = [0, 120]',
    "key-of-many-parts": "a." * 20 + "b = 1",
    "settings-invalid": 'privacy = "secret"\n' + COLUMN,
}


@pytest.mark.parametrize(("code", "lines"), NOT_TOGETHER.items(), ids=NOT_TOGETHER)
def test_what_does_not_fit_together_is_refused(code: str, lines: str) -> None:
    with refused(BadSettings, code, "federation.toml"):
        parse_agreement(HEAD + lines, "federation.toml")


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with refused(BadSettings, "agreement-unreadable", "federation.toml"):
        read_agreement(tmp_path / "federation.toml")
    with refused(BadSettings, "not-utf-8"):
        parse_agreement(b'federation = "\xff"', "it")
