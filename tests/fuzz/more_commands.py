"""Cases of the commands that look, search, compare and measure; `CASES` has those of every command."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from fuzz.case import Case, File, Wanted, edit, run_folder, text
from fuzz.commands import (
    Make,
    a_run,
    chance,
    evaluate,
    generate,
    merge,
    odd,
    predict,
    source_of,
    spoil_run,
    spoil_use,
    with_option,
    with_path,
)
from fuzz.fitting import doctor, fit
from fuzz.shelf import DATA, NOTES, RUNS, TASK_OF
from fuzz.sources import Draw
from fuzz.spoiled import CELLS, damaged

SAID = ("the cat sees", "", " ", "\x1b[2J", "猫 房子", "a " * 400, "\udcff", "x" * 2000, "-")


def explain(draw: Draw) -> Case:
    name, run = a_run(draw)
    data = DATA[RUNS[name][0]]
    textual = name in ("lm", "lstm", "ngram", "mlm", "labels", "pairs", "prefix", "tags")
    if textual and chance(draw, 2):
        said = draw(st.sampled_from(SAID))
        case = Case(
            ("explain", "run", "--text", said, "--out", "out.html"), (run,), "either", f"explain {name} {said[:9]!r}"
        )
        return spoil_run(draw, case) if chance(draw, 3) else with_option(draw, case)
    case = Case(("explain", "run", "--data", data.path, "--out", "out.html"), (run, data), "either", f"explain {name}")
    if chance(draw, 4):
        return with_path(draw, case, "--out")
    if chance(draw, 4):
        return odd(draw, case)
    return spoil_use(draw, case, name, data)


TEMPLATES = (  # all but two are wrong
    *("", 'example = ""', "x", "instruction = 1", 'nosuch = "a"', 'example = "{nosuch}"', 'example = "{text"'),
    *("[labels]\ngood = 1", "[" * 5000, "\x00"),
    'example = "{text} {label}"\n[labels]\ngood = "x"\nbad = "x"\n"so-so" = "y"',
)


def prompt(draw: Draw) -> Case:
    name, run = a_run(draw, "lm", "lstm", "lm", "mlm", "labels")
    data = DATA["labelled"]
    wanted: Wanted = "either" if TASK_OF[name] == "language_model" else "fail"
    argv = ("prompt", "run", "--data", data.path, "--out", "out", "--shots", "0", "--draws", "1", "--rows", "3")
    case = Case(argv, (run, data), wanted, f"prompt {name}")
    way = draw(st.sampled_from(["use", "use", "odd", "template", "path"]))
    if way == "path":
        return with_path(draw, case, "--out")
    if way == "odd":
        return odd(draw, case)
    if way == "template":
        content = draw(st.sampled_from(TEMPLATES))
        others = [File("t.toml", "", "fifo"), File("t.toml", "/dev/zero", "link"), File("t.toml", "", "folder")]
        file = draw(st.sampled_from([text("t.toml", content), *others]))
        wants = "fail" if file.kind != "text" or content not in ("", 'example = ""') else "either"
        return case.but(
            wants,
            f"template {file.kind} {content[:20]!r}",
            argv=(*case.argv, "--template", "t.toml"),
            files=(*case.files, file),
        )
    return spoil_use(draw, case, name, data)


def export(draw: Draw) -> Case:
    name, run = a_run(draw)
    to = draw(st.sampled_from(["onnx", "hf", "gguf", "ctranslate2", "onxn", "", "\x1b", "x" * 3000]))
    case = Case(("export", "run", "--to", to, "--out", "out"), (run,), "either", f"export {name} {to[:9]!r}")
    way = draw(st.sampled_from(["run", "run", "option", "path", "int8"]))
    if way == "path":
        return with_path(draw, case, "--out")
    if way == "option":
        return with_option(draw, case)
    return spoil_run(draw, case) if way == "run" else case.but("either", "int8", argv=(*case.argv, "--int8"))


LISTED = (
    *("models", "tasks", "samples", "studies", "runs", "gru", "classification", "nosuch", "", "out", "--json"),
    *("\x1b[2J", ".", "/dev/null", "\udcff", "-1", "x" * 4000),
)


def listed(draw: Draw) -> Case:
    words = draw(st.lists(st.sampled_from(LISTED), max_size=3))
    case = Case(("list", *words), (), "either", "list", writes=())
    if chance(draw, 2):
        files = (
            run_folder("out/one", draw(st.sampled_from(["lm", "labels", "series"]))),
            text("out/two/run.json", "{"),
        )
        case = Case(("list", "runs", "out"), files, "either", "list runs", writes=())
        return replace(spoil_run(draw, case, "out/one"), wanted="either") if chance(draw, 2) else case
    return with_option(draw, case) if chance(draw, 3) else case


def weights(draw: Draw) -> Case:
    name = draw(st.sampled_from(["nosuch", "", "\x1b", "../x", "x" * 3000, "mini", "weights:nosuch", "\udcff"]))
    case = Case(("weights", name), (), "fail", f"weights {name[:9]!r}", writes=())
    return Case(("weights",), (), "pass", "weights", writes=()) if chance(draw, 4) else case


def _document(draw: Draw) -> tuple[File, Wanted]:
    """A file among the documents; one that cannot be read is told of, and stops nothing."""
    ending = draw(st.sampled_from(["txt", "md", "html", "pdf", "docx", "csv", "tsv", "jsonl", "py", "json"]))
    name, cell = f"notes/odd.{ending}", str(draw(st.sampled_from(CELLS)))
    kind = draw(st.sampled_from(["text", "fifo", "socket", "link", "deep", "binary", "empty"]))
    contents = {"text": cell, "deep": "<div>" * 30_000 + "[" * 30_000, "empty": ""}
    if kind in contents:
        content = contents[kind].encode("utf-8", "replace").decode()
        return text(name, content), "either"
    if kind == "binary":
        return File(name, "JVBERi0xLjQKJf////8AAQIDUEsDBA==", "base64"), "either"
    return File(
        name, draw(st.sampled_from(["/dev/zero", "nowhere", "..", "odd." + ending])) if kind == "link" else "", kind
    ), "either"


def index(draw: Draw) -> Case:
    case = Case(("index", "notes", "--out", "out", "--encoder", "none"), NOTES, "pass", "index")
    way = draw(
        st.sampled_from(["document", "document", "document", "option", "path", "again", "odd", "empty", "queries"])
    )
    if way == "document":
        files = [_document(draw)[0]]
        return case.but("either", f"document {files[0].path} {files[0].kind}", files=(*NOTES, *files))
    if way == "option":
        return with_option(draw, case)
    if way == "path":
        return with_path(draw, case, "--out")
    if way == "again":
        return spoil_index(draw, case.but("pass", files=(*NOTES, run_folder("out", "index"))), "out")
    if way == "empty":
        one = draw(
            st.sampled_from([(), (File("notes", "", "folder"),), (text("notes", "x"),), (File("notes", "", "fifo"),)])
        )
        return case.but("either" if one and one[0].kind == "text" else "fail", "no notes", files=one)
    if way == "odd":
        return odd(draw, case.but("pass", files=(*NOTES, text("plain", "a file"))))
    queries = text(
        "q.jsonl",
        draw(
            st.sampled_from(
                ['{"_id": "1", "text": "guarantee"}\n', "", "{}", "[1]", '{"_id": 1}', "x", '{"_id": "1", "text": ""}']
            )
        ),
    )
    judged = text(
        "j.tsv",
        draw(st.sampled_from(["query-id\tcorpus-id\tscore\n1\tterms.md\t1\n", "", "a\tb", "1\tterms.md\tx\n", "\x00"])),
    )
    return case.but(
        "either",
        "queries",
        argv=(*case.argv, "--evaluate", "q.jsonl", "--judgements", "j.tsv"),
        files=(*NOTES, queries, judged),
    )


INDEX_FILES = (
    *("index.json", "index.json", "catalogue.sqlite", "catalogue.sqlite", "store", "store/edge_config.json"),
    *("store/wal/open-1", "store/segments/*/segment.json", "store/segments/*/payload_storage/page_0.dat"),
)
INDEX_EDITS = (
    *(("cut", 0.5), ("flip", 0.3, 8), ("flip", 0.9, 255), ("delete",), ("write", "{}"), ("write", "")),
    *(("become", "fifo"), ("become", "link", "nowhere"), ("become", "folder")),
)


def spoil_index(draw: Draw, case: Case, folder: str) -> Case:
    name, how = draw(st.sampled_from(INDEX_FILES)), draw(st.sampled_from(INDEX_EDITS))
    return case.but("either", f"index: {name} {how}", files=(*case.files, edit(f"{folder}/{name}", *how)))


ASKED = (
    *('{"question": "guarantee?", "answers": ["three years"]}\n', "", "{}", "[]", "x", "\x00", '{"question": 1}'),
    *('{"question": "", "answers": []}', '{"question": "a", "answers": "b"}', '{"question": "\\ud800"}'),
)


def ask(draw: Draw) -> Case:
    case = Case(
        ("ask", "index", "How long does the guarantee last?"),
        (*NOTES, run_folder("index", "index")),
        "pass",
        "ask",
        writes=("out", "index/store", "index/catalogue"),
    )
    way = draw(st.sampled_from(["question", "index", "index", "option", "path", "odd", "evaluate"]))
    if way == "question":
        return case.but("either", "question", argv=("ask", "index", draw(st.sampled_from(SAID)).lstrip("-") or ""))
    if way == "index":
        return spoil_index(draw, case, "index")
    if way == "option":
        return with_option(draw, case)
    if way == "path":
        return with_path(draw, case, "--out")
    if way == "odd":
        return odd(draw, case)
    content = draw(st.sampled_from(ASKED))
    return Case(
        ("ask", "index", "--evaluate", "q.jsonl"),
        (*case.files, text("q.jsonl", content)),
        "either",
        "ask --evaluate",
        writes=("index/store", "index/catalogue"),
    )


def diagnose(draw: Draw) -> Case:
    argv = (
        "diagnose",
        "--models",
        "gru",
        "--problems",
        "parity",
        "--params",
        "500",
        "--steps",
        "1",
        "--seeds",
        "1",
        "--out",
        "out",
    )
    case = Case(argv, (), "pass" if chance(draw, 6) else "either", "diagnose")
    way = draw(st.sampled_from(["odd", "odd", "odd", "option", "path"]))
    if way == "odd":
        return odd(draw, case)
    return with_option(draw, case) if way == "option" else with_path(draw, case, "--out")


def study(draw: Draw) -> Case:
    name = draw(st.sampled_from(["nosuch", "", "markov-order", "_running", "\x1b", "x" * 3000, "../x", "\udcff"]))
    case = Case(("study", name, "--quick", "--out", "out"), (), "fail", f"study {name[:9]!r}")
    if chance(draw, 3):
        case = Case(("study", "markov_order", "--quick", "--out", "out"), (), "either", "study")
        return with_path(draw, case, "--out") if chance(draw, 2) else with_option(draw, case)
    return with_option(draw, case) if chance(draw, 2) else case


def compare(draw: Draw) -> Case:
    """Comparisons that are refused before they train, most of them; few are valid, because they take long."""
    if chance(draw, 2):
        source = source_of(draw)
        source, wanted, made = damaged(draw, source)
        if wanted == "fail":
            settings = [word for option in source.options for word in ("-o", option)]
            argv = (
                "compare",
                "--task",
                source.task,
                "--data",
                source.data,
                "--models",
                source.model,
                "--out",
                "out",
                *source.named(),
            )
            return Case((*argv, *settings, *SHORT), source.files, "fail", f"{source.task} {source.kind} {made}")
    data = DATA["labelled"]
    argv = ("compare", "--task", "classification", "--data", data.path, "--models", "tfidf", "--out", "out", *SHORT)
    case = Case(argv, (data,), "either", "compare")
    way = draw(st.sampled_from(["odd", "odd", "option", "path"]))
    if way == "odd":
        return odd(draw, case)
    return with_path(draw, case, "--out") if way == "path" else with_option(draw, case)


HOSTS = ("0.0.0.0", "::", "192.0.2.1", "", "a b", "x" * 300, "\x1b[2J", "localhost.", "-1", "猫", "::ffff:1.2.3.4%1")


def serve(draw: Draw) -> Case:
    """A server that starts would go on for ever: there is always something that it has to refuse."""
    way = draw(st.sampled_from(["run", "index", "host", "name", "option"]))
    if way == "run":
        run = draw(st.sampled_from(["nosuch", "", "notes", "/dev/null", "\x1b", "x" * 3000, "notes/terms.md"]))
        return Case(("serve", run), NOTES, "fail", f"serve {run[:9]!r}")
    if way == "index":
        return Case(("serve", "--index", "notes"), NOTES, "fail", "serve --index")
    case = Case(("serve", "nosuch"), NOTES, "fail", f"serve {way}")
    if way == "option":
        return with_option(draw, case).but("fail")
    option = "--host" if way == "host" else "--allow-host"
    return case.adding(option, draw(st.sampled_from(HOSTS)), wanted="fail", made=f"serve {option}")


SHORT = ("--trials", "0", "--seeds", "1", "--budget", "tokens=2000")

CASES: dict[str, Make] = {
    "fit": fit,
    "doctor": doctor,
    "eval": evaluate,
    "predict": predict,
    "generate": generate,
    "explain": explain,
    "prompt": prompt,
    "merge": merge,
    "export": export,
    "list": listed,
    "weights": weights,
    "index": index,
    "ask": ask,
    "diagnose": diagnose,
    "study": study,
    "compare": compare,
    "serve": serve,
}
SHARES = {"fit": 5, "doctor": 6, "eval": 4, "predict": 4, "explain": 3, "compare": 2, "index": 2, "ask": 2}  # else 1
