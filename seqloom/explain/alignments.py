"""Attention between source and output as data: maps, how monotonic they are, and their alignment error rate.

A map has one row per output token and one column per source token. The first is the mean of all maps, followed for each
layer by its mean and its heads.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.decode.alignment import Alignment
from seqloom.runs.run import Run

Links = set[tuple[int, int]]  # (word of the source, word of the target), counted from 0


@runtime_checkable
class AlignedTask(Protocol):
    """A task that can align a source with a target (None: the model's own output)."""

    def align(self, model: SequenceModel, source: str, target: str | None = None) -> Alignment: ...


class Gold(NamedTuple):
    """Human-annotated links."""

    sure: Links
    possible: Links


def explain_alignment(run: Run, text: str, target: str | None = None, gold: Gold | None = None) -> Json:
    """Tokens and maps, as JSON. `target`: explain this output instead of the model's own; `gold` refers to it."""
    if gold is not None and target is None:
        raise UserError("--gold: reference alignments refer to a given output; give --target with --gold")
    if not isinstance(run.task, AlignedTask):
        raise UserError(
            f"a {run.task.name} run has no source and output to align; alignments need a sequence-to-sequence run"
        )
    found = run.task.align(run.model, text, target)
    words = _words(run, found) if gold is not None else None
    if gold is not None and words is not None:
        _check(gold, text, found.target)
    maps = []
    for name, weights in _maps(found):
        entry = {"name": name, "weights": _rounded(weights), "forward": forward_share(weights[:-1])}
        if gold is not None and words is not None:
            entry["error_rate"] = alignment_error_rate(word_links(weights, *words), *gold)
        maps.append(entry)
    return {
        "run": str(run.folder.path),
        "model": run.config.model["name"],
        "source": found.source,
        "target": found.target,
        "given": target is not None,
        "score": found.score,
        "cut": found.cut,
        "source_tokens": found.source_tokens,
        "target_tokens": found.target_tokens,
        "on_source": round(float(found.mean.sum(1).mean()), 4),  # below 1: the rest is on the output so far
        "maps": maps,
    }


def forward_share(weights: Tensor) -> float | None:
    """Share of steps that do not move back in the source, by the largest weight of each row; None: too few rows."""
    if len(weights) < 2:
        return None
    places = weights.argmax(1)
    return float((places[1:] >= places[:-1]).double().mean())


def word_links(weights: Tensor, sources: list[int | None], targets: list[int | None]) -> Links:
    """The source word that each target word attends to most: token weights (T, S), summed over the tokens of a source
    word and averaged over those of a target word. Tokens outside any word (white space, end of text) are left out."""
    columns, rows = _membership(sources), _membership(targets)
    of_words = (rows / rows.sum(1, keepdim=True).clamp(min=1)) @ weights.double() @ columns.T
    links = enumerate(of_words.argmax(1).tolist()) if columns.size(0) else ()
    return {(source, target) for target, source in links if rows[target].any()}


def word_of(tokenizer: Any, text: str) -> list[int | None]:
    """The index of the word that each token of a text belongs to; words are separated by white space."""
    starts = [found.start() for found in re.finditer(r"\S+", text)]
    spans = tokenizer.hf.encode(text, add_special_tokens=False).offsets
    inside = ((start + len(text[start:end]) - len(text[start:end].lstrip()), end) for start, end in spans)
    return [bisect_right(starts, start) - 1 if start < end else None for start, end in inside]


def read_gold(path: Path) -> Gold:
    """One line in Pharaoh format, source-target: `0-0 1-2`; a merely possible link is written `1?2` or `1p2`."""
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UserError(f"{path}: {(reason or str(error)).lower()}") from None
    if len(lines) != 1:
        raise UserError(f"{path}: {len(lines)} lines with links; expected one, such as 0-0 1-2")
    sure: Links = set()
    possible: Links = set()
    for link in lines[0].split():
        parts = re.fullmatch(r"(\d+)([-?p])(\d+)", link)
        if parts is None:
            raise UserError(f"{path}: {link!r} is not a link; expected source-target, counted from 0, such as 0-0 1-2")
        (sure if parts[2] == "-" else possible).add((int(parts[1]), int(parts[3])))
    return Gold(sure, possible)


def _maps(found: Alignment) -> list[tuple[str, Tensor]]:
    """Each (T, S): the overall mean, then for each layer its mean and its heads; single layers and heads only once."""
    maps = [("mean", found.mean)]
    for part in found.maps:
        if len(found.maps) > 1:
            maps.append((f"{part.name}, mean" if len(part.weights) > 1 else part.name, part.weights.mean(0)))
        if len(part.weights) > 1:
            maps += [(f"{part.name}, head {head}", weights) for head, weights in enumerate(part.weights, 1)]
    return maps


def _words(run: Run, found: Alignment) -> tuple[list[int | None], list[int | None]]:
    """Word indices of the source and target tokens, None for the end token; a truncated source has fewer tokens."""
    sources = word_of(run.tokenizer.source, found.source)[: len(found.source_tokens) - 1]
    return [*sources, None], [*word_of(run.tokenizer.target, found.target), None]


def _check(gold: Gold, source: str, target: str) -> None:
    counts = len(source.split()), len(target.split())
    for link in sorted(gold.sure | gold.possible):
        for place, count, side in zip(link, counts, ("source", "target"), strict=True):
            if place >= count:
                shown = "-".join(map(str, link))
                raise UserError(f"link {shown}: the {side} has {count} words, numbered 0 to {count - 1}")


def _membership(words: list[int | None]) -> Tensor:
    """(words, tokens): 1 where the token belongs to the word."""
    count = max((word + 1 for word in words if word is not None), default=0)
    members = torch.zeros(count, len(words), dtype=torch.double)
    for token, word in enumerate(words):
        if word is not None:
            members[word, token] = 1
    return members


def _rounded(weights: Tensor) -> list[list[float]]:
    return [[round(weight, 4) for weight in row] for row in weights.tolist()]


def alignment_error_rate(
    predicted: set[tuple[int, int]], sure: set[tuple[int, int]], possible: set[tuple[int, int]] | None = None
) -> float:
    """AER (Och and Ney 2003, section 6): 1 - (|A & S| + |A & P|) / (|A| + |S|); a sure link is also a possible one."""
    allowed = sure | (possible or set())
    total = len(predicted) + len(sure)
    return 1 - (len(predicted & sure) + len(predicted & allowed)) / total if total else 0.0
