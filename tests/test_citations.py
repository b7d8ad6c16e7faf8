"""Checked citations: the sentences in tests/data/citations-*.jsonl were planted before any rule was written.

Of each kind one half is "open", which the rules were written with, and one "kept", which was to be looked at once.
At that look every altered sentence was caught, but 4 of the 35 harmless English edits raised an alarm (1 of 22 in
Chinese), more than the 5 % aimed at. The rules were then repaired, so "kept" is a regression test since, and no
evidence.

"fresh" was planted before that repair. Its harmless edits are freer: clauses and adverbs change places. At its
first look all altered ones were caught, and 11 of 37 harmless edits raised an alarm (4 of 19 in Chinese): the bar
of 5 % holds for small edits only, not for reordering.

"free" has what careful writers do (lead-ins, names for pronouns, exchanged clauses, instructions in the passive) and
alterations that look like it; "turned" are the meanest. It was written by the author of the rules, in rounds, each
looked at before the rules were mended. At the first look the last two rounds had 19 of 65 harmless edits that raised an
alarm (6 of 33 in Chinese), and 5 of 76 alterations were missed (0 of 39), of those "turned" 10 of 91. All were then
used to mend the rules, so the bars below are regression tests, and no evidence.

citations-other-*.jsonl is by another hand, who had not seen the rules. Its half "dev" was used to mend them, "kept" was
looked at once, afterwards: 97 of 99 altered English sentences were caught and 60 of 60 Chinese ones, 4 of 30 and 7 of
15 faithful ones raised an alarm.

citations-third-*.jsonl is by a third hand. At its first look 108 of 110 altered English sentences were caught and 66 of
66 Chinese ones, 9 of 60 and 9 of 40 faithful ones raised an alarm. The rules were then mended with it and with what
"kept" of the other hand had shown, so both are regression tests since, and no evidence.

citations-fourth-*.jsonl is by a fourth hand, looked at once, after all of that, and nothing was mended since: this is
the evidence. All 110 altered English sentences and all 66 Chinese ones were caught. Of faithful sentences with one
small edit ("near") 9 of 60 raised an alarm, 7 of 40 in Chinese; with two or three ("near2") 11 of 30 and 10 of 20. The
5 % aimed at are not reached: most alarms are synonyms (returned, came back), which rules do not know.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from work import calls, grows_in_proportion

from seqloom.retrieve.checking import check, check_citation, evaluate_citations
from seqloom.retrieve.document import Answer, Chunk, Document, Passage, Sentence
from seqloom.retrieve.sentences import sentences

DATA = Path(__file__).parent / "data"
ALTERED = (
    *("number", "name", "negation", "direction", "quantifier", "stitched", "wrong_source", "unrelated"),
    *("unit", "date", "modality", "role", "turned"),
)
CASES = [(language, part) for language in ("en", "zh") for part in ("open", "kept")]


@cache
def documents(language: str) -> dict[str, Document]:
    rows = map(json.loads, (DATA / f"citations-{language}.jsonl").read_text(encoding="utf-8").splitlines())
    return {
        row["passage"]: Document(row["path"], row["text"], row["passage"], "line") for row in rows if "passage" in row
    }


@cache
def checked(language: str, part: str) -> dict[str, list[Sentence]]:
    """Every planted sentence of a part, checked against all passages of the language, by kind."""
    sources, found = documents(language), defaultdict(list)
    for line in (DATA / f"citations-{language}.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "sentence" in row and row["part"] == part:
            path = sources[row["source"]].path
            found[row["kind"]].append(check_citation(row["sentence"], path, list(sources.values())))
    return found


@pytest.mark.parametrize(("language", "part"), CASES)
def test_every_verbatim_sentence_is_a_quotation_at_its_exact_place(language: str, part: str) -> None:
    texts = {document.path: document.text for document in documents(language).values()}
    for sentence in checked(language, part)["verbatim"]:
        assert sentence.quotation is not None, sentence
        quotation = sentence.quotation
        assert texts[quotation.path][quotation.start : quotation.end] == quotation.text
        assert not sentence.failed


@pytest.mark.parametrize(
    ("language", "part"), [*CASES, ("en", "fresh"), ("zh", "fresh"), ("en", "free"), ("zh", "free")]
)
def test_altered_sentences_are_caught(language: str, part: str) -> None:
    altered = [sentence for kind in ALTERED for sentence in checked(language, part)[kind]]
    caught = [sentence for sentence in altered if sentence.failed and sentence.quotation is None]
    assert len(caught) >= 0.95 * len(altered)


@pytest.mark.parametrize(("language", "part"), CASES)
def test_small_harmless_edits_raise_few_alarms(language: str, part: str) -> None:
    near = checked(language, part)["near"]
    assert sum(bool(sentence.failed) for sentence in near) <= 0.05 * len(near)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("part", ["fresh", "free"])
def test_what_careful_writers_change_raises_few_alarms(language: str, part: str) -> None:
    near = checked(language, part)["near"]
    assert sum(bool(sentence.failed) for sentence in near) <= 0.12 * len(near)


@pytest.mark.parametrize(("language", "part"), CASES)
def test_a_paraphrase_is_never_a_quotation(language: str, part: str) -> None:
    assert all(sentence.quotation is None for sentence in checked(language, part)["paraphrase"])


@pytest.mark.parametrize(("language", "least"), [("en", 240), ("zh", 120)])
def test_half_of_each_kind_is_kept(language: str, least: int) -> None:
    opened, kept = checked(language, "open"), checked(language, "kept")
    assert sum(map(len, opened.values())) + sum(map(len, kept.values())) >= least
    assert all(0 <= len(kept[kind]) - len(opened[kind]) <= 1 for kind in kept)


SOURCE = (
    "There is no evidence that garlic cures colds. Critics claimed that the mayor had taken bribes. "
    "Did the mayor resign? Prices rose by 5 percent in 2019. Germany defeated France in 1998. "
    "Revenue rose to $71 million. If the lamp is red, the valve opens. The hotel, which opened in 1901, has 40 rooms."
)
CHINESE = (
    "没有证据表明大蒜能治感冒。专家声称股价会翻倍。如果温度超过80度，阀门会自动打开。价格上涨了5%。张伟打败了王强。"
)


def one(text: str) -> list[Document]:
    return [Document("notes.txt", text, "notes", "line")]


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md", "CONTRIBUTING.md", "docs/zh/language-models.md"])
def test_every_sentence_of_a_file_is_a_quotation_of_it(name: str) -> None:
    text = (DATA.parent.parent / name).read_text(encoding="utf-8")
    page = [Document(name, text, name, "line")]
    for start, end in sentences(text):
        for written in (text[start:end], " ".join(text[start:end].split())):
            quotation = check(written, page).quotation
            assert quotation is not None, written
            assert text[quotation.start : quotation.end] == quotation.text


@pytest.mark.parametrize(
    ("text", "sentence", "why"),
    [
        (SOURCE, "Garlic cures colds.", "negation"),
        (SOURCE, "The mayor had taken bribes.", "doubt"),
        (SOURCE, "Did the mayor resign.", "question"),
        (SOURCE, "Prices rose by 5.", "numbers"),
        (SOURCE, "The valve opens.", "conditions"),
        (SOURCE, "In 2019.", "length"),
        (CHINESE, "大蒜能治感冒。", "negation"),
        (CHINESE, "股价会翻倍。", "doubt"),
        (CHINESE, "阀门会自动打开。", "conditions"),
    ],
)
def test_a_part_that_says_something_else_than_its_sentence_is_no_quotation(text: str, sentence: str, why: str) -> None:
    found = check(sentence, one(text))
    assert found.quotation is None
    assert why in found.failed


@pytest.mark.parametrize(
    ("text", "sentence", "why"),
    [
        (SOURCE, "France defeated Germany in 1998.", "order"),
        (SOURCE, "Germany was defeated by France in 1998.", "order"),
        (SOURCE, "Revenue rose by $71 million.", "numbers"),
        (SOURCE, "Prices rose by 5 percent in 2019 ... Germany defeated France.", "stitched"),
        (CHINESE, "王强打败了张伟。", "order"),
        (CHINESE, "价格上涨到5%。", "numbers"),
    ],
)
def test_who_did_what_and_how_much_is_checked(text: str, sentence: str, why: str) -> None:
    assert why in check(sentence, one(text)).failed


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (SOURCE, "In 1998 Germany defeated France."),
        (SOURCE, "The hotel has forty rooms."),
        (SOURCE, "Prices rose by 5 per cent in 2019."),
        (CHINESE, "价格上涨了百分之五。"),
    ],
)
def test_a_sentence_that_fails_no_check_is_still_not_verified(text: str, sentence: str) -> None:
    found = check(sentence, one(text))
    assert found.quotation is None
    assert found.failed == ()
    assert found.nearest is not None


LODGE = (
    "Harrow Lodge is a small hotel on Lake Orme. It has 40 rooms, which makes it the largest on the lake. Manager "
    "Ada Finch hired Paul Reed because the cook had left. Never paint the boats indoors. Guests pay £25 a night and "
    "may use the sauna only with the consent of the manager. The council voted in favour of the new pier."
)


@pytest.mark.parametrize(
    "sentence",
    [
        "According to the brochure, Harrow Lodge is a small hotel on Lake Orme.",
        "The hotel has forty rooms, making it the largest on the lake.",
        "Because the cook had left, Ada Finch hired Paul Reed.",
        "Paul Reed was hired by manager Ada Finch because the cook had left.",
        "The boats should never be painted indoors.",
        "Guests may use the sauna only with the consent of the manager and pay £25 per night.",
        "Guests pay £25 a night and may use the sauna only with the manager's consent.",
    ],
)
def test_a_careful_writer_raises_no_alarm(sentence: str) -> None:
    assert check(sentence, one(LODGE)).failed == ()


@pytest.mark.parametrize(
    "sentence",
    [
        "According to Paul Reed, Harrow Lodge is a small hotel on Lake Orme.",
        "The brochure denies that Harrow Lodge is a small hotel on Lake Orme.",
        "Ada Finch has 40 rooms, which makes it the largest on the lake.",
        "The cook had left because Ada Finch hired Paul Reed.",
        "Ada Finch was hired by Paul Reed because the cook had left.",
        "The boats should be painted indoors.",
        "Guests of the manager may use the sauna only with consent.",
        "The council voted against the new pier.",
    ],
)
def test_what_only_looks_like_a_careful_writer_is_caught(sentence: str) -> None:
    assert check(sentence, one(LODGE)).failed


def test_offsets_of_a_chunk_are_those_of_its_document() -> None:
    start = SOURCE.index("Prices")
    chunk = Chunk("notes.txt", start, len(SOURCE), SOURCE[start:], 7, "page")
    quotation = check("prices rose  by\n5 percent in 2019.", [chunk]).quotation
    assert quotation is not None
    assert SOURCE[quotation.start : quotation.end] == quotation.text == "Prices rose by 5 percent in 2019."
    assert (quotation.number, quotation.unit) == (7, "page")


def test_a_sentence_from_another_file_fails_the_check_of_its_source() -> None:
    sources = [Document("a.txt", SOURCE, "", "line"), Document("b.txt", CHINESE, "", "line")]
    found = check_citation("Germany defeated France in 1998.", "b.txt", sources)
    assert found.failed == ("source",)
    assert found.nearest is not None
    assert found.nearest.path == "a.txt"


@pytest.mark.parametrize("sentence", ["", " ", "...", "？", "“”", "It is."])
def test_a_sentence_without_words_is_not_verified(sentence: str) -> None:
    found = check(sentence, one(SOURCE))
    assert found.quotation is None
    assert found.failed == ("words",)
    assert check(sentence, []).failed == ("words",)


@pytest.mark.parametrize(
    "text", ["The rate is 5.5 today.", "The rate is 55 today.", "The rate is 5% today.", "That rate is 5 today."]
)
def test_neither_a_word_nor_a_number_is_cut(text: str) -> None:
    assert check("e rate is 5", one(text)).quotation is None
    assert check("the rate is 5", one(text)).quotation is None


class Trusting:
    def entails(self, source: str, sentence: str) -> float:
        return 0.9 if "1998" in source else 0.1


def test_similarity_and_a_judge_are_asked_if_they_are_given() -> None:
    sentence = "In 1998 Germany defeated France."
    assert check(sentence, one(SOURCE), similarity=lambda a, b: 0.9, judge=Trusting()).failed == ()
    assert check(sentence, one(SOURCE), similarity=lambda a, b: 0.1).failed == ("similarity",)
    assert "entailment" in check("The hotel has forty rooms.", one(SOURCE), judge=Trusting()).failed


def answer(*sentences: Sentence) -> Answer:
    chunk = Chunk("notes.txt", 0, len(SOURCE), SOURCE, 1, "line")
    return Answer("?", sentences, (Passage(chunk, 1.0),))


def test_citation_recall_and_precision_count_verified_quotations() -> None:
    true = check("Germany defeated France in 1998.", one(SOURCE))
    loose = check("In 1998 Germany defeated France.", one(SOURCE))
    misplaced = Sentence("Prices rose by 5 percent in 2019.", quotation=true.quotation)
    misattributed = Sentence("It rains.", failed=("source",))
    refused = Answer("?", (), (), refused="nothing was found")
    scores = evaluate_citations([answer(true, loose, misplaced, misattributed), answer(true), answer(loose), refused])
    assert scores["recall"] == pytest.approx((1 / 4 + 1 + 0) / 3)
    assert scores["precision"] == pytest.approx((1 / 3 + 1) / 2)
    assert (scores["answers"], scores["refused"], scores["uncited"], scores["citations"]) == (4, 1, 1, 4)
    assert evaluate_citations([answer(true, loose)], judge=Trusting())["recall"] == 1
    assert evaluate_citations([refused])["recall"] is None


def test_a_check_against_ten_passages_takes_few_calls_and_more_passages_take_in_proportion() -> None:
    sources = [Document(f"{n}.txt", f"Note {n}. {SOURCE} {CHINESE} " * 3, "", "line") for n in range(20)]
    check("The hotel had 41 rooms in 1998.", sources)
    assert calls(lambda: check("The hotel had 42 rooms in 1998.", sources[:10])) < 5000
    assert grows_in_proportion(lambda size: check("The hotel had 43 rooms in 1998.", sources[:size]), 10)


HANDS = [  # the set, its language and part, and the share of faithful sentences that may raise an alarm
    *(("other", "en", "dev", 0.05), ("other", "en", "kept", 0.1), ("third", "en", "all", 0.05)),
    *(("other", "zh", "dev", 0.05), ("other", "zh", "kept", 0.34), ("third", "zh", "all", 0.05)),
    *(("fourth", "en", "all", 0.15), ("fourth", "zh", "all", 0.175)),
]


@pytest.mark.parametrize(("hand", "language", "half", "alarms"), HANDS)
def test_sentences_by_another_hand(hand: str, language: str, half: str, alarms: float) -> None:
    """Verbatim ones are quotations, altered ones are caught, and few faithful ones raise an alarm."""
    lines = (DATA / f"citations-{hand}-{language}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = list(map(json.loads, lines))
    sources = {row["passage"]: Document(row["path"], row["text"], "", "line") for row in rows if "text" in row}
    found = defaultdict(list)
    for row in rows:
        if row.get("half") == half:
            names = row["passage"] if isinstance(row["passage"], list) else [row["passage"]]
            claimed = row.get("claimed", sources[names[0]].path)
            found[row["kind"]].append(check_citation(row["sentence"], claimed, list(sources.values())))
    assert all(sentence.quotation for sentence in found["verbatim"])
    altered = [bool(sentence.failed) for kind in found if kind in ALTERED for sentence in found[kind]]
    assert sum(altered) >= 0.95 * len(altered) > 40
    assert sum(bool(sentence.failed) for sentence in found["near"]) <= alarms * len(found["near"])
