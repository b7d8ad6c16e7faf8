"""The terms of a text: folded, stemmed, and pairs of characters where words are not spaced."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from seqloom.core.errors import UserError
from seqloom.retrieve import stemming
from seqloom.retrieve.stemming import stem
from seqloom.retrieve.terms import K1, B, counts, fold, length, question, term_id, terms, weigh


def test_english_words_are_folded_and_stemmed() -> None:
    assert terms("The Naïve cells' INHIBITION, in vitro_2 (3.5 mg)") == [
        "the", "naiv", "cell", "inhibit", "in", "vitro", "2", "3", "5", "mg",
    ]  # fmt: skip


def test_chinese_is_pairs_of_characters_and_single_ones_where_they_stand_alone() -> None:
    assert terms("长江是河流，水。") == ["长江", "江是", "是河", "河流", "水"]
    assert terms("用Python写的GPT模型") == ["用", "python", "写的", "gpt", "模型"]


def test_one_character_in_several_forms_is_one_term() -> None:
    assert terms("ＡＢＣ１２ ﬁne") == terms("abc12 fine")
    assert terms("がん") == terms("か\u3099ん") and fold("한국") == "한국"
    assert terms("") == terms("!? \u200b") == []


@pytest.mark.parametrize("text", ["The harbour's cranes lifted 12 tonnes.", "港口 harbours 的吊车", ""])
def test_length_and_counts_are_those_of_the_terms(text: str) -> None:
    assert length(text) == len(terms(text)) and counts(text) == Counter(map(term_id, terms(text)))


def test_any_string_has_terms() -> None:
    assert counts("\ud800 lone") and terms("\x00a\x00") == ["a"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [("caresses", "caress"), ("ponies", "poni"), ("hopping", "hop"), ("filing", "file"), ("relational", "relat"),
     ("electricity", "electr"), ("controlling", "control"), ("sky", "sky"), ("happy", "happi"), ("is", "is"),
     ("βeta", "βeta"), ("x2s", "x2s")],
)  # fmt: skip
def test_stems(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_stems_are_those_of_the_reference() -> None:
    from nltk.stem.porter import PorterStemmer

    reference = PorterStemmer(mode="ORIGINAL_ALGORITHM")
    endings = ["", "s", "es", "ed", "ing", "ly", "ational", "ization", "iveness", "ement", "ability", "y", "ies", "eed"]
    roots = re.findall("[a-z]+", (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text().lower())
    long = sorted({word + ending for word in roots for ending in endings if len(word + ending) > 2})
    assert len(long) > 500
    assert [(word, stem(word)) for word in long] == [(word, reference.stem(word)) for word in long]


def test_without_the_stemmer_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    stem.cache_clear()
    stemming._stemmer.cache_clear()
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(
        UserError, match=r"^search by words needs the PyStemmer package: pip install 'seqloom\[retrieve\]'$"
    ):
        stem("harbours")
    monkeypatch.undo()
    assert stem("harbours") == "harbour"


def test_the_id_of_a_term_is_the_same_everywhere() -> None:
    assert [term_id("retriev"), term_id("检索")] == [2502694345, 3218957596]


def test_weights_are_those_of_bm25() -> None:
    found = weigh(counts("river river bank"), average=6.0)
    by_id = dict(zip(found.ids.tolist(), found.weights.tolist(), strict=True))
    norm = K1 * (1 - B + B * 3 / 6)
    assert by_id == pytest.approx({term_id("river"): 2 * (K1 + 1) / (2 + norm), term_id("bank"): (K1 + 1) / (1 + norm)})
    assert sorted(by_id) == found.ids.tolist()
    empty = weigh(counts(""), average=0.0)
    assert len(empty.ids) == 0 and not math.isnan(empty.weights.sum())


def test_a_term_that_a_question_repeats_counts_as_often() -> None:
    asked = question("bank of the bank")
    assert dict(zip(asked.ids.tolist(), asked.weights.tolist(), strict=True))[term_id("bank")] == 2.0


def test_a_line_break_inside_of_a_chinese_word_changes_nothing() -> None:
    assert terms("能见\n度。\n\n好") == terms("能见度。好")
