"""How well an answer agrees with the true ones: exact match and F1, by the rules of SQuAD or of CMRC 2018; and the
sentence of a passage that has most in common with a question, which is what one gets without learning.

squad  lower case, without punctuation and the articles a, an, the; F1 of the words that two answers share
cmrc   lower case, without the punctuation of its list; Chinese characters one by one, all else in words; F1 of the
       longest run that two answers share

The best of several true answers counts. A question that has no answer is answered rightly by nothing.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

Rules = Literal["auto", "squad", "cmrc"]

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_IS_HAN = re.compile(f"[{_HAN}]")
_WORDS = re.compile(rf"[{_HAN}]|[^\W{_HAN}]+|[^\w\s]")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_MARKS = dict.fromkeys(map(ord, string.punctuation))
_CHINESE_MARKS = dict.fromkeys(map(ord, "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』"))
_SENTENCE = re.compile(r"[^。！？\n]*?(?:[.!?]+[\"'”’)]*(?=\s|$)|[。！？]+[”’」』）]*|\n|$)", re.DOTALL)

PROTOCOLS = {
    "squad": "by SQuAD's rules: lower case, no punctuation, no articles; F1 of shared words",
    "cmrc": "by CMRC 2018's rules: no punctuation; F1 of the longest shared run of characters and words",
}


class Agreement(NamedTuple):
    exact: float
    f1: float


def rules_for(text: str) -> Literal["squad", "cmrc"]:
    """Those of Chinese when a third of the letters are Chinese characters."""
    letters = sum(character.isalpha() for character in text)
    return "cmrc" if 3 * len(_IS_HAN.findall(text)) > letters else "squad"


def agreements(answers: Sequence[str], asked: Sequence[Any], rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """Exact match and F1 of the answer to each question; `asked`: with `question` and `texts`."""
    pairs = zip(answers, asked, strict=True)
    each = np.array([agreement(answer, one.texts, _chosen(rules, one.question)) for answer, one in pairs])
    exact, f1 = each.reshape(-1, 2).T
    return exact, f1


def baselines(asked: Sequence[Any], rules: Rules) -> dict[str, dict[str, float]]:
    """Whole sentences as answers: the one that BM25 finds, and the first; `asked`: also with `context`."""
    guesses = {
        "best sentence": [best_sentence(one.question, one.context) for one in asked],
        "first sentence": [sentences(one.context)[0] for one in asked],
    }
    found = {name: agreements(texts, asked, rules) for name, texts in guesses.items()}
    return {name: {"f1": float(f1.mean()), "exact": float(exact.mean())} for name, (exact, f1) in found.items()}


def protocol(asked: Sequence[Any], rules: Rules) -> str:
    """By which rules, and for how many where there are both."""
    counts = Counter(_chosen(rules, one.question) for one in asked)
    said = [f" ({count:,} questions)" if len(counts) > 1 else "" for count in counts.values()]
    return "; ".join(PROTOCOLS[name] + of for name, of in zip(counts, said, strict=True))


def agreement(answer: str, wanted: Sequence[str], rules: Literal["squad", "cmrc"]) -> Agreement:
    """With the true answer it agrees best with; no true answers: nothing is wanted."""
    each = [_RULES[rules](answer, text) for text in wanted or [""]]
    return Agreement(max(one.exact for one in each), max(one.f1 for one in each))


def _chosen(rules: Rules, question: str) -> Literal["squad", "cmrc"]:
    return rules_for(question) if rules == "auto" else rules


def _by_squad(answer: str, wanted: str) -> Agreement:
    ours, theirs = _normal(answer), _normal(wanted)
    exact = float(ours == theirs)
    if not (ours and theirs):
        return Agreement(exact, exact)
    return Agreement(exact, _f1((Counter(ours) & Counter(theirs)).total(), len(ours), len(theirs)))


def _by_cmrc(answer: str, wanted: str) -> Agreement:
    ours, theirs = (text.lower().strip().translate(_CHINESE_MARKS) for text in (answer, wanted))
    exact = float(ours == theirs)
    pieces, others = _WORDS.findall(ours), _WORDS.findall(theirs)
    if not (pieces and others):
        return Agreement(exact, exact)
    return Agreement(exact, _f1(_longest_run(pieces, others), len(pieces), len(others)))


_RULES = {"squad": _by_squad, "cmrc": _by_cmrc}


def _normal(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_MARKS)).split()


def _f1(shared: int, ours: int, theirs: int) -> float:
    return 2 * shared / (ours + theirs)  # the harmonic mean of shared / ours and shared / theirs


def _longest_run(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """Length of the longest stretch that stands in both."""
    best, before = 0, [0] * (len(theirs) + 1)
    for one in ours:
        row = [0] * (len(theirs) + 1)
        for n, other in enumerate(theirs, 1):
            if one == other:
                row[n] = before[n - 1] + 1
                best = max(best, row[n])
        before = row
    return best


def sentences(passage: str) -> list[str]:
    """At least one; cut after full stops, question and exclamation marks, and at line ends."""
    found = [match[0].strip() for match in _SENTENCE.finditer(passage)]
    return [text for text in found if text] or [passage.strip()]


def best_sentence(question: str, passage: str) -> str:
    """The sentence that BM25 finds for the question, rarity counted within the passage (Robertson & Zaragoza 2009)."""
    texts = sentences(passage)
    pieces = [Counter(_WORDS.findall(text.lower())) for text in texts]
    mean = sum(count.total() for count in pieces) / len(pieces)
    scores = [0.0] * len(texts)
    for word in set(_WORDS.findall(question.lower())):
        having = sum(word in count for count in pieces)
        rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for n, count in enumerate(pieces):
            times = count[word]
            scores[n] += rarity * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * count.total() / (mean or 1)))
    return texts[max(range(len(texts)), key=scores.__getitem__)]
