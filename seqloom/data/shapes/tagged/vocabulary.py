"""The vocabulary of a tagger: its tokens, its tags, and the characters of words.

A word is one token (`words`), or several, the first of which carries its tag (`bpe`, `characters`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.core.words import CJK
from seqloom.data.shapes.tagged.rows import TaggedRows
from seqloom.tokenizers.tokenizer import SPECIALS, Tokenizer

LONGEST = 24  # characters read per word; of longer words, the first and the last half of these
MOST_TOKENS = 16  # per word; further ones say nothing about its tag
REMEMBERED = 1_000_000  # words whose tokens are cached
SPELLING = "spelling_"  # prefix of the files of the character vocabulary

Spelling = tuple[int, ...]


class TagVocabulary:
    def __init__(self, tokenizer: Tokenizer, tags: Sequence[str], letters: Tokenizer | None = None, **facts: bool):
        """`facts`: `entities`: the tags mark entities; `lower`: words are looked up in lower case; `single`: every word
        was a single character."""
        self.tokenizer, self.letters, self.tags = tokenizer, letters, list(tags)
        self.entities, self.lower, self.single = (facts.get(name, False) for name in ("entities", "lower", "single"))
        self.size, self.kind = tokenizer.size, tokenizer.kind
        self.bos, self.eos, self.unk = tokenizer.bos, tokenizer.eos, tokenizer.unk
        self.blank, self.specials = tokenizer.blank, tokenizer.specials
        self.hash = hashlib.sha256(b"".join(self.files().values())).hexdigest()
        self._known = {word: id for word, id in tokenizer.vocabulary.items() if word not in SPECIALS}
        self._cut: dict[str, list[int]] = {}

    def tokens(self, word: str) -> list[int]:
        """The token ids of one word, at least one."""
        found = self._cut.get(word)
        if found is None:
            if len(self._cut) >= REMEMBERED:
                self._cut.clear()
            found = self._cut[word] = self._tokens(word.lower() if self.lower else word)
        return found

    def spell(self, word: str) -> Spelling:
        """The ids of its characters."""
        assert self.letters is not None
        shown = word if len(word) <= LONGEST else word[: LONGEST // 2] + word[-LONGEST // 2 :]
        return tuple(self.letters.encode(shown).tolist())

    def _tokens(self, word: str) -> list[int]:
        if self.kind == "words":
            return [self._known.get(one_word(word), self.blank)]
        text = spaced(word) if self.kind in ("bpe", "pretrained") else word
        return self.tokenizer.encode(text).tolist()[:MOST_TOKENS] or [self.blank]

    def rows(self, sentences: Iterable[Any], origin: Any = None) -> TaggedRows:
        """Sentences (`words` and `tags`) as ids; `origin`: where they can be re-read."""
        return TaggedRows(sentences, self, origin)

    def files(self) -> dict[str, bytes]:
        facts: Json = {"tags": self.tags, "entities": self.entities}
        facts |= {"lower": self.lower, "single": self.single}
        files = self.tokenizer.files() | {"tags.json": json.dumps(facts, ensure_ascii=False, indent=2).encode() + b"\n"}
        return files | {SPELLING + name: data for name, data in (self.letters.files() if self.letters else {}).items()}

    @classmethod
    def load(cls, folder: Path) -> TagVocabulary:
        path = Path(folder) / "tags.json"
        try:
            facts = json.loads(path.read_bytes())
            tags = facts.pop("tags")
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(f"{path}: damaged; not a tag file written by seqloom") from None
        spelled = (Path(folder) / f"{SPELLING}tokenizer.json").exists()
        letters = Tokenizer.load(folder, SPELLING) if spelled else None
        return cls(Tokenizer.load(folder), tags, letters, **facts)


def one_word(word: str) -> str:
    """A word with spaces in it is still one word."""
    return "_".join(word.split())


def spaced(word: str) -> str:
    """As in running text: after a space, unless it is Chinese or Japanese."""
    return word if _is_cjk(word[0]) else f" {word}"


def training_text(kind: str, words: Iterable[str], lower: bool) -> str:
    """The text that a tokenizer of this kind is trained on."""
    words = (word.lower() for word in words) if lower else words
    if kind == "words":
        return " ".join(map(one_word, words))
    return "".join(map(spaced, words)) if kind == "bpe" else "".join(words)


def _is_cjk(character: str) -> bool:
    ranges = zip(*[iter(CJK.replace("-", ""))] * 2, strict=True)
    return any(first <= character <= last for first, last in ranges)
