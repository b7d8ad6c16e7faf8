"""What a request is told about an error: one line, and nothing about the inside of the process."""

from __future__ import annotations

import errno
import re

from seqloom.core.errors import UserError, out_of_memory
from seqloom.core.rows import Json

_LONGEST = 500  # characters
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_OPTION = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)(?: [A-Z]{3,}\b)?")
_FIELDS = {"with": "patch_with", "data": "row"}  # the others have the names of their options


def told(error: BaseException, secret: str = "") -> Json:
    """`secret`: a path that the client does not know; it is called `the file`."""
    if isinstance(error, UserError):
        message = _OPTION.sub(_field, " ".join(str(error).split()))
        return {"kind": "user", "message": (message.replace(secret, "the file") if secret else message)[:_LONGEST]}
    if isinstance(error, OSError) and error.errno in _FULL:
        return {"kind": "full", "message": "no space left to write"}
    if out_of_memory(error):
        return {"kind": "failed", "message": "not enough memory for this request; send less at once"}
    return {"kind": "failed", "message": f"the model could not work on this request ({type(error).__name__})"}


def _field(option: re.Match[str]) -> str:
    """What an option of the command line is called in a request."""
    name = option[1].replace("-", "_")
    return _FIELDS.get(name, name)
