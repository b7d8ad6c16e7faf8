"""Cases of the commands that take a run, and what those of all commands share: something valid, then most often
spoiled in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from fuzz.case import Case, File, Wanted, edit, run_folder, text
from fuzz.damage import FILES
from fuzz.odd import odd_prediction, odd_words
from fuzz.options import PATHS, broken, extreme, of_command, of_settings, strange_words
from fuzz.shelf import DATA, RUNS, TASK_OF
from fuzz.sources import SOURCES, Draw, Source
from fuzz.spoiled import CELLS, VALUES

Make = Callable[[Draw], Case]


def chance(draw: Draw, of: int) -> bool:
    return draw(st.integers(1, of)) == of


def with_option(draw: Draw, case: Case, task: str = "", model: str = "") -> Case:
    """One more option with an extreme value, or what is no option."""
    known = [o for o in of_command(case.command) if not o.positional and o.name not in NEVER]
    kinds: list[Callable[[], Any]] = [lambda: strange_words(draw), lambda: extreme(draw, draw(st.sampled_from(known)))]
    if task:
        settings = of_settings(task, model, measured="task.input=measurements" in case.argv)
        kinds += [lambda: broken(draw)] + [lambda: extreme(draw, draw(st.sampled_from(settings)))] * 4
    elif any(o.name == "-o" for o in known):
        kinds.append(lambda: broken(draw))
    words, wanted = draw(st.sampled_from(kinds))()
    name, _, value = words[0].partition("=")
    if name in ("--out", "--chart") and value:
        case = replace(case, writes=(*case.writes, value))
    return case.adding(*words, wanted=wanted, made=f"option {' '.join(words)[:60]!r}")


NEVER = {"--on", "--debug", "--store", "--jobs", "--help"}  # what would start a cluster, or look for a server


def with_path(draw: Draw, case: Case, option: str) -> Case:
    """Something odd as a file or folder to write."""
    path = draw(st.sampled_from(PATHS))
    wanted: Wanted = "fail" if path in ("", "pipe", "/proc/x", "plain/x") else "either"
    files = (*case.files, text("plain", "a file, not a folder"), File("pipe", "", "fifo"))
    writes = (*case.writes, "" if path == "." else path.rstrip("/") or "out")
    made = f"{option} {path[:20]!r}"
    return case.adding(option, path, wanted=wanted, made=made).but(wanted, files=files, writes=writes)


def odd(draw: Draw, case: Case) -> Case:
    words, wanted = odd_words(draw, case.command)
    return case.adding(*words, wanted=wanted, made=" ".join(words)[:60])


def source_of(draw: Draw) -> Source:
    return SOURCES[draw(st.sampled_from(sorted(SOURCES)))](draw)


def a_run(draw: Draw, *names: str) -> tuple[str, File]:
    name = draw(st.sampled_from(names or tuple(RUNS)))
    return name, run_folder("run", name)


def evaluate(draw: Draw) -> Case:
    name, run = a_run(draw)
    data = DATA[RUNS[name][0]]
    case = Case(("eval", "run", "--data", data.path), (run, data), "pass", f"eval {name}")
    return spoil_use(draw, case, name, data)


def predict(draw: Draw) -> Case:
    name, run = a_run(draw)
    data = DATA[RUNS[name][0]]
    task = TASK_OF[name]
    wanted: Wanted = "fail" if task in ("language_model", "masked_lm") else "pass"
    out = draw(st.sampled_from(["", "out.csv", "out.jsonl", "out.parquet", "out.tsv"]))
    argv = ("predict", "run", "--data", data.path, *(["--out", out] if out else []))
    case = Case(argv, (run, data), wanted, f"predict {name}")
    if chance(draw, 4):
        if chance(draw, 4):  # a file that is written twice, or read as well
            twice = draw(st.sampled_from([("--out", data.path), ("--out", "out.html", "--chart", "out.html")]))
            return case.adding(*twice, wanted="fail", made=" ".join(twice))
        words, suits = odd_prediction(draw, task)
        return case.adding(*words, wanted=suits, made=" ".join(words))
    if chance(draw, 4):
        said = draw(st.sampled_from(["the cat", "", " ", "\x1b[2J", "猫" * 300, "a " * 3000, "\udcff", "-"]))
        wants: Wanted = "fail" if task == "forecasting" or name == "measured" or not said.strip() else "either"
        return Case(("predict", "run", "--text", said), (run,), wants, f"predict {name} --text {said[:9]!r}")
    if chance(draw, 5):
        return Case(
            ("predict", "run", "--data", "-"), (run,), "either", f"predict {name} stdin", stdin=_stdin(draw, data)
        )
    return with_path(draw, case, "--out") if chance(draw, 5) else spoil_use(draw, case, name, data)


def _stdin(draw: Draw, data: File) -> str:
    whole = data.bytes().decode()
    return draw(
        st.sampled_from(
            [
                whole,
                "",
                "\n",
                whole[: len(whole) // 2],
                "\udcff\udcfe",
                "\x00",
                whole.replace("\n", "\r"),
                "a" * 100_000,
                "{" * 5000,
            ]
        )
    )


def spoil_use(draw: Draw, case: Case, name: str, data: File) -> Case:
    """Of a command that takes a run and data: spoil the run, the data, or the options; or nothing."""
    way = draw(st.sampled_from(["run", "run", "data", "data", "other", "option", "option", "nothing"]))
    if way == "run":
        return spoil_run(draw, case)
    if way == "option":
        return with_option(draw, case)
    if way == "data":
        source, wanted, made = draw(st.sampled_from(FILES))(draw, Source(TASK_OF[name], (data,), kind="plain")) or (
            None,
            "either",
            "",
        )
        if source:
            old = case.argv.index(data.path)
            argv = (*case.argv[:old], source.data, *case.argv[old + 1 :])
            return case.but(wanted, made, argv=argv, files=(*(f for f in case.files if f != data), *source.files))
    if way == "other":
        other = DATA[draw(st.sampled_from(sorted(set(DATA) - {RUNS[name][0]})))]
        argv = tuple(other.path if word == data.path else word for word in case.argv)
        return case.but(made=f"on {other.path}", argv=argv, files=(*case.files, other))
    return case


RUN_FILES = (  # of a run folder; what is not in one is left as it is
    *("run.json", "summary.json", "metrics.jsonl", "model", "tokenizer", "checkpoints"),
    *(f"model/{name}" for name in ("model.safetensors", "manifest.json", "tokenizer.json", "tokenizer_config.json")),
    *(f"model/{name}" for name in ("naive.json", "labels.json", "scale.json", "series.json", "tags.json")),
    *("model/adapter_model.safetensors", "model/adapter_config.json", "tokenizer/tokenizer.json"),
)
NEEDED = ("run.json", "model/model.safetensors", "model/manifest.json", "model")  # of a run without adapters
RUN_KEYS = (  # of run.json
    *("config", "config model", "config model name", "config model width", "config model depth", "config task name"),
    *("config data", "config data train", "config train", "config train seed", "config tokenizer kind"),
    *("given", "chosen", "versions", "parameters", "metric", "data", "tokenizer", "seal", "nosuch"),
)


def spoil_run(draw: Draw, case: Case, folder: str = "run") -> Case:
    """A run folder that was damaged, edited or mixed up."""
    name = draw(st.sampled_from(RUN_FILES))
    way = draw(st.sampled_from(["cut", "flip", "splice", "delete", "become", "write", "set", "empty"]))
    if "." not in name:
        way = "delete"
    adapters = any(file.kind == "run" and file.content == "adapters" for file in case.files)
    needed = name in NEEDED and not (adapters and name.endswith("safetensors"))
    path, wanted = f"{folder}/{name}", "fail" if needed and way not in ("flip", "splice", "set") else "either"
    kind, content = draw(st.sampled_from(INSTEAD))
    cell = draw(st.sampled_from([cell for cell in CELLS if isinstance(cell, str)]))
    changes: dict[str, Callable[[], File]] = {
        "cut": lambda: edit(path, "cut", draw(st.sampled_from(SHARES))),
        "flip": lambda: edit(path, "flip", draw(st.sampled_from(SHARES)), 1 << draw(st.integers(0, 7))),
        "splice": lambda: edit(path, "splice", draw(st.sampled_from(SHARES)), cell),
        "delete": lambda: edit(path, "delete"),
        "become": lambda: edit(path, "become", kind, content),
        "write": lambda: edit(path, "write", draw(st.sampled_from(JSONS))),
        "set": lambda: _another_setting(draw, folder),
        "empty": lambda: edit(path, "write", ""),
    }
    change = changes[way]()
    return case.but(wanted, f"{name}: {way} {change.content[:60]}", files=(*case.files, change))


SHARES = (0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95)  # of a file
INSTEAD = (("fifo", ""), ("folder", ""), ("link", "/dev/zero"), ("link", "nowhere"), ("text", ""))
JSONS = ("{}", "[]", "null", "1", '"x"', "[" * 100_000, '{"a": 1e999}', "{", "\x00", "NaN")


def _another_setting(draw: Draw, folder: str) -> File:
    value = draw(st.sampled_from([*VALUES, "DELETE", "x"]))
    return edit(f"{folder}/run.json", "set", draw(st.sampled_from(RUN_KEYS)).split(), value)


def generate(draw: Draw) -> Case:
    name, run = a_run(draw, "lm", "lstm", "ngram", "lm", "lstm", "labels", "mlm", "pairs")
    fits: Wanted = "pass" if TASK_OF[name] == "language_model" else "fail"
    case = Case(("generate", "run", "--max-new", "5"), (run,), fits, f"generate {name}", writes=())
    way = draw(st.sampled_from(["prompt", "run", "option", "option", "odd"]))
    if way == "run":
        return spoil_run(draw, case)
    if way == "option":
        return with_option(draw, case)
    if way == "odd":
        words, wanted = odd_words(draw, "generate")
        return case.adding(*words, wanted=wanted, made=" ".join(words))
    prompt = draw(st.sampled_from(["", "the cat", "\x1b", "猫", "\udcff", "a" * 5000, "<unk>", "\n"]))
    return case.adding("--prompt", prompt, wanted="either", made=f"prompt {prompt[:9]!r}")


def merge(draw: Draw) -> Case:
    name, run = a_run(draw, "adapters", "adapters", "labels", "lm", "naive")
    case = Case(("merge", "run", "--out", "out"), (run,), "pass" if name == "adapters" else "fail", f"merge {name}")
    way = draw(st.sampled_from(["run", "option", "path", "nothing"]))
    if way == "path":
        return with_path(draw, case, "--out")
    return {"run": spoil_run, "option": with_option}.get(way, lambda _, same: same)(draw, case)
