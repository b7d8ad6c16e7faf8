"""LoRA on every model in the folder: adapters learn, all else stays, files are peft's own, and merging changes nothing.

The models are found by listing the folder. Each is tested in the first task that accepts it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from peft import PeftModel
from torch import Tensor, nn
from toys import (
    VOCABULARY,
    Case,
    accepted,
    alive,
    close,
    each,
    every_case,
    language_model,
    pair_rows,
    stream,
    title,
    tokens,
    translation,
    words,
)
from transformers import BertConfig, BertModel, GPT2Config, GPT2Model

from seqloom.core.backbone import Backbone
from seqloom.core.batch import Batch
from seqloom.core.errors import UserError
from seqloom.core.network import Network, SequenceModel
from seqloom.core.taps import Tap, record
from seqloom.core.task import AnyTask, Order
from seqloom.layers.lora import adapt, adapter_files, adapter_tensors, describe, merge
from seqloom.runs.registry import find_config, names
from seqloom.tokenizers import train_tokenizer
from seqloom.train.checkpoint import load_weights, weights
from seqloom.train.optimizers import Optimizers
from seqloom.train.settings import TrainConfig
from seqloom.train.transfer import freeze

NAMED = {"lstm", "gru", "mingru", "ttt", "gpt", "bert", "seq2seq", "transformer"}  # that must be among them
RANK = 3


class Tried(NamedTuple):
    """A model, what it reads, and the loss of its task."""

    task: AnyTask
    batch: Batch


@cache
def _tasks() -> list[Tried]:
    letters = train_tokenizer("characters", ["abcdefghij"])
    masked = find_config("tasks", "masked_lm")(length=12).build(letters)
    read = stream(tokens(400, vocabulary=letters.size), letters.size)
    pairs = translation(joint=True)
    rows = pair_rows(pairs, words(8, 6))
    return [
        Tried(language_model(), Batch(tokens(3, 12), None, tokens(3, 12, seed=1))),
        Tried(pairs, next(iter(pairs.batches(rows, Order(8), False)))[0]),
        Tried(masked, next(iter(masked.batches(read, Order(3), False)))[0]),
    ]


def built(name: str, options: dict[str, Any], task: AnyTask) -> SequenceModel:
    return find_config("models", name).model_validate({"width": 16, **options}).assemble(task)


def tried(case: Case) -> Tried:
    """The first task that accepts a model."""
    return next(each for each in _tasks() if accepted(built, *case, each.task))


def known(case: Case) -> dict[str, Tensor]:
    """Weights of another run, none of which is zero."""
    model = alive(built(*case, tried(case).task)).float()
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def fresh(case: Case) -> SequenceModel:
    """With the weights of the other run, and no adapters."""
    torch.manual_seed(0)
    model = built(*case, tried(case).task)
    model.load_state_dict(known(case))
    return model.eval()


def adapted(case: Case, **options: Any) -> SequenceModel:
    """With adapters that say something, for they begin at zero."""
    model = fresh(case)
    adapt(model, known(case), **{"rank": RANK, "alpha": 6, **options})
    generator = torch.Generator().manual_seed(2)
    for weight in weights(model).values():
        nn.init.normal_(weight, std=0.3, generator=generator)
    return model


def outputs(model: nn.Module, case: Case) -> Tensor:
    """All that a model predicts for the batch."""
    batch = tried(case).batch
    if batch.context is not None:
        return model(batch.inputs, model.begin(batch.context, batch.context_mask), batch.mask)[0]
    return model.encode(batch.inputs, batch.mask)


def adaptable(case: Case) -> bool:
    if not any(accepted(built, *case, each.task) for each in _tasks()):
        return False
    model = built(*case, tried(case).task)
    return model.descends and any(isinstance(part, nn.Linear) for part in model.backbone.modules())


def has_taps(case: Case) -> bool:
    return any(isinstance(part, Tap) for part in built(*case, tried(case).task).modules())


EVERY = [case for case in every_case() if adaptable(case)]
FIRST = list({name: (name, options) for name, options in reversed(EVERY)}.values())[::-1]  # one of each model
CAUSAL = [case for case in EVERY if tried(case).task.name == "language_model"]

each_model = pytest.mark.parametrize("case", EVERY, ids=title)
one_of_each = pytest.mark.parametrize("case", FIRST, ids=title)
each_causal = pytest.mark.parametrize("case", CAUSAL, ids=title)


def test_every_trained_model_with_matrices_takes_part() -> None:
    assert {name for name, _ in EVERY} >= NAMED
    left_out = set(names("models")) - {name for name, _ in EVERY}
    for name in left_out & {name for name in names("models") if accepted(built, name, {}, _tasks()[0].task)}:
        with pytest.raises(UserError, match=r"^lora"):
            adapted((name, {}))


@each_model
def test_gradients_are_in_the_adapters_and_the_head_alone(case: Case) -> None:
    model, (task, batch) = adapted(case), tried(case)
    task.loss(model, batch).loss.backward()
    learning = {name for name, p in model.named_parameters() if p.grad is not None}
    own = {name for name in dict(model.named_parameters()) if ".lora_" in name or name.startswith("head.")}
    tied = model.embed.weight is model.head.weight  # then it is frozen like the embedding
    assert learning == {name for name in own if not (tied and name.startswith("head."))}
    assert all(p.grad.abs().sum() > 0 for p in model.parameters() if p.grad is not None), (
        "every adapter has a part in it"
    )


@each_model
def test_adapters_begin_without_effect(case: Case) -> None:
    model, before = fresh(case), fresh(case)
    adapt(model, known(case), rank=RANK, alpha=6)
    close(outputs(model, case), outputs(before, case))
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert f"{trained:,} of {sum(p.numel() for p in model.parameters()):,} parameters are trained" in describe(model)


@each_model
def test_what_is_saved_is_what_is_loaded_bit_for_bit(case: Case, tmp_path: Path) -> None:
    model, again = adapted(case), fresh(case)
    for name, content in adapter_files(model, weights(model)).items():
        (tmp_path / name).write_bytes(content)
    adapt(again, known(case), rank=RANK, alpha=6)
    load_weights(again, adapter_tensors(again, tmp_path))
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), again.parameters(), strict=True))
    assert torch.equal(outputs(model, case), outputs(again, case))
    size = sum(t.numel() for t in weights(model).values())
    assert size == sum(p.numel() for p in model.parameters() if p.requires_grad), "nothing else is saved"


@each_model
def test_merged_equals_unmerged_and_is_a_plain_model(case: Case) -> None:
    model, plain = adapted(case), fresh(case)
    before = outputs(model, case)
    merged = merge(model)
    torch.testing.assert_close(outputs(merged, case), before, rtol=1e-5, atol=1e-5)
    assert list(weights(merged)) == list(weights(plain))
    assert [type(part) for part in merged.modules()] == [type(part) for part in plain.modules()]
    assert all(p.requires_grad for p in merged.parameters())


@each_model
def test_peft_loads_ours(case: Case, tmp_path: Path) -> None:
    model = adapted(case)
    for name, content in adapter_files(model, weights(model)).items():
        (tmp_path / name).write_bytes(content)
    theirs = PeftModel.from_pretrained(fresh(case), str(tmp_path)).eval()
    torch.testing.assert_close(outputs(theirs.base_model.model, case), outputs(model, case), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        outputs(theirs.merge_and_unload(), case), outputs(merge(model), case), rtol=1e-5, atol=1e-5
    )


@each_causal
@each(mode=[torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_one_step_at_a_time_equals_all_at_once_with_adapters(case: Case, mode: Any) -> None:
    model, inputs = adapted(case).double(), tried(case).batch.inputs
    with mode():
        state, found = None, []
        for step in inputs.split(1, dim=1):
            output, state = model(step, state)
            found.append(output)
        close(torch.cat(found, dim=1), model(inputs)[0])
        close(model(inputs[:1, :1])[0], model(inputs)[0][:1, :1])  # a single row


@pytest.mark.parametrize("case", [case for case in FIRST if has_taps(case)], ids=title)
def test_kernels_give_the_adapters_the_gradients_of_the_readable_form(case: Case) -> None:
    """What is recorded is computed step by step, without kernels that read whole weights."""
    model, (task, batch) = adapted(case).double(), tried(case)
    trained = [p for p in model.parameters() if p.requires_grad]
    fused = torch.autograd.grad(task.loss(model, batch).loss, trained)
    with record(model):
        plain = torch.autograd.grad(task.loss(model, batch).loss, trained)
    for ours, theirs in zip(fused, plain, strict=True):
        close(ours, theirs)


@one_of_each
def test_dropout_of_adapters_is_for_training_alone(case: Case) -> None:
    model = adapted(case, dropout=0.5)
    close(outputs(model, case), outputs(adapted(case), case))
    for part in model.modules():  # of the adapters only
        part.training = True
        if isinstance(part, nn.Dropout) and type(part) is not nn.Dropout:
            part.p = 0.0
    assert not torch.allclose(outputs(model, case), outputs(model, case))


class Foreign(Backbone):
    """A model of another library, whose layers are its own."""

    def __init__(self, body: nn.Module, width: int) -> None:
        super().__init__()
        self.body, self.width = body, width

    def forward(self, x: Tensor, state: Any = None, mask: Tensor | None = None) -> tuple[Tensor, Any]:
        return self.body(inputs_embeds=x).last_hidden_state, None


def foreign(kind: str) -> SequenceModel:
    torch.manual_seed(3)
    if kind == "gpt2":  # its layers are transposed
        body: nn.Module = GPT2Model(GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=5, n_positions=32))
    else:
        sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
        body = BertModel(BertConfig(vocab_size=5, **sizes), add_pooling_layer=False)
    return Network(nn.Embedding(VOCABULARY, 16), Foreign(body, 16), nn.Linear(16, VOCABULARY)).eval()


@pytest.mark.parametrize(("kind", "matrices"), [("gpt2", 8), ("bert", 12)])
def test_models_of_another_library_are_adapted_alike(kind: str, matrices: int, tmp_path: Path) -> None:
    model, given = foreign(kind), dict(foreign(kind).state_dict())
    adapt(model, given, rank=RANK, alpha=6)
    assert f"on {matrices} matrices" in describe(model)
    for weight in weights(model).values():
        nn.init.normal_(weight, std=0.3)
    for name, content in adapter_files(model, weights(model)).items():
        (tmp_path / name).write_bytes(content)
    inputs = tokens(3, 12)
    before = model.encode(inputs)
    theirs = PeftModel.from_pretrained(foreign(kind), str(tmp_path)).eval()
    torch.testing.assert_close(theirs.base_model.model.encode(inputs), before, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(merge(model).encode(inputs), before, rtol=1e-5, atol=1e-5)


class Hidden(Backbone):
    """A matrix that no layer holds, beside one that is a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.width, self.matrix, self.out = 16, nn.Parameter(torch.randn(16, 16)), nn.Linear(16, 16)

    def forward(self, x: Tensor, state: Any = None, mask: Tensor | None = None) -> tuple[Tensor, Any]:
        return self.out(x @ self.matrix), None


def test_a_matrix_that_adapters_would_miss_is_named() -> None:
    model = Network(nn.Embedding(VOCABULARY, 16), Hidden(), nn.Linear(16, VOCABULARY))
    given = dict(model.state_dict())
    with pytest.raises(UserError, match=r"lora: backbone\.matrix cannot have an adapter; .* lora\.targets: out"):
        adapt(model, given, rank=2, alpha=4)
    adapt(model, given, rank=2, alpha=4, targets=["out"])
    assert "on 1 matrix (1 out)" in describe(model)


def test_adapters_are_optimised_like_other_matrices_and_nothing_frozen_is() -> None:
    case = next(case for case in EVERY if case[0] == "gpt")
    for optimizer in ("adamw", "sgd", "muon"):
        model = adapted(case)
        freeze(model, 2)
        settings = {"optimizer": optimizer, "rate": 0.1, "matrix_rate": 0.1, "stage_decay": 0.5}
        made = Optimizers(model, TrainConfig.model_validate(settings))
        held = {p for member in made.members for group in member.param_groups for p in group["params"]}
        assert held == {p for p in model.parameters() if p.requires_grad}
        assert all(".blocks.0." not in name for name, p in model.named_parameters() if p in held)
