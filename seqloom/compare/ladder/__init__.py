"""What changes with scale: every entry is also trained with 1/8, 1/4 and 1/2 of the budget, of the training set or of
its size, a curve is fitted to the scores, and the curves say who would be ahead with more.

    DIR/runs/ENTRY/eighth-seed-1         with 1/8 of the budget; likewise quarter-seed-1 and half-seed-1
    DIR/runs/ENTRY/eighth-data-seed-1    on 1/8 of the training set; eighth-size-seed-1: with 1/8 of the parameters
"""

from seqloom.compare.ladder.climbing import Ladder
from seqloom.compare.ladder.kinds import LADDERS

__all__ = ["LADDERS", "Ladder"]
