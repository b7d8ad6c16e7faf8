"""Who may import whom: arrows point down only, nothing goes in circles, and what needs no torch does not load it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "seqloom"

# folder (the longest that fits): what of ours it may import, beside itself
BELOW: dict[str, set[str]] = {
    "core": set(),
    "layers": {"core"},
    "tokenizers": {"core"},
    "decode": {"core"},
    "data": {"core"},
    "data.shapes": {"core", "data", "tokenizers"},
    "models": {"core", "layers"},
    "tasks": {"core", "layers", "tokenizers", "data", "data.shapes", "decode"},
    "train": {"core"},
    "weights": {"core", "layers", "tokenizers"},
}
BELOW["runs"] = {"train", *BELOW} - {"models", "tasks"}  # models and tasks by name only: runs/registry.py finds them
BELOW["lab"] = BELOW["runs"] | {"runs"}
BELOW["pages"] = set()
BELOW["compare"] = BELOW["lab"] | {"lab", "pages", "compare.report"}
BELOW["compare.report"] = {"core", "pages"}
BELOW["explain"] = BELOW["runs"] | {"runs", "pages"}
BELOW["estimators"] = BELOW["adapt"] = BELOW["runs"] | {"runs"}
BELOW["retrieve"] = BELOW["diagnose"] = BELOW["lab"] | {"lab", "pages"}
# a study may take one model or task apart: that is what it is about
BELOW["studies"] = BELOW["compare"] - {"compare.report"} | {"explain", "retrieve", "models", "tasks"}
BELOW["export"] = BELOW["runs"] | {"runs"}
BELOW["serve"] = BELOW["compare"] | {"adapt", "compare", "diagnose", "explain", "export", "retrieve", "studies"}
BELOW["cli"] = BELOW["serve"] | {"serve"}
BELOW[""] = BELOW["cli"] - BELOW["compare"] | {"cli", "core", "estimators", "runs"}

CORE_STANDS_ON = {"numpy", "pydantic", "torch"}  # and the standard library
PAGES_STAND_ON = {"plotly"}
WITHOUT_TORCH = [
    "core.rows",
    "core.score",
    "core.errors",
    "core.config",
    "core.progress",
    "data",
    "tokenizers",
    "pages",
]
WITHOUT_TORCH += [
    "runs.settings",
    "runs.folder",
    "runs.durable",
    "runs.registry",
    "runs.listing",
    "runs.guess",
    "retrieve.reading",
    "retrieve.chunking",
    "retrieve.index",
    "retrieve.evaluation",
    "retrieve.stores",
    "compare.report",
    "serve.api",
    "serve.jobs",
    "cli",
]

FILES = sorted(PACKAGE.rglob("*.py"))


def module(path: Path) -> str:
    """`core.batch` for seqloom/core/batch.py, `tasks.tagging` for its __init__.py."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module(path): path for path in FILES}


def folder(name: str) -> str:
    """The longest line of the table that a module falls under."""
    return max((line for line in BELOW if name == line or name.startswith(f"{line}.") or not line), key=len)


def imported(path: Path) -> list[tuple[int, str]]:
    """Every module a file names in an import, at the top, inside a function or for types only."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are written out in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            own = [name for name in names if name.removeprefix("seqloom.") in MODULES]
            found += [(node.lineno, name) for name in own or [str(node.module)]]
    return found


def ours(path: Path) -> list[tuple[int, str]]:
    return [(line, name.removeprefix("seqloom.")) for line, name in imported(path) if name.startswith("seqloom.")]


def roots(path: Path) -> set[str]:
    return {name.split(".")[0] for _, name in imported(path)} - {"seqloom"} - set(sys.stdlib_module_names)


def test_a_file_imports_only_what_stands_below_it() -> None:
    wrong = []
    for path in FILES:
        mine = folder(module(path))
        for line, name in ours(path):
            if folder(name) != mine and folder(name) not in BELOW[mine]:
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_a_task_knows_no_other_task() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {name}"
        for path in sorted((PACKAGE / "tasks").rglob("*.py"))
        for line, name in ours(path)
        if name.startswith("tasks.") and name.split(".")[1] != module(path).split(".")[1]
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_goes_in_circles() -> None:
    """Lazy imports and those for types count too; a package stands for what its __init__.py imports."""
    graph = {name: {other for _, other in ours(path) if other != name} for name, path in MODULES.items()}
    del graph[""]  # everything imports the package by name, and it imports only what a verb needs
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " -> ".join((*way[way.index(name) :], name))
        if name not in done:
            for other in sorted(graph.get(name, ())):
                visit(other, (*way, name))
            done.add(name)

    for name in sorted(graph):
        visit(name, ())


def test_core_and_pages_stand_on_little() -> None:
    for part, allowed in (("core", CORE_STANDS_ON), ("pages", PAGES_STAND_ON)):
        for path in sorted((PACKAGE / part).rglob("*.py")):
            assert roots(path) <= allowed, path


def test_only_the_engine_knows_the_distributed_engine() -> None:
    for path in FILES:
        if path != PACKAGE / "train" / "engine.py":
            assert not [name for _, name in imported(path) if name.startswith("torch.distributed")], path


def test_every_file_of_the_core_serves_several_parts() -> None:
    """What only one task, one model or one shape needs stands beside it."""
    users: dict[str, set[str]] = {name: set() for name in MODULES if name.startswith("core.")}
    for name, path in MODULES.items():
        parts = name.split(".")
        owner = ".".join(parts[: 2 if parts[0] in ("tasks", "models") else 3 if parts[:2] == ["data", "shapes"] else 1])
        for _, other in ours(path):
            if other in users:
                users[other].add(owner)
    assert not {name for name, owners in users.items() if len(owners) < 2}


def test_files_and_functions_are_short() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert not [f"{path}: {length} lines" for path, length in lengths.items() if length > 400]
    long = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.end_lineno and node.end_lineno - node.lineno >= 60:
                long.append(f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}")
    assert not long, "\n".join(long)


def modules_under(name: str) -> list[str]:
    """A module, or all modules of a folder."""
    return [f"seqloom.{found}" for found in MODULES if found == name or found.startswith(f"{name}.")]


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, cwd=PACKAGE.parent)


def test_data_tokenizers_run_folders_reports_and_the_command_line_load_without_torch() -> None:
    modules = [found for name in WITHOUT_TORCH for found in modules_under(name)]
    done = python("-c", f"import sys, {', '.join(modules)}; sys.exit('torch' in sys.modules)")
    assert done.returncode == 0, done.stderr or "torch was loaded"


@pytest.mark.parametrize("command", ["--help", "fit --help", "predict --help", "list models", "list samples"])
def test_help_and_lists_come_without_torch(command: str) -> None:
    script = (
        f"import sys; sys.argv = ['seqloom', *{command.split()}]\n"
        "from seqloom.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "assert 'torch' not in sys.modules, 'torch was loaded'"
    )
    done = python("-c", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
