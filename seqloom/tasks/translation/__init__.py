"""Text to text: read a source, then generate the target, with any model."""

from seqloom.tasks.translation.task import Config, Translation

__all__ = ["Config", "Translation"]
