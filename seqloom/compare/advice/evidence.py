"""How sure a recommendation is: what the evidence says of the other models, and what would settle what is open."""

from __future__ import annotations

from collections.abc import Sequence

from seqloom.compare.advice.contenders import Race
from seqloom.compare.advice.models import Model
from seqloom.compare.advice.sentences import Pair, joined, listed_names, say
from seqloom.compare.report import facts
from seqloom.lab.power import seeds_needed
from seqloom.lab.spending import level_at
from seqloom.pages.formats import count, duration, short

MANY_SEEDS = 50  # more than is practical


def headline(race: Race, best: Model, others: Sequence[Model]) -> Pair | None:
    """The winner and how sure that is, in one sentence."""
    names = {
        key: listed_names(model.name for model in others if race.verdict(model) == key)
        for key in ("unclear", "equivalent")
        if any(race.verdict(model) == key for model in others)
    }
    if not others:
        return None
    key = next(iter(names), "worse" if len(others) > 1 else "worse one")
    lead = "lead" if len(race.models) == len(race.everyone) else "lead of those that fit"
    values = {"lead": say(lead, name=best.name, score=race.score(best)), "margin": race.margin.text}
    return say(f"headline.{key}", names=names.get(key, others[0].name), **values)


def against(race: Race, best: Model, others: Sequence[Model]) -> list[Pair]:
    """The other models by verdict: worse, equivalent, or not told apart."""
    groups: dict[str, list[Model]] = {"worse": [], "equivalent": [], "unclear": []}
    for model in others:
        groups[race.verdict(model)].append(model)
    untested = [model for model in groups["unclear"] if not race.tested(model)]
    open_ = [model for model in groups["unclear"] if model not in untested]
    found = []
    if untested:
        scores = [say("named", name=model.name, value=race.number(model.score["mean"])) for model in (best, *untested)]
        single = any(not model.fixed and len(model.sample.scores) == 1 for model in race.models)
        found.append(say("one seed" if single else "one segment", scores=joined(scores, ", ", "、")))
    if open_:
        found.append(say("open", names=listed_names(m.name for m in open_), others=_behind(race, open_)))
        found += [_settled_by(race, best, model) for model in open_]
    if groups["equivalent"]:
        found.append(say("equivalent", margin=race.margin.text, others=_behind(race, groups["equivalent"])))
    if groups["worse"]:
        found.append(say("worse", others=_behind(race, groups["worse"])))
    return found


def budget(race: Race) -> list[Pair]:
    """What trained models had read beside those that are fitted to the whole training set."""
    trained, fixed = ([m for m in race.models if m.fixed == kind] for kind in (False, True))
    tokens = sorted(model.tokens for model in trained if model.tokens and model.epochs)
    passes = sorted(model.epochs for model in trained if model.tokens and model.epochs)
    if not fixed or not tokens:
        return []
    shown = joined([(count(value), count(value)) for value in _ends(tokens)], " to ", " 至 ")
    epochs = joined([(short(value, 2),) * 2 for value in _ends(passes)], " to ", " 至 ")
    return [say("trained on", tokens=shown, epochs=epochs, names=listed_names(model.name for model in fixed))]


def more_training(race: Race, chosen: Model | None) -> list[Pair]:
    """A model that needs no training is ahead of models that have not read the training set once."""
    few = [model for model in race.models if not model.fixed and model.epochs and model.epochs < 1]
    if chosen is None or not chosen.fixed or not few:
        return []
    return [say("under one epoch", names=listed_names(model.name for model in few))]


def contamination(race: Race) -> list[Pair]:
    """What nobody can check of weights that others trained."""
    names = [model.name for model in race.models if model.pretrained]
    return [say("pretrained", names=listed_names(names))] if names else []


def _ends(values: Sequence[float]) -> list[float]:
    """One value where all are alike, within a hundredth."""
    return [values[0]] if values[-1] <= 1.01 * values[0] else [values[0], values[-1]]


def _behind(race: Race, models: Sequence[Model]) -> Pair:
    parts = [say("name behind", name=model.name, behind=race.behind(model)) for model in models]
    return joined(parts, "; ", "；")


def _settled_by(race: Race, best: Model, other: Model) -> Pair:
    """How many seeds, and how much time, would separate the two."""
    names = {"name": other.name, "best": best.name}
    look = int(facts.dig(race.result, "protocol", "plan", "look") or 1)
    tested = sum(1 for model in race.models if model.sample.testable)
    needed = seeds_needed(other.sample, best.sample, tested, level_at(look + 1))
    if needed.seeds is None:
        return say(f"seeds in vain.{needed.limit}", **names)
    done = max(len(m.sample.scores) for m in (other, best) if not m.fixed)
    seeds = max(needed.seeds, done + 1)
    seconds = [model.seconds for model in (other, best) if not model.fixed]
    time = ("", "")
    if None not in seconds:
        time = say("more training", time=duration((seeds - done) * sum(filter(None, seconds))))
    key = "many seeds" if seeds > MANY_SEEDS else "seeds"
    return say(key, count=count(seeds), done=done, time=time, **names)
