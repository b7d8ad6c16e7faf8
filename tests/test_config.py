"""What may stand in a recipe or after -o: every number has bounds, every text is valid, a file of settings is small."""

from __future__ import annotations

import importlib
import os
import pkgutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import seqloom
from seqloom import cli
from seqloom.core.config import Strict, merge, parse_overrides, validate
from seqloom.core.errors import UserError
from seqloom.core.toml import read_toml
from seqloom.core.values import check_value
from seqloom.data.options import DataOptions
from seqloom.lab.rules import Budget, Margin, parse_amount, parse_count
from seqloom.train.settings import TrainConfig

NUMBERS = [10**39, -(10**39), 1e300, float("inf"), float("nan")]
TEXTS = ["a\ud800b", "a\0b", "x" * 100_001]


def sections() -> list[type[Strict]]:
    """Every section of a configuration there is."""
    for found in pkgutil.walk_packages(seqloom.__path__, "seqloom."):
        if not found.name.startswith("seqloom.cli") and not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    return sorted(set(_below(Strict)), key=lambda kind: (kind.__module__, kind.__qualname__))


def _below(kind: type[Strict]) -> Iterator[type[Strict]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


def refuses(kind: type[Strict], option: str, value: object) -> bool:
    try:
        kind.model_validate({option: value})
    except ValidationError as error:
        return any(mistake["loc"][:1] == (option,) for mistake in error.errors())
    except UserError:  # an encoding that nobody knows
        return True
    return False


OPTIONS = [(kind, name, field) for kind in sections() for name, field in kind.model_fields.items()]


def title(case: object) -> str | None:
    return f"{case.__module__}.{case.__qualname__}" if isinstance(case, type) else case if isinstance(case, str) else ""


@pytest.mark.parametrize("kind, name, field", OPTIONS, ids=title)
def test_every_option_refuses_absurd_numbers_and_texts(kind: type[Strict], name: str, field: Any) -> None:
    if "dict[str, typing.Any]" in str(field.annotation):
        values: list[object] = [{"a": TEXTS[0]}, {TEXTS[1]: 1}]  # their own sections check the numbers
    else:
        values = [*NUMBERS, *TEXTS, [TEXTS[0]], [float("nan")]]
    accepted = [value for value in values if not refuses(kind, name, value)]
    if field.annotation in (str, str | None) and kind.model_config.get("coerce_numbers_to_str"):
        accepted = [value for value in accepted if not isinstance(value, int | float)]  # the name of a column
    assert not accepted


@pytest.mark.parametrize("kind", sections(), ids=title)
def test_every_default_is_within_its_own_bounds(kind: type[Strict]) -> None:
    for name, field in kind.model_fields.items():
        if not field.is_required() and not isinstance(field.default, Strict):
            assert not refuses(kind, name, field.default), name


def test_a_number_is_no_truth_value() -> None:
    assert refuses(TrainConfig, "steps", True) and refuses(TrainConfig, "rate", False)
    assert not refuses(TrainConfig, "shard", True)


@pytest.mark.parametrize(
    "text, value",
    [
        ("200", 200), ("1e-3", 0.001), ("true", True), ("[1, 2]", [1, 2]), ("gpt", "gpt"), ("'a, b'", "a, b"),
        ("2020-01-01", "2020-01-01"), ("07:30:00", "07:30:00"), ("1\nx = 2", "1\nx = 2"), ("", ""), ("٣", "٣"),
        ("9" * 5000, "9" * 5000), ("[" * 3000, "[" * 3000), ("{a." + "a." * 5000 + "a = 1}",) * 2,
    ],
    ids=lambda value: str(value)[:12],
)  # fmt: skip
def test_what_is_no_value_of_toml_is_a_text(text: str, value: object) -> None:
    assert parse_overrides([f"train.x={text}"]) == {"train.x": value}


@pytest.mark.parametrize("text", ["", "=", ".=1", "train=1", "train.=1", ".steps=1", "train.steps", "x" * 9999])
def test_an_override_without_a_path_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="write it as section") as caught:
        parse_overrides([text])
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "given, said",
    [
        ({"train": 5}, "train: not in a section; write it as section.option"),
        ({"trian": {"steps": 5}}, "trian: no such section; did you mean train"),
        ({"train": {"step": 5}}, "train.step: no such option; did you mean train.steps"),
        ({"train": {"steps": {"a": 5}}}, "train.steps={'a': 5}: input should be a valid integer"),
        ({"train.steps": "9" * 5000}, "train.steps='9999"),
        ({"train.keep_at": 5}, "train.keep_at=5: write a list, such as"),
        ({"train.start": "a\0b"}, "train.start='a\\x00b': contains a NUL character"),
        ({"train": {"start": "\ud800"}}, "is not valid Unicode text; if it is the name of a file, rename the file"),
        ({"train": {"\ud800": 1}}, "is not valid Unicode text"),
        ({"train": {"x" * 5000: 1}}, "no such option"),
    ],
)
def test_a_mistake_is_one_short_line_with_the_path(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as caught:
        validate({"train": TrainConfig}, merge(given))
    assert said in str(caught.value) and len(str(caught.value)) < 900


def test_an_option_of_two_types_of_number_has_one_mistake() -> None:
    with pytest.raises(UserError) as caught:
        validate({"data": DataOptions}, {"data": {"train": "a.txt", "examples": "few"}})
    assert str(caught.value) == (
        "data.examples='few': input should be a valid number, unable to parse string as a number"
    )


def test_values_in_each_other_are_checked_too() -> None:
    deep: object = 1
    for _ in range(40):
        deep = [deep]
    for value in (deep, {"a": {"b": "\0"}}, [[], ["\udc00"]], list(range(10_001))):
        with pytest.raises(ValueError):
            check_value(value)


@pytest.mark.parametrize(
    "text, said",
    [
        ("x = " + "[" * 9999, "nested too deeply"),
        ("x = " + "9" * 9999, "thousands of digits"),
        ("a" + ".a" * 99_999 + " = 1", "a key has 100 parts or more"),
        ("[train]\n[train]", "not valid TOML"),
        ("[train]\nsteps = 1\nsteps = 2", "not valid TOML"),
        ("x = 2020-13-45", "not valid TOML"),
        ("\0", "not valid TOML"),
        ("#" * 1_000_001, "1,000,001 bytes; a TOML file of settings has at most 1,000,000"),
        (b"\xff\xfe", "not UTF-8 text"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_recipe_that_is_no_toml_is_refused(tmp_path: Path, text: str | bytes, said: str) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError, match="recipe") as caught:
        read_toml(recipe)
    assert said in str(caught.value) and len(str(caught.value)) < 400


def test_a_recipe_is_a_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    waiting = threading.active_count()
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(UserError, match="not a regular file"):
            read_toml(path)
    for path in (tmp_path / "none.toml", tmp_path / ("x" * 300), tmp_path / "pipe" / "x"):
        with pytest.raises(UserError, match=r"No such file|name too long|Not a directory"):
            read_toml(path)
    assert threading.active_count() == waiting


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_bytes(b"\xef\xbb\xbf[train]\nsteps = 3\n")
    assert read_toml(tmp_path / "recipe.toml") == {"train": {"steps": 3}}


@pytest.mark.parametrize(
    "words, said",
    [
        (["--out", "/"], "/: the root of the file system; name a folder for the run"),
        (["--out", "texts"], "texts: in the data folder texts, which would change with the run; choose another --out"),
        (["--out", "texts/a/run"], "texts/a/run: in the data folder texts"),
        (["--out", "texts/book.txt"], "texts/book.txt: in the data folder texts"),
        (["--out", "r", "-o", "train.threads=500"], "train.threads=500: for "),
        (["--out", "r", "-o", "train.start=7"], "train.start=7: input should be a valid string"),
        (["--out", "r", "--from", ""], "--from: is empty"),
        (["--out", "r", "--valid", ""], "--valid: is empty"),
        (["--out", "r", "--model", "x" * 5000], "unknown model 'xxx"),
        (["--out", "r", "--model", "\udcff"], "'\\udcff': is not valid Unicode text"),
        (["--out", "a\0b"], "'a\\x00b': contains a NUL character"),
        (["--out", "r", "-o", "train.seed=99999999999999999999"], "train.seed=99999999999999999999: "),
        (["--out", "r", "-o", "data.valid_fraction=0.6", "-o", "data.test_fraction=0.4"], "leave nothing to train on"),
    ],
)
def test_fit_refuses_before_anything_is_written(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "book.txt").write_text("a b c d " * 100)
    monkeypatch.setattr("sys.argv", ["seqloom", "fit", "--data", "texts", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    error = capsys.readouterr().err
    assert end.value.code in (1, 2) and error.count("\n") == 1 and said in error and len(error) < 700
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["book.txt", "texts"]


BAD_BUDGETS = ["0", "-1", "nan", "inf", "1e400", "1e99999999", "٣", "1e31", "", "2M2", "0x10", "1e", ".", "1_0", "1,5M"]


@pytest.mark.parametrize("amount", [*BAD_BUDGETS, "9" * 5000], ids=lambda text: text[:9])
def test_a_budget_that_is_no_positive_number_is_refused(amount: str) -> None:
    for parse in (lambda: Budget.parse(f"tokens={amount}"), lambda: parse_count(amount, "--params")):
        with pytest.raises(UserError, match=r"^--(budget tokens=|params ).*(write|too large|give)") as caught:
            parse()
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", ["steps=5", "tokens", "=5", "", "TOKENS=5", "seconds=1e10", "minutes=1e9"])
def test_a_budget_of_another_kind_or_that_nobody_can_spend_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=f"--pretrain-budget {text}: "):
        Budget.parse(text, "--pretrain-budget")


def test_amounts_as_people_write_them() -> None:
    texts = ("800k", "2M", "1e13", "1.5G", "1_000", "1,000,000", ".5", "12", "1e-3", "0.25")
    assert [parse_amount(text, "x", 1e30) for text in texts] == [8e5, 2e6, 1e13, 1.5e9, 1e3, 1e6, 0.5, 12, 1e-3, 0.25]


@pytest.mark.parametrize("text", ["", "x", "nan", "inf", "-1", "1e400", "1e300", "%", "5%%", "٣%"])
def test_a_margin_that_is_no_small_number_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"--margin .*: write 1% \(of the best score\)"):
        Margin.parse(text)


@pytest.mark.parametrize(
    "option, value, said",
    [
        ("--params", "1e30", "--params 1e30: too large; at most 1e+15"),
        ("--params", "0.4", "--params 0.4: give whole numbers"),
        ("--max-params", "0", "--max-params 0: not a positive number"),
        ("--max-latency-ms", "0", "--max-latency-ms 0: must be above 0"),
        ("--max-latency-ms", "nan", "--max-latency-ms nan: must be a finite number"),
        ("--trial-share", "inf", "--trial-share inf: must be a finite number"),
        ("--per-label", "", "--per-label: is empty"),
        ("--per-label", "8,1e10", "--per-label 1e10: too large"),
        ("--seed", str(2**64), "must be at most 1,000,000,000"),
    ],
)
def test_a_comparison_refuses_numbers_that_make_no_sense(
    option: str, value: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "book.txt").write_text("a b c d " * 100)
    monkeypatch.chdir(tmp_path)
    words = ["compare", "--task", "language_model", "--data", "book.txt", "--models", "ngram", option, value]
    monkeypatch.setattr("sys.argv", ["seqloom", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    error = capsys.readouterr().err
    assert end.value.code == 2 and error.count("\n") == 1 and said in error
    assert [path.name for path in tmp_path.iterdir()] == ["book.txt"]
