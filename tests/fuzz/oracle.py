"""What must hold, whatever was typed or handed over: the violations of an outcome, each a word and what was seen."""

from __future__ import annotations

from fuzz.case import Case, Outcome

CODES = (0, 1, 2)  # docs/errors.md; the others are those of signals, of which a case sends none
LONGEST = 1000  # characters of a message
SECONDS = 20.0  # of the processor, for one input


def violations(case: Case, outcome: Outcome) -> list[str]:
    found = [*_ends(outcome), *_verdict(case, outcome)]
    if outcome.code:
        found += _message(case, outcome)
    elif "Warning" in outcome.err:
        found.append(f"warning of a library: {outcome.err.strip()[:200]}")
    found += [f"changed {name}" for name in outcome.changed]
    found += [f"left {name}" for name in outcome.left]
    return found


def _ends(outcome: Outcome) -> list[str]:
    found = []
    if outcome.hung or outcome.seconds > SECONDS:
        found.append(f"hang: {outcome.seconds:.0f} s")
    elif outcome.signal:
        found.append(f"signal {outcome.signal}")
    elif outcome.code not in CODES:
        found.append(f"exit code {outcome.code}")
    if "Traceback (most recent" in outcome.err + outcome.out or "internal error" in outcome.err:
        found.append(f"traceback: {_last(outcome.err)}")
    return found


def _verdict(case: Case, outcome: Outcome) -> list[str]:
    if case.wanted == "fail" and not outcome.code and not outcome.signal:
        return ["accepted, but has to fail"]
    if case.wanted == "pass" and outcome.code:
        return [f"refused, but is valid: {_last(outcome.err)}"]
    return []


def _message(case: Case, outcome: Outcome) -> list[str]:
    lines = outcome.err.splitlines()
    if outcome.signal or outcome.hung or (case.command == "doctor" and not lines and outcome.out):
        return []  # doctor: what is wrong stands in its report
    told = [line for line in lines if line.startswith("seqloom: ")]  # before it there may be progress and warnings
    found = []
    if len(told) != 1 or told[0] != lines[-1] or len(told[0]) < 20:
        found.append(f"not one line: {outcome.err.strip()[:300]!r}")
    elif len(told[0]) > LONGEST:
        found.append(f"message of {len(told[0])} characters: {told[0][:200]}")
    if not all(c.isprintable() for line in lines for c in line):
        found.append(f"unprintable characters: {outcome.err[:200]!r}")
    return found


def _last(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1][:300]


def kind(violation: str) -> str:
    """What distinguishes violations that are the same fault from others: without numbers and names."""
    what, _, rest = violation.partition(": ")
    shape = "".join("0" if c.isdigit() else c for c in rest)
    if what in ("traceback", "refused, but is valid"):
        return f"{what}: {shape.split('the details are in')[0][-90:]}"
    return what.split()[0] if what.startswith(("changed ", "left ")) else what
