"""A problem as a task for the training loop, and its score by length or by number of pairs."""

from __future__ import annotations

import torch
from torch import Tensor

from seqloom.core.batch import IGNORE, Batch
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Facts, Json
from seqloom.diagnose.problems import Problem, Rows
from seqloom.lab.drawn import FRESH, Drawn, DrawnTask, generator

_ROUNDS = FRESH + 1  # steps beyond those of the rows, whose draws order the sizes


class ProblemTask(DrawnTask):
    def __init__(self, problem: Problem, tested: int = 512) -> None:
        """`tested`: test rows of each size."""
        self.problem, self.tested = problem, tested
        self.name, self.title = problem.name, problem.title  # type: ignore[misc]
        self.vocabulary, self.outputs = problem.vocabulary, problem.answers

    def draw_batch(self, rows: int, seed: int, step: int) -> Batch:
        """All rows of a step have the same size; in each round of steps, every size has its turn."""
        sizes = self.problem.sizes
        turn, place = divmod(step, len(sizes))
        drawn = generator(seed, step)
        size = sizes[int(torch.randperm(len(sizes), generator=generator(seed, _ROUNDS + turn))[place])]
        found = self.problem.draw(rows, size, drawn)
        return Batch(found.inputs, None, found.targets, origin=self.name)

    @torch.inference_mode()
    def evaluate(
        self, model: SequenceModel, rows: Drawn, *, naive: Facts | None = None, quick: bool = False, brief: bool = False
    ) -> Json:
        """Accuracy on held-out rows: at trained sizes, at those that are scored, and by range of sizes."""
        problem, fresh = self.problem, generator(rows.seed, FRESH)
        model.eval()
        parts = [self._score(model, problem.draw(self.tested, size, fresh)) for size in problem.tested]
        answer, predicted, guessed, at = (torch.cat(column) for column in zip(*parts, strict=True))
        hit, (low, high) = predicted == answer, problem.scored
        scored = (at >= low) & (at <= high)
        ends = [(start + 1, end) for start, end in zip((0, *problem.edges), problem.edges, strict=False)]
        ranges = [(start, end, _mean(hit, (at >= start) & (at <= end))) for start, end in ends]
        return {
            "accuracy": _mean(hit, scored),
            "guess": _guessing(answer[scored], guessed[scored]),
            "trained": _mean(hit, at <= problem.trained),
            "ranges": [{"from": a, "to": b, "accuracy": found} for a, b, found in ranges if found is not None],
            "protocol": f"share of correct answers, {self.tested} rows of each size",
        }

    @staticmethod
    def _score(model: SequenceModel, drawn: Rows) -> tuple[Tensor, ...]:
        """Of every answer: what is right, what the model says, what a guess says, and the measure."""
        read = slice(0, model.reach)
        said = torch.cat([model(rows[:, read].to(model.device))[0].argmax(-1).cpu() for rows in drawn.inputs.split(64)])
        targets = drawn.targets[:, read]
        guess = torch.full_like(targets, IGNORE) if drawn.guess is None else drawn.guess[:, read]
        asked = targets != IGNORE
        return targets[asked], said[asked], guess[asked], drawn.measure[:, read][asked]


def _mean(hits: Tensor, chosen: Tensor) -> float | None:
    return float(hits[chosen].float().mean()) if bool(chosen.any()) else None


def _guessing(answers: Tensor, guessed: Tensor) -> float | None:
    """The accuracy of always giving the most frequent answer, or of the problem's own guess if that is better."""
    if not len(answers):
        return None
    return max(float(answers.bincount().max()) / len(answers), float((guessed == answers).float().mean()))
