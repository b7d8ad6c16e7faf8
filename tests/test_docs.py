"""The documentation is true: its commands run, its links lead somewhere, its tables are those of the code.

`python tests/test_docs.py` writes the tables of options anew, after an option has changed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import foreign
import pytest
from support import pairs_file

from seqloom import cli
from seqloom.core.config import options
from seqloom.data.options import DataOptions
from seqloom.data.samples import SAMPLES, Sample
from seqloom.data.shapes import find_shape
from seqloom.lab import cost, jobs
from seqloom.runs import listing
from seqloom.runs.guess import guess_task
from seqloom.runs.registry import find_config, names
from seqloom.serve import serving
from seqloom.train.settings import LoraConfig, TrainConfig

ROOT = Path(__file__).parent.parent
README, CHINESE_README = ROOT / "README.md", ROOT / "README.zh-CN.md"  # of the same commands
PAGES = [README, CHINESE_README, *sorted((ROOT / "docs").rglob("*.md"))]
TRANSLATED = [page for page in PAGES if page.is_relative_to(ROOT / "docs" / "zh") and page.stem != "index"]
ORIGINALS = [page for page in PAGES if page not in TRANSLATED and page != CHINESE_README]
TRIED = ROOT / "docs" / "studies", ROOT / "docs" / "add-a-study.md"  # by tests/test_studies.py
ORIGINALS = [page for page in ORIGINALS if page.parent not in TRIED and page not in TRIED]
OTHERS = [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
TABLE = re.compile(r"(<!-- options: ([a-z]+) ?([a-z0-9_]*) -->\n)(.*?)(<!-- /options -->)", re.DOTALL)
QUICK = ["train.steps=3", "train.threads=1", "train.batch=4", "model.width=16", "task.length=8"]
BRIEF = ["task.length=8", "task.stretch=32", "train.batch=4", "task.batch_tokens=64", "task.horizon=8"]
BRIEF += ["task.context=8", "task.scored=20", "task.features=8"]

ENGLISH = "The time machine stood in the corner. It had a small brass lever, and the lever moved.\n"
CHINESE = "天地玄黄，宇宙洪荒。日月盈昃，辰宿列张。寒来暑往，秋收冬藏。\n"
NOTES = {
    "terms.md": "# Terms\n\n## Guarantee\n\nThe guarantee lasts three years from the date of purchase. It does not "
    "cover the battery.\n",
    "harbour.txt": "The harbour is open from May to October. A berth costs 40 euros per night.\n",
    "说明.txt": "保修期为自购买之日起三年。电池属于消耗品，不在保修范围内。\n",
}


def title(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands(page: Path, language: str = "bash") -> list[str]:
    """`bash slow`: on much data, which tests/slow tries."""
    lines = [line for block in blocks(page, language) for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.startswith("seqloom ")]


def shortened(command: str) -> list[str]:
    words = shlex.split(command, comments=True)
    if words[1] == "study":
        return [*words, "--quick"]
    task = words[words.index("--task") + 1] if "--task" in words else "language_model"
    if task == "retrieval":  # nothing is trained
        return words
    if words[1] == "compare" and "--task" not in words:
        task = guess_task(words[words.index("--data") + 1])[0][0]
    known = find_config("tasks", task).model_fields

    def settings(these: list[str]) -> list[str]:
        """As flags; a task has options of its own."""
        said = [setting for setting in these if not setting.startswith("task.") or setting[5:].split("=")[0] in known]
        return [word for setting in said for word in ("-o", setting)]

    if words[1] == "fit":
        words += settings(QUICK)
    if words[1] == "compare":
        words += ["--trials", "1", "--seeds", "1", "--budget"]
        words += ["bytes=9k" if "weights:" in command else "tokens=6k" if "--ladder" in words else "tokens=1500"]
        large = {"data", "size"} & set(words) or "bag," in command  # an eighth of it must be possible; hashed n-grams
        small = "40k" if large else "9k"
        sized = "--models" in words and not any(":run:" in word or "=run:" in word for word in words)
        words += ["--params", small] if sized else []  # a table of n-grams is not that small
        words += settings(BRIEF)
        words += ["--pretrain-budget", "tokens=5k", "--examples", "20"] if "--pretrain" in words else []
    if words[1] == "diagnose":
        words += ["--quick", "--steps", "2", "--seeds", "1"]
        words += ["--problems", "parity"] if "--problems" not in words else []
    if words[1] == "prompt":
        words += ["--rows", "4", "--shots", "0,1", "--draws", "2"]
    if words[1] == "serve":
        words += ["--port", "0"]
    if words[1] == "generate":
        words += ["--max-new", "5"]
    return words


def beginning(sample: Sample) -> Sample:
    return sample._replace(read=lambda: islice(sample.read(), 2000))


@pytest.fixture(scope="module")
def weights(own_cache: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny models where the pages speak of pretrained ones; returns a folder of transformers."""
    foreign.stock(Path(os.environ["SEQLOOM_CACHE"]))
    folder = tmp_path_factory.mktemp("models") / "bert"
    foreign.save(folder, *foreign.ENCODERS["bert"], head="Model", pieces=True)
    return folder


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: None, weights: Path) -> Path:
    """A folder with the files that the pages speak of."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(weights, tmp_path / "models" / "bert")
    (tmp_path / "book.txt").write_text(ENGLISH * 20)
    (tmp_path / "another.txt").write_text((" ".join(reversed(ENGLISH.split())) + "\n") * 5)
    (tmp_path / "chinese.txt").write_text(CHINESE * 20, encoding="utf-8")
    (tmp_path / "reviews.jsonl").write_text('{"review": "A fine machine, and a small lever."}\n' * 40)
    pairs_file(tmp_path / "pairs.tsv", 40)
    pairs_file(tmp_path / "new.tsv", 20, seed=1)
    (tmp_path / "sources.txt").write_text("the cat sees a dog\na house\n")
    rows = [f"{word} {n},{n % 2},{word} film,{n % 3}" for n, word in enumerate(["good", "bad", "fine", "poor"] * 20)]
    (tmp_path / "rows.csv").write_text("\n".join(["text,label,review,stars", *rows]) + "\n")
    (tmp_path / "new.csv").write_text("text\ngood day\nbad day\n")
    reviews = "".join(f"房间{n}很{'好' if n % 2 else '小'}，服务{'好' if n % 2 else '差'},{n % 2}\n" for n in range(80))
    (tmp_path / "reviews-gbk.csv").write_bytes(f"text,label\n{reviews}".encode("gbk"))
    pairs = [(letters, letters[::-1].upper()) for letters in ENGLISH.split() * 4]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps({"en": s, "de": t}) + "\n" for s, t in pairs))
    (tmp_path / "sentences.txt").write_text("Ada sees Rome.\nIt rains.\n")
    (tmp_path / "names.conll").write_text("".join(f"Ada{n} B-PER\nsees O\nRome B-LOC\n\n" for n in range(40)))
    (tmp_path / "new.conll").write_text("".join(f"Ada{n} B-PER\nsees O\nRome B-LOC\n\n" for n in range(40, 60)))
    spans = [{"start": 0, "end": 3, "label": "PER"}]
    names = [{"text": f"Ada sees {n} dogs.", "spans": spans} for n in range(40)]
    (tmp_path / "names.jsonl").write_text("".join(json.dumps(row) + "\n" for row in names))
    rows = [{"context": f"Box {n} holds a {n % 5}-pound stone.", "question": f"What is in box {n}?"} for n in range(60)]
    asked = [row | {"answer": "stone", "answer_start": row["context"].index("stone")} for row in rows]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked[::2]))
    load = [f"2024-01-{1 + n // 24:02} {n % 24:02}:00,{town},{n % 24},{n % 5},0" for town in "AB" for n in range(240)]
    (tmp_path / "load.csv").write_text("\n".join(["time,town,load,wind,holiday", *load]) + "\n")
    (tmp_path / "novels").mkdir()
    (tmp_path / "novels" / "one.txt").write_text(ENGLISH * 10)
    (tmp_path / "notes").mkdir()
    for name, content in NOTES.items():
        (tmp_path / "notes" / name).write_text(content, encoding="utf-8")
    known = {"How long does the guarantee last?": ["three years"], "Who painted the Sistine Chapel?": []}
    lines = [json.dumps({"question": question, "answers": answers}) for question, answers in known.items()]
    (tmp_path / "asked.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "How long does the guarantee last?"}\n')
    (tmp_path / "judged.tsv").write_text("query-id\tcorpus-id\tscore\n1\tterms.md\t1\n")
    (tmp_path / "reviews.toml").write_text(blocks(ROOT / "docs" / "prompting.md", "toml")[0])
    (tmp_path / "recipe.toml").write_text(blocks(ROOT / "docs" / "language-models.md", "toml")[0])
    return tmp_path


async def started(state: Any, binding: Any, ready: Any) -> None:
    """A server that is told to end as soon as it could begin: what was to be served has been found and checked."""
    binding.sock.close()
    ready()


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch, jobs_here: None) -> None:
    """Large samples are cut, comparisons measure little and stay in this process, and nothing waits for the disk."""
    for name in ("cmudict", "reversal"):
        monkeypatch.setitem(SAMPLES, name, beginning(SAMPLES[name]))
    monkeypatch.setattr(serving, "run", started)
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(jobs, "PROBE_STEPS", 2)
    monkeypatch.setattr(cost, "CONTEXTS", {waits: contexts[:2] for waits, contexts in cost.CONTEXTS.items()})
    monkeypatch.setattr(cost, "LENGTHS", {waits: lengths[:2] for waits, lengths in cost.LENGTHS.items()})


def render(kind: str, name: str) -> str:
    """The table of options as the pages must have it."""
    shape = find_shape(name) if kind in ("data", "tokenizer") and name else None
    sections: dict[str, Any] = {
        "data": shape.options if shape else DataOptions,
        "tokenizer": shape.tokenizer if shape else None,
        "train": TrainConfig,
        "lora": LoraConfig,
    }
    if kind in sections:
        rows = [{"option": f"{kind}.{o}", "default": d, "meaning": m} for o, d, m in options(sections[kind])]
    else:
        rows = listing.LISTS[kind](name)
    lines = ["| option | default | meaning |", "|---|---|---|"]
    lines += [f"| `{row['option']}` | `{row['default']}` | {row['meaning'].replace('<', '&lt;')} |" for row in rows]
    suits = find_config(kind, name).defaults if kind == "models" else {}
    if suits:
        settings = ", ".join(f"`{option}={value}`" for option, value in suits.items())
        lines += ["", f"Unless you say otherwise, it also sets {settings}."]
    return "\n".join(lines) + "\n"


@pytest.mark.long
@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("page", [page for page in ORIGINALS if commands(page)], ids=title)
def test_every_command_runs(
    page: Path, desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    for command in commands(page):
        monkeypatch.setattr(sys, "argv", shortened(command))
        run_command(command, capsys)


def run_command(command: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0, f"{command}\n{capsys.readouterr().err}"


@pytest.mark.long
@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("page", [page for page in ORIGINALS if blocks(page, "python")], ids=title)
def test_the_python_examples_run(page: Path, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqloom.runs.configure.DEFAULT_TOKENS", 1_000)
    exec("".join(blocks(page, "python")), {})  # a later block may use what an earlier one made


def links(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\(([^)\s#]+)[^)]*\)", text)


@pytest.mark.parametrize("page", TRANSLATED, ids=title)
def test_a_translation_has_the_code_and_the_tables_of_its_original(page: Path) -> None:
    """So its commands are those that were run."""
    original = ROOT / "docs" / page.relative_to(ROOT / "docs" / "zh")
    fences = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
    ours, theirs = (path.read_text(encoding="utf-8") for path in (page, original))
    assert fences.findall(ours) == fences.findall(theirs)
    assert [found[1:3] for found in TABLE.findall(ours)] == [found[1:3] for found in TABLE.findall(theirs)]


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=title)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for target in links(page):
        assert re.match(r"[a-z]+:", target) or (page.parent / target).exists(), f"{title(page)}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_the_tables_of_options_are_those_of_the_code(page: Path) -> None:
    for _, kind, name, table, _ in TABLE.findall(page.read_text(encoding="utf-8")):
        assert table == render(kind, name), f"{title(page)}: run `python tests/test_docs.py` to write it anew"


def test_every_option_is_in_a_table() -> None:
    found = {(kind, name) for page in PAGES for _, kind, name, _, _ in TABLE.findall(page.read_text(encoding="utf-8"))}
    wanted = {(kind, name) for kind in ("models", "tasks") for name in names(kind)}
    assert found == wanted | {("train", ""), ("lora", "")}


@pytest.mark.parametrize("name", names("models"))
def test_every_model_has_a_page(name: str) -> None:
    assert (ROOT / "docs" / "models" / f"{name}.md").exists()


def test_both_readmes_show_the_same_commands() -> None:
    assert commands(README) == commands(CHINESE_README)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """docs/build.py, which puts what it writes into a folder of the test."""
    spec = spec_from_file_location("build", ROOT / "docs" / "build.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "STAGE", tmp_path)
    return module


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_page_is_in_the_navigation_of_both_sites(site: ModuleType, tmp_path: Path, language: str) -> None:
    site.lay_out(language)
    nav = tomllib.loads((ROOT / site.CONFIGS[language]).read_text(encoding="utf-8"))["project"]["nav"]
    listed = places(nav)
    pages = [page.relative_to(tmp_path / language).as_posix() for page in (tmp_path / language).rglob("*.md")]
    assert sorted(listed) == sorted(pages)


def places(entry: Any) -> list[str]:
    """The pages of an entry of the navigation, or of all."""
    if isinstance(entry, str):
        return [entry]
    return [place for under in entry for part in under.values() for place in places(part)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_link_of_the_site_leads_to_a_file_of_it(site: ModuleType, tmp_path: Path, language: str) -> None:
    site.lay_out(language)
    for page in (tmp_path / language).rglob("*.md"):
        for target in links(page):
            assert re.match(r"[a-z]+:", target) or (page.parent / target).is_file(), f"{page}: {target}"


def test_a_page_that_is_not_translated_says_so_in_chinese(site: ModuleType, tmp_path: Path) -> None:
    site.lay_out("zh")
    assert site.UNTRANSLATED in (tmp_path / "zh" / "contributing.md").read_text(encoding="utf-8")
    assert site.UNTRANSLATED not in (tmp_path / "zh" / "index.md").read_text(encoding="utf-8")
    assert "README" not in (tmp_path / "zh" / "index.md").read_text(encoding="utf-8").split("##")[0]


@pytest.mark.parametrize("name", ["CHANGELOG.md", "CONTRIBUTING.md"])
def test_a_page_that_both_sites_share_links_to_no_heading_of_a_translated_page(name: str) -> None:
    """In Chinese the heading, and with it the anchor, is another one."""
    assert not re.findall(r"\]\(docs/[^)]*#[^)]*\)", (ROOT / name).read_text(encoding="utf-8"))


if __name__ == "__main__":
    for path in PAGES:
        before = path.read_text(encoding="utf-8")
        after = TABLE.sub(lambda found: found[1] + render(found[2], found[3]) + found[5], before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"{title(path)}: tables written anew")
