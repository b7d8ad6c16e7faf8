"""A document as Markdown: the same content, with tables where the page has charts."""

from __future__ import annotations

import re

from seqloom.pages.blocks import (
    Answer,
    Block,
    Cell,
    Chart,
    Code,
    Document,
    Examples,
    Fold,
    Line,
    Picture,
    Points,
    Samples,
    Table,
    Text,
)  # fmt: skip
from seqloom.pages.words import Speaker

_SPECIAL = re.compile(r"[\\`*\[\]<>|~&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def render(content: Document) -> str:
    say = Speaker(content.language)
    facts = " · ".join(f"{name}{say('colon')}{value}" for name, value in content.facts)
    parts = [f"# {_text(content.title)}", _text(content.date), _text(facts)]
    for section in content.sections:
        parts += [f"## {_text(section.title)}", *(_block(block, say, section.title) for block in section.blocks)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _block(block: Block, say: Speaker, section: str = "") -> str:
    match block:
        case Text():
            return _text(block.text)
        case Table():
            return _table(block, say)
        case Chart():
            return _chart(block, say, section)
        case Answer():
            return _answer(block)
        case Picture():
            return _picture(block)
        case Points():
            return _points(block)
        case Fold():
            return "\n\n".join(_block(inside, say) for inside in block.blocks)
        case Examples():
            return "\n\n".join("\n".join(_line(line, say) for line in lines) for lines in block.items)
        case Samples():
            return "\n\n".join(f"**{_text(name)}**\n\n{_fence(prompt + text)}" for _, name, prompt, text in block.items)
        case Code():
            return "\n\n".join(f"{_text(title)}\n\n{_fence(command, block.language)}" for title, command in block.items)


def _line(line: Line, say: Speaker) -> str:
    """As an item of a list: tags after a slash, wrong pieces in bold."""
    pieces = []
    for piece in line.pieces:
        text = _text(f"{piece.text.strip()}/{piece.tag}" if piece.tag else piece.text.strip())
        text = f"**{text}**" if text and piece.mark in ("wrong", "key") else text
        pieces.append(text.join(" " if edge.isspace() else "" for edge in (piece.text[:1], piece.text[-1:])))
    mark = f" ({_text(say.term('mark', line.mark))})" if line.mark else ""
    return f"- {_text(line.name)}{say('colon')}{''.join(pieces).strip()}{mark}"


def _answer(block: Answer) -> str:
    lines = [f"**{_text(block.title)}**" + (f" ({_text(block.remark)})" if block.remark else "")]
    return "\n\n".join([*lines, _text(block.sentence)])


def _picture(block: Picture) -> str:
    image = f"![{_text(block.caption)}]({block.file})"
    return f"[{image}]({block.link})" if block.link else f"{image}\n\n*{_text(block.caption)}*"


def _points(block: Points) -> str:
    head = f"**{_text(block.title)}**\n\n" if block.title else ""
    return head + "\n".join(f"- {_text(item)}" for item in block.items)


def _chart(block: Chart, say: Speaker, section: str) -> str:
    """The tables of the chart; without one, its numbers are in another table."""
    title = [f"### {_text(block.title)}"] if block.tables and block.title != section else []
    return "\n\n".join([*title, *(_table(table, say) for table in block.tables)])


def _table(table: Table, say: Speaker) -> str:
    head = [_text(f"{column.title} ({column.small})" if column.small else column.title) for column in table.columns]
    marks = ["---:" if column.number else "---" for column in table.columns]
    lines = [head, marks]
    for row in table.rows:
        cells = []
        for cell in row.cells:
            cells += [_cell(cell, say), *[""] * (cell.span - 1)]
        lines.append(cells)
    return "\n".join([f"*{_text(table.caption)}*\n", *("| " + " | ".join(line) + " |" for line in lines)])


def _cell(cell: Cell, say: Speaker) -> str:
    address = cell.link if re.fullmatch(r"[\w./-]+", cell.link) else f"<{cell.link}>"
    text = f"[{_text(cell.text)}]({address})" if cell.link else _text(cell.text)
    if cell.mark == "top":
        return f"**{text}**"
    if cell.mark:
        text = f"**{text}**{say('colon')}{_text(say.term('verdict', cell.mark))}"
    text = f"{cell.rank} {text}" if cell.rank else text
    return f"{text} ({_text(cell.small)})" if cell.small else text


def _text(text: str) -> str:
    """On one line, with the special characters of Markdown and HTML escaped."""
    return _SPECIAL.sub(lambda found: "&amp;" if found[0] == "&" else "\\" + found[0], " ".join(text.split()))


def _fence(text: str, language: str = "text") -> str:
    """A code block that no run of backticks in the text can close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
