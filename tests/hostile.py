"""Models with something wrong, each made from a good one: what a stranger could put into a folder or a file.

Run as a script, it converts every one of them under an audit hook and prints what happened as JSON.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

Spoil = Callable[[Path], None]


class Bomb:
    """Unpickling it would write a file."""

    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/seqloom-was-here",)


PICKLE = pickle.dumps(Bomb())
TEMPLATE = "{{ ''.__class__.__mro__[1].__subclasses__() }}"


def config(change: dict[str, Any]) -> Spoil:
    def spoil(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | change))

    return spoil


def write(name: str, data: bytes) -> Spoil:
    return lambda folder: (folder / name).write_bytes(data) and None


def text(name: str, change: Callable[[str], str]) -> Spoil:
    def spoil(folder: Path) -> None:
        path = folder / name
        path.write_text(change(path.read_text()))

    return spoil


def as_json(name: str, change: dict[str, Any]) -> Spoil:
    return text(name, lambda old: json.dumps(json.loads(old) | change))


def zipped(folder: Path) -> None:
    with zipfile.ZipFile(folder / "model.safetensors", "w") as archive:
        archive.writestr("archive/data.pkl", PICKLE)


def only(name: str, data: bytes) -> Spoil:
    def spoil(folder: Path) -> None:
        os.remove(folder / "model.safetensors")
        (folder / name).write_bytes(data)

    return spoil


def linked(name: str) -> Spoil:
    """A link to a file that is not in the folder."""

    def spoil(folder: Path) -> None:
        outside = folder.parent / f"outside-{folder.name}"
        outside.mkdir(exist_ok=True)
        shutil.move(folder / name, outside / name)
        (folder / name).symlink_to(outside / name)

    return spoil


def header(change: Callable[[dict[str, Any]], Any]) -> Spoil:
    """The numbers stay, the header says something else about them."""

    def spoil(folder: Path) -> None:
        path = folder / "model.safetensors"
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        found = json.loads(data[8 : 8 + length])
        made = change(found)
        said = made if isinstance(made, bytes) else json.dumps(found if made is None else made).encode()
        path.write_bytes(len(said).to_bytes(8, "little") + said + data[8 + length :])

    return spoil


def first(found: dict[str, Any]) -> dict[str, Any]:
    return found[next(name for name in found if name != "__metadata__")]


def tensors(change: Callable[[dict[str, Any]], Any]) -> Spoil:
    def spoil(folder: Path) -> None:
        from safetensors.numpy import load_file, save_file

        found = load_file(folder / "model.safetensors")
        change(found)
        save_file(found, folder / "model.safetensors")

    return spoil


def index(places: Any, remove: bool = True) -> Spoil:
    def spoil(folder: Path) -> None:
        if remove:
            os.rename(folder / "model.safetensors", folder / "part.safetensors")
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))

    return spoil


def twice(folder: Path) -> None:
    shutil.copy(folder / "model.safetensors", folder / "other.safetensors")
    index({"a": "part.safetensors", "b": "other.safetensors"})(folder)


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


def poisoned(found: dict[str, Any]) -> None:
    name = next(iter(found))
    found[name] = np.full_like(found[name], np.nan)


def other_shape(found: dict[str, Any]) -> None:
    name = next(name for name in found if name.endswith("q_proj.weight"))
    found[name] = found[name][:-1].copy()


def gguf(data: bytes) -> Spoil:
    def spoil(folder: Path) -> None:
        for path in folder.iterdir():
            path.unlink()
        (folder / "model.gguf").write_bytes(data)

    return spoil


def facts(version: int = 3, count: int = 0, facts: int = 0, more: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, count, facts) + more


def gguf_text(value: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(value) if length is None else length) + value


CODE = {"auto_map": {"AutoModel": "code.Model"}}
HUGE = 2**62

# what is wrong: how a good folder becomes so, and what the one line says
HOSTILE: dict[str, tuple[Spoil, str]] = {
    "pickle named safetensors": (write("model.safetensors", PICKLE), "Python pickle, which can run code"),
    "torch archive named safetensors": (zipped, "zip archive, such as torch.save writes"),
    "pickle as pytorch_model.bin": (only("pytorch_model.bin", PICKLE), "such files can run code"),
    "pickle as model.pt": (only("model.pt", PICKLE), "such files can run code"),
    "pickle named gguf": (gguf(PICKLE), "it does not begin with GGUF"),
    "no weights": (lambda folder: os.remove(folder / "model.safetensors"), "no weights"),
    "code in config": (config(CODE), "config.json has auto_map"),
    "code in tokenizer_config": (as_json("tokenizer_config.json", CODE), "tokenizer_config.json has auto_map"),
    "code for an unknown type": (config({"model_type": "mine", **CODE}), "config.json has auto_map"),
    "unknown type": (config({"model_type": "mine"}), "transformers does not make it"),
    "type that is no text": (config({"model_type": ["llama"]}), "transformers does not make it"),
    "type that names a path": (config({"model_type": "../../etc"}), "transformers does not make it"),
    "kernel from the hub": (
        config({"model_type": "gpt_neox", "_attn_implementation": "someone/kernel"}),
        "missing, of another shape or not part of it",
    ),
    "quantised": (config({"quantization_config": {"quant_method": "bitsandbytes"}}), "quantization_config"),
    "template with code": (as_json("tokenizer_config.json", {"chat_template": TEMPLATE}), "chat template reaches into"),
    "template file with code": (write("chat_template.jinja", TEMPLATE.encode()), "chat template reaches into Python"),
    "4 GB header": (write("model.safetensors", (4 << 30).to_bytes(8, "little") + b"{}"), "header of 4,294,967,296"),
    "header longer than the file": (write("model.safetensors", (10**6).to_bytes(8, "little") + b"{}"), "cut off"),
    "huge header": (write("model.safetensors", (2**63).to_bytes(8, "little") + b"{}"), "and a header of"),
    "empty weights": (write("model.safetensors", b""), "not safetensors, or cut off"),
    "header that is no JSON": (header(lambda found: b"{" * 50), "header: not valid JSON"),
    "header nested deeply": (header(lambda found: nested(100_000)), "nested too deeply"),
    "header with a name twice": (
        header(lambda found: json.dumps(found).encode()[:-1] + b"," + json.dumps(found).encode()[1:]),
        "a key occurs twice",
    ),
    "tensor outside the file": (header(lambda found: first(found).update(data_offsets=[0, HUGE])), "or place"),
    "tensor of negative size": (header(lambda found: first(found).update(shape=[-1, -1])), "invalid type, shape"),
    "tensors that overlap": (
        header(lambda found: [entry.update(data_offsets=[0, entry["data_offsets"][1] - entry["data_offsets"][0]])
                              for name, entry in found.items() if name != "__metadata__"] and None),
        "overlaps another tensor",
    ),
    "tensor of no type": (header(lambda found: first(found).update(dtype="O")), "invalid type, shape or place"),
    "bytes after the tensors": (
        lambda folder: (folder / "model.safetensors").open("ab").write(PICKLE) and None, "but its tensors end at"
    ),
    "tensor of another shape": (tensors(other_shape), "but config.json asks for 16 x 16"),
    "tensor missing": (tensors(lambda found: found.pop(sorted(found)[-1])), "is missing"),
    "tensor too many": (tensors(lambda found: found.update(extra=np.zeros(3, np.float32))), "are not part of llama"),
    "NaN": (tensors(poisoned), "not finite"),
    "more layers than there are": (config({"num_hidden_layers": 10**9}), "is missing"),
    "more layers than there are, wrapped": (
        config({"num_hidden_layers": 10**6, "attention_bias": True}), "asks for 1,000,000 layers"
    ),
    "heads that do not fit": (config({"num_attention_heads": 0}), "must be a positive whole number"),
    "sizes that are no numbers": (config({"hidden_size": "16"}), "must be a positive whole number"),
    "infinite epsilon": (text("config.json", lambda old: old.replace("1e-05", "Infinity")), "no number in JSON"),
    "config nested deeply": (write("config.json", nested(200_000)), "nested too deeply"),
    "config that is a list": (write("config.json", b"[1, 2]"), "not a JSON object"),
    "config too large": (write("config.json", b'{"a": "' + b"x" * 5_000_000 + b'"}'), "at most 4,000,000 are read"),
    "config with a number of 10,000 digits": (write("config.json", b'{"a": ' + b"9" * 10_000 + b"}"), "not valid JSON"),
    "config that is a folder": (
        lambda folder: (os.remove(folder / "config.json"), os.mkdir(folder / "config.json"))[1], "not a regular file"
    ),
    "index that points outside": (index({"a": "../../secret.safetensors"}), "not a safetensors file of this folder"),
    "index that names a pickle": (index({"a": "model.bin"}), "which is not a safetensors file of this folder"),
    "index of a missing part": (index({"a": "missing.safetensors"}), "missing.safetensors is missing"),
    "index without a map": (index([]), "has no weight_map"),
    "a tensor in two parts": (twice, "is in two files"),
    "weights linked from outside": (linked("model.safetensors"), "a link to a file outside the folder"),
    "config linked from outside": (linked("config.json"), "a link to a file outside the folder"),
    "tokenizer linked from outside": (linked("tokenizer.json"), "a link to a file outside the folder"),
    "tokenizer that is no JSON": (write("tokenizer.json", b"\x80\x04nonsense"), "not a tokenizer that the tokenizers"),
    "tokenizer nested deeply": (write("tokenizer.json", nested(100_000)), "not a tokenizer that"),
    "tokenizer of another model": (
        text("tokenizer.json", lambda old: old.replace('"model":', '"added_tokens_of": 1, "model":').replace(
            '"id": 2,', '"id": 99999,').replace('"id":2,', '"id":99999,')), "tokenizer"
    ),
    "adapter": (
        lambda folder: (config({"attention_bias": True})(folder),
                        (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "/etc"}'))[0],
        "an adapter, not a model",
    ),
    "gguf cut off": (gguf(b"GGUF\x03\0"), "it is cut off"),
    "gguf of many facts": (gguf(facts(facts=HUGE)), "facts"),
    "gguf of many tensors": (gguf(facts(count=HUGE)), "tensors"),
    "gguf with a long text": (gguf(facts(facts=1, more=gguf_text(b"a", HUGE))), "a text of"),
    "gguf with a long list": (
        gguf(facts(facts=1, more=gguf_text(b"a") + struct.pack("<IIQ", 9, 0, HUGE))), "longer than the file"
    ),
    "gguf with a fact twice": (
        gguf(facts(facts=2, more=2 * (gguf_text(b"a") + struct.pack("<IB", 0, 1)))), "occurs twice"
    ),
    "gguf of an unknown architecture": (
        gguf(facts(facts=1, more=gguf_text(b"general.architecture") + struct.pack("<I", 8) + gguf_text(b"../x"))),
        "transformers cannot read this GGUF file",
    ),
}  # fmt: skip

FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "subprocess.Popen")
FORBIDDEN += (
    "pickle.find_class",
    "socket.connect",
    "socket.getaddrinfo",
    "urllib.Request",
    "marshal.loads",
    "pty.spawn",
)


def main(folder: Path) -> None:
    """Convert every hostile model in a folder; report errors, and every event that must not happen."""
    import transformers.models.gpt_neox.modeling_gpt_neox  # noqa: F401  which one of them asks for

    from seqloom.core.errors import UserError
    from seqloom.runs.source import run_folder

    run_folder(f"hf:{folder / 'good'}")  # loads the modules that are needed
    run_folder(f"hf:{folder / 'wrapped'}")
    with suppress(UserError):
        run_folder(f"hf:{folder / 'gguf of an unknown architecture'}")
    outside = [str(path) for path in folder.glob("outside-*")]
    seen: list[str] = []
    watching = False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if not watching:
            return
        if event in FORBIDDEN:
            seen.append(f"{event} {arguments[:1]}")
        if event == "open" and str(arguments[0]).startswith((*outside, "/etc")):
            seen.append(f"open {arguments[0]}")
        if event == "import" and str(arguments[0]).partition(".")[0] not in sys.modules:
            seen.append(f"import {arguments[0]}")

    sys.addaudithook(hook)
    found: dict[str, Any] = {}
    for name in HOSTILE:
        seen.clear()
        watching = True
        try:
            run_folder(f"hf:{folder / name}")
            said = "accepted"
        except UserError as error:
            said = str(error)
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        watching = False
        found[name] = {"said": said, "seen": list(seen)}
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
