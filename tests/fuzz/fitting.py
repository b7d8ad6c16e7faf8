"""Cases of `fit` and `doctor`: data, options and recipes; `fit` also over a run that is there already."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from fuzz.case import Case, File, Wanted, repeated, run_folder, text
from fuzz.commands import a_run, chance, odd, source_of, spoil_run, with_option, with_path
from fuzz.shelf import RUNS, command_of
from fuzz.sources import QUICK, Draw
from fuzz.spoiled import damaged

COUNTING = {"tfidf", "frequent", "naive", "ngram", "nearest"}  # learn without gradients, and know fewer options
WAYS = (
    "data",
    "data",
    "data",
    "data",
    "option",
    "option",
    "option",
    "recipe",
    "path",
    "valid",
    "again",
    "odd",
    "held out",
    "taken",
)


def fit(draw: Draw) -> Case:
    way = draw(st.sampled_from(WAYS))
    if way == "again":
        return again(draw)
    source = source_of(draw)
    settings = [*source.options, *(s for s in QUICK if source.model not in COUNTING or s == "train.threads=1")]
    if source.model in ("gpt", "bert", "transformer", "patch"):
        settings += ["model.heads=2", "model.depth=1"]
    made, wanted = "", "pass"
    if way == "data":
        source, wanted, made = damaged(draw, source)
    start = ("--task", source.task, "--model", source.model)
    rest = ("--data", source.data, "--out", "out", *source.named())
    overrides = tuple(word for setting in settings for word in ("-o", setting))
    case = Case(("fit", *start, *rest, *overrides), source.files, wanted, f"{source.task} {source.kind} {made}")
    if way == "option":
        return with_option(draw, case, source.task, source.model)
    if way == "recipe":
        case = replace(case, argv=("fit", "recipe.toml", *rest))
        return with_recipe(draw, case, recipe(source.task, source.model, settings))
    if way == "held out":
        return held_out(draw, case)
    if way == "taken":
        return taken(draw, case)
    return odd(draw, case) if way == "odd" else with_path(draw, case, "--out") if way == "path" else case


def again(draw: Draw) -> Case:
    """The same command over a run that is finished, and perhaps damaged: it reports, repairs or says what to delete."""
    name, _ = a_run(draw, *(name for name in RUNS if name != "adapters"))
    argv, data = command_of(name)
    case = Case(("fit", *argv), (data, run_folder("out", name)), "pass", f"fit {name} again")
    if chance(draw, 4):
        return case
    return replace(spoil_run(draw, case, "out"), wanted="either")


def held_out(draw: Draw, case: Case) -> Case:
    """A file of its own for validation or test: another one of the same kind, spoiled, or of another kind."""
    other = source_of(draw)
    if chance(draw, 2):
        other, _, _ = damaged(draw, other)
    files = tuple(replace(file, path=f"held/{file.path}") for file in other.files)
    spec = ",".join(f"held/{part}" for part in other.data.split(","))
    flag = "--valid" if case.command == "doctor" else draw(st.sampled_from(["--valid", "--test"]))
    return case.adding(flag, spec, made=f"{flag} of {other.task}").but(files=(*case.files, *files))


def taken(draw: Draw, case: Case) -> Case:
    """A folder of the user's own, with something in it that is named as a part of a run is."""
    names = ("model/notes.txt", "tokenizer/a", "checkpoints/a", "metrics.jsonl", "summary.json", "notes.txt")
    name = draw(st.sampled_from(names))
    return case.adding("--out", "mine", wanted="fail", made=f"--out has {name}").but(
        files=(*case.files, text(f"mine/{name}", "precious")), writes=()
    )


def recipe(task: str, model: str, settings: list[str]) -> str:
    sections: dict[str, list[str]] = {"task": [f'name = "{task}"'], "model": [f'name = "{model}"']}
    for setting in settings:
        path, _, value = setting.partition("=")
        section, _, option = path.partition(".")
        quoted = value if value[0].isdigit() else f'"{value}"'
        sections.setdefault(section, []).append(f"{option} = {quoted}")
    return "\n".join("\n".join([f"[{name}]", *lines]) for name, lines in sections.items()) + "\n"


def with_recipe(draw: Draw, case: Case, content: str) -> Case:
    deep = "x = " + "[" * 5000 + "]" * 5000
    spoiled: dict[str, tuple[File | None, Wanted]] = {
        "valid": (text("recipe.toml", content), "pass"),
        "missing": (None, "fail"),
        "folder": (File("recipe.toml", "", "folder"), "fail"),
        "fifo": (File("recipe.toml", "", "fifo"), "fail"),
        "device": (File("recipe.toml", "/dev/zero", "link"), "fail"),
        "terminal": (File("recipe.toml", "/dev/tty", "link"), "fail"),
        "large": (repeated("recipe.toml", content, "# remark\n", 400_000), "fail"),
        "deep": (text("recipe.toml", deep), "fail"),
        "deep tables": (text("recipe.toml", "[" + ".".join("a" * 2000) + "]\nx=1\n"), "fail"),
        "twice": (text("recipe.toml", content + content), "fail"),
        "cut": (text("recipe.toml", content[: draw(st.integers(1, len(content) - 3))] + '"'), "fail"),
        "unknown": (text("recipe.toml", content + "nosuch = 1\n"), "fail"),
        "section": (text("recipe.toml", content + "[nosuch]\nx = 1\n"), "fail"),
        "no section": (text("recipe.toml", "steps = 2\n" + content), "fail"),
        "not text": (File("recipe.toml", "//79", "base64"), "fail"),
        "nul": (text("recipe.toml", content + "\x00"), "fail"),
        "digits": (text("recipe.toml", content + "x = " + "9" * 5000), "fail"),
        "array": (text("recipe.toml", content.replace("[model]", "[[model]]")), "fail"),
        "marked": (text("recipe.toml", "\ufeff" + content), "either"),
        "escape": (text("recipe.toml", content + '"\\u001b[2J" = "\\u0007"\n'), "fail"),
    }
    way = draw(st.sampled_from(sorted(spoiled)))
    file, wanted = spoiled[way]
    return case.but(wanted, f"recipe: {way}", files=(*case.files, *([file] if file else [])))


def doctor(draw: Draw) -> Case:
    source = source_of(draw)
    made, wanted = "", "either"
    way = draw(st.sampled_from(["data", "data", "data", "data", "data", "option", "odd", "held out"]))
    if way == "data":
        source, wanted, made = damaged(draw, source)
    argv = ("doctor", "--task", source.task, "--data", source.data, *source.named())
    case = Case(argv, source.files, wanted, f"{source.task} {source.kind} {made}", writes=())
    if way == "held out":
        return held_out(draw, case)
    return case if way == "data" else odd(draw, case) if way == "odd" else with_option(draw, case)
