"""Files from strangers: each is refused in one line, and nothing in it is run, imported or followed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import foreign
import hostile
import pytest
from hostile import HOSTILE

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What became of every one of them, in a process of its own under an audit hook."""
    folder = tmp_path_factory.mktemp("hostile")
    foreign.save(folder / "good", *foreign.DECODERS["llama grouped"])
    foreign.save(folder / "wrapped", *foreign.WRAPPED["llama with biases"])
    for name, (spoil, _) in HOSTILE.items():
        shutil.copytree(folder / "good", folder / name)
        spoil(folder / name)
    script = str(Path(hostile.__file__))
    environment = os.environ | {"SEQLOOM_CACHE": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, script, str(folder)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line_and_nothing_of_it_is_run(outcomes: Any, name: str) -> None:
    said, seen = outcomes[name]["said"], outcomes[name]["seen"]
    assert said.startswith("hf:") and "\n" not in said and len(said) < 500, said
    assert HOSTILE[name][1] in said
    assert not seen
    assert not Path("/tmp/seqloom-was-here").exists()


def test_there_are_at_least_forty_of_them() -> None:
    assert len(HOSTILE) >= 40
