"""Tokenizers: what goes in comes out, specials cannot be smuggled in, other libraries read the same files."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.core.errors import UserError
from seqloom.tokenizers import KINDS, Tokenizer, train_tokenizer
from seqloom.tokenizers.subwords import cut

ENGLISH = "The quick brown fox jumps over the lazy dog; it doesn't care.\n\n  Two blanks, a tab\tand (brackets).\n" * 30
CHINESE = "今天天气很好，我们去公园散步。他说：“明天会下雨。”\n机器学习需要大量的数据，也需要耐心。\n" * 30
EMOJI = "naïve café 👩‍👩‍👧 🎉 ½ नमस्ते दुनिया\n" * 10
TEXT = ENGLISH + CHINESE + EMOJI
EXACT = ("characters", "bytes", "bpe")  # kinds that give back any text they know

anything = st.text(st.characters(exclude_categories=("Cs",)))


@cache
def trained(kind: str) -> Tokenizer:
    return train_tokenizer(kind, [TEXT], size=600)


def save(tokenizer: Tokenizer, folder: Path) -> Path:
    for name, data in tokenizer.files().items():
        (folder / name).write_bytes(data)
    return folder


@given(st.text(st.sampled_from(sorted(set(TEXT)))))
def test_characters_come_back(text):
    tokenizer = trained("characters")
    ids = tokenizer.encode(text)
    assert ids.dtype == np.int64 and len(ids) == len(text)
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("kind", ["bytes", "bpe"])
@settings(deadline=None)
@given(text=anything)
def test_any_text_comes_back(kind, text):
    tokenizer = trained(kind)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("kind", KINDS)
def test_the_tokenizers_library_gives_the_same_ids(kind):
    tokenizer = trained(kind)
    assert tokenizer.hf.encode(TEXT, add_special_tokens=False).ids == tokenizer.encode(TEXT).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_transformers_loads_the_folder(kind, tmp_path):
    from transformers import PreTrainedTokenizerFast

    tokenizer = trained(kind)
    theirs = PreTrainedTokenizerFast.from_pretrained(save(tokenizer, tmp_path))
    specials = [theirs.pad_token_id, theirs.bos_token_id, theirs.eos_token_id, theirs.unk_token_id]
    assert specials == [tokenizer.pad, tokenizer.bos, tokenizer.eos, tokenizer.unk] and len(theirs) == tokenizer.size
    assert theirs(TEXT, add_special_tokens=False)["input_ids"] == tokenizer.encode(TEXT).tolist()
    if kind in EXACT:
        assert theirs("<eos>", add_special_tokens=False)["input_ids"] == tokenizer.encode("<eos>").tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_is_the_same(kind, tmp_path):
    tokenizer = trained(kind)
    again = Tokenizer.load(save(tokenizer, tmp_path))
    assert (again.kind, again.size, again.hash) == (kind, tokenizer.size, tokenizer.hash)
    assert again.encode(TEXT).tolist() == tokenizer.encode(TEXT).tolist()
    assert again.files() == tokenizer.files()


@pytest.mark.parametrize("kind", KINDS)
def test_training_twice_gives_the_same_file(kind):
    assert train_tokenizer(kind, [TEXT], size=600).hash == trained(kind).hash


@pytest.mark.parametrize("kind", KINDS)
def test_many_texts_are_encoded_in_order(kind):
    tokenizer = trained(kind)
    texts = [TEXT[i : i + 1 + i % 97] for i in range(0, 3000, 61)] + ["", TEXT * 5]
    many = list(tokenizer.encode_many(iter(texts)))
    assert [ids.tolist() for ids in many] == [tokenizer.encode(text).tolist() for text in texts]
    assert all(ids.dtype == np.int64 for ids in many)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(data=st.data())
def test_decoding_id_by_id_equals_decoding_at_once(kind, data):
    tokenizer = trained(kind)
    ids = data.draw(st.lists(st.integers(0, tokenizer.size - 1)))
    decoder = tokenizer.decoder()
    assert "".join([decoder.push(id) for id in ids]) + decoder.flush() == tokenizer.decode(ids)


@pytest.mark.parametrize("kind", EXACT)
def test_streaming_emits_only_whole_characters(kind):
    tokenizer = trained(kind)
    decoder = tokenizer.decoder()
    emitted = [decoder.push(int(id)) for id in tokenizer.encode(CHINESE + EMOJI)]
    assert "".join(emitted) == CHINESE + EMOJI and decoder.flush() == ""
    assert "\ufffd" not in "".join(emitted)


def test_half_a_character_at_the_end_is_flushed_as_a_replacement():
    tokenizer = trained("bytes")
    decoder = tokenizer.decoder()
    ids = tokenizer.encode("天")[:2]
    assert [decoder.push(int(id)) for id in ids] == ["", ""] and decoder.flush() == "\ufffd" == tokenizer.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_specials_are_left_out_of_decoded_text(kind):
    tokenizer = trained(kind)
    word = tokenizer.encode("dog")
    assert tokenizer.decode([tokenizer.bos, *word, tokenizer.eos, tokenizer.pad]) == "dog"


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_cannot_be_written_into_a_text(kind):
    tokenizer = trained(kind)
    ids = tokenizer.encode("dog <eos><pad> <bos> dog").tolist()
    assert not {tokenizer.eos, tokenizer.pad, tokenizer.bos} & set(ids)


@settings(deadline=None)
@given(text=st.text(st.sampled_from("ab1 \n\t'.,!，。天_\u3000\x1c")), length=st.integers(0, 5))
def test_cutting_a_text_changes_none_of_its_subwords(text, length):
    tokenizer = trained("bpe")
    pieces = list(cut(text, length))
    assert "".join(pieces) == text
    ids = [id for piece in pieces for id in tokenizer.hf.encode(piece).ids]
    assert ids == tokenizer.hf.encode(text).ids


def test_rare_characters_become_unknown():
    tokenizer = train_tokenizer("characters", ["aaaab", "aac"], min_count=2)
    assert tokenizer.size == 5
    assert tokenizer.encode("abz").tolist() == [4, tokenizer.unk, tokenizer.unk]


def test_bytes_have_260_ids():
    assert trained("bytes").size == 260
    assert trained("bytes").encode("A天").tolist() == [4 + byte for byte in "A天".encode()]


def test_subwords_keep_the_asked_size_and_shorten_the_text():
    tokenizer = train_tokenizer("bpe", [TEXT], size=300)
    assert tokenizer.size == 300
    assert len(tokenizer.encode(TEXT)) < len(TEXT.encode())


def test_penn_treebank_convention_one_token_per_word_and_line_end():
    text = " no it was n't black <unk> \n but N years ago <unk> <eos>\n"
    tokenizer = train_tokenizer("words", [text], split="space")
    ids = tokenizer.encode(text).tolist()
    assert len(ids) == 6 + 1 + 6 + 1
    assert ids.count(tokenizer.unk) == 3  # both written ones, and <eos>, which is no word here
    assert len(set(ids)) == 11  # ten words of the text and the line end, <unk> among them
    assert tokenizer.decode(ids) == "no it was n't black <unk>\nbut N years ago <unk> <unk>\n"


def test_the_most_frequent_words_are_kept():
    tokenizer = train_tokenizer("words", ["c b b a a a\n"], size=3)
    assert tokenizer.size == 3 + 3  # <unk>, a, b; and padding, beginning, end
    assert tokenizer.decode(tokenizer.encode("a b c")) == "a b <unk>"
    assert train_tokenizer("words", ["c b b a a a\n"], min_count=2).size == 4 + 2


def test_punctuation_is_split_off_and_joined_again():
    text = "Yes, it's (really) so: don't stop!\nनमस्ते, दुनिया."
    tokenizer = train_tokenizer("words", [text])
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert len(tokenizer.encode("नमस्ते")) == 1


@pytest.mark.parametrize("split", ["space", "punctuation"])
def test_words_refuse_chinese_without_blanks_and_name_what_suits(split):
    with pytest.raises(UserError, match="characters, bytes or bpe"):
        train_tokenizer("words", [CHINESE], split=split)


@pytest.mark.parametrize("split", ["space", "punctuation"])
def test_words_accept_segmented_chinese(split):
    text = "今天 天气 很 好 ， 我们 去 公园 散步 。\n"
    tokenizer = train_tokenizer("words", [text], split=split)
    assert tokenizer.unk not in tokenizer.encode(text)


def test_words_accept_a_little_chinese_in_english():
    assert train_tokenizer("words", [ENGLISH + CHINESE[:60]]).size > 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_lone_surrogate_is_refused(kind):
    with pytest.raises(UserError, match=r"lone surrogate \(U\+DC80\) at character 3"):
        trained(kind).encode("ab\udc80")


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("byte", {}, "unknown tokenizer 'byte'; did you mean 'bytes'?"),
        ("words", {"split": "spaces"}, "did you mean 'space'"),
        ("characters", {"min_count": 0}, "min_count=0"),
        ("characters", {"min_count": 10**6}, "leaves no character"),
        ("words", {"min_count": 10**6}, "leaves no word"),
        ("bpe", {"size": 100}, "at least 260"),
    ],
)
def test_wrong_options_are_explained(kind, options, message):
    with pytest.raises(UserError) as error:
        train_tokenizer(kind, [ENGLISH], **options)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["characters", "words", "bpe"])
def test_no_text_is_refused(kind):
    with pytest.raises(UserError, match="no text"):
        train_tokenizer(kind, [])


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", json.dumps({"model": {"vocab": {}}}).encode()])
def test_a_damaged_file_is_named(tmp_path, damage):
    save(trained("characters"), tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(damage)
    with pytest.raises(UserError, match=r"tokenizer\.json: damaged"):
        Tokenizer.load(tmp_path)


def test_a_missing_tokenizer_is_named(tmp_path):
    with pytest.raises(UserError, match=r"tokenizer_config\.json: No such file"):
        Tokenizer.load(tmp_path)
