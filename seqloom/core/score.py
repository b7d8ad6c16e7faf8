"""Score: the name and unit of an evaluation metric, and whether higher or lower is better.

Each task declares its scores once; tables, reports and the command line read them from there.
"""

from __future__ import annotations

from typing import NamedTuple

Text = tuple[str, str]  # English, Chinese


class Score(NamedTuple):
    name: str  # its key in scores, metrics and JSON
    title: Text
    higher_is_better: bool = False
    unit: Text = ("", "")
    compared: bool = False  # shown beside the metric in a comparison
    most: float | None = None  # the highest possible value; None: 1 if higher is better, else there is none

    @property
    def bounds(self) -> tuple[float, float | None]:
        """The lowest and the highest possible value: no score is negative."""
        return 0.0, 1.0 if self.most is None and self.higher_is_better else self.most

    def to_json(self) -> dict[str, object]:
        return {
            "title": list(self.title),
            "unit": list(self.unit),
            "higher_is_better": self.higher_is_better,
            "bounds": list(self.bounds),
        }
