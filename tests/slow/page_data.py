"""What a server answers to the page: made-up runs, models and predictions of every task, shaped as real ones.

Every text of a user or a model goes through `text`, so that a test can put hostile ones in all places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from seqloom.pages.shell import page

Json = dict[str, Any]
Text = Callable[[str], str]

TASKS = {
    "language_model": "generate",
    "classification": "predict",
    "tagging": "predict",
    "translation": "predict",
    "forecasting": "predict",
    "question_answering": "predict",
    "masked_lm": "predict",
}
COLUMNS = {
    "classification": ["text", "label"],
    "tagging": ["text"],
    "translation": ["source", "target"],
    "forecasting": [],
    "question_answering": ["question", "passage"],
    "masked_lm": ["text"],
}
STORY = (
    " the time machine stood in the corner of the room .\n It had a small brass lever , and the lever moved by itself ."
)
QUANTILES = ("0.05", "0.1", "0.25", "0.5", "0.75", "0.9", "0.95")


def same(text: str) -> str:
    return text


class Payloads:
    """Another hostile text each time, with the harmless one behind it."""

    def __init__(self, payloads: list[str]) -> None:
        self.payloads, self.used, self._number = payloads, set[str](), count()

    def __call__(self, text: str) -> str:
        payload = self.payloads[next(self._number) % len(self.payloads)]
        self.used.add(payload)
        return f"{payload} {text}"


def server(text: Text = same) -> Json:
    names = {"gpt": ("gpt", "language_model"), "gru": ("gru", "language_model"), "chat": ("gpt", "language_model")}
    names |= {task: ("lstm", task) for task in TASKS if task != "language_model"}
    models = [_model(text(name), kind, task, name == "chat") for name, (kind, task) in names.items()]
    return {"version": "0", "models": models, "indexes": [{"name": text("notes")}], "limits": {}, "jobs": True}


def _model(name: str, kind: str, task: str, chat: bool) -> Json:
    return {
        "name": name, "task": task, "verb": TASKS[task], "architecture": kind, "parameters": 3_712_000,
        "limit": 256 if chat else None, "chat": chat, "embeds": True, "columns": COLUMNS.get(task, ["text"]),
        "status": "ready", "state_bytes": 65_536 if chat else 2_048, "version": "5f2c",
    }  # fmt: skip


def runs(number: int = 24, text: Text = same) -> list[Json]:
    found = []
    for n in range(number):
        model = ["lstm", "gpt", "mamba2", "ttt"][n // 3 % 4]
        task, data = [("language_model", "sample:python-docs"), ("classification", "sample:languages")][n // 12 % 2]
        running = n < 2
        score = {
            "name": "accuracy" if task == "classification" else "loss",
            "value": 0.6 + 0.013 * (n % 11),
            "part": "test",
        }
        score["better"] = "higher" if task == "classification" else "lower"
        found.append({
            "id": text(f"compare-{n // 12}~runs~{model}~seed-{n % 3}"), "inside": f"compare-{n // 12}",
            "task": task, "model": text(model), "data": text(data), "seed": n % 3,
            "status": "running" if running else "damaged" if n == 7 else "finished",
            "score": None if running else score,
            "parameters": 812_345 + n, "seconds": 61.5 + n, "step": 400, "progress": 0.4 if running else 1.0,
            "loss": 2.1, "started": f"2026-03-{1 + n % 28:02}T10:{n % 60:02}:00+00:00", "ended": None,
        })  # fmt: skip
    return found


def curve(number: int) -> Json:
    steps = list(range(0, 1000, 10))
    shape = [1.1 + 0.05 * number + 2.4 * math.exp(-step / (180 + 20 * number)) for step in steps]
    train = [value + 0.04 * math.sin(step) for step, value in zip(steps, shape, strict=True)]
    valid = [value + 0.1 if step % 100 == 0 else None for step, value in zip(steps, shape, strict=True)]
    return {"metric": "loss", "steps": steps, "train": train, "valid": valid}


def tokens(asked: Json, text: Text = same) -> Iterator[Json]:
    """The events of one continuation."""
    yield {"started": {"prompt_tokens": 4}}
    words = STORY.replace(" ", "\0 ").split("\0")[1:]
    most = min(int(asked.get("max_new", 40)), 40)
    for n in range(most):
        word, share = text(words[n % len(words)]), 0.95 - 0.9 * abs(math.sin(1.7 * n))
        top = [
            [word, math.log(share)],
            [text(" lever"), math.log((1 - share) * 0.6)],
            [text(" river"), math.log((1 - share) * 0.3)],
        ]
        yield {"index": 0, "text": word, "token": {"id": n, "text": word, "logprob": math.log(share), "top": top}}
    yield {"index": 0, "end": "length"}
    yield {"done": {"prompt_tokens": 4, "completion_tokens": most, "seconds": 0.004 * most, "state_bytes": 4_096}}


def predictions(task: str, rows: list[Json], text: Text = same) -> list[Json]:
    if task == "forecasting":
        return [_step(n) for n in range(1, 25)]
    found = text("HH AH0 L OW1")
    best = [{"text": found, "score": -0.42}, {"text": "HH EH1 L OW2", "score": -1.7}]
    gaps = [[{"token": text(" name"), "probability": 0.61}, {"token": " body", "probability": 0.12}]]
    makers: dict[str, Callable[[Json], Json]] = {
        "classification": lambda row: _classified(row, text),
        "tagging": lambda row: _tagged(text),
        "translation": lambda row: {**row, "prediction": found, "score": -0.42, "n_best": best},
        "question_answering": lambda row: {**row, "answer": text("the euro"), "start": 16, "end": 24, "score": 7.9},
        "masked_lm": lambda row: {**row, "gaps": gaps},
    }
    return [{"line": n, **makers[task](row)} for n, row in enumerate(rows, 1)]


def _classified(row: Json, text: Text) -> Json:
    labels = {text("pl"): 0.71, "cs": 0.16, "is": 0.08, "de": 0.04, "hu": 0.01}
    return {**row, "label": next(iter(labels)), "probability": 0.71, "probabilities": labels}


def _tagged(text: Text) -> Json:
    words = [text("She"), "moved", "from", "New", "York", "to", "Tokyo"]
    tags = ["O", "O", "O", "B-LOC", f"I-{'LOC'}", "O", "B-LOC"]
    return {
        "words": words,
        "tags": tags,
        "entities": [{"label": text("LOC"), "text": "New York", "start": 15, "end": 23}],
    }


def _step(n: int) -> Json:
    middle = 60 + 40 * math.sin(n / 3)
    spread = {q: round(middle + (float(q) - 0.5) * 12 * math.sqrt(n), 2) for q in QUANTILES}
    return {
        "step": n,
        "time": str(2008 + n),
        "sunspots": round(middle, 2),
        **{f"sunspots_{q}": v for q, v in spread.items()},
    }


def made_page(title: str) -> str:
    """A page as reports and explanations are: with a script and a policy of its own."""
    body = (
        '<main><h1>{}</h1><p id="told">Before the script.</p><a href="#source">1</a><h2 id="source">Source</h2></main>'
    )
    script = 'document.getElementById("told").textContent = "Drawn by the page\'s own script.";'
    return page(title, body.format(title), scripts=[script])


def comparisons(text: Text = same) -> list[Json]:
    row = {
        "id": "compare-0", "kind": "comparison", "status": "finished", "task": "classification",
        "data": text("sample:languages"), "models": [text("lstm"), "gpt", "mamba2"], "seeds": 3, "budget": "minutes=5",
        "best": text("mamba2"), "choice": "mamba2",
        "score": {"name": "accuracy", "value": 0.7312, "better": "higher", "part": "test"}, "report": True,
        "started": "2026-03-02T10:00:00+00:00", "ended": None, "runs": [],
    }  # fmt: skip
    unfinished = {
        "id": text("compare-1"),
        "status": "running",
        "best": None,
        "choice": None,
        "score": None,
        "report": False,
    }
    return [row, row | unfinished]


def studies(text: Text = same) -> list[Json]:
    numbers = [{"name": ["entropy, k = 4,096", "熵，k = 4,096"], "value": 0.0151, "claimed": ["near 0", "接近 0"],
                "low": 0.0079, "high": 0.0286, "seeds": 3, "unit": ["", ""]}]  # fmt: skip
    summary = [text("The entropy of the weights falls from 0.665 to 0.0151."), "权重的熵从 0.665 降到 0.0151。"]
    found = []
    for n, verdict in enumerate(["holds", "conditions", "fails", "untold"]):
        result = {
            "name": verdict,
            "quick": n == 1,
            "finding": {"verdict": verdict, "summary": summary, "numbers": numbers},
        }
        found.append(_study(f"claim_{n}", text("Attention saturates without scaling"), result))
    return [*found, _study("clipping", "Clipping tames exploding gradients", None)]


def _study(name: str, what: str, result: Json | None) -> Json:
    return {"name": name, "what": what, "result": result, "message": None, "command": f"seqloom study {name}"}


def choices(text: Text = same) -> Json:
    models = ["lstm", "gpt", "mamba2", "ttt", "bert", "tfidf"]
    return {
        "tasks": [{"task": task, "what": "", "models": models, "usual": ["lstm", "bert"]} for task in TASKS],
        "models": [{"model": model, "what": ""} for model in models],
        "samples": [{"data": "sample:languages", "task": "classification", "what": text("19,000 names")}],
        "budgets": {"fit": ["minutes=1", "minutes=5"], "compare": ["minutes=5", "minutes=20"]},
    }


def looked(text: Text = same) -> Json:
    findings = [
        {"level": "ok", "message": text("17,405 rows, 16 labels"), "advice": ""},
        {
            "level": "warning",
            "message": "3,841 texts also occur with a different label",
            "advice": text("decide on one"),
        },
    ]
    return {"tasks": [], "task": "classification", "columns": [], "roles": {"text": text("name")}, "findings": findings}


def job(state: str, text: Text = same) -> Json:
    asked = {"kind": "compare", "data": text("sample:languages"), "models": ["lstm", "gpt"], "budget": "minutes=5"}
    share, result = (1.0, "compare-0") if state == "done" else (0.1, None)
    found = {"id": "j1", "kind": "compare", "state": state, "asked": asked, "message": None, "lines": []}
    return found | {"progress": share, "result": result}
