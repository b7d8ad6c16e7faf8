"""Continuous batching: tokens per second of 32 rows beside one row, and beside transformers' `generate` with padding.

    python benchmarks/serving.py [--rows 32] [--new 64] [--rounds 5] [--threads 2] [--out FILE]

The engine alone, without a server: greedy continuations of prompts of mixed lengths, by untrained models of a few
million parameters. transformers reads and continues all prompts together, padded on the left. With `--spread`, every
prompt asks for another number of tokens, as in service: transformers goes on until the longest is done.
All contenders take turns in every round; the best turn of each counts, beside the median of the ratios.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

import common
import torch

from seqloom.core.network import SequenceModel
from seqloom.decode.batcher import Batcher
from seqloom.decode.rows import Request, Token
from seqloom.layers.kernels.engine import has_kernels, without_kernels
from seqloom.layers.linear import by_columns
from seqloom.layers.packed import pack
from seqloom.runs.registry import find_config
from seqloom.train.memory import keep_memory

MODELS: dict[str, dict[str, Any]] = {
    "gpt": {"width": 160, "depth": 4, "heads": 4, "context": 512},
    "gpt, layout of GPT-2": {"width": 160, "depth": 4, "heads": 4, "context": 512, "preset": "gpt2"},
    "gru": {"width": 768},
}
THEIRS = "transformers, GPT-2"
LABELS = (("of_one_row", "one row"), ("of_plain_row", "one row without kernels"), ("of_theirs", "transformers"))

Asked = list[tuple[list[int], int]]  # prompts, and how many tokens each is to be continued by


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--new", type=int, default=64, help="tokens to write")
    parser.add_argument("--spread", action="store_true", help="another number for every prompt, --new on average")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=1.0, help="seconds per turn")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_memory()  # as the process of a served model does
    with torch.no_grad():
        report = measure(options)
    show(report)
    if options.out:
        common.write_json(options.out, report)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    asked = make_prompts(options.rows, options.new, options.spread)
    models = {name: make_model(name) for name in MODELS}
    theirs = their_model(MODELS["gpt"])
    contenders: dict[str, common.Contender] = {THEIRS: lambda: their_answers(theirs, asked)}
    for name, model in models.items():
        contenders[f"{name}, {options.rows} rows"] = lambda model=model: write(model, asked, options.rows)
        contenders[f"{name}, 1 row"] = lambda model=model: write(model, asked[:2], 1)
        contenders[f"{name}, no kernels, 1 row"] = lambda model=model: write_plainly(model, asked[:2])
    turns = common.race(contenders, options.rounds, options.turn)
    tokens = {name: sum(new for _, new in (asked[:2] if name.endswith("1 row") else asked)) for name in contenders}
    per_token = {name: [seconds / tokens[name] for seconds in own] for name, own in turns.items()}
    rows = []
    for name, model in models.items():
        many, one, plain = f"{name}, {options.rows} rows", f"{name}, 1 row", f"{name}, no kernels, 1 row"
        row = {"name": name, "parameters": sum(p.numel() for p in model.parameters())}
        row |= {"tokens_per_second": 1 / min(per_token[many]), "one_row": 1 / min(per_token[one])}
        for label, other in (("of_one_row", one), ("of_plain_row", plain), ("of_theirs", THEIRS)):
            row[label] = common.best_ratio(per_token, many, other)
            row[f"{label}_median"] = common.median_ratio(per_token, many, other)
        rows.append(row)
    return {
        "rows": rows,
        "theirs": 1 / min(per_token[THEIRS]),
        "their_parameters": sum(p.numel() for p in theirs.parameters()),
        "prompts": [len(prompt) for prompt, _ in asked],
        "new": [new for _, new in asked],
        "machine": common.describe_machine("transformers"),
    }


def make_prompts(count: int, new: int, spread: bool) -> Asked:
    """Of 8 to 128 tokens."""
    chance = random.Random(0)
    lengths = [chance.randint(8, 128) for _ in range(count)]
    wanted = [chance.randint(new // 4, 2 * new - new // 4) if spread else new for _ in range(count)]
    return [
        ([chance.randrange(1, common.VOCABULARY) for _ in range(length)], most)
        for length, most in zip(lengths, wanted, strict=True)
    ]


def make_model(name: str) -> SequenceModel:
    config = find_config("models", name.partition(",")[0]).model_validate(MODELS[name])
    model = config.assemble(common.make_task()).eval()
    if not has_kernels():
        by_columns(model)  # as `load` does
    pack(model)  # as the process of a served model does
    return model


def write(model: SequenceModel, asked: Asked, rows: int) -> int:
    """All answers; returns how many tokens they have."""
    batcher = Batcher(model, rows)
    for key, (prompt, new) in enumerate(asked):
        batcher.add(key, Request(prompt=prompt, max_new=new))
    count = 0
    while batcher.busy:
        count += sum(isinstance(event, Token) for event in batcher.step())
    assert count == sum(new for _, new in asked)
    return count


def write_plainly(model: SequenceModel, asked: Asked) -> int:
    """One row at a time, without compiled kernels."""
    with without_kernels():
        return write(model, asked, 1)


def their_model(options: dict[str, Any]) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_embd": options["width"], "n_layer": options["depth"], "n_head": options["heads"]}
    config = GPT2Config(vocab_size=common.VOCABULARY, n_positions=options["context"], **sizes, eos_token_id=None)
    return GPT2LMHeadModel(config).eval()


def their_answers(model: Any, asked: Asked) -> None:
    longest = max(len(prompt) for prompt, _ in asked)
    ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt, _ in asked])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt, _ in asked])
    most = max(new for _, new in asked)
    how: dict[str, Any] = {"max_new_tokens": most, "min_new_tokens": most, "do_sample": False, "pad_token_id": 0}
    written = model.generate(ids, attention_mask=mask, **how)
    assert written.size(1) == longest + most


def show(report: dict[str, Any]) -> None:
    rows = len(report["prompts"])
    print(f"transformers, GPT-2 of {report['their_parameters']:,} parameters: {report['theirs']:,.0f} tokens/s")
    for row in report["rows"]:
        name = f"{row['name']}, {row['parameters']:,} parameters"
        print(f"{name}: {row['tokens_per_second']:,.0f} tokens/s of {rows} rows, {row['one_row']:,.0f} of one")
        for label, other in LABELS:
            print(f"    {row[label]:.1f} x {other} (median {row[f'{label}_median']:.1f})")


if __name__ == "__main__":
    main()
