"""`seqloom doctor`: what is wrong with data that is meant for a task, before any training; by shape of data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seqloom.core.config import validate
from seqloom.core.errors import unknown
from seqloom.core.run import DataConfig
from seqloom.data.doctor_labelled import examine_frames, examine_labelled
from seqloom.data.doctor_pairs import examine_pairs
from seqloom.data.doctor_questions import examine_questions
from seqloom.data.doctor_series import examine_series
from seqloom.data.doctor_tagged import examine_tagged
from seqloom.data.doctor_text import examine_text
from seqloom.data.findings import Finding
from seqloom.data.frames import holds_frames


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
