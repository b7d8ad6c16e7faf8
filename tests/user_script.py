"""What a user's editor and type checker see: every public verb and estimator, with mypy's strict mode."""

import numpy as np

import seqloom
from seqloom import Forecaster, SequenceClassifier, SequenceTagger
from seqloom.adapt.prompting import Curve
from seqloom.compare.comparison import Comparison
from seqloom.compare.study import Study
from seqloom.data.findings import Finding
from seqloom.runs.run import Run

TEXTS, LABELS = ["a good film", "a bad film"], [1, 0]


def with_files() -> None:
    findings: list[Finding] = seqloom.doctor("book.txt", task="language_model")
    run: Run = seqloom.fit(
        task="language_model", data="book.txt", model="lstm", out="runs/book", overrides=["train.steps=2"]
    )
    again: Run = seqloom.load("runs/book", int8=True)
    found: Comparison = seqloom.compare(data="book.txt", models=["lstm", "gpt"], out="runs/compare", seeds=2)
    study: Study = seqloom.compare_all({"a": "book.txt", "b": "other.txt"}, models=["lstm", "gpt"], seeds=2)
    print(study.best, study.comparisons["a"].report)
    curve: Curve = seqloom.prompt("weights:smollm2", "reviews.csv", shots=[0, 4], draws=2, out="runs/curve")
    print(curve.points[0]["accuracy"])
    named = seqloom.doctor("reviews.csv", task="classification", columns={"text": 2, "label": "stars"}, separator="|")
    scores = again.evaluate("other.txt", columns={"text": "body"})
    rows = list(again.predict("other.csv", columns={"text": "body"}))
    print(named, scores, rows)
    print(findings, run.summary, again.generate("Once"), found.report, seqloom.__version__)


def with_data_in_memory() -> None:
    data = (TEXTS, LABELS)
    findings: list[Finding] = seqloom.doctor(data, task="classification")
    model = {"name": "gru", "width": 32}
    run: Run = seqloom.fit(data=data, model=model, train={"steps": 20}, options={"task.longest": 16})
    found: Comparison = seqloom.compare(data=data, models="tfidf,gru", tokenizer={"kind": "words"}, quiet=True)
    rows = run.predict(TEXTS)
    print(findings, run, run.history, run.evaluate(data)["accuracy"], rows[0]["label"], run.model.parameters(), found)


def with_estimators() -> None:
    classifier: SequenceClassifier = SequenceClassifier("tfidf", random_state=1).fit(TEXTS, LABELS)
    shares: np.ndarray = classifier.predict_proba(TEXTS)
    tagger: SequenceTagger = SequenceTagger({"name": "gru"}, train={"steps": 20}).fit([["Ada"]], [["B-PER"]])
    tags: list[list[str]] = tagger.predict([["Ada"]])
    forecaster: Forecaster = Forecaster(horizon=24, options={"data.season": 24}).fit(np.zeros(100))
    lower, upper = forecaster.predict_interval(0.9)
    run: Run = forecaster.run_
    print(
        classifier.predict(TEXTS),
        shares,
        tags,
        tagger.score([["Ada"]], [["O"]]),
        forecaster.predict(3),
        lower,
        upper,
        run,
    )
