"""The command line: one file per command, each a thin layer over a Python function.

The name of a file is the name of its command, implemented by the function `command`. Heavy imports wait until a
command needs them. Files whose names begin with an underscore are shared.
"""

from seqloom.cli._main import main

__all__ = ["main"]
