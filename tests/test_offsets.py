"""Where tokens stand in their text: ids as ever, and characters that are exactly theirs, for every tokenizer."""

from __future__ import annotations

import random
import unicodedata

import numpy as np
import pytest
from toys import each

from seqloom.core.errors import UserError
from seqloom.tokenizers import KINDS, Tokenizer, train_tokenizer

ALPHABETS = [
    "abcde ABC",
    "the cat sat, on a mat. ",
    "天地玄黄宇宙洪荒，。 ",
    "aé\u0301o\u0308n\u0303 ",  # combining marks
    "😀👩\u200d👩\u200d👧🇨🇳 x",  # several code points that look like one
    "नमस्ते ",
    "\n\t\u00a0\u3000 a",
    "x𐍈ß€\u0000-",
]
TEXTS = ["the cat sat on the mat, and the cat ate. " * 3, "天地玄黄，宇宙洪荒。" * 3, "Ünïcödé wörds 😀 and नमस्ते\n" * 3]


def random_text(seed: int) -> str:
    chance = random.Random(seed)
    return "".join("".join(chance.choices(chance.choice(ALPHABETS), k=chance.randint(0, 9))) for _ in range(8))


@pytest.fixture(scope="module", params=[*KINDS, "words by space"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    kind, _, split = request.param.partition(" by ")
    return train_tokenizer(kind, TEXTS, size=400, split=split or "punctuation")


@each(seed=range(60))
def test_ids_are_those_of_encode_and_places_are_in_order_and_in_the_text(tokenizer: Tokenizer, seed: int) -> None:
    text = random_text(seed)
    ids, places = tokenizer.spans(text)
    assert np.array_equal(ids, tokenizer.encode(text))
    assert places.shape == (len(ids), 2) and places.dtype == np.int64
    assert (places[:, 0] < places[:, 1]).all() and (places >= 0).all() and (places <= len(text)).all()
    assert (np.diff(places, axis=0) >= 0).all()


@each(seed=range(60))
def test_no_character_that_is_not_white_belongs_to_no_token(tokenizer: Tokenizer, seed: int) -> None:
    text = random_text(seed)
    covered = np.zeros(len(text), bool)
    for begin, end in tokenizer.spans(text)[1]:
        covered[begin:end] = True
    assert all(there or character.isspace() for there, character in zip(covered, text, strict=True))


@each(seed=range(40))
def test_a_token_stands_for_the_characters_that_it_decodes_to(tokenizer: Tokenizer, seed: int) -> None:
    text = random_text(seed)
    for id, (begin, end) in zip(*tokenizer.spans(text), strict=True):
        written = tokenizer.decode([int(id)])
        if id == tokenizer.unk or "\ufffd" in written:  # unknown, or a part of a character
            continue
        assert text[begin:end] == (written.strip() or written)


@each(seed=range(40))
def test_parts_of_a_character_stand_for_all_of_it(seed: int) -> None:
    text = random_text(seed)
    _, places = train_tokenizer("bytes", []).spans(text)
    counts = np.bincount(places[:, 0], minlength=len(text))
    assert counts.tolist() == [len(character.encode()) for character in text]
    assert (places[:, 1] - places[:, 0] == 1).all()


def test_a_long_text_is_cut_for_the_library_and_places_go_on(tokenizer: Tokenizer) -> None:
    text = "".join(random_text(seed) for seed in range(300))
    ids, places = tokenizer.spans(text)
    assert len(text) > 8192 and np.array_equal(ids, tokenizer.encode(text))
    assert places[-1, 1] > len(text) - 9


def test_an_empty_text_has_no_places_and_half_a_character_is_refused(tokenizer: Tokenizer) -> None:
    ids, places = tokenizer.spans("")
    assert len(ids) == 0 and places.shape == (0, 2)
    with pytest.raises(UserError, match="lone surrogate"):
        tokenizer.spans("a\ud800")


def test_a_blank_that_belongs_to_a_token_is_not_among_its_characters() -> None:
    bpe = train_tokenizer("bpe", ["the cat sat on the mat " * 9], size=300)
    ids, places = bpe.spans("the cat")
    assert bpe.name(int(ids[-1])) == " cat" and places[-1].tolist() == [4, 7]


def test_composed_and_decomposed_letters_keep_their_own_places() -> None:
    for form, end in (("NFC", 1), ("NFD", 2)):
        text = unicodedata.normalize(form, "é") + "x"
        for kind in ("characters", "bytes", "bpe"):
            places = train_tokenizer(kind, TEXTS, size=300).spans(text)[1]
            assert places[-1].tolist() == [end, end + 1]
