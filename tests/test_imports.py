"""Who may import whom: arrows point down only, and what needs no torch does not load it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "seqloom"

# folder or file: what of ours it may import, beside itself
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    "layers": {"core"},
    "data": {"core"},
    "tokenizers": {"core"},
    "generate": {"core"},
    "evaluate": {"core"},
    "adapt": {"core"},
    "models": {"core", "layers"},
    "tasks": {"core", "layers", "generate", "evaluate"},
    "train": {"core", "evaluate"},
    "materials": {"core", "data", "tokenizers", "train"},
    "listing": {"core", "data", "runs"},
    "runs": {
        "core",
        "adapt",
        "layers",
        "data",
        "tokenizers",
        "generate",
        "evaluate",
        "models",
        "tasks",
        "train",
        "fitting",
        "materials",
    },
    "fitting": {"adapt", "core", "data", "tokenizers", "train", "evaluate", "generate", "materials", "runs", "seqloom"},
    "compare": {"core", "data", "evaluate", "fitting", "materials", "runs", "tokenizers", "train"},
    "explain": {"core", "evaluate", "generate", "runs"},
    "cli": {"*"},
    "cli_sources": {"*"},
    "cli_options": set(),
    "cli_print": {"compare"},
    "__main__": {"cli"},
    "__init__": {"runs"},
}
CORE_STANDS_ON = {"numpy", "pydantic", "torch"}  # and the standard library
WITHOUT_TORCH = [
    "core.run",
    "core.durable",
    "core.errors",
    "core.config",
    "data",
    "tokenizers",
    "listing",
    "cli",
    "cli_sources",
]

FILES = sorted(PACKAGE.rglob("*.py"))


def part(path: Path) -> str:
    """The folder a file is in, or its own name."""
    inside = path.relative_to(PACKAGE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def imported(path: Path) -> list[str]:
    """Every module a file names in an import, at the top or inside a function."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are written out in full"
            module = str(node.module)
            found += [f"{module}.{alias.name}" for alias in node.names] if module == "seqloom" else [module]
    return found


def ours(path: Path) -> set[str]:
    """The parts of the package that a file imports; `seqloom` itself is only its version."""
    modules = [name.split(".") for name in imported(path)]
    return {name[1] if len(name) > 1 else "seqloom" for name in modules if name[0] == "seqloom"}


def test_every_part_of_the_package_has_its_line_in_the_table() -> None:
    assert {part(path) for path in FILES} == set(ALLOWED)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_imports_only_what_stands_below_it(path: Path) -> None:
    allowed = ALLOWED[part(path)] | {part(path)}
    assert "*" in allowed or ours(path) <= allowed


@pytest.mark.parametrize("path", sorted((PACKAGE / "tasks").glob("*.py")), ids=lambda path: path.stem)
def test_a_task_knows_no_other_task(path: Path) -> None:
    assert "tasks" not in ours(path)


@pytest.mark.parametrize("path", sorted((PACKAGE / "compare" / "report").glob("*.py")), ids=lambda path: path.stem)
def test_a_report_needs_nothing_but_the_core(path: Path) -> None:
    names = [name for name in imported(path) if name.startswith("seqloom")]
    assert all(name.startswith(("seqloom.core", "seqloom.compare.report")) for name in names)


@pytest.mark.parametrize("path", sorted((PACKAGE / "core").glob("*.py")), ids=lambda path: path.stem)
def test_the_core_stands_on_torch_pydantic_and_the_standard_library(path: Path) -> None:
    roots = {name.split(".")[0] for name in imported(path)} - {"seqloom"}
    assert roots <= set(sys.stdlib_module_names) | CORE_STANDS_ON


@pytest.mark.parametrize("path", [p for p in FILES if p != PACKAGE / "train" / "engine.py"], ids=str)
def test_only_the_engine_knows_the_distributed_engine(path: Path) -> None:
    assert not [name for name in imported(path) if name.startswith("torch.distributed")]


def modules_under(name: str) -> list[str]:
    """A module, or all modules of a folder."""
    place = PACKAGE.joinpath(*name.split("."))
    inside = [f"seqloom.{name}.{file.stem}" for file in sorted(place.glob("[a-z]*.py"))] if place.is_dir() else []
    return [f"seqloom.{name}", *inside]


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, cwd=PACKAGE.parent)


def test_data_tokenizers_run_folders_and_the_command_line_load_without_torch() -> None:
    modules = [module for name in WITHOUT_TORCH for module in modules_under(name)]
    done = python("-c", f"import sys, {', '.join(modules)}; sys.exit('torch' in sys.modules)")
    assert done.returncode == 0, done.stderr or "torch was loaded"


@pytest.mark.parametrize(
    "command",
    ["--help", "fit --help", "generate --help", "predict --help", "explain --help", "list models", "list samples"],
)
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
