"""Find the commands, run one, and report errors in one line."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated

import typer

from seqloom.core.errors import UserError
from seqloom.core.version import VERSION
from seqloom.core.waiting import clear

COMMANDS = sorted(m.name for m in iter_modules([str(Path(__file__).parent)]) if not m.name.startswith("_"))


RENAMED = {  # options of earlier versions: what to give now
    "--column": "--columns text=NAME",
    "--label": "--columns label=NAME",
    "--source": "--columns source=NAME",
    "--target": "--columns target=NAME",
    "--second": "--columns second=NAME",
    "--word": "--columns words=NAME",
    "--tag": "--columns tags=NAME",
    "--separator": "-o data.separator=TEXT",
}


def make_app() -> typer.Typer:
    app = typer.Typer(
        name="seqloom",
        help="Train, evaluate and use sequence models, from the n-gram to the Transformer, on your own data.",
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_without_command)
    for name in COMMANDS:
        app.command(name)(import_module(f"seqloom.cli.{name}").command)
    return app


def _without_command(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        print(f"seqloom {VERSION}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Run a command; user errors are one line on standard error, never a traceback."""
    try:
        code = make_app()(standalone_mode=False)
        if code == 130:  # what typer makes of an interrupt
            raise KeyboardInterrupt
    except typer.Exit as end:
        code = end.exit_code
    except KeyboardInterrupt:
        code = _complain("interrupted", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        code = _explain(error)
    sys.exit(code if isinstance(code, int) else 0)


def _explain(error: Exception) -> int:
    if hasattr(error, "format_message"):  # an error of click, or of typer's own copy of it
        context = getattr(error, "ctx", None)
        hint = f" (seqloom {context.info_name} --help)" if context and context.parent else ""
        return _complain((_renamed(error) or error.format_message()) + hint, error.exit_code)  # type: ignore[attr-defined]
    if isinstance(error, UserError) or hasattr(error, "exit_code"):
        return _complain(str(error), error.exit_code)
    if isinstance(error, MemoryError) or "allocate memory" in str(error) or "out of memory" in str(error).lower():
        return _complain("out of memory; lower model.width, task.length or train.batch, or raise train.accumulate", 1)
    if isinstance(error, OSError):
        return _complain(f"{error.filename or 'system'}: {error.strerror or error}", 1)
    raise error


def _renamed(error: Exception) -> str:
    """What replaced an option that chose a column, if the command has columns."""
    name, context = getattr(error, "option_name", ""), getattr(error, "ctx", None)
    options = [option for param in context.command.params for option in param.opts] if context else []
    return f"No such option: {name}; use {RENAMED[name]}" if name in RENAMED and "--columns" in options else ""


def _complain(text: str, code: int) -> int:
    clear()
    print(f"seqloom: {' '.join(text.split())}", file=sys.stderr)
    return code
