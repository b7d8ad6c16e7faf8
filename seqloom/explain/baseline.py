"""The baseline of influence: the vector that a position is replaced by to say that nothing particular is there.

For tokens it is the mean embedding of the vocabulary, for measurements that of their mean over time. Not zero: a norm
right after the embedding has no direction there, and what the model does with it says nothing about the input. Special
tokens stay as they are: without the mark that a source ends, a model would not even begin to answer.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqloom.core.instance import Instance
from seqloom.core.network import Network, PartlyTied
from seqloom.explain.places import embeddings

_CHUNK = 4096  # tokens embedded at a time


def baseline(network: Network, instance: Instance) -> tuple[Tensor, Tensor, Tensor, str]:
    """The embeddings of the input (P, E), their baseline (P, E), the prediction (O, C), and what the baseline is."""
    read: list[Tensor] = []
    hook = network.embed.register_forward_pre_hook(lambda _, args: read.append(args[0]))
    try:
        x, found = embeddings(network, instance)
    finally:
        hook.remove()
    with torch.no_grad():
        neutral, name = _neutral(network.embed, read, x, instance.special)
    marks = torch.tensor([at in instance.marks for at in range(len(x))], device=x.device)[:, None]
    return x, torch.where(marks, x, neutral.to(x.dtype)), found[0], name


def _neutral(embed: nn.Module, read: list[Tensor], x: Tensor, special: frozenset[int]) -> tuple[Tensor, str]:
    if read[0].is_floating_point():
        mean = torch.cat([part[0] for part in read])[: len(x)].mean(0)
        return embed(mean[None, None])[0, 0], "the mean of the input over time"
    if read[0].dim() == 2:
        return _mean_token(embed, special).to(x.device), "the mean embedding of the vocabulary"
    return (x.mean(0) if len(x) > 1 else torch.zeros_like(x[0])), "the mean embedding of this input"


def _mean_token(embed: nn.Module, special: frozenset[int]) -> Tensor:
    """Over all tokens but special ones, each by itself at the start of a sequence."""
    tables = [part for part in embed.modules() if isinstance(part, nn.Embedding)]
    size = sum(t.num_embeddings for t in tables) if isinstance(embed, PartlyTied) else tables[0].num_embeddings
    ids = torch.tensor([id for id in range(size) if id not in special], device=tables[0].weight.device)[:, None]
    total = sum(embed(some)[:, 0].double().sum(0) for some in ids.split(_CHUNK))
    return torch.as_tensor(total) / len(ids)
