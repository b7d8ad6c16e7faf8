"""Words: the most frequent ones have ids, the rest is <unk>. A line break is a word of its own.

`split="space"` cuts at white space alone, which is the Penn Treebank convention: a text in which `<unk>` is already
written, one end-of-line token per line. `split="punctuation"` makes every punctuation mark a word too.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache, cached_property

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.words import CJK
from seqloom.tokenizers.characters import utf8
from seqloom.tokenizers.tokenizer import SPECIALS, UNK, Decoder, Tokenizer, describe

MOST_WORDS = 4_000_000  # counted at once; beyond it, words seen a single time so far are forgotten
LONGEST_CJK_WORD = 3.0  # on average; segmented Chinese and Japanese stay near 2, unsegmented clauses are longer

NO_BLANK_BEFORE = frozenset(".,;:!?%)]}”’…»'-/_，。！？；：、）】》」』\n")
NO_BLANK_AFTER = frozenset("([{“‘«$#@'-/_（【《「『\n")


@cache
def _patterns() -> dict[str, tuple[re.Pattern[str], str]]:
    """How to find words: for Python, and the same for the tokenizers library's regular expressions.

    Python's `\\w` leaves out the vowel signs of Indian scripts, which would cut their words in pieces.
    """
    marks = "".join(c for c in map(chr, range(0x10000)) if unicodedata.category(c)[0] == "M") + "\u200c\u200d"
    ours = rf"<unk>|\n|[\w{marks}]+|[^\w\s]"
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
        """The `size` most frequent words (line break and <unk> among them) that occur `min_count` times or more.

        Padding, beginning and end of text come on top: 10,000 words of Penn Treebank make a vocabulary of 10,003.
        """
        from tokenizers import Regex, models, pre_tokenizers
        from tokenizers import Tokenizer as HuggingFaceTokenizer

        ours, theirs = _patterns()[split]
        counts = _count(texts, ours)
        if not counts:
            raise UserError("no text to take words from")
        _refuse_unspaced(counts)
        frequent = sorted((-count, word) for word, count in counts.items() if count >= min_count)
        words = [word for _, word in frequent if word not in SPECIALS][: max(size - 1, 0)]
        if not words:
            raise UserError(f"size={size}, min_count={min_count}: leaves no word; use a larger size or a smaller count")
        vocabulary = {token: id for id, token in enumerate([*SPECIALS, *words])}
        tokenizer = HuggingFaceTokenizer(models.WordLevel(vocabulary, unk_token=UNK))
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(theirs), "removed", invert=True)
        return cls(describe(tokenizer))

    def encode(self, text: str) -> np.ndarray:
        utf8(text)  # refuses what is not valid text
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
        """Unlike other specials <unk> is shown: a text of words without it would read as if nothing were missing."""
        return {id: word for word, id in self.vocabulary.items() if word not in SPECIALS or word == UNK}


class _WordDecoder(Decoder):
    """Words joined by blanks; none around line breaks nor, when the text was cut at them, at punctuation marks."""

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
    """Chinese and Japanese are fine when somebody has put blanks between the words; else no word would repeat."""
    inside = re.compile(f"[{CJK}]")
    letters = cjk = tokens = 0
    for word, count in counts.items():
        found = len(inside.findall(word)) if not word.isascii() else 0
        letters += len(word) * count
        cjk += found * count
        tokens += count if found else 0
    if cjk > 0.3 * letters and cjk > LONGEST_CJK_WORD * tokens:
        raise UserError(
            f"words: this text has no blanks between its words ({cjk / tokens:.0f} characters from blank to blank); "
            "use the tokenizer characters, bytes or bpe, or segment the text first"
        )
