"""The run folder: one writer, checkpoints that survive anything, names of every kind."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import Faults, Killed, damaged, every_fault, order_violations, remove_in_plain_sight
from pydantic import ValidationError

from seqloom.core.errors import RunError, UserError
from seqloom.data.options import DataOptions
from seqloom.runs import durable, log
from seqloom.runs.durable import Damaged
from seqloom.runs.folder import RunFolder
from seqloom.runs.settings import RunConfig
from seqloom.train.settings import TrainConfig

pytestmark = pytest.mark.long

KEEP, BEST = 2, 1


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of fsync are recorded and failed like any other; to wait for the disk would prove nothing."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def files(step: int) -> dict[str, durable.Content]:
    return {"state.json": b"%d" % step * 30, "weights": b"w%d" % step * 20}


def steps(run: RunFolder) -> list[int]:
    return [step for step, _ in run.checkpoints()]


def save(run: RunFolder, step: int) -> None:
    run.log({"step": step})
    run.save_checkpoint(step, files(step), keep=KEEP, best=BEST)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    run = RunFolder(tmp_path / "run")
    with run.lock():
        run.write_record({"task": "t"})
        for step in range(1, 6):
            save(run, step)
    return run


def test_the_newest_and_the_best_checkpoints_are_kept(run):
    assert steps(run) == [5, 4, BEST]
    assert run.newest_whole(pytest.fail) == (5, run.path / "checkpoints" / "step-00000005")
    assert (run.checkpoint(BEST) / "state.json").read_bytes() == b"%d" % BEST * 30


def test_what_a_killed_process_did_not_prune_is_pruned_on_request(run):
    run.save_checkpoint(6, files(6), keep=10, best=BEST)
    assert steps(run) == [6, 5, 4, BEST]
    run.prune(KEEP, BEST)
    assert steps(run) == [6, 5, BEST]


def test_order_is_by_step_and_not_by_time(run):
    os.utime(run.path / "checkpoints" / f"step-{BEST:08d}", (2**33, 2**33))
    run.save_checkpoint(123456789, files(6), keep=KEEP, best=None)
    assert steps(run) == [123456789, 5]


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Faults], list[str]]:
    """Save with pruning, and save the last step again; all laws that do not hold after the fault."""

    def saving(injected: Faults) -> list[str]:
        run = RunFolder.new(tmp_path, "run")
        acknowledged: list[int] = []
        with monkeypatch.context() as patch:
            patch.setattr(durable, "os", injected)
            try:
                for step in (1, 2, 3, 4):
                    save(run, step)
                    acknowledged.append(step)
                run.save_checkpoint(4, files(4), keep=KEEP, best=BEST)
            except (Killed, RunError) as stopped:
                assert injected.fired and "\n" not in str(stopped)
        found = laws(run, acknowledged)
        run = RunFolder(run.path)
        with run.lock():
            found += laws(run, acknowledged)
            if left := [path.name for path in run.path.rglob(".seqloom-*")]:
                found.append(f"left behind: {left}")
            newest = run.newest_whole(found.append)
            reached = newest[0] if newest else 0
            run.trim_metrics(reached)
            for step in range(reached + 1, 6):
                save(run, step)
        if steps(run) != [5, 4, BEST] or [entry["step"] for entry in run.metrics()] != [1, 2, 3, 4, 5]:
            found.append(f"does not go on: {steps(run)}, {run.metrics()}")
        return found

    return saving


def laws(run: RunFolder, acknowledged: list[int]) -> list[str]:
    found = damaged(run.path / "checkpoints")
    seen = steps(run)
    newest_ones = sorted({*seen, *acknowledged})[-KEEP:]  # one that was not acknowledged may be there, whole
    found += [f"checkpoint {step} is gone" for step in {*newest_ones, BEST} & {*acknowledged} if step not in seen]
    newest = run.newest_whole(lambda line: None)
    if acknowledged and (newest is None or newest[0] < acknowledged[-1]):
        found.append(f"{newest} found, {acknowledged[-1]} was acknowledged")
    logged = [entry["step"] for entry in run.metrics()]
    if logged[: len(acknowledged)] != acknowledged:
        found.append(f"log has {logged}, {acknowledged} were acknowledged")
    return found


def test_whatever_call_fails_no_checkpoint_is_lost(attempt):
    assert list(every_fault(attempt, (Killed, errno.ENOSPC))) == []


def test_the_check_notices_pruning_in_plain_sight(attempt, monkeypatch):
    monkeypatch.setattr(durable, "remove", remove_in_plain_sight)
    assert any(every_fault(attempt, (Killed,)))


def test_the_check_notices_pruning_before_publishing(attempt, monkeypatch):
    publish = durable.publish

    def early(folder: Path, contents: dict) -> None:
        for old in sorted(p for p in folder.parent.glob("step-*") if p.name != f"step-{BEST:08d}")[:-1]:
            durable.remove(old)
        publish(folder, contents)

    monkeypatch.setattr(durable, "publish", early)
    assert any(every_fault(attempt, (Killed,)))


def test_metrics_reach_the_disk_before_the_checkpoint_that_counts_on_them(run, monkeypatch):
    recorder = Faults()
    with monkeypatch.context() as patch:
        patch.setattr(durable, "os", recorder)
        patch.setattr(log, "os", recorder)
        save(run, 6)
        run.publish_model(files(6))
        run.write_summary({})
    events = [event for event in recorder.events if event[0] != "failed"]
    metrics = str(run.path / "metrics.jsonl")
    publishing = next(i for i, e in enumerate(events) if e[0] == "mkdir")
    assert events.index(("write", metrics)) < events.index(("fsync", metrics)) < publishing
    assert order_violations(events) == []


def test_damaged_checkpoints_are_passed_over_with_a_word(run):
    for path in sorted((run.path / "checkpoints" / "step-00000005").iterdir()):
        whole = path.read_bytes()
        for broken in [None, b"", whole[:-1], whole[:5] + b"?" + whole[6:], whole + b"x"]:
            path.unlink()
            if broken is not None:
                path.write_bytes(broken)
            said: list[str] = []
            assert run.newest_whole(said.append) == (4, run.path / "checkpoints" / "step-00000004")
            assert len(said) == 1 and str(path) in said[0] and "step 5" in said[0]
            with pytest.raises(Damaged, match=path.name):
                run.checkpoint(5)
            path.write_bytes(whole)
    assert run.newest_whole(pytest.fail) is not None


def test_damaged_checkpoints_do_not_count_as_kept(run):
    (run.path / "checkpoints" / "step-00000005" / "weights").unlink()
    RunFolder(run.path).save_checkpoint(6, files(6), keep=2, best=None)
    assert steps(run) == [6, 5, 4]
    shutil.rmtree(run.path / "checkpoints")
    assert run.newest_whole(pytest.fail) is None
    with pytest.raises(Damaged, match="step-00000004"):
        run.checkpoint(4)


def test_no_step_is_logged_twice_after_going_back(run):
    with open(run.path / "metrics.jsonl", "ab") as log:
        log.write(b'{"step": 6, "lo')
    run.trim_metrics(3)
    run.log({"step": 4})
    assert [entry["step"] for entry in run.metrics()] == [1, 2, 3, 4]
    RunFolder(run.path / "none").trim_metrics(3)


def test_a_validation_that_was_not_saved_is_logged_once(run):
    """The last step was saved, then validated; the process was killed before the validation was saved too."""
    run.trim_metrics(3)
    run.log({"step": 3, "valid": {"loss": 1.0}})
    run.trim_metrics(3, validated=2)
    assert [entry["step"] for entry in run.metrics()] == [1, 2, 3] and "valid" not in run.metrics()[-1]


def test_a_folder_without_a_run_says_so(tmp_path, run):
    for path in (tmp_path, tmp_path / "nowhere", run.path / "run.json"):
        with pytest.raises(UserError, match=r"not a run folder \(no run.json\); create one with seqloom fit") as caught:
            RunFolder(path).record()
        assert caught.value.exit_code == 2
    with pytest.raises(UserError, match="no trained model yet"):
        run.model_files()
    (run.path / "run.json").write_text("{")
    with pytest.raises(Damaged, match=r"run\.json"):
        run.record()


def test_the_model_and_the_summary_come_back(run):
    assert run.summary() is None
    run.publish_model(files(1))
    run.publish_model(files(2))
    run.write_summary({"loss": 1.5, "name": "né"})
    assert (run.model_files() / "weights").read_bytes() == b"w2" * 20
    assert run.summary() == {"loss": 1.5, "name": "né"}
    (run.path / "model" / "weights").write_bytes(b"w3" * 20)
    with pytest.raises(Damaged, match="weights"):
        run.model_files()


HOLD = """
import sys
from pathlib import Path
from seqloom.core.errors import UserError
from seqloom.runs.folder import RunFolder
print("ready", flush=True)
sys.stdin.readline()
try:
    with RunFolder(Path(sys.argv[1])).lock():
        print("won", flush=True)
        sys.stdin.readline()
except UserError as error:
    print(error, flush=True)
    sys.exit(error.exit_code)
"""


def contenders(path: Path, count: int) -> tuple[list[subprocess.Popen], list[str]]:
    """Processes that all lock one folder at once, and what each of them says; the winner holds it until it is told."""
    command = [sys.executable, "-c", HOLD, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(count)]
    assert all(process.stdout.readline() == "ready\n" for process in processes)
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    return processes, [process.stdout.readline() for process in processes]


def check_one_winner(path: Path, counts: tuple[int, int]) -> None:
    for count in counts:  # the second time, the lock file names a holder that was killed
        processes, said = contenders(path, count)
        assert said.count("won\n") == 1
        winner = processes[said.index("won\n")]
        for process, line in zip(processes, said, strict=True):
            if process is not winner:
                assert process.wait(timeout=10) == 1
                assert f"in use by process {winner.pid} on " in line and " since " in line
        winner.send_signal(signal.SIGKILL)
        winner.wait(timeout=10)
    with RunFolder(path).lock():
        pass


def test_one_writer_wins_and_the_others_name_it(tmp_path):
    check_one_winner(tmp_path / "run", (8, 3))


def test_the_lock_check_notices_a_lock_that_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "HOLD", "import fcntl\nfcntl.flock = lambda *_: None\n" + HOLD)
    processes, said = contenders(tmp_path / "run", 2)
    assert said == ["won\n"] * 2
    for process in processes:
        process.communicate()


FORK = """
import os, sys, time
from pathlib import Path
from seqloom.runs.folder import RunFolder
with RunFolder(Path(sys.argv[1])).lock():
    child = os.fork()
    if child:
        print(child, flush=True)
    time.sleep(60)
"""


def test_a_child_that_outlives_a_killed_writer_does_not_keep_the_lock(tmp_path):
    writer = subprocess.Popen([sys.executable, "-c", FORK, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    child = int(writer.stdout.readline())
    with pytest.raises(RunError, match=f"in use by process {writer.pid} on "), RunFolder(tmp_path).lock():
        pass
    writer.kill()
    writer.wait()
    with RunFolder(tmp_path).lock():
        os.kill(child, signal.SIGKILL)


def test_locking_clears_what_a_killed_process_left(run):
    for parent in (run.path, run.path / "checkpoints"):
        (parent / ".seqloom-tmp-1-00000000").mkdir()
    os.rename(run.path / "checkpoints" / "step-00000005", run.path / "checkpoints" / ".seqloom-old.step-00000005")
    assert steps(run) == [5, 4, BEST]
    with run.lock():
        assert not list(run.path.rglob(".seqloom-*"))
        assert (run.path / "checkpoints" / "step-00000005").is_dir()


MAKE = """
import sys
from pathlib import Path
from seqloom.runs.folder import RunFolder
for _ in range(int(sys.argv[2])):
    run = RunFolder.new(Path(sys.argv[1]), "lstm")
    run.write_record({"at": str(run.path)})
    print(run.path)
"""


def check_new_runs(root: Path, callers: int, each: int) -> None:
    command = [sys.executable, "-c", MAKE, str(root), str(each)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(callers)]
    made = [line for process in processes for line in process.communicate()[0].splitlines()]
    assert sorted(made) == [str(root / f"lstm-{n:04d}") for n in range(1, callers * each + 1)]
    assert all(RunFolder(Path(path)).record() == {"at": path} for path in made)


def test_200_new_runs_at_once_are_200_folders(tmp_path):
    check_new_runs(tmp_path / "runs", callers=8, each=25)


def test_a_new_run_takes_the_next_number(tmp_path):
    (tmp_path / "lstm-0041").mkdir()
    (tmp_path / "lstm-x-9999").mkdir()
    assert RunFolder.new(tmp_path, "lstm").path == tmp_path / "lstm-0042"
    assert RunFolder.new(tmp_path, "a.*b").path == tmp_path / "a.*b-0001"


ODD = [
    "two words",
    "👩‍💻",
    "שלום",
    "é",
    "e\u0301",
    "-rf",
    "new\nline",
    "..",
    "con",
    "dot.",
    "~",
    "~root",
    "a" * 255,
    "\udc80",
]
NOT_NAMES = ["nul\0", "\ud800", "a" * 256]


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_a_folder_of_any_name_works(tmp_path, name):
    root = tmp_path / "root"
    run = RunFolder(root / name)
    with run.lock():
        run.write_record({"name": name})
        run.log({"step": 1, "name": name})
        run.save_checkpoint(1, files(1), keep=1, best=None)
        run.publish_model(files(1))
        with pytest.raises(RunError) as caught, run.lock():
            pass
    assert "\n" not in str(caught.value)
    str(caught.value).encode()
    assert (root / name / "run.json").exists()
    again = RunFolder(root / name)
    assert again.record() == {"name": name} and steps(again) == [1] and again.model_files().is_dir()
    assert again.metrics() == [{"step": 1, "name": name}]


@pytest.mark.parametrize("name", NOT_NAMES, ids=lambda name: ascii(name[:5]))
def test_what_cannot_be_a_name_is_refused_in_one_line(tmp_path, name):
    for act in (
        lambda: RunFolder(tmp_path / name).lock().__enter__(),
        lambda: RunFolder(tmp_path / name).record(),
        lambda: RunFolder.new(tmp_path, name),
    ):
        with pytest.raises(UserError) as caught:
            act()
        assert "\n" not in str(caught.value)
        str(caught.value).encode()
    assert os.listdir(tmp_path) == []


def test_500_odd_names_stay_inside_their_root(tmp_path):
    generator = random.Random(0)
    root = tmp_path / "root"
    pieces = [
        "..",
        ".",
        "/",
        "~",
        "-",
        " ",
        "\n",
        "\0",
        "é",
        "e\u0301",
        "\u202e",
        "👍",
        "\udcff",
        "\ud83d",
        "a",
        "*",
        "x" * 90,
    ]
    made = 0
    for _ in range(500):
        stem = "".join(generator.choices(pieces, k=generator.randrange(5)))
        try:
            assert RunFolder.new(root, stem).path.parent == root
            made += 1
        except UserError as refused:
            assert "\n" not in str(refused)
            str(refused).encode()
    assert os.listdir(tmp_path) == ["root"]
    assert made == len(os.listdir(root)) > 100


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_folder_that_cannot_be_made_or_locked_is_named(tmp_path, monkeypatch, number):
    for path in (tmp_path / "new", tmp_path):
        with monkeypatch.context() as patch:
            patch.setattr(os, "mkdir" if path.name == "new" else "open", Faults(1, number).__getattr__("mkdir"))
            with pytest.raises(RunError) as caught, RunFolder(path).lock():
                pass
        assert str(caught.value).startswith(f"cannot write {path}: ")


def test_a_folder_of_another_user_is_refused():
    root = Path(tempfile.mkdtemp())
    root.chmod(0o555)
    user = os.geteuid()
    try:
        if user == 0:  # root may write anywhere
            os.seteuid(65534)
        with (
            pytest.raises(RunError, match=f"cannot write {root / 'run'}: permission denied"),
            RunFolder(root / "run").lock(),
        ):
            pass
    finally:
        os.seteuid(user)
        root.chmod(0o755)
        root.rmdir()


def test_a_file_in_the_way_and_a_lost_directory_are_named(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(RunError, match=f"cannot write {tmp_path / 'file'}: a file of that name exists"):
            RunFolder(path).lock().__enter__()
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(RunError, match="cannot write run: no such file or directory"):
        RunFolder(Path("run")).lock().__enter__()


def test_the_configuration_goes_to_json_and_back():
    sections = {"task": {"name": "t", "length": 8}, "model": {"name": "m"}, "data": {"train": "book.txt"}}
    config = RunConfig.model_validate({**sections, "train": {"steps": 10, "rate": 1e-20}})
    assert RunConfig.model_validate_json(config.model_dump_json()) == config
    assert RunConfig.model_validate(config.model_dump(mode="json")) == config


@pytest.mark.parametrize(
    ("section", "option", "value"),
    [
        ("train", "steps", 0),
        ("train", "rate", float("inf")),
        ("train", "rate", float("nan")),
        ("train", "keep", 0),
        ("train", "momentum", 1),
        ("train", "optimizer", "adam"),
        ("train", "stesp", 1),
        ("task", "name", 3),
    ],
)
def test_settings_out_of_bounds_are_refused(section, option, value):
    sections = {"task": {"name": "t"}, "model": {"name": "m"}, "data": {"train": "book.txt"}, "train": {}}
    sections[section][option] = value
    with pytest.raises(ValidationError):
        RunConfig.model_validate(sections)


def test_every_option_of_training_says_what_it_means():
    assert all(field.description for field in TrainConfig.model_fields.values())


@pytest.mark.parametrize(("option", "value"), [("valid_fraction", 1), ("test_fraction", 0.95), ("train", "")])
def test_data_that_leaves_nothing_to_learn_from_is_refused(option, value):
    with pytest.raises(ValidationError):
        DataOptions.model_validate({"train": "book.txt", option: value})
