"""A problem as a task for the training loop, and its score by length or by number of pairs."""

from __future__ import annotations

import torch

from seqloom.core.batch import Batch
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Facts, Json
from seqloom.diagnose.problems import Problem
from seqloom.lab.drawn import FRESH, Drawn, DrawnTask, generator


class ProblemTask(DrawnTask):
    def __init__(self, problem: Problem, tested: int = 512) -> None:
        """`tested`: test rows of each size."""
        self.problem, self.tested = problem, tested
        self.name, self.title = problem.name, problem.title  # type: ignore[misc]
        self.vocabulary, self.outputs = problem.vocabulary, problem.answers

    def draw_batch(self, rows: int, generator: torch.Generator) -> Batch:
        sizes = self.problem.sizes
        size = sizes[int(torch.randint(len(sizes), (), generator=generator))]
        found = self.problem.draw(rows, size, generator)
        return Batch(found.inputs, None, found.targets, origin=self.name)

    @torch.inference_mode()
    def evaluate(
        self, model: SequenceModel, rows: Drawn, *, naive: Facts | None = None, quick: bool = False, brief: bool = False
    ) -> Json:
        """Accuracy on held-out rows: at trained sizes, at those that are scored, and by range of sizes."""
        problem, fresh = self.problem, generator(rows.seed, FRESH)
        model.eval()
        right, measures, answers = [], [], []
        for size in problem.tested:
            drawn = problem.draw(self.tested, size, fresh)
            for inputs, targets, measure in zip(*(part.split(64) for part in drawn), strict=True):
                inputs = inputs[:, : model.reach].to(model.device)
                asked = targets[:, : model.reach] >= 0
                hits = model(inputs)[0].argmax(-1).cpu() == targets[:, : model.reach]
                right.append(hits[asked])
                measures.append(measure[:, : model.reach][asked])
                answers.append(targets[:, : model.reach][asked])
        hit, at, answer = torch.cat(right).float(), torch.cat(measures), torch.cat(answers)
        low, high = problem.scored
        scored = (at >= low) & (at <= high)
        ends = [(start + 1, end) for start, end in zip((0, *problem.edges), problem.edges, strict=False)]
        return {
            "accuracy": _mean(hit, scored),
            "guess": _most_frequent(answer[scored]),
            "trained": _mean(hit, at <= problem.trained),
            "ranges": [
                {"from": start, "to": end, "accuracy": value}
                for start, end in ends
                if (value := _mean(hit, (at >= start) & (at <= end))) is not None
            ],
            "protocol": f"share of correct answers, {self.tested} rows of each size",
        }


def _mean(hits: torch.Tensor, chosen: torch.Tensor) -> float | None:
    return float(hits[chosen].mean()) if bool(chosen.any()) else None


def _most_frequent(answers: torch.Tensor) -> float | None:
    """The accuracy of always giving the most frequent answer."""
    return float(answers.bincount().max()) / len(answers) if len(answers) else None
