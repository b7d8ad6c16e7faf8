"""Reports of comparisons as pages that a browser shows in a sandbox.

The page is made here, from the result. The file report.html is never sent: anybody may have written it, and what it
says of its own policy proves nothing. So the only scripts whose hashes are sent are ours.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.serve.api import reading
from seqloom.serve.api.past import Place

_KEPT = 4  # pages, of five megabytes each
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')


@dataclass(frozen=True)
class Report:
    page: bytes
    headers: dict[str, str] = field(default_factory=dict)


class Reports:
    """The last ones are kept until their result changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Path, int, int], Report] = OrderedDict()

    def of(self, place: Place) -> Report:
        """Raises UserError while there is no result, or none that can be shown."""
        file = place.path / ("result.json" if place.kind == "comparison" else "study.json")
        try:
            found = os.stat(file)
        except OSError:
            raise UserError("no report yet: the comparison is not finished") from None
        key = file, found.st_size, found.st_mtime_ns
        with self._lock:
            if key not in self._kept:
                self._kept[key] = sandboxed(_rendered(place, file))
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]


def sandboxed(page: str) -> Report:
    """A page that seqloom has just made, with its own policy and a sandbox as a header."""
    found = _POLICY.search(page)
    assert found, "every page has a policy, see pages/shell.py"
    policy = f"sandbox allow-scripts; {unescape(found[1])}; frame-ancestors 'self'"
    headers = {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}
    headers |= {"X-Frame-Options": "SAMEORIGIN"}  # as in the policy, for what reads only this
    return Report(page.encode("utf-8", "backslashreplace"), headers)


def _rendered(place: Place, file: Path) -> str:
    from seqloom.compare import report
    from seqloom.compare.report import study

    result = reading.kept(file)
    if place.kind == "study" and "entries" not in result:
        raise UserError("no report yet: the study is not finished")
    try:
        return report.html(result) if place.kind == "comparison" else study.report_files(result)["report.html"].decode()
    except Exception as error:  # an older version wrote it, or somebody edited it
        raise UserError(
            "this result cannot be shown: an older version wrote it, or it was edited; run its command again"
        ) from error
