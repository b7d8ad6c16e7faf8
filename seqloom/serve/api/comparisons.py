"""GET /api/comparisons, /api/comparisons/{id} and /api/comparisons/{id}/report."""

from typing import Any

from pydantic import BaseModel

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.serve.api import reading
from seqloom.serve.api.answers import answer, missing, refusals, refuse
from seqloom.serve.api.past import Past, Place
from seqloom.serve.api.reports import Reports
from seqloom.serve.api.runs import Score
from seqloom.serve.api.state import State


class ComparisonRow(BaseModel):
    id: str
    kind: str  # comparison, or study: of several data sets
    status: str  # finished, running, unfinished or damaged
    task: str | None
    data: str | None
    models: list[str]
    seeds: int | None
    budget: str | None
    best: str | None  # the model to use
    choice: str | None  # the model that is recommended
    score: Score | None  # of the best
    report: bool | None
    started: str | None
    ended: str | None
    runs: list[str]  # ids


class ComparisonList(BaseModel):
    comparisons: list[ComparisonRow]


class ComparisonDetails(BaseModel):
    comparison: ComparisonRow
    plan: dict[str, Any] | None
    result: dict[str, Any] | None
    message: str | None  # what is damaged


def router(state: State) -> Any:
    from fastapi import APIRouter
    from starlette.responses import HTMLResponse, Response

    routes = APIRouter(prefix="/api/comparisons", tags=["comparisons"])
    past, reports = state.past, Reports()

    @routes.get("", response_model=ComparisonList)
    def comparisons() -> Response:
        return answer({"comparisons": past.comparisons()})

    @routes.get("/{comparison}", response_model=ComparisonDetails, responses=refusals(404))
    def one(comparison: str) -> Response:
        return answer(_details(past, _found(past, comparison)))

    @routes.get("/{comparison}/report", response_class=HTMLResponse, responses=refusals(404, 409))
    def report(comparison: str) -> Response:
        place = _found(past, comparison)
        try:
            made = reports.of(place)
        except UserError as error:
            refuse(409, str(error))
        return Response(made.page, media_type="text/html; charset=utf-8", headers=made.headers)

    return routes


def _found(past: Past, comparison: str) -> Place:
    return past.place(comparison, "comparison", "study") or missing("comparison")


def _details(past: Past, place: Place) -> Json:
    found: Json = {"plan": None, "result": None, "message": None}
    try:
        if place.kind == "comparison":
            found["plan"] = reading.kept(place.path / "comparison.json").get("plan")
        file = place.path / ("result.json" if place.kind == "comparison" else "study.json")
        found["result"] = reading.kept(file) if file.exists() else None
    except UserError as error:
        found["message"] = str(error)
    row = next((row for row in past.comparisons() if row["id"] == place.id), None) or missing("comparison")
    return {"comparison": row, **found}
