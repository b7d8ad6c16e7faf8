"""Citation recall and precision of answers, after ALCE (Gao et al. 2023), as far as they can be had without a model.

ALCE asks an entailment model whether the cited passages support a sentence. Here a citation is a quotation, and it
counts if the quoted text stands at its place in the passages of the answer and the sentence is that text. So a true
paraphrase does not count: without a judge the figures are lower bounds of ALCE's recall, and not comparable with
published ones.

- recall: share of the sentences of an answer that are verified quotations or, if a judge is given, that the judge
  finds entailed by their nearest source sentence;
- precision: share of the citations that are verified. Citations are the quotations that are shown, and the
  attributions to a file that failed ("source"). A judge changes nothing here.

Both are means over answers, as in ALCE. A refused answer has no sentences and is left out, an answer without a
citation is left out of the precision; both are counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from seqloom.retrieve.checking.check import ENTAILED, Judge
from seqloom.retrieve.checking.quotation import find
from seqloom.retrieve.document import Answer, Sentence


def evaluate_citations(answers: Sequence[Answer], judge: Judge | None = None) -> dict[str, float | int | None]:
    """Recall and precision, None where there is nothing to take a share of, and the counts behind them."""
    given = [answer for answer in answers if answer.sentences]
    recalls: list[float] = []
    precisions: list[float] = []
    verified = entailed = cited = 0
    for answer in given:
        true = [_verified(sentence, answer) for sentence in answer.sentences]
        follows = [not ok and _entailed(s, judge) for s, ok in zip(answer.sentences, true, strict=True)]
        claims = sum(s.quotation is not None or "source" in s.failed for s in answer.sentences)
        recalls.append((sum(true) + sum(follows)) / len(true))
        if claims:
            precisions.append(sum(true) / claims)
        verified, entailed, cited = verified + sum(true), entailed + sum(follows), cited + claims
    return {
        "recall": _mean(recalls),
        "precision": _mean(precisions),
        "answers": len(answers),
        "refused": len(answers) - len(given),
        "uncited": len(given) - len(precisions),
        "sentences": sum(len(answer.sentences) for answer in given),
        "citations": cited,
        "verified": verified,
        "entailed": entailed,
    }


def _verified(sentence: Sentence, answer: Answer) -> bool:
    """The quotation stands at its place in a passage of the answer, and is what the sentence says."""
    quotation = sentence.quotation
    if quotation is None:
        return False
    for passage in answer.passages:
        chunk = passage.chunk
        if chunk.path == quotation.path and chunk.start <= quotation.start and quotation.end <= chunk.end:
            there = chunk.text[quotation.start - chunk.start : quotation.end - chunk.start]
            return there == quotation.text and any(start == 0 for start, _ in find(sentence.text, there))
    return False


def _entailed(sentence: Sentence, judge: Judge | None) -> bool:
    if judge is None or sentence.nearest is None or "source" in sentence.failed:
        return False
    return judge.entails(sentence.nearest.text, sentence.text) >= ENTAILED


def _mean(shares: Sequence[float]) -> float | None:
    return sum(shares) / len(shares) if shares else None
