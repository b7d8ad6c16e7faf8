"""The model card of an export: what it is, where its numbers come from, how it is used. No paths of this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from seqloom.core.rows import Json
from seqloom.export.source import Source
from seqloom.export.target import Written


def card(source: Source, facts: Json, written: Written) -> str:
    title = f"{source.architecture} for {source.task.title[0]}"
    parts = [
        _front_matter(written),
        f"# {title}",
        f"A model with {facts['parameters'] or 0:,} parameters, trained with seqloom and exported for "
        f"{facts['target']}{' with weights of 8 bits' if facts['int8'] else ''}.",
        "## Use",
        written.usage,
        "## Agreement with the run",
        _agreement(facts),
        "## Scores",
        "\n".join(_scores(source)) or "None were measured: these weights come from elsewhere.",
        "## Origin",
        "\n".join(_origin(source, facts)),
        "## Licence",
        "To be stated by whoever publishes this model; the data may restrict it.",
    ]
    return "\n\n".join(parts) + "\n"


def _front_matter(written: Written) -> str:
    facts = {"license": "other", "tags": ["seqloom"], **written.tags}
    lines = []
    for name, value in facts.items():
        lines += [f"{name}:", *(f"- {one}" for one in value)] if isinstance(value, list) else [f"{name}: {value}"]
    return "\n".join(["---", *lines, "---"])


def _agreement(facts: Json) -> str:
    found = [f"Loaded in its target and compared on {facts['inputs']}."]
    if "difference" in facts:
        found.append(f"Largest difference of {facts['compared']}: {facts['difference']:.2g}.")
    if "perplexity" in facts:
        ours, theirs = facts["perplexity"]["run"], facts["perplexity"]["export"]
        found.append(f"Perplexity: {ours:.6g} (run), {theirs:.6g} (export), {facts['perplexity']['change']:+.2%}.")
    if "greedy" in facts:
        equal, sources = facts["greedy"]["equal"], facts["greedy"]["sources"]
        found.append(f"Greedy search writes the same tokens for {equal} of {sources} sources.")
    return " ".join(found)


def _scores(source: Source) -> Iterator[str]:
    titles = {score.name: score.title[0] for score in source.task.scores}
    every: Json = source.run.summary.get("scores") or {}
    for part, scores in every.items():
        if not isinstance(scores, dict):
            continue
        own = [f"{titles[name]} {_number(scores[name])}" for name in titles if _is_number(scores.get(name))]
        yield f"- **{part}**: {', '.join(own)}"
        if "protocol" in scores:
            yield f"  - protocol: {_clean(str(scores['protocol']))}"
        for name, baseline in (scores.get("baselines") or {}).items():
            found = [f"{titles[one]} {_number(baseline[one])}" for one in titles if _is_number(baseline.get(one))]
            if found:
                title = source.task.baseline_titles.get(name, (name, name))[0]
                yield f"  - baseline, {title}: {', '.join(found)}"


def _origin(source: Source, facts: Json) -> Iterator[str]:
    record = source.record
    for part, about in (record.get("data") or {}).items():
        if isinstance(about, dict) and "hash" in about:
            name, size = _base(about.get("name", "")), about.get("bytes", 0)
            yield f"- data, {part}: `{name}`, {size:,} bytes, hash `{about['hash'][:16]}`"
    if "converted" in record:
        yield f"- converted from `{_base(record['converted'])}`"
    if record.get("command"):
        yield f"- command: `{command_of(record['command'])}`"
    if facts.get("weights"):
        yield f"- SHA-256 of the run's weights: `{facts['weights']}`"
    yield f"- seed: {facts['seed']}"
    known = {name: value for name, value in record.get("versions", {}).items() if name != "system"}
    yield f"- versions: {', '.join(f'{name} {value}' for name, value in known.items())}"


def command_of(command: Any) -> str:
    """As it was typed, but of paths only the last part."""
    words = command.split() if isinstance(command, str) else [str(word) for word in command]
    return _clean(" ".join(_base(word) if re.search(r"^~|(^|[=:])/", word) else word for word in words))


def _base(name: str) -> str:
    """The last part of a path, also of one behind a prefix such as hf: or an equals sign."""
    prefix, sign, path = re.match(r"((?:[\w.]+)?)([:=]?)(.*)", str(name), re.DOTALL).groups()  # type: ignore[union-attr]
    if not path.startswith(("/", "~", "./", "../")) and sign:
        return _clean(str(name))
    return _clean(f"{prefix}{sign}{PurePath(path).name or path}" if sign else PurePath(str(name)).name)


def _clean(text: str) -> str:
    return " ".join(text.replace("`", "'").split())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: float) -> str:
    return f"{value:.4g}"
