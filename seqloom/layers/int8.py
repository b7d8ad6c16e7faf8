"""int8: weight-only quantisation of a trained model's linear layers, for a quarter of the memory traffic.

One scale per output channel: weight = scale * int8, the largest weight of a channel becoming 127. Inputs are rounded to
bfloat16, sums are float32. There is no calibration, and the quantised model cannot be trained.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.layers.kernels.program import Matrix
from seqloom.layers.linear import Linear, Map, TiedLinear, one_row

_LANES = 16  # the kernel needs a multiple of this many inputs


class Int8Linear(nn.Module):
    weight: Tensor  # (out, in), int8; zero-padded to a multiple of _LANES
    scale: Tensor  # (out,), bfloat16
    bias: Tensor | None

    def __init__(self, linear: Linear) -> None:
        super().__init__()
        weight = linear.weight.detach().float()
        scale = (weight.abs().amax(1) / 127).clamp_min(1e-30).bfloat16()
        whole = (weight / scale.float()[:, None]).round().clamp(-127, 127).to(torch.int8)
        self.out_features, self.in_features = weight.shape
        self.dtype, self.missing = linear.weight.dtype, -self.in_features % _LANES
        self.register_buffer("weight", F.pad(whole, (0, self.missing)))
        self.register_buffer("scale", scale)
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach().float())

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.size(-1)).contiguous()
        return self.map_of(len(rows))(rows).view(*x.shape[:-1], len(self.weight)).to(x.dtype)

    def whole(self) -> Tensor:
        """The weight that it stands for, in the dtype of the model."""
        return (self.weight.to(self.dtype) * self.scale.to(self.dtype)[:, None])[:, : self.in_features]

    def as_matrix(self) -> Matrix:
        """For kernels, which round no input."""
        return Matrix(self.weight, self.scale, self.bias, self.in_features)

    def map_of(self, rows: int) -> Map:
        """See `Linear.map_of`."""
        if rows == 1 and (row := one_row(self)) is not None:
            return lambda x: row(x.float())
        weight, scale, bias = self.weight, self.scale.bfloat16(), self.bias
        if not weight.is_cpu:
            return lambda x: F.linear(self._pad(x), weight.to(x.dtype) * scale.to(x.dtype)[:, None], bias)
        if self.missing:
            return lambda x: self._add_bias(torch._weight_int8pack_mm(self._pad(x).bfloat16(), weight, scale).float())
        if bias is None:
            return lambda x: torch._weight_int8pack_mm(x.bfloat16(), weight, scale).float()
        return lambda x: torch._weight_int8pack_mm(x.bfloat16(), weight, scale).float().add_(bias)

    def _pad(self, x: Tensor) -> Tensor:
        return F.pad(x, (0, self.missing)) if self.missing else x

    def _add_bias(self, y: Tensor) -> Tensor:
        return y if self.bias is None else y.add_(self.bias)


def to_int8(model: SequenceModel) -> SequenceModel:
    """Replace linear layers and the matrices of recurrent cells in place; fails if only the output layer is one."""
    found = [(part, name) for part in model.modules() for name, child in part.named_children() if _can_be_int8(child)]
    if not any(part is not model for part, _ in found):
        what = "int8 quantises linear layers and recurrent cells, and this model has none but its head"
        raise UserError(f"{what}; leave int8 out")
    for part, name in found:
        layer = getattr(part, name)
        setattr(part, name, Int8Linear(layer))
        if isinstance(layer, TiedLinear):
            layer.owner.register_parameter(layer.names[0], None)
    return model.eval()


def _can_be_int8(layer: nn.Module) -> bool:
    """A linear layer, or one of the matrices of a cell that has a one-token kernel."""
    return type(layer) is Linear or (type(layer) is TiedLinear and getattr(layer.owner, "gating", None) is not None)
