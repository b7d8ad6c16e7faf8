"""GET /api/studies: claims about sequence models, and the results of those that were measured here."""

from typing import Any

from pydantic import BaseModel

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.runs import listing
from seqloom.serve.api.answers import answer
from seqloom.serve.api.past import Past
from seqloom.serve.api.state import State

FOLDER = "studies"  # in the folder of runs: where the commands in the documentation put the results


class StudyRow(BaseModel):
    name: str
    what: str
    command: str
    result: dict[str, Any] | None
    message: str | None  # why a result that is there is not shown


class StudyList(BaseModel):
    studies: list[StudyRow]


def router(state: State) -> Any:
    from fastapi import APIRouter
    from starlette.responses import Response

    routes = APIRouter(prefix="/api/studies", tags=["studies"])

    @routes.get("", response_model=StudyList)
    def studies() -> Response:
        return answer({"studies": [_row(state.past, study) for study in listing.studies()]})

    return routes


def _row(past: Past, study: Json) -> Json:
    from seqloom.studies._record import load

    name, result, message = study["study"], None, None
    path = past.root / FOLDER / f"{name}.json"
    try:
        result = load(path).facts() if path.exists() else None
    except UserError:
        message = "its result cannot be read; measure it again with --fresh"
    command = f"seqloom study {name} --out runs/{FOLDER}"
    return {"name": name, "what": study["what"], "command": command, "result": result, "message": message}
