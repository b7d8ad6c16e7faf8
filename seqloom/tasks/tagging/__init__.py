"""Tagging: label each word of a sentence, for example with named entities or parts of speech."""

from seqloom.tasks.tagging.task import Config, Tagging

__all__ = ["Config", "Tagging"]
