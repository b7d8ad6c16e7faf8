"""Who may import whom: arrows point down only, and what needs no torch does not load it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

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


def title(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def files_in(folder: str) -> list[Path]:
    found = sorted((PACKAGE / folder).glob("*.py"))
    assert found, f"{folder}: no files"
    return found


def part(path: Path) -> str:
    """The folder a file is in, or its own name."""
    inside = path.relative_to(PACKAGE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


@cache
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


def test_a_file_imports_only_what_stands_below_it() -> None:
    wrong = []
    for path in FILES:
        allowed = ALLOWED[part(path)] | {part(path)}
        if "*" not in allowed and (beyond := ours(path) - allowed):
            wrong.append(
                f"{title(path)} imports {', '.join(sorted(beyond))}; it may import {', '.join(sorted(allowed))}"
            )
    assert not wrong, "\n".join(wrong)


def test_a_task_knows_no_other_task() -> None:
    wrong = [title(path) for path in files_in("tasks") if "tasks" in ours(path)]
    assert not wrong, f"these import another task: {', '.join(wrong)}"


def test_a_report_needs_nothing_but_the_core() -> None:
    below = ("seqloom.core", "seqloom.compare.report")
    wrong = [
        f"{title(path)} imports {name}"
        for path in files_in("compare/report")
        for name in imported(path)
        if name.startswith("seqloom") and not name.startswith(below)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_core_stands_on_torch_pydantic_and_the_standard_library() -> None:
    known = set(sys.stdlib_module_names) | CORE_STANDS_ON | {"seqloom"}
    wrong = [
        f"{title(path)} imports {name}"
        for path in files_in("core")
        for name in imported(path)
        if name.split(".")[0] not in known
    ]
    assert not wrong, "\n".join(wrong)


def test_only_the_engine_knows_the_distributed_engine() -> None:
    wrong = [
        f"{title(path)} imports {name}"
        for path in FILES
        for name in imported(path)
        if name.startswith("torch.distributed") and path != PACKAGE / "train" / "engine.py"
    ]
    assert not wrong, "\n".join(wrong)


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


COMMANDS = [
    "--help",
    "fit --help",
    "generate --help",
    "predict --help",
    "explain --help",
    "list models",
    "list samples",
]
EACH_COMMAND = f"""
import sys
from seqloom.cli import main
for command in {COMMANDS}:
    sys.argv = ["seqloom", *command.split()]
    print("#", command, flush=True)
    try:
        main()
    except SystemExit as end:
        assert not end.code, f"{{command}}: exit code {{end.code}}"
    assert "torch" not in sys.modules, f"{{command}}: torch was loaded"
"""


def test_help_and_lists_come_without_torch() -> None:
    done = python("-c", EACH_COMMAND)
    assert done.returncode == 0, done.stderr
    said = re.split("^# ", done.stdout, flags=re.MULTILINE)[1:]
    assert len(said) == len(COMMANDS)
    for command, answer in zip(COMMANDS, said, strict=True):
        assert answer.removeprefix(command).strip(), f"{command}: nothing was printed"
