"""Which retriever should I use on my documents, and can I trust the answer?

OUT/indexes/NAME    one index for BM25 alone and one per encoder, which dense and hybrid search share; for `ask`
OUT/scores.jsonl   the score of every retriever for every query
OUT/result.json     everything that the report shows
OUT/report.html     the report, also as report.md and report.zh-CN.md

Nothing is trained, so there are no seeds and no budget. Running it again indexes only what changed.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.core.json_text import to_json
from seqloom.core.progress import Reporter, Silent
from seqloom.core.rows import Json
from seqloom.core.version import VERSION
from seqloom.lab.rules import Margin
from seqloom.retrieve.comparison import RetrieverComparison
from seqloom.retrieve.comparison_page import report_files
from seqloom.retrieve.evaluation import (
    DRAWS,
    Evaluation,
    Judgements,
    bootstrap,
    check_judged,
    evaluate,
    read_judgements,
    read_queries,
)  # fmt: skip
from seqloom.retrieve.index import By, Index, index
from seqloom.retrieve.retrievers import Retriever, folder_name, parse_retrievers
from seqloom.retrieve.settings import NAME as SETTINGS
from seqloom.retrieve.settings import Settings
from seqloom.retrieve.standings import LEVEL, recommend, verdicts
from seqloom.runs import durable
from seqloom.runs.durable import shown
from seqloom.runs.kept import check_own
from seqloom.runs.lock import locked

METRIC = "ndcg@10"
FILE = "result.json"
_SCORES = "scores.jsonl"
_TIMED = 50  # queries, evenly spaced
_PASSAGES = 10  # that are searched for when time is measured


def compare_retrievers(
    data: str | Path,
    *,
    queries: str | Path | Mapping[str, str],
    judgements: str | Path | Judgements,
    out: str | Path,
    models: str | Sequence[str] | None = None,
    columns: Mapping[str, str] | None = None,
    margin: str = "1%",
    command: str = "",
    progress: Reporter | None = None,
) -> RetrieverComparison:
    """Search a folder of documents by several retrievers, score them on judged queries, and recommend one.

    `queries`, `judgements`: files of BEIR's form, or the same as dictionaries; `models`: retrievers, such as
    "bm25,dense:weights:minilm,hybrid:weights:minilm"; `columns`: which columns of tables are `text` and `title`;
    `margin`: a difference that does not matter, 1% of the best nDCG@10 or 0.01; `command`: that the report shows.
    """
    source, folder, report = Path(data), Path(out), progress or Silent()
    retrievers, allowed = parse_retrievers(models), Margin.parse(margin)
    _check_folders(source, folder)
    asked = queries if isinstance(queries, Mapping) else read_queries(queries)
    judged = judgements if isinstance(judgements, Mapping) else read_judgements(judgements)
    check_judged(asked, judged)
    _check_encoders(retrievers)
    with locked(folder):
        durable.sweep(folder)
        measured = [_measured(encoder, retrievers, source, folder, columns, asked, judged, report)
                    for encoder in dict.fromkeys([None, *(one.encoder for one in retrievers)])]  # fmt: skip
        result = _result(retrievers, measured, allowed) | {"data": str(source), "command": command}
        _write(folder, result, measured)
    return RetrieverComparison(folder, result)


@dataclass
class _Measured:
    """One index, and what each way to search it is worth."""

    counts: dict[str, int]
    evaluation: Evaluation
    retrievers: list[Retriever]
    milliseconds: dict[By, float]  # by way
    bytes: int
    folder: str  # in that of the comparison


def _measured(
    encoder: str | None,
    retrievers: Sequence[Retriever],
    source: Path,
    out: Path,
    columns: Mapping[str, str] | None,
    queries: Mapping[str, str],
    judgements: Judgements,
    report: Reporter,
) -> _Measured:
    """BM25 comes first: it is quick, and shows whether documents, queries and judgements belong together."""
    mine = [one for one in retrievers if one.encoder == encoder]
    place = f"indexes/{folder_name(encoder)}"
    durable.make_folder(out / "indexes")
    with index(source, out / place, encoder=encoder, columns=columns, progress=report) as opened:
        found = evaluate(opened, queries, judgements, report, [one.by for one in mine])
        texts = [queries[query] for query in found.queries[:: -(-len(found.queries) // _TIMED)]]
        times = {one.by: _milliseconds(opened, texts, one.by) for one in mine}
        counts = opened.counts()
    report.close()
    return _Measured(counts, found, mine, times, _bytes(out / place), place)


def _milliseconds(opened: Index, texts: Sequence[str], by: By) -> float:
    """The median of all queries."""
    found = []
    for text in texts:
        started = time.perf_counter()
        opened.search(text, _PASSAGES, by=by)
        found.append(1000 * (time.perf_counter() - started))
    return statistics.median(found)


def _bytes(folder: Path) -> int:
    """On disk: files of a store are larger than what is written of them."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def _result(retrievers: Sequence[Retriever], measured: Sequence[_Measured], margin: Margin) -> Json:
    scores = {one.name: part.evaluation.scores[one.by] for part in measured for one in part.retrievers}
    main = {one.name: scores[one.name][METRIC] for one in retrievers}
    amount = margin.of(max(float(values.mean()) for values in main.values()))
    judged = verdicts(main, amount)
    entries: list[Json] = [
        {
            "name": one.name,
            "by": one.by,
            "encoder": one.encoder,
            "scores": {name: bootstrap(values)._asdict() for name, values in scores[one.name].items()},
            "against_best": {key: value for key, value in asdict(judged[one.name]).items() if key != "p"},
            "ms_per_query": part.milliseconds[one.by],
            "bytes": part.bytes,
            "index": part.folder,
        }
        for part in measured
        for one in part.retrievers
    ]
    entries.sort(key=lambda entry: -float(entry["scores"][METRIC]["mean"]))
    first, count = measured[0].evaluation, len(measured[0].evaluation.queries)
    return {
        "task": "retrieval",
        "documents": measured[0].counts["documents"], "chunks": measured[0].counts["chunks"],
        "queries": count, "unjudged": first.unjudged, "absent": first.absent,
        "entries": entries,
        "recommendation": recommend(entries, count, amount),
        "protocol": {
            "metric": METRIC, "level": LEVEL, "draws": DRAWS, "margin": amount, "timed": min(_TIMED, count),
            "started": datetime.now(UTC).isoformat(timespec="seconds"), "versions": {"seqloom": VERSION},
        },
    }  # fmt: skip


def _write(folder: Path, result: Json, measured: Sequence[_Measured]) -> None:
    names = {one.name: part.evaluation.scores[one.by][METRIC] for part in measured for one in part.retrievers}
    rows = [
        {"query": query} | {name: float(values[number]) for name, values in names.items()}
        for number, query in enumerate(measured[0].evaluation.queries)
    ]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    durable.write_file(folder / _SCORES, lines.encode("utf-8", "backslashreplace"))
    durable.write_file(folder / FILE, to_json(result) + b"\n")
    for name, content in report_files(result, folder).items():
        durable.write_file(folder / name, content)


def _check_folders(source: Path, out: Path) -> None:
    if not source.exists():
        raise UserError(f"{shown(source)}: no such folder; give --data a folder of documents")
    if (source / SETTINGS).exists():
        made = Settings.read(source).source
        raise UserError(f"{shown(source)}: an index; give --data the folder of documents that it was made of, {made}")
    if out.resolve().is_relative_to(source.resolve()):
        raise UserError(f"--out {shown(out)}: inside the documents, so it would be indexed itself; choose another")
    check_own(out, _SCORES)


def _check_encoders(retrievers: Sequence[Retriever]) -> None:
    """Before anything is indexed, which may take long."""
    from seqloom.retrieve.encoder import load_encoder

    for name in dict.fromkeys(one.encoder for one in retrievers if one.encoder):
        load_encoder(name)
