"""A hundred jobs and ten kills of the server: none is lost, none is done twice."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from jobs_killing import Campaign, check


def test_a_hundred_jobs_over_ten_kills(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, jobs=100, real=5, kills=10)
    campaign.run(seconds=600)
    assert campaign.killed == 10
    check(campaign, real=5)
    print(f"attempts: {sum(row['attempts'] for row in campaign.rows())} of {len(campaign.orders)} jobs")
