"""How well an index finds what it should: nDCG@10, recall, reciprocal rank, beside BM25 alone and vectors alone.

Queries and judgements have the form of BEIR (Thakur et al. 2021):

    queries      JSONL with `_id` and `text`
    judgements   TSV with a header: query-id, corpus-id, score

A judged document is named by its path, or, if it is a row of a table, by the row's own id. A document is as good as its
best chunk. The gain of a document in nDCG is its score (Järvelin & Kekäläinen 2002, as trec_eval and BEIR have it).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter, Silent
from seqloom.core.quoting import quoted
from seqloom.data.strict_json import parse_json
from seqloom.retrieve.index import By, Index
from seqloom.retrieve.reading import lines
from seqloom.runs.durable import shown

RECALLS = (10, 100)
_DEEPEST = 100  # documents of a ranking that are scored
_CHUNKS = 300  # that are asked for, since a document may have several
DRAWS = 10_000  # of the bootstrap
_AT_ONCE = 200  # of these, which bounds memory
_SEED = 0
_MOST, _DIGITS = 1000, 20  # score of a judgement, and digits that it is written with

Judgements = Mapping[str, Mapping[str, int]]  # by query, then by document


class Interval(NamedTuple):
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Evaluation:
    """Scores of each way to search, query by query, and differences between the ways."""

    queries: list[str]
    scores: dict[str, dict[str, np.ndarray]]  # by way ("hybrid", "bm25", "dense"), then by metric
    absent: int  # judged documents that the index does not have
    unjudged: int  # queries without a relevant document, which are left out

    def mean(self, way: str, metric: str) -> Interval:
        return bootstrap(self.scores[way][metric])

    def difference(self, way: str, other: str, metric: str) -> Interval:
        """How much better one way is than another, on the same queries."""
        return bootstrap(self.scores[way][metric] - self.scores[other][metric])

    def as_json(self) -> dict[str, object]:
        ways = {way: {metric: self.mean(way, metric)._asdict() for metric in some} for way, some in self.scores.items()}
        others = [way for way in ("bm25", "dense") if way in self.scores and "hybrid" in self.scores]
        return {
            "queries": len(self.queries),
            "unjudged": self.unjudged,
            "absent": self.absent,
            "scores": ways,
            "hybrid_minus": {way: self.difference("hybrid", way, "ndcg@10")._asdict() for way in others},
            "protocol": f"{len(self.queries)} queries; a document is as good as its best chunk; linear gain; 95% "
            f"intervals by {DRAWS:,} paired bootstrap draws over queries",
        }


def evaluate(
    index: Index,
    queries: Mapping[str, str],
    judgements: Judgements,
    progress: Reporter | None = None,
    ways: Sequence[By] = (),
) -> Evaluation:
    """Search for every query that has a relevant document, in these ways; by default in each that the index can."""
    named = {key: path for path, key in index.keys().items()}
    known = set(index.paths())
    wanted, absent, report = {}, 0, progress or Silent()
    check_judged(queries, judgements)
    for query, judged in judgements.items():
        places = {named.get(name, name): score for name, score in judged.items() if score > 0}
        if places and query in queries:
            wanted[query] = places
            absent += sum(place not in known for place in places)
    if absent == sum(map(len, wanted.values())):
        some = next(iter(next(iter(wanted.values()))))
        raise UserError(f"none of the judged documents is in the index, such as {some!r}; name them by path or row id")
    ways = ways or (["hybrid", "bm25", "dense"] if index.settings.encoder else ["bm25"])
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for number, (query, places) in enumerate(wanted.items()):
        for way in ways:
            found[way].append(scores_of(ranked(index, queries[query], way), places))
        report.update((number + 1) / len(wanted), {"doing": f"asked {number + 1:,} of {len(wanted):,} queries"})
    tables = {way: {m: np.array([row[m] for row in rows]) for m in rows[0]} for way, rows in found.items()}
    return Evaluation(list(wanted), tables, absent, len(judgements) - len(wanted))


def check_judged(queries: Mapping[str, str], judgements: Judgements) -> None:
    """Refuse queries of which none has a relevant document."""
    if not any(query in queries and max(judged.values()) > 0 for query, judged in judgements.items()):
        raise UserError("no query has a relevant document; give queries and judgements that belong together")


def ranked(index: Index, query: str, way: By = "hybrid") -> list[str]:
    """The paths of the best documents, each at the place of its best chunk."""
    passages = index.search(query, _CHUNKS, by=way)
    return list(dict.fromkeys(passage.chunk.path for passage in passages))[:_DEEPEST]


def scores_of(ranking: Sequence[str], judged: Mapping[str, int]) -> dict[str, float]:
    """`judged`: the relevant documents and how relevant they are, all above 0."""
    gains = np.array([judged.get(path, 0) for path in ranking], float)
    first = int(np.argmax(gains > 0)) + 1 if (gains > 0).any() else 0
    recalls = {f"recall@{k}": float((gains[:k] > 0).sum() / len(judged)) for k in RECALLS}
    return {"ndcg@10": ndcg(gains, judged, 10), **recalls, "mrr@10": 1 / first if 0 < first <= 10 else 0.0}


def ndcg(gains: np.ndarray, judged: Mapping[str, int], k: int) -> float:
    best = np.sort(np.array(list(judged.values()), float))[::-1]
    return _discounted(gains[:k]) / _discounted(best[:k])


def _discounted(gains: np.ndarray) -> float:
    return float((gains / np.log2(np.arange(2, len(gains) + 2))).sum())


def bootstrap(values: np.ndarray, level: float = 0.05) -> Interval:
    """The mean and its percentile interval over queries, which errs at this level; the draws are the same every
    time."""
    rng = np.random.default_rng(_SEED)
    sizes = [min(_AT_ONCE, DRAWS - first) for first in range(0, DRAWS, _AT_ONCE)]
    means = [values[rng.integers(len(values), size=(size, len(values)))].mean(axis=1) for size in sizes]
    low, high = np.quantile(np.concatenate(means), [level / 2, 1 - level / 2])
    return Interval(float(values.mean()), float(low), float(high))


def read_queries(path: str | Path) -> dict[str, str]:
    """Text by id."""
    found: dict[str, str] = {}
    for number, line in enumerate(lines(Path(path)), 1):
        if not line.strip():
            continue
        row = parse_json(line, Path(path), number)
        id, text = (row.get("_id"), row.get("text")) if isinstance(row, dict) else (None, None)
        if isinstance(id, bool) or not isinstance(id, str | int) or not isinstance(text, str) or not text.strip():
            raise UserError(f"{shown(path)}:{number}: not a query; needs JSON with _id and text")
        if found.setdefault(str(id), text) != text:
            raise UserError(f"{shown(path)}:{number}: the query {quoted(id)} occurs twice; give each its own _id")
    if not found:
        raise UserError(f"{shown(path)}: no queries in it")
    return found


def read_judgements(path: str | Path) -> dict[str, dict[str, int]]:
    """Scores by query and document; a header is optional."""
    found: dict[str, dict[str, int]] = {}
    for number, line in enumerate(lines(Path(path)), 1):
        try:
            row = next(csv.reader([line], delimiter="\t"), [])
            if not row or (number == 1 and row[0] == "query-id"):
                continue
            query, document, text = row
            score = int(text) if len(text) <= _DIGITS else _MOST + 1
        except (ValueError, csv.Error):
            way = "needs query-id, corpus-id and a whole number, between tabs"
            raise UserError(f"{shown(path)}:{number}: not a judgement; {way}") from None
        if abs(score) > _MOST:
            raise UserError(f"{shown(path)}:{number}: a score of {quoted(text)}; the highest one is {_MOST}")
        if found.setdefault(query, {}).setdefault(document, score) != score:
            raise UserError(f"{shown(path)}:{number}: a second judgement of the same document; leave one of them out")
    if not found:
        raise UserError(f"{shown(path)}: no judgements in it")
    return found
