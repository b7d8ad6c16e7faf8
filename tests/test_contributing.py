"""CONTRIBUTING.md is followed to the letter: in a copy of the package, each recipe is all that a new part needs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCK = re.compile(r'^```python title="([^"]+)"(?: add="(\w+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
PLACES = {"scores": (r"scores = \(", "), "), "evaluate": (r'return \{(?="mae")', ", ")}  # where an addition goes


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with every file and addition that the page shows."""
    folder = tmp_path_factory.mktemp("copy")
    ignore = shutil.ignore_patterns("__pycache__", "golden")
    shutil.copytree(ROOT / "seqloom", folder / "seqloom", ignore=ignore)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=ignore)
    for name, add, code in BLOCK.findall(PAGE):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text(encoding="utf-8") if add else ""
        if add in PLACES:
            place = re.search(PLACES[add][0], before)
            assert place, f"{name}: nowhere to add to {add}"
            code = before[: place.end()] + code.strip() + ", " + before[place.end() :]
        elif add:
            code = f"{before}\n\n{code}"
        path.write_text(code, encoding="utf-8")
    rows = [(f"film {n} is {('bad', 'fair', 'fine')[n % 3]}", n % 3 + 1) for n in range(60)]
    (folder / "stars.csv").write_text("text,label\n" + "".join(f"{text},{stars}\n" for text, stars in rows))
    (folder / "stars.pipes").write_text("text|label\n" + "".join(f"{text}|{stars}\n" for text, stars in rows))
    return folder


def run(copy: Path, *words: str) -> str:
    environment = os.environ | {"PYTHONPATH": f"{copy}:{copy / 'tests'}", "SEQLOOM_CACHE": str(copy / "cache")}
    done = subprocess.run(words, cwd=copy, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_commands_of_the_recipes_work(copy: Path) -> None:
    """In one process, so that torch is loaded once."""
    blocks = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("seqloom ")]
    script = (
        "import shlex, sys\nfrom seqloom.cli import main\n"
        f"for line in {commands!r}:\n"
        "    sys.argv = shlex.split(line)\n"
        "    try: main()\n"
        "    except SystemExit as end: assert not end.code, (line, end.code)\n"
    )
    out = run(copy, sys.executable, "-c", script)
    for shown in ("within one", '"stars":', "3 labels", " parameters\n"):
        assert shown in out.replace("_", " "), out


def test_a_new_model_is_held_to_the_contract_and_listed_without_touching_a_test(copy: Path) -> None:
    out = run(
        copy, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_contract.py", "-k", "decay"
    )
    assert re.search(r"\d+ passed", out) or "[100%]" in out
    assert "decay" in run(copy, sys.executable, "-m", "seqloom", "list", "models")
