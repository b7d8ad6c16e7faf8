"""Built-in data that needs no download: installed or generated from a fixed seed. One file per dataset."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from seqloom.core.errors import UserError, unknown
from seqloom.data.samples.sample import NAMES, Kind, Sample

_FILES = sorted(m.name for m in iter_modules([str(Path(__file__).parent)]) if m.name != "sample")

SAMPLES: dict[str, Sample] = {
    name: sample for file in _FILES for name, sample in import_module(f"seqloom.data.samples.{file}").SAMPLES.items()
}


def find_sample(spec: str, kind: Kind) -> Sample:
    """The sample named by `sample:NAME`, if it is of the required kind."""
    name = spec.removeprefix("sample:")
    if name not in SAMPLES:
        raise unknown("sample", name, SAMPLES)
    sample = SAMPLES[name]
    if sample.kind != kind:
        others = ", ".join(f"sample:{other}" for other, found in SAMPLES.items() if found.kind == kind)
        needed = f"{NAMES[kind]} {'is' if kind == 'text' else 'are'} needed"
        raise UserError(f"{spec}: has {NAMES[sample.kind]}, but {needed}; available: {others}")
    return sample
