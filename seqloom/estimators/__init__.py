"""scikit-learn estimators: `fit`, `predict` and `score` over a run, for pipelines and cross-validation."""

from seqloom.estimators.classifier import SequenceClassifier
from seqloom.estimators.forecaster import Forecaster
from seqloom.estimators.tagger import SequenceTagger

__all__ = ["Forecaster", "SequenceClassifier", "SequenceTagger"]
