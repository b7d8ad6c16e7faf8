"""Doctor: says what is wrong with a text before any training, and never stops with a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from test_data import BAD_FILES, write

from seqloom.data.doctor import Finding, examine_text

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
    assert findings[-1] == Finding("ok", "nothing wrong found")
    assert "3,000 lines" in said(findings, "ok") and "characters suits this text" in said(findings)


@pytest.mark.parametrize("case", BAD_FILES)
def test_every_bad_file_is_an_error_finding(tmp_path, case):
    name, content, message = BAD_FILES[case]
    (finding,) = report(tmp_path / name, content)
    assert finding.level == "error" and message in finding.message


def test_a_missing_file_is_an_error_finding():
    assert [f.level for f in examine_text("nowhere.txt")] == ["error"]


@pytest.mark.parametrize(
    "content, warning",
    [
        ("too short", "too little"),
        (random_lines(200) + "\x07\x08" * 3, "6 control characters (U+0007, U+0008)"),
        (random_lines(200) + "\ufffd", "1 replacement characters"),
        (random_lines(50) * 20, "95% of the lines of 30 characters or more are repeats"),
        (random_lines(50) * 20, "100% of the validation part's long lines are in the training part too"),
        (random_lines(200) + "天气" * 100, "2 characters of the validation part are not in the training part (天 气)"),
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
    assert "words does not suit" in findings and "are Chinese or Japanese" in findings
    segmented = "今天 天气 很 好 我们 去 公园 散步 。\n" * 50
    assert "words does not suit" not in said(report(tmp_path / "b.txt", segmented))


def test_many_lines_are_sampled_and_the_shares_stay_right(tmp_path, monkeypatch):
    monkeypatch.setattr("seqloom.data.doctor.SAMPLED_LINES", 300)
    findings = said(report(tmp_path / "a.txt", random_lines(3000) + random_lines(1000)))
    shares = [int(line.split("%")[0]) for line in findings.splitlines() if "are repeats" in line]
    assert shares and abs(shares[0] - 25) <= 8


def test_samples_and_documents_can_be_examined(tmp_path):
    assert "lines" in said(examine_text("sample:python-docs"), "ok")
    rows = "".join(f'{{"body": "{line}"}}\n' for line in random_lines(100).splitlines())
    path = write(tmp_path / "a.jsonl", rows)
    assert not said(examine_text(path, column="body"), "error")
    assert "there are: body" in said(examine_text(path), "error")
