"""The data of a run: its parts, vocabulary and rows, and the task that uses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from seqloom.core.config import validate
from seqloom.core.progress import Reporter, Silent
from seqloom.core.rows import Json, Part, Row, Rows, Vocabulary
from seqloom.core.task import AnyTask
from seqloom.data.files import declare
from seqloom.data.options import DataOptions
from seqloom.runs.registry import data_options, shape_of, task_config, tokenizer_options
from seqloom.runs.settings import RunConfig
from seqloom.tokenizers import Tokenizer


class Material:
    def __init__(self, config: RunConfig) -> None:
        self.config, self.shape, self.options = config, shape_of(config), data_options(config)
        for spec in (self.options.train, *self.options.held_out.values()):
            declare(spec, self.options.encoding)

    @cached_property
    def parts(self) -> dict[str, Part]:
        """The train, valid and test parts, opened once."""
        return self.shape.open_parts(self.options)

    def new_vocabulary(self, known: Tokenizer | None = None) -> Vocabulary:
        """Fitted to the training set; `known`: reuse the tokenizer of another run."""
        made: Vocabulary = self.shape.make_vocabulary(tokenizer_options(self.config), self.parts["train"], known)
        return made

    def load_vocabulary(self, folder: Path) -> Vocabulary:
        found: Vocabulary = self.shape.load_vocabulary(folder)
        return found

    def task(self, vocabulary: Vocabulary) -> AnyTask:
        return task_config(self.config).build(vocabulary)

    def rows(self, vocabulary: Vocabulary, talk: Reporter | None = None) -> dict[str, Rows]:
        """All parts, ready for training and evaluation."""
        return self.shape.prepare_parts(self.parts, vocabulary, talk or Silent())

    def read(self, spec: str, vocabulary: Vocabulary, **columns: object) -> Rows:
        """Another file of the same shape, ready for evaluation."""
        rows: Rows = self.shape.prepare(self.shape.open(spec, self._with(spec, columns)), vocabulary)
        return rows

    def sources(self, spec: str, **columns: object) -> Iterator[Row]:
        """Another file, as rows to predict from."""
        return self.shape.sources(spec, self._with(spec, columns))

    def _with(self, spec: str, columns: Mapping[str, object]) -> DataOptions:
        """The options that the run recorded, with others for a file whose columns have other names; its encoding is its
        own."""
        changed = {**self.options.model_dump(), "encoding": None, **columns}
        options: DataOptions = validate({"data": self.shape.options}, {"data": changed})["data"]
        declare(spec, options.encoding)
        return options

    def facts(self) -> Json:
        """Name, size and hash of each part."""
        return {name: {"name": p.name, "bytes": p.bytes, "hash": p.hash} for name, p in self.parts.items()}
