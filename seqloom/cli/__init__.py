"""The command line: one file per command, each a thin layer on a Python verb.

A file is a command: its name is what you type, its function `command` the rest. Nothing heavy is imported before a
command needs it. Files that begin with an underscore are shared parts.
"""

from seqloom.cli._main import main

__all__ = ["main"]
