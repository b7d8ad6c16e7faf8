"""Whatever is wrong with sequences of measurements is one line, told before anything is allocated for them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from seqloom.core.errors import RunError, UserError
from seqloom.data.shapes.frames.reading import open_frames
from seqloom.data.shapes.frames.roles import frame_roles
from seqloom.data.shapes.series.reading import open_series

FRAMES = np.arange(300, dtype=np.float32).reshape(20, 5, 3) % 7
FLAT, OFFSETS, LABELS = FRAMES.reshape(100, 3), np.arange(0, 101, 5), np.array(["a", "b"] * 10)
ARRAYS = {
    "lengths of another count": ({"frames": FRAMES, "lengths": np.ones(5, int)}, "'lengths' does not fit 'frames'"),
    "fractions as lengths": ({"frames": FRAMES, "lengths": np.ones(20)}, "'lengths' holds float64 of shape (20,)"),
    "one length": ({"frames": FRAMES, "lengths": np.array(3)}, "'lengths' holds int64 of shape ()"),
    "flags as lengths": ({"frames": FRAMES, "lengths": np.ones(20, bool)}, "'lengths' holds bool"),
    "lengths beyond": ({"frames": FRAMES, "lengths": np.full(20, 6)}, "give 20 numbers from 0 to 5"),
    "no offsets": ({"frames": FLAT, "offsets": np.zeros(0, int)}, "'offsets' must increase from 0 to 100"),
    "one offset": ({"frames": FLAT, "offsets": np.array(0)}, "'offsets' holds int64 of shape ()"),
    "offsets that fall": ({"frames": FLAT, "offsets": np.array([0, 50, 40, 100])}, "'offsets' must increase"),
    "unsigned offsets that fall": ({"frames": FLAT, "offsets": OFFSETS[[0, 2, 1, 20]].astype("u8")}, "must increase"),
    "texts as offsets": ({"frames": FLAT, "offsets": OFFSETS.astype(str)}, "'offsets' holds <U21"),
    "offsets of whole rows": ({"frames": FRAMES, "offsets": OFFSETS}, "has 'offsets', which are for (all, features)"),
    "complex numbers": ({"frames": FRAMES + 1j}, "'frames' holds complex64, not real numbers"),
    "not finite": ({"frames": np.where(FRAMES > 5, np.nan, FRAMES)}, "values of 'frames' are not finite, the first at"),
    "too large for single": (
        {"frames": FRAMES.astype(np.float64) * 1e300},
        "are beyond 1e+37, too large for single precision",
    ),
    "no features": ({"frames": FRAMES[:, :, :0]}, "shape (20, 5, 0): no features"),
    "objects": ({"frames": np.array([1, "a"], object)}, "'frames' holds Python objects"),
    "labels that are objects": ({"frames": FRAMES, "label": np.array(["a", 1] * 10, object)}, "holds Python objects"),
    "labels in two dimensions": (
        {"frames": FRAMES, "label": LABELS.reshape(10, 2)},
        "give one label for each",
    ),
    "complex labels": ({"frames": FRAMES, "label": np.ones(20) * 1j}, "'label' holds complex128"),
    "a label that is missing": ({"frames": FRAMES, "label": np.array([1.0, np.nan] * 10)}, "sequence 2 has no label"),
    "an empty label": ({"frames": FRAMES, "label": np.array(["a", ""] * 10)}, "sequence 2 has no label"),
    "half a character": ({"frames": FRAMES, "label": np.array(["a", "\ud800"] * 10)}, "not valid Unicode"),
}


NAMES = {  # of arrays, when none has the usual one: the measurements and the labels are found by their shapes
    "no rows": ({"X": FRAMES[:0], "y": LABELS[:0]}, "contains no sequences"),
    "fewer labels": ({"X": FRAMES, "y": LABELS[:7]}, "20 sequences in 'X', but 7 values in 'y'; give an array"),
    "no labels": ({"X": FRAMES}, "no column looks like a label"),
}


@pytest.mark.parametrize("name", NAMES)
def test_arrays_of_which_none_can_be_the_labels_are_refused(tmp_path: Path, name: str) -> None:
    arrays, message = NAMES[name]
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(UserError) as error:
        frame_roles(str(tmp_path / "a.npz"), {})
    assert message in str(error.value) and str(error.value).startswith(str(tmp_path / "a.npz"))


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_with_a_fault_are_refused(tmp_path: Path, name: str) -> None:
    arrays, message = ARRAYS[name]
    np.savez(tmp_path / "a.npz", **{"label": LABELS} | arrays)
    with pytest.raises(UserError) as error:
        open_frames(str(tmp_path / "a.npz"))
    assert message in str(error.value) and str(error.value).startswith(str(tmp_path / "a.npz"))


def header(text: str, data: bytes = b"", entry: str = "frames.npy") -> Callable[[Path], None]:
    """A file with one array, whose header says this."""

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            said = text.encode() + b"\n"
            archive.writestr(entry, b"\x93NUMPY\x01\0" + len(said).to_bytes(2, "little") + said + data)

    return write


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("frames.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|i1", "fortran_order": False, "shape": (300, 1000, 1000)})
        for _ in range(300):
            file.write(bytes(1_000_000))


def truncated(path: Path) -> None:
    np.savez(path, frames=FRAMES, label=LABELS)
    path.write_bytes(path.read_bytes()[:-100])


def encrypted(path: Path) -> None:
    np.savez(path, frames=FRAMES)
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.find(b"PK\1\2") + 8] |= 1
    path.write_bytes(bytes(data))


SHAPED = "{{'descr': '{}', 'fortran_order': False, 'shape': {}}}"
ARCHIVES: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda path: path.write_bytes(b""), "not an NPZ file of plain arrays, or damaged"),
    "no archive": (lambda path: path.write_bytes(b"\x80\x04nonsense"), "not an NPZ file of plain arrays"),
    "a single array": (lambda path: path.write_bytes(_npy()), "not an NPZ file of plain arrays"),
    "cut off": (truncated, "not an NPZ file of plain arrays, or damaged"),
    "encrypted": (encrypted, "is encrypted"),
    "no array": (header("", entry="a.txt"), "no array 'frames'; available: none"),
    "declared size": (header(SHAPED.format("<f4", (10**6, 10**6, 9))), "does not fit its"),
    "negative size": (header(SHAPED.format("<f4", (-1, 2, 3))), "a shape of (-1, 2, 3)"),
    "huge size": (header(SHAPED.format("<f4", (9**400, 2))), "a shape of"),
    "an object in a record": (header(SHAPED.format("O", (1,))), "holds Python objects"),
    "brackets": (header("(" * 5000), "describes no array"),
    "a list": (header("[]"), "describes no array"),
    "an unknown type": (header(SHAPED.format("wrong", (1,))), "not an NPZ file"),
    "bomb": (bomb, "expand to 300,000,128; store it uncompressed"),
}


def _npy() -> bytes:
    file = io.BytesIO()
    np.save(file, FRAMES)
    return file.getvalue()


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_with_a_fault_is_refused_before_its_arrays_are_read(tmp_path: Path, name: str) -> None:
    spoil, message = ARCHIVES[name]
    spoil(tmp_path / "a.npz")
    with pytest.raises(UserError) as error:
        open_frames(str(tmp_path / "a.npz"))
    assert message in str(error.value) and "\n" not in str(error.value)


STEPS = "\n".join(f"{n // 5},{'ab'[n // 5 % 2]},{n % 7}" for n in range(100))
TIME_STEPS = {
    "a.csv": (f"id,label,x\n{STEPS}\n20,a,1_0", "a.csv:102: x='1_0' is not a number"),
    "b.csv": (f"id,label,x\n{STEPS}\n20,a,1e38", "b.csv:102: x='1e38' is beyond 1e+37"),
    "c.csv": (f"id,label,x\n{STEPS}\n20,,1", "c.csv:102: no label: column 'label' is ''"),
    "d.csv": ("id,label\n0,a\n1,b", "d.csv:2: no column of measurements"),
    "e.jsonl": ('{"id": 1, "label": "a", "x": 1}\n{"id": 1, "label": "a", "y": 1}', "e.jsonl:2: other columns than on"),
    "f.jsonl": ('{"id": null, "label": "a", "x": 1}', "f.jsonl:1: no name of its sequence: column 'id' is None"),
    "g.jsonl": ('{"id": 1, "label": "a", "x": ' + "9" * 400 + "}", "is not finite"),
}


@pytest.mark.parametrize("name", TIME_STEPS)
def test_a_line_of_measurements_with_a_fault_is_refused(tmp_path: Path, name: str) -> None:
    content, message = TIME_STEPS[name]
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(UserError) as error:
        open_frames(str(path))
    assert message in str(error.value)


def test_measurements_are_in_the_order_of_the_first_line(tmp_path: Path) -> None:
    lines = '{"id": 1, "label": "a", "x": 1, "y": 2}\n{"y": 4, "x": 3, "label": "a", "id": 1}\n'
    (tmp_path / "a.jsonl").write_text(lines)
    (frames,) = open_frames(str(tmp_path / "a.jsonl")).frames
    assert frames.tolist() == [[1, 2], [3, 4]]


def saved(path: Path, names: list[str], *columns: object) -> str:
    parquet.write_table(pyarrow.table([pyarrow.array(column) for column in columns], names=names), path)
    return str(path)


def refused(open_: Callable[[str], object], spec: str) -> str:
    with pytest.raises(UserError) as error:
        open_(spec)
    assert "\n" not in str(error.value) and len(str(error.value)) < 600
    return str(error.value)


DAYS = [f"2020-01-{n:02}" for n in range(1, 31)]
WHICH, NAMED = [str(n // 3) for n in range(30)], ["ab"[n // 3 % 2] for n in range(30)]
SPOILS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "text": lambda data: b"date,y\n2020-01-01,1\n",
    "noise": lambda data: b"PAR1" + bytes(range(256)) + b"PAR1",
    "cut off": lambda data: data[:-10],
    "half": lambda data: data[: len(data) // 2],
    "no pages": lambda data: data[:4] + bytes(200) + data[204:],
    "other schema": lambda data: data.replace(b"ARROW:schema", b"ARROW:schema\xff"[:12]).replace(b"/////", b"?????"),
}


@pytest.mark.parametrize("spoil", SPOILS)
@pytest.mark.parametrize("shape", ["series", "frames"])
def test_a_damaged_parquet_file_is_one_line(tmp_path: Path, shape: str, spoil: str) -> None:
    path = tmp_path / "a.parquet"
    if shape == "series":
        saved(path, ["date", "y"], DAYS, [n % 7 + 0.5 for n in range(30)])
    else:
        saved(path, ["id", "label", "x"], WHICH, NAMED, [n % 7 + 0.5 for n in range(30)])
    path.write_bytes(SPOILS[spoil](path.read_bytes()))
    message = refused(open_series if shape == "series" else open_frames, str(path))
    assert message.startswith(f"{path}: not a parquet file, or damaged (")


@pytest.mark.parametrize("bits", range(40))
def test_a_parquet_file_with_a_changed_byte_is_read_or_refused(tmp_path: Path, bits: int) -> None:
    path = tmp_path / "a.parquet"
    saved(path, ["date", "y"], DAYS, [n % 7 + 0.5 for n in range(30)])
    data, rng = bytearray(path.read_bytes()), np.random.default_rng(bits)
    for place in rng.integers(len(data), size=3):
        data[place] = rng.integers(256)
    path.write_bytes(bytes(data))
    with suppress(UserError):
        open_series(str(path))


COLUMNS = {
    "objects": ([{"a": 1}] * 30, "no numeric column; available: date, y"),
    "lists": ([[1.0]] * 30, "no numeric column; available: date, y"),
    "bytes": ([b"\xff"] * 30, "no numeric column; available: date, y"),
    "nothing": ([None] * 30, "no numeric column; available: date, y"),
    "infinite": ([1.0, float("inf")] * 15, ":2: y=inf is infinite"),
    "too large": ([1.0, 1e200] * 15, ":2: y=1e+200 is beyond 1e+100"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_parquet_column_of_another_type_is_no_number(tmp_path: Path, name: str) -> None:
    cells, message = COLUMNS[name]
    assert message in refused(open_series, saved(tmp_path / "a.parquet", ["date", "y"], DAYS, cells))


def test_two_parquet_columns_have_two_names(tmp_path: Path) -> None:
    spec = saved(tmp_path / "a.parquet", ["date", "y", "y"], DAYS, range(30), range(30))
    assert "two columns are named 'y'; give each its own name" in refused(open_series, spec)
    spec = saved(tmp_path / "b.parquet", ["id", "label", "x", "x"], WHICH, NAMED, range(30), range(30))
    assert "two columns are named 'x'; give each its own name" in refused(open_frames, spec)


def test_times_and_missing_cells_of_parquet_are_no_measurements(tmp_path: Path) -> None:
    moments = np.arange(30).astype("datetime64[s]")
    spec = saved(tmp_path / "a.parquet", ["id", "label", "x"], WHICH, NAMED, moments)
    assert "a.parquet:1: x='1970-01-01T00:00:00" in refused(open_frames, spec)
    spec = saved(tmp_path / "b.parquet", ["id", "label", "x"], WHICH, [None] * 30, range(30))
    assert "b.parquet:1: no label: column 'label' is None" in refused(open_frames, spec)


def test_a_parquet_file_that_says_to_have_more_rows_than_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = saved(tmp_path / "a.parquet", ["date", "y"], DAYS, range(30))
    monkeypatch.setattr("seqloom.core.memory.available", lambda: 100)
    with pytest.raises(RunError, match=r"a table of 30 rows and 2 columns needs about .* GB, but only"):
        open_series(spec)


def test_dictionaries_and_many_row_groups_are_read(tmp_path: Path) -> None:
    table = pyarrow.table(
        {"id": pyarrow.array(WHICH).dictionary_encode(), "label": NAMED, "x": pyarrow.array(range(30))}
    )
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    assert open_frames(str(tmp_path / "a.parquet")).count == 10
