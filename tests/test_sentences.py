"""Sentences of English and Chinese text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from work import grows_in_proportion

from seqloom.retrieve.sentences import one_line, sentences

CASES = {
    "abbreviations": "Dr. Smith met Mrs. Jones.| They talked.",
    "for example": "We use encoders, e.g. BERT, i.e. a Transformer.| It works.",
    "a country": "The U.S. economy grew.| Prices fell.",
    "a country at the end": "He moved to the U.S.| The law changed.",
    "a figure": "See Fig. 3 and Eq. 4 for details.| They show it.",
    "a number of a thing": "Flight No. 5 is late.| I said no.| Then I left.",
    "decimals": "It costs 3.5 million.| That is 0.5 % more.",
    "versions and addresses": "Version 2.0.1 is at example.com/a.html today.| Get it.",
    "ellipsis": "Wait... what?| Yes!",
    "a question and an exclamation": "Really?!| Yes.| Good!",
    "a quotation at the end": 'He said, "Stop."| Then he left.',
    "a quotation inside": 'He said "Stop!" and left.| Bye.',
    "curly quotes": "She wrote “It works.”| Nobody believed it.",
    "brackets": "It rose (see below.)| Then it fell.",
    "initials": "J. K. Rowling wrote it.| D. Knuth did not.",
    "a letter at the end": "Take vitamin C.| It helps.| Use plan B.| The rest follows.",
    "authors": "Smith et al. (2010) found it.| Others did not.",
    "a year at the end": "It began in 2010.| The war ended in 1945.",
    "a date": "They met on Jan. 5 at 3 p.m. in Rome.| It rained.",
    "a reference": "Results improved.[12]| Then they fell.[3, 4]| Why?",
    "a degree": "She has a Ph.D. from MIT.| He has none.",
    "chinese": "今天天气很好。|我们去公园吧！|你说呢？|好的；|走。",
    "chinese quotation": "“你好！”他说。|“再见。”|她走了。",
    "chinese question in a quotation": "他问：“你去吗？”|天黑了。",
    "chinese ellipsis": "他……走了。|我知道……",
    "chinese title": "《你好吗？》是一本书。|很好看。",
    "chinese brackets": "结果很好（真的！）而且很快。|谢谢。",
    "chinese with western marks": "这是真的吗?|是的!|很好。",
    "mixed": "We use BERT模型。|它很好。|Then we test.| 结束了。",
    "decimals in chinese": "增长了3.5%。|价格是12.80元。",
    "an abbreviation in chinese": "他在U.S.工作了三年。|后来回国。",
    "traditional": "「你好嗎？」|「很好。」|他走了。",
    "items": "1. First item. |More.|\n2. Second item.|\n- one|\n- two|\n* three",
    "chinese items": "一、第一项|\n二、第二项|\n（1）第三项|\n2、第四项",
    "headings": "# Heading|\nText below.| More.|\n\nTitle|\n=====\nbody",
    "a short line": "Introduction|\nThis is a paragraph of some length that a program has wrapped\nand goes on.",
    "wrapped lines": "This line was wrapped in the middle\nand goes on until it ends.| Next sentence\nis here.",
    "wrapped chinese": "这是一个很长的句子，它在这里换行，\n然后继续，直到结束。|第二句话也在\n这里。",
    "an indented paragraph": "第一章 开始|\n　　很久以前有一个人。|他姓王。",
    "empty lines": "no full stop|\n\nanother one|\n \nthird",
    "code": "import os|\nx = 1|\ny = foo(x)|\nreturn y",
    "blocks of code": "for (int i = 0; i < n; i++) {|\n    total += i;|\n}\nprintf();",
    "a wrapped line that begins like code": "It learns slowly when it is trained\nfrom scratch on a class of tasks.",
    "a table": "| a | b |\n|---|---|\n| 1 | 2 |",
    "emphasis": "It is **important.**| Do it.",
}


@pytest.mark.parametrize("name", CASES)
def test_sentences_end_where_a_reader_would_end_them(name: str) -> None:
    parts = [CASES[name]] if name == "a table" else CASES[name].split("|")
    text = "".join(parts)
    expected = [part.strip() for part in parts] if name != "a table" else ["| a | b |", "| 1 | 2 |"]
    expected = [part.removeprefix("=====\n").removeprefix("}\n") for part in expected]
    assert [text[start:end] for start, end in sentences(text)] == expected


ALPHABET = "ab Z.!?\n\n\t…。！？；”“」\"'()（）1#-*|=中文说道 U.S."


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=ALPHABET, max_size=120))
def test_sentences_are_in_order_and_leave_no_word_out(text: str) -> None:
    at = 0
    for start, end in sentences(text):
        assert at <= start < end and not any(character.isalnum() for character in text[at:start])
        assert text[start:end] == text[start:end].strip()
        at = end
    assert not any(character.isalnum() for character in text[at:])


HOSTILE = [
    ". ",
    "a",
    "“",
    "Dr. ",
    ")->",
    "。”",
    "……",
    "\n",
    " \n",
    "= ",
    "1.",
    "[1]",
    "#",
    "说",
    "a.b",
    "( )",
    "…a",
    "’",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_the_work_for_a_text_grows_with_its_length_not_faster(unit: str) -> None:
    assert grows_in_proportion(lambda size: sentences(unit * size), 1000)
    text = unit * 60_000
    assert all(0 <= start < end <= len(text) for start, end in sentences(text))


@pytest.mark.parametrize(
    "rows",
    [["Service 1 per day 3.50", "Service 2 per day 6.50"], ["Ship\tFee", "Aurora\t12 m"], ["船名\t长度", "曙光号\t米"]],
)
def test_a_row_of_a_table_is_a_sentence_of_its_own(rows: list[str]) -> None:
    text = "\n".join(rows)
    assert [text[start:end] for start, end in sentences(text)] == rows


def test_chinese_has_no_space_where_a_line_ended() -> None:
    assert one_line("灯塔记录能见\n度，每天\n两次 a\nb") == "灯塔记录能见度，每天两次 a b"
