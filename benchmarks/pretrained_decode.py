"""Decoding of a pretrained language model, one row at a time, beside transformers and, if installed, CTranslate2.

    seqloom weights smollm2
    python benchmarks/pretrained_decode.py [--from weights:smollm2] [--new 48] [--rounds 5] [--threads 1] [--out FILE]

The same greedy continuation of the same prompt, by the same weights: transformers in float32, ours in float32 and in
int8, CTranslate2 in int8. All take turns; the best turn of each counts. The tokens of the float32 models are compared.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import common
import torch

from seqloom.decode.pick import Choice
from seqloom.decode.stream import stream
from seqloom.runs.run import Run, load
from seqloom.runs.source import locate

PROMPT = "The history of sequence models begins with the question of how a machine can"
THEIRS, OURS, INT8, CT2 = "transformers, float32", "seqloom, float32", "seqloom, int8", "CTranslate2, int8"

Write = Callable[[], list[int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="source", default="weights:smollm2")
    parser.add_argument("--new", type=int, default=48, help="tokens to write")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=2.0, help="seconds per turn")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    with tempfile.TemporaryDirectory() as folder:
        report = measure(options, Path(folder))
    show(report)
    if options.out:
        common.write_json(options.out, report)


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    run = load(options.source)
    prompt = run.tokenizer.encode(PROMPT).tolist()
    theirs = their_model(locate(options.source))
    writers: dict[str, Write] = {
        THEIRS: lambda: their_tokens(theirs, prompt, options.new),
        OURS: ours(run, prompt, options.new),
        INT8: ours(load(options.source, int8=True), prompt, options.new),
    }
    if find_spec("ctranslate2"):
        writers[CT2] = ct2(theirs, run, prompt, options, folder)
    turns = common.race(writers, options.rounds, options.turn)
    rows = [
        {
            "name": name,
            "tokens_per_second": options.new / min(turns[name]),
            "ratio": common.best_ratio(turns, name, THEIRS),
            "median_ratio": common.median_ratio(turns, name, THEIRS),
        }
        for name in writers
    ]
    written = {name: write() for name, write in writers.items()}
    return {
        "source": options.source,
        "parameters": run.summary["parameters"],
        "prompt": len(prompt),
        "new": options.new,
        "same_tokens": written[OURS] == written[THEIRS],
        "int8_same_tokens": sum(a == b for a, b in zip(written[INT8], written[THEIRS], strict=True)),
        "rows": rows,
        "machine": common.describe_machine("transformers"),
    }


def ours(run: Run, prompt: list[int], new: int) -> Write:
    return lambda: [int(t) for t in stream(run.model, [prompt], max_new=new, choose=Choice(temperature=0))]


def their_model(path: Path) -> Any:
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    where = {"gguf_file": path.name} if path.is_file() else {}
    folder = path.parent if path.is_file() else path
    return AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32, **where).eval()


def their_tokens(model: Any, prompt: list[int], new: int) -> list[int]:
    ids = torch.tensor([prompt])
    how = {"max_new_tokens": new, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    return model.generate(ids, attention_mask=torch.ones_like(ids), **how)[0, len(prompt) :].tolist()


def ct2(model: Any, run: Run, prompt: list[int], options: argparse.Namespace, folder: Path) -> Write:
    """CTranslate2 reads a folder of transformers with its tokenizer, and converts it."""
    import ctranslate2

    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder / "hf")
    for name, data in run.tokenizer.files().items():
        (folder / "hf" / name).write_bytes(data)
    converter = ctranslate2.converters.TransformersConverter(str(folder / "hf"))
    converter.convert(str(folder / "ct2"), quantization="int8")
    generator = ctranslate2.Generator(str(folder / "ct2"), compute_type="int8", intra_threads=options.threads)
    names = {id: token for token, id in run.tokenizer.vocabulary.items()}
    pieces = [names[id] for id in prompt]
    how = {"max_length": options.new, "min_length": options.new, "include_prompt_in_result": False}
    return lambda: generator.generate_batch([pieces], sampling_topk=1, **how)[0].sequences_ids[0]


def show(report: dict[str, Any]) -> None:
    print(f"{report['source']}: {report['parameters'] / 1e6:.1f} M parameters, greedy, one row, {report['prompt']} + "
          f"{report['new']} tokens")  # fmt: skip
    print(", ".join(f"{name} {value}" for name, value in report["machine"].items()))
    print(f"{'':24}{'tokens/s':>10}{'x transformers':>16}{'(median)':>10}")
    for row in report["rows"]:
        print(f"{row['name']:24}{row['tokens_per_second']:10.1f}{row['ratio']:16.2f}{row['median_ratio']:10.2f}")
    print(f"float32: {'the same tokens' if report['same_tokens'] else 'OTHER TOKENS'}; int8: "
          f"{report['int8_same_tokens']} of {report['new']} the same")  # fmt: skip


if __name__ == "__main__":
    main()
