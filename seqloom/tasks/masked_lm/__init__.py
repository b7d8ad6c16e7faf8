"""Masked language modelling: predict hidden tokens from the context on both sides."""

from seqloom.tasks.masked_lm.task import Config, MaskedLM

__all__ = ["Config", "MaskedLM"]
