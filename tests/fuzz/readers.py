"""Coverage-guided fuzzing of each reader by atheris, on demand (`make fuzz-readers`): which bytes make it raise
anything but a UserError?

`python -m fuzz.readers --minutes 5 [NAME ...]`. The corpus begins with valid files and grows in runs/fuzz/corpus/NAME;
a file that breaks the reader is in runs/fuzz/broken/. No test needs atheris; `make fuzz-readers` installs it.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import Any

from fuzz.case import File

HERE = Path("runs/fuzz")


def _examined(task: str, **settings: Any) -> Callable[[Path], Any]:
    """What `doctor` does with a file."""

    def examine(path: Path) -> Any:
        from seqloom.core.config import validate
        from seqloom.data.shapes import find_shape
        from seqloom.runs.registry import find_config

        kind = find_config("tasks", task)
        shape = find_shape(kind.shapes[-1] if settings.get("frames") else kind.shapes[0])
        return shape.examine(validate({"data": shape.options}, {"data": {"train": str(path)}})["data"])

    return examine


def _recipe(path: Path) -> Any:
    from seqloom.core.toml import read_toml

    return read_toml(path)


READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {  # name: ending of the file, what reads it
    "texts.txt": ("txt", _examined("language_model")),
    "texts.jsonl": ("jsonl", _examined("language_model")),
    "labelled.csv": ("csv", _examined("classification")),
    "labelled.tsv": ("tsv", _examined("classification")),
    "labelled.jsonl": ("jsonl", _examined("classification")),
    "labelled.csv.gz": ("csv.gz", _examined("classification")),
    "pairs.tsv": ("tsv", _examined("translation")),
    "pairs.po": ("po", _examined("translation")),
    "series.csv": ("csv", _examined("forecasting")),
    "series.parquet": ("parquet", _examined("forecasting")),
    "measured.npz": ("npz", _examined("classification", frames=True)),
    "measured.csv": ("csv", _examined("classification", frames=True)),
    "tagged.conll": ("conll", _examined("tagging")),
    "tagged.jsonl": ("jsonl", _examined("tagging")),
    "questions.json": ("json", _examined("question_answering")),
    "questions.jsonl": ("jsonl", _examined("question_answering")),
    "recipe.toml": ("toml", _recipe),
}
SEEDS = {
    "recipe": b'[task]\nname = "classification"\n[train]\nsteps = 2\n',
    "pairs.po": b'msgid "a cat"\nmsgstr "un chat"\n\n' * 8,
}


def seeds(name: str) -> list[bytes]:
    """Valid files for a reader."""
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st

    from fuzz.sources import SOURCES

    shape = name.partition(".")[0]
    if found := SEEDS.get(name) or SEEDS.get(shape):
        return [found]
    files: list[File] = []

    @seed(0)
    @settings(
        max_examples=60, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(st.composite(lambda draw: SOURCES[shape](draw))())
    def collect(source: Any) -> None:
        files.extend(file for file in source.files[:1] if file.path.endswith(READERS[name][0]))

    collect()
    return [file.bytes() for file in files[:8]]


def fuzz(name: str, minutes: float) -> None:
    """Does not return: atheris ends the process."""
    import atheris  # type: ignore

    from seqloom.core.errors import UserError

    ending, read = READERS[name]
    corpus, broken = HERE / "corpus" / name, HERE / "broken"
    for folder in (corpus, broken):
        folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds(name)):
        (corpus / f"seed-{number}").write_bytes(data)
    counting = "seqloom.data.shapes.texts.doctor"  # compares arrays of a million, and atheris keeps what comes of it
    instrumented = atheris.instrument_imports(include=["seqloom.data"], exclude=[counting])
    with redirect_stderr(io.StringIO()), instrumented:  # it names every module
        read(_written(seeds(name)[0], ending))  # imports what it needs, which is instrumented by that

    def one(data: bytes) -> None:
        with suppress(UserError):
            read(_written(data, ending))

    words = [
        f"-max_total_time={int(60 * minutes)}",
        "-timeout=20",
        "-rss_limit_mb=4096",
        "-max_len=20000",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], *words, f"-artifact_prefix={broken}/{name}-", str(corpus)], one)
    atheris.Fuzz()


_FOLDER = tempfile.TemporaryDirectory(prefix="fuzz-readers-", ignore_cleanup_errors=True)


def _written(data: bytes, ending: str) -> Path:
    path = Path(_FOLDER.name) / f"data.{ending}"
    path.write_bytes(data)
    return path


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.readers", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5, help="for all readers together")
    parser.add_argument("--here", action="store_true", help="in this process")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(READERS))
    given = parser.parse_args()
    if given.here:
        fuzz(given.names[0], given.minutes)
    broken, names = [], given.names or list(READERS)
    each = given.minutes / len(names)
    for name in names:
        print(f"{name}: {60 * each:.0f} seconds", flush=True)
        done = subprocess.run([sys.executable, "-m", "fuzz.readers", "--here", name, "--minutes", str(each)])
        broken += [name] * bool(done.returncode)
    print(f"broken: {', '.join(broken)}; the files are in {HERE / 'broken'}" if broken else "no reader was broken")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
