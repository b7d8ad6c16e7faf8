"""The page of the server in a real browser: every view fits, complains of nothing, is accessible, and runs no text."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from page_data import Payloads
from page_payloads import PAYLOADS
from page_stub import TOKEN, Stub
from page_visit import SEEN, USES, Visit, opened

OPEN_ALL = """section => {
  for (const one of section.querySelectorAll("details")) one.open = true;
  const seen = [...section.querySelectorAll(".token, a, button")].slice(0, 60);
  for (const one of seen) one.dispatchEvent(new Event("pointerover", { bubbles: true }));
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened() as found:
        yield found


@pytest.fixture
def stub() -> Iterator[Stub]:
    server = Stub().started()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize(("theme", "locale"), [("light", "en-US"), ("dark", "zh-CN")])
def test_every_view_can_be_used_and_fits_the_window(
    browser: Browser, stub: Stub, width: int, theme: str, locale: str
) -> None:
    visit = Visit(browser, stub, width, theme, locale).enter()
    for address, use in USES.items():
        visit.view(address)
        use(visit)
        assert visit.fits(), address
    visit.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_no_view_has_a_serious_fault_of_accessibility(browser: Browser, stub: Stub, theme: str, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    visit = Visit(browser, stub, width, theme).enter()
    found = []
    for address, use in USES.items():
        visit.view(address)
        use(visit)
        told = Axe().run(visit.tab).response
        assert len(told["passes"]) > 10
        for fault in told["violations"]:
            if fault["impact"] in ("serious", "critical"):
                found.append((address, fault["id"], fault["nodes"][0]["html"], fault["nodes"][0].get("failureSummary")))
    visit.tab.keyboard.press("?")
    assert not found
    visit.close()


def test_a_hundred_texts_that_would_run_do_not(browser: Browser) -> None:
    assert len(set(PAYLOADS)) >= 100
    texts = Payloads(PAYLOADS)
    server = Stub(number=60, text=texts)
    visit = Visit(browser, server.started()).enter()
    for address in USES:
        visit.view(address)
        if address in ("runs", "playground", "predict"):
            USES[address](visit) if address != "playground" else play(visit)
        visit.tab.wait_for_timeout(300)
        visit.tab.locator(SEEN).evaluate(OPEN_ALL)
    assert texts.used == set(PAYLOADS)
    assert visit.tab.evaluate("window.ran ?? 0") == 0
    assert visit.tab.locator("main script, main img, main object, main embed, main svg script").count() == 0
    assert not [url for url in visit.requests if "ran" in url.rsplit("/", 1)[-1] and not url.endswith(".js")]
    visit.close()
    server.shutdown()


def play(visit: Visit) -> None:
    visit.tab.locator(".ticks input").first.set_checked(True)
    visit.tab.locator(".playground textarea").fill(PAYLOADS[0])
    visit.tab.keyboard.press("Control+Enter")
    visit.tab.wait_for_selector(".token >> nth=30")
    visit.tab.locator(".token").nth(5).hover()
    visit.tab.locator(".token").nth(5).click()


def test_a_thousand_runs_stay_quick(browser: Browser) -> None:
    server = Stub(number=1000).started()
    visit = Visit(browser, server).enter()
    visit.tab.wait_for_selector(f"{SEEN} tbody tr")
    assert visit.tab.locator(f"{SEEN} tbody tr").count() <= 60
    script = """async act => {
      const began = performance.now();
      if (act === 'sort') document.querySelector('[data-key=sort-score]').click();
      const box = document.querySelector('input[type=search]');
      if (act === 'filter') { box.value = 'gpt'; box.dispatchEvent(new Event('input')); }
      document.body.getBoundingClientRect();
      return performance.now() - began;
    }"""
    took = {act: [visit.tab.evaluate(script, act) for _ in range(5)] for act in ("sort", "filter")}
    print(json.dumps(took))
    assert all(sorted(times)[2] < 200 for times in took.values())
    visit.close()
    server.shutdown()


def test_the_first_paint_comes_within_a_second(browser: Browser, stub: Stub) -> None:
    visit = Visit(browser, stub).enter()
    paints = visit.tab.evaluate("performance.getEntriesByType('paint').map(one => [one.name, one.startTime])")
    print(paints)
    assert dict(paints)["first-contentful-paint"] < 1000
    visit.close()


def test_the_token_is_taken_from_the_address_or_asked_for(browser: Browser, stub: Stub) -> None:
    visit = Visit(browser, stub)
    visit.tab.goto(stub.address)
    visit.tab.fill("input[type=password]", "wrong")
    visit.tab.keyboard.press("Enter")
    visit.tab.wait_for_selector(".login .fault")
    visit.tab.fill("input[type=password]", f"{stub.address}/#token={TOKEN}")
    visit.tab.keyboard.press("Enter")
    visit.tab.wait_for_selector(f"{SEEN} tbody tr")
    visit.tab.context.close()
    visit = Visit(browser, stub).enter()
    assert TOKEN not in visit.tab.url and TOKEN not in visit.tab.evaluate(
        "JSON.stringify([localStorage, sessionStorage])"
    )
    visit.tab.reload()
    visit.tab.wait_for_selector(f"{SEEN} tbody tr")
    visit.close()


def test_an_alternative_is_continued_from(browser: Browser, stub: Stub) -> None:
    visit = Visit(browser, stub).enter()
    visit.view("playground")
    USES["playground"](visit)
    visit.tab.locator(".alternatives button", has_text="river").click()
    visit.tab.wait_for_selector(".token[data-n='5']:has-text('river')")
    visit.tab.wait_for_selector(".token[data-n='30'] >> nth=1")
    asked = [body for path, body in stub.asked if path.endswith("/generate")]
    assert [one["prompt"] for one in asked] == ["Once upon a time"] * 2 + [
        "Once upon a time the time machine stood in river"
    ]
    assert all(one["logprobs"] == 8 for one in asked)
    visit.close()


def test_keys_alone_reach_the_alternatives(browser: Browser, stub: Stub) -> None:
    visit = Visit(browser, stub).enter()
    visit.tab.keyboard.press("2")
    visit.tab.wait_for_selector("section.playground:not([hidden]) textarea")
    visit.tab.keyboard.press("/")
    visit.tab.keyboard.type("Once")
    visit.tab.keyboard.press("Control+Enter")
    visit.tab.wait_for_selector(".token >> nth=39")
    visit.tab.locator(".token").first.focus()
    assert visit.tab.is_visible("#tip")
    visit.tab.keyboard.press("ArrowRight")
    visit.tab.keyboard.press("Enter")
    assert visit.tab.evaluate("document.activeElement.className").startswith("bar-row")
    visit.close()


def test_predictions_are_saved_without_formulas(browser: Browser, stub: Stub) -> None:
    visit = Visit(browser, stub).enter()
    visit.view("predict")
    visit.tab.locator(".predict textarea").fill('text\n=1+1\n@SUM(A1)\n-5\n"a,""b"""')
    visit.press("Predict")
    visit.tab.wait_for_selector(".predict tbody tr")
    with visit.tab.expect_download() as found:
        visit.press("Save as CSV")
    text = Path(found.value.path()).read_bytes().decode()
    assert (
        "\r\n1,'=1+1,pl" in text
        and "\r\n2,'@SUM(A1),pl" in text
        and "\r\n3,-5,pl" in text
        and '\r\n4,"a,""b""",pl' in text
    )
    visit.close()


def test_a_dropped_file_is_uploaded_and_predicted(browser: Browser, stub: Stub) -> None:
    visit = Visit(browser, stub).enter()
    visit.view("predict")
    visit.tab.locator(".predict input[type=file]").set_input_files(
        files=[{"name": "names.txt", "mimeType": "text/plain", "buffer": b"Oslo\nRoma"}]
    )
    visit.press("Predict")
    visit.tab.wait_for_selector(".predict tbody tr >> nth=1")
    assert stub.asked[-1][1] == {"upload": "0" * 32}
    visit.close()


def test_a_comparison_is_started_and_its_report_shown(browser: Browser, stub: Stub) -> None:
    visit = Visit(browser, stub).enter()
    USES["runs"](visit)
    visit.press("Compare these")
    visit.tab.wait_for_selector(".order .ticks")
    visit.press("Start the comparison")
    visit.tab.wait_for_selector("text=Show the report")
    order: Any = stub.asked[-1][1]
    assert {name: order[name] for name in ("kind", "data", "task", "models", "budget")} == {
        "kind": "compare", "data": "sample:languages", "task": "classification", "models": ["mamba2", "ttt"],
        "budget": "minutes=5",
    }  # fmt: skip
    visit.press("Show the report")
    report = visit.tab.frame_locator("iframe")
    assert report.locator("#told").inner_text() == "Drawn by the page's own script."
    assert visit.tab.get_attribute("iframe", "sandbox") == "allow-scripts"
    visit.close()


def test_a_view_is_saved_as_one_file_that_runs_nothing(browser: Browser, stub: Stub, tmp_path: Path) -> None:
    visit = Visit(browser, stub).enter()
    USES["runs"](visit)
    with visit.tab.expect_download() as found:
        visit.tab.keyboard.press("s")
    saved = tmp_path / "saved.html"
    found.value.save_as(saved)
    text = saved.read_text()
    assert "<script" not in text and "default-src 'none'" in text and "<button" not in text
    visit.close()
    page = browser.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(saved.as_uri())
    assert page.locator("tbody tr").count() > 5 and page.locator(".chart").is_visible() and requests == [saved.as_uri()]
    page.close()


def test_a_lost_server_is_told_and_found_again(browser: Browser) -> None:
    server = Stub().started()
    visit = Visit(browser, server).enter()
    visit.tab.wait_for_selector(f"{SEEN} tbody tr")
    server.shutdown()
    server.server_close()
    visit.view("studies")
    visit.tab.wait_for_selector("#banner:not([hidden])")
    again = Stub(server.server_address[1]).started()
    visit.tab.wait_for_selector("#banner", state="hidden")
    visit.tab.wait_for_selector(".card")
    visit.tab.context.close()
    again.shutdown()


def test_a_new_server_teaches_what_to_do(browser: Browser) -> None:
    server = Stub(empty=True).started()
    visit = Visit(browser, server, 390).enter()
    for address in ("runs", "playground", "predict", "explain", "compare", "ask", "studies"):
        visit.view(address)
        visit.tab.wait_for_selector(f"{SEEN} .command")
        assert "seqloom" in visit.tab.locator(f"{SEEN} .command code").first.inner_text() and visit.fits()
    visit.close()
    server.shutdown()


def test_language_and_colours_can_be_switched_and_are_remembered(browser: Browser, stub: Stub) -> None:
    visit = Visit(browser, stub).enter()
    visit.view("playground")
    visit.tab.locator(".playground textarea").fill("kept")
    visit.tab.get_by_role("button", name="中文").click()
    assert (
        visit.tab.inner_text("#title-playground") == "试用" and visit.tab.input_value(".playground textarea") == "kept"
    )
    colour = "getComputedStyle(document.body).backgroundColor"
    light = visit.tab.evaluate(colour)
    visit.tab.keyboard.press("Escape")
    visit.tab.get_by_role("button", name="切换浅色和深色").click()
    assert visit.tab.evaluate(colour) != light
    visit.tab.reload()
    visit.tab.wait_for_selector("text=试用")
    assert visit.tab.evaluate(colour) != light
    visit.close()
