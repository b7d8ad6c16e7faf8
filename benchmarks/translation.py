"""Compare encoder-decoder training with other libraries: python benchmarks/translation.py [--quick] [--joeynmt PYTHON].

All contenders get the same batches: random tokens, sentence lengths as in short captions, at most 4,096 tokens on the
longer side, with the resulting padding. An update is loss (label smoothing 0.1), backward, clipping and AdamW; dropout
is 0.1. Ours is the real Trainer.update; `torch.nn.Transformer` is a straightforward training loop; JoeyNMT 2.3 uses its
own model and loss. JoeyNMT needs other package versions: install joeynmt and sentencepiece==0.2.0 in a separate
environment together with the dependencies of seqloom, and pass its interpreter. Each contender has its own process.
`ours is` is our speed in target tokens per second divided by the row's.
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
OPTIMIZER = {"lr": 1e-3, "betas": (0.9, 0.98), "weight_decay": 0.0, "fused": True}
SMOOTHING, DROPOUT = 0.1, 0.1


@dataclass(frozen=True)
class Size:
    rounds: int = 3
    batches: int = 2  # updates per call, each on a different batch
    tokens: int = 4096  # per batch
    vocabulary: int = 8000
    width: int = 256
    depth: int = 3
    heads: int = 4
    length: float = 15.0  # mean sentence length


QUICK = Size(rounds=2, batches=1, tokens=256, vocabulary=100, width=32, depth=1, heads=2)


class Sentences:
    """Random sentence pairs; source and target have about the same length."""

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
    tokenizer = SimpleNamespace(size=size.vocabulary, bos=BOS, eos=EOS)
    tokenizers = SimpleNamespace(source=tokenizer, target=tokenizer, joint=True, shift=0, size=size.vocabulary)
    return Translation(Config(batch_tokens=size.tokens, smoothing=SMOOTHING), tokenizers)


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
    """Embeddings, sinusoidal positions, torch.nn.Transformer and a linear head."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.source = nn.Embedding(size.vocabulary, size.width, padding_idx=PAD)
        self.target = nn.Embedding(size.vocabulary, size.width, padding_idx=PAD)
        self.body = nn.Transformer(
            size.width, size.heads, size.depth, size.depth, 4 * size.width, DROPOUT, batch_first=True
        )
        self.head = nn.Linear(size.width, size.vocabulary)
        self.dropout, self.positions = nn.Dropout(DROPOUT), sinusoids(512, size.width)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding = source == PAD
        causal = nn.Transformer.generate_square_subsequent_mask(target.size(1))
        hidden = self.body(
            self.dropout(self.source(source) + self.positions[: source.size(1)]),
            self.dropout(self.target(target) + self.positions[: target.size(1)]),
            tgt_mask=causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return self.head(hidden)


def sinusoids(length: int, width: int) -> Tensor:
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
    sys.path += site.getsitepackages()  # multiprocessing passes on our sys.path; add that of JoeyNMT's interpreter
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
        """JoeyNMT has other ids for special tokens, and keeps BOS and EOS in a single target tensor."""
        assert batch.context is not None
        new_id = torch.arange(size.vocabulary)
        new_id[[PAD, BOS, EOS]] = torch.tensor([1, 2, 3])
        labels = batch.targets.masked_fill(batch.targets == IGNORE, PAD)
        target = new_id[torch.cat((batch.inputs[:, :1], labels), 1)]
        source = new_id[batch.context]
        indices = torch.arange(len(source))
        converted = JoeyBatch(
            source, (source != 1).sum(1), None, target, None, indices, torch.device("cpu"), pad_index=1, eos_index=3
        )
        converted.sort_by_src_length()
        return converted

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
    optimizer = torch.optim.AdamW(parameters, **OPTIMIZER)  # type: ignore[arg-type]

    def run() -> None:
        for batch in batches:
            loss(batch).backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return run


def races(size: Size, python: str | None, folder: Path) -> dict[str, dict[str, common.Elsewhere]]:
    shape = {"depth": size.depth, "heads": size.heads}
    contenders_by_race: dict[str, dict[str, common.Elsewhere]] = {
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
        for contenders, kind in zip(contenders_by_race.values(), kinds, strict=True):
            contenders["JoeyNMT 2.3"] = common.Elsewhere(joey, kind, size, python=python)
    return contenders_by_race


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smoke test with tiny sizes, a few seconds")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: torch's default")
    parser.add_argument("--joeynmt", metavar="PYTHON", help="interpreter with joeynmt and seqloom's dependencies")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to this file")
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
