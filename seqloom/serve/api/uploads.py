"""POST, GET and DELETE /api/uploads: the body is the file itself, counted while it is read."""

from typing import Annotated, Any, NoReturn

from pydantic import BaseModel

from seqloom.serve.api.answers import answer, missing, refusals, refuse, storing
from seqloom.serve.api.state import State
from seqloom.serve.jobs.uploads import Arriving, NoRoom, TooLarge

_AT_ONCE = 1 << 20  # bytes that are collected before they are written
_BODY = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}


class Upload(BaseModel):
    id: str
    name: str
    bytes: int
    created: str


class UploadList(BaseModel):
    uploads: list[Upload]


def router(state: State) -> Any:
    from fastapi import APIRouter, Query
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response

    routes, kept = APIRouter(prefix="/api/uploads", tags=["uploads"]), state.uploads
    Name = Annotated[str, Query(max_length=1000, description="What the file is called; its ending says what it is.")]
    described: dict[str, Any] = {"requestBody": _BODY | {"required": True}}

    @routes.post("", status_code=201, response_model=Upload, responses=refusals(400, 413, 507), openapi_extra=described)
    async def upload(request: Request, name: Name = "data.txt") -> Response:
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and len(declared) < 20 and int(declared) > kept.largest:
            _too_large(kept.largest)
        with storing():
            arriving = await run_in_threadpool(kept.begin, name)
        try:
            with storing():
                await _receive(request, arriving)
                return answer(await run_in_threadpool(_finished, arriving), 201)
        except TooLarge:
            _too_large(kept.largest)
        except NoRoom:
            refuse(507, "the uploads take all the room they may; delete some and try again")
        except ClientDisconnect:
            refuse(400, "the file did not arrive as a whole; send it again")
        finally:
            await run_in_threadpool(arriving.abandon)

    async def _receive(request: Request, arriving: Arriving) -> None:
        waiting = bytearray()
        async for part in request.stream():
            waiting += part
            if len(waiting) >= _AT_ONCE:
                await run_in_threadpool(arriving.write, bytes(waiting))
                waiting.clear()
        await run_in_threadpool(arriving.write, bytes(waiting))

    @routes.get("", response_model=UploadList)
    def uploads() -> Response:
        return answer({"uploads": kept.list()})

    @routes.get("/{upload}", response_model=Upload, responses=refusals(404))
    def one(upload: str) -> Response:
        return answer(kept.one(upload) or missing("upload"))

    @routes.delete("/{upload}", status_code=204, response_class=Response, responses=refusals(404, 507))
    def delete(upload: str) -> Response:
        with storing():
            removed = kept.remove(upload)
        return Response(status_code=204) if removed else missing("upload")

    return routes


def _finished(arriving: Arriving) -> dict[str, Any]:
    if not arriving.size:
        refuse(400, "the file is empty; send its content as the body of the request")
    return arriving.finish()


def _too_large(most: int) -> NoReturn:
    refuse(413, f"the file is larger than {most / (1 << 20):,.0f} MB; send a part of it, or use the command line")
