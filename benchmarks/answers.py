"""Answers of a small language model with and without retrieval: python benchmarks/answers.py --data xquad.en.json

Every passage of a file in the form of SQuAD becomes a document. One question each is drawn of so many passages, and
answered in five ways:

    alone       the language model is asked the question, without any passage
    retrieved   `seqloom ask` with the language model: it is shown the passages that the search found
    best        the same, shown the best passage alone
    gold        the same, shown the passage that the question was written about: an upper bound for the search
    extractive  `seqloom ask` without a language model: sentences of the passages that were found, word for word

An answer is right if the normalised words of a reference answer stand in it one after another. Prints shares, F1 and
lengths with 95% bootstrap intervals over questions, differences of the same questions, and what becomes of the
sentences that the model wrote. What is finished is kept in --json: the same command continues there.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seqloom.retrieve.answerers.written import MOST_NEW, Written, by_run
from seqloom.retrieve.answering import Asking
from seqloom.retrieve.document import Chunk, Passage, Sentence
from seqloom.retrieve.evaluation import bootstrap
from seqloom.retrieve.index import Index, index
from seqloom.runs.durable import write_file
from seqloom.runs.run import Run, load
from seqloom.runs.source import run_folder
from seqloom.tasks.question_answering.scores import agreement, normal

ALONE = "Answer the question in one short sentence."
WAYS = ("alone", "retrieved", "best", "gold", "extractive")
PAIRS = [("retrieved", "alone"), ("gold", "retrieved"), ("best", "retrieved"), ("extractive", "retrieved")]


class Question(NamedTuple):
    text: str
    answers: list[str]
    passage: str  # name of its file


def read(path: Path, folder: Path, count: int, seed: int) -> list[Question]:
    """Writes the passages to the folder, and draws one question each of `count` of them."""
    content = json.loads((gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8").read())
    passages = [passage for article in content["data"] for passage in article["paragraphs"]]
    for number, passage in enumerate(passages):
        (folder / f"{number:04d}.txt").write_text(passage["context"] + "\n", encoding="utf-8")
    rng = np.random.default_rng(seed)
    order, drawn = rng.permutation(len(passages)), rng.random(len(passages))  # the same whatever the count
    found = []
    for number in order[:count]:
        asked = passages[number]["qas"]
        one = asked[int(drawn[number] * len(asked))]
        answers = sorted({answer["text"] for answer in one["answers"]})
        found.append(Question(one["question"].strip(), answers, f"{number:04d}.txt"))
    return found


class Answering:
    """One language model, one index, and all ways to answer."""

    def __init__(self, opened: Index, model: str) -> None:
        self.index, self.run = opened, load(run_folder(model))
        written = Written(model, by_run(model))
        self.asking = {
            "retrieved": Asking(opened, answerer=written),
            "best": Asking(opened, answerer=written, k=1),
            "extractive": Asking(opened),
        }
        self.written = written

    def answer(self, way: str, question: Question) -> dict[str, Any]:
        started = time.process_time()
        if way == "alone":
            found = _row(str(_alone(self.run, question.text)), [])
        elif way == "gold":
            document = self.index.document(question.passage)
            whole = Chunk(document.path, 0, len(document.text), document.text, 1, document.unit)
            found = _of(self.written.answer(question.text, [Passage(whole, 1.0)], {document.path: document}))
        else:
            reply = self.asking[way].ask(question.text)
            found = _of(reply.sentences)
            found["passages"] = [passage.chunk.path for passage in reply.passages]
        return found | {"cpu_seconds": time.process_time() - started}


def _alone(run: Run, question: str) -> Any:
    return run.generate(question, chat=True, system=ALONE, temperature=0.0, max_new=MOST_NEW)


def _of(sentences: Sequence[Sentence]) -> dict[str, Any]:
    return _row(" ".join(one.text for one in sentences), sentences)


def _row(text: str, sentences: Sequence[Sentence]) -> dict[str, Any]:
    checked = [{"quotation": one.quotation is not None, "failed": list(one.failed)} for one in sentences]
    return {"text": text, "sentences": checked}


def right(text: str, answers: Sequence[str]) -> bool:
    """The words of an answer stand in the text, one after another."""
    words = f" {' '.join(normal(text))} "
    return any(f" {' '.join(normal(answer))} " in words for answer in answers if normal(answer))


def scores(rows: Sequence[dict[str, Any]], questions: Sequence[Question]) -> dict[str, np.ndarray]:
    pairs = list(zip(rows, questions, strict=True))
    return {
        "right": np.array([right(row["text"], one.answers) for row, one in pairs], float),
        "f1": np.array([agreement(row["text"], one.answers, "squad").f1 for row, one in pairs]),
        "words": np.array([len(row["text"].split()) for row in rows], float),
        "none": np.array([not row["text"].strip() for row in rows], float),
    }


def summary(answers: dict[str, list[dict[str, Any]]], questions: Sequence[Question]) -> dict[str, Any]:
    found = {way: scores(rows, questions) for way, rows in answers.items()}
    named = {way: {name: bootstrap(values)._asdict() for name, values in of.items()} for way, of in found.items()}
    for way, rows in answers.items():
        named[way]["cpu_seconds"] = float(np.mean([row["cpu_seconds"] for row in rows]))
    ways = [way for way in answers if way not in ("alone", "extractive")]
    return {
        "ways": named,
        "differences": {
            f"{a} - {b}": {name: bootstrap(found[a][name] - found[b][name])._asdict() for name in ("right", "f1")}
            for a, b in PAIRS
        },
        "sentences": {way: checked(answers[way]) for way in ways},
        "found": {
            way: float(np.mean([one.passage in row["passages"] for row, one in zip(rows, questions, strict=True)]))
            for way, rows in answers.items()
            if "passages" in rows[0]
        },
        "right_by_found": _by_found(answers["retrieved"], found["retrieved"]["right"], questions),
    }


def checked(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What became of the sentences that were written."""
    sentences = [one for row in rows for one in row["sentences"]]
    failed = Counter(name for one in sentences for name in one["failed"])
    return {
        "sentences": len(sentences),
        "quotations": sum(one["quotation"] for one in sentences),
        "some_check_failed": sum(bool(one["failed"]) for one in sentences),
        "no_check_failed_but_no_quotation": sum(not one["failed"] and not one["quotation"] for one in sentences),
        "failed": dict(failed.most_common()),
    }


def _by_found(rows: Sequence[dict[str, Any]], correct: np.ndarray, questions: Sequence[Question]) -> dict[str, Any]:
    """Shares of right answers where the first passage is the one that the question is about, and where it is not."""
    first = np.array([row["passages"][:1] == [one.passage] for row, one in zip(rows, questions, strict=True)])
    parts = {"first": correct[first], "later or not": correct[~first]}
    return {name: {"questions": len(v), "right": float(v.mean()) if len(v) else None} for name, v in parts.items()}


def show(found: dict[str, Any]) -> None:
    print(f"{'':12}{'right':>24}{'F1':>24}{'words':>8}{'none':>8}{'s':>7}")
    for way, of in found["ways"].items():
        cells = [f"{of[name]['mean']:.3f} [{of[name]['low']:.3f}, {of[name]['high']:.3f}]" for name in ("right", "f1")]
        rest = f"{of['words']['mean']:8.1f}{of['none']['mean']:8.1%}{of['cpu_seconds']:7.1f}"
        print(f"{way:12}{cells[0]:>24}{cells[1]:>24}{rest}")
    for name, of in found["differences"].items():
        cells = [f"{of[k]['mean']:+.3f} [{of[k]['low']:+.3f}, {of[k]['high']:+.3f}]" for k in ("right", "f1")]
        print(f"{name}: right {cells[0]}, F1 {cells[1]}")
    for way, of in found["sentences"].items():
        print(f"{way}: {json.dumps(of)}")
    print(f"passage found: {found['found']}; right by place of the passage: {found['right_by_found']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="in the form of SQuAD: XQuAD, or SQuAD itself")
    parser.add_argument("--questions", type=int, default=120, help="of as many passages")
    parser.add_argument("--model", default="weights:smollm2")
    parser.add_argument("--encoder", default="weights:minilm")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=Path("runs/answers.json"))
    given = parser.parse_args()
    named = {"data": given.data.name, "model": given.model, "encoder": given.encoder, "seed": given.seed}
    kept = json.loads(given.json.read_bytes()) if given.json.exists() else {**named, "answers": {}}
    if {name: kept[name] for name in named} != named:
        parser.error(f"--json {given.json}: of another model, encoder, seed or data; name another file")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "passages"
        folder.mkdir()
        questions = read(given.data, folder, given.questions, given.seed)
        with index(folder, Path(place) / "index", encoder=given.encoder) as opened:
            answers = answered(Answering(opened, given.model), questions, kept["answers"], given.json, kept)
    found = named | {"questions": len(questions)} | summary(answers, questions)
    write_file(given.json, json.dumps(kept | found, indent=1, ensure_ascii=False).encode() + b"\n")
    print(f"{given.data.name}: {len(questions)} questions, {given.model}, BM25 and {given.encoder}")
    show(found)


def answered(
    answering: Answering, questions: Sequence[Question], done: dict[str, Any], path: Path, kept: dict[str, Any]
) -> dict[str, list[dict[str, Any]]]:
    """`done`: answers by question and way, which grow."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for number, question in enumerate(questions, 1):
        mine = done.setdefault(f"{question.passage} {question.text}", {})
        for way in WAYS:
            if way not in mine:
                mine[way] = answering.answer(way, question)
        if number % 10 == 0:
            write_file(path, json.dumps(kept, indent=1, ensure_ascii=False).encode() + b"\n")
            print(f"{number} of {len(questions)}", flush=True)
    return {way: [done[f"{one.passage} {one.text}"][way] for one in questions] for way in WAYS}


if __name__ == "__main__":
    main()
