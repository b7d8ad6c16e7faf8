"""Tensors in files."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from seqloom.core.errors import RunError


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, by name."""
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"{path}: not a safetensors file as seqloom writes it ({' '.join(str(error).split())[:120]})"
        ) from None
