"""Words with tags: every format and scheme, what is converted, what is passed over, and what is refused in one line."""

from __future__ import annotations

import gzip
import itertools
import json
import lzma
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seqeval.metrics.sequence_labeling import get_entities
from support import examine
from toys import each

from seqloom.core.errors import UserError
from seqloom.core.words import cut_characters, cut_words, join_words
from seqloom.data.findings import Finding
from seqloom.data.portions import split_rows
from seqloom.data.shapes.tagged.conll import Sentence, looks_like_columns
from seqloom.data.shapes.tagged.doctor import examine_tagged
from seqloom.data.shapes.tagged.reading import TaggedSource, open_tagged, open_untagged
from seqloom.data.shapes.tagged.schemes import TagSurvey, spans_to_bio, to_bio
from seqloom.data.shapes.tagged.spans import of_spans
from seqloom.data.shapes.tagged.vocabulary import LONGEST, TagVocabulary, training_text
from seqloom.tasks.tagging.scores import count_names, f1_pieces, f1_score, names_of, score_names, told_names
from seqloom.tokenizers import train_tokenizer

CONLL = """-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
German JJ I-NP I-MISC
call NN I-NP O

Peter NNP I-NP I-PER
Blackburn NNP I-NP I-PER
"""
CONLLU = """# sent_id = 1
# text = du vin # 1
1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\t_\t_\t0\t_\t_\t_
2\tle\tle\tDET\t_\t_\t0\t_\t_\t_
3\tvin\tvin\tNOUN\t_\t_\t0\t_\t_\t_
3.1\tbu\tboire\tVERB\t_\t_\t0\t_\t_\t_

# newpar
1\t#\t#\tSYM\t_\t_\t0\t_\t_\t_
"""


def write(path: Path, content: str) -> str:
    path.write_text(content, encoding="utf-8")
    return str(path)


def sentences(spec: str, **how: Any) -> list[tuple[int, list[str], list[str]]]:
    return [(row.line, row.words, row.tags) for row in open_tagged(spec, **how).rows()]


def random_names(chance: random.Random, count: int) -> list[str]:
    """Tags in BIO, of names of one to four words with nothing or little between them."""
    tags: list[str] = []
    while len(tags) < count:
        label = chance.choice(["PER", "LOC", "O"])
        length = chance.randint(1, 4)
        tags += ["O"] if label == "O" else [f"B-{label}", *[f"I-{label}"] * (length - 1)]
    return tags[:count]


def as_scheme(tags: list[str], scheme: str) -> list[str]:
    """BIO in another scheme, name by name."""
    names, written = names_of(tags), ["O"] * len(tags)
    for n, (first, end, label) in enumerate(names):
        inside = [f"I-{label}"] * (end - first)
        if scheme == "IOB1":
            follows = n > 0 and names[n - 1][1:] == (first, label)
            inside[0] = f"{'B' if follows else 'I'}-{label}"
        elif scheme == "BIO":
            inside[0] = f"B-{label}"
        else:
            begin, middle, last, only = scheme
            inside = [f"{middle}-{label}"] * len(inside)
            inside[0], inside[-1] = f"{begin}-{label}", f"{last}-{label}"
            inside = [f"{only}-{label}"] if len(inside) == 1 else inside
        written[first:end] = inside
    return written


SCHEMES = {"BIO": "BIO", "IOB1": "IOB1", "BIES": "BIOES", "BILU": "BILOU", "BMES": "BMES"}


def test_whether_tags_mark_entities_is_found_once_for_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    whole = TagSurvey.entities.fget
    monkeypatch.setattr(TagSurvey, "entities", property(lambda survey: asked.append(1) or whole(survey)))
    examine_tagged(write(tmp_path / "a.conll", "".join(f"w{n} t{n}\n\n" for n in range(500))))
    assert 0 < len(asked) < 10  # each time, all tags are looked at


def test_columns_with_documents_and_iob1(tmp_path: Path) -> None:
    spec = write(tmp_path / "eng.train", CONLL)
    assert sentences(spec) == [
        (3, ["EU", "rejects", "German", "call"], ["B-ORG", "O", "B-MISC", "O"]),
        (8, ["Peter", "Blackburn"], ["B-PER", "I-PER"]),
    ]
    source = open_tagged(spec)
    assert (source.count, source.words, source.dropped, source.entities) == (2, 6, 0, True)
    assert source.survey.scheme == "IOB1" and source.remark == "tags in IOB1, converted to BIO"
    assert sentences(spec, tag=2)[1][2] == ["NNP", "NNP"] and not open_tagged(spec, tag=2).entities
    assert sentences(spec, word=2, tag=-2)[1][1:] == (["NNP", "NNP"], ["B-NP", "I-NP"])


def test_conllu_with_remarks_contractions_and_empty_nodes(tmp_path: Path) -> None:
    spec = write(tmp_path / "fr.conllu", CONLLU)
    assert sentences(spec, word=2, tag=4) == [(4, ["de", "le", "vin"], ["ADP", "DET", "NOUN"]), (10, ["#"], ["SYM"])]


@pytest.mark.parametrize("separator", [" ", "\t", "   ", " \t"], ids=["blank", "tab", "blanks", "both"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["unix", "windows"])
@pytest.mark.parametrize("last", ["", "\n", "\n\n\n"], ids=["none", "one", "three"])
def test_any_separator_and_line_end(tmp_path: Path, separator: str, ends: str, last: str) -> None:
    rows = [["# x", "O"] if separator == "\t" else ["#", "O"], ["Ada", "B-PER"], [], ["是", "O"]]
    text = "\n".join(separator.join(row) for row in rows) + last
    spec = write(tmp_path / "a.txt", text.replace("\n", ends))
    found = sentences(spec)
    assert [words for _, words, _ in found] == [[rows[0][0], "Ada"], ["是"]]
    assert [tags for _, _, tags in found] == [["O", "B-PER"], ["O"]] and [line for line, _, _ in found] == [1, 4]


@pytest.mark.parametrize("kind", ["gz", "xz"])
def test_compressed_files_are_read_like_others(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"eng.train.{kind}"
    path.write_bytes({"gz": gzip, "xz": lzma}[kind].compress(CONLL.encode()))  # type: ignore[attr-defined]
    plain = open_tagged(write(tmp_path / "eng.train", CONLL))
    source = open_tagged(str(path))
    assert list(source.rows()) == list(plain.rows()) and source.hash == plain.hash and source.bytes == plain.bytes


@pytest.mark.parametrize("written", SCHEMES)
@each(seed=range(5))
def test_every_scheme_is_recognised_and_becomes_bio(tmp_path: Path, written: str, seed: int) -> None:
    chance = random.Random(seed)
    wanted = [random_names(chance, chance.randint(1, 12)) for _ in range(30)]
    lines = ["\n".join(f"w{n} {tag}" for n, tag in enumerate(as_scheme(tags, written))) for tags in wanted]
    source = open_tagged(write(tmp_path / "a.bio", "\n\n".join(lines)))
    assert source.survey.scheme == SCHEMES[written] and source.survey.broken == (0, [])
    assert [row.tags for row in source.rows()] == wanted


def test_broken_tags_begin_a_name_and_are_counted(tmp_path: Path) -> None:
    rows = ["a B-X", "b I-X", "c O", "d I-X", "e B-Y", "f I-X", "", "g I-Y", "h B-X", "i B-X"]
    source = open_tagged(write(tmp_path / "a.bio", "\n".join(rows)))
    assert source.survey.scheme == "BIO" and source.survey.broken == (3, [4, 6, 8])
    assert [tag for row in source.rows() for tag in row.tags] == [
        "B-X", "I-X", "O", "B-X", "B-Y", "B-X", "B-Y", "B-X", "B-X"
    ]  # fmt: skip
    assert source.fault == "3 invalid tags (first on line 4), read as starts of entities"
    survey = TagSurvey()
    survey.add(1, ["B-X", "O", "S-X", "I-X", "E-X", "E-X"])
    assert survey.scheme == "BIOES" and survey.broken == (3, [1, 4, 6])
    assert to_bio(["B-X", "O", "S-X", "I-X", "E-X", "E-X"]) == ["B-X", "O", "B-X", "B-X", "I-X", "B-X"]


def test_tags_without_prefixes_stay_as_they_are(tmp_path: Path) -> None:
    source = open_tagged(write(tmp_path / "a.txt", "I PRP\nrun V-B\n. .\nO O\n"))
    assert not source.entities and source.remark.startswith("tags without prefixes")
    assert [row.tags for row in source.rows()] == [["PRP", "V-B", ".", "O"]]


SPANS = {"text": "Ada Lovelace lives in 北京市, not in St. Ives.", "spans": [
    {"start": 0, "end": 12, "label": "PER"}, {"start": 22, "end": 25, "label": "LOC"},
    {"start": 34, "end": 42, "label": "LOC"},
]}  # fmt: skip


def test_spans_of_a_text_become_tags_of_its_words(tmp_path: Path) -> None:
    spec = write(tmp_path / "a.jsonl", json.dumps(SPANS) + "\n" + json.dumps({"text": " a\u0301 b", "spans": []}))
    first, second = open_tagged(spec).rows()
    assert first.words == ["Ada", "Lovelace", "lives", "in", "北", "京", "市", ",", "not", "in", "St", ".", "Ives", "."]
    assert names_of(first.tags) == [(0, 2, "PER"), (4, 7, "LOC"), (10, 13, "LOC")]
    told = told_names(first.words, first.tags, first.text, first.places)
    assert [(name["start"], name["end"]) for name in told] == [(0, 12), (22, 25), (34, 42)]
    assert [name["text"] for name in told] == ["Ada Lovelace", "北京市", "St. Ives"]
    assert second.words == ["a\u0301", "b"] and second.line == 2


def test_blanks_at_the_ends_of_a_span_do_not_count() -> None:
    assert of_spans(1, "in Rome now", [(2, 8, "LOC")], "x").tags == ["O", "B-LOC", "O"]


def test_lists_of_words_and_tags(tmp_path: Path) -> None:
    rows = [{"words": ["New York", "wins"], "tags": ["U-LOC", "O"]}, {"words": [], "tags": []}]
    source = open_tagged(write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    assert [(row.words, row.tags) for row in source.rows()] == [(["New York", "wins"], ["B-LOC", "O"])]
    assert source.dropped == 1 and source.count == 1


FAULTS = {
    "ragged": ("a.txt", "a O\nb O\n\nc X O\n", r":4: 3 columns, but line 1 has 2; all lines need the same"),
    "missing tag": ("a.txt", "Ada\nruns\n", r":1: the word 'Ada' has no tag; give two columns"),
    "half missing": ("a.tsv", "Ada\tO\nruns\t\n", r":2: no tag in the last column"),
    "no word": ("a.tsv", "Ada\tO\n\tO\n", r":2: no word in column 1"),
    "empty": ("a.txt", "", r": contains no sentences; it is empty"),
    "only blanks": ("a.txt", "\n \n\n", r": contains no sentences; it is empty"),
    "empty rows": ("a.jsonl", '{"words": [], "tags": []}\n', r": contains no sentences; all 1 lines are without words"),
    "bare tag": ("a.txt", "a B-X\nb I-X\nc PER\n", r":3: tag 'PER' has no prefix, but others have, like 'B-X'"),
    "no json": ("a.jsonl", "{text}\n", r":1: not valid JSON"),
    "no columns": ("a.jsonl", '{"sentence": "x"}\n', r':1: no column \'text\'.*"text" and "spans", or "words"'),
    "no spans": ("a.jsonl", '{"text": "x"}\n', r':1: a text without spans; give "spans", an empty list'),
    "no tags": ("a.jsonl", '{"words": ["x"]}\n', r':1: words without tags; give "tags"'),
    "more tags": ("a.jsonl", '{"words": ["x"], "tags": ["O", "O"]}\n', r":1: 1 words and 2 tags"),
    "no list": ("a.jsonl", '{"words": "x y", "tags": []}\n', r":1: 'words' must be a list of texts"),
    "number": ("a.jsonl", '{"words": ["x", 3], "tags": ["O", "O"]}\n', r":1: 'words' has 3 at position 2"),
    "blank word": ("a.jsonl", '{"words": ["x", " "], "tags": ["O", "O"]}\n', r":1: 'words' has ' ' at position 2"),
    "surrogate": ("a.jsonl", '{"words": ["\\ud800"], "tags": ["O"]}\n', r":1: column 'words' has a lone surrogate"),
    "spans no list": ("a.jsonl", '{"text": "x", "spans": {}}\n', r':1: "spans" must be a list'),
    "odd span": ("a.jsonl", '{"text": "x", "spans": [[0, 1]]}\n', r":1: expected a span like"),
    "no label": ("a.jsonl", '{"text": "x", "spans": [{"start": 0, "end": 1}]}\n', r":1: expected a span like"),
    "outside": (
        "a.jsonl", '{"text": "x", "spans": [{"start": 0, "end": 9, "label": "A"}]}\n', r":1: span 0 to 9 \(A\) is out",
    ),
    "cuts": (
        "a.jsonl", '{"text": "in Paris now", "spans": [{"start": 3, "end": 6, "label": "LOC"}]}\n',
        r":1: span 3 to 6 \(LOC\), 'Par', cuts through a word; the words there are 'Paris'",
    ),
    "overlap": (
        "a.jsonl",
        '{"text": "a b c", "spans": [{"start": 0, "end": 3, "label": "A"}, {"start": 2, "end": 5, "label": "B"}]}\n',
        r":1: span 2 to 5 \(B\) overlaps another",
    ),
    "binary": ("a.txt", "a\0b O\n", r": a binary file"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_every_fault_is_one_line_that_names_its_place(tmp_path: Path, case: str) -> None:
    name, content, message = FAULTS[case]
    spec = write(tmp_path / name, content)
    with pytest.raises(UserError, match=message) as refusal:
        open_tagged(spec)
    assert "\n" not in str(refusal.value) and str(refusal.value).startswith(spec)
    (finding,) = examine("tagging", spec)
    assert finding == Finding("error", str(refusal.value), "fix the file and run the doctor again")


@pytest.mark.parametrize(("word", "tag"), [(1, 5), (1, -5), (5, -1), (0, -1), (1, 0)])
def test_a_column_that_is_not_there_is_refused(tmp_path: Path, word: int, tag: int) -> None:
    spec = write(tmp_path / "a.txt", CONLL)
    with pytest.raises(
        UserError,
        match=r":3: no column .*; this line has 4 columns; .*--columns (words|tags)=NUMBER",
    ):
        open_tagged(spec, word, tag)


def test_folders_missing_files_and_other_samples_are_refused(tmp_path: Path) -> None:
    for spec, message in (
        (str(tmp_path), "a folder"),
        (str(tmp_path / "none.txt"), "no such file"),
        ("sample:cmudict", "has pairs of texts, but tagged sentences are needed; available: sample:places"),
    ):
        with pytest.raises(UserError, match=message):
            open_tagged(spec)


def test_parts_are_told_by_the_sentence_and_share_nothing(tmp_path: Path) -> None:
    lines = [f"word{n % 90} O\nAda B-PER\n" for n in range(300)]
    source = open_tagged(write(tmp_path / "a.txt", "\n".join(lines)))
    parts = split_rows(source, 0.2, 0.2)
    found = {name: {" ".join(row.words) for row in part.rows()} for name, part in parts.items()}
    assert sum(part.count for part in parts.values()) == 300
    assert not found["train"] & found["valid"] and not found["train"] & found["test"]
    assert len({part.hash for part in parts.values()}) == 3 and parts["valid"].name == f"{source.name} (valid)"
    with pytest.raises(UserError, match=r"too few sentences \(1\) for a (train|valid) split"):
        split_rows(open_tagged(write(tmp_path / "b.txt", "Ada B-PER\n")), 0.5)


def test_a_part_without_names_still_has_tags_of_names() -> None:
    rows = [Sentence(n, [f"w{n}"], ["O" if n % 2 else "B-X"]) for n in range(200)]
    source = TaggedSource("x", lambda: iter(rows))
    none = TaggedSource("y", lambda: iter([Sentence(1, ["a"], ["O"])]))
    assert source.entities and none.entities and none.survey.scheme == "BIO"
    assert all(part.entities for part in split_rows(source, 0.1).values())


def test_the_hash_knows_words_and_tags() -> None:
    def hash_of(*rows: tuple[list[str], list[str]]) -> str:
        return TaggedSource("x", lambda: (Sentence(n, *row) for n, row in enumerate(rows))).hash

    found = [
        hash_of((["a", "b"], ["O", "O"])), hash_of((["ab"], ["O"])), hash_of((["a"], ["O"]), (["b"], ["O"])),
        hash_of((["a", "b"], ["O", "B-X"])),
    ]  # fmt: skip
    assert len(set(found)) == 4


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("a.txt", "Ada runs in Rome.\n\n是的 now\n", [["Ada", "runs", "in", "Rome", "."], ["是", "的", "now"]]),
        ("a.txt", "one\n", [["one"]]),
        ("a.txt", "Ada\nruns\n\nshe\n", [["Ada", "runs"], ["she"]]),
        ("a.txt", "Ada B-PER\nruns O\n", [["Ada", "runs"]]),
        ("a.conll", "Ada\nruns\n", [["Ada", "runs"]]),
        ("a.jsonl", '{"text": "Ada runs"}\n{"words": ["x y"]}\n', [["Ada", "runs"], ["x y"]]),
    ],
)
def test_sentences_without_tags_can_be_read_to_predict(
    tmp_path: Path, name: str, content: str, wanted: list[list[str]]
) -> None:
    assert [row.words for row in open_untagged(write(tmp_path / name, content))] == wanted


def test_tags_are_kept_where_there_are_some_and_an_empty_text_is_refused(tmp_path: Path) -> None:
    assert [row.tags for row in open_untagged(write(tmp_path / "a", CONLL))][1] == ["I-PER", "I-PER"]
    assert next(open_untagged("sample:places")).text
    assert not looks_like_columns(Path(write(tmp_path / "b", "Ada runs fast\nshe is here\n")))
    with pytest.raises(UserError, match="contains no text"):
        open_untagged(write(tmp_path / "c.txt", "\n\n"))


def test_words_are_cut_by_one_rule() -> None:
    def words(text: str) -> list[str]:
        return [text[begin:end] for begin, end in cut_words(text)]

    assert words("It's 3.5 km, 是吗？हिन्दी x_y") == [
        "It", "'", "s", "3", ".", "5", "km", ",", "是", "吗", "？", "हिन्दी", "x_y"
    ]  # fmt: skip
    assert words("") == [] and words(" \n\t") == [] and cut_characters("a 是") == [(0, 1), (2, 3)]
    assert join_words(["a", "b"]) == "a b" and join_words(["北", "京", "。"]) == "北京。" and join_words([]) == ""
    chance = random.Random(0)
    for _ in range(200):
        text = "".join(chance.choices("aB9 .是é\u0301\n-'ह\u093f", k=20))
        places = cut_words(text)
        assert "".join(text[b:e] for b, e in places) == "".join(text.split())
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(places))


@each(seed=range(20))
def test_names_and_scores_are_those_of_seqeval(seed: int) -> None:
    chance = random.Random(seed)
    kinds = ["O", "B-A", "I-A", "B-B", "I-B"]
    wanted = [random_names(chance, chance.randint(1, 9)) for _ in range(40)]
    found = [[chance.choice([tag, *kinds[: seed % 5 + 1]]) for tag in tags] for tags in wanted]
    for tags in found:
        theirs = [(first, last + 1, label) for label, first, last in get_entities(tags)]
        assert names_of(tags) == theirs and names_of(spans_to_bio(len(tags), theirs)) == theirs
    counts = count_names(found, wanted)
    ours, full = f1_score(counts), score_names(found, wanted)
    assert ours == pytest.approx({name: full[name] for name in ours})
    assert np.mean(f1_pieces(counts, 7)) == pytest.approx(ours["f1"])
    assert sum(row["count"] for row in full["types"].values()) == counts.wanted.sum()


def test_where_there_are_no_names_the_score_is_zero() -> None:
    assert score_names([["O"]], [["O"]]) == {"f1": 0.0, "precision": 0.0, "recall": 0.0, "types": {}}
    assert f1_score(count_names([], []))["f1"] == 0.0


def vocabulary(kind: str, texts: list[list[str]], **facts: bool) -> TagVocabulary:
    lower = facts.get("lower", False)
    tokenizer = train_tokenizer(kind, (training_text(kind, words, lower) for words in texts), split="space", size=300)
    letters = train_tokenizer("characters", ("".join(words) for words in texts))
    return TagVocabulary(tokenizer, ["O", "B-X", "I-X"], letters, **facts)


TEXTS = [["New York", "wins", "again"], ["北", "京", "wins"], ["Again", "!"]]


@pytest.mark.parametrize("kind", ["words", "characters", "bpe"])
def test_a_vocabulary_is_loaded_as_it_was_saved(tmp_path: Path, kind: str) -> None:
    for facts in ({"lower": True}, {"entities": True}, {"single": True}, {}):
        own = vocabulary(kind, TEXTS, **facts)
        for name, data in own.files().items():
            (tmp_path / name).write_bytes(data)
        again = TagVocabulary.load(tmp_path)
        assert again.hash == own.hash and again.tags == own.tags and again.size == own.size
        assert (again.lower, again.entities, again.single) == (own.lower, own.entities, own.single)
        for word in [*(word for words in TEXTS for word in words), "unseen", "x" * 90]:
            assert again.tokens(word) == own.tokens(word) and again.spell(word) == own.spell(word)
    (tmp_path / "tags.json").write_text("[]")
    with pytest.raises(UserError, match=r"tags.json: damaged"):
        TagVocabulary.load(tmp_path)
    (tmp_path / "tags.json").unlink()
    with pytest.raises(UserError, match=r"tags.json: No such file"):
        TagVocabulary.load(tmp_path)


def test_words_are_looked_up_whole_and_unknown_ones_are_unk() -> None:
    own = vocabulary("words", TEXTS)
    assert own.tokens("New York")[0] > 3 and own.tokens("York") == [own.unk] and own.tokens("<pad>") == [own.unk]
    assert own.tokens("again") != own.tokens("Again")
    lower = vocabulary("words", TEXTS, lower=True)
    assert lower.tokens("again") == lower.tokens("Again") == lower.tokens("AGAIN") != [lower.unk]
    assert len(own.spell("x" * 99)) == LONGEST and own.spell("wins") != own.spell("win")


@pytest.mark.parametrize("kind", ["characters", "bpe"])
def test_a_word_of_several_tokens_has_its_tag_at_the_first(kind: str) -> None:
    own = vocabulary(kind, TEXTS)
    rows = own.rows([Sentence(1, ["wins", "京", "zz"], ["B-X", "O", "B-NEW"]), Sentence(2, ["!"], [])])
    for n, word in enumerate(["wins", "京", "zz", "!"]):
        assert rows.ids[rows.begins[n] : rows.begins[n + 1]].tolist() == own.tokens(word)
    assert rows.tags == ["O", "B-X", "I-X", "B-NEW"] and rows.unknown == 1 and len(rows) == 2 and rows.words == 4
    assert rows.named(rows.tag_ids) == [["B-X", "O", "B-NEW"], ["O"]] and rows.named(rows.tag_ids[:3]) == [
        ["B-X", "O", "B-NEW"]
    ]
    assert own.tokens("x" * 99) and len(own.tokens("x" * 99)) <= 16


@pytest.mark.parametrize("most", [3, 4, 7, 50])
def test_long_sentences_are_cut_between_words(most: int) -> None:
    own, chance = vocabulary("characters", TEXTS), random.Random(most)
    texts = [chance.choices(["wins", "京", "again", "!"], k=chance.randint(1, 9)) for _ in range(30)]
    rows = own.rows([Sentence(n, words, []) for n, words in enumerate(texts)])
    pieces = rows.pieces(most)
    assert (pieces.lengths <= most).all() and pieces.first[0] == 0 and pieces.end[-1] == rows.words
    assert (pieces.first[1:] == pieces.end[:-1]).all()
    assert set(pieces.first[~pieces.inner]) == set(rows.word_bounds[:-1])
    whole = rows.begins[pieces.end] - rows.begins[pieces.first] + 2
    assert all(length == tokens or end - first == 1 for first, end, length, tokens in zip(
        pieces.first, pieces.end, pieces.lengths, whole, strict=True
    ))  # fmt: skip
    assert len(rows.pieces(most, 3).first) <= len(pieces.first) and rows.pieces(most, 3).end[-1] == rows.word_bounds[3]


def test_the_sample_is_always_the_same_and_keeps_names_back() -> None:
    known, new = (list(open_tagged(f"sample:{name}").rows()) for name in ("places", "places-new"))
    assert len(known) == 4000 and len(new) == 800
    assert known[0].words == next(iter(open_tagged("sample:places").rows())).words
    labels = {label for row in known for _, _, label in names_of(row.tags)}
    assert labels == {"LOC", "LANG", "MONEY"}

    def names(rows: list[Sentence]) -> set[str]:
        return {name["text"] for row in rows for name in told_names(row.words, row.tags, row.text, row.places)}

    assert names(known).isdisjoint(names(new)) and len(names(known)) > 1500 and len(names(new)) > 300
    chinese = [row for row in known if any("\u4e00" <= word <= "\u9fff" for word in row.words)]
    assert len(chinese) == 1000 and all(len(word) == 1 or word.isascii() or "·" in word for word in chinese[0].words)


def said(findings: list[Finding], *levels: str) -> str:
    return "\n".join(f"{f.message} {f.advice}" for f in findings if not levels or f.level in levels)


def many(count: int, tags: tuple[str, ...] = ("O", "B-A", "I-A", "O", "B-B"), seed: int = 0) -> str:
    chance = random.Random(seed)
    return "\n".join("".join(f"w{chance.randint(0, 10**6)} {tag}\n" for tag in tags) for _ in range(count))


def test_doctor_has_nothing_to_say_of_a_good_file(tmp_path: Path) -> None:
    train, valid = write(tmp_path / "a.txt", many(6000)), write(tmp_path / "b.txt", many(300, seed=1))
    for findings in (examine("tagging", train), examine("tagging", train, valid_data=valid)):
        assert not said(findings, "warning", "error") and findings[-1] == Finding("ok", "no problems found")
        assert "6,000 sentences, 30,000 words" in said(findings) and "tag scheme: BIO" in said(findings)


def test_doctor_sees_what_is_wrong_with_the_training_part(tmp_path: Path) -> None:
    text = (
        many(300) + "\nx O\ny I-A\nz B-RARE\n" + "\n" + "".join("v O\n" for _ in range(300)) + "\n" + "same O\n\n" * 60
    )
    text += "\nq O\n\nq B-A\n"
    found = said(examine("tagging", write(tmp_path / "a.txt", text)), "note", "warning")
    for message in (
        "a small dataset", "1 tags are invalid in BIO, like I- after O (lines 1802)",
        "seen fewer than 50 times: RARE", "A is 302 times as frequent as RARE",
        "1 sentences have more than 250 words (the first is on line 1805)", "of the sentences are duplicates",
        "occur again with different tags", "of the distinct words occur only once",
    ):  # fmt: skip
        assert message in found, message
    few = said(examine("tagging", write(tmp_path / "b.txt", "a O\n\nb B-X\n\nc O\n")))
    assert "too few to learn from" in few and "100% of the sentences are a single word" in few
    assert "every word has the tag 'O'" in said(examine("tagging", write(tmp_path / "c.txt", "a O\nb O\n")), "error")
    rare = said(examine("tagging", write(tmp_path / "d.txt", many(300, ("B-X", *["O"] * 60)))))
    assert "98.4% of the words are outside any entity" in rare
    plain = said(examine("tagging", write(tmp_path / "e.txt", many(300, ("N", "V")))))
    assert "2 tags without prefixes" in plain and "words: N 300, V 300" in plain
    chinese = said(examine("tagging", write(tmp_path / "f.txt", "北 B-LOC\n京 I-LOC\n。 O\n")))
    assert "tokenizer.kind=characters" in chinese
    empty = '{"words": [], "tags": []}\n{"words": ["a", "b"], "tags": ["O", "B-X"]}\n'
    assert "1 sentences without words are left out" in said(examine("tagging", write(tmp_path / "g.jsonl", empty)))


def test_doctor_compares_the_parts(tmp_path: Path) -> None:
    train = write(tmp_path / "a.txt", many(6000))
    for content, message in (
        (many(100, ("O", "B-NEW", "I-NEW")), "200 words in {} have tags that are not in {train}: B-NEW, I-NEW"),
        (many(100), "100.0% of the sentences in {} are also in the training set"),
        (many(100, ("B-A", "O", "I-A"), seed=5), "{}: 100 tags are invalid in BIO (line 3, ...)"),
        (many(100, ("N", "V"), seed=5), "{}: its tags are not of the same kind as in {train}"),
        (many(100, seed=5), "of the words in {} are not in the training set"),
    ):
        valid = write(tmp_path / "b.txt", content)
        assert message.format(valid, train=train) in said(examine("tagging", train, valid_data=valid)), message
    assert "no such file" in said(examine("tagging", train, valid_data="nowhere"), "error")
    assert "NNP" in said(examine("tagging", write(tmp_path / "c", CONLL), word=1, tag=2))
