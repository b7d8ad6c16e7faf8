"""One token at a time on several cores gives what the readable block gives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from toys import alive, close, network, tokens

from seqloom.core.taps import record

OPTIONS = [
    {"preset": "modern"},
    {"preset": "gpt2"},
    {"preset": "gpt2", "pre_norm": False},
    {"preset": "llama", "kv_heads": 2},
    {"kv_heads": 1, "window": 4},
]


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_token_in_blocks_equals_the_whole_block(two_threads: None, options: dict, rows: int) -> None:
    model, ids = alive(network("gpt", {**options, "context": 32})), tokens(rows, 9)
    with torch.inference_mode():
        state = model.begin(ids[:, :-1])
        quick, _ = model(ids[:, -1:], state)
        with record(model):  # a watched model takes the readable path
            readable, _ = model(ids[:, -1:], model.begin(ids[:, :-1]))
    close(quick, readable)
