"""Compare parallel and sequential forms of two models: python benchmarks/forms.py [--quick] [--threads N].

Prints the training speedup of the form that processes all time steps in parallel over the one that goes step by step,
using the real Trainer.update (AdamW, float32, 8 rows of 1,024 tokens). All four contenders have about the same number
of parameters and are timed in the same rounds:

minGRU against GRU   gates that do not depend on the state, computed by a scan, against gates that do, by a loop
TTT dual form        a mini-batch in a few matrix products, against the primal form, which takes one step per token;
                     projections and feed-forward layers process all tokens at once in both
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import common
import torch
from every_model import Learner, make_model, read_text, rows_of
from torch import Tensor

from seqloom.core.network import SequenceModel
from seqloom.core.state import State
from seqloom.runs.registry import names

PRIMAL = ", primal form"
FORMS = (  # title, parallel form, sequential form
    ("minGRU against GRU", "mingru", "gru"),
    ("TTT, dual against primal form", "ttt", f"ttt{PRIMAL}"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smoke test with tiny sizes, a few seconds")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: torch's default")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    parameters, rows, length, rounds = (30_000, 2, 40, 2) if options.quick else (800_000, 8, 1024, 5)
    ids = rows_of(read_text(400_000), rows, length + 1)
    turns = measure(parameters, ids, rounds)
    print(f"training, {rows} x {length}, {parameters:,} parameters each")
    for title, parallel, sequential in FORMS:
        if parallel not in turns or sequential not in turns:
            print(f"  {title:32}not available in this version")
            continue
        best = common.best_ratio(turns, parallel, sequential)
        median = common.median_ratio(turns, parallel, sequential)
        speeds = " and ".join(f"{rows * length / min(turns[name]):,.0f}" for name in (parallel, sequential))
        print(f"  {title:32}{best:7.2f} x (median {median:.2f}), {speeds} tokens/s")


def measure(parameters: int, ids: Tensor, rounds: int) -> common.Turns:
    """Time all contenders whose model is available in this version."""
    known = names("models")
    measured = [name for form in FORMS for name in form[1:] if name.removesuffix(PRIMAL) in known]
    with tempfile.TemporaryDirectory() as folder:
        models = {name: contender(name, parameters, ids.size(1)) for name in measured}
        runners = {name: Learner(model, ids, Path(folder)) for name, model in models.items()}
        return common.race(runners, rounds, turn=0.0)


def contender(name: str, parameters: int, length: int) -> SequenceModel:
    model = make_model(name.removesuffix(PRIMAL), parameters, length)
    if name.endswith(PRIMAL):
        step_by_step(model)
    return model


def step_by_step(model: SequenceModel) -> None:
    """Switch the inner models to the primal form by passing them one token at a time."""
    from seqloom.layers.mini_batches import MiniBatches
    from seqloom.models.ttt import InnerModel

    class Primal(InnerModel):
        def forward(self, qkv: Tensor, rate: Tensor, memory: State, tokens: MiniBatches) -> tuple[Tensor, State]:
            starts, outputs = torch.tensor(tokens.starts), []
            for t, (token, token_rate) in enumerate(zip(qkv.split(1, dim=1), rate.split(1, dim=1), strict=True)):
                single = MiniBatches(token, starts + t, None, self.mini_batch)
                output, memory = super().forward(token, token_rate, memory, single)
                outputs.append(output)
            return torch.cat(outputs, dim=1), memory

    for part in model.modules():
        if isinstance(part, InnerModel):
            part.__class__ = Primal


if __name__ == "__main__":
    main()
