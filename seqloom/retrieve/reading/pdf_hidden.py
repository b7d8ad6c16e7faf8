"""Text of a PDF page that is drawn but not seen: without ink, in white on nothing, tiny, or outside of the page.

White text counts as hidden where nothing was painted below the place that it begins at. What is covered by something
painted later, or drawn in another colour of its background, is not found. Pieces of text are those that pypdf gives:
usually a line, hidden as a whole if a part of it is.
"""

from __future__ import annotations

from typing import Any

from seqloom.retrieve.reading.pdf_text import plain

Matrix = list[float]
Box = tuple[float, float, float, float]

_SHOWS, _SHOWS_NEXT = {b"Tj", b"TJ"}, {b"'", b'"'}
_PAINTS = {b"f", b"F", b"f*", b"B", b"B*", b"b", b"b*"}
_ENDS = {b"n", b"S", b"s"}
_BLACK = "black"
_NEAR_WHITE = 0.97
_TINY = 1.0  # points
_BOXES = 2000  # painted shapes that are looked at; with more, a page is a drawing, and white text is left alone


class Watch:
    """Follows the operators of a page and notes the pieces of text that are not seen."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.length = 0
        self.hidden: list[tuple[int, int, str]] = []
        self.without_ink = self.shown = 0  # characters
        self.images = 0
        self._mode, self._colour = 0, _BLACK
        self._stack: list[tuple[int, str]] = []
        self._path: list[tuple[float, float]] = []
        self._painted: list[Box] = []
        self._states: list[tuple[int, bool]] = []  # of the texts since the latest piece: mode, and white on nothing

    def before(self, operator: bytes, operands: list[Any], cm: Matrix, tm: Matrix) -> None:
        if operator in _SHOWS:
            self._note(cm, tm)
        elif operator == b"q":
            self._stack.append((self._mode, self._colour))
        elif operator == b"Q":
            self._mode, self._colour = self._stack.pop() if self._stack else (0, _BLACK)
        elif operator == b"Tr":
            self._mode = int(_numbers(operands)[0]) if _numbers(operands) else 0
        elif operator in (b"g", b"rg", b"k", b"sc", b"scn"):
            self._colour = _named(_numbers(operands))
        elif operator == b"cs":
            self._colour = _BLACK
        elif operator in (b"m", b"l", b"c", b"v", b"y", b"re"):
            self._add(operator, _numbers(operands), cm)
        elif operator in _PAINTS or operator in _ENDS:
            if operator in _PAINTS and self._path and self._colour != "white":
                self._painted.append(_around(self._path))
            self._path = []
        elif operator in (b"sh", b"Do", b"EI", b"INLINE IMAGE"):
            self.images += 1
            self._painted.append(self.box if operator == b"sh" else _around(_corners((0, 0, 1, 1), cm)))

    def after(self, operator: bytes, operands: list[Any], cm: Matrix, tm: Matrix) -> None:
        if operator in _SHOWS_NEXT:  # they end the line before, and with it its piece
            self._note(cm, tm)

    def text(self, text: str, cm: Matrix, tm: Matrix, font: Any, size: float) -> None:
        text = plain(text)
        start, self.length = self.length, self.length + len(text)
        states, self._states = self._states, []
        if not (bare := text.strip()):
            return
        self.shown += len(bare)
        start += len(text) - len(text.lstrip())
        if any(mode == 3 for mode, _ in states):
            self.without_ink += len(bare)
        if reason := self._reason(states, cm, tm, size):
            self.hidden.append((start, start + len(bare), reason))

    def _reason(self, states: list[tuple[int, bool]], cm: Matrix, tm: Matrix, size: float) -> str:
        if any(mode == 3 for mode, _ in states):
            return "text without ink"
        if any(white for _, white in states):
            return "white on white"
        x, y = _point(0, 0, _times(tm, cm))
        height = abs(size) * max(abs(tm[1]), abs(tm[3])) * max(abs(cm[1]), abs(cm[3]))
        if 0 < height < _TINY:
            return "tiny type"
        left, bottom, right, top = self.box
        away = x < left - (right - left) or x > right or y < bottom - 20 or y > top + 20
        return "outside of the page" if away else ""

    def _note(self, cm: Matrix, tm: Matrix) -> None:
        white = self._colour == "white" and len(self._painted) <= _BOXES
        if white:
            x, y = _point(0, 0, _times(tm, cm))
            white = not any(box[0] - 2 <= x <= box[2] + 2 and box[1] - 2 <= y <= box[3] + 2 for box in self._painted)
        self._states.append((self._mode, white))

    def _add(self, operator: bytes, numbers: list[float], cm: Matrix) -> None:
        if operator == b"re" and len(numbers) == 4:
            x, y, width, height = numbers
            self._path += _corners((x, y, x + width, y + height), cm)
        else:
            self._path += [_point(x, y, cm) for x, y in zip(numbers[::2], numbers[1::2], strict=False)]


def _numbers(operands: list[Any]) -> list[float]:
    return [float(each) for each in operands if isinstance(each, int | float)]


def _named(values: list[float]) -> str:
    """`white`, or another colour: of grey, red-green-blue, or inks."""
    if len(values) == 4:
        return "white" if max(values) <= 1 - _NEAR_WHITE else "other"
    return "white" if values and min(values) >= _NEAR_WHITE else "other"


def _times(one: Matrix, other: Matrix) -> Matrix:
    a, b, c, d, e, f = one
    g, h, i, j, k, m = other
    return [a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m]


def _point(x: float, y: float, matrix: Matrix) -> tuple[float, float]:
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f


def _corners(box: Box, matrix: Matrix) -> list[tuple[float, float]]:
    return [_point(x, y, matrix) for x in (box[0], box[2]) for y in (box[1], box[3])]


def _around(points: list[tuple[float, float]]) -> Box:
    across, up = [x for x, _ in points], [y for _, y in points]
    return min(across), min(up), max(across), max(up)
