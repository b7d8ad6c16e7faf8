"""One token at a time, one row, greedy: python benchmarks/decode.py [--quick] [--threads N] [--json FILE].

GPTs of two sizes beside a GPT-2 of the same size in transformers (`generate`) and in CTranslate2 (int8), and an LSTM in
float32 and int8. All contenders of a section take turns in this process; the best turn of each counts, with the median
over the rounds in parentheses. Weights are random; those of GPT-2 are ours. `no kernels`: our own path without compiled
kernels, which must write the same tokens. transformers is the version with the fused GELU, the faster one.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import common
import language_model as peers
import torch

from seqloom.core.network import SequenceModel
from seqloom.layers.int8 import to_int8
from seqloom.layers.kernels.engine import without_kernels

THEIRS, CT2 = "transformers GPT-2", "CTranslate2, int8"


@dataclass(frozen=True)
class Size:
    name: str
    width: int
    depth: int
    heads: int
    vocabulary: int
    context: int = 512
    prompt: int = 16
    new: int = 256


SIZES = (Size("3.7 M", 256, 4, 4, 1600), Size("30 M", 512, 8, 8, 8000, new=128))
TINY = (Size("tiny", 32, 2, 2, 400, 64, 4, 8),)
LSTM_WIDTH = {"3.7 M": 588, "tiny": 48}  # with an embedding that is also the output layer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smoke test with tiny sizes, a few seconds")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: torch's default")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turn", type=float, default=0.5, help="seconds per contender and round")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to this file")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    rounds, turn = (2, 0.0) if options.quick else (options.rounds, options.turn)
    machine = common.describe_machine("transformers", "numba", "ctranslate2")
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    sections = []
    with tempfile.TemporaryDirectory() as folder:
        for size in TINY if options.quick else SIZES:
            sections.append(gpts(size, rounds, turn, Path(folder) / size.name.replace(" ", "")))
            print("\n" + table(sections[-1]), flush=True)
            if size.name in LSTM_WIDTH:
                sections.append(recurrent(size, rounds, turn))
                print("\n" + table(sections[-1]), flush=True)
    if options.json:
        common.write_json(options.json, {"machine": machine, "quick": options.quick, "sections": sections})


def gpts(size: Size, rounds: int, turn: float, folder: Path) -> dict[str, Any]:
    prompt = torch.randint(size.vocabulary, (size.prompt,)).tolist()
    contenders: dict[str, Callable[[], list[int]]] = {}
    for preset in ("modern", "llama", "gpt2"):
        options = {"preset": preset, "width": size.width, "depth": size.depth, "heads": size.heads, "tie": True}
        model = assembled("gpt", {**options, "context": size.context}, size)
        contenders |= forms(model, preset, prompt, size.new)
    theirs = peers.their_gpt("gelu_pytorch_tanh", shape(size), size.vocabulary, size.context)
    peers.copy_weights(model, theirs)
    theirs.eval()
    contenders[THEIRS] = lambda: peers.their_tokens(theirs, prompt, size.new)
    contenders[CT2] = ctranslate2(theirs, size, prompt, folder)
    title = f"GPT, {parameters(model)}, {size.prompt} + {size.new} tokens"
    return section(title, contenders, THEIRS, size.new, rounds, turn, ["modern", "llama", "gpt2"], {"gpt2": THEIRS})


def recurrent(size: Size, rounds: int, turn: float) -> dict[str, Any]:
    prompt = torch.randint(size.vocabulary, (size.prompt,)).tolist()
    model = assembled("lstm", {"width": LSTM_WIDTH[size.name], "tie": True}, size)
    contenders = forms(model, "lstm", prompt, size.new)
    title = f"LSTM, {parameters(model)}, {size.prompt} + {size.new} tokens"
    return section(title, contenders, "lstm, float32", size.new, rounds, turn, ["lstm"], {})


def assembled(name: str, options: dict[str, Any], size: Size) -> SequenceModel:
    config = import_module(f"seqloom.models.{name}").Config.model_validate(options)
    model = config.assemble(common.make_task(size.vocabulary)).eval()
    peers.scatter_weights(model)
    return model


def forms(model: SequenceModel, name: str, prompt: list[int], new: int) -> dict[str, Callable[[], list[int]]]:
    """In float32, in float32 without kernels, and in int8."""
    small = to_int8(deepcopy(model))

    def without() -> list[int]:
        with without_kernels():
            return peers.our_tokens(model, prompt, new)

    return {
        f"{name}, float32": lambda: peers.our_tokens(model, prompt, new),
        f"{name}, no kernels": without,
        f"{name}, int8": lambda: peers.our_tokens(small, prompt, new),
    }


def section(
    title: str,
    contenders: dict[str, Callable[[], list[int]]],
    base: str,
    new: int,
    rounds: int,
    turn: float,
    names: list[str],
    pairs: dict[str, str],
) -> dict[str, Any]:
    """`names`: models whose tokens with and without kernels are compared; `pairs`: also with those of a peer."""
    turns = common.race(contenders, rounds, turn)
    rows = [
        {
            "name": name,
            "tokens_per_second": new / min(turns[name]),
            "ratio": common.best_ratio(turns, name, base),
            "median_ratio": common.median_ratio(turns, name, base),
        }
        for name in contenders
    ]
    written = {name: run() for name, run in contenders.items()}
    same = [written[f"{name}, float32"] == written[f"{name}, no kernels"] for name in names]
    same += [written[f"{name}, float32"] == written[theirs] for name, theirs in pairs.items()]
    return {"title": title, "base": base, "rows": rows, "same_tokens": all(same)}


def ctranslate2(model: Any, size: Size, prompt: list[int], folder: Path) -> Callable[[], list[int]]:
    """The same GPT-2, converted; the converter wants a tokenizer, so it gets one with numbers for tokens."""
    import ctranslate2
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({str(n): n for n in range(size.vocabulary)}, unk_token="0"))
    names = {f"{role}_token": "0" for role in ("bos", "eos", "unk")}
    PreTrainedTokenizerFast(tokenizer_object=words, **names).save_pretrained(folder / "hf")
    model.save_pretrained(folder / "hf")
    converter = ctranslate2.converters.TransformersConverter(str(folder / "hf"))
    converter.convert(str(folder / "ct2"), quantization="int8")
    threads = torch.get_num_threads()
    generator = ctranslate2.Generator(str(folder / "ct2"), compute_type="int8", intra_threads=threads)
    how = {"max_length": size.new, "min_length": size.new, "include_prompt_in_result": False, "sampling_topk": 1}
    pieces = [str(n) for n in prompt]
    return lambda: generator.generate_batch([pieces], **how)[0].sequences_ids[0]


def shape(size: Size) -> peers.Size:
    return peers.Size(gpt=(size.width, size.depth, size.heads))


def parameters(model: SequenceModel) -> str:
    return f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters"


def table(found: dict[str, Any]) -> str:
    lines = [found["title"], f"{'':24}{'tokens/s':>10}{'x ' + found['base']:>24}{'(median)':>10}"]
    for row in found["rows"]:
        ratio, median = row["ratio"], f"({row['median_ratio']:.2f})"
        lines.append(f"  {row['name']:22}{row['tokens_per_second']:10,.0f}{ratio:22.2f} x{median:>10}")
    return "\n".join([*lines, f"  float32: {'the same tokens' if found['same_tokens'] else 'OTHER TOKENS'}"])


if __name__ == "__main__":
    main()
