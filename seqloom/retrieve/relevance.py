"""How near a text comes to a question, on one scale for every encoder; and when nothing is near enough.

Encoders differ in what they call similar: two unrelated English sentences have a cosine of 0.02 with MiniLM, two
Chinese ones, of which it knows few characters, one of 0.5. So the cosine of unrelated sentences is measured, once per
language, and becomes 0; that of equal texts stays 1. An encoder to which unrelated sentences look alike does not know
the language; words alone decide then.

The limits were chosen on SQuAD and CMRC 2018 (docs/retrieval.md): on their own questions, and on the same questions
with the article that answers them taken out of the index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from seqloom.retrieve.keywords import is_grammar, keywords, share
from seqloom.retrieve.terms import terms

Vectors = Callable[[Sequence[str]], np.ndarray]

LEAST = 1.4  # of the words of the question plus twice the similarity
LIKE = 0.5  # similarity that suffices, whatever the words: the answer may have others
MANY = 0.75  # of the words of the question: these suffice, too
LEAST_WORDS = 0.5  # of the words of the question, where there is no encoder
CHINESE = 0.6  # of these limits on words: many pairs of characters of a question are no words, and no text has them
ALIKE = 0.3  # mean cosine of unrelated sentences above which an encoder does not know their language
KEPT = 20_000  # vectors of sentences

UNRELATED = {
    "en": (
        "The train to the coast leaves at nine.",
        "A recipe for bread needs flour, water and salt.",
        "The court rejected the appeal of the company.",
        "Whales breathe through a hole in their head.",
        "She plays the violin in a small orchestra.",
        "The new version fixes a bug in the parser.",
    ),
    "zh": (
        "开往海边的火车九点出发。",
        "做面包需要面粉、水和盐。",
        "法院驳回了公司的上诉。",
        "鲸用头顶的鼻孔呼吸。",
        "她在一个小乐团里拉小提琴。",
        "新版本修复了解析器的一个错误。",
    ),
}
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class Similarity:
    """Of texts to each other: 1 for equal ones, 0 for unrelated ones. Sentences are encoded once: many questions find
    the same ones."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors, self._floors = vectors, dict[str, float]()
        self._known: dict[str, np.ndarray] = {}

    def to(self, question: str, texts: Sequence[str]) -> np.ndarray:
        """(texts,)"""
        first, *others = self._encoded([question, *texts])
        cosine = np.stack(others) @ first if others else np.zeros(0)
        floor = self._floor(question)
        found: np.ndarray = ((cosine - floor) / max(1e-6, 1.0 - floor)).clip(0.0, 1.0)
        return found

    def _encoded(self, texts: Sequence[str]) -> list[np.ndarray]:
        if len(self._known) > KEPT:
            self._known.clear()
        if new := [text for text in dict.fromkeys(texts) if text not in self._known]:
            self._known |= zip(new, self._vectors(new), strict=True)
        return [self._known[text] for text in texts]

    def __call__(self, one: str, other: str) -> float:
        return float(self.to(one, [other])[0])

    def knows(self, question: str) -> bool:
        """Whether the encoder knows the language of the question."""
        return self._floor(question) <= ALIKE

    def _floor(self, question: str) -> float:
        language = "zh" if _CJK.search(question) else "en"
        if language not in self._floors:
            vectors = self._vectors(UNRELATED[language])
            cosines = vectors @ vectors.T
            self._floors[language] = float(cosines[~np.eye(len(vectors), dtype=bool)].mean())
        return self._floors[language]


def measure(question: str, passages: Sequence[str], similarities: np.ndarray | None) -> dict[str, float]:
    """The share of the question's words that the best passage has, and the similarity of the best sentence."""
    if not passages:
        return {}
    wanted = keywords(question)
    found = {"words": max(share(wanted, terms(text)) for text in passages)}
    if similarities is not None and len(similarities):
        found["similarity"] = float(similarities.max())
    return found


def refusal(question: str, best: dict[str, float]) -> str:
    """Why there is no answer; empty: there may be one."""
    if not best:
        return "nothing was found"
    if is_grammar(question):
        return "the question has no words to search for"
    words = best["words"] / (CHINESE if _CJK.search(question) else 1.0)
    if "similarity" in best:
        near = words + 2 * best["similarity"] >= LEAST
        enough = near or best["similarity"] >= LIKE or words >= MANY
    else:
        enough = words >= LEAST_WORDS
    return "" if enough else "nothing relevant was found"
