"""GET /api/runs, /api/runs/{id} and /api/runs/{id}/curve."""

from typing import Any

from pydantic import BaseModel

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.runs.durable import fault
from seqloom.runs.folder import RunFolder
from seqloom.serve.api.answers import answer, missing, refusals, without
from seqloom.serve.api.curves import curve
from seqloom.serve.api.past import Past, Place
from seqloom.serve.api.state import State


class Score(BaseModel):
    name: str
    value: float | None
    better: str  # higher or lower
    part: str  # test or valid


class RunRow(BaseModel):
    id: str
    task: str | None
    model: str | None
    data: str | None
    seed: int | None
    status: str  # finished, running, unfinished or damaged
    score: Score | None
    parameters: int | None
    seconds: float | None
    step: int | None
    progress: float | None  # share of the budget
    loss: float | None  # the last one in training
    started: str | None
    ended: str | None
    inside: str | None  # id of the comparison that it is a part of


class RunList(BaseModel):
    runs: list[RunRow]


class RunDetails(BaseModel):
    run: RunRow
    record: dict[str, Any] | None
    summary: dict[str, Any] | None
    message: str | None  # what is damaged


class Curve(BaseModel):
    metric: str
    steps: list[float]
    train: list[float | None]
    valid: list[float | None]


def router(state: State) -> Any:
    from fastapi import APIRouter
    from starlette.responses import Response

    routes, past = APIRouter(prefix="/api/runs", tags=["runs"]), state.past

    @routes.get("", response_model=RunList)
    def runs() -> Response:
        return answer({"runs": past.runs()})

    @routes.get("/{run}", response_model=RunDetails, responses=refusals(404))
    def one(run: str) -> Response:
        return answer(_details(past, _found(past, run)))

    @routes.get("/{run}/curve", response_model=Curve, responses=refusals(404))
    def its_curve(run: str) -> Response:
        place = _found(past, run)
        return answer(curve(place.path / "metrics.jsonl", _metric(place)))

    return routes


def _found(past: Past, run: str) -> Place:
    return past.place(run, "run") or missing("run")


def _details(past: Past, place: Place) -> Json:
    record = summary = message = None
    try:
        folder = RunFolder(place.path)
        record, summary = folder.record(), folder.summary()
    except UserError as error:
        message = without(fault(error), place.path, past.root)
    return {"run": past.row(place), "record": record, "summary": summary, "message": message}


def _metric(place: Place) -> str:
    try:
        return RunFolder(place.path).record().get("metric") or "loss"
    except UserError:
        return "loss"
