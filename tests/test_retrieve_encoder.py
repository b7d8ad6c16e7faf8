"""Texts as vectors: those of the reference for an encoder of transformers, and of any run of ours."""

from __future__ import annotations

from pathlib import Path

import foreign
import numpy as np
import pytest
import torch
from support import small_fit, text

from seqloom.core.errors import UserError
from seqloom.retrieve.encoder import Encoder, load_encoder
from seqloom.runs.fit import fit

pytestmark = pytest.mark.usefixtures("own_cache")

TEXTS = ["the first one", "", "a much longer text, " * 30, "数字 and words", "\ud800"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Encoder]:
    folder = tmp_path_factory.mktemp("bert")
    foreign.save(folder, "Bert", foreign.BERT, head="Model", pieces=True)
    return folder, load_encoder(f"hf:{folder}")


def test_vectors_are_those_of_the_reference(bert: tuple[Path, Encoder]) -> None:
    import transformers

    folder, encoder = bert
    model, known = transformers.AutoModel.from_pretrained(folder).eval(), encoder._tokenizer
    for sentence in TEXTS[:1] + TEXTS[2:4]:
        ids = [known.bos, *known.encode(sentence)[: encoder.longest - 2], known.eos]
        with torch.no_grad():
            mean = model(torch.tensor([ids])).last_hidden_state[0].mean(0).numpy()
        (found,) = encoder.encode([sentence])
        assert found == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


def test_vectors_have_unit_length_and_do_not_depend_on_their_company(bert: tuple[Path, Encoder]) -> None:
    _, encoder = bert
    together = encoder.encode(TEXTS)
    assert together.shape == (5, encoder.width) and together.dtype == np.float32
    assert np.linalg.norm(together[[0, 2, 3]], axis=1) == pytest.approx(1.0, abs=1e-5)
    assert not together[1].any()
    for sentence, vector in zip(TEXTS, together, strict=True):
        assert encoder.encode([sentence])[0] == pytest.approx(vector, abs=1e-5)
    assert encoder.encode([]).shape == (0, encoder.width)


def test_runs_of_ours_encode_too(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(text(3000))
    small_fit(tmp_path / "book.txt", tmp_path / "lstm")
    encoder = load_encoder(tmp_path / "lstm")
    assert np.linalg.norm(encoder.encode(["a river"])) == pytest.approx(1.0, abs=1e-5)
    assert load_encoder(tmp_path / "lstm").sha256 == encoder.sha256


def test_a_run_that_reads_no_texts_is_one_line(tmp_path: Path) -> None:
    short = {"steps": 2, "threads": 1}
    fit(data="sample:sine", task="forecasting", model="gru", out=tmp_path / "run", train=short)
    with pytest.raises(UserError, match=r"^[^\n]*run: does not read texts, so it cannot encode them"):
        load_encoder(tmp_path / "run")
    with pytest.raises(UserError, match=r"^[^\n]*nowhere: [^\n]*$"):
        load_encoder(tmp_path / "nowhere")
