"""Word documents as text: paragraphs, tables, headings, hidden runs, and files that cannot be read."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import docx
import pytest
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Pt, RGBColor

from seqloom.core.errors import UserError
from seqloom.retrieve.document import Document
from seqloom.retrieve.reading import docx as reader
from seqloom.retrieve.reading import read


def saved(path: Path, whole: Any) -> Document:
    whole.save(path)
    (found,) = read(path, path.name)
    return found


def refused(path: Path) -> str:
    with pytest.raises(UserError) as error:
        list(read(path, path.name))
    assert "\n" not in str(error.value) and str(error.value).startswith(str(path))
    return str(error.value).removeprefix(str(path))


def test_paragraphs_tables_and_headings_come_in_order(tmp_path: Path) -> None:
    whole = docx.Document()
    whole.add_heading("标题", 0)
    whole.add_paragraph("First paragraph.")
    whole.add_paragraph("")
    whole.add_heading("Part", 2)
    table = whole.add_table(2, 2)
    for n, text in enumerate(("a", "b", "c", "d")):
        table.cell(n // 2, n % 2).text = text
    whole.add_paragraph("After.")
    found = saved(tmp_path / "a.docx", whole)
    assert found.text == "标题\n\nFirst paragraph.\n\nPart\n\na\tb\nc\td\n\nAfter."
    assert [(heading.level, heading.text) for heading in found.headings] == [(1, "标题"), (2, "Part")]
    assert all(found.text.startswith(heading.text, heading.start) for heading in found.headings)
    assert (found.title, found.unit) == ("标题", "paragraph")
    assert [found.number(found.text.index(word)) for word in ("标题", "First", "Part", "d", "After")] == [1, 2, 4, 8, 9]


def test_page_breaks_that_word_has_stored_give_pages(tmp_path: Path) -> None:
    whole = docx.Document()
    whole.add_paragraph("First page.")
    paragraph = whole.add_paragraph("Still ")
    run = paragraph.add_run()
    run._r.append(OxmlElement("w:lastRenderedPageBreak"))
    paragraph.add_run("second.")
    found = saved(tmp_path / "a.docx", whole)
    assert found.unit == "page"
    assert [found.number(found.text.index(word)) for word in ("First", "Still", "second")] == [1, 1, 2]


def hide(run: Any, how: str) -> None:
    if how == "hidden text":
        run.font.hidden = True
    elif how == "white on white":
        run.font.color.rgb = RGBColor(255, 255, 255)
    else:
        run.font.size = Pt(1)


@pytest.mark.parametrize("reason", ["hidden text", "white on white", "tiny type"])
def test_runs_that_are_not_seen_are_reported(tmp_path: Path, reason: str) -> None:
    whole = docx.Document()
    paragraph = whole.add_paragraph("seen ")
    hide(paragraph.add_run("sec"), reason)
    hide(paragraph.add_run("ret"), reason)
    paragraph.add_run(" seen")
    found = saved(tmp_path / "a.docx", whole)
    assert found.text == "seen secret seen"
    assert [(found.text[h.start : h.end], h.reason) for h in found.hidden] == [("secret", reason)]


def test_a_style_may_hide(tmp_path: Path) -> None:
    whole = docx.Document()
    style = whole.styles.add_style("Secret", 2)
    style.font.hidden = True
    whole.add_paragraph("seen").add_run(" secret", style="Secret")
    found = saved(tmp_path / "a.docx", whole)
    assert [found.text[h.start : h.end] for h in found.hidden] == [" secret"]


def test_white_text_in_a_dark_cell_is_seen(tmp_path: Path) -> None:
    whole = docx.Document()
    cell = whole.add_table(1, 1).cell(0, 0)
    shading = OxmlElement("w:shd")
    shading.set(qn("w:fill"), "000080")
    cell._tc.get_or_add_tcPr().append(shading)
    hide(cell.paragraphs[0].add_run("white"), "white on white")
    found = saved(tmp_path / "a.docx", whole)
    assert (found.text, found.hidden) == ("white", ())


def test_inserted_text_is_read_and_deleted_text_is_not(tmp_path: Path) -> None:
    whole = docx.Document()
    paragraph = whole.add_paragraph("one ")
    for tag, text in (("w:ins", "two"), ("w:del", "three")):
        change, run = OxmlElement(tag), paragraph.add_run(text)
        paragraph._p.append(change)
        change.append(run._r)
    assert saved(tmp_path / "a.docx", whole).text == "one two"


def test_what_is_no_word_document_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(b"just text" * 100)
    assert refused(path).startswith(": not a Word document, or a damaged one (")
    path.write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600))
    assert refused(path).startswith(": protected by a password, or an older Word document")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.xml", "<a/>")
    assert refused(path).startswith(": a damaged Word document (")


def test_a_damaged_part_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    docx.Document().save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data[:50] if name == "word/document.xml" else data)
    assert refused(path).startswith(": a damaged Word document (")


def test_a_document_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    docx.Document().save(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/bomb.xml", b" " * (reader.LARGEST_XML + 1))
    assert path.stat().st_size < 1 << 20
    assert "unpacks to more than 48 MB of text" in refused(path)


def test_a_document_without_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    docx.Document().save(path)
    assert refused(path) == ": no text in it"


def test_a_footnote_follows_its_paragraph(tmp_path: Path) -> None:
    whole = docx.Document()
    reference = OxmlElement("w:footnoteReference")
    reference.set(qn("w:id"), "2")
    whole.add_paragraph("The lock closes at dusk").add_run()._r.append(reference)
    whole.add_paragraph("The end.")
    notes = (
        f'<w:footnotes xmlns:w="{reader._W[1:-1]}"><w:footnote w:id="2"><w:p><w:r><w:t>Not in May.</w:t></w:r></w:p>'
    )
    name, kind = PackURI("/word/footnotes.xml"), "application/xml"
    part = Part(name, kind, f"{notes}</w:footnote></w:footnotes>".encode(), whole.part.package)
    whole.part.relate_to(part, "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes")
    found = saved(tmp_path / "a.docx", whole)
    assert found.text == "The lock closes at dusk\n\nNot in May.\n\nThe end."
    assert [found.number(found.text.index(word)) for word in ("lock", "May", "end")] == [1, 1, 2]
