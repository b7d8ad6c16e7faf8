"""What all routes answer with: JSON of finite numbers, and refusals of one line that show no path."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from pydantic import BaseModel

from seqloom.core.json_text import to_json

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM}
_STORES = ("disk is full", "readonly", "disk I/O error", "unable to open", "database is locked")
WORDS = {
    400: "The request is not valid",
    404: "There is nothing of this id",
    409: "Not possible as things are now",
    413: "Too large",
    422: "The request is not valid",
    503: "Not possible on this server, or busy",
    507: "The disk is full or cannot be written",
}


class Fault(BaseModel):
    message: str
    type: str
    param: str | None = None
    code: str | None = None


class Refusal(BaseModel):
    error: Fault


def refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    """For the description of a route."""
    return {code: {"model": Refusal, "description": WORDS[code]} for code in codes}


def answer(value: Any, status: int = 200) -> Any:
    from starlette.responses import Response

    return Response(to_json(value), status, media_type="application/json")


def refuse(status: int, message: str) -> NoReturn:
    from starlette.exceptions import HTTPException

    raise HTTPException(status, message)


def missing(what: str) -> NoReturn:
    refuse(404, f"{what}: no such id; list them to see which there are")


@contextmanager
def storing() -> Iterator[None]:
    """A disk that cannot be written is the answer 507, and nothing else changes: the next request tries again."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        if not unwritable(error):
            raise
    except Exception as error:
        if not unwritable(error.__cause__):
            raise
    else:
        return
    refuse(507, "nothing can be written: the disk of the server is full or read-only; free some space and try again")


def unwritable(error: BaseException | None) -> bool:
    if isinstance(error, sqlite3.Error):
        return any(word in str(error) for word in _STORES)
    return isinstance(error, OSError) and error.errno in FULL


def without(text: str, *folders: object) -> str:
    """A message without these folders of the server."""
    for folder in folders:
        text = text.replace(f"{folder}/", "")
    return text
