"""seqloom: train, compare, understand and ship sequence models, from the n-gram to the Transformer.

    import seqloom
    run = seqloom.fit(data="book.txt", model="lstm", out="runs/book")
    print(run.generate("Once upon a time", max_new=200))
    print(seqloom.compare(data="book.txt", models="lstm,gpt", out="runs/compare").report)

`SequenceClassifier`, `SequenceTagger` and `Forecaster` are scikit-learn estimators over the same runs.
Importing the package is cheap: torch and scikit-learn are loaded by the first use that needs them.
"""

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqloom.core.version import VERSION as __version__

if TYPE_CHECKING:
    from seqloom.adapt.merge import merge as merge
    from seqloom.adapt.prompting import prompt as prompt
    from seqloom.compare.comparing import compare as compare
    from seqloom.compare.study import compare_all as compare_all
    from seqloom.diagnose.diagnosing import diagnose as diagnose
    from seqloom.estimators import Forecaster as Forecaster
    from seqloom.estimators import SequenceClassifier as SequenceClassifier
    from seqloom.estimators import SequenceTagger as SequenceTagger
    from seqloom.explain.explaining import explain as explain
    from seqloom.export.exporting import export as export
    from seqloom.retrieve.answering import ask as ask
    from seqloom.retrieve.comparing import compare_retrievers as compare_retrievers
    from seqloom.retrieve.index import index as index
    from seqloom.runs.doctor import doctor as doctor
    from seqloom.runs.fit import fit as fit
    from seqloom.runs.run import load as load
    from seqloom.serve.serving import serve as serve
    from seqloom.studies._running import study as study
    from seqloom.studies._running import study_all as study_all

__all__ = [
    "Forecaster",
    "SequenceClassifier",
    "SequenceTagger",
    "__version__",
    "ask",
    "compare",
    "compare_all",
    "compare_retrievers",
    "diagnose",
    "doctor",
    "explain",
    "export",
    "fit",
    "index",
    "load",
    "merge",
    "prompt",
    "serve",
    "study",
    "study_all",
]

_ESTIMATORS = dict.fromkeys(("Forecaster", "SequenceClassifier", "SequenceTagger"), "estimators")
_VERBS = {"compare_all": "compare.study", "doctor": "runs.doctor", "fit": "runs.fit", "load": "runs.run"}
_VERBS |= {"merge": "adapt.merge", "prompt": "adapt.prompting"}
_VERBS |= {"ask": "retrieve.answering", "compare_retrievers": "retrieve.comparing", "index": "retrieve.index"}
_VERBS |= {"study": "studies._running", "study_all": "studies._running"}
_PLACES = _VERBS | _ESTIMATORS  # imported on first use


def _avoid_unusable_amx() -> None:
    """Some virtual machines advertise AMX but trap on it, which kills any bf16 matmul; AVX-512 is safe."""
    cpu = Path("/proc/cpuinfo")
    if "ONEDNN_MAX_CPU_ISA" not in os.environ and cpu.exists() and "amx_bf16" in cpu.read_text():
        os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_BF16"


_avoid_unusable_amx()


def __getattr__(name: str) -> Any:
    if name in ("compare", "diagnose", "explain", "export", "serve"):
        return import_module(f"seqloom.{name}")  # callable: the package and the function share a name
    if name not in _PLACES:
        raise AttributeError(f"module 'seqloom' has no attribute {name!r}")
    return getattr(import_module(f"seqloom.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
