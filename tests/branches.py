"""Share of branches that the tests took, from a report of ``coverage json``; fails below the limit.

coverage's own limit mixes branches with lines.
"""

import json
import sys
from pathlib import Path

LIMIT = 95.0


def share(report: str) -> tuple[int, int]:
    """Branches taken, and all."""
    totals = json.loads(report)["totals"]
    return totals["covered_branches"], totals["num_branches"]


if __name__ == "__main__":
    taken, every = share(Path(sys.argv[1]).read_text())
    percent = 100 * taken / every
    print(f"{taken} of {every} branches: {percent:.1f} %, limit {LIMIT:.0f} %")
    sys.exit(percent < LIMIT)
