"""The shapes of data that tasks read: the folder's name is what a task says it reads."""

from importlib import import_module
from pathlib import Path

from seqloom.data.shapes.shape import AnyShape


def find_shape(name: str) -> AnyShape:
    shape: AnyShape = import_module(f"seqloom.data.shapes.{name}").SHAPE
    return shape


def shape_names() -> list[str]:
    return sorted(folder.name for folder in Path(__file__).parent.iterdir() if (folder / "shape.py").exists())
