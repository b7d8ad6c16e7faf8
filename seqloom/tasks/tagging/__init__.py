"""Tags for words: named entities, parts of speech, whatever each word of a sentence is to be called."""

from seqloom.tasks.tagging.task import Config, Tagging

__all__ = ["Config", "Tagging"]
