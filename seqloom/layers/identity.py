"""The identity as a backbone, for models without layers between embedding and head."""

from __future__ import annotations

from torch import Tensor

from seqloom.core.backbone import Backbone, Kind
from seqloom.core.state import State
from seqloom.core.taps import Tap
from seqloom.layers.dropout import Dropout


class Identity(Backbone):
    """Passes its input on, in training after dropout; there is nothing to remember."""

    def __init__(self, width: int, kind: Kind, dropout: float = 0.0) -> None:
        super().__init__()
        self.width, self.kind = width, kind
        self.drop, self.vectors = Dropout(dropout), Tap()

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return self.vectors(self.drop(x)), state
