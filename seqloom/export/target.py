"""What every target does: refuse what it cannot hold, write files, load them and compare."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from seqloom.core.errors import RunError, UserError
from seqloom.core.rows import Json
from seqloom.export.source import Source

BAR = 1e-4  # largest difference of an output
PERPLEXITY_BAR = 1e-3  # relative
RUN_ITSELF = "seqloom predict and generate use the run itself"  # the way out where no target holds it


class Written(NamedTuple):
    """`facts`: for export.json, among them `difference`; `usage`: Markdown for the card; `tags`: of the Hugging Face
    hub."""

    facts: Json
    usage: str
    tags: dict[str, Any]


class Target(Protocol):
    def __call__(self, source: Source, folder: Path, int8: bool) -> Written: ...


def refused(target: str, reason: str, instead: str) -> UserError:
    return UserError(f"--to {target}: {reason}; {instead}")


def check_difference(found: float, what: str, bar: float = BAR) -> float:
    """Raise unless it is small; a number that is none is not."""
    if not found <= bar:
        raise RunError(f"the export does not agree with the run: {what} differ by {found:.2g} (at most {bar:g}); "
                       "nothing was written")  # fmt: skip
    return found


@contextmanager
def needing(target: str) -> Iterator[None]:
    """Say which extra brings a package that is missing."""
    try:
        yield
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        raise UserError(f"--to {target} needs the {name} package: pip install 'seqloom[export]'") from None


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars, and no warnings of the libraries that write and load."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = ("transformers", "torch.onnx", "onnxscript", "onnx_ir", "gguf", "ctranslate2")
        loggers = [logging.getLogger(name) for name in names]
        before = [logger.level for logger in loggers]
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        try:
            with _no_bars():
                yield
        finally:
            for logger, level in zip(loggers, before, strict=True):
                logger.setLevel(level)


@contextmanager
def _no_bars() -> Iterator[None]:
    try:
        from transformers.utils import logging as theirs
    except ImportError:
        yield
        return
    shown = theirs.is_progress_bar_enabled()
    theirs.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            theirs.enable_progress_bar()
