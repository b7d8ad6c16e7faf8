"""Language modelling: after each token, what comes next?"""

from seqloom.tasks.language_model.task import Config, LanguageModel

__all__ = ["Config", "LanguageModel"]
