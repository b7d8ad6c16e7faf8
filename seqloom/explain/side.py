"""What pages, figures and terminals show: one run on one input, and results that have one or more of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from seqloom.core.instance import Instance, Output
from seqloom.core.rows import Json, Row
from seqloom.explain.view import View


class Side(Protocol):
    """One run on one input."""

    @property
    def name(self) -> str: ...
    @property
    def row(self) -> Row: ...
    @property
    def instance(self) -> Instance: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def outputs(self) -> tuple[Output, ...]: ...
    @property
    def views(self) -> dict[str, View]: ...
    @property
    def missing(self) -> dict[str, str]: ...
    def about(self) -> Json:
        """What was explained, without the views."""


class Result(Protocol):
    def explanations(self) -> Sequence[Side]:
        """One per run and input, in the order in which the page shows them."""

    def extras(self) -> Json:
        """What a page shows beside them."""
