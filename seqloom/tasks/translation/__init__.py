"""Text to text: a source is read first, then the target is written, whatever the model."""

from seqloom.tasks.translation.task import Config, Translation

__all__ = ["Config", "Translation"]
