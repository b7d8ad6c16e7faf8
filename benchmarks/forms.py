"""Two forms of one idea: python benchmarks/forms.py [--quick] [--threads N].

How many times faster the form that trains on all steps at once is than the one that goes step by step, in the
trainer's own update (AdamW, float32, 8 rows of 1,024 tokens), all four in one race, with as many parameters each:

minGRU against GRU   a memory whose gates do not look at it, by a scan, against one whose gates do, by a loop
TTT's dual form      a mini-batch's steps by a few matrix products, against its primal form: a step for each token.
                     Projections and feed-forward read all tokens at once in both.
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
FORMS = (  # what, and the two contenders
    ("minGRU against GRU", "mingru", "gru"),
    ("TTT, dual against primal form", "ttt", f"ttt{PRIMAL}"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, a few seconds: does everything still run?")
    parser.add_argument("--threads", type=int, default=0, help="threads of the processor; 0: torch's choice")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    parameters, rows, length, rounds = (30_000, 2, 40, 2) if options.quick else (800_000, 8, 1024, 5)
    ids = rows_of(read_text(400_000), rows, length + 1)
    turns = measure(parameters, ids, rounds)
    print(f"training, {rows} x {length}, {parameters:,} parameters each")
    for what, quick, slow in FORMS:
        if quick not in turns or slow not in turns:
            print(f"  {what:32}not here")
            continue
        best, median = common.best_ratio(turns, quick, slow), common.median_ratio(turns, quick, slow)
        speeds = " and ".join(f"{rows * length / min(turns[name]):,.0f}" for name in (quick, slow))
        print(f"  {what:32}{best:7.2f} x (median {median:.2f}), {speeds} tokens/s")


def measure(parameters: int, ids: Tensor, rounds: int) -> common.Turns:
    """Of those that this version has."""
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
    """Let the small models inside read one token at a time: then they take the primal form."""
    from seqloom.layers.mini_batches import MiniBatches
    from seqloom.models.ttt import InnerModel

    class Primal(InnerModel):
        def forward(self, qkv: Tensor, rate: Tensor, memory: State, tokens: MiniBatches) -> tuple[Tensor, State]:
            read, answers = torch.tensor(tokens.starts), []
            for t, (one, pace) in enumerate(zip(qkv.split(1, dim=1), rate.split(1, dim=1), strict=True)):
                single = MiniBatches(one, read + t, None, self.mini_batch)
                answer, memory = super().forward(one, pace, memory, single)
                answers.append(answer)
            return torch.cat(answers, dim=1), memory

    for part in model.modules():
        if isinstance(part, InnerModel):
            part.__class__ = Primal


if __name__ == "__main__":
    main()
