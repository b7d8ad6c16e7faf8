"""Scores of generated texts against references (translation, summary, transcription), each with its protocol.

BLEU, chrF, ROUGE and the error rate are those of sacrebleu, rouge-score and jiwer, imported on first use. A row may
have several references, given as a list per row.

The main score of each metric also comes in pieces, for paired comparisons: a corpus score such as BLEU is no mean over
rows, but it is a function of statistics that add up over rows, so each block of rows can be left out in turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from seqloom.core.errors import unknown
from seqloom.core.rows import Json

Metric = Literal["translation", "summary", "transcription"]
References = Sequence[str] | Sequence[list[str]]

TOKENISATIONS = ("auto", "13a", "zh", "char", "intl", "none")  # sacrebleu's, except those that need a download
HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3040-\u30ff"
ROUGE_TOKEN = re.compile(f"[{HAN}{KANA}]|[^\\W_{HAN}{KANA}]+")
ROUGES = ("rouge1", "rouge2", "rougeL")
BLOCKS = 10  # of neighbouring rows, into which the main score is divided


def score_texts(
    predictions: Sequence[str], references: References, metric: Metric = "translation", tokenisation: str = "auto"
) -> Json:
    """The scores of a metric, plus `exact` (share of rows equal to a reference), `count`, `protocol`, and the pieces of
    the main score (`score_pieces`, by its name)."""
    if metric not in SCORES:
        raise unknown("metric", metric, SCORES)
    if tokenisation not in TOKENISATIONS:
        raise unknown("tokenisation", tokenisation, TOKENISATIONS)
    rows = _rows(predictions, references)
    scores = SCORES[metric](predictions, rows, tokenisation)
    equal = [text.strip() in {other.strip() for other in row} for text, row in zip(predictions, rows, strict=True)]
    protocol = f"{scores.pop('protocol')}; exact: share of rows equal to a reference, ignoring whitespace at the ends"
    return {**scores, "exact": float(np.mean(equal)), "count": len(rows), "protocol": protocol}


def per_row(predictions: Sequence[str], references: References, metric: Metric = "translation") -> list[float]:
    """One score per row, higher is better: chrF, ROUGE-L, or 100 minus the error rate (which may exceed 100)."""
    rows = _rows(predictions, references)
    if metric == "translation":
        from sacrebleu.metrics import CHRF

        chrf = CHRF()
        return [chrf.sentence_score(text, row).score for text, row in zip(predictions, rows, strict=True)]
    if metric == "summary":
        found: list[float] = _rouge(predictions, rows)[:, ROUGES.index("rougeL")].tolist()
        return found
    if metric == "transcription":
        return [100 - 100 * edits / length for edits, length in _closest(predictions, rows)]
    raise unknown("metric", metric, SCORES)


def choose_tokenisation(references: Sequence[str]) -> str:
    """zh if most letters are Chinese characters, char if they are Japanese, otherwise 13a."""
    letters = han = kana = 0
    for text in references:
        letters += sum(map(str.isalpha, text))
        han += len(re.findall(f"[{HAN}]", text))
        kana += len(re.findall(f"[{KANA}]", text))
    if han + kana <= letters / 2:
        return "13a"
    return "char" if kana > han / 10 else "zh"


def _rows(predictions: Sequence[str], references: References) -> list[list[str]]:
    """The references of each row as a list."""
    rows = [[row] if isinstance(row, str) else list(row) for row in references]
    if not rows or len(rows) != len(predictions):
        raise ValueError(f"{len(predictions)} predictions, {len(rows)} rows of references: must be equal and not 0")
    if not all(row and all(text.strip() for text in row) for row in rows):
        raise ValueError("every row needs at least one reference, and none may be empty")
    return rows


def _translation(predictions: Sequence[str], rows: list[list[str]], tokenisation: str) -> Json:
    from sacrebleu.metrics import BLEU, CHRF

    chosen = choose_tokenisation([row[0] for row in rows]) if tokenisation == "auto" else tokenisation
    most = max(map(len, rows))
    # None, not "", which would be a reference of length 0
    streams: list[list[Any]] = [[row[n] if n < len(row) else None for row in rows] for n in range(most)]
    bleu, chrf = BLEU(tokenize=chosen, force=True), CHRF()  # force: no warning about texts that end in ' .'
    scores = {
        "bleu": bleu.corpus_score(predictions, streams).score,
        "chrf": chrf.corpus_score(predictions, streams).score,
    }
    signature, other = str(bleu.get_signature()), str(chrf.get_signature())
    protocol = f"corpus BLEU by sacrebleu ({signature}), case-sensitive, tokens: {chosen}; chrF by sacrebleu ({other})"
    counted = BLEU(tokenize=chosen, effective_order=True)  # as sacrebleu wants it for single sentences: the same counts
    found = [counted.sentence_score(text, row) for text, row in zip(predictions, rows, strict=True)]
    parts = np.array([[*each.counts, *each.totals, each.sys_len, each.ref_len] for each in found])
    return {**scores, "bleu_signature": signature, "protocol": protocol, **_in_pieces("bleu", parts, _bleu)}


def _bleu(total: np.ndarray) -> float:
    """Corpus BLEU from the n-grams that match, all n-grams, and the lengths of the outputs and references."""
    from sacrebleu.metrics import BLEU

    *counts, given, wanted = (int(value) for value in total)
    half = len(counts) // 2
    return float(BLEU.compute_bleu(counts[:half], counts[half:], given, wanted, smooth_method="exp").score)


def _summary(predictions: Sequence[str], rows: list[list[str]], tokenisation: str) -> Json:
    each = _rouge(predictions, rows)
    parts = np.stack((each[:, ROUGES.index("rougeL")], np.ones(len(each))), axis=1)
    protocol = (
        "ROUGE F1 x 100 by rouge-score, best reference of each row, mean over rows; tokens: lower-case words without "
        "punctuation, single characters in Chinese and Japanese; no stemming, no stop-word removal"
    )
    found = {name: float(mean) for name, mean in zip(ROUGES, each.mean(0), strict=True)}
    return found | {"protocol": protocol} | _in_pieces("rougeL", parts, lambda total: total[0] / total[1])


def _transcription(predictions: Sequence[str], rows: list[list[str]], tokenisation: str) -> Json:
    parts = np.array(_closest(predictions, rows))
    score = _error_rate(parts.sum(0))
    protocol = (
        "error rate in percent by jiwer: substitutions, deletions and insertions per reference token; tokens are "
        "separated by spaces, case and punctuation count; of several references, the one with the fewest edits"
    )
    return {"error_rate": score, "protocol": protocol, **_in_pieces("error_rate", parts, _error_rate)}


def _error_rate(total: np.ndarray) -> float:
    return 100 * float(total[0]) / float(total[1])


def _in_pieces(name: str, parts: np.ndarray, score: Callable[[np.ndarray], float]) -> Json:
    """What each block of rows contributes to a score, as pseudo-values of the jackknife (Tukey 1958): with B blocks,
    B * score - (B - 1) * score without the block. Their mean is the score, but for bias, and their variance over blocks
    that of the score; of a mean over rows they are the means of the blocks. `parts`: statistics that add up, by row."""
    whole, blocks = parts.sum(0), np.array_split(parts, min(BLOCKS, len(parts)))
    count = len(blocks)
    if count == 1:
        return {"score_pieces": {name: [float(score(whole))]}}
    without = [float(score(whole - block.sum(0))) for block in blocks]
    return {"score_pieces": {name: [count * float(score(whole)) - (count - 1) * other for other in without]}}


SCORES: dict[str, Callable[[Sequence[str], list[list[str]], str], Json]] = {
    "translation": _translation,
    "summary": _summary,
    "transcription": _transcription,
}


class _Tokens:
    """For rouge-score, whose own tokenizer drops every letter except a-z; on English both give the same tokens."""

    def tokenize(self, text: str) -> list[str]:
        return ROUGE_TOKEN.findall(text.lower())


def _rouge(predictions: Sequence[str], rows: list[list[str]]) -> np.ndarray:
    """F1 x 100, (rows, ROUGES); not stemmed, because the language is not known for certain."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(ROUGES), tokenizer=_Tokens())
    found = [scorer.score_multi(row, text) for text, row in zip(predictions, rows, strict=True)]
    return np.array([[100 * scores[name].fmeasure for name in ROUGES] for scores in found])


def _closest(predictions: Sequence[str], rows: list[list[str]]) -> list[tuple[int, int]]:
    """(edits, tokens) of each row's reference with the fewest edits; ties go to the longest."""
    from jiwer import process_words

    references = [reference for row in rows for reference in row]
    hypotheses = [text for text, row in zip(predictions, rows, strict=True) for _ in row]
    found = process_words(references, hypotheses)
    edits = [
        sum(
            max(part.ref_end_idx - part.ref_start_idx, part.hyp_end_idx - part.hyp_start_idx)
            for part in alignment
            if part.type != "equal"
        )
        for alignment in found.alignments
    ]
    counted = iter(zip(edits, map(len, found.references), strict=True))
    return [min((next(counted) for _ in row), key=lambda pair: (pair[0], -pair[1])) for row in rows]


def lead(text: str, count: int) -> str:
    """The start of a text: its first lines (in a dialogue, turns) or, if it is a single line, its first sentences."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1:
        return " ".join(lines[:count])
    return "".join(re.findall(r".*?[.!?。！？]+[\"'”’」)]*\s*|.+$", text.strip(), re.DOTALL)[:count]).strip()
