"""Exact match and F1 by hand, for English and Chinese; the sentence that one finds without learning."""

from __future__ import annotations

from typing import Any

import pytest

from seqloom.tasks.question_answering.scores import agreement, best_sentence, rules_for, sentences

SQUAD = [
    ("the Denver Broncos", ["Denver Broncos"], 1, 1),
    ("Denver  BRONCOS!", ["denver broncos."], 1, 1),
    ("Broncos", ["Denver Broncos"], 0, 2 / 3),
    ("Denver Broncos of Denver", ["Denver Broncos"], 0, 2 * 2 / 6),
    ("1,000", ["1000"], 1, 1),
    ("no", ["yes"], 0, 0),
    ("b", ["a b", "b c"], 1, 1),
    ("", [], 1, 1),
    ("x", [], 0, 0),
    ("", ["x"], 0, 0),
    ("the", ["a"], 1, 1),
]
CMRC = [
    ("光荣和ω-force", ["光荣和ω-force"], 1, 1),
    ("《战国无双》", ["战国无双"], 1, 1),
    ("战国无双3", ["战国无双"], 0, 2 * 4 / 9),
    ("战无双国", ["战国无双"], 0, 2 * 2 / 8),
    ("1999年", ["1999 年"], 0, 1),
    ("任天堂 game", ["任天堂 GAME"], 1, 1),
    ("天", ["地"], 0, 0),
    ("", [], 1, 1),
]


@pytest.mark.parametrize(("rules", "case"), [*(("squad", c) for c in SQUAD), *(("cmrc", c) for c in CMRC)], ids=str)
def test_exact_match_and_f1_by_hand(rules: Any, case: tuple[str, list[str], float, float]) -> None:
    answer, wanted, exact, f1 = case
    found = agreement(answer, wanted, rules)
    assert found.exact == exact and found.f1 == pytest.approx(f1)


def test_the_rules_are_those_of_the_questions_language() -> None:
    assert rules_for("谁开发了《战国无双3》？") == rules_for("光荣 force 是谁") == "cmrc"
    assert (
        rules_for("Who was 曹操 to the kingdom of Wei?") == rules_for("1999?") == rules_for("Wer ist das?") == "squad"
    )


def test_sentences_are_cut_at_their_ends_and_the_best_shares_rare_words() -> None:
    text = 'It cost 3.5 francs. "Really?" he said! Yes\nNew line。天地玄黄！宇宙'
    assert sentences(text) == [
        "It cost 3.5 francs.",
        '"Really?"',
        "he said!",
        "Yes",
        "New line。",
        "天地玄黄！",
        "宇宙",
    ]
    assert sentences("  one ") == ["one"] and "".join(sentences("a. b? 天。")) == "a.b?天。"
    passage = "The cat sat. The dog ran to the sea. The cow was the best of the three."
    assert best_sentence("Where did the dog run?", passage) == "The dog ran to the sea."
    assert best_sentence("谁在海边？", "猫在家。狗在海边。") == "狗在海边。"
    assert best_sentence("xyz", passage) == "The cat sat."
