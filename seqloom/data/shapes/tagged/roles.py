"""Which columns of a CoNLL file hold words and tags, and which lists of a JSONL file.

CoNLL   word 1 and the last column, as usual, unless their contents rule that out: numbers that count the words, empty
        (`_`) or constant columns, tags in the place of words. CoNLL-U: FORM and UPOS
JSONL   a list of words (tokens, words, ...) and lists of as many tags; or a text with spans
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from seqloom.core.choice import Choice
from seqloom.core.errors import UserError
from seqloom.data.files import suffix
from seqloom.data.role_names import flag, names_a_text, plain
from seqloom.data.roles import UNSEEN, chosen, look, the_text
from seqloom.data.shapes.tagged.conll import CONLLU, read_cells
from seqloom.data.shapes.tagged.schemes import parse

LINES = 4000  # of a CoNLL file that are looked at
ENOUGH = 100  # words from which counts are meaningful
EMPTY = {"_", "-", ""}
WORDS = {"words", "tokens", "token", "word", "chars", "characters", "词", "字", "词语", "分词"}
TAGS = {"tags", "labels", "nertags", "tag", "label", "ner", "postags", "pos", "标签", "标注"}
SPANS = {"spans", "entities", "entity", "label", "labels", "ner", "annotations", "实体"}

Lines = list[list[str] | None]  # the cells of each line; None between sentences


def tagged_roles(spec: str, given: Mapping[str, object], predict: bool = False) -> list[Choice]:
    """Choices for what was not given; none where the defaults fit. Raises a question if it is unclear.

    `predict`: tags are not needed.
    """
    path = Path(spec)
    if spec.startswith("sample:") or not path.is_file():
        return []
    if suffix(path) in (".jsonl", ".ndjson"):
        if any(given.get(option) is not None for option in ("word", "tag")):
            raise UserError(
                f"{spec}: the lists of a JSONL file have names, not numbers: --columns words=NAME,tags=NAME"
            )
        return _in_lists(spec, given, predict)
    if any(given.get(option) is not None for option in ("words", "tags")):
        raise UserError(f"{spec}: the columns of a CoNLL file have numbers, not names: --columns words=1,tags=-1")
    try:
        lines = [cells for _, cells in islice(read_cells(path), LINES)]
    except UserError:
        return []
    return _in_columns(spec, lines, given, predict)


def lacks_columns(spec: str, names: Mapping[str, object]) -> set[str]:
    """Of a CoNLL file: what has a name, and both numbers if they are the usual ones, which may not fit, or if one is
    not there."""
    try:
        first = next((cells for _, cells in read_cells(Path(spec)) if cells), [])
    except UserError:
        return set()
    numbers = [number for option in ("word", "tag") if isinstance(number := names.get(option), int)]
    there = numbers != [1, -1] and all(1 <= abs(number) <= len(first) for number in numbers)
    return names.keys() - {"word", "tag"} if there else set(names)


class _Cells:
    """One column of a CoNLL file."""

    def __init__(self, number: int, lines: Lines) -> None:
        self.number = number
        self.cells = [cells[number - 1] if cells else None for cells in lines]  # None between sentences
        self.counts = Counter(cell for cell in self.cells if cell is not None)

    @property
    def total(self) -> int:
        return self.counts.total()

    @property
    def counting(self) -> bool:
        """The number of the word in its sentence."""
        before = None
        for cell in self.cells:
            fits = cell is None or cell in ({"0", "1"} if before is None else {str(int(before) + 1)})
            if not fits:
                return False
            before = cell
        return self.total > 1

    @property
    def idle(self) -> bool:
        """Says nothing: the same everywhere, or hardly ever filled."""
        filled = sum(count for cell, count in self.counts.items() if cell not in EMPTY)
        return self.total > 1 and (len(self.counts) < 2 or filled < 0.5 * self.total)

    @property
    def entities(self) -> bool:
        return all(parse(cell)[0] for cell in self.counts) and len(self.counts) > 1

    @property
    def recurs(self) -> bool:
        single = sum(1 for count in self.counts.values() if count == 1)
        return self.total < ENOUGH or single <= UNSEEN * self.total / 2


def _in_columns(spec: str, lines: Lines, given: Mapping[str, object], predict: bool) -> list[Choice]:
    width = len(next((cells for cells in lines if cells), []))
    if width < 2:
        return []
    columns = [_Cells(number, lines) for number in range(1, width + 1)]
    if width == CONLLU and columns[0].counting:
        found = [Choice("data.word", 2, "CoNLL-U: FORM"), Choice("data.tag", 4, "CoNLL-U: UPOS")]
        return [choice for choice in found if given.get(choice.path.removeprefix("data.")) is None]
    found, word, tag = [], given.get("word"), given.get("tag")
    if word is None and _no_words(columns):
        fit = [c for c in columns if not (c.counting or c.idle or c.entities) and c.number != tag]
        found = [Choice("data.word", c.number, "the column with most distinct values") for c in _most_distinct(fit)]
        word = found[0].value if found else None
    return [*found, *(_tag(spec, columns, word or 1, predict) if tag is None else ())]


def _most_distinct(columns: Sequence[_Cells]) -> list[_Cells]:
    return sorted(columns, key=lambda column: -len(column.counts))[:1]


def _tag(spec: str, columns: Sequence[_Cells], word: object, predict: bool) -> list[Choice]:
    """Another tag column than the last, if that one cannot be it."""
    last = columns[-1]
    if not (last.number == word or last.counting or last.idle or not last.recurs):
        return []
    others = [c for c in columns if c.number != word and not (c.counting or c.idle) and c.recurs]
    fit = [column for column in others if column.entities][-1:] or others
    if len(fit) > 1 and predict:
        return []
    if len(fit) > 1:
        shown = ", ".join(f"{column.number} ({len(column.counts):,} values)" for column in fit)
        which = f"say which: {flag('tags', str(fit[-1].number))}"
        raise UserError(f"{spec}: {len(fit)} columns could be the tags: {shown}; {which}")
    return [Choice("data.tag", column.number, f"{len(column.counts):,} values that recur") for column in fit]


def _no_words(columns: Sequence[_Cells]) -> bool:
    """Whether the first column cannot be the words: a number, a constant, or tags of which there are far fewer."""
    first, last = columns[0], columns[-1]
    swapped = first.total >= ENOUGH and 3 * len(first.counts) < len(last.counts) and first.recurs
    return first.counting or first.idle or (first.entities and not last.entities) or swapped


def _in_lists(spec: str, given: Mapping[str, object], predict: bool) -> list[Choice]:
    table = look(spec, given, ("column", "words", "tags", "spans"))
    if table is None or table.has("words", "tags") or (table.has("text", "spans") and not table.has("words")):
        return []
    lists = {column.name: column.cells for column in table.columns if _all(column.cells, list)}
    words = table.given.get("words") or _pick(lists, WORDS, lambda cell: all(isinstance(item, str) for item in cell))
    if words in lists:
        return _tags(spec, table.given, lists, words, predict)
    spans = table.given.get("spans") or _pick(lists, SPANS, lambda cell: all(isinstance(i, list | dict) for i in cell))
    if spans is None and predict and "column" not in table.given and not table.has("text"):
        return chosen(table, {"column": "text"}, {"column": the_text(table, table.free())})
    if spans is None:
        return []  # perhaps sentences to tag: opening it says what is missing
    found = [] if spans == "spans" or "spans" in table.given else [Choice("data.spans", spans, "a list of entities")]
    if "column" in table.given or table.has("text"):
        return found
    texts = [column for column in table.free(spans) if column.values and not (column.number or column.identifier)]
    best = [column for column in texts if names_a_text(column.name)] or texts
    return [*found, Choice("data.column", best[0].name, "the text")] if len(best) == 1 else found


def _tags(
    spec: str, given: Mapping[str, str], lists: Mapping[str, Sequence[Any]], words: str, predict: bool
) -> list[Choice]:
    found = [] if words == "words" or "words" in given else [Choice("data.words", words, "a list of words")]
    if "tags" in given or "tags" in lists:
        return found
    fit = [name for name, cells in lists.items() if name != words and _same_lengths(cells, lists[words])]
    best = fit if len(fit) < 2 else [name for name in fit if plain(name) in ("labels", "标签")] or fit
    if len(best) > 1 and predict:
        return found
    if len(best) > 1:
        which = next((name for name in best if "ner" in name), best[0])
        raise UserError(
            f"{spec}: {len(best)} lists could be the tags: {', '.join(best)}; say which: {flag('tags', which)}"
        )
    return [*found, *(Choice("data.tags", name, "a list with one tag per word") for name in best)]


def _pick(lists: Mapping[str, Sequence[Any]], names: set[str], test: Any) -> str | None:
    fit = [name for name, cells in lists.items() if all(test(cell) for cell in cells if cell is not None)]
    return next((name for name in fit if plain(name) in names), None)


def _all(cells: Sequence[Any], kind: type) -> bool:
    return any(cells) and all(cell is None or isinstance(cell, kind) for cell in cells)


def _same_lengths(one: Sequence[Any], other: Sequence[Any]) -> bool:
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    return all(len(a) == len(b) for a, b in pairs) and all(isinstance(x, str | int) for a, _ in pairs for x in a)
