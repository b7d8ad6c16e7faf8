"""The engine: one or many processes and devices. The only file that uses torch.distributed.

Under torchrun, every process trains on its rows of the same global batch, and gradients are summed.
With `train.shard` the weights are sharded over the processes as well (FSDP2).
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from seqloom.core.errors import UserError
from seqloom.train.memory import keep_memory
from seqloom.train.settings import TrainConfig

_METHODS = ("begin", "encode", "final")  # methods of a network besides forward


class Engine:
    def __init__(self, config: TrainConfig) -> None:
        self.rank, self.world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        self.device = choose_device(config.device, int(os.environ.get("LOCAL_RANK", 0)))
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        if config.threads:
            torch.set_num_threads(config.threads)
        keep_memory()
        precision = (
            ("bfloat16" if self.device.type == "cuda" else "float32")
            if config.precision == "auto"
            else config.precision
        )
        self.autocast = precision == "bfloat16"
        self.shard, self.compile = config.shard, config.compile
        if self.shard and self.world == 1:
            raise UserError("train.shard=true needs several processes: torchrun --nproc-per-node 2 -m seqloom fit ...")
        if self.shard and config.optimizer == "muon":
            raise UserError("train.optimizer=muon needs whole matrices; with train.shard=true use adamw or sgd")
        if self.compile:
            _check_compiler(self.device, self.shard)

    @property
    def main(self) -> bool:
        return self.rank == 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """The process group, for the duration of the block."""
        if self.world == 1:
            yield
            return
        dist.init_process_group("nccl" if self.device.type == "cuda" else "gloo")
        try:
            yield
        finally:
            dist.destroy_process_group()

    def seed(self, seed: int) -> None:
        """A different seed per process, so that dropout masks differ."""
        torch.manual_seed((seed * 1_000_003 + self.rank) % 2**63)

    def spread(self, model: nn.Module) -> None:
        """Move the model to its device, sharded if configured; call before the optimiser is created."""
        model.to(self.device)
        if self.shard:
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

            fully_shard(model, mesh=init_device_mesh(self.device.type, (self.world,)))
            for method in _METHODS:
                register_fsdp_forward_method(model, method)

    def wrap(self, objective: nn.Module) -> nn.Module:
        """The objective, compiled if configured, whose backward pass combines gradients over the processes."""
        if self.compile:
            logging.getLogger("torch._dynamo").setLevel(logging.ERROR)  # graph breaks do not concern the user
            objective = torch.compile(objective)  # type: ignore[assignment]
        if self.world == 1 or self.shard:
            return objective
        from torch.nn.parallel import DistributedDataParallel

        return DistributedDataParallel(objective)

    def piece(self, objective: nn.Module, last: bool) -> AbstractContextManager[Any]:
        """Wraps each accumulated micro-batch: gradients are synchronised at the last one only."""
        if self.world > 1 and not self.shard and not last:
            return objective.no_sync()  # type: ignore[operator]
        return nullcontext()

    def cast(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, torch.bfloat16) if self.autocast else nullcontext()

    def total(self, *numbers: float) -> list[float]:
        """Sums over all processes."""
        if self.world == 1:
            return list(numbers)
        tensor = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(tensor)
        return tensor.tolist()

    @property
    def gradient_share(self) -> float:
        """Factor that undoes the averaging over processes in distributed wrappers, since losses are sums."""
        return float(self.world)

    def whole(self, tensor: Tensor) -> Tensor:
        """The full tensor on the CPU, whatever its device and sharding; every process must call this."""
        full: Callable[[], Tensor] | None = getattr(tensor, "full_tensor", None)
        return (full() if full else tensor).detach().cpu()

    def place(self, tensor: Tensor, like: Any) -> Tensor:
        """The inverse of `whole`: on the device and with the sharding of `like`."""
        if hasattr(like, "device_mesh"):
            from torch.distributed.tensor import distribute_tensor

            return distribute_tensor(tensor.to(self.device), like.device_mesh, like.placements)
        return tensor.to(like.device)

    def gather(self, blob: bytes) -> list[bytes]:
        """The bytes of every process, by rank, on the main process; empty on the others."""
        if self.world == 1:
            return [blob]
        blobs: list[Any] | None = [None] * self.world if self.main else None
        dist.gather_object(blob, blobs)
        return blobs or []

    def wait(self) -> None:
        if self.world > 1:
            dist.barrier()


def choose_device(name: str, local: int = 0) -> torch.device:
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda", local)
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("train.device=cuda: torch sees no CUDA device; use train.device=cpu or auto")
    if name == "mps" and not torch.backends.mps.is_available():
        raise UserError("train.device=mps: torch sees no Apple GPU; use train.device=cpu or auto")
    return torch.device(name, local) if name == "cuda" else torch.device(name)


def _check_compiler(device: torch.device, shard: bool) -> None:
    """On CPUs torch.compile generates C++; without a compiler it fails late, with a long traceback."""
    if shard:
        raise UserError("train.compile=true cannot be combined with train.shard=true; leave one of them out")
    compiler = os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")
    if device.type == "cpu" and not shutil.which(compiler):
        raise UserError(f"train.compile=true needs a C++ compiler, and {compiler} is missing; install it, or set CXX")
