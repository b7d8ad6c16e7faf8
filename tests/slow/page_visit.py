"""The page in a real browser, and how each of its views is used."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from page_stub import TOKEN, Stub
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
SEEN = "section.view:not([hidden])"


@contextmanager
def opened() -> Iterator[Browser]:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.fail(f"no browser found ({', '.join(NAMES)}): install chromium to run these tests")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=QUIET)
        yield browser
        browser.close()


class Visit:
    """The page in a new window, with all that it asked for and complained of."""

    def __init__(self, browser: Browser, stub: Stub, width: int = 1400, theme: Any = "light", locale: str = "en-US"):
        self.stub, self.width = stub, width
        window = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, locale=locale)
        self.tab: Page = window.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.on("console", lambda message: self.complaints.append(message.text))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("dialog", lambda dialog: (self.complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))

    def enter(self) -> Visit:
        self.tab.goto(f"{self.stub.address}/#token={TOKEN}")
        self.tab.wait_for_selector(SEEN)
        return self

    def view(self, address: str) -> None:
        self.tab.evaluate("address => { location.hash = `#/${address}` }", address)
        self.tab.wait_for_selector(f"section.{address.split('/')[0]}:not([hidden])")

    def fits(self) -> bool:
        return bool(self.tab.evaluate("document.documentElement.scrollWidth") == self.width)

    def press(self, name: str) -> None:
        self.tab.locator(SEEN).get_by_role("button", name=name, exact=True).click()

    def close(self) -> None:
        outside = [url for url in self.requests if not url.startswith((self.stub.address, "data:", "blob:"))]
        self.tab.context.close()
        assert not outside + self.complaints, (outside, self.complaints)


def use_runs(visit: Visit) -> None:
    visit.tab.wait_for_selector(f"{SEEN} tbody tr")
    for number in range(2):
        visit.tab.locator("tbody input[type=checkbox]").nth(number).check()
    if visit.tab.locator(".fold").count():
        visit.tab.locator(".fold").first.click()
    visit.tab.wait_for_selector(".curves .chart")


def use_playground(visit: Visit) -> None:
    for number in range(2):
        visit.tab.locator(".ticks input").nth(number).set_checked(True)
    visit.tab.locator(".playground textarea").fill("Once upon a time")
    visit.tab.keyboard.press("Control+Enter")
    visit.tab.wait_for_selector(".token >> nth=79")
    visit.tab.wait_for_selector(".playground .acts button.main:not(:disabled)")
    visit.tab.locator(".token").nth(5).click()
    visit.tab.wait_for_selector(".alternatives .bar-row")


def use_predict(visit: Visit) -> None:
    choice = visit.tab.locator(".predict select").first
    for number in range(choice.locator("option").count()):
        choice.select_option(index=number)
        visit.tab.locator(".predict .acts .quiet").nth(1).click()
        visit.tab.locator(".predict button.main").click()
        visit.tab.wait_for_selector(".predict tbody tr")


def use_frame(visit: Visit) -> None:
    visit.tab.locator(f"{SEEN} textarea").first.fill("How long is the guarantee?")
    visit.tab.keyboard.press("Control+Enter")
    visit.tab.wait_for_selector(f"{SEEN} iframe")


def use_compare(visit: Visit) -> None:
    visit.tab.wait_for_selector(".compare table")
    visit.tab.locator("details.panel summary").first.click()
    visit.tab.locator(".order select").first.select_option("sample:languages")
    visit.tab.wait_for_selector(".order .ticks")


def use_nothing(visit: Visit) -> None:
    visit.tab.wait_for_timeout(300)


USES: dict[str, Callable[[Visit], None]] = {
    "runs": use_runs,
    "playground": use_playground,
    "predict": use_predict,
    "explain": use_frame,
    "compare": use_compare,
    "compare/compare-0": use_nothing,
    "compare/job/j1": use_nothing,
    "ask": use_frame,
    "studies": use_nothing,
}
