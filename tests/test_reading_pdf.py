"""PDF as text: pages, outlines, text that is not seen, and files that cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pypdf
import pytest
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from seqloom.core.errors import UserError
from seqloom.retrieve.document import Document
from seqloom.retrieve.reading import read
from seqloom.retrieve.reading.pdf_text import plain, whole_words


def write(path: Path, *pages: str, change: Callable[[pypdf.PdfWriter], None] = lambda writer: None) -> Path:
    """A PDF with these content streams."""
    writer = pypdf.PdfWriter()
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica", "/Encoding": "/WinAnsiEncoding"}
    fonts = DictionaryObject({NameObject("/F1"): _dictionary(font)})
    for content in pages:
        page = writer.add_blank_page(600, 800)
        stream = DecodedStreamObject()
        stream.set_data(content.encode("latin1"))
        page[NameObject("/Contents")] = writer._add_object(stream)
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    change(writer)
    writer.write(path)
    return path


def _dictionary(values: dict[str, str]) -> DictionaryObject:
    return DictionaryObject({NameObject(key): NameObject(value) for key, value in values.items()})


def shown(*lines: str, before: str = "") -> str:
    """Lines of text, one below the other."""
    drawn = " ".join(f"1 0 0 1 50 {700 - 20 * n} Tm {line}" for n, line in enumerate(lines))
    return f"{before} BT /F1 12 Tf {drawn} ET"


def one(path: Path) -> Document:
    (found,) = read(path, path.name)
    return found


def refused(path: Path) -> str:
    with pytest.raises(UserError) as error:
        list(read(path, path.name))
    assert "\n" not in str(error.value) and str(error.value).startswith(str(path))
    return str(error.value).removeprefix(str(path))


def test_places_are_pages(tmp_path: Path) -> None:
    found = one(write(tmp_path / "a.pdf", shown("(First page.) Tj"), "", shown("(Third) Tj", "(page.) Tj")))
    assert found.text == "First page.\n\nThird\npage."
    assert (found.unit, found.number(0), found.number(found.text.index("page.", 9))) == ("page", 1, 3)
    assert found.notes == ("1 of 3 pages have no text (scanned pages need OCR)",)


def test_a_sentence_may_go_on_over_the_page(tmp_path: Path) -> None:
    found = one(write(tmp_path / "a.pdf", shown("(This goes) Tj"), shown("(on here.) Tj")))
    assert found.text == "This goes\non here."


def test_the_outline_gives_headings_and_the_file_its_title(tmp_path: Path) -> None:
    def change(writer: pypdf.PdfWriter) -> None:
        first = writer.add_outline_item(title="Introduction", page_number=0)
        writer.add_outline_item(title="Details", page_number=1, parent=first)
        writer.add_outline_item(title="Not there", page_number=1)
        writer.add_metadata({"/Title": "The title"})

    pages = shown("(1 Introduction) Tj", "(Some text.) Tj"), shown("(Details) Tj", "(More text.) Tj")
    found = one(write(tmp_path / "a.pdf", *pages, change=change))
    assert [(heading.level, heading.text) for heading in found.headings] == [(1, "Introduction"), (2, "Details")]
    assert all(found.text.startswith(heading.text, heading.start) for heading in found.headings)
    assert found.title == "The title"


def test_a_title_that_says_nothing_is_none(tmp_path: Path) -> None:
    named = write(
        tmp_path / "a.pdf", shown("(Text.) Tj"), change=lambda writer: writer.add_metadata({"/Title": "Untitled"})
    )
    assert one(named).title == "a.pdf"


HIDING = {
    "3 Tr (secret) Tj 0 Tr": "text without ink",
    "1 1 1 rg (secret) Tj 0 0 0 rg": "white on white",
    "1 g (secret) Tj 0 g": "white on white",
    "0 0 0 0 k (secret) Tj 0 g": "white on white",
}


@pytest.mark.parametrize("drawn", HIDING)
def test_text_that_is_not_seen_is_reported(tmp_path: Path, drawn: str) -> None:
    found = one(write(tmp_path / "a.pdf", shown("(seen) Tj", drawn, "(seen again) Tj")))
    assert found.text == "seen\nsecret\nseen again"
    assert [(found.text[h.start : h.end], h.reason) for h in found.hidden] == [("secret", HIDING[drawn])]


def test_tiny_text_and_text_outside_of_the_page_are_reported(tmp_path: Path) -> None:
    content = "BT /F1 12 Tf 1 0 0 1 50 700 Tm (seen) Tj ET BT /F1 0.2 Tf 1 0 0 1 50 600 Tm (tiny) Tj ET"
    found = one(write(tmp_path / "a.pdf", content + " BT /F1 12 Tf 1 0 0 1 50 -500 Tm (away) Tj ET"))
    assert [(found.text[h.start : h.end], h.reason) for h in found.hidden] == [
        ("tiny", "tiny type"),
        ("away", "outside of the page"),
    ]


def test_white_text_on_a_dark_box_is_seen(tmp_path: Path) -> None:
    box = "0 0 0.5 rg 40 650 500 100 re f"
    found = one(write(tmp_path / "a.pdf", shown("1 1 1 rg (white) Tj", before=box)))
    assert (found.text, found.hidden) == ("white", ())


def test_a_pdf_that_needs_a_password_is_refused(tmp_path: Path) -> None:
    def lock(writer: pypdf.PdfWriter) -> None:
        writer.encrypt("secret", algorithm="RC4-128")

    path = write(tmp_path / "a.pdf", shown("(text) Tj"), change=lock)
    assert refused(path) == ": needs a password; save a copy without one"


def test_a_pdf_that_is_only_protected_from_changes_is_read(tmp_path: Path) -> None:
    def lock(writer: pypdf.PdfWriter) -> None:
        writer.encrypt("", "owner", algorithm="RC4-128")

    assert one(write(tmp_path / "a.pdf", shown("(text) Tj"), change=lock)).text == "text"


@pytest.mark.parametrize("keep", [0.02, 0.3, 0.6])
def test_a_damaged_pdf_is_refused_or_read_without_a_traceback(tmp_path: Path, keep: float) -> None:
    path = write(tmp_path / "a.pdf", *[shown(f"(page {n}) Tj") for n in range(5)])
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data))])
    assert refused(path).startswith((": a damaged PDF (", ": no pages in it"))


def test_what_is_no_pdf_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"just some text " * 100)
    assert refused(path).startswith(": a damaged PDF (")


def test_scanned_pages_need_ocr(tmp_path: Path) -> None:
    assert refused(write(tmp_path / "a.pdf", "", "")) == ": no text in it: scanned pages need OCR"


def test_nothing_is_logged_about_irregular_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "a.pdf", shown("(text) Tj"))
    path.write_bytes(path.read_bytes().replace(b"startxref\n", b"startxref\n9"))
    with caplog.at_level(logging.WARNING):
        assert one(path).text == "text"
    assert not caplog.records


def test_a_divided_word_is_put_together_and_a_compound_keeps_its_hyphen() -> None:
    text = (
        "The adminis-\ntration of a well-\nknown power-\nplant ends. A power or a plant.\nState-of-the-\nart co-\nop."
    )
    whole, moved = whole_words(text)
    assert whole.split("\n")[:3] == ["The administration", "of a well-known", "power-plant"]
    assert "State-of-the-art\nco-op." in whole
    for word in ("of a", "ends", "State"):
        assert whole.startswith(word, moved(text.index(word)))


def test_radicals_and_ligatures_become_the_characters_that_are_meant() -> None:
    assert plain("⻅⽤⽔ ⻓⼝ ﬁrst oﬀice \ud800") == "见用水 长口 first office \ufffd"


def test_a_sentence_goes_on_over_a_footer_and_its_page_is_kept(tmp_path: Path) -> None:
    lines = [("(Yearbook) Tj", f"(Part {n} begins here and) Tj", f"(Page {n} of 5) Tj") for n in range(1, 6)]
    pages = [shown(*some) for some in lines]
    found = one(write(tmp_path / "a.pdf", *pages))
    assert found.text.count("Yearbook") == 1 == found.text.count("Page ") and found.text.endswith("Page 5 of 5")
    assert "Part 1 begins here and\nPart 2" in found.text
    assert [found.number(found.text.index(f"Part {n}")) for n in range(1, 6)] == [1, 2, 3, 4, 5]
