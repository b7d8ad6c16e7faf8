"""`seqloom.explain(run, text)` and `run.explain(text)`: look inside one run, or put two of them side by side."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, overload

from seqloom.core.errors import UserError, check_encodable
from seqloom.core.rows import Row
from seqloom.explain.explanation import Explanation, explain_one
from seqloom.explain.sides import SideBySide
from seqloom.runs.predicting import text_row
from seqloom.runs.run import Run, load
from seqloom.tokenizers.options import NoTokenizer

Source = Run | str | Path


@overload
def explain(run: Source, text: str | Row | None = None, **options: Any) -> Explanation: ...


@overload
def explain(run: Sequence[Source], text: str | Row | None = None, **options: Any) -> SideBySide: ...


def explain(
    run: Source | Sequence[Source],
    text: str | Row | None = None,
    *,
    second: str | None = None,
    passage: str | None = None,
    data: str | Path | None = None,
    row: int = 1,
    patch_with: str | Row | None = None,
    **options: Any,
) -> Explanation | SideBySide:
    """Everything that can be seen of a run, or of two side by side, on one input.

    The input: a text (with `second`, or the `passage` of a question), a row as in `run.predict`, or row number `row` of
    a file `data`. Options: `target`, the output to explain instead of the predicted one; `against`, an alternative
    (why this and not that); `views`, some of them by name; `patch_with`, a text whose states are put into this one;
    `layer` and `head` of a walk; `gold`, links of a reference alignment.
    """
    many = not isinstance(run, Run | str | Path)
    runs = [_loaded(run)] if isinstance(run, Run | str | Path) else [_loaded(one) for one in run]
    if many and (len(runs) < 2 or (len(runs) > 2 and options.get("views") != ["gradients"])):
        raise UserError(f"explain puts two runs side by side, or the gradients of several; {len(runs)} were given")
    found = []
    for one in runs:
        asked = find_row(one, text, second, passage, data, row)
        found.append(explain_one(one, asked, patch_with=_other(one, asked, patch_with), **options))
    return SideBySide(found) if many else found[0]


def find_row(
    run: Run,
    text: str | Row | None,
    second: str | None = None,
    passage: str | None = None,
    data: str | Path | None = None,
    row: int = 1,
) -> Row:
    if (text is None) == (data is None):
        raise UserError("give --text TEXT, or --data FILE with --row N: exactly one input to explain")
    if isinstance(text, dict):
        return text
    if text is not None:
        _check_text(run, "--text", text)
        return text_row(run.material, text, second=second, passage=passage)
    if second is not None or passage is not None:
        raise UserError("--second, --passage: belong to --text; a row of --data has its own")
    found = next(islice(run.sources(str(data)), min(row, sys.maxsize) - 1, None), None) if row > 0 else None
    if found is None:
        raise UserError(f"--row {row}: {data} has no such row; they are counted from 1")
    return found


def _other(run: Run, asked: Row, patch_with: str | Row | None) -> Row | None:
    """The row that states are taken from: another text, with the same second text or passage."""
    if patch_with is None or isinstance(patch_with, dict):
        return patch_with
    _check_text(run, "--with", patch_with)
    kept = {"second": asked.get("second"), "passage": asked.get("passage", asked.get("context"))}
    return {"line": 1, "source": patch_with} | {key: value for key, value in kept.items() if value is not None}


def _check_text(run: Run, option: str, text: object) -> None:
    if not isinstance(text, str):
        raise UserError(f"{option}: give one text, or a row as run.predict takes it, not {type(text).__name__}")
    if not text.strip():
        raise UserError(f"{option}: empty; there is nothing to explain")
    check_encodable(option, text)
    if run.material.shape.tokenizer is NoTokenizer:
        way = "give --data FILE with --row N" if option == "--text" else "states can be taken from a text only"
        raise UserError(f"{option}: this {run.task.name} run reads numbers, not text; {way}")


def _loaded(run: Source) -> Run:
    return run if isinstance(run, Run) else load(run)
