"""Training an encoder-decoder beside its peers: python benchmarks/translation.py [--quick] [--joeynmt PYTHON].

The same batches for all: random tokens, lengths as in short captions, 4,096 tokens on the longer side, padding as it
falls. An update is loss (label smoothing 0.1), backward, clipping, AdamW; dropout 0.1. Ours is the trainer's own;
`torch.nn.Transformer` is the loop anyone would write; JoeyNMT 2.3 is its own model and loss. That one needs versions of
its own: install joeynmt and sentencepiece==0.2.0 in a place apart, beside what seqloom needs, and name its python.
Each contender is a process of its own; `ours is` is our speed over the row's in target tokens per second.
"""

from __future__ import annotations

import argparse
import math
import site
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import common
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.batch import IGNORE, Batch
from seqloom.core.task import Order
from seqloom.models import seq2seq, transformer
from seqloom.tasks.translation.task import Config, Translation

OURS = "seqloom"
PAD, BOS, EOS = 0, 1, 2  # as in our tokenizers
LEARN = {"lr": 1e-3, "betas": (0.9, 0.98), "weight_decay": 0.0, "fused": True}
SMOOTHING, DROPOUT = 0.1, 0.1


@dataclass(frozen=True)
class Size:
    rounds: int = 3
    batches: int = 2  # updates in a call, each on another batch
    tokens: int = 4096  # of a batch
    vocabulary: int = 8000
    width: int = 256
    depth: int = 3
    heads: int = 4
    length: float = 15.0  # mean of a sentence


QUICK = Size(rounds=2, batches=1, tokens=256, vocabulary=100, width=32, depth=1, heads=2)


class Sentences:
    """Pairs of random tokens; the sides of a pair are about equally long."""

    def __init__(self, size: Size, count: int = 4000) -> None:
        rng = np.random.default_rng(0)
        lengths = np.clip(rng.normal(size.length, size.length / 3, count), 4, 3 * size.length)
        self.lengths = np.stack((lengths, np.clip(lengths + rng.normal(0, 2, count), 3, None)), 1).astype(np.int64)
        self.size = size

    def source(self, row: int) -> np.ndarray:
        return self._draw(row, 0)

    def target(self, row: int) -> np.ndarray:
        return self._draw(row, 1)

    def _draw(self, row: int, side: int) -> np.ndarray:
        ids = np.random.default_rng((row, side)).integers(4, self.size.vocabulary, self.lengths[row, side])
        ids[-1] = EOS
        return ids


def make_task(size: Size) -> Translation:
    one = SimpleNamespace(size=size.vocabulary, bos=BOS, eos=EOS)
    tokenizers = SimpleNamespace(source=one, target=one, joint=True, shift=0, size=size.vocabulary)
    return Translation(Config(batch_tokens=size.tokens, smoothing=SMOOTHING, joint=True), tokenizers)


def make_batches(size: Size) -> list[Batch]:
    steps = make_task(size).batches(Sentences(size), Order(64), carry=False)
    return [next(steps)[0] for _ in range(size.batches)]


def ours(name: str, options: dict[str, Any], size: Size, folder: Path) -> common.Contender:
    module: Any = {"transformer": transformer, "seq2seq": seq2seq}[name]
    config = module.Config.model_validate({"width": size.width, "dropout": DROPOUT, **options})
    task, batches = make_task(size), make_batches(size)
    update = common.our_updates(config.assemble(task), task, folder)
    return lambda: [update(batch) for batch in batches]


class Plain(nn.Module):
    """Tables, sinusoidal positions, torch.nn.Transformer, a linear head."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.source = nn.Embedding(size.vocabulary, size.width, padding_idx=PAD)
        self.target = nn.Embedding(size.vocabulary, size.width, padding_idx=PAD)
        self.body = nn.Transformer(
            size.width, size.heads, size.depth, size.depth, 4 * size.width, DROPOUT, batch_first=True
        )
        self.head = nn.Linear(size.width, size.vocabulary)
        self.dropout, self.waves = nn.Dropout(DROPOUT), waves(512, size.width)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding = source == PAD
        causal = nn.Transformer.generate_square_subsequent_mask(target.size(1))
        hidden = self.body(
            self.dropout(self.source(source) + self.waves[: source.size(1)]),
            self.dropout(self.target(target) + self.waves[: target.size(1)]),
            tgt_mask=causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return self.head(hidden)


def waves(length: int, width: int) -> Tensor:
    angle = torch.arange(length)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)


def plain(size: Size) -> common.Contender:
    model, batches = Plain(size), make_batches(size)
    model.train()

    def loss(batch: Batch) -> Tensor:
        logits = model(batch.context, batch.inputs)
        return F.cross_entropy(
            logits.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORE, label_smoothing=SMOOTHING
        )

    return updates(model, loss, batches)


def joey(kind: str, size: Size) -> common.Contender:
    """JoeyNMT's model and loss, as its trainer calls them."""
    sys.path += site.getsitepackages()  # of its own python: the process was given ours
    from joeynmt.batch import Batch as JoeyBatch
    from joeynmt.model import build_model
    from joeynmt.vocabulary import Vocabulary

    specials = SimpleNamespace(
        unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None, lang_tags=[],
        unk_id=0, pad_id=1, bos_id=2, eos_id=3, sep_id=None,
    )  # fmt: skip
    words = [Vocabulary([f"w{n}" for n in range(4, size.vocabulary)], specials) for _ in range(2)]
    model = build_model(joey_config(kind, size), *words)
    model.loss_function = ("crossentropy", SMOOTHING)
    model.train()

    def convert(batch: Batch) -> Any:
        """Their special tokens stand elsewhere, and they keep first and last token in one tensor."""
        assert batch.context is not None
        place = torch.arange(size.vocabulary)
        place[[PAD, BOS, EOS]] = torch.tensor([1, 2, 3])
        asked = batch.targets.masked_fill(batch.targets == IGNORE, PAD)
        target = place[torch.cat((batch.inputs[:, :1], asked), 1)]
        source = place[batch.context]
        count = torch.arange(len(source))
        made = JoeyBatch(
            source, (source != 1).sum(1), None, target, None, count, torch.device("cpu"), pad_index=1, eos_index=3
        )
        made.sort_by_src_length()
        return made

    def loss(batch: Any) -> Tensor:
        return model(return_type="loss", **vars(batch))[0] / batch.ntokens

    return updates(model, loss, [convert(batch) for batch in make_batches(size)])


def joey_config(kind: str, size: Size) -> dict[str, Any]:
    table = {"embedding_dim": size.width, "scale": True, "dropout": DROPOUT}
    layer = {"hidden_size": size.width, "dropout": DROPOUT, "embeddings": table}
    if kind == "transformer":
        layer |= {"type": kind, "num_layers": size.depth, "num_heads": size.heads, "ff_size": 4 * size.width}
        return {"encoder": layer, "decoder": layer, "initializer": "xavier_uniform", "embed_initializer": "normal"}
    layer |= {"type": "recurrent", "rnn_type": "gru", "num_layers": 1}
    encoder = layer | {"hidden_size": size.width // 2, "bidirectional": True}
    decoder = layer | {"attention": "luong", "input_feeding": kind.endswith("feeding"), "init_hidden": "bridge"}
    return {"encoder": encoder, "decoder": decoder, "initializer": "xavier_uniform", "embed_initializer": "normal"}


def updates(model: nn.Module, loss: Any, batches: list[Any]) -> common.Contender:
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, **LEARN)  # type: ignore[arg-type]

    def run() -> None:
        for batch in batches:
            loss(batch).backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return run


def races(size: Size, python: str | None, folder: Path) -> dict[str, dict[str, common.Elsewhere]]:
    shape = {"depth": size.depth, "heads": size.heads}
    found: dict[str, dict[str, common.Elsewhere]] = {
        "Transformer": {
            OURS: common.Elsewhere(ours, "transformer", {**shape, "preset": "published"}, size, folder),
            "seqloom, pre-norm, GELU": common.Elsewhere(ours, "transformer", shape, size, folder),
            "torch.nn.Transformer": common.Elsewhere(plain, size),
        },
        "GRU with attention, mixture not fed back": {OURS: common.Elsewhere(ours, "seq2seq", {}, size, folder)},
        "GRU with attention, mixture fed back": {
            OURS: common.Elsewhere(ours, "seq2seq", {"feeding": True}, size, folder)
        },
    }
    if python:
        kinds = ("transformer", "gru", "gru feeding")
        for contenders, kind in zip(found.values(), kinds, strict=True):
            contenders["JoeyNMT 2.3"] = common.Elsewhere(joey, kind, size, python=python)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, a few seconds: does everything still run?")
    parser.add_argument("--threads", type=int, default=0, help="threads of the processor; 0: torch's choice")
    parser.add_argument("--joeynmt", metavar="PYTHON", help="a python that has joeynmt (and what seqloom needs)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    size = QUICK if options.quick else Size()
    tokens = sum(int((batch.targets != IGNORE).sum()) for batch in make_batches(size))
    machine = common.describe_machine()
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    report: dict[str, Any] = {"machine": machine, "quick": options.quick, "size": asdict(size), "races": {}}
    with tempfile.TemporaryDirectory() as folder:
        for title, contenders in races(size, options.joeynmt, Path(folder)).items():
            turns = common.race(contenders, size.rounds, turn=0.0)
            for contender in contenders.values():
                contender.close()
            print(f"\n{title}, {size.depth} + {size.depth} x {size.width}, batches of {size.tokens:,} tokens")
            print(f"{'':34}{'target tokens/s':>16}{'ours is':>10}{'(median)':>10}")
            for name in contenders:
                ratio, median = common.best_ratio(turns, OURS, name), common.median_ratio(turns, OURS, name)
                print(f"  {name:32}{tokens / min(turns[name]):>16,.0f}{ratio:>8.2f} x{f'({median:.2f})':>10}")
            sys.stdout.flush()
            report["races"][title] = turns
    if options.json:
        common.write_json(options.json, report)


if __name__ == "__main__":
    main()
