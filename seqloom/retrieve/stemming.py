"""The stem of an English word, so that "inhibits" finds "inhibition" (Porter 1980), by PyStemmer.

Porter's algorithm and not its successor: on the training queries of SciFact neither is better (BM25, nDCG@10 0.6875 and
0.6885, a difference of 0.0010 [-0.0016, 0.0036]), and an index that was made before stays valid.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from seqloom.core.errors import UserError


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """Of a word in lower case. Words of one or two letters, which the library would cut (is -> i) and the paper does
    not, and those with other letters than a to z stay."""
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    return str(_stemmer().stemWord(word))


@cache
def _stemmer() -> Any:
    try:
        import Stemmer
    except ImportError:
        raise UserError("search by words needs the PyStemmer package: pip install 'seqloom[retrieve]'") from None
    return Stemmer.Stemmer("porter", 0)  # without a cache of its own
