"""Valid data of every task in every format it takes, drawn small, each with a model and settings that train quickly."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fuzz.case import File, binary, text
from fuzz.tables import FORMATS, TEXTS, Table, written

Draw = Callable[[st.SearchStrategy[Any]], Any]

QUICK = ("train.steps=2", "train.threads=1", "model.width=8", "train.batch=4")
WORDS = (
    "the",
    "cat",
    "dog",
    "sees",
    "a",
    "house",
    "runs",
    "sleeps",
    "on",
    "mat",
    "green",
    "猫",
    "房子",
    "über",
    "naïve",
)
LABELS = ("good", "bad", "so-so")
NAMES = ("a b", "x", "Größe", "文本", "text2", "#", "a.b")


@dataclass(frozen=True)
class Source:
    """Data for a task: files, how the first is named on the command line, and what the task needs beside."""

    task: str
    files: tuple[File, ...]
    table: Table | None = None  # what the first file was written from
    kind: str = ""  # the format of the first file
    roles: tuple[tuple[str, str], ...] = ()  # role and column
    columns: bool = False  # whether --columns names them
    model: str = "gru"
    options: tuple[str, ...] = ()
    spec: str = ""  # what --data is, if not the first file

    @property
    def data(self) -> str:
        return self.spec or self.files[0].path

    def named(self) -> list[str]:
        return ["--columns", ",".join(f"{role}={name}" for role, name in self.roles)] if self.columns else []

    def rewritten(self, table: Table, **changes: Any) -> Source:
        first = written(table, self.files[0].path.split(".")[0], self.kind)
        return replace(self, files=(first, *self.files[1:]), table=table, **changes)


def phrase(draw: Draw, low: int = 2, high: int = 7) -> str:
    return " ".join(draw(st.lists(st.sampled_from(WORDS), min_size=low, max_size=high)))


def _phrases(draw: Draw, count: int) -> list[str]:
    """Distinct ones; of each, only the beginning is drawn, because drawing is slow."""
    beginnings = [phrase(draw) for _ in range(6)]
    return [f"{beginnings[n % 6]} {WORDS[n % 7]} {WORDS[n * 5 % 11]} n{n}" for n in range(count)]


def _table_source(draw: Draw, task: str, table: Table, roles: dict[str, str], kinds: list[str], **more: Any) -> Source:
    """The table in one of the formats, perhaps with other names for its columns, which --columns then tells."""
    own = draw(st.booleans())
    if own:
        for role, name in list(roles.items()):
            new = f"{draw(st.sampled_from(NAMES))}{len(role)}{role[0]}"
            table, roles = table.renamed(table.at(name), new), roles | {role: new}
    kind = draw(st.sampled_from(kinds))
    file = written(table, "data", kind)
    return Source(task, (file,), table, kind, tuple(roles.items()), own, **more)


def labelled(draw: Draw) -> Source:
    texts = _phrases(draw, 80)
    table = Table(("text", "label"), tuple((t, LABELS[n % 3]) for n, t in enumerate(texts)))
    roles = {"text": "text", "label": "label"}
    if draw(st.booleans()):
        table = Table(("id", *table.header), tuple((n, *row) for n, row in enumerate(table.rows)))
    if draw(st.integers(0, 3)) == 3:
        table = Table((*table.header, "second"), tuple((*row, texts[-n]) for n, row in enumerate(table.rows)))
        roles["second"] = "second"
        source = _table_source(draw, "classification", table, roles, TEXTS)
        return replace(source, columns=True)
    model = draw(st.sampled_from(["gru", "bag", "bert", "tfidf", "lstm"]))
    return _table_source(draw, "classification", table, roles, TEXTS, model=model)


def pairs(draw: Draw) -> Source:
    texts = _phrases(draw, 80)
    model = draw(st.sampled_from(["seq2seq", "transformer", "gru", "gpt", "nearest"]))
    options = ("task.scored=2", "task.max_new=4", "task.beams=1", "tokenizer.kind=words")
    if draw(st.integers(0, 3)) == 3:
        one, two = "".join(f"{t}\n" for t in texts), "".join(f"{t[::-1]}\n" for t in texts)
        return Source(
            "translation", (text("a.en", one), text("a.de", two)), model=model, options=options, spec="a.en,a.de"
        )
    table = Table(("source", "target"), tuple((t, t[::-1]) for t in texts))
    roles = {"source": "source", "target": "target"}
    return _table_source(draw, "translation", table, roles, TEXTS, model=model, options=options)


def texts(draw: Draw) -> Source:
    task, model = draw(
        st.sampled_from([("language_model", "lstm"), ("language_model", "ngram"), ("masked_lm", "bert")])
    )
    options = ("task.length=8",)
    lines = _phrases(draw, 80)
    form = draw(st.sampled_from(["one", "folder", "table"]))
    if form == "one":
        ending = draw(st.sampled_from(["txt", "text", "md"]))
        return Source(task, (binary(f"data.{ending}", "\n".join(lines).encode()),), model=model, options=options)
    if form == "folder":
        files = tuple(text(f"data/{n}.txt", "\n".join(lines[n::4])) for n in range(4))
        return Source(task, files, model=model, options=options, spec="data")
    table = Table(("text",), tuple((line,) for line in lines))
    return _table_source(
        draw, task, table, {"text": "text"}, ["csv", "tsv", "jsonl", "jsonl.xz"], model=model, options=options
    )


def series(draw: Draw) -> Source:
    options = ("task.horizon=3", "task.context=8", "task.drawn=0")
    model = draw(st.sampled_from(["gru", "linear", "window", "naive", "patch"]))
    count = draw(st.integers(70, 90))
    slope = draw(st.sampled_from([0.0, 1.5, -1000.0, 1e-6]))
    values = [round(float(np.sin(n / 3)) + slope * n, 9) for n in range(count)]
    days = np.arange(np.datetime64("2020-01-01"), np.datetime64("2020-01-01") + count)
    table = Table(
        ("date", "load", "wind"), tuple((str(d), v, n % 7) for n, (d, v) in enumerate(zip(days, values, strict=True)))
    )
    roles = {"time": "date", "targets": "load"}
    if draw(st.booleans()):
        rows = tuple((*row, name) for name in ("north", "south") for row in table.rows)
        table, roles = Table((*table.header, "town"), rows), roles | {"series": "town"}
    kinds = [*TEXTS, "parquet"]
    return replace(_table_source(draw, "forecasting", table, roles, kinds, model=model, options=options), columns=True)


def measured(draw: Draw) -> Source:
    """Measurements, as NPZ of either kind or as a table with a line per step."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    options = ("task.input=measurements",)
    labels = np.array([LABELS[n % 3] for n in range(60)])
    form = draw(st.sampled_from(["lengths", "offsets", "table"]))
    if form == "table":
        rows = [(n, labels[n], *map(float, rng.normal(size=2).round(4))) for n in range(60) for _ in range(4)]
        table = Table(("id", "label", "x", "y"), tuple((n, str(label), x, y) for n, label, x, y in rows))
        roles = {"row": "id", "label": "label"}
        return _table_source(draw, "classification", table, roles, ["csv", "tsv", "jsonl", "parquet"], options=options)
    frames = rng.normal(size=(60, 4, 2)).astype(np.float32)
    arrays = {"frames": frames, "lengths": np.full(60, 4), "label": labels}
    if form == "offsets":
        arrays = {"frames": frames.reshape(240, 2), "offsets": np.arange(61) * 4, "label": labels}
    return Source("classification", (npz(arrays),), kind=form, options=options)


def npz(arrays: dict[str, Any], name: str = "data.npz") -> File:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return binary(name, out.getvalue())


TAGS = {"the": "O", "cat": "B-ANIMAL", "dog": "B-ANIMAL", "house": "B-PLACE", "mat": "B-PLACE"}


def tagged(draw: Draw) -> Source:
    sentences = [t.split() for t in _phrases(draw, 80)]
    scheme = draw(st.sampled_from(["plain", "bio", "bmes"]))
    tags = [
        [{"plain": w[0].upper(), "bio": TAGS.get(w, "O"), "bmes": "S-" + w[0].upper()}[scheme] for w in s]
        for s in sentences
    ]
    form = draw(st.sampled_from(["tabs", "spaces", "jsonl"]))
    options = ("tokenizer.kind=words",)
    if form == "jsonl":
        rows = [json.dumps({"words": s, "tags": t}) for s, t in zip(sentences, tags, strict=True)]
        return Source("tagging", (text("data.jsonl", "\n".join(rows) + "\n"),), kind="jsonl", options=options)
    gap = "\t" if form == "tabs" else " "
    lines = "\n\n".join(
        "\n".join(f"{w}{gap}{t}" for w, t in zip(*st_, strict=True)) for st_ in zip(sentences, tags, strict=True)
    )
    ending = draw(st.sampled_from(["conll", "txt", "bmes"]))
    return Source("tagging", (text(f"data.{ending}", lines + "\n"),), kind="conll", options=options)


def questions(draw: Draw) -> Source:
    contexts = _phrases(draw, 80)
    options = ("tokenizer.kind=words", "task.window=32", "task.stride=8", "task.longest_question=8")
    asked = []
    for n, context in enumerate(contexts):
        answer = context.split()[n % 3]
        start = context.index(answer)
        asked.append((context, f"which {WORDS[n % 5]} n{n} ?", {"text": [answer], "answer_start": [start]}))
    if draw(st.booleans()):
        table = Table(("context", "question", "answers"), tuple(asked))
        return Source(
            "question_answering", (written(table, "data", "jsonl"),), table, "jsonl", model="bert", options=options
        )
    paragraphs = [
        {
            "context": c,
            "qas": [
                {"id": str(n), "question": q, "answers": [{"text": a["text"][0], "answer_start": a["answer_start"][0]}]}
            ],
        }
        for n, (c, q, a) in enumerate(asked)
    ]
    whole = {"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}
    return Source(
        "question_answering", (text("data.json", json.dumps(whole)),), kind="squad", model="bert", options=options
    )


SOURCES: dict[str, Callable[[Draw], Source]] = {
    "labelled": labelled,
    "pairs": pairs,
    "texts": texts,
    "series": series,
    "measured": measured,
    "tagged": tagged,
    "questions": questions,
}
assert set(TEXTS) < set(FORMATS)
