"""The command line: a thin layer over the package. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from seqloom.cli import predict as cli_sources
from seqloom.cli import show as cli_print
from seqloom.cli.options import Column, Int8, Json, RunPath, SourceColumn
from seqloom.core.errors import UserError, unknown

app = typer.Typer(
    name="seqloom",
    help="Train, evaluate and use sequence models, from the n-gram to the Transformer, on your own data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
def fit(
    recipe: Annotated[Path | None, typer.Argument(metavar="[RECIPE.toml]", help="Settings in a file.")] = None,
    task: Annotated[str | None, typer.Option(help="What to learn (see `seqloom list tasks`).")] = None,
    data: Annotated[str | None, typer.Option(help="File, folder or sample:NAME to learn from.")] = None,
    valid: Annotated[str | None, typer.Option(help="Validation text; else a part of --data.")] = None,
    test: Annotated[str | None, typer.Option(help="Test text; scored once, at the end.")] = None,
    model: Annotated[str | None, typer.Option(help="Architecture (see `seqloom list models`).")] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="A run whose encoder and tokenizer it begins with.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; default: a new one under runs/.")] = None,
    override: Annotated[
        list[str] | None, typer.Option("-o", help="Any setting, e.g. -o model.width=256 -o train.steps=500.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a model. Issued again with the same arguments, it continues, or says that nothing is left to do."""
    if out is not None and (out / ".lock").exists() and os.environ.get("RANK", "0") == "0":
        from seqloom.runs.folder import RunFolder

        with RunFolder(out).lock():
            pass  # in use by another process? say so before loading torch
    from seqloom.runs.fit import fit as train

    run = train(
        recipe, task=task, data=data, valid=valid, test=test, model=model, start=start, out=out,
        overrides=override or (), command=shlex.join(["seqloom", *sys.argv[1:]]),
    )  # fmt: skip
    if int(os.environ.get("RANK", 0)) == 0:
        _show({"run": str(run.folder.path)} | run.summary, as_json, cli_print.print_summary)


@app.command()
def compare(
    data: Annotated[str, typer.Option(help="File, folder or sample:NAME to compare on.")],
    models: Annotated[
        str,
        typer.Option(
            help="Contenders: lstm,gpt or, with options and names, old=gpt:preset=gpt2:train.optimizer=adamw."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the comparison: runs, results and the report.")],
    task: Annotated[str, typer.Option(help="What to learn (see `seqloom list tasks`).")] = "language_model",
    valid: Annotated[str | None, typer.Option(help="Validation text; else a tenth of --data.")] = None,
    test: Annotated[str | None, typer.Option(help="Test text; else a tenth of --data.")] = None,
    params: Annotated[
        str | None, typer.Option(help="Parameters of every model, e.g. 800k; default: as many as the largest has.")
    ] = None,
    count: Annotated[str, typer.Option(help="all, or backbone: leave embeddings and head out of the count.")] = "all",
    budget: Annotated[
        str, typer.Option(help="Of every training: tokens=2M, seconds=60 or flops=1e13.")
    ] = "tokens=1536000",
    trials: Annotated[int, typer.Option(min=0, help="Tuning trials of every model; 0: its own settings.")] = 4,
    trial_share: Annotated[float, typer.Option("--trial-share", help="Share of the budget that a trial gets.")] = 0.5,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of every model that count; may grow when issued again.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Other seeds: counted from here.")] = 0,
    pretrain: Annotated[
        str | None, typer.Option(help="Raw text: also measure what pre-training on it brings (tasks of understanding).")
    ] = None,
    pretrain_budget: Annotated[
        str | None, typer.Option("--pretrain-budget", help="Of every pre-training; default: as --budget.")
    ] = None,
    examples: Annotated[
        str, typer.Option(help="With --pretrain: numbers of labelled rows, taught with it and without.")
    ] = "100,400,1600",
    jobs: Annotated[int, typer.Option(min=1, help="Processes at once; the cores are divided among them.")] = 1,
    on: Annotated[str, typer.Option(help="local, or ray: on a Ray cluster.")] = "local",
    prefer: Annotated[str, typer.Option(help="What matters most: quality, latency, memory or training.")] = "quality",
    max_params: Annotated[str | None, typer.Option("--max-params", help="Recommend nothing larger.")] = None,
    max_latency_ms: Annotated[
        float | None,
        typer.Option("--max-latency-ms", help="Recommend nothing slower per token at the longest context it can read."),
    ] = None,
    streaming: Annotated[
        bool, typer.Option("--streaming", help="Recommend only what remembers in constant space.")
    ] = False,
    override: Annotated[list[str] | None, typer.Option("-o", help="Any setting, for all of them.")] = None,
    as_json: Json = False,
) -> None:
    """Compare models fairly: equal size, equal budget, equal tuning, several seeds. Issued again, it continues."""
    from seqloom.compare.comparing import compare as conduct

    found = conduct(
        data=data, models=models, out=out, task=task, valid=valid, test=test, params=params, count=count, budget=budget,
        trials=trials, trial_share=trial_share, seeds=seeds, seed=seed, pretrain=pretrain,
        pretrain_budget=pretrain_budget, examples=examples, jobs=jobs, on=on, prefer=prefer,
        max_params=max_params, max_latency_ms=max_latency_ms, streaming=streaming, overrides=override or (),
        command=shlex.join(["seqloom", *sys.argv[1:]]),
    )  # fmt: skip
    shown = {"folder": str(found.folder), "report": str(found.report)} | found.result
    _show(shown, as_json, lambda result: cli_print.print_comparison(result, found.report))
    if found.result["best"] is None:
        raise typer.Exit(1)


@app.command("eval")
def evaluate(
    run: RunPath,
    data: Annotated[str, typer.Option(help="File, folder or sample:NAME to score.")],
    column: Annotated[str | None, typer.Option(help="Column with the text; else the one it was trained on.")] = None,
    source: SourceColumn = None,
    target: Annotated[str | None, typer.Option(help="Pairs: column of what is wanted; else as in training.")] = None,
    int8: Int8 = False,
    as_json: Json = False,
) -> None:
    """Score a run on data it has not seen: its scores with their protocol, naive baselines beside."""
    from seqloom.runs.run import load

    columns = {name: given for name, given in (("column", column), ("source", source), ("target", target)) if given}
    scores = load(run, int8=int8).evaluate(data, **columns)
    if int8:
        scores["float32"] = cli_print.main_scores(load(run).evaluate(data, **columns))
    _show(scores, as_json, lambda s: cli_print.print_scores({data: s}))


@app.command()
def generate(
    run: RunPath,
    prompt: Annotated[str, typer.Option(help="Text to continue.")] = "",
    max_new: Annotated[int, typer.Option("--max-new", min=0, help="Tokens to write.")] = 200,
    temperature: Annotated[
        float, typer.Option(help="Below 1: bolder choices are rarer; 0: the most likely token.")
    ] = 0.8,
    top_k: Annotated[int, typer.Option("--top-k", help="Choose among the k most likely; 0: all.")] = 0,
    top_p: Annotated[float, typer.Option("--top-p", help="Choose among the most likely that hold this share.")] = 1.0,
    beams: Annotated[int, typer.Option(min=1, help="Beam search with so many beams, instead of drawing.")] = 1,
    seed: Annotated[int | None, typer.Option(min=0, max=2**63 - 1, help="The same seed, the same text.")] = None,
    count: Annotated[int, typer.Option(min=1, help="Continuations to write, as one batch.")] = 1,
    stop: Annotated[list[str] | None, typer.Option(help="End at this text (may be given several times).")] = None,
    int8: Int8 = False,
    as_json: Json = False,
) -> None:
    """Continue a text, token by token."""
    from seqloom.runs.run import load

    loaded = load(run, int8=int8)
    drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    how: dict[str, Any] = {"max_new": max_new} | ({"beams": beams} if beams > 1 else drawing)
    if beams == count == 1 and not as_json:
        for number, piece in enumerate(loaded.write(prompt, stop=stop or (), **how)):
            sys.stdout.write(piece if number else prompt + piece)
            sys.stdout.flush()
        print()
        return
    texts = loaded.generate(prompt, count=count, stop=stop or (), **how)
    texts = [texts] if count == 1 else texts
    _show({"prompt": prompt, "texts": texts}, as_json, lambda found: cli_print.print_texts(prompt, found["texts"]))


app.command()(cli_sources.predict)
app.command()(cli_sources.explain)


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(help="models | tasks | samples | runs")],
    name: Annotated[
        str | None, typer.Argument(help="One of them: its options; for runs: the folder to look in.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what there is, and the options of a model or task."""
    from seqloom.runs import listing

    if what not in listing.LISTS:
        raise unknown("list", what, listing.LISTS)
    _show(listing.LISTS[what](name), as_json, cli_print.print_table)


@app.command()
def doctor(
    data: Annotated[str, typer.Option(help="File, folder or sample:NAME to look at.")],
    task: Annotated[str, typer.Option(help="What it is for.")] = "language_model",
    column: Column = "text",
    source: Annotated[
        str, typer.Option(help="Pairs: column with the source, or its number without a header.")
    ] = "source",
    target: Annotated[
        str, typer.Option(help="Pairs: column with the target, or its number without a header.")
    ] = "target",
    label: Annotated[str, typer.Option(help="Labelled: column with the label.")] = "label",
    second: Annotated[str | None, typer.Option(help="Labelled: column with a second text.")] = None,
    separator: Annotated[str | None, typer.Option(help="Labelled: what stands between several labels.")] = None,
    word: Annotated[int, typer.Option(help="CoNLL columns: that of the words; -1 is the last.")] = 1,
    tag: Annotated[int, typer.Option(help="CoNLL columns: that of the tags; -1 is the last.")] = -1,
    valid: Annotated[str | None, typer.Option(help="What to validate on, to see what is in both.")] = None,
    override: Annotated[
        list[str] | None, typer.Option("-o", help="Any setting of the data, e.g. -o data.time=date.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what is wrong with a file before any training. Exit code 2 when something must be mended."""
    from dataclasses import asdict

    from seqloom.runs.doctor import PROBED, examine

    how: dict[str, Any] = {
        "source": source, "target": target, "label": label, "second": second, "separator": separator, "word": word,
        "tag": tag,
    }  # fmt: skip
    how |= {"valid_data": valid, "column": column} | _data_settings(override or ())
    if task in PROBED:
        from seqloom.runs.doctor import doctor as look

        found = look(data, task=task, **how)
    else:
        found = examine(task, data, **how)
    findings = [asdict(finding) for finding in found]
    _show({"findings": findings}, as_json, cli_print.print_findings)
    if any(finding["level"] == "error" for finding in findings):
        raise typer.Exit(2)


def _data_settings(overrides: Iterable[str]) -> dict[str, Any]:
    """`data.time=date` as an option; none is of another section."""
    from seqloom.core.config import parse_overrides

    settings = parse_overrides(overrides)
    if strange := [path for path in settings if not path.startswith("data.")]:
        raise UserError(f"-o {strange[0]}: the doctor looks at data; its settings begin with data.")
    return {path.removeprefix("data."): value for path, value in settings.items()}


def main() -> None:
    """Run a command; a person's mistake is one line on standard error, never a traceback."""
    try:
        code = app(standalone_mode=False)
    except typer.Exit as end:
        code = end.exit_code
    except KeyboardInterrupt:
        code = _complain("interrupted", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        code = _explain(error)
    sys.exit(code if isinstance(code, int) else 0)


def _explain(error: Exception) -> int:
    if hasattr(error, "format_message"):  # of click, or of typer's own copy of it
        context = getattr(error, "ctx", None)
        hint = f" (seqloom {context.info_name} --help)" if context and context.parent else ""
        return _complain(error.format_message() + hint, error.exit_code)  # type: ignore[attr-defined]
    if isinstance(error, UserError) or hasattr(error, "exit_code"):
        return _complain(str(error), error.exit_code)
    if isinstance(error, MemoryError) or "allocate memory" in str(error) or "out of memory" in str(error).lower():
        return _complain("out of memory; lower model.width, task.length or train.batch, or raise train.accumulate", 1)
    if isinstance(error, OSError):
        return _complain(f"{error.filename or 'system'}: {error.strerror or error}", 1)
    raise error


def _complain(text: str, code: int) -> int:
    print(f"seqloom: {' '.join(text.split())}", file=sys.stderr)
    return code


def _show(value: Any, as_json: bool, printer: Callable[[Any], None]) -> None:
    if as_json:
        print(json.dumps(value, ensure_ascii=False, default=str))
    else:
        printer(value)
