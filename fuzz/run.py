"""Many cases, in this process or in several."""

import itertools
import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from fuzz.cases import draw
from fuzz.invariants import Failure, check

_BATCH = 50

Outcome = tuple[int, list[tuple[int, Failure]]]  # how many cases were checked, and the numbers of those that failed


def run(seed: int, numbers: range, jobs: int, end: float | None) -> Iterator[Outcome]:
    """Check the cases of a seed, batch by batch, until ``end`` (by the monotonic clock)."""
    starts = itertools.takewhile(lambda _: end is None or time.monotonic() < end, numbers[::_BATCH])
    tasks = ((seed, range(start, min(start + _BATCH, numbers.stop))) for start in starts)
    if jobs == 1:
        yield from map(_check_batch, tasks)
        return
    os.environ["OMP_NUM_THREADS"] = "1"  # one thread a process, BLAS included
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        try:
            while ahead := list(itertools.islice(tasks, 4 * jobs)):  # not too far, to hear of the end in time
                yield from pool.map(_check_batch, ahead)
        finally:
            pool.shutdown(cancel_futures=True)


def _check_batch(task: tuple[int, range]) -> Outcome:
    seed, numbers = task
    found = ((number, check(draw(seed, number))) for number in numbers)
    return len(numbers), [(number, failure) for number, failure in found if failure is not None]
