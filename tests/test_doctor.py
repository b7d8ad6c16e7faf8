"""Doctor: says what is wrong with a text before any training, and never stops with a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support import examine
from test_data import BAD_FILES, write

from seqloom.core.errors import UserError
from seqloom.data.findings import Finding
from seqloom.data.shapes.texts.doctor import examine_text

WORDS = ["fox", "dog", "runs", "over", "lazy", "quick", "brown", "river", "stone", "light", "house", "green", "walks"]


def random_lines(count: int, seed: int = 0) -> str:
    chosen = random.Random(seed)
    return "".join(" ".join(chosen.choices(WORDS, k=12)) + "\n" for _ in range(count))


def report(path: Path, content: str | bytes) -> list[Finding]:
    return examine_text(write(path, content))


def said(findings: list[Finding], *levels: str) -> str:
    return "\n".join(f"{f.message} {f.advice}" for f in findings if not levels or f.level in levels)


def test_a_good_text_has_nothing_wrong(tmp_path):
    findings = report(tmp_path / "a.txt", random_lines(3000))
    assert not said(findings, "warning", "error")
    assert findings[-1] == Finding("ok", "no problems found")
    assert "3,000 lines" in said(findings, "ok") and "characters tokenizer suits this text" in said(findings)


@pytest.mark.parametrize("case", BAD_FILES)
def test_every_bad_file_is_an_error_finding(tmp_path, case):
    name, content, message = BAD_FILES[case]
    (finding,) = report(tmp_path / name, content)
    assert finding.level == "error" and message in finding.message


def test_a_text_that_leaves_nothing_to_validate_on_is_an_error(tmp_path):
    findings = report(tmp_path / "a.txt", "too short")
    assert "the validation set has fewer than 2 characters: too few to score a model on" in said(findings, "error")
    assert not said(examine_text(str(tmp_path / "a.txt"), valid=0), "error")


def test_a_validation_set_of_its_own_is_compared_with_the_text(tmp_path):
    train, valid = (
        write(tmp_path / "a.txt", random_lines(300)),
        write(tmp_path / "b.txt", random_lines(40) + "天气" * 9),
    )
    findings = examine_text(train, held=valid)
    assert "300 lines" in said(findings, "note", "ok")  # of the text alone
    assert "of the validation set never occur in the training set (天" in said(findings, "warning")
    assert "100% of the validation set's long lines are also in the training set" in said(findings, "warning")
    assert "b.txt: the file is empty" in said(examine_text(train, held=write(tmp_path / "b.txt", "")), "error")
    assert "no such file" in said(examine_text(train, held="nowhere.txt"), "error")


def test_a_missing_file_is_an_error_finding():
    assert [f.level for f in examine_text("nowhere.txt")] == ["error"]


@pytest.mark.parametrize(
    "content, warning",
    [
        ("a short text " * 5, "too little"),
        (random_lines(200) + "\x07\x08" * 3, "6 control characters (U+0007, U+0008)"),
        (random_lines(200) + "\ufffd", "1 replacement characters"),
        (random_lines(50) * 20, "95% of the lines of 30 characters or more are duplicates"),
        (random_lines(50) * 20, "100% of the validation set's long lines are also in the training set"),
        (random_lines(200) + "天气" * 100, "2 characters of the validation set never occur in the training set (天"),
    ],
)
def test_what_would_spoil_the_training_is_a_warning(tmp_path, content, warning):
    assert warning in said(report(tmp_path / "a.txt", content), "warning")


def test_one_character_repeated_is_an_error(tmp_path):
    assert "nothing to predict" in said(report(tmp_path / "a.txt", "a" * 5000), "error")


def test_mixed_line_ends_are_noted(tmp_path):
    assert "2 \\r\\n, 1 \\n" in said(report(tmp_path / "a.txt", "a\r\nb\r\nc\nd"), "note")


def test_words_are_advised_against_for_chinese_without_blanks(tmp_path):
    chinese = "今天天气很好我们去公园散步。他说明天会下雨我们不去了。\n" * 50
    findings = said(report(tmp_path / "a.txt", chinese))
    assert "words tokenizer does not suit" in findings and "are Chinese or Japanese" in findings
    segmented = "今天 天气 很 好 我们 去 公园 散步 。\n" * 50
    assert "words tokenizer does not suit" not in said(report(tmp_path / "b.txt", segmented))


def test_many_lines_are_sampled_and_the_shares_stay_right(tmp_path, monkeypatch):
    monkeypatch.setattr("seqloom.data.findings.SAMPLED_LINES", 300)
    findings = said(report(tmp_path / "a.txt", random_lines(3000) + random_lines(1000)))
    shares = [int(line.split("%")[0]) for line in findings.splitlines() if "are duplicates" in line]
    assert shares and abs(shares[0] - 25) <= 8


def test_samples_and_documents_can_be_examined(tmp_path):
    assert "lines" in said(examine_text("sample:python-docs"), "ok")
    rows = "".join(f'{{"body": "{line}"}}\n' for line in random_lines(100).splitlines())
    path = write(tmp_path / "a.jsonl", rows)
    assert not said(examine_text(path, column="body"), "error")
    assert "available: body" in said(examine_text(path), "error")


def pairs_report(path: Path, rows: list[tuple[str, str]], **options) -> list[Finding]:
    table = "".join(f"{source}\t{target}\n" for source, target in rows)
    return examine("translation", write(path, table), source="1", target="2", **options)


def random_pairs(count: int, seed: int = 0) -> list[tuple[str, str]]:
    chosen = random.Random(seed)
    sources = (chosen.choices(WORDS, k=chosen.randint(6, 12)) for _ in range(count))
    return [(" ".join(words), "".join(chr(0x5000 + 3 * WORDS.index(word)) * 2 for word in words)) for words in sources]


def test_good_pairs_have_nothing_wrong(tmp_path):
    findings = pairs_report(tmp_path / "a.tsv", random_pairs(12_000))
    assert not said(findings, "warning", "error")
    assert findings[-1] == Finding("ok", "no problems found")
    assert "12,000 pairs" in said(findings, "ok") and "no source is in two splits" in said(findings, "ok")
    assert "source: only 13 distinct words the words tokenizer suits it" in said(findings)
    assert "target: 1.0 words per row the characters tokenizer suits it" in said(findings)


def test_lengths_of_both_sides_are_told(tmp_path):
    rows = [("x" * (n % 100 + 1), "y" * 7) for n in range(1000)]
    assert "source characters per row: median 50, 95% up to 95, longest 100; 1 distinct" in said(
        pairs_report(tmp_path / "a.tsv", rows), "ok"
    )


GOOD = random_pairs(500)


@pytest.mark.parametrize(
    "rows, warning",
    [
        (GOOD[:20], "20 pairs, "),
        (GOOD + [("a", " ")] * 100, "100 rows are left out: a side is empty"),
        (GOOD + GOOD[:100], "16.7% of the pairs are duplicates"),
        (GOOD + [("same", "same")] * 50, "9.1% of the pairs have the same text on both sides; the first is on line"),
        (
            GOOD + [(target, source) for source, target in GOOD[:10]],
            "target: 1.96% of the rows are in Latin, but most are in Chinese or Japanese; the first is on line 501",
        ),
        (
            GOOD + [(source, "天" * 200) for source, _ in GOOD[:60]],
            "60 rows (the first is on line 501) have a target more than 3 times longer or shorter than usual",
        ),
    ],
)
def test_what_would_spoil_the_learning_of_pairs_is_a_warning(tmp_path, rows, warning):
    assert warning in said(pairs_report(tmp_path / "a.tsv", rows), "warning")


@pytest.mark.parametrize(
    "rows, note",
    [
        (GOOD, "500 pairs, "),
        ([*GOOD, ("a", "")], "1 rows are left out: a side is empty"),
        ([*GOOD, ("x " * 1500, "天" * 1500)], "1 row (line 501) has more than 2,000 characters"),
        ([*GOOD, (GOOD[0][0], "天")], "of the pairs give another target for a source seen before"),
        ([*GOOD, ("это", "天")], "source: 0.20% of the rows are in Cyrillic, but most are in Latin"),
    ],
)
def test_what_is_good_to_know_of_pairs_is_a_note(tmp_path, rows, note):
    findings = pairs_report(tmp_path / "a.tsv", rows)
    assert note in said(findings, "note") and not said(findings, "warning", "error")


def test_sources_that_are_also_in_the_validation_file_are_counted(tmp_path):
    other = write(tmp_path / "valid.tsv", "".join(f"{s}\t{t}\n" for s, t in GOOD[:30] + random_pairs(70, seed=1)))
    findings = pairs_report(tmp_path / "a.tsv", GOOD, valid_data=other)
    assert f"30.0% of the sources in {other} are also in the training set" in said(findings, "warning")
    assert said(pairs_report(tmp_path / "b.tsv", GOOD, valid_data="nowhere.tsv"), "error").startswith(
        "nowhere.tsv: no such"
    )


@pytest.mark.long
def test_the_tokenizer_follows_the_number_of_pairs(tmp_path):
    rows = [(f"word{n} and w{n} or x{n}", f"wort{n} und") for n in range(60_000)]
    assert "source: 5.0 words per row the bpe tokenizer with about 8,000 subwords" in said(
        pairs_report(tmp_path / "a.tsv", rows)
    )
    sounds = said(examine("translation", "sample:cmudict"))
    assert (
        "source: mostly single words the characters tokenizer" in sounds and "target: only 69 distinct words" in sounds
    )


def test_bad_pairs_are_an_error_finding_and_an_unknown_task_is_refused(tmp_path):
    path = write(tmp_path / "a.csv", "source,goal\na,b\n")
    assert "no column 'target'; available: source, goal" in said(examine("translation", path), "error")
    with pytest.raises(UserError, match="unknown task 'translations'; did you mean 'translation'"):
        examine("translations", path)
