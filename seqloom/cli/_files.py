"""Checks of the files that commands write."""

from __future__ import annotations

import os
from pathlib import Path

from seqloom.core.errors import UserError


def check_out(out: Path | None, data: str | None = None) -> None:
    """Refuse an unusable output path before the work begins."""
    if out is None:
        return
    if out.is_dir():
        raise UserError(f"{out}: is a folder; give a file name")
    if out.exists() and not out.is_file():
        raise UserError(f"{out}: is not a regular file, and would be replaced by one; give another name")
    if data is not None and out.exists() and os.path.exists(data) and os.path.samefile(out, data):
        raise UserError(f"{out}: is also --data and would be overwritten; choose another file")
