"""A store of jobs and its runner in a process of their own, without HTTP: to be killed at any moment.

`python jobs_host.py FOLDER`: each line on standard input is an order as JSON; each line on standard output says which
job it became, after the store has it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from api_desk import opened

from seqloom.serve.jobs.request import Order


def main() -> None:
    with opened(Path(sys.argv[1])) as desk:
        assert desk.jobs
        print("ready", flush=True)
        for line in sys.stdin:
            job, new = desk.jobs.submit(Order.model_validate_json(line))
            print(json.dumps({"id": job.id, "new": new}))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
