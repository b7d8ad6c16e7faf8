"""Branches: a run that begins where another one kept a checkpoint, and goes on with a smaller budget.

With `train.schedule=stable`, a run does what a run with any smaller budget does until that one's decay begins. So the
branch is the smaller run, bit for bit, as if it had been interrupted there; only its decay is left to be trained.
Nothing here imports torch.
"""

from __future__ import annotations

import json

from seqloom.core.errors import RunError
from seqloom.runs.durable import MANIFEST
from seqloom.runs.folder import RunFolder


def begin(into: RunFolder, trunk: RunFolder, place: int, tokens: int) -> None:
    """Give the new folder of a run with this budget the checkpoint that the trunk kept at `train.keep_at[place]`."""
    newest = trunk.newest_whole(lambda text: None)
    kept = json.loads((newest[1] / "progress.json").read_bytes())["kept"] if newest else []
    if place >= len(kept):
        raise RunError(f"{trunk.path}: no checkpoint to branch from; run the comparison again to train it anew")
    source = trunk.checkpoint(kept[place])
    files = {file.name: file.read_bytes() for file in source.iterdir() if file.name != MANIFEST}
    progress = json.loads(files["progress.json"])
    spent = progress["tokens"] / tokens
    progress |= {"kept": [], "best": None, "best_step": None, "stale": 0, "evaluated_share": spent, "run": None}
    files["progress.json"] = json.dumps(progress).encode()
    with into.lock():
        for entry in trunk.metrics():
            if entry["step"] <= progress["step"]:
                into.log(entry)
        into.save_checkpoint(progress["step"], files, keep=1, best=None)
