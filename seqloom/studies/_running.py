"""`seqloom.study(name)` and `seqloom.study_all()`: measure, keep the result, write the pages."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import torch

from seqloom.core.errors import RunError, UserError
from seqloom.core.progress import Reporter, Silent
from seqloom.runs.durable import make_folder, write_file
from seqloom.runs.kept import check_own
from seqloom.runs.record import versions
from seqloom.runs.source import cache_folder
from seqloom.runs.terminal import reporter
from seqloom.studies._gallery import html_index, html_page
from seqloom.studies._record import Record, load
from seqloom.studies._registry import find_study, study_names
from seqloom.studies._study import Study, finite
from seqloom.weights.packages import PREFIX, is_installed


class Records(list[Record]):
    """The results of all studies that could be measured."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        super().__init__(records)
        self.left_out: dict[str, str] = {}  # the other studies, and why they could not be


def study(
    name: str, *, quick: bool = False, out: str | Path | None = None, fresh: bool = False, quiet: bool = False
) -> Record:
    """Measure one claim; `seqloom list studies` has the names.

    `quick` ends in seconds and is too small to judge by. With `out`, a folder, the result is kept as NAME.json and
    shown by NAME.html; a study that is finished there is not repeated, unless `fresh`.
    """
    found = find_study(name)
    path = Path(out) / f"{name}.json" if out is not None else None
    if path:
        check_own(path.parent, path.name)
    record = _finished(path, quick) if path and not fresh else None
    if record is None:
        _check_needs(name, found, quick)
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
) -> Records:
    """All studies in the order of their claims; with `out`, also index.html, which shows verdict and figure of each.

    A study that lacks something here, such as weights that are not installed, is left out: `left_out` says why. One
    that fails ends the run with its error.
    """
    records = Records()
    for name in study_names():
        try:
            records.append(study(name, quick=quick, out=out, fresh=fresh, quiet=quiet))
        except RunError:
            raise
        except UserError as reason:
            records.left_out[name] = str(reason)
    if out is not None:
        write_file(Path(out) / "index.html", html_index(records, records.left_out).encode())
    return records


def _check_needs(name: str, found: Study, quick: bool) -> None:
    missing = [
        need for need in found.needs if not quick and not is_installed(need.removeprefix(PREFIX), cache_folder())
    ]
    if missing:
        commands = " and ".join(f"seqloom weights {need.removeprefix(PREFIX)}" for need in missing)
        raise UserError(f"study {name}: needs {', '.join(missing)}; run: {commands} (or try it with --quick)")


def _finished(path: Path, quick: bool) -> Record | None:
    """A full result also serves where a quick one is asked for."""
    if not path.exists():
        return None
    record = load(path)
    if record.name != path.stem:
        raise UserError(f"{path}: the result of study {record.name}; remove it, or give another --out")
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
