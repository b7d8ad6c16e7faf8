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

    def to_json(self) -> dict[str, object]:
        return {"title": list(self.title), "unit": list(self.unit), "higher_is_better": self.higher_is_better}
