"""The report of a comparison: complete in both languages, safe with any text, and whole when parts are missing."""

from __future__ import annotations

import copy
import json
import re
import string
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from compare_example import example, judged
from support import write_report

from seqloom import pages
from seqloom.compare.advice.recommend import recommend
from seqloom.compare.report import facts, html, markdown, recipes, table, words
from seqloom.compare.report.content import document
from seqloom.core.score import Score
from seqloom.pages import formats
from seqloom.pages.blocks import Answer, Code, Points, Table
from seqloom.pages.words import LANGUAGES

ATTACK = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
TAKES_NO_END = {"meta", "link", "br", "wbr", "img"}


class Page(HTMLParser):
    """What a browser would see: elements with their attributes, texts, and what each script holds."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.text = ""
        self.scripts: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag == "script":
            self.scripts.append("")
        if tag not in TAKES_NO_END:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in TAKES_NO_END:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif self.open and self.open[-1] != "style":
            self.text += data

    def named(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(html(example()))


def forest(result: dict[str, Any]) -> dict[str, Any]:
    return json.loads(Page(html(result)).scripts[0])["panels"]["en-forest-0"]


def hostile(value: Any) -> Any:
    """The same result with markup at the end of every text that a person or a model may have written."""
    if isinstance(value, dict):
        kept = {"state", "verdict", "kind", "count", "choice", "best"}
        return {key: item if key in kept else hostile(item) for key, item in value.items()}
    if isinstance(value, list):
        return [hostile(item) for item in value]
    return value + ATTACK if isinstance(value, str) else value


# in the order of the page


def test_the_answer_comes_first(page: Page) -> None:
    ids = [section["id"] for section in page.named("section")]
    assert ids[0] == "en-answer" and ids[1] == "en-results" and ids[-1] == "zh-commands"
    assert page.text.index("Recommended, but not certain") < page.text.index("Results") < page.text.index("Reasons")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_answer_is_the_first_block_with_its_sentence_its_command_and_the_winner_in_the_first_row(
    language: str,
) -> None:
    result = example()
    result["protocol"]["use"] = "seqloom generate compare/book --prompt TEXT"
    first, second, third = document(result, language).sections[:3]
    answer, command = first.blocks[:2]
    assert isinstance(answer, Answer) and isinstance(command, Code)
    assert answer.title == "lstm" and answer.entry == 0
    assert answer.sentence == result["recommendation"]["headline"][language][0]
    assert command.items[0][1] == result["protocol"]["use"]
    (table,) = [block for block in second.blocks if isinstance(block, Table)]
    assert table.rows[0].cells[0].text == "lstm" and table.rows[0].kind == "chosen"
    points = [block for block in third.blocks if isinstance(block, Points)]
    assert [block.items for block in points] == [
        result["recommendation"][part][language] for part in ("reasons", "would_change")
    ]


def test_a_certain_recommendation_is_not_hedged() -> None:
    result = example()
    result["entries"] = [entry for entry in result["entries"] if entry["name"] != "gru"]
    assert judged(result)["recommendation"]["certain"]
    assert "not certain" not in markdown(result, "en") and "尚不确定" not in markdown(result, "zh")
    assert table.recommendation(result)[0] == "Recommended: lstm"
    assert table.recommendation(example())[0] == "Recommended, but not certain: lstm"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_section_has_content_in_both_languages(language: str) -> None:
    sections = document(example(), language).sections
    assert len(sections) == 12 and all(section.blocks for section in sections)


def test_every_text_is_there_in_both_languages_with_the_same_blanks() -> None:
    for key, texts in words.WORDS.items():
        assert len(texts) == 2 and all(texts), key
        blanks = [{name for _, name, _, _ in string.Formatter().parse(text) if name} for text in texts]
        assert blanks[0] == blanks[1], key


def test_every_text_is_used() -> None:
    folder = Path(words.__file__).parent
    source = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py") if "words" not in path.name)
    used = set(re.findall(r'"([^"\n]+)"', source)) | set(re.findall(r"'([^'\n]+)'", source))
    for key in words.WORDS:
        group = re.split(r"[ .]", key)[0]  # keys that are put together from a group and a name
        put_together = f'"{group}"' in source or f'"{group}.' in source or f'"{group} {{' in source
        assert key.removesuffix(".source").removesuffix(".row") in used or (group != key and put_together), (
            f"{key!r} is said nowhere"
        )


def test_ranks_follow_the_mean_score_and_verdicts_say_what_the_evidence_separates() -> None:
    shown = {row["model"]: row for row in table.rows(example())}
    names = ("lstm", "gru", "gpt", "ngram", "rnn", "gpt-wide", "unigram")
    assert [shown[name][""] for name in names] == ["1", "2", "3", "4", "5", "", ""]
    said = [shown[name]["verdict"] for name in names]
    assert said == ["best", "not enough evidence", "worse", "worse", "worse", "failed", "baseline"]


def test_a_model_that_needs_no_training_has_all_that_others_have_and_no_seed_is_said_of_it() -> None:
    result = example()
    source = markdown(result, "en")
    (row,) = [line for line in source.splitlines() if line.startswith("| 4") and "ngram" in line]
    assert "fitted, no training" in row and "1.561" in row and "412,960" in row and "0.19 ms" in row
    assert "one seed" not in source
    entry = result["entries"][-1]
    entry["score"] |= {"low": None, "high": None}
    assert "one seed" not in markdown(result, "en")
    entry["fixed"] = False
    assert "one seed" in markdown(result, "en")


def test_how_the_verdicts_were_reached_is_said_with_level_margin_and_plan() -> None:
    source = markdown(example(), "en")
    assert "for all models together with 96 % confidence" in source and "the margin of 1%" in source
    assert "7f83b1657ff1" in source and "7f83b1657ff1" in markdown(example(), "zh")


def test_tables_have_captions_and_charts_have_labels(page: Page) -> None:
    assert len(page.named("caption")) == len(page.named("table")) > 20
    plots = [attributes for attributes in page.named("div") if attributes.get("class") == "plot"]
    assert len(plots) > 20 and all(plot["role"] == "img" and plot["aria-label"] for plot in plots)


def test_every_chart_of_the_page_has_its_data(page: Page) -> None:
    charts = json.loads(page.scripts[0])
    plots = {attributes["id"] for attributes in page.named("div") if attributes.get("class") == "plot"}
    assert plots == set(charts["panels"])
    assert len(charts["styles"]) == len(example()["entries"])


def test_every_link_within_the_page_leads_somewhere(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert all(link["href"].removeprefix("#") in ids for link in page.named("a"))


# safe


def test_nothing_is_loaded_from_anywhere(page: Page) -> None:
    own = "".join((Path(pages.__file__).parent / name).read_text() for name in ("report.css", "report.js"))
    assert not re.search(r"https?:|//[a-z]+\.|url\(|@import|fetch\(|XMLHttpRequest|WebSocket|\bimport\b", own)
    addresses = [a[name] for _, a in page.elements for name in ("src", "href", "action", "srcset") if name in a]
    assert all(address.startswith(("#", "data:,")) for address in addresses)
    (policy,) = [a["content"] for a in page.named("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "unsafe-eval" not in policy
    assert "'unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]


def test_text_from_users_and_models_stays_text() -> None:
    calm, attacked = Page(html(example())), Page(html(hostile(example())))
    assert len(attacked.scripts) == len(calm.scripts) == 3
    assert attacked.scripts[1:] == calm.scripts[1:]
    assert not attacked.named("img")
    assert "<script>alert(1)</script>" in attacked.text  # as text, in names, samples, errors and commands
    assert forest(hostile(example()))["series"][0]["name"].endswith(ATTACK)


def test_markdown_keeps_markup_as_text() -> None:
    result = example()
    result["entries"][0]["sample"]["text"] = "a ```` fence\n```\n<script>alert(1)</script>"
    result["entries"][0]["name"] = "a|b<script>"
    source = markdown(result, "en")
    assert "a\\|b\\<script\\>" in source
    assert "`````text\nThe a ```` fence" in source
    outside = re.sub(r"^(`{3,}).*?^\1$", "", source, flags=re.DOTALL | re.MULTILINE)
    assert "<script>" not in outside.replace("\\<script\\>", "")


# whole, whatever is missing


def without(*keys: str) -> Callable[[dict[str, Any]], None]:
    def change(result: dict[str, Any]) -> None:
        for entry in result["entries"]:
            for key in keys:
                entry.pop(key, None)

    return change


def done(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry for entry in result["entries"] if entry["state"] == "done"]


def nothing_but_names(result: dict[str, Any]) -> None:
    result["entries"] = [{"name": entry["name"], "state": entry["state"]} for entry in result["entries"]]


def all_failed(result: dict[str, Any]) -> None:
    result["entries"] = [entry | {"state": "failed", "error": None, "score": None} for entry in result["entries"]]
    result["best"] = None
    result["recommendation"] = recommend(result)


def no_search(result: dict[str, Any]) -> None:
    without("search")(result)
    result["protocol"]["trials"], result["recipe_table"] = 0, []


def one_seed(result: dict[str, Any]) -> None:
    for entry in done(result):
        entry["runs"] = entry["runs"][:1]
    judged(result)


def older(result: dict[str, Any]) -> None:
    """As an older version wrote it: ties, the n-gram among the baselines, no recommendation in a tie."""
    result["entries"].pop()
    result["baselines"].insert(0, {"name": "ngram", "score": 1.56, "scores": {}, "model": "ngram"})
    result["entries"][1]["against_best"]["verdict"] = "tie"
    for key in ("plan", "margin", "epoch_tokens"):
        del result["protocol"][key]
    for key in ("headline", "certain"):
        del result["recommendation"][key]
    result |= {"tied": ["gru"]}
    result["recommendation"]["choice"] = None


def uneven_curves(result: dict[str, Any]) -> None:
    for number, run in enumerate(result["entries"][0]["runs"]):
        run["curve"] = run["curve"][: 3 * number]
    result["entries"][1]["runs"][0] |= {"state": "failed", "score": None, "curve": None}


def accuracy(result: dict[str, Any]) -> None:
    result["protocol"] |= {"task": "tagging", "metric": "accuracy", "higher_is_better": True}
    result["protocol"]["titles"]["scores"]["accuracy"] = Score(
        "accuracy", ("Word accuracy", "词准确率"), True
    ).to_json()
    for entry in done(result):
        entry["scores"] = {"bits_per_byte": None}
        entry["aspects"] |= {"positions": None, "recall": None, "chance": None}


def nulls(result: dict[str, Any]) -> None:
    for entry in done(result):
        entry["cost"] = {"tokens_per_second": None, "peak_bytes": None, "latency": [], "state": []}
        entry["aspects"] = dict.fromkeys(entry["aspects"])
        entry |= dict.fromkeys(
            ["tuned", "search", "sample", "command", "flops_per_token", "parameters", "against_best"]
        )
        for run in entry["runs"]:
            run |= {"curve": [], "seconds": None, "peak_bytes": None}
    result |= {"baselines": [], "recipe_table": [], "recommendation": None, "timing": None}
    result["protocol"] |= dict.fromkeys(
        ["data", "size", "budget", "space", "shared", "versions", "confidence", "level"]
    )


def empty(result: dict[str, Any]) -> None:
    result.clear()


CHANGES = [
    without("cost"), without("aspects"), without("runs", "sample"), nothing_but_names, all_failed, no_search, one_seed,
    uneven_curves, accuracy, nulls, empty, older,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_missing_parts_break_nothing(change: Callable[[dict[str, Any]], None]) -> None:
    result = example()
    change(result)
    before = copy.deepcopy(result)
    source = html(result)
    assert not Page(source).open
    for text in (*(markdown(result, language) for language in LANGUAGES), "\n".join(table.lines(result))):
        assert not re.search(r"\b(None|nan|inf|Traceback)\b", text)
    assert table.recommendation(result)
    assert result == before


def test_a_failed_model_is_shown_with_its_reason() -> None:
    assert "no width gives 800,000 parameters" in Page(html(example())).text
    assert "no width gives 800,000 parameters" in markdown(example(), "zh")
    assert any(line.startswith("gpt-wide failed: no width") for line in table.lines(example()))


def test_so_is_a_baseline_that_failed() -> None:
    result = example()
    result["baselines"].append({"name": "solved", "model": "solved", "score": None, "scores": {}, "error": "no way"})
    assert "solved failed: no way" in table.lines(result)
    assert any("no way" in line and "solved" in line for line in markdown(result, "en").splitlines())


def test_names_of_baselines_that_stand_close_do_not_overlap() -> None:
    result = example()
    near = [{"name": f"near{n}", "score": 1.5 + n / 1000, "scores": {}} for n in range(5)]
    rules = forest(result | {"baselines": near})["rules"]
    assert [rule["label"] for rule in rules] == ["near0"], "a line without a label says nothing"


def test_with_a_metric_that_should_be_high_the_highest_comes_first() -> None:
    result = example()
    accuracy(result)
    result["best"] = "rnn"
    assert [entry["name"] for _, entry in facts.scored(result)] == ["rnn", "ngram", "gpt", "gru", "lstm"]
    assert "higher is better" in markdown(result, "en") and "越高越好" in markdown(result, "zh")


def test_no_recommendation_is_said() -> None:
    result = example()
    result["recommendation"]["choice"] = None
    assert "No recommendation" in markdown(result, "en") and "不作推荐" in markdown(result, "zh")
    assert table.recommendation(result)[0] == "No recommendation"


# the numbers


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (formats.scaled(1_566_720), "1.57 M"),
        (formats.scaled(214e6, "B"), "214 MB"),
        (formats.scaled(999.7, "B"), "1 kB"),
        (formats.span(0.000413), "0.413 ms"),
        (formats.span(2.5e-5), "25 µs"),
        (formats.fixed(-0.0001, 3, sign=True), "0.000"),
        (formats.fixed(0.0312, 3, sign=True), "+0.031"),
        (formats.fixed(None, 3), "–"),
        (formats.count(1_536_000), "1,536,000"),
        (formats.chance(3e-9), "p < 0.0001"),
        (formats.chance(0.0942), "p = 0.094"),
        (formats.percent(0.038), "3.8 %"),
        (formats.duration(1684), "28 min 4 s"),
        (formats.day("2026-01-01T10:00:00+00:00"), "2026-01-01 10:00 UTC"),
        (formats.day("2026-01-01T10:00:00+08:00"), "2026-01-01 10:00 UTC+08:00"),
        (formats.places([1.5, 4.3], [0.01]), 3),
        (formats.places([1.5], [0.0002]), 4),
    ],
)
def test_numbers_are_short_and_exact(shown: Any, wanted: Any) -> None:
    assert shown == wanted


def test_the_front_holds_what_nothing_beats_in_both() -> None:
    points = {0: (1.0, 2.0), 1: (2.0, 1.0), 2: (3.0, 1.5), 3: (1.0, 3.0)}
    assert facts.front(points, higher=False) == [0, 1]
    assert facts.front(points, higher=True) == [3]


def test_latency_is_compared_at_the_longest_context_that_all_models_reach() -> None:
    result = example()
    result["entries"][2]["cost"]["latency"].pop()
    assert facts.common_context(result) == 1024
    assert "Latency (at 1,024 tokens)" in markdown(result, "en")


def test_a_baseline_that_beats_the_models_is_in_the_chart() -> None:
    result = example()
    result["baselines"][0]["score"] = 0.5
    assert [rule["label"] for rule in forest(result)["rules"]] == ["unigram frequencies"]
    result["baselines"][0]["score"] = 2.5
    assert forest(result)["rules"] == []


def test_recipes_and_architectures_are_weighed_against_each_other() -> None:
    within, between = recipes.spreads(example()) or (0, 0)
    assert within == pytest.approx((0.0397 + 0.0642) / 2) and between == pytest.approx(1.6105 - 1.4790)
    assert "architecture matters more" in markdown(example(), "en")


def test_recall_reaches_as_far_as_it_is_above_half_way() -> None:
    entry = {
        "aspects": {"chance": 0.5, "recall": [{"distance": d, "accuracy": a} for d, a in ((2, 1), (4, 0.8), (8, 0.7))]}
    }
    assert facts.reach(entry) == (4, False)
    entry["aspects"]["chance"] = 0.0
    assert facts.reach(entry) == (8, True)


# files and the terminal


def test_three_files_are_written(tmp_path: Path) -> None:
    path = write_report(example(), tmp_path / "new" / "folder")
    assert path.name == "report.html" and path.stat().st_size < 6_000_000
    assert sorted(file.name for file in path.parent.iterdir()) == ["report.html", "report.md", "report.zh-CN.md"]
    assert "推荐" in (path.parent / "report.zh-CN.md").read_text(encoding="utf-8")


def test_markdown_has_the_curves_as_tables() -> None:
    source = markdown(example(), "en")
    assert "| Training tokens | lstm | gru | gpt | rnn |" in source
    assert "| Distance in tokens | lstm | gru | gpt | rnn |" in source
    assert "| Context length in tokens | lstm | gru | gpt | ngram | rnn |" in source
    for block in re.findall(r"(?:^\|.*\n)+", source, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


@pytest.mark.parametrize("width", [60, 80, 100])
def test_the_terminal_table_keeps_to_its_width(width: int) -> None:
    result = example()
    result["entries"][1]["name"] = "一个很长很长的名字，比一列还要长"
    lines = table.lines(result, width) + table.recommendation(result, width)
    assert max(table._width(line) for line in lines) <= width
    assert "verdict" in lines[0] if width >= 80 else "loss" in lines[0]


def test_the_terminal_table_names_scores_as_json_does() -> None:
    head = table.lines(example(), 120)[0]
    assert " loss " in head and "bits per byte" in head and "score" not in head


def test_a_report_loads_no_torch() -> None:
    script = "import sys, seqloom.compare.report, seqloom.compare.report.table; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0
