"""Faults to inject into durable writes, and the laws that must hold whatever fails."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from seqloom.runs import durable

CHANGING = ("open", "write", "fsync", "rename", "mkdir", "unlink", "rmdir", "close", "ftruncate")
Event = tuple[str, ...]  # ("write", path), ("fsync", path), ("rename", source, target), ...


class Killed(BaseException):
    """The process is gone: nothing after it runs, not even the clearing up."""


class Faults:
    """Stands in for the module `os`: records the calls that change files, and fails the Nth.

    `fault` is an errno, or Killed: then every later call fails too, because a dead process makes none.
    """

    def __init__(self, at: int = 0, fault: int | type[Killed] = Killed) -> None:
        self.at, self.fault = at, fault
        self.events: list[Event] = []
        self.dead = False
        self._open: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return partial(self._call, name, real) if name in CHANGING else real

    def _call(self, name: str, real: Callable[..., Any], *args: Any) -> Any:
        if self.dead:
            raise Killed
        self.events.append((name, *(self._path(a) for a in args[: 2 if name == "rename" else 1])))
        if len(self.events) == self.at:
            self._fail(name, real, *args)
        try:
            result = real(*args)
        except OSError:
            self.events[-1] = ("failed", *self.events[-1])
            raise
        if name == "open":
            self._open[result] = str(args[0])
        elif name == "close":
            self._open.pop(args[0], None)
        return result

    @property
    def fired(self) -> bool:
        return len(self.events) >= self.at

    def _fail(self, name: str, real: Callable[..., Any], *args: Any) -> None:
        if name == "write":
            real(args[0], bytes(args[1])[: len(args[1]) // 2])  # torn
        if self.fault is Killed:
            self.dead = True
            raise Killed
        if name == "close":
            real(*args)
            self._open.pop(args[0], None)
        assert isinstance(self.fault, int)
        raise OSError(self.fault, os.strerror(self.fault))

    def _path(self, argument: Any) -> str:
        return self._open.get(argument, "?") if isinstance(argument, int) else str(argument)

    def release(self) -> None:
        """What the kernel does for a dead process."""
        for fd in self._open:
            os.close(fd)


def remove_in_plain_sight(folder: Path) -> None:
    """A mutant of `durable.remove`: whoever looks while it works sees half a folder."""
    if folder.exists():
        durable._remove_tree(folder)


def every_fault(attempt: Callable[[Faults], list[str]], faults: tuple[Any, ...]) -> Iterator[str]:
    """Fail the Nth call for every N, with every fault; the violations that `attempt` reports."""
    for fault in faults:
        at, ended = 0, False
        while not ended:
            at += 1
            injected = Faults(at, fault)
            found = attempt(injected)
            injected.release()
            ended = not injected.fired
            called = injected.events[-1][0] if injected.events else ""
            yield from (f"{fault} at call {at} ({called}): {violation}" for violation in found)
        assert at > 10


def damaged(parent: Path) -> list[str]:
    """A law: every folder that can be seen is whole."""
    found = []
    for name, place in durable.published(parent).items():
        try:
            durable.verify(place)
        except durable.Damaged as damage:
            found.append(f"{name} can be seen but is damaged: {damage}")
    return found


def order_violations(events: list[Event]) -> list[str]:
    """A law, for power cuts: file contents, then the folder, then the name, then the parent reach the disk in order."""
    found = []
    for now, event in enumerate(events):
        if event[0] != "rename" or ".seqloom-tmp-" not in event[1]:
            continue
        source, target = event[1], event[2]
        before, after = events[:now], events[now + 1 :]
        inside = [
            e for e in before if e[0] in ("write", "fsync") and (e[1] == source or Path(e[1]).parent == Path(source))
        ]
        files = {e[1] for e in inside if e[0] == "write"}
        if not files:
            found.append(f"{target}: nothing was written")
        for path in files:
            if [e[0] for e in inside if e[1] == path][-1] != "fsync":
                found.append(f"{path}: renamed before its content was on disk")
        if files != {source}:  # a folder
            if inside[-1] != ("fsync", source):
                found.append(f"{source}: renamed before the folder itself was on disk")
            if inside[-2:-1] != [("fsync", source + "/" + durable.MANIFEST)]:
                found.append(f"{source}: the manifest was not written last")
        following = [e for e in after if e[0] in ("fsync", "rename", "unlink", "rmdir", "write")]
        if not following or following[0] != ("fsync", str(Path(target).parent)):
            found.append(f"{target}: acknowledged before its name was on disk")
    return found
