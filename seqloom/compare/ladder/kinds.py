"""The three ladders: over the budget, over the training data, and over the size of the models."""

from __future__ import annotations

import math

from seqloom.compare.defaults import within
from seqloom.compare.ladder.climbing import Ladder
from seqloom.core.errors import RunError, UserError
from seqloom.core.rows import Json
from seqloom.lab.entries import Sized, changed
from seqloom.lab.job import Job, Result
from seqloom.lab.rules import Budget
from seqloom.lab.rungs import RUNGS, check_steps
from seqloom.runs.configure import BUDGETS
from seqloom.runs.settings import RunConfig


class BudgetLadder(Ladder):
    """Rungs are branched off the final runs, so that all have the same schedule."""

    kind = "budget"
    less = "the budget"

    @property
    def unit(self) -> str:
        return self.jobs.rules.budget.kind

    @property
    def full(self) -> float:
        return self.jobs.rules.budget.amount

    def once(self, name: str) -> float | None:
        found = next((s for s in self.field.entries if s.entry.name == name and s.trained), None)
        tokens = found.budget(self.jobs.rules.budget)["tokens"] if found else 0
        return self.full * found.reading.epoch_tokens / tokens if found and tokens else None

    def rung(self, sized: Sized, seed: int, place: int, final: Result) -> Job:
        return self.jobs.branch(sized, seed, place)


class DataLadder(Ladder):
    """Rungs are trained on less data for as many epochs: what would more data bring to one who trains on it in the same
    way? Each seed draws its own rows or stretches of text, the same ones for every entry, and a smaller rung has part
    of those of a larger one. Vocabulary, validation set and test set are those of the whole."""

    kind = "data"
    less = "the training data"
    suffix = "-data"

    @property
    def unit(self) -> str:
        return self.field.readings.shape.counted

    @property
    def full(self) -> float:
        return self.field.readings.shape.amount(self.field.reading.rows["train"])

    def seeds_of(self, sized: Sized) -> list[int]:
        """A model that needs no training has one rung for each draw."""
        return self.seeds if self.field.readings.shape.drawn or not sized.counts else self.seeds[:1]

    def rung(self, sized: Sized, seed: int, place: int, final: Result) -> Job:
        name, share = RUNGS[place]
        config = self._drawn(self.jobs.configured(sized, seed, 1.0), share, seed)
        if sized.trained:
            epochs = self._epochs(sized, config, final)
            train = changed(config.train, **dict.fromkeys(BUDGETS) | {"epochs": epochs})
            config = config.model_copy(update={"train": train})
        known = {part: hash for part, hash in self.jobs.hashes.items() if part != "train"}
        job = self.jobs.rung(sized, seed, self.name(place), config, known) | {"drawn from": self.jobs.hashes["train"]}
        return job | {"title": f"seed {seed}, {name} of the data", "size": share if sized.trained else 0.0}

    def _drawn(self, config: RunConfig, share: float, seed: int) -> RunConfig:
        return config.model_copy(update={"data": config.data | {"examples": share, "draw": seed}})

    def _epochs(self, sized: Sized, config: RunConfig, final: Result) -> float:
        """Of the final run."""
        return (config.train.tokens or final["summary"]["tokens"]) / sized.reading.epoch_tokens

    def check(self) -> None:
        """Refuse budgets of less than one epoch, and an eighth of the data that is too little to train on."""
        if self.field.entries[0].config.data["examples"]:
            raise UserError("--ladder data draws its own shares of the training set; leave data.examples out")
        (_, share), whole = RUNGS[0], self.field.reading.epoch_tokens
        eighth = self.field.epoch_of(self._drawn(self.field.entries[0].config, share, self.seeds[0]))
        if not eighth:
            raise UserError("--ladder data: an eighth of the training set is too little to train on; give more data")
        budget = self.jobs.rules.budget
        for sized in self.field.entries if budget.kind != "seconds" else ():
            if not sized.trained:
                continue
            epochs = sized.budget(budget)["tokens"] / sized.reading.epoch_tokens
            if epochs < 1:
                raise UserError(f"--ladder data: {self._below(sized.entry.name, epochs, budget)}")
            check_steps(sized, budget, epochs * eighth / whole * sized.reading.epoch_tokens)

    def note(self) -> str:
        """For a time, how far it reaches is measured; but final runs that are done have reached what they have."""
        budget, entries = self.jobs.rules.budget, self.field.entries
        done = all((self.jobs.folder(s, f"seed-{self.seeds[0]}") / "result.json").exists() for s in entries)
        if budget.kind != "seconds" or done:
            return ""
        read, slowest = within(budget.amount, entries, self.jobs.rules.threads, "bytes")
        once = slowest.reading.bytes
        return f"ladder: {self._below(slowest.entry.name, read / once, budget)}" if read < once else ""

    def _below(self, name: str, epochs: float, budget: Budget) -> str:
        digits = 2 - math.floor(math.log10(budget.amount / epochs))
        need = math.ceil(budget.amount / epochs * 10**digits) / 10**digits
        return (
            f"with --budget {budget.kind}={budget.amount:g}, {name} reads {epochs:.2g} of the training set once, so "
            f"less data would only mean a smaller budget; use at least {budget.kind}={need:g}, or --ladder budget"
        )


class SizeLadder(Ladder):
    """Rungs are smaller models, trained on as many tokens as the final run, with the settings tuned for that."""

    kind = "size"
    less = "the size"
    suffix = "-size"

    @property
    def unit(self) -> str:
        return "parameters" if self.field.column == 0 else "backbone"

    @property
    def full(self) -> float:
        return self.field.target

    def rung(self, sized: Sized, seed: int, place: int, final: Result) -> Job | None:
        name, share = RUNGS[place]
        try:
            smaller = self.field.smaller(sized, self._target(share))
        except (UserError, RunError):  # with the number of layers that the search chose
            return None
        tokens = self.jobs.configured(sized, seed, 1.0).train.tokens or final["summary"]["tokens"]
        config = self.jobs.configured(smaller, seed, 1.0)
        budget: Json = dict.fromkeys(BUDGETS) | {"tokens": tokens}
        config = config.model_copy(update={"train": changed(config.train, **budget)})
        job = self.jobs.rung(sized, seed, self.name(place), config, self.jobs.hashes)
        return job | {"title": f"seed {seed}, {name} of the size", "size": share}

    def once(self, name: str) -> float | None:
        """A larger model memorises more of what it reads again."""
        budget = self.jobs.rules.budget
        entry = next((sized for sized in self.field.entries if sized.entry.name == name), None)
        if entry is None or budget.kind == "seconds":
            return None
        return 0.0 if entry.budget(budget)["tokens"] > entry.reading.epoch_tokens else None

    def _target(self, share: float) -> int:
        return round(share * self.field.target)

    def seeds_of(self, sized: Sized) -> list[int]:
        """Trained weights have the size that they have."""
        return [] if sized.started else super().seeds_of(sized)

    def check(self) -> None:
        scratch = [sized for sized in self.field.entries if not sized.started]
        if not scratch:
            raise UserError("--ladder size: all models start from trained weights, which have their size; leave it out")
        for sized in scratch:
            for name, share in RUNGS:
                try:
                    self.field.smaller(sized, self._target(share))
                except UserError:
                    raise UserError(
                        f"--ladder size: {sized.entry.name} cannot have {self._target(share):,} parameters, "
                        f"{'an' if name == 'eighth' else 'a'} {name} of {self.field.target:,}, with this vocabulary; "
                        "raise --params, or use a smaller tokenizer.vocabulary"
                    ) from None


LADDERS: dict[str, type[Ladder]] = {each.kind: each for each in (BudgetLadder, DataLadder, SizeLadder)}
