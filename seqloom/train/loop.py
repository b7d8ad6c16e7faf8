"""The training loop, independent of model and task: an objective returns a loss and a state for the next batch."""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import nn

from seqloom.core.batch import Batch
from seqloom.core.errors import RunError, UserError, out_of_memory
from seqloom.core.network import SequenceModel
from seqloom.core.progress import Reporter
from seqloom.core.rows import Json, Rows
from seqloom.core.state import State, detach_state
from seqloom.core.stopping import stop_signals
from seqloom.core.task import AnyTask, Order, Step
from seqloom.train.checkpoint import load_weights, pack_process, restore_process, weights
from seqloom.train.clock import Clock
from seqloom.train.engine import Engine
from seqloom.train.optimizers import Optimizers
from seqloom.train.settings import TrainConfig

EVALUATIONS = 10  # per run, unless train.evaluate_every is set

Judge = Callable[[float, Json], bool]  # (fraction of the budget, validation scores) -> continue?


class Interrupted(Exception):
    """Stopped by a signal, after writing a checkpoint. Exit code 128 + signal."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}; run the same command again to continue")
        self.exit_code = 128 + number


class Diverged(RunError):
    """The loss or a gradient is no longer finite."""


class GivenUp(RunError):
    """The judge of the validation scores stopped this run early."""


class Store(Protocol):
    """Where a run is recorded: training metrics and checkpoints."""

    path: Path

    @property
    def identity(self) -> str | None: ...
    def log(self, entry: Json) -> None: ...
    def trim_metrics(self, step: int, validated: int | None = None) -> None: ...
    def save_checkpoint(
        self, step: int, files: Mapping[str, bytes], keep: int, best: int | None, kept: Collection[int]
    ) -> None: ...
    def prune(self, keep: int, best: int | None, kept: Collection[int]) -> None: ...


class Objective(nn.Module):
    """Model and task as one module, because distributed wrappers only handle `forward`."""

    def __init__(self, model: SequenceModel, task: AnyTask) -> None:
        super().__init__()
        self.model, self.task = model, task

    def forward(self, batch: Batch, state: State) -> Step:
        return self.task.loss(self.model, batch, state)


@dataclass
class Progress:
    """The part of the training state that is not tensors."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0  # of training, by the clock of the budget
    wall: float = 0.0  # of training, elapsed
    best: float | None = None
    best_step: int | None = None
    stale: int = 0  # validations since the best one
    low: int = 0  # latest steps in a row with a loss of at most `train.enough`
    evaluated: int = 0  # step of the last validation
    evaluated_share: float = 0.0  # fraction of the budget spent at the last validation
    kept: list[int] = field(default_factory=list)  # steps of the checkpoints of `train.keep_at`


class Trainer:
    def __init__(
        self,
        model: SequenceModel,
        task: AnyTask,
        config: TrainConfig,
        engine: Engine,
        folder: Store,
        reporter: Reporter,
        bytes_per_token: float | None = None,
        judge: Judge | None = None,
        epoch: int | None = None,
    ) -> None:
        """`epoch`: training tokens in one pass over the data, for a budget in epochs."""
        self.task, self.config, self.engine, self.folder, self.reporter = task, config, engine, folder, reporter
        self.carry = model.limit is None  # a fixed-size state is carried from batch to batch
        self.model = model
        engine.spread(model)
        self.optimizers = Optimizers(self.model, config)
        self.objective = engine.wrap(Objective(self.model, task))
        self.progress = Progress()
        self.states: list[State] = [None] * config.accumulate
        self.bytes_per_token, self.judge, self.epoch = bytes_per_token, judge, epoch
        self.valid: float | None = None
        self.clock = Clock(config.clock, engine.device.type)
        self.board = _tensorboard(folder.path) if config.tensorboard and engine.main else None
        engine.seed(config.seed)

    def fit(self, train: Rows, valid: Rows | None) -> Progress:
        """Train until the budget is spent, patience runs out, the loss is low enough, or a signal arrives."""
        order = Order(
            self.config.batch,
            self.config.seed,
            self.config.accumulate,
            self.engine.rank,
            self.engine.world,
            start=self.progress.step,
        )
        self.model.train()
        self.clock.restart()
        with _signals() as received:
            for pieces in self.task.batches(train, order, self.carry):
                if self.finished():
                    break
                facts, stop = self.update(pieces, received)
                self._report(facts)
                due = self._due()
                if due:
                    self.evaluate(valid)
                if self._keeps() or stop or due or self._should_save():
                    self.save()
                    self.clock.restart()  # validation and saving do not count as training time
                if stop:
                    raise Interrupted(received[0] if received else signal.SIGTERM)
            if self.progress.evaluated < self.progress.step:
                self.evaluate(valid)
                self.save()
        return self.progress

    def update(self, pieces: list[Batch], received: Sequence[int] = ()) -> tuple[dict[str, float], bool]:
        """One optimiser step: its metrics, and whether any process received a stop signal."""
        loss, count, tokens = 0.0, 0.0, 0.0
        for n, batch in enumerate(pieces):
            carried = self.states[n] if batch.continues else None
            with self.engine.piece(self.objective, last=n == len(pieces) - 1):
                with self.engine.cast():
                    step = self.objective(batch.to(self.engine.device), carried)
                step.loss.backward()
            self.states[n] = detach_state(step.state) if self.carry else None
            loss, count = loss + step.loss.item(), count + step.count
            tokens += step.count if step.tokens is None else step.tokens
        totals = self.engine.total(loss, count, tokens, len(received), *self.clock.lap())
        loss, count, tokens, stop, seconds, wall = totals
        norm = self._settle_gradients(count)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise self._not_finite(loss, pieces)
        factor = self.optimizers.step(self.share(), self.progress.step)
        self.optimizers.zero_grad()
        self.progress.step += 1
        self.progress.tokens += int(tokens)
        self.progress.seconds += seconds / self.engine.world  # averaged, so that all processes stop together
        self.progress.wall += wall / self.engine.world
        self.progress.low = self.progress.low + 1 if loss / max(count, 1.0) <= self.config.enough else 0
        return {"loss": loss / max(count, 1.0), "norm": norm, "rate_factor": factor}, stop > 0

    def evaluate(self, valid: Rows | None) -> None:
        self.progress.evaluated, self.progress.evaluated_share = self.progress.step, self.share()
        if valid is None:
            return
        with self.engine.cast():
            scores = self.task.evaluate(self.model, valid, quick=True)
        score, selected_by = scores[self.task.metric], self.task.selected_by
        value, sign = scores[selected_by.name], -1.0 if selected_by.higher_is_better else 1.0
        better = math.isfinite(value) and (self.progress.best is None or sign * value < sign * self.progress.best)
        if self.config.schedule == "stable" and self.share() < 1:
            pass  # a rate that has not decayed yet says little about the end: the last weights are the result
        elif better:
            self.progress.best, self.progress.best_step, self.progress.stale = value, self.progress.step, 0
        elif value != self.progress.best:  # a score that stays at its lowest says nothing yet
            self.progress.stale += 1
        if self.valid is None and "protocol" in scores:
            self.reporter.say(f"valid, during training: {scores['protocol']}")
        self.valid = score
        self._log({"valid": {k: v for k, v in scores.items() if k != "baselines"}})
        if self.judge and not self.judge(self.share(), scores):
            raise GivenUp(f"step {self.progress.step}: stopped early at validation score {score:.4f}")

    def share(self) -> float:
        """The fraction of the budget that is spent."""
        p, c = self.progress, self.config
        tokens = c.epochs * self.epoch if c.epochs and self.epoch else None
        spent = ((p.step, c.steps), (p.tokens, c.tokens), (p.tokens, tokens), (p.seconds, c.seconds))
        return max((done / budget for done, budget in spent if budget), default=0.0)

    def finished(self) -> bool:
        patient = not self.config.patience or self.progress.stale < self.config.patience
        enough = self.config.enough > 0 and self.progress.low >= self.config.enough_steps
        return self.share() >= 1 or not patient or enough

    def save(self) -> None:
        """Save a checkpoint; all processes take part, the main one writes."""
        model = {name: self.engine.whole(t).contiguous() for name, t in weights(self.model).items()}
        moments = {name: self.engine.whole(t).contiguous() for name, t in self.optimizers.tensors()}
        processes = self.engine.gather(pack_process(self.states))
        if self.engine.main:
            about = {"world": self.engine.world, "run": self.folder.identity}
            files = {
                "model.safetensors": save(model),
                "optimizer.safetensors": save(moments),
                "progress.json": json.dumps(asdict(self.progress) | about).encode(),
            } | {f"process-{rank}.safetensors": blob for rank, blob in enumerate(processes)}
            best, kept = self.progress.best_step, self.progress.kept
            self.folder.save_checkpoint(self.progress.step, files, self.config.keep, best, kept)
        self.engine.wait()

    def restore(self, path: Path) -> None:
        """Resume exactly from a checkpoint."""
        try:
            self._restore(path)
        except (ValueError, LookupError, TypeError, AttributeError, RuntimeError, SafetensorError, RunError) as error:
            if out_of_memory(error):
                raise
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise RunError(
                f"{path}: this run cannot continue from this checkpoint ({why[:200]}); delete it and run the same "
                "command again"
            ) from error

    def _restore(self, path: Path) -> None:
        saved = json.loads((path / "progress.json").read_bytes())
        world, run = saved.pop("world"), saved.pop("run", None)
        if run and run != self.folder.identity:
            raise ValueError("it is of another run")
        load_weights(self.model, load_file(path / "model.safetensors"), self.engine)
        self.optimizers.load(load_file(path / "optimizer.safetensors"), self.engine.place)
        saved.setdefault("wall", saved["seconds"])  # of versions that knew only one clock
        self.progress = Progress(**saved)
        self.progress.evaluated_share = min(self.progress.evaluated_share, self.share())  # the budget may have grown
        if world == self.engine.world:
            self.states = restore_process(path / f"process-{self.engine.rank}.safetensors", self.engine.device)
        else:
            self.reporter.say(
                f"{world} processes before, {self.engine.world} now: states carried between batches are reset"
            )
        if self.engine.main:
            self.folder.trim_metrics(self.progress.step, self.progress.evaluated)
            # a process that was killed may not have pruned after its last save
            self.folder.prune(self.config.keep, self.progress.best_step, self.progress.kept)

    def _settle_gradients(self, count: float) -> float:
        """Scale summed gradients to the mean over targets and clip them in one pass; returns the unclipped norm."""
        gradients: list[Any] = [p.grad for p in self.optimizers.parameters if p.grad is not None]
        total = nn.utils.get_total_norm(gradients)
        mean = self.engine.gradient_share / max(count, 1.0)
        norm = float(total.full_tensor() if hasattr(total, "full_tensor") else total) * mean
        limit = self.config.clip if self.config.clip_by == "norm" else 0.0
        torch._foreach_mul_(gradients, mean * min(1.0, limit / (norm + 1e-6)) if limit else mean)
        if self.config.clip and self.config.clip_by == "value":
            torch._foreach_clamp_min_(gradients, -self.config.clip)
            torch._foreach_clamp_max_(gradients, self.config.clip)
        return norm

    def _not_finite(self, loss: float, pieces: list[Batch]) -> Diverged:
        named = [(f"gradient of {n}", p.grad) for n, p in self.model.named_parameters() if p.grad is not None]
        bad = [("the loss", torch.tensor(loss)), *named]
        first = next((name for name, t in bad if not self.engine.whole(t).isfinite().all()), "the gradient norm")
        where = "; ".join(batch.origin for batch in pieces)
        return Diverged(
            f"step {self.progress.step + 1}: {first} is not finite (loss {loss}); the weights were not updated and "
            f"checkpoints are intact; lower train.rate or train.matrix_rate; batch: {where}"
        )

    def _due(self) -> bool:
        if self.config.evaluate_every:
            return self.progress.step % self.config.evaluate_every == 0
        return int(self.share() * EVALUATIONS) > int(self.progress.evaluated_share * EVALUATIONS)

    def _should_save(self) -> bool:
        return bool(self.config.save_every) and self.progress.step % self.config.save_every == 0

    def _keeps(self) -> bool:
        """Whether the checkpoint of this step is to be kept for good."""
        marks = sorted(self.config.keep_at)[len(self.progress.kept) :]
        passed = [self.progress.step for mark in marks if self.progress.tokens >= mark]
        self.progress.kept += passed
        return bool(passed)

    def _report(self, facts: dict[str, float]) -> None:
        p, loss = self.progress, facts["loss"]
        if p.step % self.config.log_every == 0:
            self._log({"train": facts})
        shown: Json = {"step": p.step, "loss": loss}
        if self.task.perplexity:
            shown["perplexity"] = math.exp(min(loss, 700))
        if self.bytes_per_token:
            shown["bits_per_byte"] = loss / math.log(2) / self.bytes_per_token
        shown |= {
            "valid": self.valid,
            "metric": self.task.metric,
            "seconds": p.wall,
            "tokens_per_second": p.tokens / p.wall,
        }
        self.reporter.update(self.share(), shown)

    def _log(self, entry: Json) -> None:
        if not self.engine.main:
            return
        p = self.progress
        times = {"seconds": round(p.seconds, 3), "wall_seconds": round(p.wall, 3)}
        stamp = {"step": p.step, "tokens": p.tokens} | times
        self.folder.log(stamp | entry)
        if self.board is not None:
            for kind, facts in entry.items():
                for name, value in facts.items():
                    if isinstance(value, int | float):
                        self.board.add_scalar(f"{kind}/{name}", value, self.progress.step)


@contextmanager
def _signals() -> Iterator[list[int]]:
    """On a signal to stop, save a checkpoint first; a second one stops at once."""
    received: list[int] = []
    handled = stop_signals()

    def remember(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for other in handled:
            signal.signal(other, signal.SIG_DFL)

    try:
        before = {number: signal.signal(number, remember) for number in handled}
    except ValueError:  # not the main thread: the caller handles signals
        yield received
        return
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tensorboard(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UserError("train.tensorboard=true needs the tensorboard package: pip install 'seqloom[track]'") from None
    return SummaryWriter(str(folder / "tensorboard"))
