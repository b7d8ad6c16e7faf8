"""The words of a question that its answer should be about: without question words and grammar, English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterable

from seqloom.retrieve.terms import fold, terms

_ENGLISH = """
a about all also am an and any are as at be been before being between both but by can could did do does doing done
each either else for from get give given gives had has have having he her here hers him his how i if in into is it its
itself just many may me might mine more most much must my name no nor not of often on one only onto or other our ours
out please said say says shall she should since so some such tell than that the their theirs them then there these they
this those through to too under until up upon us very was we were what when where whether which while who whom whose
why will with within without would you your yours
"""
_CHINESE = """
为什么 什么时候 什么样 什么 怎么样 怎么 怎样 如何 为何 多少 多久 多长 多大 多高 多远 几个 几年 几月 几次 几种
哪一个 哪一年 哪一种 哪个 哪些 哪里 哪儿 哪年 哪位 哪种 哪 谁 何时 何地 何处 何种 是否 是不是 有没有 能否 可否
请问 请 以及 或者 对于 关于 这个 那个 这些 那些 他们 她们 它们 我们 你们 可以 应该
吗 呢 吧 的 了 是 在 有 和 与 被 把 他 她 它 我 你 您
"""
_PHRASES = "|".join(sorted(_CHINESE.split(), key=len, reverse=True))
_GRAMMAR = re.compile(rf"\b(?:{'|'.join(_ENGLISH.split())})\b|(?:'s|'re|'ve|'ll|n't)\b|{_PHRASES}")


def keywords(question: str) -> frozenset[str]:
    """Terms as BM25 has them. Of a question of grammar alone (`Who is it?`), all terms."""
    found = _about(question)
    pairs = [term for term in found if len(term) > 1 or term.isascii()]  # texts have no term of one Chinese character
    return frozenset(pairs or found or terms(question))


def is_grammar(question: str) -> bool:
    """Whether it has no other words, so that any text would suit it."""
    return not _about(question)


def _about(question: str) -> list[str]:
    return terms(_GRAMMAR.sub(" ", fold(question).replace("’", "'")))


def share(wanted: frozenset[str], found: Iterable[str]) -> float:
    """Of the wanted terms that are among those found."""
    return len(wanted.intersection(found)) / len(wanted) if wanted else 0.0
