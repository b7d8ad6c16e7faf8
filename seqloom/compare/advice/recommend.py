"""Which model to use, given a preference and constraints, and what would change the answer.

The winner of the table is recommended, unless a preference or a constraint says otherwise; how sure that is, is part of
the answer (`certain`). It claims no more than was measured.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field

from seqloom.compare.advice import evidence
from seqloom.compare.advice.contenders import COSTS, Race
from seqloom.compare.advice.models import Model, finished
from seqloom.compare.advice.sentences import Pair, in_both, joined, listed_names, say, say_by, term
from seqloom.compare.report import facts
from seqloom.core.errors import unknown
from seqloom.core.rows import Json
from seqloom.pages.formats import count, scaled, short

PREFERENCES = ("quality", *COSTS)


@dataclass(frozen=True)
class Limits:
    max_params: int | None = None
    max_latency_ms: float | None = None
    streaming: bool = False


@dataclass(frozen=True)
class Breach:
    """A violated constraint, the value that would admit the model (None: only dropping it would), and the reason."""

    option: str
    needed: float | None
    why: Pair


@dataclass(frozen=True)
class Decision:
    choice: str | None
    reasons: list[Pair]
    among: list[str] = field(default_factory=list)  # it and the models that might be better, as far as can be told
    headline: Pair | None = None  # the decision and how sure it is, in one sentence; None: the first reason

    @property
    def certain(self) -> bool:
        return self.choice is not None and not self.among


def recommend(
    result: Json,
    prefer: str = "quality",
    max_params: int | None = None,
    max_latency_ms: float | None = None,
    streaming: bool = False,
) -> Json:
    """The `recommendation` of a comparison result, from its protocol, entries and baselines."""
    if prefer not in PREFERENCES:
        raise unknown("preference", prefer, PREFERENCES)
    limits = Limits(max_params, max_latency_ms, streaming)
    everyone = finished(result)
    latency_unit = facts.latency_unit(result)
    breaches = {model.name: _breaches(model, limits, latency_unit) for model in everyone}
    race = Race(result, [model for model in everyone if not breaches[model.name]], everyone)
    use = None
    if race.models:
        decision = _decide(race, prefer)
        if limits != Limits() and decision.choice and not race.find(decision.choice):
            decision.reasons.append(say("unchecked", name=decision.choice))
        decision.reasons.extend(_unbeaten(race, *found) for found in race.rivals.unbeaten_on())
        decision.reasons.extend(evidence.contamination(race))
        changes = _would_change(race, prefer, decision)
        use = _to_use(race, decision)
    else:
        decision = Decision(None, [say("nothing fits" if everyone else "nothing finished")])
        changes = _relaxed(race, breaches)
    left_out = [_failed(entry) for entry in result["entries"] if entry["name"] not in breaches]
    left_out += [breach.why for found in breaches.values() for breach in found]
    return {
        "prefer": prefer,
        "constraints": asdict(limits),
        "choice": decision.choice,
        "certain": decision.certain,
        "among": decision.among,
        "headline": in_both([decision.headline or decision.reasons[0]]),
        "use": use,
        "reasons": in_both(decision.reasons + left_out),
        "would_change": in_both(changes),
    }


def _to_use(race: Race, decision: Decision) -> str:
    """The model that commands load from the comparison: the choice or, without one, the one with the best score."""
    if decision.choice:
        return decision.choice
    return (race.rivals.nearest() if race.rivals.unbeaten else race.models[0]).name


def _failed(entry: Json) -> Pair:
    if entry["state"] == "done":
        return say("no score", name=entry["name"])
    return say("failed", name=entry["name"], error=str(entry.get("error") or "-").partition(";")[0])


def _unbeaten(race: Race, name: str, baseline: Json, best: float) -> Pair:
    values = {"value": race.shared_number(baseline["value"], name), "best": race.shared_number(best, name)}
    return say("unbeaten", baseline=race.title(baseline), score=facts.score_words(race.result, name), **values)


def _breaches(model: Model, limits: Limits, latency_unit: str) -> list[Breach]:
    found = []
    if limits.max_params is not None and model.size > limits.max_params:
        values = {"value": count(model.size), "limit": count(limits.max_params)}
        key = "max_params" if model.parameters else "max_params.stored"
        found.append(Breach("max-params", model.size, say(key, name=model.name, **values)))
    if limits.max_latency_ms is not None:
        found += _too_slow(model, limits.max_latency_ms, latency_unit)
    if limits.streaming and not model.state:
        found.append(_unmeasured(model, "state", "streaming"))
    elif limits.streaming and model.grows:
        found.append(Breach("streaming", None, say("streaming", name=model.name, **model.growth())))
    return found


def _too_slow(model: Model, limit: float, latency_unit: str) -> list[Breach]:
    if not model.latency:
        return [_unmeasured(model, "latency", "max-latency-ms")]
    context = max(model.latency)
    milliseconds = model.latency[context] * 1000
    if milliseconds <= limit:
        return []
    values = {"value": short(milliseconds, 3), "context": count(context), "limit": short(limit, 3)}
    return [Breach("max-latency-ms", milliseconds, say_by(latency_unit, "max_latency_ms", name=model.name, **values))]


def _unmeasured(model: Model, what: str, option: str) -> Breach:
    return Breach(option, None, say("unknown cost", name=model.name, what=term("what", what), option=f"--{option}"))


def _decide(race: Race, prefer: str) -> Decision:
    if race.rivals.unbeaten:
        return _no_better(race)
    return _by_quality(race) if prefer == "quality" else _by_cost(race, prefer, race.worthwhile())


def _no_better(race: Race) -> Decision:
    """Recommend the baseline itself if it is a model, or else the best one that is and beats all candidates too, or the
    best candidate if it needs no training."""
    baseline, best = race.rivals.best, race.rivals.nearest()
    assert baseline is not None
    who = say("no other model" if baseline.get("entry") else "no model")
    if len(race.models) < len(race.everyone):
        who = say("no other model that fits" if baseline.get("entry") else "no model that fits")
    values = {"who": who, "name": best.name, "score": race.shared_score_words(best), **_baseline_values(race, baseline)}
    reasons = [say("no better", **values)]
    if baseline.get("model") or not (usable := race.rivals.usable()):
        if command := facts.dig(race.result, "protocol", "fit", baseline["name"]):
            reasons.append(say("fit baseline", baseline=race.title(baseline), command=command))
        name = baseline.get("model")
        reasons += evidence.budget(race) if baseline.get("entry") else []
        return Decision(name or (best.name if best.fixed else None), reasons, _not_told(race, name, baseline))
    reasons.append(say("usable baseline", baseline=race.title(usable), value=race.shared_number(usable["value"])))
    return Decision(usable["model"], reasons, _not_told(race, usable["model"], usable))


def _not_told(race: Race, name: str | None, baseline: Json) -> list[str]:
    """A baseline that is chosen, and the models that might be better."""
    others = [model for model in race.models if model.name != name and not race.rivals.told(model, baseline)]
    return [name, *(model.name for model in others)] if name and others else []


def _by_quality(race: Race) -> Decision:
    best = next(model for model in race.models if race.verdict(model) == "best")
    others = [model for model in race.models if model is not best]
    key = "best" if others else "only one"
    if len(race.models) < len(race.everyone):
        key += " that fits"
    open_ = [model for model in others if race.verdict(model) == "unclear"]
    reasons = [
        say(key, name=best.name, score=race.score(best)),
        *evidence.against(race, best, others),
        *_cheapest(race, [best, *(m for m in others if race.verdict(m) in ("unclear", "equivalent"))]),
        *_costs_and_baseline(race, best),
        *evidence.budget(race),
    ]
    among = [model.name for model in (best, *open_)] if open_ else []
    return Decision(best.name, reasons, among, evidence.headline(race, best, others))


def _cheapest(race: Race, models: list[Model]) -> list[Pair]:
    """The cheapest model by each cost in which they differ noticeably."""
    ordered = {kind: race.cheapest(kind, models) for kind in COSTS if len(models) > 1}
    winners = {kind: found[0] for kind, found in ordered.items() if len(found) > len(race.near(kind, models))}
    among = listed_names([model.name for model in models])
    if not winners:
        return []
    costs = {kind: race.cost(kind, model) for kind, model in winners.items()}
    names = {model.name for model in winners.values()}
    if len(names) == 1:
        return [say("cheapest alone", names=among, name=names.pop(), costs=joined(costs.values()))]
    named = [say("named", name=model.name, value=costs[kind]) for kind, model in winners.items()]
    return [say("cheapest", names=among, costs=joined(named))]


def _by_cost(race: Race, kind: str, models: list[Model]) -> Decision:
    ordered = race.cheapest(kind, models)
    if not ordered:
        return Decision(None, [say("unmeasured", what=term("what", kind))])
    near = race.near(kind, models)
    chosen = near[0]
    reasons = [_lead(race, kind, chosen, next((model for model in ordered if model not in near), None))]
    if kind == "memory" and len(alike := race.alike(models)) > len(near):
        peak = scaled(chosen.peak, "B")
        reasons = [say("near by peak", name=chosen.name, peak=peak, **_listed_costs(race, kind, alike))]
    elif len(near) > 1:
        reasons = [say("near", what=term("what", kind), name=chosen.name, **_listed_costs(race, kind, near))]
    below = [_not_worthwhile(race, model) for model in race.models if model not in models]
    return Decision(chosen.name, [*reasons, _given_up(race, chosen), *_costs_and_baseline(race, chosen), *below])


def _listed_costs(race: Race, kind: str, models: list[Model]) -> Json:
    values = joined((race.cost(kind, model, brief=True) for model in models), ", ", "、")
    return {"names": listed_names([model.name for model in models]), "values": values}


def _lead(race: Race, kind: str, chosen: Model, second: Model | None) -> Pair:
    values = {"name": chosen.name, "lead": term("lead", kind), "value": race.cost(kind, chosen)}
    if second is None:
        return say("leads", **values)
    return say("leads before", second=second.name, other=race.cost(kind, second, brief=True), **values)


def _given_up(race: Race, chosen: Model) -> Pair:
    """The loss of quality against the best candidate."""
    verdict = race.verdict(chosen)
    if verdict == "best":
        return say("also best", score=race.score(chosen))
    best = next(model for model in race.models if race.verdict(model) == "best")
    key = {"worse": "gives up", "equivalent": "gives up little"}.get(verdict, "gives up unknown")
    values = {"best": best.name, "score": race.score(chosen), "behind": race.behind(chosen)}
    return say(key, margin=race.margin.text, **values)


def _costs_and_baseline(race: Race, chosen: Model) -> list[Pair]:
    found = [say("costs", costs=joined(costs))] if (costs := race.costs(chosen)) else []
    baseline = race.rivals.of(chosen)
    if baseline is None:
        return found
    values = _baseline_values(race, baseline)
    if not race.rivals.holds_against(chosen):  # best by the metric, but not by the score compared with the baselines
        return [*found, say("beaten by baseline", mine=race.shared_score_words(chosen), **values)]
    key = "beats" if race.rivals.told(chosen, baseline) else "beats perhaps"
    if lead := race.lead(chosen, baseline):
        return [*found, say(f"{key}.paired", lead=lead, **values)]
    if race.rivals.score(chosen).get("low") is None:
        key = "beats once"
    return [*found, say(key, **values)]


def _baseline_values(race: Race, baseline: Json) -> Json:
    return {"baseline": race.title(baseline), "value": race.shared_number(baseline["value"])}


def _not_worthwhile(race: Race, model: Model) -> Pair:
    baseline = race.rivals.best
    if baseline is None or race.rivals.holds_against(model):
        better = next(each for each in race.models if each.fixed and race.rivals.holds_against(each))
        values = {"value": race.number(model.score["mean"]), "better": race.number(better.score["mean"])}
        return say("below fixed", name=model.name, other=better.name, **values)
    mine, other = race.shared_number(race.rivals.score(model)["mean"]), race.shared_number(baseline["value"])
    return say("below baseline", name=model.name, baseline=race.title(baseline), value=mine, other=other)


def _would_change(race: Race, prefer: str, decision: Decision) -> list[Pair]:
    found = []
    if race.rivals.unbeaten:
        found.append(say("more budget"))
    else:
        found += evidence.more_training(race, race.find(decision.choice))
        found += _other_preferences(race, prefer, decision)
        found += _longer_context(race, decision)
    best = race.everyone[0]
    if best not in race.models:
        found.append(say("excluded", name=best.name, score=race.score(best)))
    return found


def _other_preferences(race: Race, prefer: str, decision: Decision) -> list[Pair]:
    others = {kind: _decide(race, kind) for kind in PREFERENCES if kind != prefer}
    chosen = race.find(decision.choice)
    if chosen and len(race.models) > 1 and all(other.choice == chosen.name for other in others.values()):
        return [say("in any case", name=chosen.name)]
    found = []
    for kind, other in others.items():
        what, model = term("what", kind), race.find(other.choice)
        if model is None or model is chosen or (kind != "quality" and chosen in race.near(kind, race.worthwhile())):
            continue
        if chosen is None or not (kind == "quality" or race.price(kind, chosen)):
            found.append(say("if preferred", what=what, name=model.name, value=_worth(race, kind, model)))
        else:
            values = {"value": _worth(race, kind, model), "other": _worth(race, kind, chosen, brief=True)}
            found.append(say("if preferred against", what=what, name=model.name, choice=chosen.name, **values))
    return found


def _worth(race: Race, kind: str, model: Model, brief: bool = False) -> Pair:
    """The value that a preference is decided by, in words."""
    if kind != "quality":
        return race.cost(kind, model, brief=brief)
    value = race.number(model.score["mean"])
    return (value, value) if brief else race.score(model)


def _longer_context(race: Race, decision: Decision) -> list[Pair]:
    """Where the cheapest model changes with the context length, and where the state of the choice keeps growing."""
    found = []
    for kind in ("latency", "memory"):
        early, late = (race.cheapest(kind, race.models, pick)[:1] for pick in (min, max))
        if early == late or late[0] in race.near(kind, race.models, min) or early[0] in race.near(kind, race.models):
            continue
        first, second = early[0], late[0]
        values = {
            "value": race.cost(kind, first, brief=True, pick=min),
            "same": race.cost(kind, second, brief=True, pick=min),
            "other": race.cost(kind, second, brief=True),
            "later": race.cost(kind, first, brief=True),
        }
        contexts = {"short": count(race.context(kind, min)), "long": count(race.context(kind))}
        names = {"first": first.name, "second": second.name, "lead": term("lead", kind)}
        found.append(say_by(race.latency_unit, "crossing", **names, **contexts, **values))
    chosen = race.find(decision.choice)
    steady = next((model for model in race.models if model.state and not model.grows), None)
    if chosen and chosen.grows and steady:
        constant = scaled(steady.state[max(steady.state)], "B")
        found.append(say("grows", name=chosen.name, other=steady.name, constant=constant, **chosen.growth()))
    return found


def _relaxed(race: Race, breaches: dict[str, list[Breach]]) -> list[Pair]:
    """Which constraints to relax so that a model qualifies: as few as possible, each as little as possible."""
    fewest = min((len(found) for found in breaches.values()), default=0)
    nearest: dict[tuple[str, ...], Model] = {}
    for model in race.everyone:
        options = tuple(breach.option for breach in breaches[model.name])
        known = nearest.get(options)
        if len(options) == fewest and (known is None or _needs(breaches[model.name]) < _needs(breaches[known.name])):
            nearest[options] = model
    return [
        say("relax", name=model.name, score=race.score(model), options=_options(breaches[model.name]))
        for model in nearest.values()
    ]


def _needs(breaches: list[Breach]) -> list[float]:
    return [breach.needed or 0.0 for breach in breaches]


def _options(breaches: list[Breach]) -> Pair:
    parts = []
    for breach in breaches:
        if breach.needed is None:
            parts.append(say("no option", option=breach.option))
        else:
            parts.append(say("option", option=breach.option, value=_rounded_up(breach.needed)))
    return joined(parts, *say("and"))


def _rounded_up(value: float) -> str:
    """Rounded up to three digits unless whole, so that the printed limit admits the model."""
    if value == int(value):
        return str(int(value))
    decimals = max(0, 2 - math.floor(math.log10(value)))
    return f"{math.ceil(value * 10**decimals) / 10**decimals:g}"
