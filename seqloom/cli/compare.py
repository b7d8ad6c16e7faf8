"""`seqloom compare`: a fair comparison of several models on one dataset, or on several."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from seqloom.cli._options import ColumnNames, Encoding, JsonOutput
from seqloom.cli._retrieval import RETRIEVAL, compare_retrieval
from seqloom.cli._show import print_comparison, show
from seqloom.core.errors import UserError
from seqloom.core.waiting import before_imports

DataPath = Annotated[
    list[str] | None,
    typer.Option(
        help="File, folder or sample:NAME to compare on; given several times, or as NAME=PATH: a study of several data "
        "sets."
    ),
]
Each = Annotated[str | None, typer.Option(help="Folder of which every file is a data set of a study.")]
Models = Annotated[
    str | None,
    typer.Option(
        help="Models: lstm,gpt or, with names and options, old=gpt:preset=gpt2:train.optimizer=adamw; for retrieval "
        "bm25,hybrid:weights:minilm; default: those that suit the task."
    ),
]
OutPath = Annotated[
    Path | None,
    typer.Option(
        help="Folder for the runs, the results and the report; default: runs/compare-DATA, for several data sets "
        "runs/study."
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        help="Task to learn (see `seqloom list tasks`), or retrieval: search in documents; default: guessed from the "
        "data."
    ),
]
Valid = Annotated[str | None, typer.Option(help="Validation data; default: a tenth of --data.")]
Test = Annotated[str | None, typer.Option(help="Test data; default: a tenth of --data.")]
Params = Annotated[
    str | None, typer.Option(help="Parameters of every model, e.g. 800k; default: those of the largest.")
]
Count = Annotated[str, typer.Option(help="Parameters to count: all, or backbone (without embeddings and head).")]
Budget = Annotated[
    str,
    typer.Option(
        help="Budget of every training run: tokens=2M, bytes=8M, seconds=60 or flops=1e13; or, for all runs "
        "together, minutes=20."
    ),
]
Trials = Annotated[int, typer.Option(min=0, help="Tuning trials per model; 0: no tuning.")]
TrialShare = Annotated[float, typer.Option("--trial-share", help="Share of the budget for each trial.")]
TuneDepth = Annotated[
    bool, typer.Option("--tune-depth", help="Also tune the number of layers, at the same number of parameters.")
]
Seeds = Annotated[int, typer.Option(min=1, help="Final runs per model; may be raised when the command is run again.")]
Seed = Annotated[int, typer.Option(min=0, help="First seed; the others follow it.")]
MarginOption = Annotated[
    str, typer.Option("--margin", help="Difference that does not matter: 1% of the best score, or 0.01 in its units.")
]
Pretrain = Annotated[
    str | None, typer.Option(help="Raw text: also measure the gain from pre-training on it (understanding tasks).")
]
PretrainBudget = Annotated[
    str | None, typer.Option("--pretrain-budget", help="Budget of every pre-training run; default: that of --budget.")
]
Examples = Annotated[
    str | None,
    typer.Option(
        help="With --pretrain: numbers of labelled rows to train on, with and without it; default: 100,400,1600."
    ),
]
Ladder = Annotated[
    str | None,
    typer.Option(
        help="What changes with scale: also train with 1/8, 1/4 and 1/2 of the budget (at 1.1 times the cost of a "
        "comparison with default trials and seeds), of the data (1.35 times) or of the size (1.3 to 2 times)."
    ),
]
PerLabel = Annotated[
    str | None,
    typer.Option("--per-label", help="Also train on this many labelled rows per label, for example 8,32,128."),
]
Jobs = Annotated[int, typer.Option(min=1, help="Parallel processes; the cores are divided among them.")]
On = Annotated[str, typer.Option(help="Where to run: local, or ray (a Ray cluster).")]
Prefer = Annotated[str, typer.Option(help="Priority of the recommendation: quality, latency, memory or training.")]
MaxParams = Annotated[str | None, typer.Option("--max-params", help="Recommend nothing with more parameters, e.g. 1M.")]
MaxLatencyMs = Annotated[
    float | None,
    typer.Option("--max-latency-ms", help="Recommend nothing with more latency per token at its longest context."),
]
Streaming = Annotated[bool, typer.Option("--streaming", help="Recommend only models with a state of constant size.")]
Queries = Annotated[
    Path | None, typer.Option(help="For retrieval: what is asked of the documents, JSONL with _id and text.")
]
Judged = Annotated[
    Path | None,
    typer.Option("--judgements", help="For retrieval: which documents answer which query, TSV of BEIR's form."),
]
Override = Annotated[list[str] | None, typer.Option("-o", help="Any setting, for all models, e.g. -o train.batch=32.")]


def command(
    context: typer.Context,
    data: DataPath = None,
    each: Each = None,
    models: Models = None,
    out: OutPath = None,
    task: Task = None,
    valid: Valid = None,
    test: Test = None,
    encoding: Encoding = None,
    params: Params = None,
    count: Count = "all",
    budget: Budget = "minutes=20",
    trials: Trials = 4,
    trial_share: TrialShare = 0.5,
    tune_depth: TuneDepth = False,
    seeds: Seeds = 3,
    seed: Seed = 0,
    margin: MarginOption = "1%",
    pretrain: Pretrain = None,
    pretrain_budget: PretrainBudget = None,
    examples: Examples = None,
    ladder: Ladder = None,
    per_label: PerLabel = None,
    jobs: Jobs = 1,
    on: On = "local",
    prefer: Prefer = "quality",
    max_params: MaxParams = None,
    max_latency_ms: MaxLatencyMs = None,
    streaming: Streaming = False,
    queries: Queries = None,
    judgements: Judged = None,
    columns: ColumnNames = None,
    override: Override = None,
    as_json: JsonOutput = False,
) -> None:
    """Compare models fairly: equal size, budget and tuning, several seeds. Running the command again resumes it, also
    with other models, more seeds, another budget or more data sets: what is finished is kept."""
    if not data and each is None:
        raise UserError("--data: name what to compare on: a file, a folder or sample:NAME")
    if task == RETRIEVAL or queries is not None or judgements is not None:
        compare_retrieval(context)
        return
    before_imports("preparing the comparison")
    from seqloom.data.shapes.columns import parse_columns

    several = each is not None or len(data or ()) > 1
    found = _verb(data or [], each)(
        models=models, out=out, task=task, valid=valid, test=test, encoding=encoding, params=params,
        count=count, budget=budget, trials=trials, trial_share=trial_share, tune_depth=tune_depth, seeds=seeds,
        seed=seed, margin=margin, pretrain=pretrain, pretrain_budget=pretrain_budget, examples=examples,
        ladder=ladder, per_label=per_label, jobs=jobs, on=on, prefer=prefer, max_params=max_params,
        max_latency_ms=max_latency_ms, streaming=streaming, columns=parse_columns(columns or ()),
        overrides=override or (), command=shlex.join(["seqloom", *sys.argv[1:]]),
    )  # fmt: skip
    shown = {"folder": str(found.folder), "report": str(found.report)} | found.result
    show(shown, as_json, lambda result: print(found) if several else print_comparison(result, found.report))
    if (found.best if several else found.result["best"]) is None:
        raise typer.Exit(1)


def _verb(data: list[str], each: str | None) -> Any:
    """The comparison on one data set, or on several."""
    from seqloom.compare.comparing import compare
    from seqloom.compare.study import compare_all, data_sets

    if each is not None or len(data) > 1:
        return partial(compare_all, data_sets(data, each))
    return partial(compare, data=data[0])
