"""Language modelling: predict each token from the tokens before it."""

from seqloom.tasks.language_model.task import Config, LanguageModel

__all__ = ["Config", "LanguageModel"]
