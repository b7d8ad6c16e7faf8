"""Every study: complete in both languages, runs quickly, decides by its rule; the gallery shows what was measured."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

import seqloom
from seqloom import cli
from seqloom.core.errors import RunError, UserError
from seqloom.pages.drawing import draw
from seqloom.pages.plots import Bars, BarSeries, Curve, Heat, Level, Lines
from seqloom.pages.words import LANGUAGES
from seqloom.studies import _running
from seqloom.studies._gallery import html_index, html_page, markdown_files
from seqloom.studies._record import Record, load
from seqloom.studies._registry import find_study, study_names
from seqloom.studies._study import DOCUMENTS, VERDICTS, finite
from seqloom.weights.packages import PACKAGES

ROOT = Path(__file__).parent.parent
NAMES = study_names()
CHINESE = re.compile(r"[\u4e00-\u9fff]")
OUTSIDE = re.compile(r"""(?:src|href)=["']?(?:https?:)?//|url\(|@import""")
PLACEHOLDER = re.compile(r"\{[a-z_][a-z_.]*\}")  # a text that was not filled in
LARGEST = 30_000  # bytes of a figure


@cache
def quick(name: str) -> Record:
    return seqloom.study(name, quick=True, quiet=True)


def texts(value: object) -> list[tuple[str, str]]:
    """Every pair of texts in a study or a finding."""
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(part, str) for part in value):
        return [value]
    if isinstance(value, list | tuple):
        return [pair for part in value for pair in texts(part)]
    return [pair for part in vars(value).values() for pair in texts(part)] if hasattr(value, "__dict__") else []


@pytest.mark.parametrize("name", NAMES)
def test_a_study_states_claim_source_and_rule_in_both_languages(name: str) -> None:
    study = find_study(name)
    first = (ROOT / "seqloom" / "studies" / f"{name}.py").read_text(encoding="utf-8").splitlines()[0]
    assert first.strip('"') == study.title[0]
    for english, chinese in (study.title, study.claim, study.rule, *study.remarks):
        assert english and CHINESE.search(chinese) and not CHINESE.search(english)
    assert study.sources and all(section for document, section in study.sources if document in DOCUMENTS)


def test_every_claim_has_one_study() -> None:
    numbers = [find_study(name).number for name in NAMES]
    assert len(numbers) == len(set(numbers))
    assert numbers == sorted(numbers, key=lambda number: number or 10**6)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_quick_run_decides_and_its_numbers_are_finite(name: str) -> None:
    record = quick(name)
    finding = record.finding
    assert record.quick and finding.verdict in VERDICTS
    assert finite(record.facts()) and finding.numbers and finding.figure
    assert all(one.low is None or one.high is None or one.low <= one.value <= one.high for one in finding.numbers)
    pairs = [pair for pair in texts(finding) if pair != ("", "")]
    assert all(english and chinese for english, chinese in pairs)
    assert not [text for pair in pairs for text in pair if PLACEHOLDER.search(text)]
    assert all(CHINESE.search(pair[1]) for pair in (finding.summary, finding.protocol, finding.caption))


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_read_back_as_it_was_written(name: str, tmp_path: Path) -> None:
    quick(name).save(tmp_path / "result.json")
    assert load(tmp_path / "result.json").facts() == quick(name).facts()


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_a_study_asks_for_nothing_outside_and_its_figure_is_small(name: str) -> None:
    record = quick(name)
    page = html_page(record)
    assert not OUTSIDE.search(page) and "plotly" not in page
    assert all(record.finding.summary[n].split()[0] in page for n in range(len(LANGUAGES)))
    assert "too small to judge" in page and "too small to judge" in str(record)
    for language in LANGUAGES:
        assert len(record.drawn(language).encode()) < LARGEST


@pytest.fixture(scope="module")
def gallery() -> ModuleType:
    spec = spec_from_file_location("gallery", ROOT / "docs" / "gallery.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_gallery_of_the_documentation_is_what_the_results_render(gallery: ModuleType) -> None:
    records = gallery.records()
    assert {record.name for record in records} == {path.stem for path in gallery.RESULTS.glob("*.json")}
    wanted = markdown_files(records)
    found = [path for folder in ("studies", "zh/studies") for path in (ROOT / "docs" / folder).glob("*.*")]
    assert {path.relative_to(ROOT / "docs").as_posix() for path in found} == set(wanted)
    for name, text in wanted.items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, f"{name}: run python docs/gallery.py"


def test_results_of_the_gallery_are_full_runs(gallery: ModuleType) -> None:
    assert [record.name for record in gallery.records() if record.quick] == []


def test_texts_of_the_gallery_are_filled_in(gallery: ModuleType) -> None:
    found = [text for record in gallery.records() for pair in texts(record.finding) for text in pair]
    found += [text for name in NAMES for pair in texts(find_study(name)) for text in pair]
    assert [text for text in found if PLACEHOLDER.search(text)] == []


def test_a_finished_study_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = seqloom.study("set_operation", quick=True, out=tmp_path, quiet=True)
    monkeypatch.setattr(_running, "_measured", lambda *_: pytest.fail("measured again"))
    assert seqloom.study("set_operation", quick=True, out=tmp_path, quiet=True).facts() == first.facts()
    with pytest.raises(pytest.fail.Exception):
        seqloom.study("set_operation", out=tmp_path, quiet=True)  # a quick result does not stand for a full one


@pytest.mark.usefixtures("own_cache")
def test_a_study_without_its_weights_says_how_to_get_them_and_the_others_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    done = quick("set_operation")
    monkeypatch.setattr(_running, "study_names", lambda: ["set_operation", "retrieval"])
    monkeypatch.setattr(_running, "_measured", lambda *_: done)
    wanted = "study retrieval: needs weights:smollm2; run: seqloom weights smollm2"
    with pytest.raises(UserError, match=wanted):
        seqloom.study("retrieval", quiet=True)
    found = seqloom.study_all(out=tmp_path, quiet=True)
    assert [record.name for record in found] == ["set_operation"] and list(found.left_out) == ["retrieval"]
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'href="set_operation.html"' in page and 'href="retrieval.html"' not in page
    assert wanted in page
    monkeypatch.setattr(sys, "argv", ["seqloom", "study", "--all", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0 and f"left out: {wanted}" in capsys.readouterr().out


def test_a_study_that_fails_is_not_left_out_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RunError("study set_operation: a number is not finite")

    monkeypatch.setattr(_running, "study_names", lambda: ["set_operation"])
    monkeypatch.setattr(_running, "_measured", fail)
    with pytest.raises(RunError, match="not finite"):
        seqloom.study_all(quiet=True)


@pytest.mark.parametrize("name", NAMES)
def test_weights_that_a_study_needs_can_be_installed(name: str) -> None:
    assert all(need.removeprefix("weights:") in PACKAGES for need in find_study(name).needs)


def test_a_misspelled_study_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'set_operation'"):
        seqloom.study("set_operatoin")


@pytest.mark.parametrize("words", ["study", "study set_operation --all", "study set_operatoin"])
def test_wrong_usage_is_one_line(words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr(sys, "argv", ["seqloom", *words.split()])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_the_command_prints_one_json_object_and_writes_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    words = ["seqloom", "study", "set_operation", "--quick", "--json", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "set_operation.json").read_text())
    assert (tmp_path / "set_operation.html").exists()


def test_the_index_has_verdict_and_figure_of_each(gallery: ModuleType) -> None:
    records = gallery.records()
    page = html_index(records)
    assert page.count('<svg xmlns="http://www.w3.org/2000/svg"') == 2 * len(records)
    assert all(f'href="{record.name}.html"' in page for record in records)


def test_every_kind_of_panel_is_drawn_in_both_languages() -> None:
    curve = Curve(("loss <a>", "损失"), [1, 10, 100], [1, 0.5, 0.1], [0.9, 0.4, 0.05], [1.1, 0.6, 0.2])
    line = Curve(("theory", "理论"), [1, 100], [1, 0.01], draw="dashed")
    bars = BarSeries(("s", "甲"), [0.2, -0.1], [0.1, -0.2], [0.3, 0])
    floor = [Level(("floor", "下限"), 0.05)]
    panels = [
        Lines(("n", "数量"), ("loss", "损失"), [curve, line], log_x=True, log_y=True, levels=floor),
        Bars(("share", "份额"), [("one", "一"), ("two", "二")], [bars]),
        Heat(("in", "输入"), ("out", "输出"), ["a", "b"], ["c", "d"], [[0, 1], [0.5, 0.25]]),
    ]
    for language, word in zip(LANGUAGES, ("loss &lt;a&gt;", "损失"), strict=True):
        svg = draw(panels, language, "a figure")
        assert word in svg and svg.count('class="cell"') == 4 and svg.count('class="bar c0"') == 2
        assert "nan" not in svg and "<a>" not in svg


@pytest.mark.long
def test_the_example_of_the_documentation_is_a_whole_study(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "add-a-study.md").read_text(encoding="utf-8")
    ((name, code),) = re.findall(r'^```python title="([^"]+)"\n(.*?)^```$', page, re.DOTALL | re.MULTILINE)
    shutil.copytree(ROOT / "seqloom", tmp_path / "seqloom", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / name).write_text(code, encoding="utf-8")
    (block,) = re.findall(r"^```bash\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    for line in block.splitlines():
        command = [sys.executable, "-m", *shlex.split(line)]
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert "random_walk" in done.stdout
