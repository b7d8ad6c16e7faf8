"""What a user's editor and type checker see: every public verb, with mypy's strict mode."""

import seqloom
from seqloom.compare.comparison import Comparison
from seqloom.data.findings import Finding
from seqloom.runs.run import Run


def main() -> None:
    findings: list[Finding] = seqloom.doctor("book.txt", task="language_model")
    run: Run = seqloom.fit(
        task="language_model", data="book.txt", model="lstm", out="runs/book", overrides=["train.steps=2"]
    )
    again: Run = seqloom.load("runs/book", int8=True)
    found: Comparison = seqloom.compare(data="book.txt", models=["lstm", "gpt"], out="runs/compare", seeds=2)
    named = seqloom.doctor("reviews.csv", task="classification", columns={"text": 2, "label": "stars"}, separator="|")
    scores = again.evaluate("other.txt", columns={"text": "body"})
    rows = list(again.predict("other.csv", columns={"text": "body"}))
    print(named, scores, rows)
    print(findings, run.summary, again.generate("Once"), found.report, seqloom.__version__)
