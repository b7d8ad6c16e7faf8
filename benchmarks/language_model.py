"""Compare with other libraries: python benchmarks/language_model.py [--quick] [--threads N] [--json FILE].

Training is a complete update (loss, backward, clipping, fused AdamW): ours is the real Trainer.update, the others make
the same calls on their model; each contender has its own process. Compared are GPT-2 from transformers (as published,
and with the faster fused GELU), the decoder from x-transformers with flash attention, and a plain torch model around
nn.LSTM, nn.GRU or nn.RNN. An additional row is ours with `train.compile`; the other libraries run uncompiled, as in
typical use. Decoding is greedy and cached, one row, with the same weights in our GPT and in GPT-2 from transformers.
There is no dropout, and everything is float32 except the row with int8 weights.

`ours is` is our speed divided by the row's, best turn against best turn (in parentheses: the median over the rounds).
`share` is relative to the hardware limit measured in the same rounds: a matrix product for training, memory bandwidth
for decoding.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import common
import torch
from common import VOCABULARY
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.batch import Batch
from seqloom.core.network import SequenceModel
from seqloom.decode.pick import Choice
from seqloom.decode.stream import stream
from seqloom.layers.int8 import to_int8
from seqloom.models import gpt

OURS, INT8, LIMIT = "seqloom", "seqloom, int8 weights", "limit"
SAMPLED = 8  # sampled rows on which int8 weights are evaluated
GELUS = {"transformers GPT-2": "gelu_new", "transformers GPT-2, fused GELU": "gelu_pytorch_tanh"}
NOTE_LABELS = {  # printed instead of the JSON key
    "reading_as_many_bytes_again_and_again": "bandwidth of repeatedly reading a buffer as large as the weights, GB/s",
    "share_of_that": "share of that bandwidth",
    "int8_raises_perplexity_by_percent": "perplexity increase with int8 weights, %",
}
RECURRENT = {"lstm": (nn.LSTM, 4), "gru": (nn.GRU, 3), "rnn": (nn.RNN, 1)}  # torch layer, number of gates


@dataclass(frozen=True)
class Size:
    """Sizes of models and batches, and the duration of the measurements."""

    rounds: int = 7
    turn: float = 1.0  # seconds per contender and round
    gpt: tuple[int, int, int] = (256, 4, 4)  # width, depth, heads
    gpt_batch: tuple[int, int] = (32, 128)  # rows, tokens
    recurrent: tuple[tuple[int, int, int], ...] = ((256, 32, 128), (312, 8, 48))  # width, rows, tokens
    vocabulary: int = 1600  # for decoding; with this context, 3.70 M parameters
    context: int = 512
    prompt: int = 16
    new: int = 256
    matmul: int = 2048
    read: int = 256_000_000
    compiled: bool = True  # also measure train.compile, which takes a minute to compile


QUICK = Size(2, 0.0, (32, 2, 2), (2, 16), ((32, 2, 16),), 64, 64, 4, 8, 64, 1_000_000, False)


@dataclass
class Row:
    name: str
    tokens_per_second: float
    ratio: float  # our speed over this row's, best turns
    median_ratio: float  # the same as a median over the rounds
    share: float  # of the hardware limit
    seconds: list[float]  # per call, for each round


@dataclass
class Section:
    name: str
    title: str
    limit: float  # hardware limit, measured in the same rounds
    unit: str
    per_token: int  # FLOPs (training) or bytes (decoding)
    rows: list[Row]
    notes: dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smoke test with tiny sizes, a few seconds")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: torch's default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to this file")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    size = QUICK if options.quick else Size()
    machine = common.describe_machine("transformers", "x-transformers")
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    sections = []
    for section in measure(size):
        print("\n" + table(section), flush=True)
        sections.append(asdict(section))
    if options.json:
        report = {"machine": machine, "quick": options.quick, "size": asdict(size), "sections": sections}
        common.write_json(options.json, report)


def measure(size: Size) -> Iterator[Section]:
    with tempfile.TemporaryDirectory() as folder:
        yield train_gpt(size, Path(folder))
        for kind in RECURRENT:
            for shape in size.recurrent:
                yield train_recurrent(kind, shape, size, Path(folder))
    yield decode(size)


def train_gpt(size: Size, folder: Path) -> Section:
    (width, depth, _), (rows, length) = size.gpt, size.gpt_batch
    contenders = {OURS: common.Elsewhere(trained_gpt, "gpt2", size, folder)}
    for name in (*GELUS, "x-transformers"):
        contenders[name] = common.Elsewhere(peer_gpt, name, size)
    contenders["seqloom, modern preset"] = common.Elsewhere(trained_gpt, "modern", size, folder)
    if size.compiled:
        contenders["seqloom, compiled"] = common.Elsewhere(trained_gpt, "gpt2", size, folder, True)
    flops = common.gpt_flops(width, depth, length, VOCABULARY)
    title = f"training a GPT, {depth} x {width}, batch {rows} x {length}"
    return run_section("train gpt", title, contenders, rows * length, common.MatmulLimit(size.matmul), flops, size)


def trained_gpt(preset: str, size: Size, folder: Path, compiled: bool = False) -> common.Contender:
    rows, length = size.gpt_batch
    model = our_gpt(preset, size, VOCABULARY, length)
    return common.our_update(model, make_batch(rows, length), folder, compiled)


def peer_gpt(name: str, size: Size) -> common.Contender:
    (width, depth, heads), (rows, length) = size.gpt, size.gpt_batch
    if name in GELUS:
        return peer_update(Logits(their_gpt(GELUS[name], size, VOCABULARY, length)), make_batch(rows, length))
    from x_transformers import Decoder, TransformerWrapper

    decoder = Decoder(dim=width, depth=depth, heads=heads, attn_dim_head=width // heads, attn_flash=True)
    peer = TransformerWrapper(num_tokens=VOCABULARY, max_seq_len=length, attn_layers=decoder)
    return peer_update(peer, make_batch(rows, length))


def trained_recurrent(kind: str, shape: tuple[int, int, int], folder: Path) -> common.Contender:
    width, rows, length = shape
    config = import_module(f"seqloom.models.{kind}").Config(width=width, inputs=width)
    model = config.assemble(common.make_task())
    return common.our_update(model, make_batch(rows, length), folder)


def peer_recurrent(kind: str, shape: tuple[int, int, int]) -> common.Contender:
    width, rows, length = shape
    return peer_update(PlainRecurrent(RECURRENT[kind][0], width), make_batch(rows, length))


def train_recurrent(kind: str, shape: tuple[int, int, int], size: Size, folder: Path) -> Section:
    width, rows, length = shape
    layer, gates = RECURRENT[kind]
    contenders = {
        OURS: common.Elsewhere(trained_recurrent, kind, shape, folder),
        f"torch.nn.{layer.__name__}": common.Elsewhere(peer_recurrent, kind, shape),
    }
    flops = common.recurrent_flops(gates, width, VOCABULARY)
    title = f"training one {kind} layer of {width}, batch {rows} x {length}, state carried"
    name = f"train {kind} {width}"
    return run_section(name, title, contenders, rows * length, common.MatmulLimit(size.matmul), flops, size)


def decode(size: Size) -> Section:
    ours = our_gpt("gpt2", size, size.vocabulary, size.context)
    scatter_weights(ours)
    peers = {name: their_gpt(gelu, size, size.vocabulary, size.context) for name, gelu in GELUS.items()}
    for peer in peers.values():
        copy_weights(ours, peer)
    modern = our_gpt("modern", size, size.vocabulary, size.context)
    prompt = torch.randint(size.vocabulary, (size.prompt,)).tolist()
    contenders: dict[str, common.Contender] = {OURS: lambda: our_tokens(ours, prompt, size.new)}
    for name, peer in peers.items():
        contenders[name] = lambda peer=peer: their_tokens(peer, prompt, size.new)  # type: ignore[misc]
    contenders["seqloom, modern preset"] = lambda: our_tokens(modern, prompt, size.new)
    small = to_int8(deepcopy(ours))
    contenders[INT8] = lambda: our_tokens(small, prompt, size.new)
    parameters, weights = sum(p.numel() for p in ours.parameters()), common.weight_bytes(ours)
    title = f"greedy decoding, cached, one row, {parameters / 1e6:.2f} M parameters, {size.prompt} + {size.new} tokens"
    section = run_section("decode", title, contenders, size.new, common.ReadLimit(size.read), weights, size)
    section.rows[-1].share *= common.weight_bytes(small) / weights  # int8 weights are fewer bytes to read
    expected = our_tokens(ours, prompt, size.new)
    section.notes = {
        "parameters": parameters,
        "same_tokens": all(their_tokens(peer, prompt, size.new) == expected for peer in peers.values()),
        "distinct_tokens": len(set(expected)),
    }
    section.notes |= cache_notes(weights, section, size) | int8_notes(ours, small, size)
    return section


def cache_notes(weights: int, section: Section, size: Size) -> dict[str, Any]:
    """If the weights fit into the processor cache, the limit is cache bandwidth instead of memory bandwidth."""
    limit = common.ReadLimit(weights)
    speed = limit.work / min(common.race({LIMIT: limit}, size.rounds, size.turn / 10)[LIMIT])
    cache = common.cache_bytes()
    return {
        "weights_fit_in_cache": cache is not None and weights < cache,
        "reading_as_many_bytes_again_and_again": speed / 1e9,
        "share_of_that": section.rows[0].tokens_per_second * weights / speed,
    }


def int8_notes(ours: SequenceModel, small: SequenceModel, size: Size) -> dict[str, Any]:
    """The perplexity cost of rounding, on text sampled from the float model, on which no model can be better."""
    tokens = stream(ours, [[0]] * SAMPLED, max_new=size.new, choose=Choice(temperature=1), seed=0)
    text = torch.stack(list(tokens), dim=1)  # (SAMPLED, new)
    with torch.inference_mode():
        before, after = (cross_entropy(model(text[:, :-1])[0], text[:, 1:]).item() for model in (ours, small))
    return {
        "int8_raises_perplexity_by_percent": 100 * math.expm1(after - before),
        "measured_on": f"{text.numel():,} tokens sampled from the float model with random weights",
    }


def run_section(
    label: str,
    title: str,
    contenders: Mapping[str, common.Contender],
    tokens: int,
    limit: common.MatmulLimit | common.ReadLimit,
    per_token: int,
    size: Size,
) -> Section:
    turns = common.race({**contenders, LIMIT: limit}, size.rounds, size.turn)
    for contender in contenders.values():
        if isinstance(contender, common.Elsewhere):
            contender.close()
    speed = limit.work / min(turns[LIMIT])
    rows = [make_row(name, turns, tokens, per_token / speed) for name in contenders]
    return Section(label, title, speed / 1e9, limit.unit, per_token, rows, {})


def make_row(name: str, turns: common.Turns, tokens: int, seconds_per_token: float) -> Row:
    speed = tokens / min(turns[name])
    ratios = common.best_ratio(turns, OURS, name), common.median_ratio(turns, OURS, name)
    return Row(name, speed, *ratios, speed * seconds_per_token, turns[name])


def make_batch(rows: int, length: int) -> Batch:
    ids = torch.randint(VOCABULARY, (rows, length + 1))
    return Batch(ids[:, :-1], None, ids[:, 1:], continues=True)


def our_gpt(preset: str, size: Size, vocabulary: int, context: int) -> SequenceModel:
    width, depth, heads = size.gpt
    options = {"preset": preset, "width": width, "depth": depth, "heads": heads, "context": context}
    return gpt.Config.model_validate(options).assemble(common.make_task(vocabulary))


def peer_update(model: nn.Module, batch: Batch) -> common.Contender:
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0, fused=True)
    model.train()

    def update() -> None:
        logits = model(batch.inputs)
        cross_entropy(logits, batch.targets).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return update


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Logits(nn.Module):
    """Wraps a transformers model to return only the logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        return self.model(ids, use_cache=False).logits


class PlainRecurrent(nn.Module):
    """A straightforward model around torch's own layer; the state is carried between updates and detached."""

    def __init__(self, layer: Callable[..., nn.Module], width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.layer = layer(width, width, batch_first=True)
        self.head = nn.Linear(width, VOCABULARY)
        self.state: Any = None

    def forward(self, ids: Tensor) -> Tensor:
        hidden, state = self.layer(self.embed(ids), self.state)
        self.state = tuple(part.detach() for part in state) if isinstance(state, tuple) else state.detach()
        return self.head(hidden)


def their_gpt(gelu: str, size: Size, vocabulary: int, context: int) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    width, depth, heads = size.gpt
    config = GPT2Config(
        vocab_size=vocabulary,
        n_positions=context,
        n_embd=width,
        n_layer=depth,
        n_head=heads,
        activation_function=gelu,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=None,
        eos_token_id=None,
        attn_implementation="sdpa",  # type: ignore[call-arg]
    )
    return GPT2LMHeadModel(config)


def scatter_weights(model: Any) -> None:
    """Make weights large enough that the untrained model does not repeat one token; zero the head bias GPT-2 lacks."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(std=0.1)
        nn.init.zeros_(model.head.bias)


def copy_weights(ours: Any, theirs: Any) -> None:
    body = ours.backbone
    pairs = [(theirs.transformer.wte, ours.embed), (theirs.transformer.wpe, body.positions.table)]
    pairs.append((theirs.transformer.ln_f, body.norm))
    for block, h in zip(body.blocks, theirs.transformer.h, strict=True):
        pairs += [(h.ln_1, block.norm_1), (h.ln_2, block.norm_2), (h.attn.c_attn, block.attention.qkv)]
        pairs += [(h.attn.c_proj, block.attention.out), (h.mlp.c_fc, block.feed.up), (h.mlp.c_proj, block.feed.out)]
    with torch.no_grad():
        for target, source in pairs:
            transposed = isinstance(source, nn.Linear)  # transformers stores these as Conv1D (in, out)
            target.weight.copy_(source.weight.t() if transposed else source.weight)
            if getattr(source, "bias", None) is not None:
                target.bias.copy_(source.bias)
    theirs.eval()
    ours.eval()


def our_tokens(model: SequenceModel, prompt: list[int], new: int) -> list[int]:
    return [int(token) for token in stream(model.eval(), [prompt], max_new=new)]


def their_tokens(model: Any, prompt: list[int], new: int) -> list[int]:
    ids = torch.tensor([prompt])
    options = {"max_new_tokens": new, "do_sample": False, "use_cache": True}
    return model.generate(ids, attention_mask=torch.ones_like(ids), **options)[0, len(prompt) :].tolist()


def table(section: Section) -> str:
    lines = [f"{section.title} (limit {section.limit:,.0f} {section.unit})"]
    lines.append(f"  {'':32}{'tokens/s':>10}{'ours is':>10}{'(median)':>10}{'share':>8}")
    for row in section.rows:
        ratios = f"{row.ratio:8.2f} x{f'({row.median_ratio:.2f})':>10}"
        lines.append(f"  {row.name:32}{row.tokens_per_second:10,.0f}{ratios}{row.share:8.0%}")
    for key, value in section.notes.items():
        shown = f"{value:,.2f}" if isinstance(value, float) else value
        lines.append(f"  {NOTE_LABELS.get(key, key.replace('_', ' '))}: {shown}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
