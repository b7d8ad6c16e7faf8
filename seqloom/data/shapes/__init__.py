"""The shapes of data that tasks read: the folder's name is what a task says it reads."""

from importlib import import_module

from seqloom.core.task import TaskConfig
from seqloom.data.shapes.shape import Material, Part, Vocabulary

__all__ = ["Material", "Part", "Vocabulary", "material_of"]


def material_of(task: TaskConfig) -> Material:
    return import_module(f"seqloom.data.shapes.{task.reads}.shape").MATERIAL
