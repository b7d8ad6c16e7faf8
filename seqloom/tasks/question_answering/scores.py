"""Exact match and F1 of answers, by the rules of SQuAD or CMRC 2018; and baselines that answer with a whole sentence.

squad  lower case, without punctuation and the articles a, an, the; F1 of the words that both answers share
cmrc   lower case, without CMRC's list of punctuation; Chinese characters one by one, everything else as words; F1 of
       the longest contiguous run that both answers share

The best match among several reference answers counts. If there is none, only an empty answer is correct.
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
_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))
_CHINESE_PUNCTUATION = dict.fromkeys(map(ord, "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』"))
_SENTENCE = re.compile(r"[^。！？\n]*?(?:[.!?]+[\"'”’)]*(?=\s|$)|[。！？]+[”’」』）]*|\n|$)", re.DOTALL)

PROTOCOLS = {
    "squad": "by SQuAD's rules (lower case, no punctuation, no articles; F1 of shared words)",
    "cmrc": "by CMRC 2018's rules (lower case, no punctuation; F1 of the longest shared run of characters and words)",
}


class Agreement(NamedTuple):
    exact: float
    f1: float


def rules_for(text: str) -> Literal["squad", "cmrc"]:
    """cmrc if more than a third of the letters are Chinese characters, otherwise squad."""
    letters = sum(character.isalpha() for character in text)
    return "cmrc" if 3 * len(_IS_HAN.findall(text)) > letters else "squad"


def agreements(answers: Sequence[str], questions: Sequence[Any], rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """Exact match and F1 of each answer; `questions` have `question` and `texts`, the reference answers."""
    pairs = zip(answers, questions, strict=True)
    each = np.array([agreement(answer, one.texts, _chosen(rules, one.question)) for answer, one in pairs])
    exact, f1 = each.reshape(-1, 2).T
    return exact, f1


def baselines(questions: Sequence[Any], rules: Rules) -> dict[str, dict[str, float]]:
    """Whole sentences as answers: the best by BM25, and the first; `questions` also have `context`."""
    answers = {
        "best sentence": [best_sentence(one.question, one.context) for one in questions],
        "first sentence": [sentences(one.context)[0] for one in questions],
    }
    found = {name: agreements(texts, questions, rules) for name, texts in answers.items()}
    return {name: {"f1": float(f1.mean()), "exact": float(exact.mean())} for name, (exact, f1) in found.items()}


def protocol(questions: Sequence[Any], rules: Rules) -> str:
    """The rules that were used and, if both were, for how many questions each."""
    counts = Counter(_chosen(rules, one.question) for one in questions)
    used = [f" ({count:,} questions)" if len(counts) > 1 else "" for count in counts.values()]
    return "; ".join(PROTOCOLS[name] + of for name, of in zip(counts, used, strict=True))


def agreement(answer: str, references: Sequence[str], rules: Literal["squad", "cmrc"]) -> Agreement:
    """The best match with any reference; without references, the answer must be empty."""
    each = [_RULES[rules](answer, text) for text in references or [""]]
    return Agreement(max(one.exact for one in each), max(one.f1 for one in each))


def _chosen(rules: Rules, question: str) -> Literal["squad", "cmrc"]:
    return rules_for(question) if rules == "auto" else rules


def _by_squad(answer: str, reference: str) -> Agreement:
    ours, theirs = normal(answer), normal(reference)
    exact = float(ours == theirs)
    if not (ours and theirs):
        return Agreement(exact, exact)
    return Agreement(exact, _f1((Counter(ours) & Counter(theirs)).total(), len(ours), len(theirs)))


def _by_cmrc(answer: str, reference: str) -> Agreement:
    ours, theirs = (text.lower().strip().translate(_CHINESE_PUNCTUATION) for text in (answer, reference))
    exact = float(ours == theirs)
    our_tokens, their_tokens = _WORDS.findall(ours), _WORDS.findall(theirs)
    if not (our_tokens and their_tokens):
        return Agreement(exact, exact)
    return Agreement(exact, _f1(_longest_run(our_tokens, their_tokens), len(our_tokens), len(their_tokens)))


_RULES = {"squad": _by_squad, "cmrc": _by_cmrc}


def normal(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _f1(shared: int, ours: int, theirs: int) -> float:
    return 2 * shared / (ours + theirs)  # the harmonic mean of shared / ours and shared / theirs


def _longest_run(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """Length of the longest contiguous run that both contain."""
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
    """Split after full stops, question marks and exclamation marks, and at line ends; at least one sentence."""
    found = [match[0].strip() for match in _SENTENCE.finditer(passage)]
    return [text for text in found if text] or [passage.strip()]


def best_sentence(question: str, passage: str) -> str:
    """The best sentence by BM25, with document frequencies within the passage (Robertson & Zaragoza 2009)."""
    texts = sentences(passage)
    pieces = [Counter(_WORDS.findall(text.lower())) for text in texts]
    mean = sum(count.total() for count in pieces) / len(pieces)
    scores = [0.0] * len(texts)
    for word in set(_WORDS.findall(question.lower())):
        containing = sum(word in count for count in pieces)
        idf = math.log(1 + (len(texts) - containing + 0.5) / (containing + 0.5))
        for n, count in enumerate(pieces):
            times = count[word]
            scores[n] += idf * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * count.total() / (mean or 1)))
    return texts[max(range(len(texts)), key=scores.__getitem__)]
