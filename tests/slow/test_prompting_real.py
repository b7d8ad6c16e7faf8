"""Prompting with SmolLM2, where `seqloom weights` has installed it; else it is not collected."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from test_pretrained_real import only_with

import seqloom

GOOD = ["wonderful", "delightful", "brilliant", "a masterpiece", "great fun"]
BAD = ["terrible", "boring", "awful", "a waste of time", "dreadful"]


@only_with("smollm2")
def test_smollm2_tells_praise_from_blame(tmp_path: Path) -> None:
    rows = [(f"The film was {word}, and the {part} too.", label)
            for part in ("music", "story", "ending", "cast")
            for words, label in ((GOOD, "positive"), (BAD, "negative")) for word in words]  # fmt: skip
    texts, labels = (list(column) for column in zip(*rows, strict=True))
    options = {"train.method": "prompt", "task.shots": 2}
    run = seqloom.fit(data=(texts, labels), task="classification", start="weights:smollm2", out=tmp_path / "run",
                      options=options, quiet=True)  # fmt: skip
    new = ["I loved every minute of it.", "An excellent, moving picture.", "I hated it.", "A dull and stupid mess."]
    found = [row["label"] for row in run.predict(texts=new)]
    assert found == ["positive", "positive", "negative", "negative"]


@only_with("smollm2")
def test_smollm2_answers_in_a_chat() -> None:
    run = seqloom.load("weights:smollm2")
    answer = run.generate("What is the capital of France?", chat=True, temperature=0, max_new=30)
    assert "Paris" in answer and "<|im_end|>" not in answer
