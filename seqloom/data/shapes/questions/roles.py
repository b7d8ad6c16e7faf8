"""Which columns of a JSONL file hold the passage, the question and the answers, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from seqloom.core.choice import Choice
from seqloom.data.files import suffix
from seqloom.data.role_names import plain
from seqloom.data.roles import look, missing
from seqloom.data.shapes.questions.reading import LINES

NAMES = {
    "context": ("passage", "paragraph", "document", "article", "text", "story", "段落", "文章", "篇章", "上下文"),
    "question": ("query", "q", "问题", "提问"),
    "answers": ("answer", "answertext", "a", "答案", "回答"),
}
SELF_READ = {"answers": "answer"}  # another form that is read without being named


def question_roles(spec: str, given: Mapping[str, object]) -> list[Choice]:
    table = look(spec, given, tuple(NAMES)) if suffix(Path(spec)) in LINES else None
    if table is None:
        return []
    found = []
    for role, names in NAMES.items():
        if role in table.given or table.has(role) or SELF_READ.get(role) in table.names:
            continue
        usual = [column for name in names for column in table.free() if plain(column.name) == name]
        if not usual and role == "answers":
            continue  # questions without answers can still be answered; reading them for training says what is missing
        if not usual:
            raise missing(table, *{"context": ("passage", "a passage"), "question": ("question", "a question")}[role])
        found.append(Choice(f"data.{role}", usual[0].name, "by its name"))
    return found
