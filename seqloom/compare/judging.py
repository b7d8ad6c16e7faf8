"""From the runs of a comparison to verdicts: what the luck of tuning adds, and what the test says of every entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seqloom.compare.report import facts
from seqloom.core.rows import Json
from seqloom.lab import statistics
from seqloom.lab.rules import Margin
from seqloom.lab.scales import Bounds
from seqloom.lab.selection import noise_variances, tuning_variances
from seqloom.lab.statistics import Sample, Verdict


def samples(entries: Sequence[Json], higher_is_better: bool) -> dict[str, Sample]:
    """The test scores of finished entries by name, with the variance that their tuning adds."""
    trained = [entry for entry in entries if not entry.get("fixed")]
    trials = [[trial["score"] for trial in entry.get("search") or () if trial["state"] == "done"] for entry in trained]
    noises = noise_variances([[run["valid"] for run in facts.runs(entry)] for entry in trained])
    luck = tuning_variances(trials, noises, not higher_is_better)
    tuned = {
        entry["name"]: (variance, len(tried)) for entry, variance, tried in zip(trained, luck, trials, strict=True)
    }
    return {entry["name"]: _sample(entry, *tuned.get(entry["name"], (0.0, 0))) for entry in entries}


def recorded(entry: Json) -> Sample:
    """The sample of an entry of a result, with the variance that was estimated when it was made."""
    tried = [trial for trial in entry.get("search") or () if trial.get("state") == "done"]
    return _sample(entry, entry.get("tuning_variance") or 0.0, len(tried))


def beside(runs: Sequence[Json], name: str, fixed: bool) -> Sample | None:
    """A score shown beside the metric, with its pieces; None if they are not known for every run."""
    known = [(facts.dig(run, "scores", name), facts.dig(run, "score_pieces", name)) for run in runs]
    if not known or any(score is None or not pieces for score, pieces in known):
        return None
    return Sample.of([_centred(pieces, score) for score, pieces in known], fixed=fixed)


def of_tests(tests: Sequence[Json], name: str, pieces: bool) -> Sample:
    """The scores of one entry on the test set, a run each; `pieces`: those of the test set are of this score."""
    return Sample.of([_centred((pieces and test.get("pieces")) or [test[name]], test[name]) for test in tests])


def verdicts(
    found: Mapping[str, Sample], higher_is_better: bool, level: float, margin: Margin, bounds: Bounds
) -> dict[str, Verdict]:
    means = [sample.mean for sample in found.values()]
    best = (max if higher_is_better else min)(means, default=0.0)
    return statistics.verdicts(found, higher_is_better, level, margin.of(best), bounds)


def _centred(pieces: Sequence[float], score: float) -> list[float]:
    """Pieces may hold different numbers of tokens: their mean is made that of the whole, which is what is shown."""
    off = score - sum(pieces) / len(pieces)
    return [piece + off for piece in pieces]


def _sample(entry: Json, tuning: float, trials: int) -> Sample:
    pieces = [_centred(run.get("pieces") or [run["score"]], run["score"]) for run in facts.runs(entry)]
    return Sample.of(pieces, fixed=bool(entry.get("fixed")), tuning=tuning, trials=trials)
