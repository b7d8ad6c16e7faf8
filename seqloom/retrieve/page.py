"""An answer as one HTML page: every citation opens its source, which is embedded, at the highlighted place.

Everything that comes from a document, a question or a model is escaped where it enters the page. Characters that cannot
be seen or that change the direction of text are shown by their code; hidden text is marked, with the reason.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise

from seqloom.core.version import VERSION
from seqloom.pages import shell
from seqloom.pages.words import TAGS, Pair, Speaker
from seqloom.retrieve.document import Document, Hidden, Passage, Quotation, Sentence
from seqloom.retrieve.reply import Reply
from seqloom.retrieve.sentences import unwrapped
from seqloom.retrieve.showing import hidden, short

WHOLE = 60_000  # characters of a source that is shown whole; of a longer one, what is around its quotations
AROUND = 8_000  # characters before and after a quotation

WORDS: dict[str, Pair] = {
    "verified": ("quotation, found at its place", "原文引用，已在原处核对"),
    "unverified": ("not verified", "未核实"),
    "failed": ("failed checks: {checks}", "未通过的检查：{checks}"),
    "none failed": ("no check failed, but it is not a quotation", "没有检查未通过，但它不是原文引用"),
    "nearest": ("nearest in the sources: ", "来源中最接近的句子："),
    "refused": ("No answer: {why}", "没有答案：{why}"),
    "why.nothing was found": ("nothing was found", "没有找到任何内容"),
    "why.nothing relevant was found": ("nothing relevant was found", "没有找到相关内容"),
    "why.the question has no words to search for": (
        "the question has no words to search for",
        "问题中没有可供检索的词语",
    ),
    "why.the passages that were found have no answer": (
        "the passages that were found have no answer",
        "找到的段落中没有答案",
    ),
    "best.words": ("words of the question in the best passage: {value}", "最佳段落包含的问题词语比例：{value}"),
    "best.similarity": ("similarity of the best passage: {value}", "最佳段落的相似度：{value}"),
    "unseen": ("hidden in the file: {why}", "在文件中不可见：{why}"),
    "partly unseen": ("partly hidden in the file", "部分内容在文件中不可见"),
    "reason.comment": ("comment", "注释"),
    "reason.zero width": ("zero width", "零宽字符"),
    "reason.white on white": ("white on white", "白底白字"),
    "reason.text in the colour of its background": ("text in the colour of its background", "文字与背景同色"),
    "reason.transparent": ("transparent", "透明"),
    "reason.tiny type": ("tiny type", "字号极小"),
    "reason.font size 0": ("font size 0", "字号为 0"),
    "reason.opacity 0": ("opacity 0", "不透明度为 0"),
    "reason.hidden attribute": ("hidden attribute", "hidden 属性"),
    "reason.off the page": ("off the page", "位于页面之外"),
    "reason.outside of the page": ("outside of the page", "位于页面之外"),
    "reason.text without ink": ("text without ink", "以不可见方式绘制"),
    "reason.hidden text": ("hidden text", "隐藏文字"),
    "bracketed": ("[{why}]", "[{why}]"),
    "changed": ("the file has changed since it was indexed", "文件在建立索引后已被修改"),
    "gone": ("the file is no longer there", "文件已不在原处"),
    "sources": ("Sources", "来源"),
    "passages": ("Passages found", "找到的段落"),
    "passage": ("passage", "段落"),
    "score": ("score", "得分"),
    "left out": ("{count} characters are not shown", "省略 {count} 个字符"),
    "unit.line": ("line {number}", "第 {number} 行"),
    "at.line": (", line {number}", "，第 {number} 行"),
    "unit.page": ("page {number}", "第 {number} 页"),
    "at.page": (", page {number}", "，第 {number} 页"),
    "unit.paragraph": ("paragraph {number}", "第 {number} 段"),
    "at.paragraph": (", paragraph {number}", "，第 {number} 段"),
    "unit.row": ("row {number}", "第 {number} 行"),
    "about": ("answerer: {answerer}; search: {search}", "回答方式：{answerer}；检索：{search}"),
    "check.words": ("words", "词语"),
    "check.numbers": ("numbers", "数字"),
    "check.names": ("names", "名称"),
    "check.negation": ("negation", "否定"),
    "check.quantifiers": ("quantifiers", "数量词"),
    "check.modality": ("modality", "情态"),
    "check.conditions": ("conditions", "条件"),
    "check.direction": ("direction", "方向（升降）"),
    "check.order": ("order", "语序"),
    "check.stitched": ("stitched from several places", "由多处拼接"),
    "check.similarity": ("similarity", "相似度"),
    "check.source": ("source", "来源"),
    "check.length": ("length", "长度"),
    "check.entailment": ("entailment", "蕴含"),
}
_SPEAKERS = {language: Speaker(language, WORDS) for language in ("en", "zh")}
_BAR = """<header class="bar">
<span class="brand">seqloom</span>
<nav class="languages" aria-label="Language / 语言">
<button type="button" data-language="en" lang="en" aria-pressed="true">EN</button>
<button type="button" data-language="zh" lang="zh-CN" aria-pressed="false">中文</button>
</nav>
</header>"""


def page(reply: Reply) -> str:
    quoted = [q for one in reply.sentences for q in (one.quotation, one.nearest) if q is not None]
    cited = list(dict.fromkeys(quoted))
    ids = {quotation: f"q{n}" for n, quotation in enumerate(cited, 1)}
    paths = list(dict.fromkeys(quotation.path for quotation in cited))
    search = f"BM25 + {reply.encoder}" if reply.encoder else "BM25"
    body = [
        _BAR, "<main>", f"<h1>{_text(reply.question)}</h1>",
        f'<p class="muted">{_both("about", answerer=reply.answerer, search=search)}</p>',
        *([_refused(reply)] if reply.refused else []),
        *(_sentence(one, ids, reply) for one in reply.sentences),
        *([f"<h2>{_both('sources')}</h2>"] if paths else []),
        *(_source(reply.documents[path], [q for q in cited if q.path == path], ids) for path in paths),
        _passages(reply.passages), f'<footer class="muted">{_both("made by", version=VERSION)}</footer>', "</main>",
    ]  # fmt: skip
    scripts = [shell.part("answer.js")]
    return shell.page(short(reply.question, 80), "\n".join(body), css=shell.part("answer.css"), scripts=scripts)


def _both(key: str, **values: object) -> str:
    """The text in both languages, of which the style sheet shows one."""
    return "".join(
        f'<span class="{language}" lang="{TAGS[language]}">{escape(say(key, **values))}</span>'
        for language, say in _SPEAKERS.items()
    )


def _term(group: str, names: Sequence[str], key: str, slot: str) -> str:
    """A text with a list of names, in both languages."""
    return "".join(
        f'<span class="{language}" lang="{TAGS[language]}">'
        f"{escape(say(key, **{slot: say('comma').join(say.term(group, name) for name in names)}))}</span>"
        for language, say in _SPEAKERS.items()
    )


def _refused(reply: Reply) -> str:
    best = "".join(f'<p class="muted">{_both(f"best.{name}", value=f"{v:.2f}")}</p>' for name, v in reply.best.items())
    return f'<div class="refused"><p>{_term("why", [reply.refused], "refused", "why")}</p>{best}</div>'


def _sentence(one: Sentence, ids: dict[Quotation, str], reply: Reply) -> str:
    if one.quotation is not None:
        tags = _unseen(one.quotation, reply)
        if since := reply.changed.get(one.quotation.path):
            tags += f'<span class="tag since">{_both(since)}</span>'
        return (
            f'<div class="sentence"><blockquote>“{_text(unwrapped(one.quotation.text))}”</blockquote><p>'
            f'<span class="tag verified">{_both("verified")}</span>{tags}{_link(one.quotation, ids)}</p></div>'
        )
    failed = _term("check", one.failed, "failed", "checks") if one.failed else _both("none failed")
    nearest = ""
    if one.nearest is not None:
        nearest = f"<p>{_both('nearest')}“{_text(short(one.nearest.text, 240))}” "
        nearest += f"{_unseen(one.nearest, reply)}{_link(one.nearest, ids)}</p>"
    return (
        f'<div class="sentence open"><blockquote>{_text(one.text)}</blockquote><p>'
        f'<span class="tag unverified">{_both("unverified")}</span>{failed}</p>{nearest}</div>'
    )


def _unseen(quotation: Quotation, reply: Reply) -> str:
    """A tag that says why a reader of the file does not see it; empty if it is seen."""
    why = hidden(quotation, reply.documents[quotation.path])
    return f'<span class="tag unseen">{_term("reason", why, "unseen", "why")}</span>' if why else ""


def _link(quotation: Quotation, ids: dict[Quotation, str]) -> str:
    return f'<a href="#{ids[quotation]}">{_text(quotation.path)}{_place(quotation.unit, quotation.number)}</a>'


def _place(unit: str, number: int) -> str:
    """After a path; that of a row of a table has its number already."""
    return "" if unit == "row" else _both(f"at.{unit}", number=number)


def _source(document: Document, quotations: Sequence[Quotation], ids: dict[Quotation, str]) -> str:
    wide = "" if document.unit == "line" else " wide"
    shown = "".join(_stretches(document, quotations, ids))
    title = f" <span>{_text(document.title)}</span>" if document.title not in ("", document.path) else ""
    return (
        f"<details><summary>{_text(document.path)}{title}</summary>"
        f'<div class="source{wide}" tabindex="0">{shown}</div></details>'
    )


def _stretches(document: Document, quotations: Sequence[Quotation], ids: dict[Quotation, str]) -> Iterator[str]:
    """The source, or what of a long one is around its quotations."""
    parts, length = [(0, len(document.text))], len(document.text)
    if length > WHOLE:
        parts = []
        for q in sorted(quotations, key=lambda q: q.start):
            start, end = max(0, q.start - AROUND), min(length, q.end + AROUND)
            if parts and start <= parts[-1][1]:
                start, end = parts[-1][0], max(end, parts.pop()[1])
            parts.append((start, end))
    before = 0
    for start, end in parts:
        yield from _left_out(start - before)
        yield _marked(document, start, end, quotations, ids)
        before = end
    yield from _left_out(length - before)


def _left_out(count: int) -> Iterator[str]:
    if count > 0:
        yield f'<span class="left-out">… {_both("left out", count=f"{count:,}")} …</span>'


def _marked(
    document: Document, start: int, end: int, quotations: Sequence[Quotation], ids: dict[Quotation, str]
) -> str:
    """A stretch of the text with places, quotations and hidden text; these may overlap."""
    places = {at: number for at, number in document.marks if _begins(document, at) and start <= at < end}
    edges = {start, end, *places}
    spans = [(q.start, q.end) for q in quotations] + [(one.start, one.end) for one in document.hidden]
    edges |= {min(max(at, start), end) for span in spans for at in span}
    cuts, html, covering = sorted(edges), [], _Covering(document.hidden)
    for begin, stop in pairwise(cuts):
        if begin in places:
            html.append(_number(document.unit, places[begin]))
        text = _text(document.text[begin:stop])
        for part in covering.at(begin):
            said = _term("reason", [part.reason], "bracketed", "why") if begin == max(part.start, start) else ""
            why = f'<span class="reason">{said}</span>' if said else ""
            text = f'{why}<span class="unseen-text" title="{escape(part.reason)}">{text}</span>'
        for one in quotations:
            if one.start <= begin < one.end:
                text = f"<mark{f' id={ids[one]}' if begin == one.start else ''}>{text}</mark>"
        html.append(text)
    return "".join(html)


class _Covering:
    """The hidden stretches that cover a place, for places in ascending order: a hostile file has thousands of them."""

    def __init__(self, hidden: Sequence[Hidden]) -> None:
        self._ahead, self._open = sorted(hidden, reverse=True), list[Hidden]()

    def at(self, place: int) -> list[Hidden]:
        while self._ahead and self._ahead[-1].start <= place:
            self._open.append(self._ahead.pop())
        self._open = [one for one in self._open if place < one.end]
        return self._open


def _begins(document: Document, at: int) -> bool:
    """A place has its number at the side only where it begins a line of the extracted text."""
    return document.unit == "page" or at == 0 or document.text[at - 1] == "\n"


def _number(unit: str, number: int) -> str:
    return f'<span class="place">{number if unit == "line" else _both(f"unit.{unit}", number=number)}</span>'


def _passages(passages: Sequence[Passage]) -> str:
    if not passages:
        return ""
    partly = f' <span class="tag unseen">{_both("partly unseen")}</span>'
    rows = "".join(
        f'<tr><td class="number">{_scores(passage)}</td><td>{_text(passage.chunk.path)}'
        f"{_place(passage.chunk.unit, passage.chunk.number)}{partly if passage.chunk.hidden else ''}<br>"
        f'<span class="muted">{_text(short(passage.chunk.text, 160))}</span></td></tr>'
        for passage in passages
    )
    head = f'<tr><th class="number">{_both("score")}</th><th>{_both("passage")}</th></tr>'
    return f"<h2>{_both('passages')}</h2><table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _scores(passage: Passage) -> str:
    parts = [f"{escape(name)} {value:.2f}" for name, value in passage.scores.items()]
    return "<br>".join(parts) or f"{passage.score:.3f}"


def _text(text: str) -> str:
    """Escaped; what cannot be seen is shown by its code."""
    return "".join(escape(c) if _seen(c) else f'<span class="code">U+{ord(c):04X}</span>' for c in text)


def _seen(character: str) -> bool:
    return character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn")
