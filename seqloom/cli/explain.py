"""`seqloom explain`: look inside a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from seqloom.cli._files import check_out, parse_file
from seqloom.cli._options import JsonOutput
from seqloom.cli._run import load_run
from seqloom.core.errors import UserError
from seqloom.core.json_text import to_json
from seqloom.core.rows import Json
from seqloom.core.waiting import during

if TYPE_CHECKING:
    from seqloom.explain.showing import Shown
    from seqloom.runs.run import Run

Runs = Annotated[
    list[Path],
    typer.Argument(metavar="RUN [RUN]", help="Run folder; two are shown side by side, with their difference."),
]
OneText = Annotated[str | None, typer.Option(help="Text to explain the model on; in question answering, the question.")]
Second = Annotated[str | None, typer.Option(help="Second text, where the model reads two.")]
Passage = Annotated[str | None, typer.Option(help="Question answering: passage for the question in --text.")]
DataPath = Annotated[str | None, typer.Option(help="File or sample:NAME with the input, instead of --text.")]
RowNumber = Annotated[
    int | None, typer.Option(min=1, help="Which row of --data to explain, from 1; default: the first.")
]
Worst = Annotated[int | None, typer.Option(min=1, help="Explain the N rows of --data with the highest loss.")]
Target = Annotated[
    str | None,
    typer.Option(help="Output to explain, such as a label or a translation; default: what the model predicts."),
]
Against = Annotated[str | None, typer.Option(help="Alternative to compare with: why the output, and not this?")]
With = Annotated[str | None, typer.Option("--with", help="Patching: text whose states are put into that of --text.")]
Views = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...", help="Only these of predictions, influence, attention, memory, lens, alignment, patching."
    ),
]
Layer = Annotated[int | None, typer.Option(min=1, help="Layer to walk through, counted from 1; default: the first.")]
Head = Annotated[int | None, typer.Option(min=1, help="Head to walk through, counted from 1; default: the first.")]
Gradients = Annotated[bool, typer.Option("--gradients", help="Only the gradient microscope; takes several runs.")]
Walk = Annotated[bool, typer.Option("--walk", help="Only attention, number by number.")]
Links = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File with the reference alignment, one line like `0-0 1-2`; needs --target.",
    ),
]
Out = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        "--data-out",
        metavar="FILE",
        parser=parse_file,
        help="File for the page (.html), the figure (.svg) or the data (.json, .npz).",
    ),
]
Language = Annotated[Literal["en", "zh"], typer.Option(help="Language in which the page opens; it has both.")]


def command(
    runs: Runs,
    text: OneText = None,
    second: Second = None,
    passage: Passage = None,
    data: DataPath = None,
    row: RowNumber = None,
    worst: Worst = None,
    target: Target = None,
    against: Against = None,
    patch_with: With = None,
    views: Views = None,
    layer: Layer = None,
    head: Head = None,
    gradients: Gradients = False,
    walk: Walk = False,
    gold: Links = None,
    out: Out = None,
    language: Language = "en",
    as_json: JsonOutput = False,
) -> None:
    """Look inside a model of any kind: what it predicts, which inputs influence that, attention, memory, layers."""
    _check_input(text, data, row, worst)
    for path in out or ():
        check_out(path, data)
    from seqloom.explain.suffixes import check_suffix

    for path in out or ():
        check_suffix(path)
    options: Json = {
        "target": target, "against": against, "patch_with": patch_with, "layer": layer, "head": head,
        "views": _named(views, gradients, walk),
    }  # fmt: skip
    loaded = [load_run(run) for run in runs]
    given: Json = {name: value for name, value in options.items() if value is not None}
    with during("computing the explanation"):
        if worst is not None:
            found = _worst(loaded, str(data), worst, {**given, "second": second, "passage": passage, "gold": gold})
        else:
            where = {"second": second, "passage": passage, "data": data, "row": row or 1}
            found = _explained(loaded, text, gold, {**where, **given})
    for path in out or ():
        found.save(path, language)
    if as_json:
        print(to_json(found.facts()).decode())
        return
    print("\n".join([*found.told(), *(f"written: {path}" for path in out or ())]))


def _explained(runs: Sequence[Run], text: str | None, gold: Path | None, options: dict[str, Any]) -> Shown:
    from seqloom.explain.alignments import read_gold
    from seqloom.explain.explaining import explain

    links = {"gold": read_gold(gold)} if gold else {}
    if gold and "target" not in options:
        raise UserError("--gold: reference alignments refer to a given output; give --target with --gold")
    one: Any = runs[0] if len(runs) == 1 else runs
    found: Shown = explain(one, None if text is None else text.strip(), **options, **links)
    return found


def _worst(runs: Sequence[Run], data: str, count: int, options: Json) -> Shown:
    from seqloom.explain.worst import worst

    if len(runs) > 1:
        raise UserError("--worst: looks at one run; leave the others out")
    if strange := [name for name, value in options.items() if value is not None]:
        named = "--views, --gradients, --walk" if strange[0] == "views" else f"--{strange[0].replace('patch_', '')}"
        raise UserError(f"{named}: explains one input; leave it or --worst out")
    return worst(runs[0], data, count)


def _check_input(text: str | None, data: str | None, row: int | None, worst: int | None) -> None:
    if (data is None) == (text is None):
        raise UserError("explain: give --text TEXT, or --data FILE with --row N or --worst N: exactly one of them")
    if text is not None and not text.strip():
        raise UserError("--text: empty; there is nothing to explain")
    for name, value in (("--row", row), ("--worst", worst)):
        if value is not None and data is None:
            raise UserError(f"{name}: counts the rows of --data; use it with --data FILE instead of --text")
    if row is not None and worst is not None:
        raise UserError("--row explains one row and --worst several; give one of them")


def _named(views: str | None, gradients: bool, walk: bool) -> list[str] | None:
    found = [name.strip() for name in (views or "").split(",") if name.strip()]
    if views is not None and not found:
        raise UserError("--views: empty; name some, such as influence,lens, or leave it out")
    found += [name for name, asked in (("gradients", gradients), ("walk", walk)) if asked]
    return found or None
