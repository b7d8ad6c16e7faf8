"""Must it, may it, or does it: modal verbs, and verbs that leave open whether something is done ("plan to").

A modal verb may be neither added nor left out, and it stays with its verb: "A will pay, B may borrow" does not say
"A may pay, B will borrow". An instruction may be put as a duty: wash it, it should be washed.
"""

from __future__ import annotations

from collections.abc import Sequence

from seqloom.retrieve.checking.alignment import Alignment
from seqloom.retrieve.checking.spelling import stem
from seqloom.retrieve.checking.tables import INTENTIONS, INTENTIONS_CHINESE
from seqloom.retrieve.checking.tokens import Token

_INTENDED = frozenset(map(stem, INTENTIONS.split()))
_INTENDED_CHINESE = frozenset(INTENTIONS_CHINESE.split())
_POINTING = frozenset(("的", "该", "此", "这", "这个", "其"))


def added(pair: Alignment) -> bool:
    """A modal verb that the source lacks, and no instruction."""
    return any(pair.sentence[n].kind == "modality" and not _instructs(pair, n) for n in pair.missing)


def _instructs(pair: Alignment, n: int) -> bool:
    if pair.sentence[n].form not in ("must", "should"):
        return False
    said = next(
        (m for m in range(n + 1, len(pair.sentence)) if pair.sentence[m].kind not in ("function", "negation")), None
    )
    at = None if said is None else pair.partner[said]
    return at is not None and (pair.begins(at) or _asks(pair, at))


def _asks(pair: Alignment, at: int) -> bool:
    """请 or "let" stands in the clause of the source."""
    return any(t.form in ("请", "let") for m, t in enumerate(pair.source) if pair.piece[m] == pair.piece[at])


def exchanged(pair: Alignment) -> bool:
    """A verb has the modal verb of another one."""
    ours, theirs = _governed(pair.sentence, pair.part), _governed(pair.source, pair.piece)
    for n, modals in ours.items():
        at = pair.partner[n]
        if at is not None and at in theirs and modals - theirs[at] and theirs[at] - modals:
            return True
    return False


def _governed(tokens: Sequence[Token], clause: Sequence[int]) -> dict[int, set[str]]:
    """Of each verb behind modal verbs of its clause, these."""
    found: dict[int, set[str]] = {}
    for n, token in enumerate(tokens):
        if token.kind != "modality":
            continue
        rest = (m for m in range(n + 1, len(tokens)) if clause[m] == clause[n])
        verb = next((m for m in rest if tokens[m].kind in _VERBAL and not tokens[m].form.endswith("ly")), None)
        if verb is not None:
            found.setdefault(verb, set()).add(token.form)
    return found


_VERBAL = ("word", "direction", "number", "unit")


def done(pair: Alignment) -> bool:
    """Of "they plan to close it" only "close it" is left: what was intended is said to be done."""
    kept = {at for at in pair.partner if at is not None}
    for n in pair.dropped(0, len(pair.source)):
        behind = [m for m in range(n + 1, len(pair.source)) if pair.piece[m] == pair.piece[n]]
        if pair.source[n].form in _INTENDED and behind and pair.source[behind[0]].form == "to":
            behind = behind[1:]
        elif pair.source[n].form not in _INTENDED_CHINESE or (n and pair.source[n - 1].form in _POINTING):
            continue
        verb = next((m for m in behind if pair.source[m].kind in _VERBAL), None)
        if verb in kept:
            return True
    return False
