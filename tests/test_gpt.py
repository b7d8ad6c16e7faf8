"""What the options of the GPT promise beside the contract: the size of its memory, how far it sees, how it trains."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from support import digest, small_fit, text
from toys import close, each, network, tokens

from seqloom.core.batch import pad
from seqloom.core.state import detach_state
from seqloom.lab.cost import state_bytes
from seqloom.layers.positions import Rotary
from seqloom.models import gpt
from seqloom.runs.folder import RunFolder

Case = dict[str, Any]


def slots(state: Any) -> int:
    """That a state has, filled or free."""
    return max(keys.size(2) for keys, _ in state[-1])


@pytest.mark.parametrize("kv_heads", [0, 1, 2, 4])
@pytest.mark.parametrize("window", [0, 6])
def test_a_cache_holds_only_the_heads_of_keys_and_values_and_only_the_window(kv_heads: int, window: int) -> None:
    model = network("gpt", {"depth": 3, "kv_heads": kv_heads, "window": window}).float()
    with torch.no_grad():
        state = model.begin(tokens(2, 40))
    counters = 2 + bool(window)  # of 8 bytes in each row: read, written, and dropped where something was
    held = window - 1 if window else 40
    assert state_bytes(state) == 2 * (3 * 2 * (kv_heads or 4) * held * 4 * 4 + counters * 8)


@pytest.mark.long
@pytest.mark.parametrize("window", [1, 2, 5, 100])
@each(size=[1, 3, 90])
@each(learning=[False, True])
def test_with_a_window_the_state_is_bounded_whatever_was_read(window: int, size: int, learning: bool) -> None:
    model, state = network("gpt", {"depth": 1, "window": window}), None
    with torch.set_grad_enabled(learning):
        for piece in tokens(2, 450).split(size, dim=1):
            state = detach_state(model(piece, state)[1])
            assert slots(state) <= max(64, 2 * window)


def test_rows_that_stand_still_do_not_let_the_others_state_grow() -> None:
    model = network("gpt", {"depth": 1, "window": 5})
    with torch.no_grad():
        state, alone = None, [tokens(3, seed=1), tokens(400, seed=2)]
        for n in range(0, 400, 20):
            inputs, mask = pad([alone[0] if n == 0 else alone[0][:0], alone[1][n : n + 20]])
            _, state = model(inputs, state, mask)
            assert slots(state) <= 64
        after = tokens(2, 1, seed=3)
        outputs, _ = model(after, state)
        for row, read in enumerate(alone):
            close(outputs[row], model(torch.cat((read, after[row]))[None])[0][0, -1:])


def test_decoding_with_a_window_seldom_copies() -> None:
    model = network("gpt", {"depth": 1, "window": 50})
    with torch.no_grad():
        state: Any = model.begin(tokens(1, 200))
        rooms = {}
        for token in tokens(1, 200).split(1, dim=1):
            _, state = model(token, state)
            rooms[id(state[-1][0][0])] = state  # kept, so that no number is used twice
    assert len(rooms) <= 5


@pytest.mark.parametrize("case", [{}, {"preset": "gpt2"}, {"positions": "sinusoidal"}, {"kv_heads": 2}], ids=str)
def test_a_model_sees_depth_times_the_window_and_no_further(case: Case) -> None:
    depth, window = 2, 5
    model, ids = network("gpt", {"depth": depth, "window": window, **case}), tokens(1, 100)
    furthest = 99 - depth * (window - 1)
    with torch.no_grad():
        before = model(ids)[0][0, -1]
        for place, seen in ((furthest - 1, False), (furthest, True)):
            changed = ids.clone()
            changed[0, place] = (changed[0, place] + 1) % 11
            assert torch.equal(model(changed)[0][0, -1], before) is not seen


@pytest.mark.parametrize("case", [{"preset": "gpt2", "window": 5}, {"positions": "sinusoidal", "window": 5}], ids=str)
def test_a_window_works_with_positions_that_count(case: Case) -> None:
    model, ids = network("gpt", {**case, "context": 100}), tokens(3, 100)
    with torch.no_grad():
        whole, state, outputs = model(ids)[0], None, []
        for piece in ids.split([70, 1, 1, 9, 1, 18], dim=1):
            output, state = model(piece, state)
            outputs.append(output)
    close(torch.cat(outputs, dim=1), whole)


@pytest.mark.parametrize(
    ("case", "limit", "reach"),
    [
        ({}, 32, None),
        ({"window": 8}, None, None),  # scores see distances within the window only: no end
        ({"window": 8, "positions": "sinusoidal"}, 32, None),
        ({"window": 8, "positions": "learned"}, 32, 32),
    ],
    ids=str,
)
def test_only_a_window_with_rotary_positions_lets_a_model_read_for_ever(
    case: Case, limit: int | None, reach: int | None
) -> None:
    model = network("gpt", {"context": 32, **case})
    assert (model.limit, model.reach) == (limit, reach)


def test_rotary_angles_are_as_exact_after_a_billion_tokens_as_at_the_beginning() -> None:
    rotary, (q, k) = Rotary(32), torch.randn(2, 1, 1, 20, 32, generator=torch.Generator().manual_seed(0))

    def scores(first: int) -> torch.Tensor:
        angles = rotary.angles(torch.arange(first, first + 20))
        return Rotary.turn(q, angles) @ Rotary.turn(k, angles).mT

    torch.testing.assert_close(scores(1_000_000_007), scores(0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("heads", "width"), [(3, 126), (4, 128), (5, 130), (6, 132), (100, 200)])
def test_without_a_width_the_nearest_that_the_heads_can_share_is_taken(heads: int, width: int) -> None:
    assert gpt.Config.model_validate({"heads": heads}).width == width


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"heads": 3, "width": 128}, r"width=128 must be a multiple of 2 x heads \(6\)"),
        ({"heads": 4, "kv_heads": 3}, "heads=4 must be a multiple of kv_heads=3"),
    ],
    ids=str,
)
def test_heads_that_cannot_be_shared_out_are_refused(case: Case, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        gpt.Config.model_validate(case)


def test_a_windowed_model_carries_its_state_through_training_and_over_an_interruption(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(text(3000))
    options = ["model.window=6", "model.kv_heads=1", "train.steps=40", "train.save_every=10", "train.log_every=1"]
    options += ["train.evaluate_every=20"]
    whole = small_fit(tmp_path / "book.txt", tmp_path / "whole", "gpt", options)
    assert "state carried through the whole stream" in whole.summary["scores"]["valid"]["protocol"]
    shutil.copytree(tmp_path / "whole", tmp_path / "broken")
    folder = RunFolder(tmp_path / "broken")
    (folder.path / "summary.json").unlink()
    shutil.rmtree(folder.checkpoints()[0][1])
    assert folder.checkpoints()[0][0] == 30
    small_fit(tmp_path / "book.txt", tmp_path / "broken", "gpt", options)
    assert digest(tmp_path / "broken") == digest(tmp_path / "whole")


@pytest.mark.parametrize("truncation", ["random", "full"])
def test_a_windowed_model_can_be_truncated_like_a_recurrent_one(tmp_path: Path, truncation: str) -> None:
    (tmp_path / "book.txt").write_text(text(3000))
    options = ["model.window=6", f"task.truncation={truncation}", "task.stretch=200", "train.steps=4"]
    run = small_fit(tmp_path / "book.txt", tmp_path / "run", "gpt", options)
    assert 0 < run.summary["scores"]["valid"]["loss"] < 6
