"""Texts as unit vectors: an encoder's outputs, averaged over the real tokens.

weights:minilm   a sentence encoder in English, installed by `seqloom weights`
hf:PATH          an encoder that Hugging Face transformers wrote
RUN              a run of ours: its embedding and backbone, whatever it was trained for
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from seqloom.core.batch import pad
from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.progress import Reporter, Silent
from seqloom.runs import durable
from seqloom.runs.folder import RunFolder
from seqloom.runs.material import Material
from seqloom.runs.registry import model_config
from seqloom.runs.run import load
from seqloom.runs.source import run_folder
from seqloom.runs.winner import run_of
from seqloom.tokenizers import Tokenizer
from seqloom.train.engine import choose_device
from seqloom.train.transfer import transfer

LONGEST = 256  # tokens of a text that are read: what sentence encoders are trained on
_AT_ONCE = 4096  # tokens per batch, padding included: larger batches leave the processor's cache


class Encoder:
    """One unit vector per text. A text without any token becomes a vector of zeros, which is like nothing."""

    def __init__(self, name: str, sha256: str, model: SequenceModel, vocabulary: Any) -> None:
        self.name, self.sha256, self._model, self._vocabulary = name, sha256, model.eval(), vocabulary
        self._tokenizer: Tokenizer = getattr(vocabulary, "tokenizer", vocabulary)
        self.longest = min(LONGEST, *(most for most in (model.limit, model.reach) if most), LONGEST)
        self.width = self._vectors([np.array([self._tokenizer.bos, self._tokenizer.eos])]).shape[1]

    def __repr__(self) -> str:
        return f"Encoder({self.name!r}, width={self.width})"

    def encode(self, texts: Sequence[str], progress: Reporter | None = None) -> np.ndarray:
        """(texts, width), float32. Texts of like length share a batch."""
        found, done, report = np.zeros((len(texts), self.width), np.float32), 0, progress or Silent()
        rows = [self._ids(text) for text in texts]
        lengths = np.array([len(row) for row in rows], np.int64)
        for chosen in _batches(lengths):
            found[chosen] = self._vectors([rows[n] for n in chosen])
            done += int(lengths[chosen].sum())
            report.update(done / max(1, lengths.sum()), {"doing": f"encoding {len(texts):,} texts"})
        found[lengths <= 2] = 0.0
        return found

    def _ids(self, text: str) -> np.ndarray:
        """Between <bos> and <eos>, as encoders read a text in training; surrogates cannot be encoded."""
        clean = text.encode("utf-8", "replace").decode("utf-8")
        ids = self._vocabulary.encode(clean)[: self.longest - 2]
        return np.concatenate(([self._tokenizer.bos], ids, [self._tokenizer.eos])).astype(np.int64)

    @torch.inference_mode()
    def _vectors(self, rows: list[np.ndarray]) -> np.ndarray:
        inputs, mask = pad(rows, self._tokenizer.pad)
        inputs, mask = inputs.to(self._model.device), mask.to(self._model.device)
        hidden = self._model.represent(inputs, mask).float()  # (B, T, width)
        mean: Tensor = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        found: np.ndarray = torch.nn.functional.normalize(mean, dim=-1).cpu().numpy()
        return found


def load_encoder(name: str | Path) -> Encoder:
    """The encoder behind a name; one line says why it cannot be used."""
    folder = RunFolder(run_of(run_folder(name)))
    record, files = folder.record(), folder.model_files()
    if record.get("bare"):
        model, vocabulary = _bare(folder)
    else:
        run = load(folder.path)
        model, vocabulary = run.model, run.tokenizer
    tokenizer = getattr(vocabulary, "tokenizer", vocabulary)
    if not isinstance(tokenizer, Tokenizer):
        raise UserError(f"{name}: does not read texts, so it cannot encode them; choose another encoder")
    try:
        return Encoder(str(name), _identity(record, durable.digests(files)), model, vocabulary)
    except NotImplementedError:
        raise UserError(f"{name}: has no vectors to encode texts with; choose another encoder") from None


def _bare(folder: RunFolder) -> tuple[SequenceModel, Any]:
    """An encoder without an output layer, which therefore has a random one that is never used."""
    config, files = folder.config(), folder.model_files()
    material = Material(config)
    vocabulary = material.load_vocabulary(files)
    model = model_config(config).assemble(material.task(vocabulary))
    transfer(model, load_file(files / "model.safetensors"), str(folder.path))
    return model.to(choose_device("auto")), vocabulary


def _identity(record: dict[str, Any], digests: dict[str, str]) -> str:
    """Of the weights and the tokenizer, and of the weights that adapters belong to."""
    facts = [digests.get("model.safetensors"), digests.get("tokenizer.json"), record.get("base", {}).get("sha256")]
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _batches(lengths: np.ndarray) -> list[np.ndarray]:
    """Indices of rows, the longest first, so that a lack of memory shows at once."""
    order, found, first = np.argsort(-lengths, kind="stable"), [], 0
    while first < len(order):
        size = max(1, _AT_ONCE // max(1, int(lengths[order[first]])))
        found.append(order[first : first + size])
        first += size
    return found
