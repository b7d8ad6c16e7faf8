"""The explanation page: whole, in two languages, asks for nothing, and takes no text of a user or a model for HTML."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import small_fit, small_translation, text

import seqloom
from seqloom.explain.explanation import Explanation
from seqloom.explain.figure import drawing, label
from seqloom.explain.packing import PLAIN, in_blocks, packed
from seqloom.explain.remarks import NAMES, SENTENCES
from seqloom.explain.words import WORDS
from seqloom.pages import shell
from seqloom.runs.run import Run

HOSTILE = '</script><img src=x onerror=alert(1)>&"\u2028'


class Found(HTMLParser):
    """The elements of a page, its addresses and its data."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str | None] = []
        self.handlers: list[str] = []
        self.script: str | None = None
        self.data = ""
        self.feed(content)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "action", "data")]
        self.handlers += [name for name, _ in attributes if name.startswith("on")]
        self.script = dict(attributes).get("type") if tag == "script" else None

    def handle_data(self, data: str) -> None:
        if self.script == "application/json":
            self.data += data


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory, own_cache: None) -> Run:
    folder = tmp_path_factory.mktemp("book")
    (folder / "book.txt").write_text(HOSTILE * 3 + text(2500))
    return small_fit(folder / "book.txt", folder / "run", "gpt", ["train.steps=2", "model.context=64"])


@pytest.fixture(scope="module")
def explained(book: Run) -> Explanation:
    found = book.explain("the " + HOSTILE)
    assert isinstance(found, Explanation)
    return found


def data_of(page: str) -> Any:
    return json.loads(Found(page).data)


def test_hostile_tokens_stay_text(explained: Explanation) -> None:
    page = explained.page()
    found = Found(page)
    assert "img" not in found.tags and not found.handlers
    assert found.tags.count("script") == 1 + page.count("<script>")  # the data, and the page's own
    assert "".join(json.loads(found.data)["runs"][0]["inputs"]) == "the " + HOSTILE


def test_the_page_asks_for_nothing_and_knows_light_and_dark(explained: Explanation) -> None:
    page = explained.page()
    assert Found(page).addresses == ["data:,"]
    outside = re.sub(r"http://www\.w3\.org/2000/svg", "", page)  # the name of a format, not an address
    assert not re.search(r"https?://|url\(|@import|fetch\(|XMLHttpRequest", outside)
    assert "default-src 'none'" in page and "prefers-color-scheme: dark" in page


def test_only_the_scripts_of_the_page_may_run(explained: Explanation) -> None:
    page = explained.page()
    assert page.count("sha256-") == len(re.findall("<script>", page))
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", page)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_has_both_languages_and_opens_in_one(explained: Explanation, language: str) -> None:
    found = data_of(explained.page(language))
    assert found["language"] == language and found["words"]["influence"] == ["Influence", "影响"]


def test_every_text_that_the_scripts_say_is_known_in_both_languages() -> None:
    scripts = [shell.part(path.name) for path in sorted(Path(shell.__file__).parent.glob("explain*.js"))]
    said = {key for script in scripts for key in re.findall(r'\bsay\("([^"]+)"', script)}
    assert said and said <= WORDS.keys()
    for english, chinese in WORDS.values():
        assert set(re.findall(r"\{\w+\}", english)) == set(re.findall(r"\{\w+\}", chinese))
        assert english and chinese


def test_remarks_of_views_are_known_in_chinese() -> None:
    for pattern, chinese in SENTENCES.items():
        re.compile(pattern)
        assert re.search(r"[\u4e00-\u9fff]", chinese)
    assert all(re.search(r"[\u4e00-\u9fff]", chinese) for chinese in NAMES.values())


def test_views_that_there_are_not_are_listed_with_the_reason(explained: Explanation) -> None:
    side = data_of(explained.page())["runs"][0]
    assert set(side["views"]) == {"predictions", "influence", "attention", "lens"}
    assert list(side["missing"]) == ["memory"] and "no recurrent memory" in side["missing"]["memory"]


def test_large_arrays_are_packed_and_come_back(explained: Explanation) -> None:
    values = np.random.default_rng(0).normal(size=(90, 100))
    assert values.size > PLAIN
    found = packed(values)
    steps = np.frombuffer(base64.b64decode(found["data"]), "<i2").reshape(found["shape"])
    assert np.abs(steps * found["scale"] - values).max() < 1e-3 * np.abs(values).max()
    assert packed(values[:3, :4])["values"][0] == pytest.approx(values[0, 0], rel=1e-3)


def test_a_map_that_is_too_large_is_shown_in_blocks_by_their_strongest_value() -> None:
    values = np.zeros((7, 5))
    values[3, 4] = -2.0
    blocks = in_blocks(values, 2)
    assert blocks.shape == (4, 3) and blocks[1, 2] == -2.0 and np.abs(blocks).sum() == 2.0
    assert packed(np.zeros((300, 300)), most=10_000)["step"] == 3


def test_nan_becomes_a_number_that_can_be_drawn() -> None:
    assert packed(np.array([np.nan, 1.0]))["values"] == [0.0, 1.0]


def test_the_figure_is_xml_that_stands_alone(explained: Explanation) -> None:
    from xml.etree import ElementTree

    content = explained.figure()
    root = ElementTree.fromstring(content)
    assert root.tag.endswith("svg") and "alert(1)" not in re.sub(r">[^<]*<", "><", content)
    cells = [found for found in root.iter() if found.get("class") in ("for", "against")]
    assert cells


def test_labels_show_white_space_and_what_cannot_be_printed() -> None:
    assert label("\n") == "↵" and label(" a") == "␣a" and label("x" * 50) == "x" * 23 + "…"
    assert label("\x00") == "\\u0000" and label("字") == "字" and label("word: B-PER") == "word: B-PER"


def test_a_long_figure_is_drawn_in_blocks() -> None:
    width, height, _ = drawing(np.ones((1000, 1000)), ["a"] * 1000, ["b"] * 1000, "long")
    assert width < 1200 and height < 1200


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(explained: Explanation) -> None:
    shown = explained._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and 'sandbox="allow-scripts"' in shown
    assert Found(shown).tags == ["iframe"]


def test_two_runs_share_a_page_with_their_difference(book: Run, tmp_path: Path) -> None:
    found = seqloom.explain([book, book], "the cat")
    shown = data_of(found.page())
    assert len(shown["runs"]) == 2 and shown["difference"]["facts"]["aligned"] == "output"
    assert not np.any(found.difference.tensors["influence"]) and not np.any(found.difference.tensors["loss"])
    assert found.save(tmp_path / "two.svg").read_text().count("<g ") == 2


def test_the_alignment_of_a_translation_is_on_its_page(tmp_path: Path) -> None:
    run = small_translation(tmp_path, "transformer", "model.depth=1", "model.heads=2")
    found = run.explain("the <b> sees a dog", target="le &b voit un chien")
    side = data_of(found.page())["runs"][0]
    assert side["views"]["alignment"]["facts"]["source_tokens"] == ["the", "<b>", "sees", "a", "dog", "<eos>"]
    assert side["views"]["alignment"]["tensors"]["mean"]["shape"] == [6, 6]
    assert "<b>" not in found.page()
