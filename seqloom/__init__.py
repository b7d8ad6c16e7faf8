"""seqloom: train, compare, understand and ship sequence models, from the n-gram to the Transformer.

    import seqloom
    run = seqloom.fit(data="book.txt", model="lstm", out="runs/book")
    print(run.generate("Once upon a time", max_new=200))
    print(seqloom.compare(data="book.txt", models="lstm,gpt", out="runs/compare").report)

Importing the package is cheap: torch is loaded by the first call that needs it.
"""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"
__all__ = ["compare", "doctor", "fit", "load"]


def _avoid_unusable_amx() -> None:
    """Some virtual machines advertise AMX but trap on it, which kills any bf16 matmul; AVX-512 is safe."""
    cpu = Path("/proc/cpuinfo")
    if "ONEDNN_MAX_CPU_ISA" not in os.environ and cpu.exists() and "amx_bf16" in cpu.read_text():
        os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_BF16"


_avoid_unusable_amx()


_VERBS = {"doctor": "runs.doctor", "fit": "runs.fit", "load": "runs.run"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'seqloom' has no attribute {name!r}")
    if name == "compare":
        return import_module("seqloom.compare")
    return getattr(import_module(f"seqloom.{_VERBS[name]}"), name)
