"""The shapes of data that tasks read, one folder each: a task names the folder of its shape."""

from importlib import import_module
from pathlib import Path

from seqloom.data.shapes.shape import AnyShape


def find_shape(name: str) -> AnyShape:
    shape: AnyShape = import_module(f"seqloom.data.shapes.{name}").SHAPE
    return shape


def shape_names() -> list[str]:
    return sorted(folder.name for folder in Path(__file__).parent.iterdir() if (folder / "shape.py").exists())
