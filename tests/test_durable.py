"""Durable writes: whatever fails, whenever, what was acknowledged is there and what can be seen is whole."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from faults import Faults, Killed, damaged, every_fault, order_violations, remove_in_plain_sight

from seqloom.core.errors import RunError
from seqloom.runs import durable, log
from seqloom.runs.durable import Damaged


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of fsync are recorded and failed like any other; to wait for the disk would prove nothing."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def files(version: int) -> dict[str, durable.Content]:
    def stream(out) -> None:
        out.write(b"streamed ")
        out.write(b"%d" % version * 20)

    return {"state.json": b"%d" % version * 30, "weights": memoryview(b"w%d" % version * 40), "stream": stream}


def version_of(place: Path) -> int | None:
    state = place / "state.json"
    return int(state.read_bytes()[:1]) if state.exists() else None


class Story:
    """Publishing, publishing again, removing; knows at each moment which versions a reader may find."""

    def __init__(self, parent: Path) -> None:
        self.parent = parent
        self.allowed: dict[str, set[int | None]] = {}

    def tell(self) -> None:
        self._step("a", 1, lambda: durable.publish(self.parent / "a", files(1)))
        self._step("b", 2, lambda: durable.publish(self.parent / "b", files(2)))
        self._step("a", 3, lambda: durable.publish(self.parent / "a", files(3)))
        self._step("b", None, lambda: durable.remove(self.parent / "b"))
        self._step("a", 4, lambda: durable.publish(self.parent / "a", files(4)))

    def _step(self, name: str, version: int | None, act: Callable[[], None]) -> None:
        self.allowed[name] = self.allowed.get(name, {None}) | {version}
        act()
        self.allowed[name] = {version}

    def violations(self) -> list[str]:
        found = damaged(self.parent)
        seen = {name: version_of(place) for name, place in durable.published(self.parent).items()}
        for name, versions in self.allowed.items():
            if seen.get(name) not in versions:
                found.append(f"{name}: version {seen.get(name)} is there, {versions} was acknowledged")
        return found


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Faults], list[str]]]:
    def tell(injected: Faults) -> list[str]:
        parent = Path(tempfile.mkdtemp(dir=tmp_path))
        story = Story(parent)
        with monkeypatch.context() as patch:
            patch.setattr(durable, "os", injected)
            try:
                story.tell()
            except (Killed, RunError) as stopped:
                assert injected.fired and "\n" not in str(stopped)
        found = story.violations()
        durable.sweep(parent)
        found += story.violations()
        if left := set(os.listdir(parent)) - set(story.allowed):
            found.append(f"left behind: {left}")
        return found

    return tell


@pytest.mark.long
def test_whatever_call_fails_the_store_is_whole(attempt):
    assert list(every_fault(attempt, (Killed, errno.ENOSPC, errno.EIO))) == []


def test_the_check_notices_a_replacement_that_leaves_a_gap(attempt, monkeypatch):
    def careless(temporary: Path, folder: Path) -> None:
        if folder.exists():
            durable._remove_tree(folder)
        durable.os.rename(temporary, folder)

    monkeypatch.setattr(durable, "_move_into_place", careless)
    assert any(every_fault(attempt, (Killed,)))


def test_the_check_notices_a_removal_in_plain_sight(attempt, monkeypatch):
    monkeypatch.setattr(durable, "remove", remove_in_plain_sight)
    assert any(every_fault(attempt, (Killed,)))


def test_the_check_notices_a_sweep_that_does_nothing(attempt, monkeypatch):
    monkeypatch.setattr(durable, "sweep", lambda parent: None)
    assert any(every_fault(attempt, (Killed,)))


def test_a_failed_publish_clears_up_after_itself(tmp_path, monkeypatch):
    at = 0
    while True:
        at += 1
        parent = tmp_path / str(at)
        parent.mkdir()
        injected = Faults(at, errno.ENOSPC)
        with monkeypatch.context() as patch:
            patch.setattr(durable, "os", injected)
            try:
                durable.publish(parent / "a", files(1))
                break
            except RunError:
                pass
        assert set(os.listdir(parent)) <= {"a"}, injected.events
    assert at > 15


def record(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> list[tuple[str, ...]]:
    recorder = Faults()
    with monkeypatch.context() as patch:
        patch.setattr(durable, "os", recorder)
        act()
    return recorder.events


def test_contents_names_and_parents_reach_the_disk_in_order(tmp_path, monkeypatch):
    events = record(monkeypatch, Story(tmp_path).tell)
    events += record(monkeypatch, lambda: durable.write_file(tmp_path / "f", b"x"))
    published = [e for e in events if e[0] == "rename" and ".seqloom-tmp-" in e[1]]
    assert len(published) >= 5
    assert order_violations(events) == []


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_the_order_check_notices_a_missing_fsync(tmp_path, monkeypatch, kind):
    events = record(monkeypatch, lambda: durable.publish(tmp_path / "a", files(1)))
    for i, event in enumerate(events):
        if event[0] == "fsync" and os.path.basename(event[1]).startswith(".seqloom") == (kind == "folder"):
            assert order_violations(events[:i] + events[i + 1 :]), event
    if kind == "folder":
        monkeypatch.setattr(durable, "sync_folder", lambda folder: None)
    else:
        monkeypatch.setattr(durable, "_write_new", _write_without_fsync)
    assert order_violations(record(monkeypatch, lambda: durable.publish(tmp_path / "b", files(1))))


def _write_without_fsync(path: Path, content: durable.Content) -> dict:
    out = durable._Hashed(durable.os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    durable._write_content(content, out)
    durable.os.close(out.fd)
    return {"bytes": out.size, "sha256": out.digest.hexdigest()}


def undetected(folder: Path, damage: Callable[[bytes], Iterator[bytes]]) -> list[str]:
    """Each file in turn, with each damage: those that `verify` lets pass."""
    passed = []
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for broken in damage(whole):
            overwrite(path, broken)
            try:
                durable.verify(folder)
                passed.append(f"{path.name}: {broken[:20]!r}")
            except Damaged as found:
                assert str(folder) in str(found) and "\n" not in str(found)
        path.write_bytes(whole)
    durable.verify(folder)
    return passed


def overwrite(path: Path, data: bytes) -> None:
    with open(path, "r+b") as file:  # in place: truncating to nothing first makes some file systems flush
        file.write(data)
        file.truncate()


def flips(whole: bytes, count: int = 2000) -> Iterator[bytes]:
    generator = random.Random(0)
    for _ in range(count):
        bit = generator.randrange(8 * len(whole))
        broken = bytearray(whole)
        broken[bit // 8] ^= 1 << bit % 8
        yield bytes(broken)


def cuts(whole: bytes) -> Iterator[bytes]:
    yield from (whole[:length] for length in range(len(whole)))
    yield whole + b"\n"


@pytest.mark.long
@pytest.mark.parametrize("damage", [flips, cuts])
def test_every_flipped_bit_and_every_truncation_is_detected(tmp_path, damage):
    durable.publish(tmp_path / "a", files(1))
    assert undetected(tmp_path / "a", damage) == []


def test_the_damage_check_notices_a_digest_that_is_not_compared(tmp_path, monkeypatch):
    durable.publish(tmp_path / "a", files(1))
    listed = durable._read_manifest(tmp_path / "a")
    few = partial(flips, count=20)
    with monkeypatch.context() as patch:
        patch.setattr(durable, "_read_manifest", lambda folder: listed)
        assert {line.partition(":")[0] for line in undetected(tmp_path / "a", few)} == {durable.MANIFEST}

    class Trusting:
        def __init__(self, name: str) -> None:
            self.hexdigest = lambda: listed[name]["sha256"]

    monkeypatch.setattr(hashlib, "file_digest", lambda file, kind: Trusting(os.path.basename(file.name)))
    assert {line.partition(":")[0] for line in undetected(tmp_path / "a", few)} == set(listed)


def test_every_deleted_added_or_swapped_file_is_detected(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    durable.publish(a, files(1))
    durable.publish(b, files(2))
    for name in os.listdir(a):
        (a / name).rename(tmp_path / "elsewhere")
        with pytest.raises(Damaged, match=name):
            durable.verify(a)
        (b / name).rename(a / name)
        (tmp_path / "elsewhere").rename(b / name)
        for folder in (a, b):
            with pytest.raises(Damaged):
                durable.verify(folder)
        (a / name).rename(tmp_path / "elsewhere")
        (b / name).rename(a / name)
        (tmp_path / "elsewhere").rename(b / name)
        a, b = b, a
    (a / "extra").touch()
    with pytest.raises(Damaged, match="extra"):
        durable.verify(a)
    with pytest.raises(Damaged, match=r"manifest\.json"):
        durable.verify(tmp_path / "nowhere")


def test_a_file_is_the_old_one_or_the_new_one(tmp_path, monkeypatch):
    def attempt(injected: Faults) -> list[str]:
        path = tmp_path / "file"
        durable.write_file(path, b"old" * 10)
        with monkeypatch.context() as patch:
            patch.setattr(durable, "os", injected)
            allowed = {b"old" * 10, b"new" * 10}
            try:
                for _ in range(2):
                    durable.write_file(path, b"new" * 10)
                    allowed = {b"new" * 10}
            except (Killed, RunError):
                pass
        durable.sweep(tmp_path)
        content = path.read_bytes()
        return [] if content in allowed and os.listdir(tmp_path) == ["file"] else [f"{content!r}"]

    assert list(every_fault(attempt, (Killed, errno.ENOSPC))) == []

    def careless(path: Path, data: bytes) -> None:
        fd = durable.os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        durable.os.write(fd, data)
        durable.os.fsync(fd)
        durable.os.fsync(fd)
        durable.os.fsync(fd)
        durable.os.close(fd)

    monkeypatch.setattr(durable, "write_file", careless)
    assert any(every_fault(attempt, (Killed,)))


def test_a_log_torn_at_any_length_reads_and_goes_on(tmp_path):
    path = tmp_path / "log"
    entries = [{"step": i, "loss": 1 / (i + 1), "note": "né\n👍"} for i in range(4)]
    for entry in entries:
        log.append_line(path, entry)
    whole = path.read_bytes()
    assert log.read_lines(path) == entries
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        complete = entries[: whole[:length].count(b"\n")]
        assert log.read_lines(path) == complete
        log.append_line(path, {"step": 9})
        assert log.read_lines(path) == [*complete, {"step": 9}]
    path.write_bytes(whole[:30] + b"\0" * (durable.CHUNK + 7))
    log.append_line(path, {"step": 9})
    assert log.read_lines(path) == [{"step": 9}]


def test_a_log_survives_whatever_call_fails(tmp_path, monkeypatch):
    def attempt(injected: Faults) -> list[str]:
        path = tmp_path / "log"
        path.unlink(missing_ok=True)
        done = 0
        with monkeypatch.context() as patch:
            patch.setattr(durable, "os", injected)
            try:
                for done in range(6):
                    log.append_line(path, {"step": done})
                    log.sync_file(path)
                done = 6
            except (Killed, RunError):
                pass
        steps = [entry["step"] for entry in log.read_lines(path)]
        return [] if steps in (list(range(done)), list(range(done + 1))) else [f"{steps} after {done}"]

    assert list(every_fault(attempt, (Killed, errno.ENOSPC))) == []


def test_a_bad_line_in_the_middle_of_a_log_is_named(tmp_path):
    (tmp_path / "log").write_bytes(b'{"step": 1}\nrubbish\n{"step": 3}\n')
    with pytest.raises(Damaged, match="log:2"):
        log.read_lines(tmp_path / "log")
    assert log.read_lines(tmp_path / "none") == []


def test_numbers_that_json_lacks_become_null(tmp_path):
    log.append_line(tmp_path / "log", {"loss": float("nan"), "more": [float("inf"), 1.5, {"x": -float("inf")}]})
    assert log.read_lines(tmp_path / "log") == [{"loss": None, "more": [None, 1.5, {"x": None}]}]


@pytest.mark.parametrize(("mask", "file_mode", "folder_mode"), [(0o022, 0o644, 0o755), (0o077, 0o600, 0o700)])
def test_modes_follow_the_umask(tmp_path, mask, file_mode, folder_mode):
    before = os.umask(mask)
    try:
        durable.publish(tmp_path / "new" / "a", files(1))
        durable.write_file(tmp_path / "new" / "file", b"")
        log.append_line(tmp_path / "new" / "log", {})
    finally:
        os.umask(before)
    for path in (tmp_path / "new").rglob("*"):
        assert path.stat().st_mode & 0o777 == (folder_mode if path.is_dir() else file_mode), path


def test_everything_is_written_on_one_file_system(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", "/dev/shm")
    events = record(monkeypatch, Story(tmp_path).tell)
    assert all(Path(path).is_relative_to(tmp_path) for event in events for path in event if path.startswith("/"))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (
            errno.ENOSPC,
            "no space left on the device ({n} bytes needed); free some space and run the same command again",
        ),
        (errno.EDQUOT, "({n} bytes needed); free some space"),
        (errno.EROFS, "read-only file system; choose a folder"),
        (errno.EACCES, "permission denied; choose a folder"),
        (errno.EIO, "input/output error"),
    ],
)
def test_a_failed_write_says_where_why_and_the_way_out(tmp_path, monkeypatch, number, words):
    size = sum(map(durable._count, files(1).values()))
    for path, needed, act in [
        (tmp_path / "a", size, lambda: durable.publish(tmp_path / "a", files(1))),
        (tmp_path / "f", 5, lambda: durable.write_file(tmp_path / "f", b"12345")),
        (tmp_path / "l", 3, lambda: log.append_line(tmp_path / "l", {})),
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(durable, "os", Faults(1, number))
            with pytest.raises(RunError) as caught:
                act()
        assert str(caught.value).startswith(f"cannot write {path}: ")
        assert words.format(n=needed) in str(caught.value) and "\n" not in str(caught.value)
        assert caught.value.exit_code == 1


def test_several_processes_may_publish_the_same_folder(tmp_path):
    publishers = []
    for version in range(1, 5):
        publishers.append(os.fork())
        if publishers[-1] == 0:
            try:
                for _ in range(30):
                    durable.publish(tmp_path / "a", files(version))
                os._exit(0)
            finally:
                os._exit(1)
    assert [os.waitpid(publisher, 0)[1] for publisher in publishers] == [0] * 4
    durable.verify(tmp_path / "a")
    assert os.listdir(tmp_path) == ["a"]


def test_sweeping_touches_only_our_own_names(tmp_path):
    mine = [".seqloom-tmp-12-0123abcd", ".seqloom-tmp-7-ffffffff"]
    others = [".seqloom-tmp-notes", "tmp", ".hidden", "seqloom-tmp-12-0123abcd", ".seqloom-tmp-12-0123abcd.txt"]
    (tmp_path / mine[0]).write_text("x")
    (tmp_path / mine[1] / "deep").mkdir(parents=True)
    (tmp_path / mine[1] / "deep" / "file").touch()
    (tmp_path / mine[1] / "link").symlink_to(tmp_path)
    for name in others:
        (tmp_path / name).write_text("x")
    durable.sweep(tmp_path)
    durable.sweep(tmp_path / "nowhere")
    assert sorted(os.listdir(tmp_path)) == sorted(others)


def test_large_and_empty_contents_come_back_as_they_were(tmp_path):
    large = random.Random(0).randbytes(3 * durable.CHUNK + 17)
    contents = {"large": lambda out: out.write(large), "empty": b"", "none": lambda out: None, "view": memoryview(b"")}
    durable.publish(tmp_path / "a", contents)
    durable.verify(tmp_path / "a")
    assert (tmp_path / "a" / "large").read_bytes() == large
    assert [(tmp_path / "a" / name).stat().st_size for name in ("empty", "none", "view")] == [0, 0, 0]


@pytest.mark.parametrize("name", ["", "manifest.json", "a/b", "../a", ".hidden"])
def test_only_plain_names_are_published(tmp_path, name):
    with pytest.raises(ValueError, match="plain file name"):
        durable.publish(tmp_path / "a", {name: b""})


def test_neither_torch_nor_numpy_is_loaded():
    script = "import sys, seqloom.runs.folder; sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_what_a_killed_writer_left_is_removed_by_the_next_and_what_is_being_written_stays(tmp_path):
    left = durable._temporary_name(tmp_path)
    left.write_bytes(b"torn")
    with durable.new_file(tmp_path / "long") as file:
        file.write(b"one ")
        durable.write_file(tmp_path / "short", b"two")
        file.write(b"three")
    assert sorted(os.listdir(tmp_path)) == ["long", "short"]
    assert (tmp_path / "long").read_bytes() == b"one three"


def test_a_file_that_was_taken_for_abandoned_is_made_again(tmp_path, monkeypatch):
    lock, removed = durable.fcntl.flock, []

    def late(fd: int, how: int) -> None:
        if not removed:  # another process looks between the creation and the lock
            removed.append(next(tmp_path.iterdir()))
            removed[0].unlink()
        lock(fd, how)

    monkeypatch.setattr(durable.fcntl, "flock", late)
    durable.write_file(tmp_path / "file", b"whole")
    assert removed and [path.read_bytes() for path in tmp_path.iterdir()] == [b"whole"]
