"""Two tokenizers, for source and target; or one that both share.

One embedding matrix serves both: the rows of a separate source vocabulary follow those of the target.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from seqloom.tokenizers.tokenizer import Tokenizer

SIDES = ("source", "target")


class TokenizerPair:
    def __init__(self, source: Tokenizer, target: Tokenizer) -> None:
        self.source, self.target = source, target
        self.joint = source.hash == target.hash
        self.shift = 0 if self.joint else target.size  # from a source token's id to its embedding
        self.size = self.shift + source.size  # number of embeddings
        self.kind = target.kind if self.joint else f"{source.kind}, {target.kind}"
        self.hash = target.hash if self.joint else hashlib.sha256(f"{source.hash} {target.hash}".encode()).hexdigest()

    def files(self) -> dict[str, bytes]:
        if self.joint:
            return self.target.files()
        own = {"source": self.source.files(), "target": self.target.files()}
        return {f"{side}_{name}": data for side in SIDES for name, data in own[side].items()}

    @classmethod
    def load(cls, folder: Path) -> TokenizerPair:
        if (Path(folder) / "tokenizer.json").exists():
            both = Tokenizer.load(folder)
            return cls(both, both)
        return cls(*(Tokenizer.load(folder, f"{side}_") for side in SIDES))
