"""Prompt templates: how a labelled row is written down for a language model. TOML, no code.

    instruction = "Is the review {labels}?"                # before the examples; {labels}: all words, or leave it out
    example = "Review: {text}\nSentiment: {label}"         # one labelled row; {second}: the second text of a row
    separator = "\n\n"                                     # after the instruction and after every example
    neutral = "N/A"                                        # an input without content, for calibration
    chat = false                                           # write it as a chat, by the tokenizer's chat template

    [labels]                                               # words for the labels; default: the labels themselves
    0 = "negative"
    1 = "positive"

The row to classify is written as an example up to {label}, or as `query` says. White space before {label} belongs to
the label: " positive" is one token in most vocabularies, "positive" often is not.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from seqloom.core.config import Strict, validate
from seqloom.core.errors import UserError

MOST_BYTES = 100_000  # of a template
_SLOT = re.compile(r"\{(\w+)\}")
_SECTION = re.compile(r"(?:^|(?<=; )|(?<=did you mean ))template(?:: |\.)")  # in what validation reports
_ROW = {"text", "second"}


class Template(Strict):
    instruction: str = Field("", description="text before the examples; {labels}: the words of all labels")
    example: str = Field("Text: {text}\nCategory: {label}", description="a labelled row")
    query: str = Field("", description="the row to classify; empty: the example up to {label}")
    separator: str = Field("\n\n", description="text after the instruction and after every example")
    neutral: str = Field("N/A", min_length=1, description="an input without content, for calibration")
    chat: bool = Field(False, description="write it as a chat, by the tokenizer's chat template")
    labels: dict[str, str] = Field({}, description="the word for each label; empty: the labels themselves")

    @model_validator(mode="after")
    def _check(self) -> Template:
        for name, allowed, needed in (
            ("instruction", {"labels"}, set()),
            ("example", _ROW | {"label"}, {"text", "label"}),
            ("query", _ROW, {"text"} if self.query else set()),
            ("separator", set(), set()),
            ("neutral", set(), set()),
        ):
            found = _SLOT.findall(getattr(self, name))
            if strange := [slot for slot in found if slot not in allowed]:
                known = ", ".join(f"{{{slot}}}" for slot in sorted(allowed)) or "none"
                raise ValueError(f"{name} has {{{strange[0]}}}, which has no meaning there (known: {known})")
            if missing := sorted(needed - set(found)):
                raise ValueError(f"{name} has no {{{missing[0]}}}")
            if found.count("label") > 1:
                raise ValueError(f"{name} has {{label}} twice")
        if empty := [label for label, word in self.labels.items() if not word.strip()]:
            raise ValueError(f"the word for label {empty[0]!r} is empty")
        return self


DEFAULT = Template.model_validate(
    {
        "instruction": "Classify each text as one of: {labels}.",
        "example": "Text: {text}\nSecond text: {second}\nCategory: {label}",
    }
)


def find_template(given: str) -> Template:
    """`default`, the path of a TOML file, or a template as JSON, which is how runs record it."""
    if given == "default":
        return DEFAULT
    if given.lstrip().startswith("{"):
        return _parsed("the recorded template", given, json.loads)
    return read_template(Path(given))


def read_template(path: Path) -> Template:
    try:
        if not path.is_file():
            raise UserError(f"{path}: no such template; give `default` or the path of a TOML file")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise UserError(f"{path}: a template has at most {MOST_BYTES:,} bytes")
        return _parsed(str(path), data.decode(), tomllib.loads)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text; a template is a TOML file") from None


def _parsed(name: str, text: str, parse: Any) -> Template:
    try:
        values = parse(text)
        found: Template = validate({"template": Template}, {"template": values})["template"]
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise UserError(f"{name}: not valid TOML: {str(error)[:200]}") from None
    except UserError as error:
        raise UserError(f"{name}: {_SECTION.sub('', str(error))}") from None
    return found


class Wording:
    """A template for certain labels, with one or two texts per row."""

    def __init__(self, template: Template, labels: Sequence[str], pair: bool = False) -> None:
        """`pair`: rows have two texts. A line with {second} is left out where they have one."""
        self.template, self.words = template, _words(template, labels)
        example, query = (_for_rows(text, pair) for text in (template.example, template.query))
        if pair and not all("{second}" in text for text in (example, query) if text):
            raise UserError("the rows have two texts, but the template has no {second}; add it")
        before, _, self.after = example.partition("{label}")
        self.example, self.gap = before.rstrip(), before[len(before.rstrip()) :]
        self.query = query.rstrip() or self.example

    def opening(self) -> str:
        """The instruction."""
        return fill(self.template.instruction, {"labels": listed(self.words)})

    def shown(self, texts: Sequence[str]) -> str:
        """A row of the examples, up to its label."""
        return fill(self.example, _row(texts))

    def asked(self, texts: Sequence[str]) -> str:
        """The row to classify, up to its label."""
        return fill(self.query, _row(texts))

    def messages(self, shots: Sequence[tuple[Sequence[str], int]], texts: Sequence[str]) -> list[dict[str, str]]:
        """The same as a chat: (texts, label) of each example, and the row to classify."""
        said = [{"role": "system", "content": self.opening()}] if self.opening().strip() else []
        for row, label in shots:
            said.append({"role": "user", "content": self.shown(row)})
            said.append({"role": "assistant", "content": self.words[label]})
        return [*said, {"role": "user", "content": self.asked(texts)}]


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace every placeholder once; what is filled in stays as it is, even if it looks like a placeholder."""
    return _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), text)


def listed(words: Sequence[str]) -> str:
    return ", ".join(words)


def _row(texts: Sequence[str]) -> dict[str, str]:
    return dict(zip(("text", "second"), texts, strict=False))


def _for_rows(text: str, pair: bool) -> str:
    if pair or "{second}" not in text:
        return text
    kept = "\n".join(line for line in text.split("\n") if "{second}" not in line)
    if text and "{text}" not in kept:
        raise UserError("the rows have one text, but the template has {second} in the same line as {text}; remove it")
    return kept


def _words(template: Template, labels: Sequence[str]) -> list[str]:
    if template.labels and (missing := [label for label in labels if label not in template.labels]):
        raise UserError(f"the template has no word for label {missing[0]!r}; add it under [labels]")
    words = [template.labels.get(label, label).strip() for label in labels]
    for n, word in enumerate(words):
        if word in words[:n]:
            first = labels[words.index(word)]
            raise UserError(f"the template has the same word {word!r} for labels {first!r} and {labels[n]!r}")
    return words
