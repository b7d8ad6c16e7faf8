"""The files for deploying a server name options that exist, and the ports, paths and times of each other."""

from __future__ import annotations

import json
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
import typer

from seqloom.serve.limits import Limits

DEPLOY = Path(__file__).parent.parent / "deploy"
SERVE = typer.Typer(add_completion=False)
SERVE.command("serve")(import_module("seqloom.cli.serve").command)


def lists(name: str, key: str) -> list[str]:
    """The words of a line `key [...]` in JSON."""
    (found,) = re.findall(rf"^\s*{key} (\[.*\])$", (DEPLOY / name).read_text(encoding="utf-8"), re.MULTILINE)
    words: list[str] = json.loads(found)
    return words


def commands() -> dict[str, list[str]]:
    entry = lists("Dockerfile", "ENTRYPOINT")
    (unit,) = re.findall(r"^ExecStart=(.*)$", (DEPLOY / "seqloom.service").read_text(), re.MULTILINE)
    composed = re.findall(r"command: (\[.*\])", (DEPLOY / "compose.yaml").read_text())[0]
    return {
        "Dockerfile": [*entry[1:], *lists("Dockerfile", "CMD")],
        "compose.yaml": [*entry[1:], *json.loads(composed)],
        "seqloom.service": shlex.split(unit)[1:],
    }


@pytest.mark.parametrize(("name", "words"), commands().items(), ids=commands())
def test_a_file_starts_the_server_with_options_that_it_has(name: str, words: list[str]) -> None:
    command = typer.main.get_command(SERVE)
    found, rest, _ = command.make_parser(command.make_context("serve", [])).parse_args(words[1:])
    assert words[0] == "serve" and found["behind_proxy"] and found["token_file"] and not rest


def test_the_port_is_the_servers_own() -> None:
    port = str(next(p.default for p in typer.main.get_command(SERVE).params if p.name == "port"))
    for name in ("Dockerfile", "compose.yaml", "nginx.conf"):
        assert set(re.findall(r"\b8\d{3}\b", (DEPLOY / name).read_text())) == {port}, name


def test_the_proxy_waits_longer_and_takes_more_than_the_server() -> None:
    text, limits = (DEPLOY / "nginx.conf").read_text(), Limits()
    (wait,), (size,) = re.findall(r"proxy_read_timeout (\d+)s", text), re.findall(r"client_max_body_size (\d+)m", text)
    assert int(wait) > limits.total_seconds and int(size) << 20 >= limits.upload
    stop = re.findall(r"TimeoutStopSec=(\d+)", (DEPLOY / "seqloom.service").read_text())
    stop += re.findall(r"stop_grace_period: (\d+)s", (DEPLOY / "compose.yaml").read_text())
    assert len(stop) == 2 and min(map(int, stop)) > limits.stop_seconds + 2
