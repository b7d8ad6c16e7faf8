"""What is easily overlooked on a page: labels that overlap, axes of impossible scores, colours that do not exist."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from compare_example import example

from seqloom.compare import results
from seqloom.compare.report import charts, facts, html, ladder, tuning
from seqloom.compare.report.axes import score_axis, width_of
from seqloom.compare.report.content import document
from seqloom.compare.report.showing import showing
from seqloom.compare.report.words import speaker
from seqloom.pages.blocks import Chart, Series, Table, Text
from seqloom.pages.shell import part
from seqloom.pages.words import LANGUAGES


def share(result: dict[str, Any]) -> dict[str, Any]:
    """The same comparison by a score between 0 and 1."""
    metric = result["protocol"]["metric"]
    result["protocol"]["titles"]["scores"][metric] = {"title": ["F1", "F1"], "unit": ["", ""], "bounds": [0.0, 1.0]}
    return result


def test_every_colour_of_the_style_sheets_exists() -> None:
    sheets = part("base.css") + part("report.css") + part("figures.css")
    defined = set(re.findall(r"(--[a-z][\w-]*):", sheets)) | {"--columns", "--shade"}
    assert set(re.findall(r"var\((--[a-z][\w-]*)", sheets)) <= defined


def test_no_option_of_a_command_or_a_sentence_is_broken_at_its_hyphens() -> None:
    result = example()
    result["protocol"]["use"] = "seqloom generate runs/my--run --max-new 50 -o a=b"
    page = html(result)
    option = '<span class="option">{}</span>'.format
    assert f"<code>seqloom generate runs/my--run {option('--max-new')} 50 {option('-o')} a=b</code>" in page


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_of_baselines_do_not_overlap_on_a_telephone(language: str) -> None:
    result, say = example(), speaker(language)
    first = facts.scored(result)[0][1]["score"]["mean"]
    titles = {f"baseline {n}": [f"a baseline with a long name {n}", f"名称很长的基线 {n}"] for n in range(4)}
    result["protocol"]["titles"]["baselines"] = titles
    result["baselines"] = [{"name": name, "score": first * (1 + n / 40)} for n, name in enumerate(titles)]
    chart = charts.forest(result, say)
    assert chart is not None
    (panel,) = chart.panels
    ends = [x for line in panel.series for x in (*line.x, *line.low, *line.high) if x is not None]
    ends += [rule.x for rule in panel.rules if rule.x is not None]
    pixels = charts.NARROW / (max(ends) - min(ends))
    for one, other in zip(panel.rules, panel.rules[1:], strict=False):
        assert one.x is not None and other.x is not None
        assert abs(one.x - other.x) * pixels >= (width_of(one.label) + width_of(other.label)) / 2
    assert panel.rules[0].label == titles["baseline 0"][LANGUAGES.index(language)]


@pytest.mark.parametrize(("value", "ends"), [(0.0, (0.0, 1.0)), (1.0, (0.0, 1.0))])
def test_an_axis_of_equal_scores_shows_only_possible_ones(value: float, ends: tuple[float, float]) -> None:
    result = share(example())
    assert score_axis(result, "F1", [Series("a", [1.0, 2.0], [value, value])]).range == ends
    assert score_axis(result, "F1", [Series("a", [1.0, 2.0], [0.2, 0.3])]).range is None


def test_the_interval_of_a_share_ends_at_zero_and_one() -> None:
    result = share(example())
    found = [facts.possible(result, value) for value in (-0.1, 0.4, 1.2, None)]
    assert found == [0.0, 0.4, 1.0, None]
    entry = facts.scored(result)[0][1]
    entry["ladder"] = {"points": [{"at": 10, "score": {"mean": 0.1, "low": -0.2, "high": 0.4}}], "curve": []}
    result["ladder"] = {"kind": "budget", "over": "tokens", "full": 10}
    (panel,) = ladder.chart(result, speaker("en")).panels
    assert [line.low for line in panel.series if line.low] == [[0.0]]


def test_a_cost_of_one_model_alone_has_no_panel() -> None:
    result = example()
    for entry in result["entries"][1:]:
        entry["flops_per_token"] = None
    chart, before = (charts.quality_and_cost(each, speaker("en")) for each in (result, example()))
    assert chart is not None and before is not None and len(chart.panels) == len(before.panels) - 1


def test_a_search_with_one_multiplier_has_no_chart_of_it() -> None:
    result, say = example(), speaker("en")
    for entry in result["entries"]:
        for trial in entry.get("search") or ():
            trial["settings"]["scale"] = 1.0
    chart = tuning.chart(result, say)
    assert chart is None or say("search by scale") not in [panel.title for panel in chart.panels]


def test_errors_of_measurements_say_which_row_it_was() -> None:
    result = example()
    error = {"gold": "sine", "predicted": "noise", "probability": 0.9, "row": 1204, "text": ""}
    confusion = {"kind": "confusion", "rows": 2, "of": 2, "labels": ["sine"], "counts": [[2]], "wrong": 1}
    result["entries"][0]["showcase"] = confusion | {"errors": [error]}
    tables = [block for block in showing(result, speaker("en")) if isinstance(block, Table)]
    assert [cell.text for cell in tables[-1].rows[0].cells] == ["sine → noise", "1,204"]


def test_what_scores_have_in_common_is_said_once() -> None:
    protocols = {"lstm": "9 rows; nats per row; 2 are cut", "gpt": "9 rows; nats per row; 3 are cut"}
    runs = {
        name: [{"state": "done", "summary": {"scores": {"test": {"protocol": p}}}}] for name, p in protocols.items()
    }
    fitted = {
        "bag": ({}, runs["lstm"][0]),
        "tfidf": ({}, {"summary": {"scores": {"test": {"protocol": "9 rows; nats per row"}}}}),
    }
    found: Any = SimpleNamespace(runs=runs, fitted=fitted)
    assert results._ways(found) == "9 rows; nats per row; lstm, bag: 2 are cut; gpt: 3 are cut"


def test_tokens_that_are_time_steps_and_transfer_that_is_possible_are_said() -> None:
    result, say = example(), speaker("en")
    shown = [
        block.text for section in document(result, "en").sections for block in section.blocks if isinstance(block, Text)
    ]
    assert say("time steps") not in shown and say("transfer") not in html(result)
    result["protocol"] |= {"tokens": "time steps", "pretrains": True}
    shown = [
        block.text for section in document(result, "en").sections for block in section.blocks if isinstance(block, Text)
    ]
    assert say("time steps") in shown and say("aspect transfer") in html(result)


def test_the_figure_says_which_direction_is_better_and_explains_only_what_it_draws() -> None:
    result, say = example(), speaker("en")
    chart = charts.forest(result, say)
    assert isinstance(chart, Chart) and chart.remark.startswith(say("forest lower"))
    for entry in result["entries"]:
        entry["runs"] = entry.get("runs", [])[:1]
    alone = charts.forest(result, say)
    assert isinstance(alone, Chart) and say("forest seeds") in chart.remark and say("forest seeds") not in alone.remark
