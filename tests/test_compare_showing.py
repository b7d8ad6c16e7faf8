"""What the report of a comparison shows of the models' predictions: for every task, in both languages, safely."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from compare_example import example
from test_compare_report import ATTACK, Page, hostile

from seqloom.compare.report import html, markdown
from seqloom.compare.report.axes import ticks
from seqloom.compare.report.content import document
from seqloom.compare.report.fading import horizon
from seqloom.compare.report.showing import showing
from seqloom.compare.report.words import speaker
from seqloom.pages.blocks import Chart, Examples, Fold, Line, Table
from seqloom.pages.words import LANGUAGES

CONFUSION = {
    "kind": "confusion", "rows": 60, "of": 120, "unknown": 2, "merged": 0, "labels": ["cat", "dog"],
    "counts": [[30, 10], [0, 20]], "wrong": 10,
    "errors": [{"gold": "cat", "predicted": "dog", "probability": 0.98, "text": "it <b>barks</b>"}],
}  # fmt: skip
SEVERAL = {
    "kind": "confusion", "rows": 5, "of": 5, "merged": 3, "wrong": 1,
    "classes": [{"label": "cat", "wanted": 4, "found": 3, "right": 2}],
    "errors": [{"gold": "", "predicted": "cat, dog", "probability": 0.9, "text": ""}],
}  # fmt: skip
FORECASTS = {
    "kind": "forecasts", "covered": 0.8, "of": 9,
    "series": [
        {"name": "shop", "target": "sales", "from": "2026-01-04", "history": [1.0, None, 3.0], "actual": [4.0, 5.0],
         "forecast": [3.5, 5.5], "low": [3.0, 4.5], "high": [4.0, 6.5]},
    ],
}  # fmt: skip
TAGS = {
    "kind": "tags", "of": 9,
    "rows": [{"words": ["Ada", "Love", "saw", "Rome"], "gold": ["B-PER", "I-PER", "O", "B-LOC"],
              "predicted": ["B-PER", "I-PER", "B-LOC", "O"], "cut": True, "space": " "}],
}  # fmt: skip
ANSWERS = {
    "kind": "answers", "of": 9,
    "rows": [{"question": "Who?", "passage": ["…it was ", "Ada", " of course"], "gold": ["Ada"], "predicted": "Ada of",
              "exact": False, "f1": 0.6667}],
}  # fmt: skip
PAIRS = {
    "kind": "pairs", "of": 9,
    "rows": [{"source": "the cat", "reference": "le chat noir", "output": "le chien noir", "exact": False}],
}  # fmt: skip
GAPS = {
    "kind": "gaps", "of": 900,
    "rows": [{"before": "the ", "gold": "cat", "after": " sat", "predicted": [{"token": "dog", "probability": 0.5}]}],
}  # fmt: skip
KINDS = {
    "confusion": CONFUSION, "several": SEVERAL, "forecasts": FORECASTS, "tags": TAGS, "answers": ANSWERS,
    "pairs": PAIRS, "gaps": GAPS,
}  # fmt: skip
each_kind = pytest.mark.parametrize("kind", KINDS)


def result(shown: dict[str, Any]) -> dict[str, Any]:
    """A comparison whose trained models all did the same."""
    made = example()
    made["entries"] = [entry for entry in made["entries"] if not entry.get("fixed")]
    for entry in (entry for entry in made["entries"] if entry["state"] == "done"):
        entry["sample"], entry["showcase"] = None, copy.deepcopy(shown)
    return made


def blocks(shown: dict[str, Any], language: str = "en") -> list[Any]:
    return showing(result(shown), speaker(language))


def texts(line: Line) -> list[tuple[str, str, str]]:
    return [(piece.text, piece.tag, piece.mark) for piece in line.pieces]


@each_kind
@pytest.mark.parametrize("language", LANGUAGES)
def test_predictions_take_the_place_of_samples(kind: str, language: str) -> None:
    keys = [section.key for section in document(result(KINDS[kind]), language).sections]
    assert "showing" in keys and "samples" not in keys
    others = [section.key for section in document(example(), language).sections]
    assert "samples" in others and "showing" not in others


@each_kind
def test_the_chinese_page_has_no_english_sentence(kind: str) -> None:
    source = markdown(result(KINDS[kind]), "zh")
    section = source.split("## 测试集上的预测")[1].split("\n## ")[0]
    assert not re.search(r"[a-z]+ [a-z]+ [a-z]+ [a-z]+", section)
    assert "随机种子 1" in section


@each_kind
def test_text_from_users_and_models_stays_text(kind: str) -> None:
    attacked = Page(html(hostile(result(KINDS[kind]))))
    assert len(attacked.scripts) == 3 and not attacked.named("img") and not attacked.open
    source = markdown(hostile(result(KINDS[kind])), "en")
    outside = re.sub(r"^(`{3,}).*?^\1$", "", source, flags=re.DOTALL | re.MULTILINE)
    assert "<script>" not in outside.replace("\\<script\\>", "") and ATTACK not in outside


def test_a_confusion_matrix_is_shaded_by_share_of_the_row_and_errors_are_listed() -> None:
    _, remark, matrix, errors, *folds = blocks(CONFUSION)
    assert remark.text.startswith("60 of 120 rows of the test set, evenly spaced.") and "left out: 2" in remark.text
    assert isinstance(matrix, Table) and matrix.matrix and matrix.caption.startswith("lstm: confusion matrix")
    cells = [[(cell.text, cell.shade, cell.tone) for cell in row.cells[1:3]] for row in matrix.rows]
    assert cells == [[("30", 0.75, "right"), ("10", 0.25, "wrong")], [("", 0.0, "wrong"), ("20", 1.0, "right")]]
    assert [row.cells[-1].text for row in matrix.rows] == ["75 %", "100 %"]
    assert [cell.text for cell in errors.rows[0].cells] == ["cat → dog", "it <b>barks</b>"]
    assert errors.rows[0].cells[0].small == "98 %"
    assert all(isinstance(fold, Fold) for fold in folds) and [fold.title for fold in folds] == ["gru", "gpt", "rnn"]
    page = html(result(CONFUSION))
    assert '<td class="number right" style="--shade: 0.750">30</td>' in page and "it &lt;b&gt;barks" in page


def test_merged_labels_are_said_and_have_no_share_of_their_own() -> None:
    _, remark, matrix, *_ = blocks(CONFUSION | {"labels": ["cat"], "merged": 7})
    assert "The 7 rarest labels are not shown one by one." in remark.text
    assert [row.cells[0].text for row in matrix.rows] == ["cat", "other labels"]
    assert matrix.rows[1].cells[-1].text == "–"


def test_several_labels_per_row_are_counted_one_by_one() -> None:
    _, remark, classes, errors, *_ = blocks(SEVERAL)
    assert remark.text.startswith("All 5 rows of the test set.")
    assert [cell.text for cell in classes.rows[0].cells] == ["cat", "4", "3", "2"]
    assert [column.title for column in errors.columns] == ["Actual → predicted"], "these rows have no text"


def test_the_recommended_model_comes_first() -> None:
    made = result(CONFUSION)
    made["recommendation"]["choice"] = "gpt"
    found = showing(made, speaker("en"))
    assert found[2].caption.startswith("gpt") and [fold.title for fold in found[4:]] == ["lstm", "gru", "rnn"]


def test_forecasts_are_drawn_over_the_actual_values_and_every_line_has_a_name() -> None:
    _, chart = blocks(FORECASTS)
    assert isinstance(chart, Chart) and chart.others == [(None, "actual values")] and len(chart.legend) == 4
    assert chart.remark == "Shaded: 80 % prediction interval of lstm."
    (panel,) = chart.panels
    assert panel.title == "shop, sales, from 2026-01-04" and panel.x.title and panel.y.title == "sales"
    assert panel.rules[0].label == "forecast begins"
    by_kind = {line.draw: line for line in panel.series}
    assert by_kind["truth"].x == [-2, 0, 1, 2] and by_kind["truth"].y == [1, 3, 4, 5]  # one value is missing
    assert by_kind["band"].x == [1, 2, 2, 1] and by_kind["band"].y == [4, 6.5, 4.5, 3]
    assert all(line.name for line in panel.series)
    assert "| 1 | 4.000 | 3.500 | 3.500 | 3.500 | 3.500 |" in markdown(result(FORECASTS), "en")
    drawn = json.loads(Page(html(result(FORECASTS))).scripts[0])
    assert drawn["panels"]["en-forecasts-0"]["series"][0]["draw"] == "band"


def test_entities_are_shown_whole_and_errors_are_marked_also_where_a_tag_is_missing() -> None:
    _, examples = blocks(TAGS)
    assert isinstance(examples, Examples)
    gold, first, *_ = examples.items[0]
    assert texts(gold) == [
        ("Ada Love ", "PER", "right"), ("saw ", "", ""), ("Rome ", "LOC", "right"), ("…", "", ""),
    ]  # fmt: skip
    assert texts(first) == [
        ("Ada Love ", "PER", "right"), ("saw ", "LOC", "wrong"), ("Rome ", "O", "wrong"), ("…", "", ""),
    ]  # fmt: skip
    assert first.name == "lstm" and first.mark == "wrong"
    source = markdown(result(TAGS), "en")
    assert "- lstm: Ada Love/PER **saw/LOC** **Rome/O** … (wrong)" in source
    page = html(result(TAGS))
    assert '<span class="piece wrong">saw<small>LOC</small></span> ' in page and ">错误</span>" in page


def test_an_entity_is_wrong_as_a_whole_and_missing_words_stand_together() -> None:
    gold = ["B-ORG", "I-ORG", "O", "B-LOC", "I-LOC"]
    row = {"words": list("abcde"), "gold": gold, "predicted": ["B-LOC", "I-ORG", "O", "O", "O"], "space": ""}
    (_, examples) = blocks({"kind": "tags", "rows": [row]})
    assert texts(examples.items[0][1]) == [
        ("a", "LOC", "wrong"), ("b", "ORG", "wrong"), ("c", "", ""), ("de", "O", "wrong"),
    ]  # fmt: skip


def test_plain_tags_are_shown_word_by_word() -> None:
    row = {"words": ["a", "b"], "gold": ["DET", "NOUN"], "predicted": ["DET", "DET"], "space": " "}
    (_, examples) = blocks({"kind": "tags", "rows": [row]})
    assert texts(examples.items[0][1]) == [("a ", "DET", "right"), ("b ", "DET", "wrong")]


def test_questions_have_their_passage_with_the_answer_marked() -> None:
    (_, examples) = blocks(ANSWERS)
    question, passage, gold, first, *_ = examples.items[0]
    assert (
        question.pieces[0].text == "Who?" and texts(passage)[1] == ("Ada", "", "key") and gold.pieces[0].text == "Ada"
    )
    assert "".join(piece.text for piece in first.pieces) == "Ada of (F1 0.67)" and first.mark == "wrong"
    none = copy.deepcopy(ANSWERS)
    none["rows"][0] |= {"gold": [], "predicted": "", "exact": True, "passage": ["text", "", ""]}
    lines = blocks(none)[1].items[0]
    assert lines[2].pieces[0].text == lines[3].pieces[0].text == "(no answer)" and lines[3].mark == "right"


def test_outputs_differ_from_the_reference_where_they_are_underlined() -> None:
    (_, examples) = blocks(PAIRS)
    source, reference, first, *_ = examples.items[0]
    assert source.name == "Source" and reference.name == "Reference" and not first.mark
    assert texts(first) == [("le ", "", ""), ("chien ", "", "wrong"), ("noir ", "", "")]
    chinese = copy.deepcopy(PAIRS)
    chinese["rows"][0] |= {"reference": "黑猫", "output": "黑狗"}
    assert texts(blocks(chinese)[1].items[0][2]) == [("黑", "", ""), ("狗", "", "wrong")]


def test_gaps_are_shown_with_what_the_models_put_there() -> None:
    (_, examples) = blocks(GAPS)
    text, first, *_ = examples.items[0]
    assert texts(text) == [("the ", "", ""), ("cat", "", "key"), (" sat", "", "")]
    assert first.pieces[0].text == "dog (50 %)" and first.mark == "wrong"


def test_a_model_that_saw_another_row_is_left_out_of_it() -> None:
    made = result(PAIRS)
    made["entries"][1]["showcase"]["rows"][0]["source"] = "another"
    made["entries"][2]["showcase"] = None
    (_, examples) = showing(made, speaker("en"))
    assert [line.name for line in examples.items[0]] == ["Source", "Reference", "lstm", "rnn"]


def parts(value: Any) -> Iterator[Callable[[Any], None]]:
    """Every way to take one key out of a result, or to empty one of its lists."""
    if isinstance(value, dict):
        for key in value:
            yield lambda found, key=key: found.pop(key)
            for change in parts(value[key]):
                yield lambda found, key=key, change=change: change(found[key])
    if isinstance(value, list) and value:
        yield lambda found: found.clear()
        for change in parts(value[0]):
            yield lambda found, change=change: change(found[0])


@each_kind
def test_missing_parts_break_nothing(kind: str) -> None:
    for change in parts(KINDS[kind]):
        shown = copy.deepcopy(KINDS[kind])
        change(shown)
        for language in LANGUAGES:
            source = markdown(result(shown), language)
            assert not re.search(r"\b(None|nan)\b", source)


def test_a_section_without_content_is_left_out_and_nothing_links_to_it() -> None:
    made = example()
    for entry in made["entries"]:
        entry["sample"] = entry["cost"] = entry["search"] = None
    made["recipe_table"] = []
    page = Page(html(made))
    ids = {section["id"] for section in page.named("section")}
    assert not {"en-samples", "en-showing", "en-cost", "en-search", "en-recipes", "zh-samples"} & ids
    assert {link["href"].removeprefix("#") for link in page.named("a")} <= ids


@pytest.mark.parametrize(
    "values",
    [
        [1_000_100, 1_000_900],
        [0.0123, 0.0124],
        [200.0, 200.5, 201],
        [1, 3.9],
        [5, 5],
        [1, 2, 100_000],
        [0.99995, 1.002],
    ],
    ids=str,
)
def test_no_axis_has_two_equal_labels(values: list[float]) -> None:
    for unit in ("", "B", "s"):
        labels = [label for _, label in ticks(values, unit)]
        assert labels and len(set(labels)) == len(labels)


def test_naive_forecasts_are_named_where_they_are_drawn() -> None:
    made = example()
    for n, row in enumerate(made["baselines"]):
        row["horizon"] = [1.0 + n, 2.0 + n]
    made["baselines"] += [{"name": f"more{n}", "score": 9.0 + n, "scores": {}, "horizon": [9.0, 9.0]} for n in range(4)]
    for entry in (entry for entry in made["entries"] if entry["aspects"]):
        entry["aspects"]["horizon"] = {"rmse": [1.0, 2.0]}
    chart = horizon(made, speaker("en"))
    assert chart is not None and chart.others == [
        (0, "unigram frequencies"),
        (1, "uniform distribution"),
        (2, "more0"),
    ]
    thin = [line for line in chart.panels[0].series if line.draw == "thin"]
    assert [(line.dash, line.name) for line in thin] == chart.others
    assert [column.title for column in chart.tables[0].columns][-1] == "more3"


def test_the_protocol_of_a_score_is_chinese_on_the_chinese_page() -> None:
    made = example()
    assert "奈特/词元，状态贯穿整个词元流，17,897 个词元" in markdown(made, "zh")
    made["protocol"]["scored"] = "nats per token, context 64, stride 32, 9 tokens (out of 1,000, from the start)"
    assert "奈特/词元，上下文 64，步幅 32，9 个词元（共 1,000 个，取开头部分）" in markdown(made, "zh")
    made["protocol"]["scored"] = "as nobody else does"
    assert "as nobody else does" in markdown(made, "zh")
