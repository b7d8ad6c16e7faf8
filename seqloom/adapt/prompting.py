"""`prompt`: the accuracy of a prompted language model against the number of labelled examples in the prompt.

Nothing is trained. For every number of examples per label, several draws of them are scored on the same test rows; what
is finished is kept, so that running the same command again goes on where it stopped.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from seqloom.adapt.labels import answers
from seqloom.core.errors import UserError
from seqloom.core.json_text import to_json
from seqloom.core.network import SequenceModel
from seqloom.core.order import spread
from seqloom.core.progress import Reporter, Silent
from seqloom.core.rows import Json
from seqloom.data.memory import Data
from seqloom.data.shapes.columns import Columns
from seqloom.decode.endpoint import SCHEME, Endpoint
from seqloom.decode.shots import draw_shots
from seqloom.decode.templates import Wording, find_template
from seqloom.runs import durable, methods
from seqloom.runs.base import predicts_the_same, read_base, tokenizer_of
from seqloom.runs.choosing import choose
from seqloom.runs.configure import read_request
from seqloom.runs.given import place
from seqloom.runs.lock import locked
from seqloom.runs.material import Material
from seqloom.runs.registry import model_config, task_config
from seqloom.runs.settings import RunConfig
from seqloom.runs.terminal import reporter
from seqloom.train.engine import choose_device
from seqloom.train.transfer import transfer

FILE = "curve.json"
SHOTS, DRAWS, LEVEL = (0, 1, 2, 4, 8), 5, 0.95
OVER_DRAWS = "95 % t-interval over draws of the examples, on the same test rows"
OVER_ROWS = "95 % binomial interval over the test rows, for this one prompt"


@dataclass(frozen=True)
class Curve:
    """Accuracy by number of examples per label."""

    facts: Json  # as in curve.json
    folder: Path

    @property
    def points(self) -> list[Json]:
        found: list[Json] = self.facts["points"]
        return found

    def __repr__(self) -> str:
        rows = [f"k = {p['shots']}: {p['accuracy']:.3f} [{p['low']:.3f}, {p['high']:.3f}]" for p in self.points]
        return "\n".join([f"{self.facts['source']}, {self.facts['rows']:,} test rows", *rows])


def prompt(
    source: str | Path,
    data: Data,
    *,
    test: Data = None,
    shots: Sequence[int] = SHOTS,
    draws: int = DRAWS,
    template: str | Path = "default",
    rows: int = 0,
    seed: int = 0,
    out: str | Path,
    columns: Columns | None = None,
    options: Mapping[str, object] | None = None,
    quiet: bool = False,
) -> Curve:
    """The accuracy of a prompted language model on labelled texts, for each number of examples per label in `shots`.

    `source`: a run of a language model, weights:NAME, hf:PATH, or openai:URL#MODEL; `data`: where examples are drawn
    from; `test`: what is scored, by default a tenth held out from `data`; `draws`: of examples per number, with seeds
    from `seed` on; `rows`: test rows, evenly spaced, 0 for all; `template`: `default` or the path of a TOML file;
    `options`: other settings by path, such as {"task.calibration": False}; `out`: the folder for curve.json.
    """
    if any(k < 0 for k in shots) or not shots or draws < 1 or rows < 0:
        raise UserError("shots are numbers from 0 on, draws at least 1, rows at least 1 or 0 for all")
    if strange := {"task.shots", "task.prompt", "train.method", "train.start"} & set(options or {}):
        raise UserError(f"{min(strange)}: not among the options of a curve; use shots, template and source")
    talk: Reporter = Silent() if quiet else reporter()
    placed = place({"train": data, "test": test}, "classification", [], None)
    flags = {f"data.{part}": spec for part, spec in placed.specs.items() if spec is not None}
    given = {"task.prompt": str(template), **(options or {}), **flags}
    kind = _Remote if str(source).startswith(SCHEME) else _Local
    scored: _Local | _Remote = kind(str(source), given, placed.overrides, columns or {}, rows)
    folder = Path(out)
    with locked(folder):
        found = _known(folder, scored.identity())
        jobs = [(k, d) for k in sorted(set(shots)) for d in range(1 if k == 0 else draws)]
        for n, (k, draw) in enumerate(jobs):
            key = f"{k}/{seed + draw}"
            if key not in found["scores"]:
                found["scores"][key] = score = scored.score(k, seed + draw)
                _write(folder, found)
                talk.say(f"{n + 1} of {len(jobs)}: {k} examples per label, draw {draw + 1}: {score['accuracy']:.3f}")
        found |= {"points": [_point(k, [found["scores"][f"{k}/{seed + d}"] for j, d in jobs if j == k], found)
                             for k in sorted(set(shots))]}  # fmt: skip
        _write(folder, found)
    talk.close()
    return Curve(found, folder)


def _known(folder: Path, identity: Json) -> Json:
    """What is finished of this curve; refuses the folder of another."""
    path = folder / FILE
    if not path.exists():
        return identity | {"scores": {}}
    try:
        before = json.loads(path.read_bytes())
        different = [name for name, value in identity.items() if before.get(name) != value]
        scores = dict(before["scores"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: damaged, or not written by seqloom prompt; choose another --out") from None
    if different:
        raise UserError(f"{folder} holds another curve (different: {', '.join(different)}); choose another --out")
    return identity | {"scores": scores}


def _write(folder: Path, found: Json) -> None:
    durable.write_file(folder / FILE, to_json(found) + b"\n")


def _point(shots: int, scores: Sequence[Json], found: Json) -> Json:
    values = np.array([score["accuracy"] for score in scores])
    several = len(values) > 1
    low, high = t_interval(values) if several else binomial_interval(values[0], found["rows"])
    more = {name: float(np.mean([score[name] for score in scores])) for name in ("no_label",) if name in scores[0]}
    return {
        "shots": shots, "accuracy": float(values.mean()), "low": low, "high": high, "draws": len(values),
        "interval": OVER_DRAWS if several else OVER_ROWS, **more,
    }  # fmt: skip


def t_interval(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Of the mean."""
    count, mean = len(values), float(values.mean())
    reach = float(special.stdtrit(count - 1, (1 + level) / 2) * values.std(ddof=1) / np.sqrt(count))
    return max(0.0, mean - reach), min(1.0, mean + reach)


def binomial_interval(share: float, count: int, level: float = LEVEL) -> tuple[float, float]:
    """Of a share of independent rows, exact (Clopper & Pearson 1934)."""
    hits, tail = round(share * count), (1 - level) / 2
    low = float(special.betaincinv(hits, count - hits + 1, tail)) if hits else 0.0
    high = float(special.betaincinv(hits + 1, count - hits, 1 - tail)) if hits < count else 1.0
    return low, high


class _Data:
    """The rows, as `fit` would read them."""

    def __init__(
        self, source: str, given: Mapping[str, object], overrides: Sequence[str], columns: Columns, rows: int,
        start: str | None,
    ) -> None:  # fmt: skip
        flags = {"task.name": "classification", "train.method": "prompt", **given}
        flags |= {"train.start": start} if start else {}
        request = read_request(None, flags, overrides, columns=columns)
        chosen = {choice.path: choice.value for choice in choose(request)}
        self.config: RunConfig = request.settle(chosen)
        self.name, self.material = source, Material(self.config)
        parts = self.material.parts
        self.part = "test" if "test" in parts else "valid"
        self.train, self.test = parts["train"], parts[self.part]
        if getattr(self.train, "multi", False):
            raise UserError("a prompt chooses one label per row, but these rows may have several; leave data.separator "
                            "out, or use rows with one label each")  # fmt: skip
        self.labels = sorted(self.train.labels)  # type: ignore[attr-defined]
        self.chosen = spread(min(rows or self.test.count, self.test.count), self.test.count)  # type: ignore[attr-defined]
        Wording(find_template(self.config.task["prompt"]), self.labels)

    def identity(self) -> Json:
        test = list(self.test.rows())  # type: ignore[attr-defined]
        counts = Counter(row.labels[0] for row in self.train.rows())  # type: ignore[attr-defined]
        most = counts.most_common(1)[0][0]
        return {
            "source": self.name,
            "template": json.loads(self.config.task["prompt"]),
            "options": {name: self.config.task[name] for name in ("longest", "keep", "calibration")},
            "data": {"train": self.train.hash, self.part: self.test.hash},
            "rows": len(self.chosen),
            "majority": float(np.mean([test[n].labels == (most,) for n in self.chosen])),
        }


class _Local(_Data):
    """A language model whose labels are scored by log-probability."""

    def __init__(
        self, source: str, given: Mapping[str, object], overrides: Sequence[str], columns: Columns, rows: int
    ) -> None:
        super().__init__(source, given, overrides, columns, rows, source)
        config = self.config
        methods.check(config)
        vocabulary = self.material.new_vocabulary(tokenizer_of(source, self.material.shape))
        self.options, self.vocabulary = task_config(config), vocabulary
        base, task = read_base(source), self.options.build(vocabulary)
        self.model: SequenceModel = model_config(config).assemble(task)
        methods.check_head(config, predicts_the_same(base, config, vocabulary))
        transfer(self.model, base.tensors, base.name, head=True, blank=base.foreign)
        self.model.to(choose_device(config.train.device)).requires_grad_(False).eval()
        self.sha256 = base.sha256
        self.rows = self.material.shape.prepare_parts({"train": self.train, "test": self.test}, vocabulary, Silent())

    def identity(self) -> Json:
        return super().identity() | {"weights": self.sha256, "scored_by": "log-probability of the labels"}

    def score(self, shots: int, seed: int) -> Json:
        options: Any = self.options.model_copy(update={"shots": shots, "scored": len(self.chosen)})
        task: Any = options.build(self.vocabulary)
        task.draw_prompt(self.model, self.rows["train"], seed)
        found = task.evaluate(self.model, self.rows["test"])
        return {name: found[name] for name in ("accuracy", "macro_f1", "loss", "protocol")}


class _Remote(_Data):
    """An endpoint that writes an answer, in which a label is looked for."""

    def __init__(
        self, source: str, given: Mapping[str, object], overrides: Sequence[str], columns: Columns, rows: int
    ) -> None:
        self.endpoint = Endpoint.parse(source)
        super().__init__(self.endpoint.shown, given, overrides, columns, rows, None)
        self.template = find_template(self.config.task["prompt"])

    def identity(self) -> Json:
        return super().identity() | {"scored_by": "generated answer"}

    def score(self, shots: int, seed: int) -> Json:
        train, test = (list(part.rows()) for part in (self.train, self.test))  # type: ignore[attr-defined]
        numbers = [self.labels.index(row.labels[0]) for row in train]
        drawn = draw_shots(numbers, self.labels, shots, seed)
        wording = Wording(self.template, self.labels, pair=len(train[0].texts) > 1)
        examples = [(train[n].texts, numbers[n]) for n in drawn]
        asked = (wording.messages(examples, test[n].texts) for n in self.chosen)
        found = list(answers(self.endpoint, asked, wording.words))
        correct = [n is not None and (self.labels[n],) == test[row].labels
                   for n, row in zip(found, self.chosen, strict=True)]  # fmt: skip
        return {"accuracy": float(np.mean(correct)), "no_label": found.count(None) / len(found)}
