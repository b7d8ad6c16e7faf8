"""Is a sentence of an answer a quotation of its source, and if not, which checks does it fail?

A sentence found word for word in one source is a quotation. Any other is *not verified*, whatever the checks say:
they find altered numbers, names, negations, directions, quantifiers and sentences put together from parts, but none
of them understands the text. A sentence without a failed check is still not verified.
"""

from __future__ import annotations

from seqloom.retrieve.checking.check import Judge, Similarity, check, check_citation
from seqloom.retrieve.checking.evaluation import evaluate_citations

__all__ = ["Judge", "Similarity", "check", "check_citation", "evaluate_citations"]
