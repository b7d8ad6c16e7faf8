"""A result of `seqloom compare` as a real comparison gives it: four models, one that failed, an n-gram, and naive
baselines."""

from __future__ import annotations

import math
import random
from dataclasses import asdict
from typing import Any

from seqloom.compare import judging
from seqloom.compare.advice.recommend import recommend
from seqloom.lab import statistics
from seqloom.lab.rules import Margin
from seqloom.lab.tuning import tuning
from seqloom.tasks.language_model import LanguageModel

SEEDS = [1, 2, 3]
TOKENS = 1_536_000
EPOCH = 143_183
LEVEL, MARGIN = 0.04, Margin(amount=0.01)
CONTEXTS = [64, 128, 256, 512, 1024, 2048]

# score, parameters, backbone, FLOPs, tokens/s, peak bytes, ms per token, bytes of state, (of them growing with context)
MODELS: dict[str, tuple[float, int, int, int, float, int, float, int, int]] = {
    "lstm": (1.4853, 799_424, 771_904, 1_566_720, 17_240.0, 214_000_000, 0.41, 3_328, 0),
    "gru": (1.4912, 800_310, 771_120, 1_573_900, 15_880.0, 208_000_000, 0.38, 1_920, 0),
    "gpt": (1.5306, 801_280, 787_968, 1_622_016, 21_450.0, 305_000_000, 0.62, 0, 2_048),
    "rnn": (1.6174, 798_848, 761_600, 1_543_168, 19_010.0, 190_000_000, 0.27, 2_472, 0),
}
RECIPES = {"lstm": (1.5432, 1.4790), "gru": (1.5180, 1.4871), "gpt": (1.6310, 1.5240), "rnn": (1.6502, 1.6105)}
NGRAM = 1.5612
WATCHED = {
    "lstm": ["input_gate", "forget_gate", "output_gate", "candidate", "cell"],
    "gru": ["reset_gate", "update_gate", "candidate"],
    "gpt": ["attention.weights", "attention.output", "feed_forward.hidden"],
    "rnn": ["hidden"],
}
TEXTS = {
    "lstm": "Time Traveller was betwing ingually discovering\nwith a back to be perhaps with my mind me, the said and "
    "must have seemed to swo. And so\nthat it by was almost carver head for a perfectly slopes of the people.",
    "gru": "same darkness of the little people, and in the sun was a great hall of the machine. I had the sense of a "
    "strange and the white Thing of the Morlocks.",
    "gpt": "little matches. The whole world was still and the moon that I had seen the palace of green porcelain, and "
    "then <b>I</b> stopped & looked.",
    "rnn": "the the sount of thes and wher I hard of the in the mang and the thing the sore the stould.",
}


def example() -> dict[str, Any]:
    rng = random.Random(0)
    done = [_entry(name, rng) for name in MODELS]
    failed = {
        "name": "gpt-wide", "model": "gpt", "given": {"preset": "gpt2", "width": 768}, "state": "failed",
        "error": "no width gives 800,000 parameters with preset gpt2: the smallest has 1,204,224; raise --params",
        "config": None, "parameters": None, "search": [], "runs": [], "score": None, "against_best": None, "cost": None,
        "aspects": None, "sample": None, "command": None,
    }  # fmt: skip
    result = {
        "protocol": _protocol(),
        "entries": [*done, failed, _fixed(rng)],
        "baselines": [
            {"name": "unigram", "score": 3.0775, "scores": {"bits_per_byte": 4.4399}},
            {"name": "uniform", "score": 4.3041, "scores": {"bits_per_byte": 6.2095}},
        ],
        "recipe_table": [
            {"entry": name, "recipe": recipe, "score": score}
            for name, pair in RECIPES.items()
            for recipe, score in zip(("adamw", "muon"), pair, strict=True)
        ],
        "best": "lstm",
        "timing": {
            "wall": 1_684.0,
            "training": 3_240.0,
            "jobs": 2,
            "overhead": 1_684.0 * 2 / 3_240.0 - 1,
            "outside": {"probes": 52.0, "measuring": 31.0, "starting": 8.0, "idle": 37.0},
        },
    }
    return judged(result)


def judged(result: dict[str, Any], **wishes: Any) -> dict[str, Any]:
    """The same result with what follows from its runs: intervals, verdicts, the best and the recommendation."""
    protocol = result["protocol"]
    done = [entry for entry in result["entries"] if entry["state"] == "done"]
    higher = protocol["higher_is_better"]
    bounds = tuple(protocol["titles"]["scores"][protocol["metric"]]["bounds"])
    samples = judging.samples(done, higher)
    found = judging.verdicts(samples, higher, protocol["level"], Margin.parse(protocol["margin"]), bounds)
    for entry in done:
        sample = samples[entry["name"]]
        entry["score"] = asdict(statistics.score_interval(sample, protocol["confidence"], bounds))
        entry["tuning_variance"] = sample.tuning
        entry["against_best"] = asdict(found[entry["name"]])
    result["best"] = next((name for name, verdict in found.items() if verdict.verdict == "best"), None)
    result["recommendation"] = recommend(result, **wishes)
    return result


def titles(task: Any) -> dict[str, Any]:
    """As a task declares them: of itself, its scores and its baselines."""
    return {
        "task": list(task.title),
        "scores": {score.name: score.to_json() for score in task.scores},
        "baselines": {name: list(title) for name, title in task.baseline_titles.items()},
        "protocol": [list(phrase) for phrase in task.protocol_phrases],
    }


def _protocol() -> dict[str, Any]:
    return {
        "task": "language_model", "metric": "loss", "higher_is_better": False,
        "shown": ["bits_per_byte"], "latency_unit": "token", "titles": titles(LanguageModel),
        "scored": "nats per token, state carried through the whole stream, 17,897 tokens",
        "data": {
            "train": {"name": "book.txt", "bytes": 143_183, "hash": "sha256:5b1f0c8e2a7d4419", "tokens": 143_183},
            "valid": {"name": "book.txt", "bytes": 17_898, "hash": "sha256:9e0b7712c3d8a650", "tokens": 17_898},
            "test": {"name": "book.txt", "bytes": 17_898, "hash": "sha256:1c44e0f9ab6d2083", "tokens": 17_898},
        },
        "size": {"target": 800_000, "count": "all"},
        "budget": {"kind": "tokens", "amount": TOKENS},
        "trials": 6, "trial_share": 0.5,
        "space": {
            "scale": [0.25, 4.0], "optimizer": ["muon", "adamw"], "dropout": [0.0, 0.3], "weight_decay": [0.0, 0.3],
        },
        "seeds": SEEDS, "jobs": 2, "threads": 1, "on": "local", "device": "cpu",
        "shared": {"task.length": 64, "train.batch": 8, "task.stretch": 2048},
        "epoch_tokens": EPOCH, "confidence": 0.95, "level": LEVEL, "margin": MARGIN.text,
        "plan": {"sha256": "7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1fa3d677284addd200126d9069", "look": 1,
                 "amendments": 0},
        "versions": {"seqloom": "0.1.0", "torch": "2.9.0", "python": "3.11.2", "system": "Linux x86_64, 2 cores"},
        "command": "seqloom compare --task language_model --data book.txt --models lstm,gru,gpt,rnn --params 800k "
        "--budget tokens=1536000 --trials 6 --seeds 3 --jobs 2 --out compare/book",
        "started": "2026-01-01T10:00:00+00:00",
    }  # fmt: skip


def _entry(name: str, rng: random.Random) -> dict[str, Any]:
    score, parameters, backbone, flops, speed, peak, latency, state, growing = MODELS[name]
    runs = [_run(name, seed, score + luck, rng) for seed, luck in zip(SEEDS, (-0.004, 0.001, 0.003), strict=True)]
    mean = sum(run["score"] for run in runs) / len(runs)
    return {
        "name": name, "model": name, "given": {}, "state": "done", "error": None,
        "config": {"width": {"lstm": 416, "gru": 480, "gpt": 128, "rnn": 618}[name], "depth": 4 if growing else 1},
        "parameters": parameters, "backbone_parameters": backbone, "flops_per_token": flops,
        "tuned": {"train.rate": 0.004, "train.optimizer": "muon", "model.dropout": 0.1},
        "search": (trials := _search(name, rng)),
        "tuning": tuning(trials, set(), higher=False, confidence=0.95),
        "runs": runs,
        "scores": {"bits_per_byte": {"mean": mean / math.log(2), "low": None, "high": None, "seeds": 3}},
        "cost": {
            "tokens_per_second": speed, "seconds": TOKENS / speed, "peak_bytes": peak,
            "latency": [
                {"context": c, "seconds": latency / 1e3 * (1 + (c / 1500 if growing else 0.01))} for c in CONTEXTS
            ],
            "state": [{"context": c, "bytes": state + growing * c} for c in CONTEXTS],
        },
        "aspects": _aspects(name, growing > 0, speed),
        "sample": {"prompt": "The ", "text": TEXTS[name]},
        "command": f"seqloom fit --data book.txt --model {name} --out compare/book/runs/{name}/seed-1 "
        f"-o train.tokens={TOKENS} -o train.seed=1 -o train.rate=0.004",
    }  # fmt: skip


def _run(name: str, seed: int, score: float, rng: random.Random) -> dict[str, Any]:
    speed = MODELS[name][4] * rng.uniform(0.97, 1.03)
    curve = []
    for step in range(1, 31):
        tokens = TOKENS * step // 30
        valid = score - 0.01 + 1.3 * math.exp(-4.2 * (tokens / TOKENS) ** 0.5) + rng.gauss(0, 0.004)
        curve.append({"tokens": tokens, "seconds": tokens / speed, "valid": valid})
    return {
        "seed": seed, "state": "done", "error": None, "score": score, "valid": curve[-1]["valid"],
        "scores": {"bits_per_byte": score / math.log(2)}, "pieces": _pieces(score, rng),
        "tokens": TOKENS, "steps": 3000, "seconds": TOKENS / speed, "flops": 3.0 * MODELS[name][3] * TOKENS,
        "tokens_per_second": speed, "peak_bytes": MODELS[name][5], "curve": curve, "folder": f"runs/{name}/seed-{seed}",
    }  # fmt: skip


def _pieces(score: float, rng: random.Random) -> list[float]:
    """Some pieces of the text are hard for everyone."""
    found = [0.1 * math.sin(7 * n) + rng.gauss(0, 0.003) for n in range(40)]
    return [score + piece - sum(found) / 40 for piece in found]


def _fixed(rng: random.Random) -> dict[str, Any]:
    """The n-gram: counted, not trained."""
    seconds, name = 0.31, "ngram"
    run = {
        "seed": 1, "state": "done", "error": None, "score": NGRAM, "valid": NGRAM + 0.02,
        "scores": {"bits_per_byte": NGRAM / math.log(2)}, "pieces": _pieces(NGRAM, rng), "tokens": EPOCH, "steps": 0,
        "seconds": seconds, "flops": None, "tokens_per_second": EPOCH / seconds, "peak_bytes": 151_000_000,
        "curve": [], "folder": f"runs/{name}/seed-1",
    }  # fmt: skip
    return {
        "name": name, "model": name, "given": {}, "state": "done", "error": None, "config": {"order": 5},
        "parameters": 412_960, "backbone_parameters": 0, "runs": [run], "fixed": True, "search": [],
        "scores": {"bits_per_byte": {"mean": NGRAM / math.log(2), "low": None, "high": None, "seeds": 1}},
        "cost": {
            "tokens_per_second": EPOCH / seconds, "seconds": seconds, "peak_bytes": 151_000_000,
            "latency": [{"context": c, "seconds": 1.9e-4} for c in CONTEXTS],
            "state": [{"context": c, "bytes": 32} for c in CONTEXTS],
        },
        "aspects": dict.fromkeys(
            ("positions", "trained_length", "forgetting", "horizon", "recall", "chance", "taps", "transfer")
        ) | {"throughput": []},
        "sample": {"prompt": "The ", "text": "time that he was a little of the sun and the thing."},
        "command": "seqloom fit --data book.txt --model ngram --out compare/book/runs/ngram/seed-1",
    }  # fmt: skip


def _search(name: str, rng: random.Random) -> list[dict[str, Any]]:
    trials: list[dict[str, Any]] = []
    for number, scale in enumerate((1.0, 0.41, 2.7, 1.4, 0.78, 3.9)):
        optimizer = "adamw" if number in (1, 4) else "muon"
        score = RECIPES[name][optimizer == "muon"] + 0.02 * math.log(scale / 1.3) ** 2 + rng.uniform(0, 0.004)
        state = "failed" if name == "rnn" and number == 5 else "pruned" if number == 5 else "done"
        trials.append({
            "trial": number + 1, "settings": {
                "scale": scale, "optimizer": optimizer, "dropout": 0.05 * number, "weight_decay": 0.02 * (number % 2),
            },
            "state": state, "score": score if state == "done" else None, "last": score if state == "pruned" else None,
            "share": {"done": 1.0, "pruned": 0.33, "failed": 0.1}[state],
            "error": "the loss is not a number at step 212" if state == "failed" else None,
        })  # fmt: skip
    return trials


def _aspects(name: str, windowed: bool, speed: float) -> dict[str, Any]:
    stretches = [(1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, 63), (64, 127), (128, 255), (256, 511), (512, 1023)]
    score, reach = MODELS[name][0], {"lstm": 90, "gru": 60, "gpt": 64, "rnn": 9}[name]
    return {
        "positions": [
            {"from": a, "to": b, "loss": score + 1.6 / (a + 0.3) ** 0.8 + (a / 2048 if windowed and a > 64 else 0)}
            for a, b in stretches
        ],
        "trained_length": 64,
        "recall": [
            {"distance": d, "accuracy": 0.0625 + 0.93 / (1 + (d / reach) ** (6 if windowed else 2))}
            for d in (2, 4, 8, 16, 32, 64, 128, 256)
        ],
        "chance": 0.0625,
        "throughput": [
            {"length": n, "tokens_per_second": speed * (n / 64) ** (0.35 if windowed and n < 512 else 0.04)}
            for n in (16, 64, 256, 1024)
        ],
        "taps": {"count": len(WATCHED[name]), "names": [f"backbone.layers.0.0.{tap}" for tap in WATCHED[name]]},
    }  # fmt: skip
