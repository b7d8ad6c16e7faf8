"""The page that compares RNN and Transformer: its numbers are those of the results, its code runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from seqloom.pages.words import LANGUAGES, Speaker
from seqloom.studies._aspects import ASPECTS, NAME, aspects, number, overview
from seqloom.studies._errors import ERRORS, Error
from seqloom.studies._models import backbone
from seqloom.studies._record import Record, load
from seqloom.studies._words import WORDS

DOCS = Path(__file__).parent.parent / "docs"
PAGES = [DOCS / folder / f"{NAME}.md" for folder in ("studies", "zh/studies")]


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return [load(path) for path in sorted((DOCS / "studies" / "results").glob("*.json"))]


def test_it_has_the_seven_aspects_of_the_document_in_both_languages() -> None:
    assert len(ASPECTS) == 7
    for aspect in ASPECTS:
        assert all(text for pair in (aspect.title, aspect.rnn, aspect.transformer) for text in pair)


def test_every_aspect_quotes_a_number() -> None:
    assert all(any(aspect.quoted.values()) for aspect in ASPECTS)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_missing_study_or_number_is_an_error(language: str, records: list[Record]) -> None:
    study, names = next((name, names) for aspect in ASPECTS for name, names in aspect.quoted.items())
    without = [record for record in records if record.name != study]
    for render in (lambda: aspects(without, language), lambda: overview(without, Speaker(language, WORDS))):
        with pytest.raises(LookupError, match=study):
            render()
    with pytest.raises(LookupError, match="0 numbers"):
        number({record.name: record for record in records}, study, f"{names[0]}, renamed")


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.document)
def test_the_code_beside_an_error_of_a_document_runs(error: Error) -> None:
    exec(error.code, {})


@pytest.mark.parametrize("page", PAGES, ids=("en", "zh"))
def test_the_page_shows_that_code(page: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert [block.strip() for block in blocks] == [error.code.strip() for error in ERRORS]


@pytest.mark.parametrize("name", ["rnn", "lstm"])
def test_final_is_the_last_layer_at_the_last_real_step_and_the_state_is_of_every_layer(name: str) -> None:
    """As docs/models/rnn.md and lstm.md say."""
    model = backbone(name, width=8, inputs=8, depth=3)
    x, lengths = torch.randn(4, 7, 8, generator=torch.Generator().manual_seed(0)), torch.tensor([7, 4, 6, 2])
    mask = torch.arange(7) < lengths[:, None]
    output, state = model(x, None, mask)
    torch.testing.assert_close(model.final(x, mask), output[torch.arange(4), lengths - 1])
    layers: Any = state
    assert len(layers) == 3 and torch.allclose(layers[-1][0], model.final(x, mask), atol=1e-6)
    assert not torch.allclose(layers[0][0], model.final(x, mask))
