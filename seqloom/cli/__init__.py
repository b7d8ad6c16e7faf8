"""The command line: one file per command, each a thin layer over a Python function.

The name of a file is the name of its command, implemented by the function `command`. Heavy imports wait until a
command needs them. Files whose names begin with an underscore are shared.
"""

from __future__ import annotations

import sys

from seqloom.core.stopping import ending, stoppable


def main() -> None:
    """Run a command. Signals are taken care of first, because even importing the commands takes a while."""
    try:
        with stoppable():
            from seqloom.cli._main import main as run

            run()
    except KeyboardInterrupt:  # before the command began, or after it ended
        said, code = ending()
        print(f"seqloom: {said}", file=sys.stderr)
        sys.exit(code)
