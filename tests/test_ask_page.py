"""The page of an answer: escaped, self-contained, in two languages, with every citation at its highlighted place."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

from shelf import BOAT, CHINESE, TERMS, Shelf, text

from seqloom.retrieve import page as pages
from seqloom.retrieve.answerers.written import Written
from seqloom.retrieve.answering import Asking, ask
from seqloom.retrieve.checking import check
from seqloom.retrieve.checking.checks import CHECKS
from seqloom.retrieve.document import Document, Hidden

EVIL = '<script>alert(1)</script><img src=x onerror="alert(2)"> tin melts & "boils" </details>'


class Elements(HTMLParser):
    """All elements with their attributes, and the text inside of each `mark` with an id."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.marked: dict[str, str] = {}
        self.inside: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "mark":
            self.inside = dict(attrs).get("id") or self.inside

    def handle_endtag(self, tag: str) -> None:
        if tag == "details":
            self.inside = None

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.marked[self.inside] = self.marked.get(self.inside, "") + data


def test_a_citation_leads_to_its_quotation_in_the_embedded_source() -> None:
    reply = ask(Shelf(TERMS, BOAT), "How long does the guarantee last?")
    quotation = reply.sentences[0].quotation
    assert quotation is not None
    page = Elements(reply.page())
    link = next(attrs["href"] for tag, attrs in page.found if tag == "a")
    assert link and page.marked[link.removeprefix("#")].startswith(quotation.text)


def test_nothing_in_a_document_becomes_an_element() -> None:
    shelf = Shelf(text("a<b>.txt", EVIL, hidden=(Hidden(0, 25, '"><i>white'),)))
    reply = Asking(shelf, answerer=Written("<b>", lambda *_: f"{EVIL} It boils <u>")).ask("tin melts <u>boils</u>")
    page = Elements(reply.page())
    scripts = [attrs for tag, attrs in page.found if tag == "script"]
    assert len(scripts) == 1 and not {"img", "b", "i", "u"} & {tag for tag, _ in page.found}
    assert not [name for _, attrs in page.found for name in attrs if name.startswith("on")]
    assert [tag for tag, _ in page.found].count("details") == len({one.nearest for one in reply.sentences} - {None})


def test_the_page_asks_for_nothing_and_runs_its_own_script_only() -> None:
    html = ask(Shelf(TERMS), "How long does the guarantee last?").page()
    assert re.search(r"default-src 'none'; script-src 'sha256-[^']+';", html)
    assert "http://" not in html and "https://" not in html


def test_hidden_text_and_invisible_characters_are_shown_as_such() -> None:
    content = "Tin melts\u200b at 232 degrees. Tin is \u202eplentiful."
    reply = ask(Shelf(text("a.txt", content, hidden=(Hidden(9, 10, "zero width"),))), "tin melts")
    html = reply.page()
    assert '<span class="code">U+200B</span>' in html and '<span class="code">U+202E</span>' in html
    assert "[zero width]" in html and "[零宽字符]" in html and "\u200b" not in html
    assert "hidden in the file: zero width" in html and "在文件中不可见：零宽字符" in html


def test_hidden_text_is_marked_where_it_is_only_near_or_only_found() -> None:
    shelf = Shelf(text("a.txt", "Tin melts at 232 degrees.", hidden=(Hidden(0, 25, "comment"),)))
    near = Asking(shelf, answerer=Written("toy", lambda *_: "Tin melts at 500 degrees.")).ask("tin melts degrees")
    assert near.sentences == ()  # a model is not given hidden text
    reply = replace(near, refused="", sentences=(check("Tin melts at 500 degrees.", [shelf.document("a.txt")]),))
    assert "(a.txt, line 1) (hidden in the file: comment)" in str(reply)
    assert reply.page().count("hidden in the file: comment") == 1
    refused = ask(shelf, "Which orchestra rehearsed Parsifal before it melts?")
    assert "a.txt, line 1 (partly hidden in the file): Tin melts" in str(refused)
    assert "partly hidden in the file" in refused.page() and "部分内容在文件中不可见" in refused.page()


def test_thousands_of_hidden_places_are_each_shown_once() -> None:
    content = "a\u200b" * 20_000
    hidden = tuple(Hidden(n, n + 1, "zero width") for n in range(1, len(content), 2))
    html = ask(Shelf(text("a.txt", f"{content} tin melts", hidden=hidden)), "tin melts").page()
    assert html.count("[zero width]") == len(hidden)


def test_every_text_of_the_page_is_in_both_languages() -> None:
    html = ask(Shelf(TERMS, CHINESE), "保修期多久？").page()
    assert html.count('class="en"') == html.count('class="zh"') > 5
    assert "保修期为三年。" in html and "原文引用" in html


def test_every_check_has_a_name_in_chinese() -> None:
    others = {"similarity", "source", "length", "entailment"}
    assert {f"check.{name}" for name in {*CHECKS, *others}} == {key for key in pages.WORDS if key.startswith("check.")}


def test_a_refusal_has_a_page_with_the_passages_that_were_found() -> None:
    html = ask(Shelf(TERMS), "Which days does the orchestra of the opera rehearse Parsifal?").page()
    assert "nothing relevant was found" in html and "没有找到相关内容" in html and "shop/terms.txt" in html


def test_of_a_long_source_what_is_around_the_quotation_is_shown() -> None:
    filler = "Rain fell on the hills. " * 8000
    document = text("long.txt", f"{filler}\n\nThe guarantee lasts three years.\n\n{filler}")
    reply = ask(Shelf(document), "guarantee years lasts")
    html = reply.page()
    assert "The guarantee lasts three years." in html and html.count("characters are not shown") == 2
    assert len(html) < 4 * (2 * pages.AROUND + 40_000)


def test_pages_of_a_document_are_told_apart() -> None:
    document = Document("a.pdf", "Iron rusts.\nTin melts at 232 degrees.", "a", "page", ((0, 1), (12, 2)))
    html = ask(Shelf(document), "tin melts degrees").page()
    assert ">page 2</span>" in html and "第 2 页" in html
