"""The terms of a text for BM25: English words by their stems, Chinese and Japanese by pairs of characters.

Weights (Robertson & Zaragoza 2009), of a term that occurs tf times in a text of `length` terms:

    tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average))

The inverse document frequency is the store's, because it changes with every text that is added. A term is a 32-bit hash
of its spelling, the same on every machine, so nothing has to be kept to know it again.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from seqloom.retrieve.stemming import stem

K1, B = 1.2, 0.75  # of the settings tried, the best on the training queries of SciFact
_UNSPACED = (  # scripts without spaces between words, and Korean, whose words have many endings
    "\u0e00-\u0e7f\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORDS = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_PLAIN = re.compile("[a-z0-9]+")
_ACCENTS = re.compile("[\u0300-\u036f]")
_RUN = re.compile(f"[{_UNSPACED}]")
_WRAPPED = re.compile(rf"(?<=[{_UNSPACED}])[ \t]*\n[ \t]*(?=[{_UNSPACED}])")  # a line that ends inside of a word


class Sparse(NamedTuple):
    """A sparse vector: ids in ascending order, and their weights."""

    ids: np.ndarray  # uint32
    weights: np.ndarray  # float32


def fold(text: str) -> str:
    """Lower case, without accents, and one spelling for characters that come in several widths or forms."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart)).lower()


def terms(text: str) -> list[str]:
    """All terms, in order."""
    return [stem(word) for word in _words(text)]


def length(text: str) -> int:
    """The number of its terms."""
    return len(_words(text))


def counts(text: str) -> Counter[int]:
    """How often each term occurs, by its id."""
    return Counter(map(_id_of, _words(text)))


def term_id(term: str) -> int:
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=200_000)
def _id_of(word: str) -> int:
    return term_id(stem(word))


def _words(text: str) -> list[str]:
    """Words before stemming, and pairs of characters, which have no other stem than themselves."""
    folded = fold(text)
    if folded.isascii():
        return _PLAIN.findall(folded)
    found: list[str] = []
    for word in _WORDS.findall(_WRAPPED.sub("", folded)):
        if _RUN.match(word):
            found += [word[n : n + 2] for n in range(len(word) - 1)] or [word]
        else:
            found.append(word)
    return found


def weigh(found: Counter[int], average: float) -> Sparse:
    """The BM25 weights of a text, `average` terms being the usual length."""
    ids = np.fromiter(found.keys(), np.uint32, len(found))
    tf = np.fromiter(found.values(), np.float64, len(found))
    weights = tf * (K1 + 1) / (tf + K1 * (1 - B + B * tf.sum() / max(average, 1.0)))
    order = np.argsort(ids)
    return Sparse(ids[order], weights[order].astype(np.float32))


def question(text: str) -> Sparse:
    """The terms of a query; one that is repeated counts as often."""
    found = counts(text)
    ids = np.array(sorted(found), np.uint32)
    return Sparse(ids, np.array([found[int(n)] for n in ids], np.float32))
