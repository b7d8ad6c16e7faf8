"""Questions with their answers, as a report shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqloom.core.rows import Json
from seqloom.core.words import shorten
from seqloom.tasks.question_answering.scores import Rules, agreements

QUESTIONS = 5
_AROUND = 100  # characters of the passage on each side of the answer


def showcase(answers: Sequence[str], questions: Sequence[Any], rules: Rules, of: int) -> Json:
    """`questions` have `question`, `context`, `texts` (reference answers) and `spans`, `places` (where they are)."""
    exact, f1 = agreements(answers, questions, rules)
    rows = [
        {
            "question": shorten(one.question),
            "passage": _excerpt(one),
            "gold": [shorten(text) for text in one.texts[:3]],
            "predicted": shorten(answer),
            "exact": bool(right),
            "f1": round(float(agreement), 4),
        }
        for one, answer, right, agreement in zip(questions, answers, exact, f1, strict=True)
    ]
    return {"kind": "answers", "of": of, "rows": rows}


def _excerpt(one: Any) -> list[str]:
    """The passage before the first answer, the answer, and the passage after it; without an answer, its start."""
    if not one.spans:
        return [shorten(one.context, 2 * _AROUND), "", ""]
    first, last = one.spans[0]
    begin, end = int(one.places[first, 0]), int(one.places[last, 1])
    before, after = one.context[max(0, begin - _AROUND) : begin], one.context[end : end + _AROUND]
    before = ("…" if begin > _AROUND else "") + " ".join(before.split("\n"))
    after = " ".join(after.split("\n")) + ("…" if end + _AROUND < len(one.context) else "")
    return [before, one.context[begin:end], after]
