"""GET /api/jobs/choices and POST /api/jobs/look: what the form of the page needs before anything is trained."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from seqloom.core.errors import UserError
from seqloom.serve.api.answers import answer, missing, refusals, refuse
from seqloom.serve.api.state import State
from seqloom.serve.jobs.choosing import Choices
from seqloom.serve.jobs.looking import Busy, look
from seqloom.serve.jobs.request import Data, Name, check_data, check_task


class Look(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    data: Data
    task: Name | None = None


class Seen(BaseModel):
    tasks: list[dict[str, str]]
    task: str | None
    columns: list[str]
    roles: dict[str, str | int]
    findings: list[dict[str, str]]


class Offer(BaseModel):
    tasks: list[dict[str, Any]]
    models: list[dict[str, str]]
    samples: list[dict[str, str]]
    budgets: dict[str, list[str]]


def router(state: State) -> Any:
    from fastapi import APIRouter
    from starlette.responses import Response

    routes = APIRouter(prefix="/api/jobs", tags=["jobs"])
    choices = Choices(state.uploads.folder.parent)

    @routes.get("/choices", response_model=Offer, responses=refusals(503))
    def offered() -> Response:
        try:
            return answer(choices.all())
        except UserError as error:
            refuse(503, str(error))

    @routes.post("/look", response_model=Seen, responses=refusals(400, 404, 503))
    def seen(wanted: Look) -> Response:
        kind, _, name = wanted.data.partition(":")
        try:
            check_data(wanted.data)
            check_task(wanted.task)
            data = wanted.data if kind == "sample" else state.uploads.path(name) or missing("data")
            return answer(look(data, wanted.task))
        except Busy as error:
            refuse(503, str(error))
        except (UserError, ValueError) as error:
            refuse(400, str(error))

    return routes
