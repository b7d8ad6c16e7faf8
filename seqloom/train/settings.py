"""The options of the `train` section, and of `lora`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from seqloom.core.config import Strict
from seqloom.train.clock import Kind

MOST_TOKENS = 10**15  # of a budget
MOST_RATE = 1e38  # of float32; one that is merely too large shows in the loss


class TrainConfig(Strict):
    """How a model is trained. Training stops at the first budget that is used up: no budget replaces another."""

    steps: int | None = Field(None, ge=1, description="budget in optimiser steps")
    tokens: int | None = Field(None, ge=1, le=MOST_TOKENS, description="budget in training tokens")
    epochs: float | None = Field(None, gt=0, description="budget in passes over the training set")
    seconds: float | None = Field(None, gt=0, description="budget in seconds of training time")
    clock: Kind = Field("wall", description="train.seconds are elapsed time, or CPU time of training (GPU: elapsed)")
    minutes: float = Field(5.0, gt=0, description="if no budget is given: most time for the epochs that fit chooses")
    batch: int = Field(8, ge=1, le=2**20, description="rows per optimiser step, over all processes")
    accumulate: int = Field(1, ge=1, le=2**20, description="gradient accumulation: micro-batches per step and process")
    method: Literal["descent", "probe", "setfit", "prompt"] = Field(
        "descent",
        description="descent: every weight by gradient descent; probe: the output layer alone, solved on the frozen "
        "encoder; setfit: contrastive tuning of the encoder, then a probe; prompt: nothing is trained, a language "
        "model reads an instruction and examples",
    )
    optimizer: Literal["adamw", "sgd", "muon"] = Field("muon", description="muon: matrices only, adamw for the rest")
    rate: float = Field(4e-3, gt=0, le=MOST_RATE, description="peak learning rate")
    matrix_rate: float = Field(0.02, gt=0, le=MOST_RATE, description="peak learning rate of matrices under muon")
    weight_decay: float = Field(0.0, ge=0, description="weight decay coefficient")
    momentum: float = Field(0.95, ge=0, lt=1, description="momentum of sgd and muon")
    beta1: float = Field(0.9, ge=0, lt=1, description="adamw: decay rate of the first moment")
    beta2: float = Field(0.99, ge=0, lt=1, description="adamw: decay rate of the second moment")
    schedule: Literal["constant", "cosine", "inverse_sqrt", "stable"] = Field(
        "cosine", description="learning-rate schedule; stable: constant, then a decay at the end"
    )
    decay: float = Field(0.2, gt=0, le=1, description="stable: share of the budget over which the rate decays")
    warmup: int = Field(
        100, ge=0, description="steps of linear warm-up (at most a tenth of the budget, but for stable)"
    )
    floor: float = Field(0.0, ge=0, le=1, description="minimum learning rate, as a fraction of the peak")
    clip: float = Field(1.0, ge=0, description="gradient clipping threshold; 0: no clipping")
    clip_by: Literal["norm", "value"] = Field("norm", description="clip the global norm of the gradient, or each value")
    start: str | None = Field(None, min_length=1, description="run, weights:NAME or hf:PATH to start from (--from)")
    freeze: int = Field(0, ge=0, description="frozen stages; 1: the embedding, 2: also the first layer")
    stage_decay: float = Field(1.0, gt=0, le=1, description="learning-rate multiplier per stage below the head")
    evaluate_every: int = Field(0, ge=0, description="steps between validations; 0: ten per run")
    save_every: int = Field(0, ge=0, description="steps between checkpoints; 0: only at validations")
    log_every: int = Field(10, ge=1, description="steps between log entries in metrics.jsonl")
    patience: int = Field(0, ge=0, description="stop after N validations without improvement; 0: never")
    enough: float = Field(0.0, ge=0, description="stop when the training loss stays this low; 0: never")
    enough_steps: int = Field(5, ge=1, description="consecutive steps that the loss has to stay at train.enough")
    keep: int = Field(2, ge=1, description="latest checkpoints to keep, in addition to the best")
    keep_at: tuple[Annotated[int, Field(ge=1, le=MOST_TOKENS)], ...] = Field(
        (), description="training tokens after which a checkpoint is kept for good"
    )
    seed: int = Field(0, ge=0, lt=2**63, description="random seed")
    threads: int = Field(0, ge=0, description="CPU threads; 0: torch's default")
    device: Literal["auto", "cpu", "cuda", "mps"] = Field("auto", description="auto: a GPU if available")
    precision: Literal["auto", "float32", "bfloat16"] = Field("auto", description="auto: bfloat16 on CUDA only")
    shard: bool = Field(False, description="shard the model over the processes (FSDP2, under torchrun)")
    compile: bool = Field(False, description="torch.compile the training step; see docs/speed.md")
    tensorboard: bool = Field(False, description="also write TensorBoard events")


class LoraConfig(Strict):
    """Low-rank adapters: the weights of the run that training starts from stay frozen (layers/lora.py)."""

    rank: int = Field(0, ge=0, le=2**16, description="rank of the adapters; 0: no adapters, all weights are trained")
    alpha: int = Field(16, ge=1, description="adapters are scaled by alpha / rank")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout probability on the inputs of adapters in training")
    targets: tuple[str, ...] = Field(
        (), description="matrices that get an adapter, by name; empty: all in the backbone"
    )
    full: tuple[str, ...] = Field((), description="parts to train in full besides the head, by name, such as embed")

    @field_validator("targets", "full", mode="before")
    @classmethod
    def _split(cls, given: object) -> object:
        """`qkv,out` on the command line, a list in a recipe."""
        return [name for part in given.split(",") if (name := part.strip())] if isinstance(given, str) else given

    @model_validator(mode="after")
    def _check_rank(self) -> Self:
        if not self.rank and self != LoraConfig.model_construct():
            raise ValueError("there are no adapters with lora.rank=0; set it too, for example lora.rank=8")
        return self


NO_ADAPTERS = LoraConfig.model_validate({})
