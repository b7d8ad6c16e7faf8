"""Which elements of an HTML page are not seen, by their attributes and inline styles.

Style sheets are not applied: what only they hide is taken as visible. Of a page that has any, the colours of text and
background are known only where an inline style gives both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_NUMBER = re.compile(r"[+-]?\d*\.?\d+")
_RGB = re.compile(r"rgba?\(\s*([\d.]+%?)[\s,]+([\d.]+%?)[\s,]+([\d.]+%?)(?:[\s,/]+([\d.]+%?))?\s*\)")
_NAMES = {
    "white": "ffffff", "black": "000000", "red": "ff0000", "lime": "00ff00", "blue": "0000ff", "yellow": "ffff00",
    "gray": "808080", "grey": "808080", "silver": "c0c0c0", "green": "008000", "navy": "000080", "snow": "fffafa",
    "ivory": "fffff0", "whitesmoke": "f5f5f5", "ghostwhite": "f8f8ff", "floralwhite": "fffaf0",
}  # fmt: skip
_NEAR = 12  # of 255, in each of red, green and blue: colours that cannot be told apart
_ABSOLUTE = ("px", "pt")
_OFF = ("left", "right", "top", "bottom", "text-indent", "margin-left", "margin-top")


@dataclass(frozen=True)
class Look:
    """How text inside an element looks; `None`: not known."""

    reason: str = ""  # why it is not seen, whatever is inside
    colour: str | None = None
    background: str | None = None

    def hidden(self, styled: bool) -> str:
        """Why text here is not seen; empty if it is. `styled`: there is a style sheet, so that the usual black on
        white is not known."""
        if self.reason:
            return self.reason
        if self.colour == "transparent":
            return "transparent"
        colour = self.colour or (None if styled else "000000")
        background = self.background or (None if styled else "ffffff")
        if colour is None or background is None or not _alike(colour, background):
            return ""
        return "white on white" if _alike(colour, "ffffff") else "text in the colour of its background"


def inside(look: Look, name: str, attributes: dict[str, str]) -> Look:
    """How text looks inside an element that stands in text of this look."""
    if not attributes:
        return look
    styles = _styles(attributes.get("style", ""))
    colour = _colour(styles.get("color", "")) or (_colour(attributes.get("color", "")) if name == "font" else None)
    given = f"{styles.get('background-color', '')} {styles.get('background', '')} {attributes.get('bgcolor', '')}"
    background = next(filter(None, map(_colour, [given] if "(" in given else given.split())), None)
    background = None if background == "transparent" else background
    reason = look.reason or _reason(attributes, styles)
    if (reason, colour, background) == (look.reason, None, None):
        return look
    return replace(look, reason=reason, colour=colour or look.colour, background=background or look.background)


def _reason(attributes: dict[str, str], styles: dict[str, str]) -> str:
    if "hidden" in attributes and attributes["hidden"].lower() != "until-found":
        return "hidden attribute"
    if styles.get("display") == "none":
        return "display: none"
    if styles.get("visibility") in ("hidden", "collapse"):
        return "visibility: hidden"
    size, opacity = styles.get("font-size", ""), styles.get("opacity", "")
    if (number := _NUMBER.match(size)) and (float(number[0]) == 0 or (float(number[0]) < 2 and size[-2:] in _ABSOLUTE)):
        return "font size 0" if float(number[0]) == 0 else "tiny type"
    if (number := _NUMBER.match(opacity)) and float(number[0]) <= (5 if opacity.endswith("%") else 0.05):
        return "opacity 0"
    if any((number := _NUMBER.match(styles.get(key, ""))) and float(number[0]) <= -999 for key in _OFF):
        return "off the page"
    return ""


def _styles(text: str) -> dict[str, str]:
    found = {}
    for part in text.split(";"):
        key, colon, value = part.partition(":")
        if colon:
            found[key.strip().lower()] = value.replace("!important", "").strip().lower()
    return found


def _colour(text: str) -> str | None:
    """Six hexadecimal digits, or `transparent`; None: not a colour that is known here."""
    text = text.strip().lower()
    if text == "transparent":
        return text
    if text in _NAMES:
        return _NAMES[text]
    if re.fullmatch(r"#[0-9a-f]{3,4}", text):
        return "".join(2 * digit for digit in text[1:4]) if text[4:] != "0" else "transparent"
    if re.fullmatch(r"#[0-9a-f]{6}([0-9a-f]{2})?", text):
        return text[1:7] if text[7:] != "00" else "transparent"
    if not (found := _RGB.search(text)):
        return None
    if found[4] and float(found[4].rstrip("%")) == 0:
        return "transparent"
    parts = (float(part.rstrip("%")) * (2.55 if part.endswith("%") else 1) for part in found.groups()[:3])
    return "".join(f"{min(255, round(part)):02x}" for part in parts)


def _alike(one: str, other: str) -> bool:
    return all(abs(int(one[n : n + 2], 16) - int(other[n : n + 2], 16)) <= _NEAR for n in (0, 2, 4))
