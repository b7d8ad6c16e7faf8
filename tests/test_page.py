"""The page of the server, without a browser: its texts, its policy, and what its files may not contain."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from seqloom.pages.shell import part

PAGE = Path(__file__).parent.parent / "seqloom" / "serve" / "page"
FILES = {path.name: path.read_text(encoding="utf-8") for path in sorted(PAGE.iterdir())}
SCRIPTS = {name: text for name, text in FILES.items() if name.endswith(".js")}
GROUPS = (
    "column",
    "end",
    "explain",
    "kind",
    "measure",
    "option",
    "status",
    "study",
    "task",
    "verdict",
)  # keys made from a name


def pairs() -> list[tuple[str, list[str]]]:
    text = SCRIPTS["terms.js"]
    found: list[tuple[str, list[str]]] = json.loads(
        text[text.index("{") : text.rindex("}") + 1], object_pairs_hook=list
    )
    return found


TERMS = dict(pairs())


def test_every_text_is_there_once_and_in_both_languages() -> None:
    assert len(pairs()) == len(TERMS) > 150
    for key, (english, chinese) in TERMS.items():
        assert english.strip() and chinese.strip(), key
        if key != "language":  # its own name in the other language
            assert english.isascii() and not re.search("[\u3400-\u9fff]", english), key
        assert sorted(re.findall(r"\{(\w+)\}", english)) == sorted(re.findall(r"\{(\w+)\}", chinese)), key
    untranslated = [key for key, (_, chinese) in TERMS.items() if not re.search("[\u3400-\u9fff]", chinese)]
    assert sorted(untranslated) == ["language", "option.top_k", "option.top_p"]


def test_every_text_that_a_script_asks_for_exists_and_every_text_is_asked_for() -> None:
    rest = "".join(text for name, text in SCRIPTS.items() if name != "terms.js")
    asked = set(re.findall(r'\bt\("([^"]+)"', rest))
    assert asked <= set(TERMS)
    made = {key for key in TERMS if key.split(".")[0] in GROUPS or key.endswith((".what", ".note"))}
    assert [key for key in TERMS if key not in asked | made and f'"{key}"' not in rest] == []


@pytest.mark.parametrize("name", FILES)
def test_a_file_holds_nothing_that_could_run_a_text_or_leave_the_server(name: str) -> None:
    text = FILES[name]
    forbidden = r"innerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setTimeout\(\s*[\"'`]|javascript:"
    assert not re.search(forbidden, text)
    assert re.findall(r"https?://[^\s\"'<]+", text) in ([], ["http://www.w3.org/2000/svg"])
    assert not re.search(r"url\(|@import", text)
    assert len(text.splitlines()) <= 350 and text.endswith("\n")
    assert max(map(len, text.splitlines())) <= 260


def test_the_shell_has_no_script_or_style_of_its_own() -> None:
    shell = FILES["index.html"]
    assert not re.search(r"<script(?! (type=\"module\" )?src=\"/static/[\w.]+\"></script>)", shell)
    assert not re.search(r"<style|\sstyle=|\son\w+=", shell)
    linked = re.findall(r'(?:src|href)="/static/([\w.]+)"', shell)
    assert set(linked) <= set(FILES) and {"main.js", "theme.js", "look.css", "parts.css", "views.css"} <= set(linked)


def test_scripts_import_only_each_other_and_all_that_they_name() -> None:
    for name, text in SCRIPTS.items():
        for names, source in re.findall(r'import \{([^}]+)\} from "\./([\w.]+)"', text):
            exported = set(re.findall(r"export (?:const|function|async function|class) (\w+)", FILES[source]))
            assert {one.strip() for one in names.split(",")} <= exported, (name, source)
        for one in re.findall(r"import \{([^}]+)\}", text):
            for used in (name.strip() for name in one.split(",")):
                assert len(re.findall(rf"\b{used}\b", text)) > 1, one
    views = re.findall(r'"(\w+)"', re.search(r"const VIEWS = \[(.*?)\]", SCRIPTS["main.js"])[1])  # type: ignore[index]
    assert all("export function create(" in SCRIPTS[f"{view}.js"] for view in views) and len(views) == 7


def test_the_colours_are_those_of_the_reports() -> None:
    light, dark = part("base.css").split("@media screen", 1)
    ours = {
        name: (day, night)
        for name, day, night in re.findall(r"(--[\w-]+): light-dark\((#\w+), (#\w+)\)", FILES["look.css"])
    }
    day, night = (dict(re.findall(r"(--[\w-]+): (#\w+)", text)) for text in (light, dark))
    assert ours == {name: (day[name], night[name]) for name in day}
