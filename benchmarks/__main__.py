"""``python -m benchmarks [--quick] [--only NAME ...]``."""

import argparse
import sys
from pathlib import Path

# They register themselves.
from benchmarks import curves, evaluations, fits, methods, peers, scaling, sizes, sparse_memory, tables, tails  # noqa: F401
from benchmarks.measure import BENCHMARKS, ROOT, Profile, Row
from benchmarks.quality import bars  # noqa: F401
from benchmarks.report import head, line, write


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=sorted(BENCHMARKS), help=_names())
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, to see that everything works")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results", help="folder of the JSON files")
    given = parser.parse_args(arguments)
    profile = Profile(given.quick)
    rows = _measure(given.only or list(BENCHMARKS), profile)
    print(f"\nWritten to {write(rows, profile, given.output)}")
    failed = [row.name for row in rows if row.reaches(row.bar) is False]
    if failed and not profile.quick:
        print(f"Beyond the bar: {', '.join(failed)}")
    return 1 if any(row.broken for row in rows) else 0


def _measure(names: list[str], profile: Profile) -> list[Row]:
    """Every row as soon as it is known. A benchmark that breaks is reported and does not stop the others."""
    rows: list[Row] = []
    print(head())
    for name in names:
        try:
            for row in BENCHMARKS[name](profile):
                rows.append(row)
                print(line(row, judged=not profile.quick), flush=True)
        except Exception as error:
            rows.append(Row(name, name, broken=f"{type(error).__name__}: {error}"))
            print(line(rows[-1]), flush=True)
    return rows


def _names() -> str:
    return "which: " + ", ".join(BENCHMARKS)


if __name__ == "__main__":
    sys.exit(main())
