"""The data of a run: its parts, vocabulary and rows, and the task that uses them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from seqloom.core.config import validate
from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter, Silent
from seqloom.core.rows import Json, Part, Rows, Vocabulary
from seqloom.core.task import AnyTask
from seqloom.data.files import declare
from seqloom.data.fingerprint import fingerprint
from seqloom.data.options import DataOptions
from seqloom.data.shapes.columns import role_of
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
        try:
            found: Vocabulary = self.shape.load_vocabulary(folder)
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            kind = type(error).__name__
            raise UserError(f"{folder}: its tokenizer, labels or scale are damaged ({kind}); restore it") from None
        return found

    def task(self, vocabulary: Vocabulary) -> AnyTask:
        return task_config(self.config).build(vocabulary)

    def rows(self, vocabulary: Vocabulary, talk: Reporter | None = None) -> dict[str, Rows]:
        """All parts, ready for training and evaluation."""
        talk = talk or Silent()
        for name, spec in self.options.held_out.items():
            if (same := fingerprint(spec)) is not None and same == fingerprint(self.options.train):
                talk.say(f"{name}: the same data as --data, so that its scores say nothing about new data")
        return self.shape.prepare_parts(self.parts, vocabulary, talk)

    def read(self, spec: str, vocabulary: Vocabulary, options: DataOptions) -> Rows:
        """Another file of the same shape, ready for evaluation."""
        rows: Rows = self.shape.prepare(self.open(spec, options), vocabulary)
        return rows

    def open(self, spec: str, options: DataOptions) -> Part:
        found: Part = self.shape.open(spec, options)
        return found

    def options_for(
        self, spec: str, vocabulary: Vocabulary, given: Mapping[str, object], predict: bool = False
    ) -> tuple[DataOptions, dict[str, object]]:
        """The options that the run recorded, with those given for another file and those found in it where its columns
        have other names; and the columns found, by their roles. `predict`: only what a prediction needs."""
        declare(spec, given.get("encoding"))
        before = self.options.model_dump() | {"encoding": None}  # a new file is judged by itself
        found = self.shape.elsewhere(spec, self.options, given, vocabulary, predict)
        options: DataOptions = validate({"data": self.shape.options}, {"data": {**before, **found, **given}})["data"]
        new = {option: name for option, name in found.items() if name is not None and name != before[option]}
        gone = self.shape.lacks(spec, new)  # a default that is not there either, because it is not needed
        return options, {role_of(self.shape, o) or o: name for o, name in new.items() if o not in gone}

    def check_files(self, known: Json) -> None:
        """`check_parts`, if the bytes of a file have changed; the files of a finished run may be gone."""
        specs = {name: self.options.held_out.get(name, self.options.train) for name in known}
        now = {spec: fingerprint(spec) for spec in set(specs.values())}
        if any(now[specs[name]] not in (None, facts.get("file")) for name, facts in known.items()):
            self.check_parts(known)

    def check_parts(self, known: Json) -> None:
        """Refuse other data than that of an earlier run, of which `known` has the facts."""
        for name, facts in known.items():
            if name in self.parts and (now := self.parts[name].hash) != facts["hash"]:
                raise UserError(
                    f"{self.parts[name].name}: the {name} split has changed since the run began (was "
                    f"{facts['hash'][:12]}, is {now[:12]}); restore it, or choose another --out"
                )

    def facts(self) -> Json:
        """Name, size and hash of each part, and the fingerprint of the file that it is or was split off from."""
        whole, own = fingerprint(self.options.train), self.options.held_out
        return {
            name: {"name": part.name, "bytes": part.bytes, "hash": part.hash}
            | {"file": fingerprint(own[name]) if name in own else whole}
            for name, part in self.parts.items()
        }
