"""What a request is told about an error: one line, and nothing about the inside of the process."""

from __future__ import annotations

from seqloom.core.errors import UserError, out_of_memory
from seqloom.core.rows import Json

_LONGEST = 500  # characters


def told(error: BaseException, secret: str = "") -> Json:
    """`secret`: a path that the client does not know; it is called `the file`."""
    if isinstance(error, UserError):
        message = " ".join(str(error).split())
        return {"kind": "user", "message": (message.replace(secret, "the file") if secret else message)[:_LONGEST]}
    if out_of_memory(error):
        return {"kind": "failed", "message": "not enough memory for this request; send less at once"}
    return {"kind": "failed", "message": f"the model could not work on this request ({type(error).__name__})"}
