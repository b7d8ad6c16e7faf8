"""Forecasting: the same for every model, strategy and output; nothing leaks, nothing is invented, and errors add up."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from support import foreign, in_chinese
from toys import Case, ToyScale, ToySeries, accepted, alive, close, each, every_case, title

from seqloom.core.errors import UserError
from seqloom.core.task import Order
from seqloom.runs.registry import find_config
from seqloom.tasks.forecasting.leakage import changed, probe
from seqloom.tasks.forecasting.rollout import follow, read_forced, read_history
from seqloom.tasks.forecasting.task import Config, Forecasting
from seqloom.tasks.forecasting.windows import SeriesWindows
from seqloom.train.loop import Objective

pytestmark = pytest.mark.long

STRATEGIES: list[dict[str, Any]] = [
    {"strategy": "recursive"},
    {"strategy": "direct"},
    {"strategy": "direct", "asked": "all"},
    {"strategy": "direct", "direct": "steps"},
    {"strategy": "combined", "block": 3},
]
HORIZON, CONTEXT = 7, 9
LAST = 43  # the number of the one window of the series that is shorter than a window
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: " ".join(map(str, s.values())))
each_output = each(output=["point", "quantiles", "gauss", "student", "bins"])
each_scale = each(scale=["none", "last", "standard"])


def task(
    targets: int = 2, past: int = 1, known: int = 2, gaps: bool = True, season: int = 4, **options: Any
) -> Forecasting:
    given = {"horizon": HORIZON, "context": CONTEXT, "paths": 4, "drawn": 3, **options}
    return Config.model_validate(given).build(ToyScale(targets, past, known, season, gaps))


def rows(
    own: Forecasting, lengths: tuple[int, ...] = (40, 33, 12), begins: Any = 0, missing: float = 0.1, seed: int = 0
) -> Any:
    """The last series is shorter than a window."""
    return ToySeries(own.scale, lengths, begins, seed, missing)


def model_of(name: str, options: dict[str, Any], own: Forecasting | None = None) -> Any:
    own = own or task()
    config = find_config("models", name).model_validate({"width": 16, **options})
    return alive(config.reading(own.config.tokens_per_row).assemble(own)).double()


def cases(**options: Any) -> list[Case]:
    return [case for case in every_case() if accepted(lambda *c: model_of(*c, task(**options)), *case)]


DIRECT, RECURSIVE = cases(strategy="direct"), cases(strategy="recursive")
CAUSAL = [case for case in RECURSIVE if model_of(*case, task(strategy="recursive")).joins]
FEW: list[Case] = [("window", {"span": 4}), ("lstm", {}), ("gpt", {}), ("transformer", {}), ("seq2seq", {})]
each_few = pytest.mark.parametrize("case", FEW, ids=title)


def batch_of(own: Forecasting, data: Any, index: Any) -> Any:
    windows = own._windows(data)
    return own.collate(windows, windows.trained(), np.asarray(index))


def pairs() -> list[Any]:
    found = [
        (case, s) for s in STRATEGIES for case in (DIRECT if s["strategy"] == "direct" and len(s) == 1 else RECURSIVE)
    ]
    found = [(case, s) for case, s in found if s.get("asked") != "all" or case in CAUSAL]
    return [pytest.param(case, s, id=f"{title(case)} {' '.join(map(str, s.values()))}") for case, s in found]


each_pair = pytest.mark.parametrize(("case", "strategy"), pairs())
each_trained_pair = pytest.mark.parametrize(
    ("case", "strategy"), [pair for pair in pairs() if list(model_of(*pair.values[0]).parameters())]
)


def test_every_model_takes_part() -> None:
    assert {name for name, _ in DIRECT} >= {
        "bert",
        "gpt",
        "lstm",
        "gru",
        "rnn",
        "seq2seq",
        "transformer",
        "mingru",
        "window",
    }
    assert "ngram" not in {name for name, _ in RECURSIVE}
    assert {name for name, _ in RECURSIVE} >= {
        "gpt",
        "lstm",
        "gru",
        "rnn",
        "seq2seq",
        "transformer",
        "mingru",
        "window",
    }
    with pytest.raises(UserError, match=r"forecasting needs a model that is causal or encoder-decoder"):
        model_of("bert", {}, task(strategy="recursive"))


@each_pair
@each_scale
def test_nothing_of_the_future_reaches_a_forecast(case: Case, strategy: dict[str, Any], scale: str) -> None:
    """Every model, strategy and scaling of windows; a series shorter than a window among them."""
    if scale != "none" and strategy.get("asked") == "all":
        with pytest.raises(ValueError, match="by later values"):
            task(window_scale=scale, **strategy)
        return
    own = task(window_scale=scale, **strategy)
    model, data = model_of(*case, own).float(), rows(own)
    found = own.probe(model, data)
    assert found.moved == 0 and found.heard and found.forecasts == 9 and "none changed" in str(found), str(found)


def test_the_probe_finds_a_leak() -> None:
    own = task(targets=1)
    data = rows(own, (40,))
    found = probe(lambda r, o: own._windows(r).future(*o) + 0.0, data, [20])
    assert found.moved == 3 and found.largest > 1 and "3 of 3 forecasts changed" in str(found)


@pytest.mark.parametrize("case", CAUSAL, ids=title)
@pytest.mark.parametrize("strategy", [STRATEGIES[0], STRATEGIES[2], STRATEGIES[4]], ids=str)
def test_while_it_learns_no_position_sees_what_it_is_asked_for(case: Case, strategy: dict[str, Any]) -> None:
    own = task(past=0, **strategy)
    model, data = model_of(*case, own), rows(own, (40,))
    for moment in (12, 15, 19):
        batches = [batch_of(own, r, [3]) for r in (data, changed(data, [moment]))]  # the window from 3 to 19
        said = [torch.cat([part for part in read_forced(model, double(b)) if part is not None], 1)[0] for b in batches]
        times = [*range(3, 12), *range(11, 11 + batches[0].inputs.size(1))]  # of each position
        seen = [n for n, time in enumerate(times) if time < moment]
        assert seen
        close(said[0][seen], said[1][seen])


def double(batch: Any) -> Any:
    """In the precision of the models here."""
    for name in ("inputs", "targets", "context", "before"):
        value = getattr(batch, name)
        setattr(batch, name, None if value is None else value.double())
    return batch


@each_pair
def test_padding_and_company_change_nothing(case: Case, strategy: dict[str, Any]) -> None:
    """Rows of one batch, one of them with a short history, say what each says alone."""
    own = task(**strategy)
    model, data = model_of(*case, own), rows(own)
    index = [0, 30, 40, LAST]  # the last window is that of the short series
    whole = own.loss(model, double(batch_of(own, data, index)))
    single = [own.loss(model, double(batch_of(own, data, [n]))) for n in index]
    assert whole.count == sum(step.count for step in single) and whole.tokens == sum(
        step.tokens or 0 for step in single
    )
    close(whole.loss, sum(step.loss for step in single))


@pytest.mark.parametrize("case", DIRECT, ids=title)
def test_the_one_vector_at_the_end_is_that_of_each_row_alone(case: Case) -> None:
    """And of a model that reads one way what it says at its last position."""
    own = task()
    model, batch = model_of(*case, own), double(batch_of(own, rows(own), [0, 5, LAST]))
    together = model.final(batch.context, batch.context_mask)
    assert batch.context_mask is not None
    for n, size in enumerate(batch.context_mask.sum(1).tolist()):
        alone = batch.context[n : n + 1, :size]
        close(together[n], model.final(alone)[0])
        if model.kind == "causal":
            close(together[n], model(alone)[0][0, -1])


@each_trained_pair
def test_every_weight_learns_that_is_there(case: Case, strategy: dict[str, Any]) -> None:
    own = task(**strategy)
    model, data = model_of(*case, own), rows(own)
    own.loss(model, double(batch_of(own, data, [0, 5, 40]))).loss.backward()
    assert not [name for name, p in model.named_parameters() if p.grad is None]


@pytest.mark.parametrize("case", RECURSIVE, ids=title)
@pytest.mark.parametrize("strategy", [STRATEGIES[0], STRATEGIES[4]], ids=str)
def test_free_running_on_what_came_is_teacher_forcing(case: Case, strategy: dict[str, Any]) -> None:
    """Step by step from a state = all at once: with the truth fed back, both say the same."""
    own = task(flags=False, **strategy)
    model, data = model_of(*case, own), rows(own, missing=0.0)
    batch = double(batch_of(own, data, [0, 7, LAST]))
    _, forced = read_forced(model, batch)
    _, last, state = read_history(model, batch)
    size = own.config.size
    came = batch.targets[:, ::size]
    stepped = follow(model, batch.inputs, own.layout, last, state, lambda _, n: came[:, n])
    close(torch.stack(stepped, 1), forced[:, ::size])


@each_few
@each_strategy
@each_output
def test_forecasts_in_company_are_those_alone(case: Case, strategy: dict[str, Any], output: str) -> None:
    """Also quantiles from paths: the random numbers belong to the window."""
    own = task(output=output, channels="apart" if output in ("gauss", "point") else "joint", **strategy)
    model, data = model_of(*case, own).float(), rows(own)
    origins = np.array([0, 1, 2, 0]), np.array([11, 20, 5, 40])
    guesses, bands = own.forecast(model, data, origins, quantiles=True)
    assert guesses.shape == (4, HORIZON, 2) and (bands is None) == (output == "point")
    for n in range(4):
        alone, band = own.forecast(model, data, (origins[0][n : n + 1], origins[1][n : n + 1]), quantiles=True)
        np.testing.assert_allclose(alone[0], guesses[n], rtol=1e-4, atol=1e-4)
        if bands is not None and band is not None:
            assert (np.diff(band, axis=-1) >= 0).all(), "quantiles do not cross"
            np.testing.assert_allclose(band[0], bands[n], rtol=1e-3, atol=1e-3)


@each_few
@each_strategy
def test_accumulated_gradients_equal_those_of_one_big_batch(case: Case, strategy: dict[str, Any]) -> None:
    own = task(output="gauss", **strategy)
    model, data = model_of(*case, own), rows(own)
    objective = Objective(model, own)
    big = objective(double(batch_of(own, data, range(8))), None)
    steps = [objective(double(batch_of(own, data, part)), None) for part in np.split(np.arange(8), 4)]
    assert sum(step.count for step in steps) == big.count
    close(sum(step.loss.detach() for step in steps), big.loss.detach())


@pytest.mark.parametrize("channels", ["joint", "apart"])
def test_every_window_comes_once_in_an_epoch_whatever_the_processes(channels: str) -> None:
    own = task(channels=channels)
    data = rows(own)
    windows = own._windows(data)
    total = len(windows.trained()) * (2 if channels == "apart" else 1)
    assert total == (40 - 15 + 33 - 15 + 1) * (2 if channels == "apart" else 1)
    steps = total // 4
    one = [step[0] for step in islice(own.batches(data, Order(4), False), 2 * steps)]
    assert len({batch.context[n].numpy().tobytes() for batch in one[:steps] for n in range(4)}) == steps * 4
    two = [
        list(islice(own.batches(data, Order(4, world=2, rank=rank, accumulate=2), False), 2 * steps)) for rank in (0, 1)
    ]
    for n, batch in enumerate(one):
        torch.testing.assert_close(
            batch.targets, torch.cat([b.targets for rank in two for b in rank[n]]), equal_nan=True
        )
    later = next(own.batches(data, Order(4, start=steps + 3), False))[0]
    torch.testing.assert_close(later.targets, one[steps + 3].targets, equal_nan=True)


def test_what_a_window_holds_is_what_stands_in_the_series() -> None:
    own = task(targets=1, past=1, known=1, strategy="combined", block=3, flags=True)
    data = rows(own, (40,))
    batch = batch_of(own, data, [4])  # origin at 4 + 9
    values, flags = np.nan_to_num(data.values[0][:, 0]), np.isfinite(data.values[0][:, 0])
    context, inputs = batch.context[0].numpy(), batch.inputs[0].numpy()
    assert batch.context_mask is None and context.shape == (9, 1 + 1 + 1 + 3) and inputs.shape == (7, 6)
    for place in range(9):
        t = 4 + place
        wanted = [values[t], flags[t], data.past[0][t, 0], *data.known[0][t + 1 : t + 4, 0]]
        np.testing.assert_allclose(context[place], wanted, rtol=1e-6)
    np.testing.assert_allclose(inputs[0], context[8])
    for place in range(1, 7):
        t = 12 + place
        within = np.arange(t + 1, t + 4) < 13 + 7
        known = np.where(within, data.known[0][t + 1 : t + 4, 0], 0)
        wanted = [values[t], flags[t], data.past[0][12, 0], *known]  # beside: as it was last
        np.testing.assert_allclose(inputs[place], wanted, rtol=1e-6)
        came = np.where(within, data.values[0][t + 1 : t + 4, 0], np.nan)
        np.testing.assert_allclose(batch.targets[0, place, :, 0], came)


@each_scale
def test_the_scale_of_a_window_is_undone_exactly(scale: str) -> None:
    """A model that says what it was asked for gives back what came."""
    own = task(window_scale=scale, strategy="direct")
    windows = own._windows(rows(own))
    batch = windows.cut(np.array([0, 2]), np.array([20, 5]), truth=True)
    undone = batch.targets[:, 0].numpy() * batch.spread + batch.centre
    np.testing.assert_allclose(undone, windows.future(np.array([0, 2]), np.array([20, 5])), atol=1e-6)
    history = batch.context[0, :, :2]
    there = batch.context[0, :, 2:4].bool()
    if scale == "standard":
        for n in range(2):
            assert abs(float(history[there[:, n], n].mean())) < 1e-5
            assert abs(float(history[there[:, n], n].std(correction=0)) - 1) < 1e-4
    if scale == "last":
        assert all(float(history[there[:, n], n][-1]) == 0 for n in range(2))


def test_a_constant_or_an_empty_history_is_left_as_it_is() -> None:
    own = task(targets=1, past=0, known=0, window_scale="standard")
    data = rows(own, (40,))
    data.values[0][:20] = 3.5
    data.values[0][20:30] = np.nan
    windows = SeriesWindows(data, own.layout, CONTEXT, HORIZON, "standard")
    batch = windows.cut(np.array([0, 0]), np.array([15, 30]), truth=True)
    assert batch.centre.flatten().tolist() == [3.5, 0.0] and batch.spread.flatten().tolist() == [1.0, 1.0]
    assert batch.context.isfinite().all() and not batch.context[..., 0].any()


@each(training=["free", "mixed"])
@pytest.mark.parametrize("strategy", [STRATEGIES[0], STRATEGIES[4]], ids=str)
@each_few
def test_free_and_mixed_training_give_every_weight_a_gradient(
    case: Case, strategy: dict[str, Any], training: str
) -> None:
    own = task(training=training, share=0.4, **strategy)
    model, data = model_of(*case, own).train(), rows(own)
    step = own.loss(model, double(batch_of(own, data, [0, 5, LAST])))
    step.loss.backward()
    assert step.loss.isfinite() and all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    blocks = -(-HORIZON // own.config.size)
    asked = int(batch_of(own, data, [0, 5, LAST]).targets[:, :: own.config.size][:, :blocks].isfinite().sum())
    before = int(batch_of(own, data, [0, 5, LAST]).before.isfinite().sum()) if model.joins else 0
    assert step.count == asked + before


@each_few
@each_strategy
def test_an_example_of_any_size_can_be_learned_from(case: Case, strategy: dict[str, Any]) -> None:
    """To measure what models cost."""
    for training in ("forced", "mixed") if strategy["strategy"] != "direct" else ("forced",):
        own = task(training=training, **strategy)
        model = model_of(*case, own).float().train()
        for count, length in ((1, 9), (2, 14)):
            batch = own.example(count, length)
            step = own.loss(model, batch)
            step.loss.backward()
            assert step.loss.isfinite() and batch.inputs.size(1) >= length and batch.context.size(1) == length


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": (0.5, 0.1)}, "must ascend"),
        ({"strategy": "combined", "block": 9}, "longer than horizon"),
        ({"asked": "all", "window_scale": "last"}, "by later values"),
        ({"strategy": "direct", "direct": "steps", "asked": "all"}, "only future positions"),
        ({"strategy": "direct", "training": "free"}, "direct does not"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task(**options)


def test_what_is_too_short_or_missing_is_said() -> None:
    own = task()
    model = model_of("gru", {}, own)
    told = own.check_rows(model, {"train": rows(own, (40, 12, 5)), "test": rows(own, (40, 12, 5), (30, 8, 3))})
    assert told is not None
    assert "1 of 3 train series are shorter than task.horizon=7 and not trained on" in told
    assert "1 of 3 training series are shorter than context + horizon = 16: one window each" in told
    assert "2 of 3 test series are shorter than task.horizon=7 and not scored" in told
    assert "values are missing: read as 0 and excluded from the loss" in told
    with pytest.raises(UserError, match=r"the test split: at most 6 points, fewer than task\.horizon=7"):
        own.check_rows(model, {"train": rows(own), "test": rows(own, (40, 33, 12), (34, 28, 9))})
    with pytest.raises(UserError, match=r"no series of the training set has more than task\.horizon=7 points"):
        own.check_rows(model, {"train": rows(own, (7, 6))})
    small = find_config("models", "gpt").model_validate({"width": 16, "context": 8}).assemble(own)
    with pytest.raises(UserError, match=r"set model\.context=9"):
        own.check_rows(small, {"train": rows(own)})
    every = task(asked="all")
    with pytest.raises(UserError, match=r"task\.asked=all: this model encodes the whole history"):
        every.check_rows(model_of("bert", {}, every), {"train": rows(every)})


@pytest.mark.parametrize("case", [FEW[0], FEW[3]], ids=title)
@each_strategy
@each_output
def test_scores_with_baselines_and_errors_by_horizon(case: Case, strategy: dict[str, Any], output: str) -> None:
    own = task(output=output, scored=6, **strategy)
    model, data = model_of(*case, own).float(), rows(own)
    test = rows(own, (50, 40, 30), (40, 25, 12))
    scores = own.evaluate(model, test, naive=own.naive(data))
    assert np.isfinite(scores["mse"]) and scores["rmse"] == pytest.approx(scores["mse"] ** 0.5)
    assert np.mean(scores["pieces"]) == pytest.approx(scores["mse"])
    assert set(scores["baselines"]) == {
        "last value",
        "drift",
        "seasonal naive",
        "moving average",
        "autoregression",
        "naive2",
    }
    assert len(scores["horizon"]["rmse"]) == HORIZON == len(scores["horizon"]["inside"])
    assert np.mean(np.square(scores["horizon"]["rmse"])) == pytest.approx(scores["mse"], rel=0.2)  # gaps weigh a little
    assert ("coverage" in scores) == (output != "point") and scores["baselines"]["naive2"]["owa"] == pytest.approx(1)
    assert "6 of" in scores["protocol"] and "rolling origin" in scores["protocol"]
    quick = own.evaluate(model, test, quick=True)
    assert set(quick) == {"mse", "mae", "mase", "smape", "protocol"}
    brief = own.evaluate(model, test, brief=True)
    assert "baselines" not in brief and brief["mse"] == scores["mse"]


def test_a_series_of_tokens_can_be_counted() -> None:
    """What comes again is forecast by an n-gram as well as its bins allow; in company as alone, with no look ahead."""
    own = task(targets=1, past=0, known=0, gaps=False, strategy="recursive", output="bins", bins=30, scored=5)
    assert own.vocabulary == 30 and not hasattr(task(strategy="recursive", output="bins"), "vocabulary")
    wave = np.tile([-1.5, -0.4, 0.1, 0.9, 1.6, 0.4], 20).astype(np.float32)[:, None]
    data = rows(own, (120,), 90)
    data.values = [wave]
    model = find_config("models", "ngram").model_validate({"order": 4}).assemble(own)
    assert not model.descends
    model.observe([torch.from_numpy(own.stream(data))])
    scores = own.evaluate(model, data, naive=own.naive(data))
    assert scores["rmse"] < 0.1
    assert own.probe(model, data).moved == 0
    origins = np.array([0, 0]), np.array([40, 51])
    both = own.forecast(model, data, origins, quantiles=True)
    alone = own.forecast(model, data, (origins[0][1:], origins[1][1:]), quantiles=True)
    np.testing.assert_allclose(both[0][1], alone[0][0], rtol=1e-5)
    np.testing.assert_allclose(both[1][1], alone[1][0], rtol=1e-5)
    with pytest.raises(UserError, match="counts the tokens of running text"):
        find_config("models", "ngram").model_validate({}).assemble(task(strategy="recursive"))


@each(output=["point", "quantiles"])
def test_a_report_shows_forecasts_beside_the_actual_values_in_their_own_units(output: str) -> None:
    own = task(output=output)
    some, model = rows(own), model_of("gru", {}, own).float()
    found = own.showcase(model, some)
    assert (
        found["kind"] == "forecasts" and len(found["series"]) == 4 and found["of"] == len(own._windows(some).scored())
    )
    assert [window["target"] for window in found["series"]] == ["x0", "x1", "x0", "x1"]
    first = found["series"][0]
    end, raw = int(first["from"]), own.scale.undo(some.values[0])[:, 0]
    np.testing.assert_allclose(np.array(first["actual"], float), raw[end : end + HORIZON], rtol=1e-4)  # None is missing
    assert len(first["history"]) == CONTEXT
    assert len(first["forecast"]) == HORIZON
    assert not foreign(in_chinese(own, own.evaluate(model, some)["protocol"]))
    if output == "quantiles":
        assert found["covered"] == pytest.approx(own.config.levels[-1] - own.config.levels[0])
        assert all(low <= high for low, high in zip(first["low"], first["high"], strict=True))
