"""Roles of columns found from the file: texts, labels, sources and targets, or a question that one option answers."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqloom.core.errors import UserError
from seqloom.data.peek import peek
from seqloom.data.shapes import find_shape
from seqloom.runs.doctor import doctor

WORDS = [
    "the",
    "film",
    "was",
    "long",
    "slow",
    "fine",
    "bright",
    "dull",
    "warm",
    "cold",
    "story",
    "people",
    "music",
    "scene",
    "ending",
    "never",
    "always",
    "quite",
]
HAN = "这部电影很好看但是结尾有点慢音乐不错演员我们喜欢非常推荐大家去看一下吧"


def sentence(rng: random.Random, least: int = 4) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(least, 12)))


def chinese(rng: random.Random) -> str:
    return "".join(rng.choices(HAN, k=rng.randint(8, 30)))


def values(kind: str, count: int = 60) -> list[Any]:
    """Cells of one kind, the same each time."""
    rng = random.Random(f"{kind} {count}")
    cycles = {
        "verdict": ["good", "bad"],
        "stars": [1, 2, 3, 4, 5],
        "class": ["sports", "science and technology", "world"],
        "flag": ["true", "false"],
        "half": [0.5, 1.0, 1.5, 2.0, 4.5],
        "标签": ["正面", "负面"],
        "one": ["same"],
    }
    if kind in cycles:
        return [rng.choice(cycles[kind]) for _ in range(count)]
    makers = {
        "text": lambda n: sentence(rng),
        "lines": lambda n: sentence(rng) + "\n" + sentence(rng),
        "中文": lambda n: chinese(rng),
        "id": lambda n: 1000 + n,
        "hash": lambda n: f"{rng.getrandbits(64):016x}",
        "date": lambda n: f"2024-{1 + n % 12:02d}-{1 + n % 28:02d}",
        "user": lambda n: rng.choice(WORDS) + "_" + rng.choice(WORDS) + rng.choice("abcdefghij") + rng.choice("xyzuvw"),
        "name": lambda n: "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=7)),
        "price": lambda n: round(rng.uniform(1, 900), 2),
        "credit": lambda n: f"CC-BY 2.0 (France) Attribution: tatoeba.org #{rng.randint(1, 9999)}",
        "blank": lambda n: "",
    }
    return [makers[kind](n) for n in range(count)]


def quoted(cell: Any) -> str:
    text = str(cell)
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\n') else text


def table(path: Path, columns: str, count: int = 60) -> str:
    """A file of columns `name:kind, ...`, or of kinds alone, which has no header."""
    parts = [column.rpartition(":") for column in columns.split(", ")]
    rows = [list(row) for row in zip(*(values(kind, count) for _, _, kind in parts), strict=True)]
    names = [name for name, colon, _ in parts if colon]
    mark = "," if ".csv" in path.name else "\t"
    if path.suffix == ".jsonl":
        text = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    else:
        lines = [names, *rows] if names else rows
        text = "".join(mark.join(map(quoted, line)) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return str(path)


def found(shape: str, spec: str, **given: object) -> dict[str, object]:
    return {choice.path.removeprefix("data."): choice.value for choice in find_shape(shape).roles(spec, given)}


def question(shape: str, spec: str, **given: object) -> str:
    with pytest.raises(UserError) as refusal:
        find_shape(shape).roles(spec, given)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


LABELLED: dict[str, tuple[str, str, str]] = {  # file, columns (name:kind, or kind without a header), roles
    "default names": ("a.csv", "text:text, label:verdict", ""),
    "default names among others": ("a.csv", "title:text, text:text, stars:stars, label:verdict", ""),
    "one default name": ("a.tsv", "label:stars, text_a:中文", "column=text_a"),
    "usual names": ("a.csv", "review:text, stars:stars", "column=review, label=stars"),
    "shuffled": ("a.csv", "sentiment:verdict, id:id, tweet:text", "column=tweet, label=sentiment"),
    "unusual names": ("a.csv", "what:text, how:class", "column=what, label=how"),
    "no header": ("a.csv", "verdict, text", "column=2, label=1"),
    "no header, numbers": ("a.tsv", "text, stars", "column=1, label=2"),
    "no header, compressed": ("a.csv.gz", "class, text", "column=2, label=1"),
    "no header, tab-separated text": ("a.txt", "flag, text", "column=2, label=1"),
    "a header in tab-separated text": ("a.txt", "kind:class, words:text", "column=words, label=kind"),
    "no header, an id": ("a.csv", "id, text, verdict", "column=2, label=3"),
    "no header, two texts": ("a.csv", "stars, text, text", "column=2, second=3, label=1"),
    "Chinese": ("a.csv", "编号:id, 评论:中文, 情感:标签", "column=评论, label=情感"),
    "Chinese, no header": ("a.tsv", "标签, 中文", "column=2, label=1"),
    "JSONL": ("a.jsonl", "_id:hash, comment:text, y:stars", "column=comment, label=y"),
    "a boolean": ("a.jsonl", "message:text, spam:flag", "column=message, label=spam"),
    "ratings with halves": ("a.csv", "review:text, rating:half", "column=review, label=rating"),
    "prices are no labels": ("a.csv", "review:text, price:price, liked:flag", "column=review, label=liked"),
    "metadata": ("a.csv", "Unnamed: 0:id, user:user, date:date, my_text:text, his_class:verdict",
                 "column=my_text, label=his_class"),
    "an index without a name": ("a.csv", ":id, review:text, class:class", "column=review, label=class"),
    "a pair": ("a.tsv", "premise:text, hypothesis:text, label:class", "column=premise, second=hypothesis"),
    "title and description": ("a.csv", "class:stars, description:text, title:text",
                              "column=title, second=description, label=class"),
    "a split": ("a.csv", "body:text, split:flag, kind:class", "column=body, label=kind"),
    "single words": ("a.csv", "name:name, language:class", "column=name, label=language"),
    "line breaks in quotes": ("a.csv", "body:lines, kind:class", "column=body, label=kind"),
    "line breaks, no header": ("a.csv", "class, lines", "column=2, label=1"),
    "a constant": ("a.csv", "lang:one, body:text, kind:class", "column=body, label=kind"),
    "an empty column": ("a.csv", "note:blank, body:text, kind:class", "column=body, label=kind"),
}  # fmt: skip


@pytest.mark.parametrize("case", LABELLED)
def test_texts_and_labels_are_found(tmp_path: Path, case: str) -> None:
    name, columns, wanted = LABELLED[case]
    spec = table(tmp_path / name, columns)
    shape = find_shape("labelled")
    choices = found("labelled", spec)
    assert ", ".join(f"{role}={value}" for role, value in choices.items()) == wanted
    source = shape.open(spec, shape.options(train=spec, **choices))
    assert source.count == 60 and len(source.labels) < 6


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        (
            "review:text, stars:stars, verdict:verdict",
            "two columns could be the label: stars (5 values), verdict (2 values); say which: --columns label=verdict",
        ),
        ("verdict, stars, text", "label: 1 (2 values), 2 (5 values); say which: --columns label=1"),
        (
            "category:class, sentiment:verdict, age:stars, text:text",
            "two columns could be the label: category (3 values), sentiment (2 values); say which",
        ),
        (
            "one:text, two:text, kind:class",
            "the text: one (8 words on average), two (8 words on average); say which: --columns text=one",
        ),
        (
            "review:text",
            "looks like a label (few values that recur); say which: --columns label=review; the only column is rev",
        ),
        ("text", "--columns label=1; no header, one column: 1"),
        ("a:price, b:price", "no column looks like a text; say which: --columns text=a; columns: a, b"),
    ],
)
def test_what_is_unclear_is_asked_in_one_line(tmp_path: Path, columns: str, wanted: str) -> None:
    asked = question("labelled", table(tmp_path / "rows.csv", columns))
    assert asked.startswith(str(tmp_path / "rows.csv: ")) and wanted in asked


def test_what_the_user_gives_is_kept_and_the_rest_is_found(tmp_path: Path) -> None:
    spec = table(tmp_path / "a.csv", "review:text, stars:stars, verdict:verdict")
    assert found("labelled", spec, label="stars") == {"column": "review"}
    assert found("labelled", spec, label="stars", column="review") == {}
    bare = table(tmp_path / "b.csv", "stars, verdict, text")
    assert found("labelled", bare, label=2) == {"column": "3"}
    both = table(tmp_path / "c.csv", "left:text, right:text, kind:class")
    assert found("labelled", both, column="left", second="right") == {"label": "kind"}


def test_a_file_sorted_by_its_label_is_looked_at_further(tmp_path: Path) -> None:
    rng, path = random.Random(0), tmp_path / "a.tsv"
    path.write_text("".join(f"{n // 1500}\t{sentence(rng)}\n" for n in range(3000)))
    assert found("labelled", str(path)) == {"column": "2", "label": "1"}


def test_the_same_labels_as_numbers_and_as_words_are_one_label(tmp_path: Path) -> None:
    rng, path = random.Random(0), tmp_path / "a.csv"
    rows = [(sentence(rng), n % 3) for n in range(60)]
    path.write_text("content,code,name\n" + "".join(f"{text},{n},{'abc'[n]}x\n" for text, n in rows))
    assert found("labelled", str(path)) == {"column": "content", "label": "name"}


def test_lists_of_labels_get_a_separator_and_cells_with_one_a_hint(tmp_path: Path) -> None:
    rng = random.Random(0)
    rows = [(sentence(rng), rng.sample(["a|b", "c", "d", "e"], k=rng.randint(1, 3))) for _ in range(60)]
    lists = tmp_path / "a.jsonl"
    lists.write_text("".join(json.dumps({"text": text, "label": labels}) + "\n" for text, labels in rows))
    assert found("labelled", str(lists)) == {"separator": ";"} and found("labelled", str(lists), separator="/") == {}
    cells = tmp_path / "a.csv"
    cells.write_text("text,genres\n" + "".join(f"{text},{';'.join(labels)}\n" for text, labels in rows))
    (choice,) = find_shape("labelled").roles(str(cells), {})
    assert (choice.path, choice.value) == ("data.label", "genres") and "-o data.separator=';'" in choice.reason


PAIRS: dict[str, tuple[str, str, str]] = {  # file, columns (name:kind, or kind without a header), roles
    "default names": ("a.tsv", "target:text, source:text", ""),
    "languages": ("a.csv", "en:text, zh:中文", "source=en, target=zh"),
    "languages in names": ("a.csv", "id:id, text_de:text, text_fr:text", "source=text_de, target=text_fr"),
    "Indonesian": ("a.csv", "en:text, id:text", "source=en, target=id"),
    "summaries": ("a.csv", "id:id, summary:text, dialogue:lines", "source=dialogue, target=summary"),
    "questions": ("a.jsonl", "answer:text, question:text", "source=question, target=answer"),
    "Chinese names": ("a.csv", "译文:text, 原文:中文", "source=原文, target=译文"),
    "unusual names": ("a.csv", "this:text, that:text", "source=this, target=that"),
    "no header": ("a.tsv", "text, 中文", "source=1, target=2"),
    "no header, attribution last": ("a.txt", "text, 中文, credit", "source=1, target=2"),
    "no header, attribution first": ("a.txt", "credit, text, 中文", "source=2, target=3"),
    "no header, a constant": ("a.tsv", "one, 中文, text", "source=2, target=3"),
    "no header, ids": ("a.tsv", "id, text, hash, text", "source=2, target=4"),
    "words": ("a.csv", "name, name", "source=1, target=2"),
}  # fmt: skip


@pytest.mark.parametrize("case", PAIRS)
def test_sources_and_targets_are_found(tmp_path: Path, case: str) -> None:
    name, columns, wanted = PAIRS[case]
    spec = table(tmp_path / name, columns)
    shape = find_shape("pairs")
    choices = found("pairs", spec)
    assert ", ".join(f"{role}={value}" for role, value in choices.items()) == wanted
    assert shape.open(spec, shape.options(train=spec, **choices)).count == 60


def test_the_other_side_is_found_and_the_order_is_said(tmp_path: Path) -> None:
    spec = table(tmp_path / "a.csv", "this:text, that:text, more:text")
    assert "three columns could be the source or the target: this (" in question("pairs", spec)
    assert "could be the target: this" in question("pairs", spec, source="that")
    two = table(tmp_path / "b.csv", "this:text, that:text")
    assert (
        found("pairs", two, source="that") == {"target": "this"} and found("pairs", two, source="a", target="b") == {}
    )
    assert all("in file order" in choice.reason for choice in find_shape("pairs").roles(two, {}))
    assert "no column looks like a source" in question("pairs", table(tmp_path / "c.csv", "only:text"))


@pytest.mark.parametrize("shape", ["labelled", "pairs", "texts", "tagged", "questions", "frames"])
def test_what_cannot_be_read_is_left_to_opening_it(tmp_path: Path, shape: str) -> None:
    (tmp_path / "folder").mkdir()
    for name, content in {
        "empty.csv": b"", "header.csv": b"a,b\n", "binary.csv": b"\0\1", "bad.jsonl": b"{", "latin.tsv": b"\xe9\tx\n",
        "quote.csv": b'a,b\n"x,y\n', "no.npz": b"x", "list.jsonl": b"[1]\n", "empty.jsonl": b"{}\n",
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(content)
        assert found(shape, str(tmp_path / name)) == {}
    for spec in (str(tmp_path / "folder"), str(tmp_path / "nowhere.csv"), "sample:languages", "a.en,a.de"):
        assert found(shape, spec) == {}


@pytest.mark.parametrize(
    ("first", "rows", "wanted"),
    [
        ("review,verdict", ["good film,pos", "bad film,neg"], True),  # a usual name
        ("good film,pos", ["bad film,neg", "so so,pos"], False),  # recurs
        ("3,A text", ["4,Another one", "3,More"], False),  # a number
        ("grade,essay", ["4,Another one", "3,More"], True),  # above numbers
        ("Is it good?,when", ["4,2024-01-02", "3,2024-01-03"], True),
        ("what,what", ["a,b", "c,d"], False),  # the same name twice
        ("Hi.,Salut.", ["Run!,Cours !", "Go.,Va !"], False),  # sentences
        ("en,de", ["Hi,Hallo", "Go,Los"], True),
        ("comment,nice work", ["question,what is it", "comment,thanks"], False),
        ("alpha,beta", [f"{'xyz'[n % 3]},{'word ' * (6 + n % 5)}{n}" for n in range(50)], True),  # unlike all rows
        ("v1,v2,,", [f"{'xyz'[n % 3]},{'word ' * (6 + n % 5)}{n},," for n in range(50)], True),  # empty columns
        ("Mon Apr 06 22:19:45 PDT 2009,x", ["Mon Apr 06 22:20:45 PDT 2009,y", "6 May 2009,z"], False),
        ("hund,dog", [f"{a}{b},{b}{a}" for a in WORDS for b in WORDS], False),  # like any row
    ],
)
def test_a_header_is_told_from_a_row(tmp_path: Path, first: str, rows: list[str], wanted: bool) -> None:
    (tmp_path / "a.csv").write_text("\n".join([first, *rows]) + "\n")
    seen = peek(str(tmp_path / "a.csv"))
    assert seen is not None and seen.header == wanted and len(seen.rows) == len(rows) + (not wanted)


def test_the_text_of_a_table_is_found_for_language_models(tmp_path: Path) -> None:
    assert found("texts", table(tmp_path / "a.csv", "id:id, body:text, kind:class")) == {"column": "body"}
    assert found("texts", table(tmp_path / "b.jsonl", "title:text, text:text")) == {}
    spec = table(tmp_path / "c.csv", "id, text")
    assert found("texts", spec) == {"column": "2"}
    shape = find_shape("texts")
    assert next(shape.open(spec, shape.options(train=spec, column="2")).pieces()) == values("text")[0]
    two = table(tmp_path / "d.csv", "dialogue:text, summary:text")
    assert "two columns could be the text: dialogue" in question("texts", two)
    plain = tmp_path / "e.txt"
    plain.write_text("a\tb\nc\td\n")
    assert found("texts", str(plain)) == {}


def test_measurements_and_labels_of_an_npz_are_found(tmp_path: Path) -> None:
    rows, path = 40, tmp_path / "a.npz"
    arrays = {
        "X": np.zeros((rows, 5, 2)),
        "y": np.arange(rows) % 3,
        "index": np.arange(rows),
        "who": np.arange(rows) % 2,
    }
    np.savez(path, **arrays)
    assert found("frames", str(path)) == {"column": "X", "label": "y"}
    np.savez(path, frames=arrays["X"], digit=arrays["y"], who=arrays["who"])
    assert "two columns could be the label: digit (3 values), who (2 values)" in question("frames", str(path))
    assert found("frames", str(path), label="digit") == {}
    lines = [f"{n // 4},{'ab'[n // 4 % 2]},{n / 7:.3f},{n % 5}" for n in range(80)]
    (tmp_path / "a.csv").write_text("\n".join(["trial,gesture,x,z", *lines]) + "\n")
    assert found("frames", str(tmp_path / "a.csv")) == {"row": "trial", "label": "gesture"}


def test_the_doctor_says_which_columns_it_chose(tmp_path: Path) -> None:
    spec = table(tmp_path / "a.csv", "review:text, stars:stars")
    first, *others = doctor(spec, task="classification")
    assert first.level == "note" and first.advice == "--columns text=NAME to change" and len(others) > 1
    assert first.message == "columns: text = review (8 words on average), label = stars (5 values that recur)"
    unclear = table(tmp_path / "b.csv", "review:text, stars:stars, verdict:verdict")
    (only,) = doctor(unclear, task="classification")
    assert only.level == "error" and "say which: --columns label=verdict" in only.message
    assert "columns:" not in doctor(unclear, task="classification", column="review", label="stars")[0].message


CONLLU = "# text = x\n" + "\n".join(
    "\n".join(
        f"{n}\t{word}\t{word}\t{tag}\t_\t_\t0\troot\t_\t_"
        for n, (word, tag) in enumerate([("Ada", "PROPN"), ("runs", "VERB"), (".", "PUNCT")], 1)
    )
    + "\n"
    for _ in range(3)
)


def conll(*columns: str, sentences: int = 40) -> str:
    """Sentences of five words; columns: number, word, bio, pos, lemma, blank."""
    rng, text = random.Random(0), ""
    for _ in range(sentences):
        for n in range(1, 6):
            word = rng.choice(WORDS) + rng.choice(WORDS)
            cells = {"number": str(n), "word": word, "lemma": word.upper(), "blank": "_"}
            cells |= {"bio": rng.choice(["O", "B-PER", "B-LOC"]), "pos": rng.choice(["N", "V", "A"])}
            text += " ".join(cells[column] for column in columns) + "\n"
        text += "\n"
    return text


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (conll("word", "bio"), {}),
        (conll("word", "pos", "bio"), {}),
        (conll("word", "bio", "pos"), {}),  # the last column, as ever
        (conll("number", "word", "bio"), {"word": 2}),
        (conll("bio", "word"), {"word": 2, "tag": 1}),
        (conll("pos", "word"), {"word": 2, "tag": 1}),
        (conll("word", "bio", "blank"), {"tag": 2}),
        (conll("word", "pos", "bio", "lemma"), {"tag": 3}),
        (CONLLU, {"word": 2, "tag": 4}),
        ("Ada B-PER\nruns O\n", {}),
        ("one\ntwo\n", {}),
        ("a b\nc\n", {}),
    ],
)
def test_words_and_tags_of_columns_are_found(tmp_path: Path, content: str, wanted: dict[str, int]) -> None:
    path = tmp_path / "a.conll"
    path.write_text(content)
    assert found("tagged", str(path)) == wanted
    if wanted:
        shape = find_shape("tagged")
        assert shape.open(str(path), shape.options(train=str(path), **wanted)).words


def test_two_columns_that_could_be_tags_are_asked(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text(conll("word", "pos", "pos", "blank"))
    assert "columns could be the tags: 2 (3 values), 3 (3 values)" in question("tagged", str(tmp_path / "a.conll"))
    assert found("tagged", str(tmp_path / "a.conll"), tag=2) == {}


LISTS: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"words": ["Ada", "runs"], "tags": ["B-PER", "O"]}, {}),
    ({"tokens": ["Ada", "runs"], "ner_tags": ["B-PER", "O"]}, {"words": "tokens", "tags": "ner_tags"}),
    ({"id": "1", "tokens": ["Ada", "runs"], "labels": [3, 0]}, {"words": "tokens", "tags": "labels"}),
    ({"text": "Ada runs", "spans": [{"start": 0, "end": 3, "label": "PER"}]}, {}),
    ({"text": "Ada runs", "entities": [[0, 3, "PER"]]}, {"spans": "entities"}),
    (
        {"sentence": "Ada runs", "label": [{"start_offset": 0, "end_offset": 3, "label": "PER"}]},
        {"spans": "label", "column": "sentence"},
    ),
]


@pytest.mark.parametrize(("row", "wanted"), LISTS)
def test_lists_of_words_tags_and_spans_are_found(tmp_path: Path, row: dict[str, Any], wanted: dict[str, str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text((json.dumps(row) + "\n") * 3)
    assert found("tagged", str(path)) == wanted
    shape = find_shape("tagged")
    first = next(shape.open(str(path), shape.options(train=str(path), **wanted)).rows())
    assert first.words == ["Ada", "runs"] and first.tags in (["B-PER", "O"], ["3", "0"])


def test_two_lists_of_tags_are_asked(tmp_path: Path) -> None:
    row = {"tokens": ["Ada", "runs"], "pos_tags": ["N", "V"], "ner_tags": ["B-PER", "O"]}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    asked = question("tagged", str(tmp_path / "a.jsonl"))
    assert "2 lists could be the tags: pos_tags, ner_tags; say which: --columns tags=ner_tags" in asked
    assert found("tagged", str(tmp_path / "a.jsonl"), tags="pos_tags") == {"words": "tokens"}


def test_passages_and_questions_are_found(tmp_path: Path) -> None:
    path, answers = tmp_path / "a.jsonl", {"text": ["Paris"], "answer_start": [0]}
    path.write_text(json.dumps({"passage": "Paris is big.", "query": "What is big?", "答案": answers}) + "\n")
    wanted = {"context": "passage", "question": "query", "answers": "答案"}
    assert found("questions", str(path)) == wanted
    shape = find_shape("questions")
    options = shape.options(train=str(path), **wanted)
    (row,) = shape.open(str(path), options).rows()
    assert (row.context, row.question, row.texts) == ("Paris is big.", "What is big?", ("Paris",))
    assert next(shape.sources(str(path), options))["question"] == "What is big?"
    path.write_text(json.dumps({"context": "x", "question": "y", "answers": answers}) + "\n")
    assert found("questions", str(path)) == {}
    path.write_text(json.dumps({"title": "x", "question": "y", "answers": answers}) + "\n")
    assert "no column looks like a passage; say which: --columns passage=title" in question("questions", str(path))


def test_another_file_is_read_by_the_columns_of_the_run_or_by_those_given(tmp_path: Path) -> None:
    from seqloom.runs.fit import fit

    spec = table(tmp_path / "a.csv", "review:text, stars:stars")
    settings = ["data.column=review", "data.label=stars", "train.steps=2", "train.batch=4", "tokenizer.min_count=1"]
    run = fit(None, task="classification", data=spec, model="gru", out=tmp_path / "run",
              overrides=[*settings, "model.width=8", "train.threads=1"], quiet=True)  # fmt: skip
    assert "accuracy" in run.evaluate(table(tmp_path / "b.csv", "stars:stars, id:id, review:text"))
    said: list[str] = []
    run.say = said.append
    other = table(tmp_path / "c.csv", "comment:text, points:stars")
    assert "accuracy" in run.evaluate(other) and said == ["columns: text = comment, label = points"]
    assert len(list(run.predict(other))) == 60 and said[1:] == ["columns: text = comment"]
    unclear = table(tmp_path / "d.csv", "comment:text, points:stars, verdict:verdict")
    with pytest.raises(UserError, match=r"two columns could be the label: .*; say which: --columns label=verdict"):
        run.evaluate(unclear)
    assert "accuracy" in run.evaluate(unclear, columns={"label": "points"})
    assert len(list(run.predict(unclear))) == 60, "a prediction needs no label"
    with pytest.raises(UserError, match=r"no column 'coment'; .*did you mean 'comment'\? --columns text=comment"):
        run.evaluate(other, columns={"text": "coment", "label": "points"})
    bare = table(tmp_path / "e.csv", "stars, text")
    assert "accuracy" in run.evaluate(bare, columns={"text": 2, "label": 1})
    assert len(list(run.predict(bare, columns={"text": 2}))) == 60
    assert "accuracy" in run.evaluate(other, column="comment", label="points"), "data options by their own names"
