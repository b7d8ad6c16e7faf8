"""The pages of studies in docs/studies and docs/zh/studies, from the results in docs/studies/results.

`python docs/gallery.py [FOLDER]`: FOLDER is what `seqloom study --out` wrote; full results in it are taken over first.
Nobody edits these pages by hand: a test renders them again.
"""

from __future__ import annotations

import sys
from pathlib import Path

from seqloom.studies._gallery import markdown_files
from seqloom.studies._record import Record, load
from seqloom.studies._registry import study_names

DOCS = Path(__file__).parent
RESULTS = DOCS / "studies" / "results"


def records() -> list[Record]:
    """The committed results, in the order of the claims."""
    return [load(path) for name in study_names() if (path := RESULTS / f"{name}.json").exists()]


def main() -> None:
    for folder in sys.argv[1:]:
        for path in sorted(Path(folder).glob("*.json")):
            record = load(path)
            if record.quick:
                print(f"{path}: a quick run, not taken over")
            else:
                RESULTS.mkdir(parents=True, exist_ok=True)
                record.save(RESULTS / path.name)
    for name, text in markdown_files(records()).items():
        (DOCS / name).parent.mkdir(parents=True, exist_ok=True)
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
