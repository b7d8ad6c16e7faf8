"""The real weights, where `seqloom weights` has installed them: equal to transformers, and worth starting from.

What is not installed is not collected.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from test_pretrained import encoder

from seqloom.decode.pick import Choice
from seqloom.decode.stream import stream
from seqloom.runs.run import load
from seqloom.runs.source import cache_folder
from seqloom.weights.packages import is_installed, place_of

CACHE = cache_folder()
Test = TypeVar("Test", bound=Callable[[], None])
PROMPTS = ["The capital of France is", "Once upon a time", "def fibonacci(n):"]
TEXT = "The history of the transformer begins with attention. " * 12 + "Paris is the capital of France."


def only_with(name: str) -> Callable[[Test], Test]:
    """A test that is not collected unless this set is installed."""

    def mark(test: Test) -> Test:
        test.__test__ = is_installed(name, CACHE)  # type: ignore[attr-defined]
        return test

    return mark


@only_with("smollm2")
def test_smollm2_has_the_logits_of_transformers_and_writes_the_same_50_tokens() -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    smollm2 = place_of("smollm2", CACHE)
    where = {"gguf_file": smollm2.name}
    theirs = AutoModelForCausalLM.from_pretrained(smollm2.parent, dtype=torch.float32, **where).eval()
    tokenizer = AutoTokenizer.from_pretrained(smollm2.parent, **where)
    run = load("weights:smollm2")
    ids = tokenizer(TEXT, return_tensors="pt").input_ids
    assert run.tokenizer.encode(TEXT).tolist() == ids[0].tolist()
    with torch.inference_mode():
        assert (run.model(ids)[0] - theirs(ids).logits).abs().max() < 1e-4
    for prompt in PROMPTS:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        how = {"max_new_tokens": 50, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
        wanted = theirs.generate(ids, attention_mask=torch.ones_like(ids), **how)[0, ids.size(1) :].tolist()
        written = stream(run.model, ids.tolist(), max_new=50, choose=Choice(temperature=0))
        assert [int(token) for token in written] == wanted


@only_with("minilm")
def test_minilm_has_the_vectors_of_transformers_for_one_text_and_for_two() -> None:
    from transformers import AutoModel, AutoTokenizer

    minilm = place_of("minilm", CACHE)
    theirs, tokenizer = AutoModel.from_pretrained(minilm).eval(), AutoTokenizer.from_pretrained(minilm)
    model, task = encoder("weights:minilm")
    own = task.tokenizer
    texts = ["A man is playing a large flute; he can't stop!", "Someone plays an instrument, naïvely."]
    for chosen in (texts[:1], texts):
        wanted = tokenizer(*chosen, return_tensors="pt")
        read = task.sequence([np.append(own.encode(text), own.eos) for text in chosen])
        assert read.tolist() == wanted.input_ids[0].tolist()
        with torch.inference_mode():
            found = model.represent(torch.from_numpy(read)[None])
            assert (found - theirs(**wanted).last_hidden_state).abs().max() < 1e-5
