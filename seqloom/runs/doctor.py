"""`seqloom doctor`: what is wrong with data that is meant for a task, before any training; by shape of data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seqloom.core.config import validate
from seqloom.core.errors import unknown
from seqloom.data.findings import Finding
from seqloom.data.options import DataConfig
from seqloom.data.shapes import material_of
from seqloom.data.shapes.frames.doctor import examine_frames
from seqloom.data.shapes.frames.reading import holds_frames
from seqloom.data.shapes.labelled.doctor import examine_labelled
from seqloom.data.shapes.pairs.doctor import examine_pairs
from seqloom.data.shapes.questions.doctor import examine_questions
from seqloom.data.shapes.series.doctor import examine_series
from seqloom.data.shapes.tagged.doctor import examine_tagged
from seqloom.data.shapes.texts.doctor import examine_text
from seqloom.runs.registry import find_config


def _examine_rows(data: DataConfig) -> list[Finding]:
    if holds_frames(data.train):
        return examine_frames(data.train, data.label, data.row, data.separator, data.valid)
    return examine_labelled(data.train, data.column, data.label, data.second, data.separator, data.valid)


DOCTORS: dict[str, Callable[[DataConfig], list[Finding]]] = {
    "language_model": lambda data: examine_text(data.train, data.column, data.valid_fraction),
    "masked_lm": lambda data: examine_text(data.train, data.column, data.valid_fraction),
    "translation": lambda data: examine_pairs(data.train, data.source, data.target, data.valid),
    "classification": _examine_rows,
    "tagging": lambda data: examine_tagged(data.train, data.word, data.tag, data.column, data.valid),
    "question_answering": lambda data: examine_questions(data.train, data.valid),
    "forecasting": examine_series,
}


PROBED = {"forecasting"}  # tasks whose data have a future, that forecasts must not see: runs.probe tries it


def examine(task: str, spec: str, column: str = "text", *, valid_data: str | None = None, **how: Any) -> list[Finding]:
    """What is wrong with data that is meant for a task; `valid_data`: what to validate on; `how` as in the data section
    of a run: label, source, target, word, tag, ..."""
    if task not in DOCTORS:
        raise unknown("task", task, DOCTORS)
    settings = {"train": spec, "valid": valid_data, "column": column, **how}
    return DOCTORS[task](validate({"data": DataConfig}, {"data": settings})["data"])


def doctor(data: str, *, task: str = "language_model", **options: Any) -> list[Any]:
    """What is wrong with this data, before any training. Options as in `seqloom doctor`."""
    found = examine(task, data, **options)
    if task in PROBED and not any(finding.level == "error" for finding in found):
        settings = {"train": data, "valid": options.pop("valid_data", None)} | options
        found.append(probe(task, DataConfig.model_validate(settings)))
    return found


def probe(task: str, data: DataConfig) -> Any:
    """A finding: whether forecasts of this data see the future, by any strategy and scale of windows, of a model that
    reads one way and of one that sees the history whole; with weights as they are drawn, for these decide nothing."""
    options = find_config("tasks", task)
    material = material_of(options())
    parts = material.open_parts(data)
    tokenizer = material.make_tokenizer(options(), parts["train"])
    rows, made = material.prepare(parts["train"], tokenizer), 0
    for settings in options.probes:
        built = options.model_validate(settings).build(tokenizer)
        for name in ("gru", "transformer"):
            model = find_config("models", name).model_validate({"width": 16}).assemble(built)
            found = built.probe(model, rows)
            if found.moved:
                return Finding("error", f"{name}, {settings}: {found}", "please report it")
            made += found.forecasts
    ways = len(options.probes)
    return Finding(
        "ok", f"leakage probe: {made:,} forecasts in {ways} ways, made again with another future; none moved"
    )
