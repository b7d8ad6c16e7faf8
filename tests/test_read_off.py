"""What studies 24 and 25 read off models: probes, occlusion, attention, inner steps; and their verdicts."""

from __future__ import annotations

import pytest
import torch

from seqloom.studies import _fast_weights, _reading, memory_kinds, time_line
from seqloom.studies._paragraphs import Texts, paragraphs
from seqloom.studies._study import Measured
from seqloom.studies._training import network

TEXT = 'x\n\na "b(c" d)\ne\n\nf ("g' + "." * 20


def texts(written: str) -> Texts:
    characters = "".join(sorted(set(written)))
    ids = torch.tensor([characters.index(letter) for letter in written])
    return Texts(ids, ids.repeat(2), len(characters), characters, "")


def between(low: float, high: float) -> Measured:
    return Measured(("a", "甲"), (low + high) / 2, low=low, high=high, seeds=4)


def test_quotations_brackets_and_columns_begin_anew_with_a_paragraph() -> None:
    half, _ = paragraphs(texts(TEXT), 4, 20)
    first = half.facts[0, :18]  # a "b(c" d)\ne\n\nf ("g
    assert [int(x) for x in first[:, 0]] == [0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert [int(x) for x in first[:, 1]] == [0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1]
    assert [int(x) for x in first[:, 2]] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1, 0, 0, 1, 2, 3]


def test_a_probe_of_a_window_reads_its_characters_and_no_earlier_ones() -> None:
    ids = torch.randint(5, (40, 30), generator=torch.Generator().manual_seed(0))
    seen = _reading.window(ids, 3, 5)[:, 10:].flatten(0, 1)
    for lag, least, most in ((2, 1.0, 1.0), (3, 0.0, 0.4)):
        wanted = ids[:, 10 - lag : 30 - lag].flatten()
        found = _reading.Probe(seen, torch.nn.functional.one_hot(wanted, 5)).read(seen).argmax(1)
        assert least <= float((found == wanted).double().mean()) <= most


def test_what_a_window_of_attention_cannot_see_has_no_influence() -> None:
    model = network("gpt", 5, 0, width=16, depth=1, heads=2, window=3, preset="llama").eval()
    ids = torch.randint(5, (4, 10), generator=torch.Generator().manual_seed(0))
    moved = _reading.influence(model, ids, torch.ones(5), 3, torch.Generator().manual_seed(0))
    assert moved[:, :-2].abs().max() < 1e-9 < moved[:, -2:].max()


def test_readings_of_attention_agree_with_themselves() -> None:
    weights = torch.rand(2, 2, 8, 6, 6).tril().softmax(-1)
    found = _reading.agreement(weights, weights[..., -1, :-1].mean((0, 1)))
    assert found["mean"] == (pytest.approx(1.0), 1.0)
    assert _reading.rank_correlation(torch.arange(5.0)[None], -torch.arange(5.0)[None]) == pytest.approx(-1.0)


def test_inner_steps_turned_round_raise_the_inner_loss() -> None:
    ids = torch.randint(9, (4, 12), generator=torch.Generator().manual_seed(0))
    model = network("ttt", 9, 0, width=16, depth=1, heads=2).eval()
    before = _fast_weights.inner_change(model, ids)
    _fast_weights.turn_round(model)
    assert before < 1 < _fast_weights.inner_change(model, ids)
    assert _fast_weights.as_linear_attention(0) < 1e-12


def test_every_key_is_asked_for_once_and_its_value_is_wanted() -> None:
    inputs, values = memory_kinds.draw(3, 8, torch.Generator().manual_seed(0))
    for row, wanted in zip(inputs.tolist(), values.tolist(), strict=True):
        pairs = dict(divmod(token, memory_kinds.VALUES) for token in row[:8])
        assert [pairs[token - memory_kinds.KEYS * memory_kinds.VALUES] for token in row[8:]] == wanted


def test_verdicts_follow_whole_intervals() -> None:
    above, across, below, kept = between(0.1, 0.3), between(-0.1, 0.1), between(-0.3, -0.1), between(0.95, 1)
    kinds = [
        memory_kinds.verdict(True, [above, above], [kept]),
        memory_kinds.verdict(True, [above, across], [kept]),
        memory_kinds.verdict(True, [above, above], [between(0.5, 0.95)]),
        memory_kinds.verdict(False, [above, above], [kept]),
        memory_kinds.verdict(True, [below, below], [kept]),
        memory_kinds.verdict(True, [across, below], [kept]),
    ]
    assert kinds == ["holds", "conditions", "conditions", "fails", "fails", "untold"]
    gains = [(above, 0.05), (above, 0.0)]
    assert time_line.verdict(gains) == "holds" and time_line.verdict([(below, 0.0), (above, 0.4)]) == "fails"
    assert time_line.verdict([*gains, (across, 0.0)]) == "conditions" and time_line.verdict([(across, 0.0)]) == "untold"
