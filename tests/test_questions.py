"""Questions on passages: the forms they come in, answers that are not where they say, parts, and every fault."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import examine

from seqloom.core.errors import UserError
from seqloom.data.portions import split_rows
from seqloom.data.samples import find_sample
from seqloom.data.samples.facts import ASKED, PASSAGES, facts
from seqloom.data.shapes.questions.reading import open_asked, open_questions
from seqloom.data.shapes.questions.rows import QuestionRows, characters_of, tokens_of
from seqloom.tokenizers import train_tokenizer

pytestmark = pytest.mark.long

PASSAGE = "The cat sat on the mat. The dog sat on the cat."


def squad(*asked: dict[str, Any], context: str = PASSAGE) -> dict[str, Any]:
    return {"version": "1.1", "data": [{"title": "Pets", "paragraphs": [{"context": context, "qas": list(asked)}]}]}


def answer(text: str, start: int) -> dict[str, Any]:
    return {"text": text, "answer_start": start}


def written(path: Path, *rows: dict[str, Any]) -> str:
    if path.suffix == ".json":
        path.write_text(json.dumps(rows[0], ensure_ascii=False), encoding="utf-8")
    else:
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def line(question: str = "Where?", context: str = PASSAGE, **answers: Any) -> dict[str, Any]:
    return {"context": context, "question": question} | (answers or {"answer": "mat", "answer_start": 19})


def test_three_forms_say_the_same(tmp_path: Path) -> None:
    """SQuAD's JSON, and JSONL with many answers or with one."""
    start = PASSAGE.index("mat")
    forms = [
        written(tmp_path / "a.json", squad({"question": "Where? ", "id": "1", "answers": [answer("mat", start)]})),
        written(tmp_path / "b.jsonl", line(answers={"text": ["mat"], "answer_start": [start]})),
        written(tmp_path / "c.jsonl", line(answer="mat", answer_start=start)),
        written(tmp_path / "d.jsonl", line(answers=[answer("mat", start)])),
    ]
    found = [list(open_questions(form).rows()) for form in forms]
    assert {(row.context, row.question, row.answers, row.texts) for (row,) in found} == {
        (PASSAGE, "Where?", ((start, "mat"),), ("mat",))
    }
    assert found[0][0].id == "1"
    assert len({open_questions(form).hash for form in forms}) == 1


@pytest.mark.parametrize(("end", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_files_may_be_compressed(tmp_path: Path, end: str, pack: Any) -> None:
    for name, content in (("a.json", json.dumps(squad(line()))), ("b.jsonl", json.dumps(line()) + "\n")):
        path = tmp_path / (name + end)
        path.write_bytes(pack(content.encode()))
        assert open_questions(str(path)).counts.questions == 1


def test_several_true_answers_are_kept_once_each(tmp_path: Path) -> None:
    given = [answer("mat", 19), answer("the mat", 15), answer("mat", 19)]
    (row,) = open_questions(written(tmp_path / "a.json", squad({"question": "Where?", "answers": given}))).rows()
    assert row.answers == ((19, "mat"), (15, "the mat")) and row.texts == ("mat", "the mat")


def test_an_answer_elsewhere_is_mended_when_it_can_only_be_one_and_else_left_out_and_counted(tmp_path: Path) -> None:
    rows = [
        line("moved", answer="mat", answer_start=3),
        line("twice", answer="cat", answer_start=-1),
        line("nowhere", answer="horse", answer_start=4),
        line("one of two", answers={"text": ["horse", "dog"], "answer_start": [0, 28]}),
        line("blank", answer=" ", answer_start=3),
        line("overlapping", context="aaa b", answer="aa", answer_start=4),
        line("far", answer="mat", answer_start=10**9),
    ]
    source = open_questions(written(tmp_path / "a.jsonl", *rows))
    found = {row.question: row for row in source.rows()}
    assert found["moved"].answers == found["far"].answers == ((19, "mat"),) and found["moved"].mended == 1
    assert found["twice"].answers == () and found["twice"].texts == ("cat",) and not found["twice"].impossible
    assert found["one of two"].answers == ((28, "dog"),) and found["one of two"].texts == ("horse", "dog")
    assert found["overlapping"].answers == ()
    counts = source.counts
    assert (counts.mended, counts.lost, counts.unanswered, counts.first_mended, counts.first_lost) == (2, 5, 4, 1, 2)
    said = "; ".join(counts.remarks())
    assert "2 answers moved to the only occurrence" in said and "5 answers left out of training" in said
    assert "4 questions with no usable answer: scored, but not trained on" in said


def test_questions_without_an_answer(tmp_path: Path) -> None:
    asked = [
        {"question": "who", "answers": [], "is_impossible": True},
        {"question": "why", "answers": [answer("cat", 4)], "is_impossible": True},
        {"question": "how", "is_impossible": True},
        {"question": "when", "answers": []},
        {"question": "what", "answers": [answer("cat", 4)], "is_impossible": False},
    ]
    source = open_questions(written(tmp_path / "a.json", squad(*asked)))
    assert [row.impossible for row in source.rows()] == [True] * 4 + [False]
    assert [row.texts for row in source.rows()] == [()] * 4 + [("cat",)]
    assert source.counts.impossible == 4 and source.counts.unanswered == 0


def test_empty_questions_and_passages_are_left_out_and_counted(tmp_path: Path) -> None:
    source = open_questions(
        written(tmp_path / "a.jsonl", line(" "), line(context="\n ", answer="x", answer_start=0), line())
    )
    assert source.counts.questions == len(list(source.rows())) == 1 and source.counts.empty == 2
    assert "2 questions left out" in "; ".join(source.counts.remarks())


def test_the_passage_is_kept_as_it_stands(tmp_path: Path) -> None:
    context = "  \r\n a\u0301 天地😀  mat "
    path = written(tmp_path / "a.jsonl", line(context=context, answer="mat", answer_start=context.index("mat")))
    (row,) = open_questions(path).rows()
    assert row.context == context and row.mended == 0


def test_no_passage_is_in_two_parts_and_parts_do_not_depend_on_the_order(tmp_path: Path) -> None:
    rows = [line(f"q{n}", context=f"{PASSAGE} {n % 100}") for n in range(300)]
    one = split_rows(open_questions(written(tmp_path / "a.jsonl", *rows)), 0.2, 0.2)
    two = split_rows(open_questions(written(tmp_path / "b.jsonl", *rows[::-1])), 0.2, 0.2)
    contexts = {name: {row.context for row in part.rows()} for name, part in one.items()}
    assert sum(map(len, contexts.values())) == 100 == len(set.union(*contexts.values()))
    assert contexts == {name: {row.context for row in part.rows()} for name, part in two.items()}
    assert sum(part.counts.questions for part in one.values()) == 300
    assert len({part.hash for part in one.values()}) == 3 and "(valid)" in one["valid"].name
    with pytest.raises(UserError, match=r"too few passages \(1\) for a valid split; add passages"):
        split_rows(open_questions(written(tmp_path / "c.jsonl", line())), 1e-9)


def test_the_hash_knows_every_part_of_a_row(tmp_path: Path) -> None:
    rows = [
        line(),
        line("Who?"),
        line(context=PASSAGE + "!"),
        line(answer="mat.", answer_start=19),
        line(answers=[]),
        line(answers=[answer("mat", 19), answer("horse", 1)]),
    ]
    assert len({open_questions(written(tmp_path / f"{n}.jsonl", row)).hash for n, row in enumerate(rows)}) == len(rows)


FAULTS = {
    "{": r"a\.json:1: not valid JSON: Expecting property name",
    '{"a": 1}\n{"a": 2}': r"a\.json:2: not valid JSON: Extra data at column 1; if it has one object per line",
    "[]": r"a\.json: expected an object in braces",
    '{"version": 1}': r'a\.json: no list "data"; expected the SQuAD format: data, paragraphs, qas',
    '{"data": []}': r"a\.json: contains no questions; expected lines like",
    '{"data": [{}]}': r'a\.json: article 1: no list "paragraphs"',
    '{"data": [{"paragraphs": [{"qas": []}]}]}': r"a\.json: article 1, paragraph 1: no column 'context'",
    '{"data": [{"paragraphs": [{"context": "x"}]}]}': r'article 1, paragraph 1: no list "qas"',
    '{"data": [{"paragraphs": [7]}]}': r"article 1, paragraph 1: expected an object",
}
ROWS = {
    r"a.jsonl:2: no column 'question'": {"context": "x"},
    r"a.jsonl:2: no column 'context'": {"question": "x"},
    r"a.jsonl:2: column 'context' is a number, not text": {"context": 3, "question": "x"},
    r'a.jsonl:2: no "answers"; a row looks like': {"context": "x", "question": "x"},
    r'a.jsonl:2: "answers" needs lists "text" and "answer_start" of the same length': line(
        answers={"text": ["a"], "answer_start": []}
    ),
    r'a.jsonl:2: "answer_start" must be an integer': line(answer="mat"),
    r"a.jsonl:2: \"answer_start\" must be an integer: the offset": line(answers=[{"text": "a", "answer_start": "3"}]),
    r"a.jsonl:2, answer: no column 'text'": line(answers=[{"answer_start": 3}]),
    r"a.jsonl:2, answer: column 'text' is a number": line(answers=[answer(7, 3)]),  # type: ignore[arg-type]
    r"a.jsonl:2, answer: expected an object": line(answers=["mat"]),
}


@pytest.mark.parametrize("content", FAULTS)
def test_a_broken_file_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(UserError, match=FAULTS[content]) as no:
        open_questions(str(path)).counts  # noqa: B018
    assert "\n" not in str(no.value)


@pytest.mark.parametrize("message", ROWS)
def test_a_broken_row_is_refused_with_its_line(tmp_path: Path, message: str) -> None:
    with pytest.raises(UserError, match=message):
        list(open_questions(written(tmp_path / "a.jsonl", line(), ROWS[message])).rows())


def test_what_is_no_file_of_questions_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "b.jsonl").write_text("\n")
    for name, message in (
        ("a.txt", r"not a question file; give SQuAD .json, or .jsonl"),
        ("b.jsonl", r"contains no questions; expected lines like"),
        ("c.json", "no such file"),
        (".", "is a folder; give one file"),
    ):
        with pytest.raises(UserError, match=message):
            open_questions(str(tmp_path / name))
    with pytest.raises(UserError, match=r"all 1 are empty or have an empty passage"):
        open_questions(written(tmp_path / "d.jsonl", line(" ")))
    with pytest.raises(UserError, match=r"questions about passages are needed; available: sample:facts"):
        open_questions("sample:reversal")


def test_to_be_answered_a_question_needs_no_answer(tmp_path: Path) -> None:
    rows = [{"context": PASSAGE, "question": " Who? "}, {"context": " ", "question": "x"}, line("What?")]
    assert list(open_asked(written(tmp_path / "a.jsonl", *rows))) == [
        {"line": 1, "question": "Who?", "context": PASSAGE},
        {"line": 3, "question": "What?", "context": PASSAGE},
    ]
    (row,) = open_asked(written(tmp_path / "b.json", squad({"question": "Who?", "id": 7})))
    assert row == {"line": 1, "id": "7", "question": "Who?", "context": PASSAGE}
    with pytest.raises(UserError, match="contains no questions"):
        list(open_asked(written(tmp_path / "c.jsonl", rows[1])))


def test_tokens_of_an_answer_are_all_that_hold_any_of_it() -> None:
    places = np.array([(0, 3), (4, 7), (7, 8), (9, 12)])
    for characters, tokens in (
        ((4, 7), (1, 1)),
        ((5, 6), (1, 1)),
        ((2, 5), (0, 1)),
        ((3, 9), (1, 2)),
        ((0, 12), (0, 3)),
    ):
        assert tokens_of(places, *characters) == tokens
    first, last = tokens_of(places, 3, 4)  # a blank between two words
    assert first > last and characters_of(places, first, last) == (0, 0)
    assert characters_of(places, 1, 2) == (4, 8)


def test_rows_keep_a_passage_once_and_find_every_answer(tmp_path: Path) -> None:
    rows = [
        line("Where?"),
        line("Who?", answers=[answer("dog", 28), answer("e dog s", 26)]),
        line("x", context="mat", answer="mat", answer_start=0),
    ]
    source = open_questions(written(tmp_path / "a.jsonl", *rows))
    asked = QuestionRows(source.rows(), train_tokenizer("words", source.texts()), source)
    assert len(asked) == 3 and asked.passages == 2 and asked.lengths.tolist() == [[2, 14], [2, 14], [1, 1]]
    one = asked[1]
    texts = [one.context[one.places[a, 0] : one.places[b, 1]] for a, b in one.spans]
    assert texts == ["dog", "The dog sat"] and asked.cut() == (1, 4) and asked.tokens == 34
    assert asked.counts.sum() == 14 + 1 + 2 + 2 + 1


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_facts_are_always_the_same_and_all_answers_stand_where_they_say(language: str) -> None:
    name = "sample:facts" if language == "en" else "sample:facts-zh"
    counts = open_questions(name).counts
    assert counts.questions == PASSAGES * ASKED and counts.remarks() == [] and counts.passages == PASSAGES
    assert list(facts(language)) == list(find_sample(name, "questions").read())
    rows = list(open_questions(name).rows())
    assert len({row.question for row in rows}) > 1000
    for row in rows[:400]:
        (begin, text), *_ = row.answers
        assert row.context[begin : begin + len(text)] == text and text not in ("", row.context)


def levels(spec: str, valid: str | None = None) -> dict[str, str]:
    return {f.message: f.level for f in examine("question_answering", spec, valid_data=valid)}


def test_the_doctor_finds_nothing_wrong_with_the_sample() -> None:
    found = levels("sample:facts")
    assert "no problems found" in found and set(found.values()) <= {"ok", "note"}
    assert any("all 4,000 answers are at their answer_start" in message for message in found)
    assert any("Chinese or Japanese" in message for message in levels("sample:facts-zh"))


def test_the_doctor_says_what_is_wrong_and_where(tmp_path: Path) -> None:
    good = [line(f"Where {n}?") for n in range(5)]
    bad = [line("moved", answer="mat", answer_start=3), line("lost", answer="cat", answer_start=1), line(" ")]
    others = [
        line("none", answers=[]),
        line("Where 1?"),
        line("long", context="x " * 2000, answer="x " * 100, answer_start=0),
    ]
    spec = written(tmp_path / "a.jsonl", *good, *bad, *others)
    found = examine(
        "question_answering", spec, valid_data=written(tmp_path / "v.jsonl", line(), line(context="new mat"))
    )
    said = [f"{f.level}: {f.message} -> {f.advice}" for f in found]
    for wanted in (
        "warning: 10 questions about 2 passages",
        "warning: 2 answers are not at their answer_start; the first is in question 6 -> 1 occur only once",
        "note: 1 questions have no answer that can be found in their passage -> they are scored",
        "note: 10.0% of the questions are unanswerable from their passage -> set task.no_answer=true",
        "note: 1 questions are left out",
        "10.0% of the questions are duplicates about the same passage",
        "note: passages: mean",
        "warning: 50.0% of the questions in",
        "raise task.longest_answer",
    ):
        assert any(wanted in one for one in said), (wanted, said)


def test_the_doctor_never_raises_for_what_is_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    (finding,) = examine("question_answering", str(tmp_path / "a.json"))
    assert finding.level == "error" and "not valid JSON" in finding.message and finding.advice
