"""HTML as text: what a page shows, what it hides, and where it stands in the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from work import grows_in_proportion

from seqloom.retrieve.document import Document
from seqloom.retrieve.reading import read
from seqloom.retrieve.sentences import sentences


def page(tmp_path: Path, content: str | bytes) -> Document:
    path = tmp_path / "a.html"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (found,) = read(path, "a.html")
    return found


WHOLE = """\
<!DOCTYPE html>
<html><head><title>The &amp;
 title</title><style>p { color: red }</style><script>if (a < b) { "text" }</script></head>
<body>
<!-- a comment -->
<h1>Main
  heading</h1>
<p>First   <b>bold</b>, x&nbsp;&lt;&nbsp;y
second line of it.<p>Unclosed
<ul><li>one<li>two<ul><li>inner</ul><li>three</ul>
<table><tr><td>a<td>b<tr><td>c<td>d</table>
<pre>
def f():

    return 1
</pre>
<h2>第二</h2>last<br>line
</body></html>
"""
SHOWN = """\
Main heading

First bold, x\xa0<\xa0y second line of it.

Unclosed

one

two

inner

three

a\tb
c\td

def f():

    return 1

第二

last
line"""


def test_items_of_a_list_are_sentences_of_their_own(tmp_path: Path) -> None:
    text = page(tmp_path, "<ul><li>Showers: 2 euros<li>Electricity: 0.45 euros per kilowatt hour</ul>").text
    found = [text[start:end] for start, end in sentences(text)]
    assert found == ["Showers: 2 euros", "Electricity: 0.45 euros per kilowatt hour"]


def test_blocks_items_cells_and_preformatted_text_keep_their_structure(tmp_path: Path) -> None:
    found = page(tmp_path, WHOLE)
    assert found.text == SHOWN
    assert (found.title, found.unit, found.hidden) == ("The & title", "line", ())


def test_headings_are_found_with_their_level(tmp_path: Path) -> None:
    found = page(tmp_path, WHOLE)
    assert [(heading.level, heading.text) for heading in found.headings] == [(1, "Main heading"), (2, "第二")]
    assert all(found.text.startswith(heading.text, heading.start) for heading in found.headings)


@pytest.mark.parametrize("word", ["Main", "heading", "First", "second", "inner", "a\tb", "return", "第二", "last"])
def test_places_are_lines_of_the_file(tmp_path: Path, word: str) -> None:
    found = page(tmp_path, WHOLE)
    lines = WHOLE.replace("<td>b", "\tb").splitlines()
    expected = next(n for n, line in enumerate(lines, 1) if word in line and n > 3)
    assert found.number(found.text.index(word)) == expected


HIDING = {
    "hidden": "hidden attribute",
    'style="display:none"': "display: none",
    'STYLE="Display : NONE !important"': "display: none",
    "style='visibility: hidden'": "visibility: hidden",
    'style="font-size:0"': "font size 0",
    'style="font-size: 1px"': "tiny type",
    'style="opacity:0"': "opacity 0",
    'style="color:#fff;background-color:white"': "white on white",
    'style="color: rgb(255, 255, 255)"': "white on white",
    'style="color:#123456;background:#123457"': "text in the colour of its background",
    'style="color:transparent"': "transparent",
    'style="position:absolute;left:-9999px"': "off the page",
}


@pytest.mark.parametrize("attribute", HIDING)
def test_text_that_is_not_seen_is_kept_and_reported(tmp_path: Path, attribute: str) -> None:
    found = page(tmp_path, f"<p>seen <span {attribute}>secret <b>words</b></span> seen again</p>")
    assert found.text == "seen secret words seen again"
    assert [(found.text[h.start : h.end], h.reason) for h in found.hidden] == [("secret words", HIDING[attribute])]


SHOWING = [
    '<p style="font-size:10px">text</p>',
    '<p style="opacity:0.5">text</p>',
    '<div style="background:#000"><p style="color:white">text</p></div>',
    '<div style="color:white"><p style="color:black">text</p></div>',
    '<style>body { background: black }</style><p style="color:white">text</p>',
    '<div hidden></div><p>text</p>',
    '<p hidden><p>text</p>',
    '<body bgcolor="navy"><font color="#ffffff">text</font>',
    '<p style="left:-9px">text</p>',
]  # fmt: skip


@pytest.mark.parametrize("content", SHOWING)
def test_text_that_is_seen_is_not_reported(tmp_path: Path, content: str) -> None:
    found = page(tmp_path, content)
    assert (found.text, found.hidden) == ("text", ())


def test_a_page_says_its_own_encoding(tmp_path: Path) -> None:
    content = '<meta http-equiv="Content-Type" content="text/html; charset=gb2312"><p>今天天气很好。'
    assert page(tmp_path, content.encode("gbk")).text == "今天天气很好。"


BROKEN = [
    "<p>a < b",
    "<p>a <",
    "<p>a </",
    "<p>a <b",
    '<p>a <b c="',
    "<p>a <!-- b",
    "<p>a <!",
    "</p></b>a",
    "<p>a &#xZZ; &bogus;",
]


@pytest.mark.parametrize("content", BROKEN)
def test_broken_pages_are_read(tmp_path: Path, content: str) -> None:
    assert page(tmp_path, content).text.startswith("a")


HOSTILE = [
    "<a ", "<!--", "<a b='", "<", "</a ", "<?", "<![CDATA[", "<script>", "<li>", "<p><b>",
    "<div>", "</b><i>", "<h1>", "&a", "<td hidden>", "<a =", "<title>",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_the_work_for_a_broken_page_grows_with_its_length_not_faster(tmp_path: Path, unit: str) -> None:
    assert grows_in_proportion(lambda size: page(tmp_path, "<p>text</p>" + unit * size), 1000)
    assert page(tmp_path, "<p>text</p>" + unit * 50_000).text.startswith("text")
