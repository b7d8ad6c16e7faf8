"""What every result of `explain` can do: show itself as a page, a figure or data, and be saved as any of them."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from html import escape
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.json_text import to_json
from seqloom.core.rows import Json
from seqloom.explain.figure import figure
from seqloom.explain.page import page
from seqloom.explain.side import Side
from seqloom.explain.suffixes import check_suffix
from seqloom.explain.view import View
from seqloom.runs.durable import make_folder, write_file

_NOTEBOOK = "width:100%;height:760px;border:1px solid #8884;border-radius:8px"


class Shown(ABC):
    """Views by name, of one run or of several."""

    views: dict[str, View]

    @property
    @abstractmethod
    def tensors(self) -> dict[str, np.ndarray]: ...

    @abstractmethod
    def facts(self) -> Json:
        """All of it as JSON."""

    @abstractmethod
    def explanations(self) -> Sequence[Side]:
        """One per run and input, in the order in which the page shows them."""

    @abstractmethod
    def told(self) -> Iterator[str]:
        """Lines for a terminal."""

    def extras(self) -> Json:
        """What the page shows beside the explanations."""
        return {}

    def frame(self, name: str) -> Any:
        """A view as a pandas data frame."""
        if name not in self.views:
            raise UserError(f"no view {name!r}; there is: {', '.join(self.views)}")
        if find_spec("pandas") is None:
            raise UserError("frame() needs pandas, which is not installed; .views[name].rows holds the rows")
        return import_module("pandas").DataFrame(self.views[name].rows)

    def page(self, language: str = "en") -> str:
        """One self-contained HTML page."""
        return page(self, language)

    def figure(self) -> str:
        """The main figure as SVG."""
        return figure(self)

    def save(self, path: str | Path, language: str = "en") -> Path:
        """As page (.html), figure (.svg), or data (.json, .npz), by the end of the name."""
        path = check_suffix(Path(path))
        make_folder(path.parent)
        write_file(path, self._content(path.suffix.lower(), language))
        return path

    def _content(self, suffix: str, language: str) -> bytes:
        if suffix == ".html":
            return self.page(language).encode("utf-8", "replace")
        if suffix == ".svg":
            return self.figure().encode("utf-8", "replace")
        if suffix == ".json":
            return to_json(self.facts()) + b"\n"
        packed = io.BytesIO()
        np.savez_compressed(packed, **self.tensors)  # type: ignore[arg-type]  # names of arrays, not options
        return packed.getvalue()

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.page())}" sandbox="allow-scripts" style="{_NOTEBOOK}"></iframe>'
