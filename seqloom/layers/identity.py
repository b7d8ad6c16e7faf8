"""The identity as a backbone, for models that compute no hidden vectors."""

from __future__ import annotations

from torch import Tensor

from seqloom.core.backbone import Backbone, Kind
from seqloom.core.state import State
from seqloom.core.taps import Tap


class Identity(Backbone):
    """Passes its input on; there is nothing to remember."""

    def __init__(self, width: int, kind: Kind) -> None:
        super().__init__()
        self.width, self.kind = width, kind
        self.vectors = Tap()

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return self.vectors(x), state
