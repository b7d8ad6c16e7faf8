"""A study: the same comparison on several data sets, one after another, and the standing of every entry over all.

    DIR/DATA/           an ordinary comparison for each data set
    DIR/study.json      ranks, differences and tests over data sets; DIR/report.html and report.md present them

Running the same command again reuses what is finished; data sets may be added or left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

from seqloom.compare.comparing import compare
from seqloom.compare.comparison import Comparison
from seqloom.compare.defaults import default_models
from seqloom.compare.plan import column_overrides, guesses
from seqloom.compare.report.study import conclusion, lines, report_files
from seqloom.compare.report.study_words import speaker
from seqloom.compare.standings import assemble
from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.data.files import declare
from seqloom.data.memory import Data
from seqloom.data.shapes.columns import Columns
from seqloom.lab.entries import Entry
from seqloom.lab.rules import Budget, Rules
from seqloom.lab.watch import Watch, watcher
from seqloom.pages.words import LANGUAGES
from seqloom.runs.durable import write_file
from seqloom.runs.given import Named, place, settings
from seqloom.runs.kept import Facts, check_own, read_json, write_json
from seqloom.runs.material import Material
from seqloom.runs.record import versions

FILE = "study.json"


class _Known(Facts):
    """study.json"""

    task: str
    names: list[str] = []


_ONE = ("valid", "test")  # options that name the parts of one data set


class Study:
    """A finished study: `result` holds its figures, `report` is the path of the HTML report, and `comparisons` are
    those of the single data sets."""

    def __init__(self, folder: Path, result: Json, comparisons: dict[str, Comparison]) -> None:
        self.folder, self.result, self.report = folder, result, folder / "report.html"
        self.comparisons = comparisons

    def __repr__(self) -> str:
        return "\n".join([*lines(self.result), "", f"Report: {self.report}"])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    @property
    def best(self) -> str | None:
        """Name of the entry with the best mean rank; None if no entry finished on all data sets."""
        return self.result["entries"][0]["name"] if self.result["entries"] else None


def compare_all(
    data: Mapping[str, Data],
    *,
    out: str | Path | None = None,
    task: Named = None,
    columns: Columns | None = None,
    encoding: str | None = None,
    overrides: Sequence[str] = (),
    quiet: bool = False,
    command: str = "",
    **options: object,
) -> Study:
    """Compare several models on several data sets, and rank them over all.

    `data`: data sets by name, each as in `seqloom.compare`. The default `task` is guessed from the first one and is the
    same for all. Every data set is a comparison in a folder of its own inside `out`. All other options are those of
    `seqloom.compare`, the same for every data set, but for `valid` and `test`: each data set is split.
    """
    if wrong := next((option for option in _ONE if options.get(option) is not None), None):
        raise UserError(f"--{wrong}: belongs to one data set, and there are {len(data)}; leave it out, each is split")
    folder, folders, watch = Path(out or "runs/study"), folder_names(data), watcher(quiet)
    before = _known(folder)
    given = [*overrides, *([f"data.encoding={encoding}"] if encoding else [])]
    sections: dict[str, Any] = {name: options.get(name) for name in ("train", "tokenizer")}
    general: Any = options.get("options")
    names, given = settings(given, general, task=task, **sections)
    name = _check(data, names.get("task"), columns or {}, given, encoding, watch)
    if before.get("task", name) != name:
        raise UserError(f"{folder} holds a study of {before['task']}, not of {name}; choose another --out")
    _tell_changes(before, data, folder, watch)
    started = datetime.now().astimezone().isoformat(timespec="seconds")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / FILE, before | {"task": name, "names": list(data)})
    full: Any = {"name": name} | dict(task) if isinstance(task, Mapping) else name
    same: dict[str, Any] = {"task": full, "columns": columns, "encoding": encoding, "overrides": overrides, **options}
    done: dict[str, Comparison] = {}
    for place_, (each, content) in enumerate(data.items(), 1):
        watch.say(f"data set {place_} of {len(data)}: {each}")
        there = folder / folders[each]
        done[each] = compare(data=content, out=there, quiet=quiet, command=command, **same)
    protocol = {"command": command, "started": started, "versions": versions()}
    found = assemble({each: one.result for each, one in done.items()}, folders, protocol)
    found["conclusion"] = {language: conclusion(found, speaker(language)) for language in LANGUAGES}
    write_json(folder / FILE, {"task": name, "names": list(data)} | found)
    for file, text in report_files(found).items():
        write_file(folder / file, text)
    return Study(folder, found, done)


def data_sets(specs: Sequence[str], each: str | None) -> dict[str, str]:
    """From the command line: `--data` several times, `NAME=PATH` to name one, and every file of the folder `each`."""
    found = [_named(spec) for spec in specs]
    if each is not None:
        if not Path(each).is_dir():
            raise UserError(f"--each {each}: not a folder; name one whose files are data sets")
        files = sorted(file for file in Path(each).iterdir() if file.is_file() and not file.name.startswith("."))
        if not files:
            raise UserError(f"--each {each}: the folder has no files; name one whose files are data sets")
        found += [(_stem(str(file)), str(file)) for file in files]
    names = [name for name, _ in found]
    if double := next((name for name in names if names.count(name) > 1), None):
        both = " and ".join([spec for name, spec in found if name == double][:2])
        raise UserError(f"--data: {both} are both named {double!r}; name them, for example --data first={found[0][1]}")
    return dict(found)


def _named(spec: str) -> tuple[str, str]:
    match = re.fullmatch(r"(\w[\w.+-]*)=(.+)", spec)
    return (match[1], match[2]) if match and not Path(spec).exists() else (_stem(spec), spec)


def _stem(spec: str) -> str:
    """`imdb` for data/imdb.csv and for sample:imdb."""
    first = spec if Path(spec).exists() else spec.partition(",")[0]
    return Path(first.removeprefix("sample:")).name.partition(".")[0] or "data"


def folder_names(names: Mapping[str, object]) -> dict[str, str]:
    """The folder of each data set inside that of the study."""
    if len(names) < 2:
        raise UserError("--data: a study needs two data sets or more; for one, leave out --each or use compare")
    folders = {name: re.sub(r"[^\w.-]+", "-", name).strip(".-") for name in names}
    seen = [folder.casefold() for folder in folders.values()]
    for name, folder in folders.items():
        if not folder:
            raise UserError(f"data set {name!r}: not a valid name; use letters and digits")
        if seen.count(folder.casefold()) > 1:
            raise UserError(f"data set {name!r}: another one has the same name; use different names")
    return folders


def _known(folder: Path) -> Json:
    """What an earlier call has recorded; a folder of anything else is refused."""
    check_own(folder, FILE)
    way_out = "delete it and run the same command again, which keeps the finished comparisons"
    return read_json(folder / FILE, _Known, way_out) or {}


def _tell_changes(before: Json, data: Mapping[str, Data], folder: Path, watch: Watch) -> None:
    last: list[str] = before.get("names", [])
    added = [name for name in data if name not in last]
    dropped = [name for name in last if name not in data]
    if last and (added or dropped):
        said = [f"adds {', '.join(added)}"] if added else []
        said += [f"leaves out {', '.join(dropped)} (kept on disk)"] if dropped else []
        watch.say(f"{folder}: {'; '.join(said)}")


def _check(
    data: Mapping[str, Data],
    task: str | None,
    columns: Columns,
    overrides: Sequence[str],
    encoding: str | None,
    watch: Watch,
) -> str:
    """The task, after a look at every data set: it is better to stop before the first one is trained on."""
    guessed, first = task is None, next(iter(data))
    for name, content in data.items():
        try:
            placed = place({"train": content}, None if guessed else task, overrides)
            spec = placed.specs["train"]
            declare(spec, encoding)
            suits = [placed.task] if placed.task else [guess for guess, _ in guesses(spec, columns)]
            if task is None:
                if not suits:
                    raise UserError("it does not show what is to be learned from it; say so with --task")
                task = suits[0]
                watch.say(f"task: {task}, as {name} suggests (--task to change)")
            elif suits[:1] != [task]:
                looks = f"looks like {suits[0]}" if suits else "does not look"
                raise UserError(f"{looks}, not like {task} as {first} does; say which with --task, or leave it out")
            _open(task, spec, [*placed.overrides, *column_overrides(task, columns, overrides), *overrides])
        except UserError as error:
            raise UserError(f"data set {name}: {error}") from None
    assert task is not None
    return task


def _open(task: str, spec: str, overrides: Sequence[str]) -> None:
    """Raises if the data cannot be read for the task."""
    model = default_models(task)[0]
    budget = Budget(kind="tokens", amount=1)
    rules = Rules(
        task=task, data={"train": spec}, overrides=tuple(overrides), budget=budget, trials=0, trial_share=1.0, seeds=1,
        seed=0, threads=1,
    )  # fmt: skip
    plain = rules.model_copy(update={"overrides": tuple(o for o in overrides if not o.startswith("model."))})
    Material(Entry(model, model).config(plain))
