"""The tokenizers of a comparison, and the rows that each makes of the same data.

DIR/tokenizer/           shared by all entries that are trained from scratch, and by the baselines
DIR/tokenizer-1a2b3c/    of pretrained weights
"""

from __future__ import annotations

import json

from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter
from seqloom.core.rows import Json, Rows, Vocabulary
from seqloom.core.score import Score
from seqloom.lab import started
from seqloom.lab.reading import Reading
from seqloom.lab.rules import Budget
from seqloom.runs.folder import RunFolder
from seqloom.runs.material import Material
from seqloom.runs.settings import RunConfig
from seqloom.tokenizers import Tokenizer


class Readings:
    def __init__(self, config: RunConfig, folder: RunFolder, progress: Reporter) -> None:
        """`config`: of the first entry from scratch, whose tokenizer the baselines share; or of the first."""
        material = Material(config)
        if "valid" not in material.parts:
            raise UserError("data.valid_fraction=0: a comparison needs a validation set; raise it or use --valid")
        self.folder, self.progress, self.shape = folder, progress, material.shape
        self._rows: dict[str, tuple[str, Vocabulary, dict[str, Rows]]] = {}  # by tokenizer; "": of the first
        self._known: dict[str, Reading] = {}
        self.first = self._read(material, started.tokenizer(config))
        facts = material.facts()
        self.data: Json = {part: facts[part] | self._amount(rows) for part, rows in self.first.rows.items()}

    @property
    def hashes(self) -> set[str]:
        """One for each vocabulary."""
        return {vocabulary.hash for _, vocabulary, _ in self._rows.values()}

    @property
    def score(self) -> Score:
        """By which entries are ranked: the metric of the task, or with several tokenizers one that depends on none."""
        task = self.first.task
        if len(self.hashes) == 1:
            return task.main_score
        return next(score for score in task.scores if score.name == task.across)

    def of(self, config: RunConfig) -> Reading:
        """How an entry reads the data."""
        own = started.tokenizer(config)
        if own is None:
            return self.first
        key = json.dumps([own.hash, config.task], sort_keys=True)
        if key not in self._known:
            reading = self._known[key] = self._read(Material(config), own)
            for each in (reading, self.first) if len(self.hashes) > 1 else ():
                each.task.check_across(each.rows)
        return self._known[key]

    def _amount(self, rows: Rows) -> Json:
        labelled = self.shape.counted == "examples"
        return {"tokens": rows.tokens} | ({"rows": self.shape.amount(rows)} if labelled else {})

    def check_budget(self, budget: Budget) -> None:
        """Tokens of different tokenizers are no common measure."""
        if budget.kind == "tokens" and len(self.hashes) > 1:
            size = self.first.bytes_per_token * budget.amount
            raise UserError(
                f"--budget tokens={budget.amount:g}: the models have different tokenizers; use bytes={size:.2g} of "
                "text, seconds=60 or flops=1e13 per run, or minutes=20 in all"
            )

    def _read(self, material: Material, own: Tokenizer | None) -> Reading:
        """Rows are made once for every tokenizer."""
        key = own.hash if own else ""
        if key not in self._rows:
            vocabulary = material.new_vocabulary(own)
            place = "tokenizer" if not self._rows else f"tokenizer-{vocabulary.hash[:8]}"
            self.folder.publish(place, vocabulary.files())
            self._rows[key] = place, vocabulary, material.rows(vocabulary, self.progress)
        place, vocabulary, rows = self._rows[key]
        return Reading.of(material, vocabulary, rows, place, brought=own is not None)
