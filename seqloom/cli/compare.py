"""`seqloom compare`: a fair trial of several models on one set of data."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from seqloom.cli._options import Json
from seqloom.cli._show import print_comparison, show

DataPath = Annotated[str, typer.Option(help="File, folder or sample:NAME to compare on.")]
Models = Annotated[
    str,
    typer.Option(help="Contenders: lstm,gpt or, with options and names, old=gpt:preset=gpt2:train.optimizer=adamw."),
]
OutPath = Annotated[Path, typer.Option(help="Folder of the comparison: runs, results and the report.")]
Task = Annotated[str, typer.Option(help="What to learn (see `seqloom list tasks`).")]
Valid = Annotated[str | None, typer.Option(help="Validation text; else a tenth of --data.")]
Test = Annotated[str | None, typer.Option(help="Test text; else a tenth of --data.")]
Params = Annotated[
    str | None, typer.Option(help="Parameters of every model, e.g. 800k; default: as many as the largest has.")
]
Count = Annotated[str, typer.Option(help="all, or backbone: leave embeddings and head out of the count.")]
Budget = Annotated[str, typer.Option(help="Of every training: tokens=2M, seconds=60 or flops=1e13.")]
Trials = Annotated[int, typer.Option(min=0, help="Tuning trials of every model; 0: its own settings.")]
TrialShare = Annotated[float, typer.Option("--trial-share", help="Share of the budget that a trial gets.")]
Seeds = Annotated[
    int, typer.Option(min=1, help="Runs of every model that count; may grow when the command is run again.")
]
Seed = Annotated[int, typer.Option(min=0, help="Other seeds: counted from here.")]
Pretrain = Annotated[
    str | None, typer.Option(help="Raw text: also measure what pre-training on it brings (tasks of understanding).")
]
PretrainBudget = Annotated[
    str | None, typer.Option("--pretrain-budget", help="Of every pre-training; default: as --budget.")
]
Examples = Annotated[str, typer.Option(help="With --pretrain: numbers of labelled rows, taught with it and without.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes at once; the cores are divided among them.")]
On = Annotated[str, typer.Option(help="local, or ray: on a Ray cluster.")]
Prefer = Annotated[str, typer.Option(help="What matters most: quality, latency, memory or training.")]
MaxParams = Annotated[str | None, typer.Option("--max-params", help="Recommend nothing larger.")]
MaxLatencyMs = Annotated[
    float | None,
    typer.Option("--max-latency-ms", help="Recommend nothing slower per token at the longest context it can read."),
]
Streaming = Annotated[bool, typer.Option("--streaming", help="Recommend only what remembers in constant space.")]
Override = Annotated[list[str] | None, typer.Option("-o", help="Any setting, for all of them.")]


def command(
    data: DataPath,
    models: Models,
    out: OutPath,
    task: Task = "language_model",
    valid: Valid = None,
    test: Test = None,
    params: Params = None,
    count: Count = "all",
    budget: Budget = "tokens=1536000",
    trials: Trials = 4,
    trial_share: TrialShare = 0.5,
    seeds: Seeds = 3,
    seed: Seed = 0,
    pretrain: Pretrain = None,
    pretrain_budget: PretrainBudget = None,
    examples: Examples = "100,400,1600",
    jobs: Jobs = 1,
    on: On = "local",
    prefer: Prefer = "quality",
    max_params: MaxParams = None,
    max_latency_ms: MaxLatencyMs = None,
    streaming: Streaming = False,
    override: Override = None,
    as_json: Json = False,
) -> None:
    """Compare models fairly: equal size, budget and tuning, several seeds. Running the command again continues it."""
    from seqloom.compare.comparing import compare

    found = compare(
        data=data, models=models, out=out, task=task, valid=valid, test=test, params=params, count=count, budget=budget,
        trials=trials, trial_share=trial_share, seeds=seeds, seed=seed, pretrain=pretrain,
        pretrain_budget=pretrain_budget, examples=examples, jobs=jobs, on=on, prefer=prefer,
        max_params=max_params, max_latency_ms=max_latency_ms, streaming=streaming, overrides=override or (),
        command=shlex.join(["seqloom", *sys.argv[1:]]),
    )  # fmt: skip
    shown = {"folder": str(found.folder), "report": str(found.report)} | found.result
    show(shown, as_json, lambda result: print_comparison(result, found.report))
    if found.result["best"] is None:
        raise typer.Exit(1)
