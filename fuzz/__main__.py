"""``python -m fuzz [--cases N] [--minutes M] [--seed S] [--jobs J] [--replay FILE]``."""

import argparse
import itertools
import os
import sys
import time
from pathlib import Path

from fuzz.cases import Case, draw
from fuzz.invariants import check
from fuzz.run import run
from fuzz.shrink import shrink


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fit random data and check what must hold.")
    parser.add_argument("--cases", type=int, help="how many cases; default: as many as the time allows")
    parser.add_argument("--minutes", type=float, default=5.0, help="most minutes, unless --cases is given")
    parser.add_argument("--seed", type=int, default=0, help="the same seed draws the same cases")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--keep-going", action="store_true", help="report every failure and do not stop at the first")
    parser.add_argument("--replay", type=Path, help="check the case in a JSON file that a failure left behind")
    given = parser.parse_args(arguments)
    if given.replay:
        return _tell(Case.from_json(given.replay.read_text()), "the case in the file")
    return _run(given)


def _run(given: argparse.Namespace) -> int:
    begun = time.monotonic()
    end = None if given.cases else begun + 60 * given.minutes
    done = 0
    failed: list[tuple[str, int]] = []
    last = given.first + given.cases if given.cases else sys.maxsize
    for n_cases, failures in run(given.seed, range(given.first, last), given.jobs, end):
        done += n_cases
        for number, failure in failures:
            failed.append((failure.invariant, number))
            print(f"Case {number}: {failure.invariant}: {failure.message[:300]}", flush=True)
        if failed and not given.keep_going:
            break
        if done % 1000 == 0:
            print(f"{done} cases of seed {given.seed} in {time.monotonic() - begun:.0f} s", flush=True)
    print(f"{done} cases of seed {given.seed} in {time.monotonic() - begun:.0f} s: {len(failed)} failed.")
    if not failed:
        return 0
    for invariant, each in itertools.groupby(sorted(failed), key=lambda pair: pair[0]):
        cases = [number for _, number in each]
        print(f"{len(cases):6} × {invariant}: cases {cases[:10]}")
    number = min(number for _, number in failed)
    print(f"Making case {number} smaller …", flush=True)
    return _tell(draw(given.seed, number), f"case {number} of seed {given.seed}")


def _tell(case: Case, name: str) -> int:
    """Shrink a failing case and say how to see it again."""
    failure = check(case)
    if failure is None:
        print(f"Nothing fails on {name}.")
        return 0
    invariant = failure.invariant

    def fails(other: Case) -> bool:
        found = check(other)
        return found is not None and found.invariant == invariant

    small = shrink(case, fails)
    failure = check(small)
    assert failure is not None
    path = Path("fuzz-failure.json")
    path.write_text(small.to_json())
    print(f"\nSmallest form of {name}: {small.X.shape[0]} rows, {small.X.shape[1]} features.")
    print(f"{failure.invariant}: {failure.message}\n\n{small.snippet()}")
    print(f"Written to {path}; see it again with: python -m fuzz --replay {path}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
