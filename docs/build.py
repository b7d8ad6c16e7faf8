"""The documentation as a site, in English and Chinese: `make docs` writes it to site/ and site/zh/.

The pages are written to be read in the repository, so they also link to files outside docs/. They are first copied to
build/docs together with those files, and every link is rewritten to its target there. A link without a target is an
error, here or in zensical's strict build.

The Chinese site has the same pages: docs/zh/NAME.md replaces docs/NAME.md; where there is no translation yet, the
English page is shown with a note. Translating a page means adding one file.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from posixpath import relpath

ROOT = Path(__file__).parent.parent
STAGE = ROOT / "build" / "docs"
CONFIGS = {"en": "zensical.toml", "zh": "zensical.zh.toml"}
FIGURES = {"en": "studies", "zh": "zh/studies"}  # beside the pages of studies
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}  # not in docs/
PLACES = PAGES | {
    "README.md": "index.md",
    "README.zh-CN.md": "index.md",
    "LICENSE": "LICENSE.txt",
    "recipes": "recipes.md",
}
UNTRANSLATED = '!!! note "本页还没有中文版，以下是英文原文。"\n'

INCLUDE = re.compile(r"\A<!-- include: (\S+) -->")
LANGUAGES = re.compile(r"^.*\]\(README[^)]*\.md\).*\n\n", re.MULTILINE)  # the site has a switch of its own
FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)
CHINESE = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef])\n(?=[\u3000-\u9fff\uff00-\uffef])")  # no blank in between
LINK = re.compile(r"(\]\()([^)\s#]+)")


def main() -> None:
    shutil.rmtree(STAGE, ignore_errors=True)
    shutil.rmtree(ROOT / "site", ignore_errors=True)
    for language, config in CONFIGS.items():
        lay_out(language)
        build = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", config]
        if code := subprocess.run(build, cwd=ROOT).returncode:
            sys.exit(code)


def lay_out(language: str) -> None:
    """All that zensical needs for one language, in one folder."""
    folder = STAGE / language
    shutil.copytree(ROOT / "docs" / "images", folder / "images")
    shutil.copy(ROOT / "LICENSE", folder / "LICENSE.txt")
    left_out = shutil.ignore_patterns("*.md", "results")
    shutil.copytree(ROOT / "docs" / FIGURES[language], folder / "studies", ignore=left_out)
    for place, source in sources(language).items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(page(source, place, language), encoding="utf-8")
    (folder / "recipes.md").write_text(recipes(), encoding="utf-8")


def sources(language: str) -> dict[str, Path]:
    """The file behind each page of the site."""
    docs, found = ROOT / "docs", {place: ROOT / name for name, place in PAGES.items()}
    found |= {file.relative_to(docs).as_posix(): file for file in docs.rglob("*.md")}
    translated = {place.removeprefix("zh/"): file for place, file in found.items() if place.startswith("zh/")}
    found = {place: file for place, file in found.items() if not place.startswith("zh/")}
    return found | (translated if language == "zh" else {})


def page(source: Path, place: str, language: str) -> str:
    """A page as the site has it."""
    text, home = source.read_text(encoding="utf-8"), source
    if included := INCLUDE.match(text):
        home = (source.parent / included[1]).resolve()
        text = LANGUAGES.sub("", home.read_text(encoding="utf-8"), count=1)
    pieces = FENCE.split(text)
    pieces[::2] = [LINK.sub(lambda link: link[1] + turned(link[2], home, place), piece) for piece in pieces[::2]]
    pieces[::2] = [re.sub(r"(-->\n)(?=\|)", r"\1\n", piece) for piece in pieces[::2]]  # a table begins a paragraph
    pieces[1::2] = [re.sub(r"\A(```\w+) .*", r"\1", piece) for piece in pieces[1::2]]  # the rest is for tests
    if language == "zh":
        pieces[::2] = [CHINESE.sub("", piece) for piece in pieces[::2]]
    text = "".join(pieces)
    if language == "zh" and (ROOT / "docs" / "zh") not in source.parents:
        text = re.sub(r"\A(# .*\n)", rf"\1\n{UNTRANSLATED}", text)
    return text


def turned(target: str, home: Path, place: str) -> str:
    """A link of the file `home` as the page at `place` must have it."""
    if re.match(r"[a-z]+:", target):
        return target
    file = (home.parent / target).resolve()
    name = file.relative_to(ROOT).as_posix() if file.exists() and ROOT in file.parents else ""
    if name.startswith("docs/"):
        wanted = name.removeprefix("docs/").removeprefix("zh/")
    elif name.startswith("recipes/"):
        return relpath("recipes.md", Path(place).parent.as_posix()) + f"#{file.stem}"
    elif name in PLACES:
        wanted = PLACES[name]
    else:
        sys.exit(f"{home.relative_to(ROOT)}: the link {target} leads to nothing that is on the site")
    return relpath(wanted, Path(place).parent.as_posix())


def recipes() -> str:
    """Every recipe, to read on one page."""
    files = sorted((ROOT / "recipes").glob("*.toml"))
    entries = [f"## {file.stem}\n\n```toml\n{file.read_text(encoding='utf-8').strip()}\n```\n" for file in files]
    return "# Recipes\n\nSettings to begin with: `seqloom fit recipes/NAME.toml`.\n\n" + "\n".join(entries)


if __name__ == "__main__":
    main()
