"""Chunks of documents: exact, complete, in order, and along the structure."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.core.errors import UserError
from seqloom.retrieve.chunking import SIZE, chunks, tokens
from seqloom.retrieve.document import Chunk, Document, Heading, Hidden
from seqloom.retrieve.reading.text import line_marks
from seqloom.retrieve.sentences import sentences

SENTENCE = "The quick brown fox jumps over the lazy dog near the river bank. "
CHINESE = "这是一个用来测试分块的普通句子，长度适中而已。"


def document(text: str, headings: tuple[Heading, ...] = (), hidden: tuple[Hidden, ...] = ()) -> Document:
    return Document("a.txt", text, "a", "line", line_marks(text), headings, hidden)


def headed(*parts: tuple[str, int, str]) -> Document:
    """Sections of a heading, its level and a text."""
    text, headings = "", []
    for title, level, body in parts:
        headings.append(Heading(len(text), level, title))
        text += f"{title}\n\n{body}\n\n"
    return document(text, tuple(headings))


def check(whole: Document, found: list[Chunk]) -> None:
    at = 0
    for chunk in found:
        assert chunk.text == whole.text[chunk.start : chunk.end] == chunk.text.strip() != ""
        assert chunk.number == whole.number(chunk.start)
        assert not whole.text[at : chunk.start].strip()
        at = chunk.end
    assert not whole.text[at:].strip()


def test_english_chunks_are_about_a_thousand_characters() -> None:
    whole = document(SENTENCE * 200)
    found = chunks(whole)
    check(whole, found)
    assert all(800 <= len(chunk.text) <= 1000 for chunk in found)


def test_chinese_chunks_are_about_four_hundred_characters() -> None:
    whole = document(CHINESE * 200)
    found = chunks(whole)
    check(whole, found)
    assert all(300 <= len(chunk.text) <= 400 for chunk in found)


@pytest.mark.parametrize("text", [SENTENCE * 100, CHINESE * 100, f"{SENTENCE * 12}\n\n{CHINESE * 30}\n\n" * 5])
def test_no_sentence_is_cut(text: str) -> None:
    borders = {chunk.start for chunk in chunks(document(text))}
    assert borders <= {start for start, _ in sentences(text)}


def test_a_sentence_that_is_too_long_is_cut_at_a_space_or_a_comma() -> None:
    for text in ("word " * 1000, "很长的句子，" * 300):
        found = chunks(document(text))
        check(document(text), found)
        assert all(tokens(chunk.text) <= SIZE for chunk in found)
        assert all(chunk.text.endswith(("word", "，")) for chunk in found)


def test_small_paragraphs_of_a_section_are_joined_and_sections_are_not() -> None:
    whole = headed(("One", 1, "First.\n\nSecond.\n\nThird."), ("Two", 1, "Fourth."))
    assert [chunk.text for chunk in chunks(whole)] == ["One\n\nFirst.\n\nSecond.\n\nThird.", "Two\n\nFourth."]


def test_paragraphs_stay_whole_where_they_fit() -> None:
    paragraph = (SENTENCE * 9).strip()
    whole = document("\n\n".join([paragraph] * 4))
    assert [chunk.text for chunk in chunks(whole)] == [paragraph] * 4


def test_a_chunk_knows_the_headings_that_it_stands_under() -> None:
    whole = headed(("Top", 1, ""), ("Part", 2, SENTENCE * 40), ("Detail", 3, "Small."), ("Next", 2, "Last."))
    found = chunks(whole)
    assert found[0].text.startswith("Top\n\n\n\nPart")
    assert {chunk.headings for chunk in found[:-2]} == {("Top", "Part")}
    assert [chunk.headings for chunk in found[-2:]] == [("Top", "Part", "Detail"), ("Top", "Next")]


def test_a_heading_stands_with_what_follows_it() -> None:
    title = "A heading of more than thirty characters"
    found = chunks(headed((title, 1, (SENTENCE * 15).strip())))
    assert len(found) == 2 and found[0].text.startswith(f"{title}\n\nThe quick")


def test_hidden_text_is_known_of_its_chunk() -> None:
    text = f"{SENTENCE * 14}\n\n{SENTENCE * 14}\n\n{SENTENCE * 14}"
    second = text.index("\n\n") + 2
    spans = (Hidden(second, second + 500, "white on white"), Hidden(second + 5, second + 6, "zero width"))
    assert [chunk.hidden for chunk in chunks(document(text, hidden=spans))] == [False, True, False]


def test_an_overlap_repeats_the_last_sentence() -> None:
    whole = document("".join(f"This is sentence number {n} of a long text about nothing. " for n in range(60)))
    plain, found = chunks(whole), chunks(whole, overlap=1)
    assert [chunk.end for chunk in plain] == [chunk.end for chunk in found]
    for before, after in pairwise(found):
        last = before.text[sentences(before.text)[-1][0] :]
        assert after.text.startswith(last) and after.text == whole.text[after.start : after.end]


def test_a_size_that_is_too_small_is_refused() -> None:
    with pytest.raises(UserError, match="16 or more"):
        chunks(document("text"), size=3)


PIECES = [
    "word ",
    "Dr. ",
    "end. ",
    "\n",
    "\n\n",
    "。",
    "中文字符",
    "，",
    "“引用。”",
    "x" * 90,
    "- item",
    "  ",
    "# h\n",
    "！",
    "\t",
    "é",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=120), st.integers(16, 60), st.data())
def test_chunks_are_exact_complete_and_in_order(pieces: list[str], size: int, data: st.DataObject) -> None:
    text = "".join(pieces)
    starts = sorted(data.draw(st.sets(st.integers(0, max(0, len(text) - 1)), max_size=5)))
    headings = tuple(Heading(at, 1 + n % 3, text[at : at + 4]) for n, at in enumerate(starts))
    whole = document(text, headings)
    found = chunks(whole, size=size)
    check(whole, found)
    assert found == chunks(whole, size=size)
    assert all(tokens(chunk.text) <= size for chunk in found)
    assert {chunk.end for chunk in found} == {chunk.end for chunk in chunks(whole, size=size, overlap=1)}
