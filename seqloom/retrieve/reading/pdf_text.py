"""What a PDF draws as text, as text that can be read and searched: whole words, plain characters, no running heads.

Fonts of PDF files often give the code of a radical where a Chinese character stands (U+2F1D for 口), or of a ligature
where letters stand. Words are divided at the ends of lines. Headers and footers stand between the lines of two pages.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence

_RADICALS = (  # and the characters that look the same (EquivalentUnifiedIdeograph of Unicode)
    "⺁⺄⺊⺌⺎⺒⺓⺗⺜⺝⺟⺠⺧⺩⺫⺬⺶⺻⺼⻁⻄⻅⻆⻉⻋⻏⻑⻓⻔⻗⻘⻙⻚⻛⻜⻝⻢⻣⻤⻥⻦⻧⻨⻩⻪⻫⻬⻭⻮⻯⻰⻱⻲⻳",
    "厂乙卜小兀巳幺心日月母民牛王目示羊聿肉虎西见角贝车邑長长门雨青韦页风飞食马骨鬼鱼鸟卤麦黄黾斉齐歯齿竜龙龜亀龟",
)
_PLAIN: dict[int, int | str] = {
    **str.maketrans(*_RADICALS),
    **{code: unicodedata.normalize("NFKC", chr(code)) for code in range(0x2F00, 0x2FD6)},
    **{code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)},
    **dict.fromkeys((0, *range(0xD800, 0xE000)), "\ufffd"),
}
_DIVIDED = re.compile(r"([^\W\d_]{2,})([-‐\xad])[ \t]?\n([a-zß-öø-ÿ]{2,})(\S*)( ?)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_COMPOUND = re.compile(r"[^\W\d_]+-[^\W\d_]+")
_FIRST_PARTS = {
    "all", "anti", "co", "cross", "eight", "ex", "five", "four", "half", "high", "long", "low", "mid", "multi", "nine",
    "non", "one", "post", "pre", "self", "semi", "seven", "short", "six", "ten", "three", "twenty", "two", "well",
}  # fmt: skip
_LAYERS = 2  # lines of a header or a footer
_FEWEST, _SHARE = 4, 0.4  # pages, and the share of them that repeat a line: books have one for left and one for right
_HEADING = re.compile("(?:chapter|section|part|lesson|unit|slide|appendix|annex|article|table) |第", re.IGNORECASE)

Moved = Callable[[int], int]


def plain(text: str) -> str:
    """Without radicals, ligatures and what is no character."""
    return text if text.isascii() and "\0" not in text else text.translate(_PLAIN)


def running_lines(pages: Sequence[tuple[int, str]]) -> list[tuple[int, int]]:
    """What of each page is left when the lines that pages repeat above and below are taken off, [start, end). `pages`:
    numbers and texts. The first page keeps its header and the last its footer, so nothing is lost."""
    if len(pages) < _FEWEST:
        return [(0, len(text)) for _, text in pages]
    edges = [(_edge(text, first=True), _edge(text, first=False)) for _, text in pages]
    seen: list[Counter[str]] = [Counter(), Counter()]
    for (number, text), both in zip(pages, edges, strict=True):
        for count, lines in zip(seen, both, strict=True):
            count.update({key for start, end in lines for key in _keys(text[start:end], number)})
    found = []
    for at, ((number, text), (above, below)) in enumerate(zip(pages, edges, strict=True)):
        repeated = [
            [any(count[key] >= _SHARE * len(pages) for key in _keys(text[start:end], number)) for start, end in lines]
            for count, lines in zip(seen, (above, below), strict=True)
        ]
        start, end = 0, len(text)
        for (_, after), again in zip(above, repeated[0], strict=True):
            if not again or at == 0:
                break
            start = after
        for (before, _), again in zip(below, repeated[1], strict=True):
            if not again or at == len(pages) - 1:
                break
            end = before
        found.append((start, max(start, end)))
    return found


def _edge(text: str, *, first: bool) -> list[tuple[int, int]]:
    """The outermost lines that are not empty, from the edge inwards."""
    found: list[tuple[int, int]] = []
    at = 0 if first else len(text)
    while len(found) < _LAYERS and (at < len(text) if first else at > 0):
        other = text.find("\n", at) if first else text.rfind("\n", 0, at)
        start, end = (at, other if other >= 0 else len(text)) if first else (other + 1, at)
        if text[start:end].strip():
            found.append((start, end))
        at = end + 1 if first else start - 1
    return found


def _keys(line: str, page: int) -> set[str]:
    """The line, and the line with its first or its last number counted from that of the page."""
    bare = " ".join(line.split())
    if _HEADING.match(bare):
        return {bare}
    numbers = [*re.finditer(r"\d{1,4}", bare)]
    ends = {number.span(): number for number in numbers[:1] + numbers[-1:]}.values()
    return {bare, *(f"{bare[: n.start()]}#{int(n[0]) - page}{bare[n.end() :]}" for n in ends)}


def whole_words(text: str) -> tuple[str, Moved]:
    """Words that were divided at the end of a line, put together on it; and where a place of the text has moved to.

    A hyphen stays if it belongs to the word: both parts, or the word with it, stand elsewhere in the text."""
    divided = list(_DIVIDED.finditer(text))
    if not divided:
        return text, lambda offset: offset
    rest = _DIVIDED.sub(" ", text).casefold()
    words, compounds = set(_WORD.findall(rest)), set(_COMPOUND.findall(rest))
    pieces, at, length = [], 0, 0
    starts, moves = [0], [0]  # from each of these places on, text has moved by so much
    for found in divided:
        first, mark, second, after, space = found.groups()
        joins = mark == "\xad" or not _is_compound(text, found, words, compounds)
        whole = f"{first}{'' if joins else '-'}{second}{after}" + ("\n" if space else "")
        pieces += [text[at : found.start()], whole]
        length += found.start() - at + len(whole)
        at = found.end()
        starts.append(at)
        moves.append(length - at)
    pieces.append(text[at:])
    ends = [found.start() for found in divided]

    def moved(offset: int) -> int:
        """Inside of a divided word, its end."""
        n = bisect_right(starts, offset) - 1
        inside = n < len(ends) and ends[n] < offset
        return starts[n + 1] + moves[n + 1] if inside else offset + moves[n]

    return "".join(pieces), moved


def _is_compound(text: str, found: re.Match[str], words: set[str], compounds: set[str]) -> bool:
    first, _, second, after, _ = (part.casefold() for part in found.groups())
    if first + second in words:
        return False
    if found.start() and text[found.start() - 1] in "-‐/":
        return True
    known = f"{first}-{second}" in compounds or (first in words and second in words)
    return known or first in _FIRST_PARTS or after.startswith("-")
