"""PatchTST (Nie et al. 2023): a Transformer encoder over patches, stretches of `patch` steps that begin every `stride`.

A series of numbers says little in one step; patches make the sequence shorter and every position informative. With
`task.channels=apart`, as in the paper, each variable is a series of its own through one shared model.

There is no state: the whole input is needed at once. Patches and positions are counted from the end, so that the newest
step is always in the same place, however long the history.
Sizes: B rows, T steps, P patches of the full context.
"""

from __future__ import annotations

from typing import ClassVar, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from seqloom.core.backbone import Backbone, matrix_flops
from seqloom.core.network import Network, SequenceModel
from seqloom.core.rows import Json
from seqloom.core.state import State, keep_last
from seqloom.core.task import AnyTask
from seqloom.layers.dropout import Dropout
from seqloom.layers.least_squares import make_identity, number_sizes
from seqloom.layers.linear import Linear
from seqloom.layers.positions import LearnedPositions
from seqloom.layers.source_attention import visible_source
from seqloom.layers.stack import StackConfig
from seqloom.layers.transformer import EncoderBlock, xavier


class Config(StackConfig):
    width: int = Field(64, ge=1, description="size of every hidden vector")
    depth: int = Field(2, ge=1, le=128, description="number of blocks")
    patch: int = Field(16, ge=1, description="steps of a patch")
    stride: int = Field(8, ge=1, description="steps between the beginnings of two patches")
    context: int = Field(256, ge=1, le=2**20, description="maximum sequence length")
    dropout: float = Field(0.2, ge=0, lt=1, description="share of hidden values dropped in training")

    variants: ClassVar[tuple[Json, ...]] = (
        {},
        {"patch": 4, "stride": 4, "context": 20, "depth": 1},
        {"patch": 5, "stride": 2, "context": 30, "heads": 2},
    )
    per_head = 1

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.stride > self.patch:
            raise ValueError(f"stride={self.stride} is longer than patch={self.patch}, so steps would be left out")
        return self

    def build(self) -> Backbone:
        return Patch(self, self.width)

    def reading(self, length: int) -> Self:
        return self.model_copy(update={"context": length})

    def assemble(self, task: AnyTask) -> SequenceModel:
        """Numbers are cut into patches as they are, without an embedding."""
        if (sizes := number_sizes(task)) is None:
            return super().assemble(task)
        task.check_kind(Patch.kind)
        embed = task.embed(sizes[0])
        make_identity(embed)
        return Network(embed, Patch(self, sizes[0]), task.head(self.width))


class Patch(Backbone):
    kind = "bidirectional"

    def __init__(self, c: Config, inputs: int) -> None:
        super().__init__()
        self.inputs, self.width, self.patch, self.stride = inputs, c.width, c.patch, c.stride
        self.limit = self.reach = c.context
        self.count = max(1, -(-c.context // c.stride))
        self.project = Linear(c.patch * inputs, c.width)
        self.positions, self.dropout = LearnedPositions(self.count, c.width), Dropout(c.dropout)
        self.blocks = nn.ModuleList(
            EncoderBlock(c.width, c.heads, c.feed, True, "gelu", True, c.dropout) for _ in range(c.depth)
        )
        self.norm = nn.LayerNorm(c.width)
        self.summary = Linear(self.count * c.width, c.width)
        xavier(self)

    def encode(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """At each step the vector of the newest patch it belongs to, the summary, and the input if sizes agree."""
        if not x.size(1):
            return x.new_zeros(len(x), 0, self.width)
        patches = self._read(x, mask)  # (B, P, width), the newest last
        sizes = x.new_full((len(x), 1), x.size(1), dtype=torch.long) if mask is None else mask.sum(1, keepdim=True)
        back = (sizes - 1 - torch.arange(x.size(1), device=x.device)).clamp(min=0) // self.stride  # (B, T)
        places = (patches.size(1) - 1 - back).clamp(min=0)
        found = patches.gather(1, places[..., None].expand(-1, -1, self.width)) + self._summary(patches)[:, None]
        return found + x if self.inputs == self.width else found

    def final(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self._summary(self._read(x, mask))

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return self.encode(x, mask), None

    def _read(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Patches after the last block; those without any real step are 0."""
        count = min(self.count, max(1, -(-x.size(1) // self.stride)))
        size = (count - 1) * self.stride + self.patch
        read = keep_last(torch.cat((x.new_zeros(len(x), size, x.size(-1)), x), dim=1), size, mask)
        cut = read.unfold(1, self.patch, self.stride).transpose(2, 3).flatten(2)  # (B, P, patch * inputs)
        back = torch.arange(count - 1, -1, -1, device=x.device)  # patches from the end
        real = None if mask is None else back * self.stride < mask.sum(1, keepdim=True)
        hidden = self.dropout(self.project(cut) + self.positions(back))
        for block in self.blocks:
            hidden = block(hidden, visible_source(real))
        hidden = self.norm(hidden)
        return hidden if real is None else hidden * real[..., None]

    def _summary(self, patches: Tensor) -> Tensor:
        """(B, P, width) -> (B, width): all patches flattened, each with weights of its own."""
        missing = self.count - patches.size(1)
        return self.summary(nn.functional.pad(patches, (0, 0, missing, 0)).flatten(1))

    def stages(self) -> list[nn.Module]:
        return list(self.blocks)

    def flops(self, length: int) -> float:
        """All patches with their attention scores and weighted sums, and the summary, shared by all steps."""
        patches = min(self.count, max(1, -(-length // self.stride)))
        each = matrix_flops(self.project) + sum(map(matrix_flops, self.blocks))
        each += 4.0 * self.width * patches * len(self.blocks)
        return (patches * each + matrix_flops(self.summary)) / length
