"""Whatever is wrong with a file of data is one line: the file, the place in it, what is wrong, and the way out."""

from __future__ import annotations

import io
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from seqloom.core.errors import UserError
from seqloom.data.columns import find_columns
from seqloom.data.files import LONGEST_LINE, check_file, read_lines
from seqloom.data.piped import spooled
from seqloom.data.rows import find_delimiter, read_csv, read_jsonl
from seqloom.data.shapes.labelled.roles import labelled_roles
from seqloom.data.shapes.series.reading import open_series
from tests.support import examine

DAYS = [str(np.datetime64("2020-01-01") + n) for n in range(60)]
TEXTS = [f"some words about number {n}" for n in range(40)]


def written(path: Path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return str(path)


def refused(task: str, spec: str, **options: object) -> str:
    """The only error of the doctor, which is one line and begins with the file."""
    found = [finding.message for finding in examine(task, spec, **options) if finding.level == "error"]
    assert len(found) == 1 and "\n" not in found[0] and len(found[0]) < 600
    return found[0]


def labelled(header: str = "text,label", label: Callable[[int], str] = lambda n: "ab"[n % 2]) -> str:
    return "\n".join([header, *(f"{text},{label(n)}" for n, text in enumerate(TEXTS))])


def series(cell: str, at: int = 30, header: str = "date,y") -> str:
    return "\n".join([header, *(f"{day},{cell if n == at else n % 7 + 0.5}" for n, day in enumerate(DAYS))])


# name of the file: its content, and what is said
TABLES = {
    "twice.csv": ("text,text\n" + "a b c,x\n" * 30, ":1: two columns are named 'text'; give each its own name"),
    "beside.csv": ("text,label,n,n\n" + "a b c,x,1,2\n" * 30, ":1: two columns are named 'n'"),
    "twice.tsv": ("text\tlabel\tlabel\n" + "a b c\tx\ty\n" * 30, ":1: two columns are named 'label'"),
    "semicolons.csv": (
        "text;label\na b; c;x\nd;y\n",
        ":2: 3 fields, but the header has 2; it is read as",
    ),
    "short.csv": ("text,label\na,x\nb\n", ":3: 1 field, but the header has 2; a cell is missing"),
    "open.csv": ('text,label\n"a,x\nb,y\n', ":2: not valid CSV: a quote is opened here and never closed"),
    "nul.csv": (labelled().replace("words", "wo\0rds", 1), ":2: a NUL byte in a text; remove such bytes"),
    "key.jsonl": ('{"text": "a", "label": "x", "text": "b"}\n', ":1: the key 'text' occurs twice in one object"),
    "half.jsonl": ('{"text": "a", "label": "\\ud800"}\n', ":1: column 'label' has a lone surrogate (\\ud800)"),
    "half in a list.jsonl": ('{"text": "a", "label": ["\\udfff"]}\n', ":1: column 'label' has a lone surrogate"),
    "half in a name.jsonl": ('{"text": "a", "label": "b", "\\ud800": 1}\n', ":1: a name has a lone surrogate"),
    "infinite.jsonl": ('{"text": "a", "label": Infinity}\n', ":1: Infinity is not a number"),
    "nan.jsonl": ('{"text": "a", "label": NaN}\n', ":1: column 'label' is null, not text"),
    "digits.jsonl": (
        '{"text": "a", "label": ' + "9" * 5000 + "}\n",
        ":1: not valid JSON: a number of thousands",
    ),
    "deep.jsonl": ('{"text": ' + "[" * 100_000 + "\n", ":1: JSON nested too deeply; at most 64 levels"),
    "less deep.jsonl": ('{"text": "a", "label": ' + "[" * 90 + "]" * 90 + "}\n", ":1: JSON nested too deeply"),
    "rows.json": ('[{"text": "a", "label": "x"}]', ": not read as JSON; write one object per line: jq -c '.[]' rows"),
    "arrays.csv": (b"PK\x03\x04" + bytes(100), ": a zip archive, not text: unpack it first"),
    "one label.csv": (labelled(label=lambda n: "x"), "the only label is 'x': there is nothing to classify"),
    "own labels.csv": (labelled(label=lambda n: f"l{n}"), "none of its labels are among those of the training set"),
    "alike.csv": ("text,label\n" + "a b,x\na b,y\n" * 20, ": all 40 rows are alike: no valid split"),
    "nearly alike.csv": ("text,label\n" + "a b,x\nc d,y\n" * 20, ": only 2 different rows among 40, too few for a"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_labelled_texts_with_a_fault_is_refused_at_its_line(tmp_path: Path, name: str) -> None:
    content, message = TABLES[name]
    assert message in refused("classification", written(tmp_path / name, content))


def test_columns_without_a_name_may_be_several(tmp_path: Path) -> None:
    spec = written(tmp_path / "a.csv", labelled().replace("\n", ",,\n") + ",,")
    assert not [finding for finding in examine("classification", spec) if finding.level == "error"]


def test_nan_in_json_is_a_missing_value(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    written(path, '{"a": NaN, "b": [NaN, 1.5]}\n')
    assert list(read_jsonl(path)) == [(1, {"a": None, "b": [None, 1.5]})]


def test_a_header_with_semicolons_decides_if_rows_are_uneven(tmp_path: Path) -> None:
    path = Path(written(tmp_path / "a.csv", "text;label\na, b, c;x\nd, e;y\n"))
    assert find_delimiter(path) == ";" and [row["label"] for _, row in read_csv(path)] == ["x", "y"]


ROLES = {
    "text and label": ("classification", {"label": "text"}, "text and label are both column 'text'"),
    "the same number": ("classification", {"column": "1", "label": "01"}, "text and label are both column"),
    "source and target": ("translation", {"source": "target"}, "source and target are both column 'target'"),
    "words and tags": ("tagging", {"tags": "words"}, "words and tags are both column 'words'"),
    "question and passage": ("question_answering", {"question": "context"}, "question and passage are both column"),
}


@pytest.mark.parametrize("name", ROLES)
def test_a_column_has_one_role(name: str) -> None:
    task, options, message = ROLES[name]
    with pytest.raises(UserError, match=f"data: {message}.*; choose another: --columns"):
        examine(task, "never opened.jsonl", **options)


def test_words_and_tags_are_different_columns_of_a_conll_file(tmp_path: Path) -> None:
    spec = written(tmp_path / "a.conll", "a N\nb V\n\n" * 20)
    assert ":1: words and tags are both column 2 of 2; choose" in refused("tagging", spec, word=2)


def test_source_and_target_are_different_files(tmp_path: Path) -> None:
    spec = written(tmp_path / "a.en", "a\nb\n")
    assert "source and target are the same file" in refused("translation", f"{spec},{spec}")


CELLS = {
    "1e308": ":32: y=1e308 is beyond 1e+100; fix it, or leave the cell empty",
    "-1e999": ":32: y=-1e999 is infinite",
    "1e50": ":32: y=1e+50 is so much larger than the others that they would be lost in rounding; fix it",
    "1_000": ":32: y='1_000' is not a number; leave out the underscores",
    "1+2j": ":32: y='1+2j' is not a number",
    "True": ":32: y=True is among numbers such as 0.5; fix it, or leave the cell empty",
    "0x1F": ":32: y='0x1F' is not a number",
    "x" * 5000: ":32: y='" + "x" * 59 + "'… (5,000 characters) is not a number",
    "9" * 5000: ":32: y=" + "9" * 39 + "… is infinite",
}


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell[:8])
def test_a_cell_that_is_no_sane_number_is_refused_at_its_line(tmp_path: Path, cell: str) -> None:
    assert CELLS[cell] in refused("forecasting", written(tmp_path / "a.csv", series(cell)))


@pytest.mark.parametrize("cell", ["9" * 400, "1e400", '"\\u0661_"', "[1]", '{"a": 1}'])
@pytest.mark.parametrize("column", ["date", "y"])
def test_a_value_that_is_no_sane_number_is_refused_at_its_line(tmp_path: Path, cell: str, column: str) -> None:
    rows = [{"date": n, "y": n % 7 + 0.5} for n in range(60)]
    lines = [json.dumps(row) for row in rows]
    lines[30] = lines[30].replace(f'"{column}": {rows[30][column]}', f'"{column}": {cell}')
    message = refused("forecasting", written(tmp_path / "a.jsonl", "\n".join(lines)))
    assert f"a.jsonl:31: {column}" in message


def test_true_and_false_are_numbers_among_themselves_and_beside_1_and_0(tmp_path: Path) -> None:
    cells = ["true", "False", "1", "", "0"]
    lines = [f"{day},{cells[n % 5]}" for n, day in enumerate(DAYS)]
    values = open_series(written(tmp_path / "a.csv", "\n".join(["date,y", *lines]))).series[0].values[:5, 0]
    assert values[[0, 1, 2, 4]].tolist() == [1, 0, 1, 0] and np.isnan(values[3])


def test_large_numbers_in_all_cells_are_read(tmp_path: Path) -> None:
    lines = [f"{day},{n % 7 + 0.5}e90" for n, day in enumerate(DAYS)]
    assert open_series(written(tmp_path / "a.csv", "\n".join(["date,y", *lines]))).points == 60


def test_series_in_units_of_their_own_are_no_fault(tmp_path: Path) -> None:
    lines = [f"{day},{n % 7 * unit},s{unit}" for unit in (1, 10**20) for n, day in enumerate(DAYS)]
    assert open_series(written(tmp_path / "a.csv", "\n".join(["date,y,series", *lines]))).count == 2


def test_a_column_that_gives_each_line_a_series_of_its_own_is_refused(tmp_path: Path) -> None:
    lines = [f"{day},{n % 7},s{n}" for n, day in enumerate(DAYS)]
    message = refused("forecasting", written(tmp_path / "a.csv", "\n".join(["date,y,series", *lines])), series="series")
    assert "series has two points" in message


def answered(**changed: object) -> str:
    row = {"context": "Ada lives in Paris.", "question": "Who?", "answers": {"text": ["Ada"], "answer_start": [0]}}
    return json.dumps(row | changed)


QUESTIONS = {
    "\"is_impossible\" must be true or false, not 'yes'": {"is_impossible": "yes"},
    '"id" is a list; give a text or a number': {"id": [1]},
    "no question has an answer that is found in its passage": {"answers": {"text": ["Bob"], "answer_start": [0]}},
}


@pytest.mark.parametrize("message", QUESTIONS)
def test_questions_with_a_fault_are_refused(tmp_path: Path, message: str) -> None:
    lines = [answered(context=f"Ada lives in Paris, {n}.") for n in range(30)]
    broken = [answered(context=f"Ada lives in Paris, {n}.", **QUESTIONS[message]) for n in range(30)]
    few = lines[:3] if "answer that" not in message else []
    assert message in refused("question_answering", written(tmp_path / "a.jsonl", "\n".join(few + broken)))


def test_a_line_that_does_not_fit_in_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LONGEST_LINE > 1 << 24
    monkeypatch.setattr("seqloom.data.files.LONGEST_LINE", 1 << 19)
    path = Path(written(tmp_path / "a.csv", "a\n" + "b" * (1 << 20)))
    with pytest.raises(UserError, match=r"a.csv:2: a line of more than 524,288 bytes; split it"):
        list(read_lines(path))


def unreadable(folder: Path) -> dict[str, tuple[str, str]]:
    os.mkfifo(folder / "pipe")
    (folder / "broken").symlink_to(folder / "nowhere")
    (folder / "loop").symlink_to(folder / "loop")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "s"))
    return {
        "pipe": ("pipe", "not a regular file"),
        "broken": ("broken", "a link to a file that is not there"),
        "loop": ("loop", "oo many levels of symbolic links"),
        "s": ("s", "not a regular file"),
        "*.csv": ("*.csv", "no such file; patterns are not expanded, give one file or a folder"),
        "long": ("x" * 5000, "ile name too long"),
        "device": ("/dev/zero", "not a regular file"),
    }


def test_what_is_no_file_is_refused_by_its_name(tmp_path: Path) -> None:
    for name, message in unreadable(tmp_path).values():
        with pytest.raises(UserError) as error:
            check_file(tmp_path / name)
        assert message in str(error.value) and len(str(error.value)) < 600


def test_many_columns_are_not_all_listed(tmp_path: Path) -> None:
    names = ",".join(f"c{n}" for n in range(3000))
    read = find_columns(Path(written(tmp_path / "a.csv", f"{names}\n{names}\n")), ["text"])
    assert read is not None
    with pytest.raises(UserError, match=r"no column 'text'; available: c0, c1, .*c11, \.\.\.") as error:
        list(read())
    assert len(str(error.value)) < 600


def test_nested_json_from_standard_input_is_told_apart() -> None:
    with spooled(io.BytesIO(b'{"a": ' + b"[" * 100_000)) as path:
        assert path.suffix == ".json"


def test_an_error_in_standard_input_does_not_name_the_file_it_is_kept_in() -> None:
    with (
        pytest.raises(UserError, match=r"^standard input:2: the key 'a' occurs twice"),
        spooled(io.BytesIO(b'{"a": 1}\n{"a": 1, "a": 2}\n')) as path,
    ):
        list(read_jsonl(path))


def test_a_column_without_a_name_is_not_chosen(tmp_path: Path) -> None:
    content = ",label\n" + "".join(f"{n} dogs saw {m} cats,{'ab'[n % 2]}\n" for n in range(8) for m in range(5))
    with pytest.raises(UserError, match=r"the column found for data.column has no name; give it one in the header"):
        labelled_roles(written(tmp_path / "a.csv", content), {})
