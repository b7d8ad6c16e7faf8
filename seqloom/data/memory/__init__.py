"""Data in memory: lists, arrays, data frames and Hugging Face datasets, written once to a file that every reader knows.

The file is named after its content and lies in the cache folder. So a run whose data was in memory is recorded,
continued and compared like any other, and nothing else needs to know that its data was not a file.
"""

from seqloom.data.memory.forms import Data, Layout, guess, is_path
from seqloom.data.memory.returned import like
from seqloom.data.memory.stored import Stored, store, title

__all__ = ["Data", "Layout", "Stored", "guess", "is_path", "like", "store", "title"]
