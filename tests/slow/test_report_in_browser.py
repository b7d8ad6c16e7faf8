"""The report in a real browser: it loads nothing, complains of nothing, draws every chart and fits the window."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright
from playwright.sync_api import Page as Tab

sys.path.insert(0, str(Path(__file__).parent.parent))

from compare_example import example
from support import write_report
from test_compare_report import CHANGES, hostile

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.fail(f"no browser found ({', '.join(NAMES)}): install chromium to run these tests")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=QUIET)
        yield opened
        opened.close()


class Visit:
    """A report in a new window, with all that it asked for and complained of."""

    def __init__(self, browser: Browser, page: Path, width: int = 1280, theme: Any = "light", locale: str = "en-US"):
        window = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, locale=locale)
        self.tab: Tab = window.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.on("console", lambda message: self.complaints.append(message.text))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.address = page.as_uri()
        self.tab.goto(self.address)

    def undrawn(self) -> list[str]:
        """Charts of the visible language that are empty."""
        return self.tab.evaluate(
            "[...document.querySelectorAll('article:not([hidden]) .plot')]"
            ".filter(plot => !plot.querySelector('.scatterlayer .trace')).map(plot => plot.id)"
        )

    def close(self) -> None:
        assert self.requests == [self.address]
        assert self.complaints == []
        self.tab.context.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(example(), tmp_path_factory.mktemp("report"))


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("locale", "title"), [("en-US", "Which sequence model"), ("zh-CN", "该选哪种序列模型")])
def test_it_is_drawn_whole(browser: Browser, report: Path, width: int, theme: str, locale: str, title: str) -> None:
    visit = Visit(browser, report, width, theme, locale)
    assert title in visit.tab.title() and title in visit.tab.inner_text("article:visible h1")
    assert visit.tab.locator("article:visible").count() == 1
    assert visit.undrawn() == []
    assert visit.tab.evaluate("document.documentElement.scrollWidth") == width
    visit.close()


def test_the_language_can_be_switched_and_is_remembered(browser: Browser, report: Path) -> None:
    visit = Visit(browser, report)
    visit.tab.get_by_role("button", name="中文").click()
    assert visit.tab.url.endswith("#zh") and visit.tab.evaluate("document.documentElement.lang") == "zh-CN"
    assert "训练词元数" in visit.tab.text_content("#zh-learning-0") and visit.undrawn() == []
    visit.close()
    again = Visit(browser, report)
    again.tab.goto(f"{again.address}#zh-cost")
    assert again.tab.locator("article[lang=zh-CN]").is_visible()
    again.tab.context.close()


def test_charts_follow_light_and_dark(browser: Browser, report: Path) -> None:
    visit = Visit(browser, report)
    colour = "getComputedStyle(document.querySelector('#en-learning-0 .xtick text')).fill"
    light = visit.tab.evaluate(colour)
    visit.tab.emulate_media(color_scheme="dark")
    visit.tab.wait_for_function(f"{colour} !== {light!r}")
    visit.close()


def test_a_model_can_be_hidden_in_all_charts(browser: Browser, report: Path) -> None:
    visit = Visit(browser, report)
    marks = visit.tab.locator("#en-cost-0 .scatterlayer .trace")
    before = marks.count()
    visit.tab.locator("article:visible .legend button", has_text="gru").first.click()
    assert marks.count() == before - 1
    assert visit.tab.locator("article:visible .legend button[aria-pressed=false]").count() == 5
    visit.close()


def test_it_prints_light_and_unfolded(browser: Browser, report: Path) -> None:
    visit = Visit(browser, report, theme="dark")
    watch = (
        "window.addEventListener('beforeprint', () => { window.printed = {"
        "folded: document.querySelectorAll('details:not([open])').length,"
        "text: getComputedStyle(document.querySelector('#en-cost-0 .xtick text')).fill,"
        "right: Math.max(...[...document.querySelectorAll('article:not([hidden]) .plot svg')]"
        ".map(s => s.getBoundingClientRect().width)) } })"
    )
    visit.tab.evaluate(watch)
    paper = visit.tab.pdf(prefer_css_page_size=True, print_background=True)
    printed = visit.tab.evaluate("window.printed")
    assert paper.startswith(b"%PDF") and len(paper) > 50_000
    assert printed["folded"] == 0 and printed["text"] == "rgb(86, 93, 102)" and printed["right"] <= 688
    assert visit.tab.locator("details[open]").count() == 0
    visit.close()


def test_text_from_users_and_models_does_nothing(browser: Browser, tmp_path: Path) -> None:
    visit = Visit(browser, write_report(hostile(example()), tmp_path))
    assert visit.undrawn() == []
    assert "<script>alert(1)</script>" in visit.tab.text_content("#en-samples")
    assert "<script>alert(1)</script>" in visit.tab.text_content("#en-cost")
    visit.close()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_missing_parts_break_nothing(browser: Browser, tmp_path: Path, change: Any) -> None:
    result = example()
    change(result)
    visit = Visit(browser, write_report(result, tmp_path))
    assert visit.undrawn() == []
    visit.close()
