"""Masked language modelling: some tokens are hidden, guess them from both sides."""

from seqloom.tasks.masked_lm.task import Config, MaskedLM

__all__ = ["Config", "MaskedLM"]
