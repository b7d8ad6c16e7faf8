"""Find the commands, run one, and report errors in one line.

The edge of the program: whatever goes wrong inside ends here, as one line and an exit code; see docs/errors.md.
"""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated, Any, get_args

import typer

from seqloom.cli._command import Command
from seqloom.cli._faults import quiet, told
from seqloom.cli._terminal import prepare
from seqloom.core import stopping
from seqloom.core.errors import UserError, out_of_memory
from seqloom.core.quoting import quoted
from seqloom.core.values import LARGEST, check_text, check_value
from seqloom.core.version import VERSION
from seqloom.core.waiting import clear

_DEBUG = Annotated[
    bool, typer.Option("--debug", help="Show the traceback of an unexpected error, and warnings of libraries.")
]
_LONGEST, _WORD = 2000, 300  # characters of a message, and of a word in it
_OUT_OF_MEMORY = (
    "out of memory; lower model.width, task.length or train.batch, raise train.accumulate, or give a trained model "
    "less to read at once"
)
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
    app.callback(invoke_without_command=True)(_at_the_edge(_without_command))
    for name in COMMANDS:
        app.command(name, cls=Command)(_at_the_edge(import_module(f"seqloom.cli.{name}").command))
    return app


def _at_the_edge(command: Callable[..., None]) -> Callable[..., None]:
    """The command with one more option, which it is not told of, because `main` looks for it before anything is parsed;
    it ends quietly when the reader of its output has seen enough."""
    signature = inspect.signature(command, eval_str=True)
    typed = {p.name: get_args(p.annotation)[1] for p in signature.parameters.values() if get_args(p.annotation)}
    option = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_DEBUG)

    @wraps(command)
    def run(*arguments: object, debug: bool = False, **options: object) -> None:
        for name, info in typed.items():
            _check_number(name, options.get(name), info)
        try:
            command(*arguments, **options)
        except BrokenPipeError:
            _discard_output()

    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), option])  # type: ignore[attr-defined]
    run.__annotations__ = {**command.__annotations__, "debug": _DEBUG}
    return run


def _check_number(name: str, value: object, info: Any) -> None:
    """Finite, and at most a billion if the option states no bound of its own."""
    try:
        if isinstance(value, int | float):
            check_value(value, -LARGEST if info.min is None else info.min, LARGEST if info.max is None else info.max)
    except ValueError as error:
        option = next((text for text in info.param_decls or () if text.startswith("-")), f"--{name.replace('_', '-')}")
        raise UserError(f"{option} {quoted(value)}: {error}") from None


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
    debug = "--debug" in sys.argv
    prepare()
    with quiet(debug):
        code = _guarded(_run, debug)
        sys.exit(code or _guarded(_flush, debug))


def _run() -> int:
    for word in sys.argv[1:]:
        try:
            check_text(word)
        except ValueError as error:
            raise UserError(f"{quoted(word)}: {error}") from None
    code = make_app()(standalone_mode=False)
    if code == 130:  # what typer makes of an interrupt
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _flush() -> int:
    if sys.stdout is not None:
        sys.stdout.flush()
    return 0


def _guarded(action: Callable[[], int], debug: bool) -> int:
    """Its exit code, also if it fails."""
    try:
        return action()
    except typer.Exit as end:
        return end.exit_code
    except KeyboardInterrupt:
        return _complain(*stopping.ending())
    except BrokenPipeError:
        _discard_output()
        return 0
    except SystemExit:
        raise
    except BaseException as error:  # also a panic of a library in Rust
        if isinstance(error, OSError) and error.filename is None:
            _discard_output()  # it may have been the output that failed, and would fail again at the exit
        return _explain(error, debug)


def _discard_output() -> None:
    with suppress(AttributeError, OSError, ValueError):  # there may be none
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain(error: BaseException, debug: bool) -> int:
    if hasattr(error, "format_message"):  # an error of click, or of typer's own copy of it
        context = getattr(error, "ctx", None)
        hint = f" (seqloom {context.info_name} --help)" if context and context.parent else ""
        return _complain((_renamed(error) or error.format_message()) + hint, error.exit_code)  # type: ignore[attr-defined]
    if isinstance(error, UserError) or hasattr(error, "exit_code"):
        return _complain(str(error), error.exit_code)
    if out_of_memory(error):
        return _complain(_OUT_OF_MEMORY, 1)
    if isinstance(error, OSError):
        return _complain(f"{error.filename or 'system'}: {error.strerror or error}", 1)
    if debug:
        traceback.print_exception(error)
    return _complain(told(error), 1)


def _renamed(error: BaseException) -> str:
    """What replaced an option that chose a column, if the command has columns."""
    name, context = getattr(error, "option_name", ""), getattr(error, "ctx", None)
    options = [option for param in context.command.params for option in param.opts] if context else []
    return f"No such option: {name}; use {RENAMED[name]}" if name in RENAMED and "--columns" in options else ""


def _complain(text: str, code: int) -> int:
    with suppress(OSError):  # the disk behind it may be full
        clear()
        print(f"seqloom: {_one_line(text)}", file=sys.stderr)
    return code


def _one_line(text: str) -> str:
    """Without what could move the cursor or paint the screen, if a name or a cell holds such characters; a word that
    goes on and on is cut, so that what follows it can be read."""
    text = " ".join(word if len(word) <= _WORD else f"{word[: _WORD - 40]}...{word[-20:]}" for word in text.split())
    text = text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
