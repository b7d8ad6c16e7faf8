"""The task that the options ask for: an output layer for the labels, or a language model with a prompt."""

from __future__ import annotations

from seqloom.data.shapes.frames.scale import LabelledScale
from seqloom.data.shapes.labelled.vocabulary import LabelledTokenizer
from seqloom.tasks.classification.classifier import Classification
from seqloom.tasks.classification.options import Options
from seqloom.tasks.classification.prompted import Prompted

__all__ = ["Classification", "Config", "Prompted"]


class Config(Options):
    def build(self, vocabulary: LabelledTokenizer | LabelledScale) -> Classification:
        return Prompted(self, vocabulary) if self.prompt else Classification(self, vocabulary)
