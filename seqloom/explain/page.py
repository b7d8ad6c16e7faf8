"""The explanation as one HTML page: the numbers as JSON, which the page's own script draws; it makes no request.

The script puts texts of users and models into the page as text, never as HTML.
"""

from __future__ import annotations

from html import escape

from seqloom.core.rows import Json
from seqloom.core.version import VERSION
from seqloom.explain.packing import MOST, packed, rounded
from seqloom.explain.remarks import NAMES, SENTENCES
from seqloom.explain.side import Result, Side
from seqloom.explain.view import View
from seqloom.explain.words import WORDS
from seqloom.pages import shell
from seqloom.pages.words import Speaker

SCRIPTS = (
    "explain.js",
    "explain_maps.js",
    "explain_charts.js",
    "explain_views.js",
    "explain_inside.js",
    "explain_walk.js",
    "explain_page.js",
)
TABLES = frozenset({"predictions", "attention", "memory", "lens", "alignment", "gradients", "walk", "calibration"})
MOST_ROWS = 20_000  # of a table
_BAR = """<header class="bar">
<span class="brand">seqloom</span>
<nav class="languages" aria-label="Language / 语言">
<button type="button" data-language="en" lang="en">EN</button>
<button type="button" data-language="zh" lang="zh-CN">中文</button>
</nav>
</header>"""


def page(shown: Result, language: str = "en") -> str:
    found = document(shown) | {
        "language": language,
        "words": WORDS,
        "sentences": SENTENCES,
        "names": NAMES,
        "version": VERSION,
    }
    title = Speaker(language, WORDS)("title", name=" / ".join(dict.fromkeys(one.name for one in shown.explanations())))
    body = [
        _BAR, '<main id="main">', f"<h1>{escape(title)}</h1>",
        "<noscript><p>This page draws its numbers with JavaScript. 本页使用 JavaScript 绘制数值。</p></noscript>",
        "</main>",
        '<div id="tip" role="tooltip" hidden></div>',
        f'<script type="application/json" id="explained">{shell.embedded(found)}</script>',
    ]  # fmt: skip
    scripts = [shell.part(name) for name in SCRIPTS]
    return shell.page(title, "\n".join(body), css=shell.part("explain.css"), scripts=scripts)


def document(shown: Result) -> Json:
    """What the page shows."""
    extras = {name: _view(value) if isinstance(value, View) else value for name, value in shown.extras().items()}
    return {"runs": [_side(one) for one in shown.explanations()], **extras}


def _side(one: Side) -> Json:
    return one.about() | {"name": one.name, "views": {name: _view(view) for name, view in one.views.items()}}


def _view(view: View) -> Json:
    """Tables only where the drawing needs them: a map's own numbers are enough."""
    cells = sum(values.size for values in view.tensors.values())
    share = max(1, cells // (6 * MOST))  # of the room that one array may take, when a view has many
    tensors = {name: packed(values, MOST // share) for name, values in view.tensors.items()}
    rows = rounded(view.rows[:MOST_ROWS]) if view.name in TABLES else []
    return {"tensors": tensors, "rows": rows, "facts": rounded(view.facts)}
