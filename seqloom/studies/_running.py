"""`seqloom.study(name)` and `seqloom.study_all()`: measure, keep the result, write the pages."""

from __future__ import annotations

import time
from pathlib import Path

import torch

from seqloom.core.errors import RunError
from seqloom.core.progress import Reporter, Silent
from seqloom.runs.durable import make_folder, write_file
from seqloom.runs.record import versions
from seqloom.runs.terminal import reporter
from seqloom.studies._gallery import html_index, html_page
from seqloom.studies._record import Record, load
from seqloom.studies._registry import find_study, study_names
from seqloom.studies._study import finite


def study(
    name: str, *, quick: bool = False, out: str | Path | None = None, fresh: bool = False, quiet: bool = False
) -> Record:
    """Measure one claim; `seqloom list studies` has the names.

    `quick` ends in seconds and is too small to judge by. With `out`, a folder, the result is kept as NAME.json and
    shown by NAME.html; a study that is finished there is not repeated, unless `fresh`.
    """
    found = find_study(name)
    path = Path(out) / f"{name}.json" if out is not None else None
    record = _finished(path, quick) if path and not fresh else None
    if record is None:
        progress: Reporter = Silent() if quiet else reporter()
        if not quiet:
            progress.say(f"{name}: {found.title[0]}{' (quick)' if quick else ''}")
        record = _measured(name, quick, progress)
    if path:
        make_folder(path.parent)
        record.save(path)
        write_file(path.with_suffix(".html"), html_page(record).encode())
    return record


def study_all(
    *, quick: bool = False, out: str | Path | None = None, fresh: bool = False, quiet: bool = False
) -> list[Record]:
    """All studies in the order of their claims; with `out`, also index.html, which shows verdict and figure of each."""
    records = [study(name, quick=quick, out=out, fresh=fresh, quiet=quiet) for name in study_names()]
    if out is not None:
        write_file(Path(out) / "index.html", html_index(records).encode())
    return records


def _finished(path: Path, quick: bool) -> Record | None:
    """A full result also serves where a quick one is asked for."""
    if not path.exists():
        return None
    record = load(path)
    return record if quick or not record.quick else None


def _measured(name: str, quick: bool, progress: Reporter) -> Record:
    started, threads = time.perf_counter(), torch.get_num_threads()
    with torch.random.fork_rng():
        torch.manual_seed(0)  # a study seeds what it draws itself; this is for what it forgot
        finding = find_study(name).measure(quick, progress)
    progress.close()
    seconds = time.perf_counter() - started
    command = f"seqloom study {name}{' --quick' if quick else ''} --out runs/studies"
    record = Record(name, quick, finding, seconds, threads, versions(), command)
    if not finite(record.facts()):
        raise RunError(f"study {name}: a number is not finite")
    return record
