"""How a model is trained: the options of the `train` section."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from seqloom.core.config import Strict


class TrainConfig(Strict):
    """How a model is trained. Of the budgets, the first that is reached ends the run."""

    model_config = ConfigDict(allow_inf_nan=False)

    steps: int | None = Field(None, ge=1, description="budget: optimiser steps")
    tokens: int | None = Field(None, ge=1, description="budget: tokens learned from")
    seconds: float | None = Field(None, gt=0, description="budget: seconds of training")
    batch: int = Field(8, ge=1, description="rows in one optimiser step, over all processes")
    accumulate: int = Field(1, ge=1, description="pieces in which each process takes its share of a batch")
    optimizer: Literal["adamw", "sgd", "muon"] = Field("muon", description="muon: for matrices, adamw for the rest")
    rate: float = Field(4e-3, gt=0, description="learning rate")
    matrix_rate: float = Field(0.02, gt=0, description="learning rate of muon's matrices")
    weight_decay: float = Field(0.0, ge=0, description="pull of the weights towards zero")
    momentum: float = Field(0.95, ge=0, lt=1, description="momentum of sgd and muon")
    beta1: float = Field(0.9, ge=0, lt=1, description="adamw: memory of the gradient")
    beta2: float = Field(0.99, ge=0, lt=1, description="adamw: memory of its square")
    schedule: Literal["constant", "cosine", "inverse_sqrt"] = Field("cosine", description="the rate after warm-up")
    warmup: int = Field(
        100, ge=0, description="steps in which the rate rises from zero (at most a tenth of the budget)"
    )
    floor: float = Field(0.0, ge=0, le=1, description="least share of the rate that a schedule leaves")
    clip: float = Field(1.0, ge=0, description="largest gradient; 0: any")
    clip_by: Literal["norm", "value"] = Field("norm", description="clip the whole gradient's norm, or each value")
    start: str | None = Field(None, description="a run whose encoder and tokenizer it begins with (--from)")
    freeze: int = Field(0, ge=0, description="stages that do not learn; 1: the table of tokens, 2: also a layer")
    stage_decay: float = Field(1.0, gt=0, le=1, description="rate of each stage over that of the next above it")
    evaluate_every: int = Field(0, ge=0, description="steps between validations; 0: ten in a run")
    save_every: int = Field(0, ge=0, description="steps between checkpoints; 0: at each validation")
    log_every: int = Field(10, ge=1, description="steps between lines of metrics")
    patience: int = Field(0, ge=0, description="stop after so many validations without a better one; 0: never")
    keep: int = Field(2, ge=1, description="newest checkpoints to keep, beside the best")
    seed: int = Field(0, ge=0, lt=2**63, description="start of every random number")
    threads: int = Field(0, ge=0, description="threads of the processor; 0: torch's choice")
    device: Literal["auto", "cpu", "cuda", "mps"] = Field("auto", description="where to compute")
    precision: Literal["auto", "float32", "bfloat16"] = Field("auto", description="auto: bfloat16 on GPUs only")
    shard: bool = Field(False, description="shard the model over the processes (FSDP2, under torchrun)")
    compile: bool = Field(False, description="torch.compile the training step; docs/speed.md says when it pays")
    tensorboard: bool = Field(False, description="also write TensorBoard events")
