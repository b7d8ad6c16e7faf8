"""What an index was made with: index.json. It does not change; what does is in the catalogue."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from seqloom.core.errors import UserError
from seqloom.runs.durable import Damaged, shown
from seqloom.runs.kept import Facts, read_json, write_json
from seqloom.runs.schema import mistake

FORMAT = 2  # raised when terms, chunk ids or the catalogue change
NAME = "index.json"
_WAY_OUT = "restore the file, or index into a new folder"


class EncoderFacts(BaseModel):
    name: str
    sha256: str
    width: int


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: int = FORMAT
    source: str  # the folder that was indexed; the only entry that may change, when the folder was moved
    encoder: EncoderFacts | None = None  # None: BM25 alone
    store: str = "edge"
    size: int  # tokens of a chunk, estimated
    overlap: int  # sentences that neighbouring chunks share
    columns: dict[str, str] = {}  # which columns of tables are text and title

    @classmethod
    def read(cls, folder: Path) -> Settings:
        path = folder / NAME
        content = read_json(path, Facts, _WAY_OUT)
        if content is None:
            way = f"create one: seqloom index FOLDER --out {shown(folder)}"
            raise UserError(f"{shown(folder)}: not an index (no {NAME}); {way}")
        found = content.get("format")
        if found != FORMAT:
            newer = isinstance(found, int) and found > FORMAT
            way = "update seqloom" if newer else "index again into a new folder"
            raise UserError(f"{shown(folder)}: an index of format {found}, this version has format {FORMAT}; {way}")
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise Damaged(f"{shown(path)}: {mistake(error)}", _WAY_OUT) from None

    def write(self, folder: Path) -> None:
        write_json(folder / NAME, self.model_dump())

    def check(self, folder: Path, wanted: Settings) -> None:
        """Refuse to go on with other settings than those that the index was made with."""
        mine, theirs = self.model_dump(), wanted.model_dump()
        for name in ("encoder", "store", "size", "overlap", "columns"):
            if mine[name] != theirs[name]:
                was, given = _shown(mine[name]), _shown(theirs[name])
                way = "use the same again, or another folder for the index"
                raise UserError(f"{shown(folder)}: made with {name} {was}, not {given}; {way}")


def _shown(value: object) -> str:
    if isinstance(value, dict) and "sha256" in value:
        return f"{value['name']} (SHA-256 {str(value['sha256'])[:12]})"
    return "none" if value is None or value == {} else str(value)
