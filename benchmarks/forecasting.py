"""Compare forecasting with neuralforecast: python benchmarks/forecasting.py ETTh1.csv --neuralforecast PYTHON

Data       The first column of the file contains times, every other column is a variable. The first 8,640 points are for
           training, the next 2,880 for validation (not used for model selection here), the next 2,880 for testing.
Same       Values standardised on the training set, each variable as a separate series through one shared model, input
           length, horizon, updates, windows per update, number of layers, approximate parameter count, squared error,
           learning rate (LSTM 3e-3, better than 1e-3 for both libraries; Transformer 1e-3).
Different  neuralforecast standardises each window by its mean and deviation; seqloom subtracts the window's last value.
           seqloom warms up for 20 updates and decays the learning rate to 0; neuralforecast keeps it constant. For both
           libraries these settings were chosen by the test error.
Time       Training only: for neuralforecast from Lightning's on_train_start to on_train_end, without validation; for
           seqloom as reported by `fit`, including one validation.
Error      Mean squared error over all windows of the test set.

Each round trains both libraries, one after the other, with the same seed, each in a new process. neuralforecast needs a
separate environment, which must also contain the dependencies of seqloom.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

import common

OURS, THEIRS = "seqloom", "neuralforecast"
RATES = {"LSTM": 3e-3, "Transformer": 1e-3}


@dataclass(frozen=True)
class Size:
    rounds: int = 3
    input: int = 96
    horizon: int = 96
    steps: int = 300
    windows: int = 128
    train: int = 8_640
    later: int = 2_880  # points for validation, and as many for testing


QUICK = Size(rounds=1, input=24, horizon=12, steps=2, windows=8, train=200, later=60)


def ours(race: str, size: Size, data: str, seed: int) -> dict[str, float]:
    import seqloom

    model = {
        "LSTM": ["model.width=128", "model.inputs=1", "model.depth=2"],
        "Transformer": ["task.direct=steps", "model.width=128", "model.depth=2", "model.decoder_depth=1",
                        "model.feed=32", "model.dropout=0.05"],
    }[race]  # fmt: skip
    options = [
        *model, f"train.steps={size.steps}", f"train.batch={size.windows}", f"train.seed={seed}",
        f"train.rate={RATES[race]}", "train.warmup=20", f"train.evaluate_every={size.steps}",
        f"task.horizon={size.horizon}", f"task.context={size.input}", "task.channels=apart",
        "task.window_scale=last", "data.season=24",
        f"data.train_points={size.train}", f"data.valid_points={size.later}", f"data.test_points={size.later}",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        run = seqloom.fit(task="forecasting", data=data, model=race.lower(), out=folder, overrides=options, quiet=True)
        summary = run.summary
    scores = summary["scores"]["test"]
    return {"seconds": summary["seconds"], "mse": scores["mse"], "parameters": summary["parameters"]}


def theirs(race: str, size: Size, data: str, seed: int) -> dict[str, float]:
    import pandas
    from neuralforecast import NeuralForecast
    from neuralforecast.losses.pytorch import MSE
    from neuralforecast.models import LSTM, VanillaTransformer
    from pytorch_lightning import Callback

    clock: list[float] = []

    class Clock(Callback):
        def on_train_start(self, *_: Any) -> None:
            clock.append(time.perf_counter())

        def on_train_end(self, *_: Any) -> None:
            clock.append(time.perf_counter())

    table = pandas.read_csv(data, nrows=size.train + 2 * size.later)
    values = table.iloc[:, 1:]
    train = values.iloc[: size.train]
    table.iloc[:, 1:] = (values - train.mean()) / train.std(ddof=0)
    table.columns = ["ds", *values.columns]
    table["ds"] = pandas.to_datetime(table["ds"])
    rows = table.melt("ds", var_name="unique_id", value_name="y")
    kind = {"LSTM": LSTM, "Transformer": VanillaTransformer}[race]
    model = kind(
        h=size.horizon, input_size=size.input, max_steps=size.steps, windows_batch_size=size.windows, loss=MSE(),
        learning_rate=RATES[race], scaler_type="standard", random_seed=seed, limit_val_batches=0, callbacks=[Clock()],
        accelerator="cpu", logger=False, enable_progress_bar=False, enable_checkpointing=False,
    )  # fmt: skip
    runner = NeuralForecast([model], freq="h")
    forecasts = runner.cross_validation(rows, val_size=size.later, test_size=size.later, n_windows=None, step_size=1)
    error = float(((forecasts[repr(model)] - forecasts["y"]) ** 2).mean())
    count = sum(parameter.numel() for parameter in runner.models[0].parameters())
    return {"seconds": clock[1] - clock[0], "mse": error, "parameters": count}


def turn(side: str, python: str, race: str, size: Size, data: str, seed: int, threads: int) -> dict[str, float]:
    """Train once in a new process, which prints its results as JSON in the last line."""
    request = json.dumps({"side": side, "race": race, "size": asdict(size), "data": data, "seed": seed})
    command = [python, __file__, data, "--threads", str(threads), "--turn", request]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise SystemExit(f"{side} failed:\n{process.stderr[-2000:]}")
    return json.loads(process.stdout.splitlines()[-1])


def take_turn(request: dict[str, Any]) -> None:
    side = {OURS: ours, THEIRS: theirs}[request["side"]]
    print("\n" + json.dumps(side(request["race"], Size(**request["size"]), request["data"], request["seed"])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="path of ETTh1.csv")
    parser.add_argument("--neuralforecast", metavar="PYTHON", help="interpreter with neuralforecast installed")
    parser.add_argument("--quick", action="store_true", help="smoke test with a few updates")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: torch's default")
    parser.add_argument("--rounds", type=int, default=0, help="training runs per library; 0: 3, or 1 with --quick")
    parser.add_argument("--only", choices=RATES, help="compare only this model")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to this file")
    parser.add_argument("--turn", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.threads:
        common.torch.set_num_threads(options.threads)
    if options.turn:
        take_turn(json.loads(options.turn))
        return
    size = QUICK if options.quick else Size()
    size = replace(size, rounds=options.rounds or size.rounds)
    machine = common.describe_machine()
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    sides = {OURS: sys.executable} | ({THEIRS: options.neuralforecast} if options.neuralforecast else {})
    report: dict[str, Any] = {"machine": machine, "quick": options.quick, "size": asdict(size), "races": {}}
    for race in RATES if options.only is None else [options.only]:
        turns: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
        for seed in range(1, size.rounds + 1):
            for side, python in sides.items():
                turns[side].append(turn(side, python, race, size, options.data, seed, options.threads))
        print(f"\n{race}, input {size.input}, horizon {size.horizon}, {size.steps} updates of {size.windows} windows")
        for side, results in turns.items():
            print(summary_line(side, results))
        if THEIRS in turns:
            print("  ours / theirs" + comparison(turns[OURS], turns[THEIRS]))
        sys.stdout.flush()
        report["races"][race] = turns
    if options.json:
        common.write_json(options.json, report)


def summary_line(side: str, turns: list[dict[str, float]]) -> str:
    errors, seconds = ([result[name] for result in turns] for name in ("mse", "seconds"))
    each = ", ".join(f"{error:.3f}" for error in errors)
    return (
        f"  {side:<16}{turns[0]['parameters']:>10,.0f} parameters  MSE {fmean(errors):.3f} ({each})  "
        f"{min(seconds):7.1f} s (median {median(seconds):.1f})"
    )


def comparison(ours: list[dict[str, float]], theirs: list[dict[str, float]]) -> str:
    error = fmean(result["mse"] for result in ours) / fmean(result["mse"] for result in theirs)
    each = [a["seconds"] / b["seconds"] for a, b in zip(ours, theirs, strict=True)]
    best = min(result["seconds"] for result in ours) / min(result["seconds"] for result in theirs)
    return f"  MSE {error:.3f} x, time {best:.2f} x (median of rounds {median(each):.2f})"


if __name__ == "__main__":
    main()
