"""Files that commands write."""

from __future__ import annotations

import os
from pathlib import Path

from seqloom.core.errors import UserError


def check_out(out: Path | None, data: str | None = None) -> None:
    """Before hours of work, not after them."""
    if out is None:
        return
    if out.is_dir():
        raise UserError(f"{out}: a folder; a file is wanted")
    if data is not None and out.exists() and os.path.exists(data) and os.path.samefile(out, data):
        raise UserError(f"{out}: is also --data, and would be replaced; choose another --out")
