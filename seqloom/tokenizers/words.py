"""Word tokenizer: the most frequent words have ids, the rest are <unk>. A line break is a word of its own.

`split="space"` splits at white space only, the Penn Treebank convention: the text already contains `<unk>`, and each
line ends with an end-of-line token. `split="punctuation"` makes every punctuation mark a word as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache, cached_property

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.words import CJK, marks
from seqloom.tokenizers.characters import utf8
from seqloom.tokenizers.tokenizer import SPECIALS, UNK, Decoder, Tokenizer, describe

MOST_WORDS = 4_000_000  # words counted at once; beyond this, words seen only once so far are dropped
LONGEST_CJK_WORD = 3.0  # average length; about 2 in segmented Chinese and Japanese, longer if unsegmented

NO_BLANK_BEFORE = frozenset(".,;:!?%)]}”’…»'-/_，。！？；：、）】》」』\n")
NO_BLANK_AFTER = frozenset("([{“‘«$#@'-/_（【《「『\n")


@cache
def _patterns() -> dict[str, tuple[re.Pattern[str], str]]:
    """The regular expression for words, for Python and for the tokenizers library."""
    ours = rf"<unk>|\n|[\w{marks()}]+|[^\w\s]"
    theirs = r"<unk>|\n|[\p{L}\p{N}\p{M}_\x{200c}\x{200d}]+|[^\p{L}\p{N}\p{M}_\s]"
    return {"space": (re.compile(r"\n|\S+"), r"\n|\S+"), "punctuation": (re.compile(ours), theirs)}


class Words(Tokenizer):
    kind = "words"

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        pattern = self.json["pre_tokenizer"]["pattern"]["Regex"]
        self.split = next(split for split, (_, theirs) in _patterns().items() if theirs == pattern)
        self._pattern = _patterns()[self.split][0]
        self._find = self._pattern.findall

    @classmethod
    def train(cls, texts: Iterable[str], *, size: int = 8192, min_count: int = 1, split: str = "punctuation") -> Words:
        """Keep the `size` most frequent words (including line break and <unk>) that occur at least `min_count` times.

        <pad>, <bos> and <eos> come on top: the 10,000 words of Penn Treebank give a vocabulary of 10,003.
        """
        from tokenizers import Regex, models, pre_tokenizers
        from tokenizers import Tokenizer as HuggingFaceTokenizer

        ours, theirs = _patterns()[split]
        counts = _count(texts, ours)
        if not counts:
            raise UserError("no text to build a word vocabulary from; check the training data")
        _refuse_unspaced(counts)
        frequent = sorted((-count, word) for word, count in counts.items() if count >= min_count)
        words = [word for _, word in frequent if word not in SPECIALS][: max(size - 1, 0)]
        if not words:
            given = f"tokenizer.vocabulary={size}, tokenizer.min_count={min_count}"
            raise UserError(f"{given}: leaves no words; raise the vocabulary or lower min_count")
        vocabulary = {token: id for id, token in enumerate([*SPECIALS, *words])}
        tokenizer = HuggingFaceTokenizer(models.WordLevel(vocabulary, unk_token=UNK))
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(theirs), "removed", invert=True)
        return cls(describe(tokenizer))

    def encode(self, text: str) -> np.ndarray:
        utf8(text)  # raises if the text is not valid
        get, unk = self._ids.get, self.unk
        return np.array([get(word, unk) for word in self._find(text)], np.int64)

    def spans(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        places = [found.span() for found in self._pattern.finditer(text)]
        return self.encode(text), np.array(places, np.int64).reshape(-1, 2)

    def decoder(self) -> Decoder:
        return _WordDecoder(self._words, tight=self.split == "punctuation")

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: id for word, id in self.vocabulary.items() if word not in SPECIALS}

    @cached_property
    def _words(self) -> dict[int, str]:
        """Unlike other special tokens, <unk> is shown: without it, text would read as if no word were missing."""
        return {id: word for word, id in self.vocabulary.items() if word not in SPECIALS or word == UNK}


class _WordDecoder(Decoder):
    """Words joined by spaces, but not around line breaks nor, with split="punctuation", around punctuation marks."""

    def __init__(self, words: dict[int, str], tight: bool) -> None:
        self._words = words
        self._before = NO_BLANK_BEFORE if tight else frozenset("\n")
        self._after = NO_BLANK_AFTER if tight else frozenset("\n")
        self._blank = ""

    def push(self, id: int) -> str:
        word = self._words.get(id)
        if word is None:
            return ""
        blank = "" if word in self._before else self._blank
        self._blank = "" if word in self._after else " "
        return blank + word


def _count(texts: Iterable[str], pattern: re.Pattern[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(pattern.findall(text))
        if len(counts) > MOST_WORDS:
            counts = Counter({word: count for word, count in counts.items() if count > 1})
    return counts


def _refuse_unspaced(counts: Counter[str]) -> None:
    """Raise on unsegmented Chinese or Japanese, in which hardly any word would repeat."""
    inside = re.compile(f"[{CJK}]")
    characters = cjk = tokens = 0
    for word, count in counts.items():
        found = len(inside.findall(word)) if not word.isascii() else 0
        characters += len(word) * count
        cjk += found * count
        tokens += count if found else 0
    if cjk > 0.3 * characters and cjk > LONGEST_CJK_WORD * tokens:
        raise UserError(
            f"words: this text has no spaces between its words ({cjk / tokens:.0f} characters from space to space); "
            "use tokenizer.kind=characters, bytes or bpe, or segment the text first"
        )
