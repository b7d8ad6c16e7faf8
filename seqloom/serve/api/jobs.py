"""/api/jobs: train and compare from the page, and follow how far it is."""

from typing import Annotated, Any

from pydantic import BaseModel

from seqloom.core.errors import UserError
from seqloom.serve.api.answers import answer, missing, refusals, refuse, storing
from seqloom.serve.api.following import follow, row
from seqloom.serve.api.state import State
from seqloom.serve.jobs.request import Order
from seqloom.serve.jobs.runner import Runner
from seqloom.serve.jobs.store import Conflict, Crowded, Job


class JobRow(BaseModel):
    id: str
    kind: str
    state: str  # queued, running, done, failed or cancelled
    asked: dict[str, Any]
    created: str
    started: str | None
    ended: str | None
    code: int | None  # exit code
    message: str | None  # why it failed
    progress: float | None
    line: str | None  # the last one
    result: str | None  # id of its run or comparison, once there is one


class JobList(BaseModel):
    jobs: list[JobRow]


class JobDetails(JobRow):
    lines: list[str]


def router(state: State) -> Any:
    from fastapi import APIRouter, Query
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import Response, StreamingResponse

    routes, runner = APIRouter(prefix="/api/jobs", tags=["jobs"]), state.jobs
    After = Annotated[int, Query(ge=0, lt=2**53, description="number of the last line that is known")]

    @routes.get("", response_model=JobList, responses=refusals(503))
    def jobs() -> Response:
        works = _works(runner)
        return answer({"jobs": [row(works, job) for job in works.store.jobs()]})

    @routes.post("", status_code=202, response_model=JobRow, responses=refusals(400, 409, 503, 507))
    def submit(order: Order) -> Response:
        works = _works(runner)
        return answer(row(works, _submitted(works, order)), 202)

    @routes.get("/{job}", response_model=JobDetails, responses=refusals(404, 503))
    def one(job: str) -> Response:
        works = _works(runner)
        found = _found(works, job)
        return answer(row(works, found) | {"lines": [text for _, text in works.store.lines(found.number)]})

    @routes.post("/{job}/cancel", response_model=JobRow, responses=refusals(404, 503, 507))
    def cancel(job: str) -> Response:
        works = _works(runner)
        with storing():
            found = works.cancel(job)
        return answer(row(works, found or missing("job")))

    @routes.get("/{job}/events", response_class=StreamingResponse, responses=refusals(404, 503))
    async def events(job: str, after: After = 0) -> StreamingResponse:
        works = _works(runner)
        found = await run_in_threadpool(_found, works, job)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(follow(works, found, after), media_type="text/event-stream", headers=headers)

    return routes


def _submitted(runner: Runner, order: Order) -> Job:
    try:
        with storing():
            return runner.submit(order)[0]
    except Crowded as error:
        refuse(503, str(error))
    except Conflict as error:
        refuse(409, str(error))
    except UserError as error:
        refuse(400, str(error))


def _works(runner: Runner | None) -> Runner:
    why = "another server does the jobs of this folder, or it cannot be written"
    return runner or refuse(503, f"this server trains nothing: {why}; train from the command line")


def _found(runner: Runner, job: str) -> Job:
    return runner.store.job(job) or missing("job")
