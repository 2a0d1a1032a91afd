"""Passes over rows, divided among threads and shared by several problems.

The rows are divided into segments, which threads work on. The number of segments depends only on the number of rows,
and their results are added in order, so the result is the same to the last bit for any number of threads. Within a
segment the rows are processed in stretches: consecutive rows whose projections fit in the cache.

Several problems on the same rows (for example one for each class) run in parallel, each in its own thread. A problem
that needs a pass waits until all others need one too, or have ended. Then their passes are made together, stretch by
stretch, so that each block of X is read only once.
"""

import functools
import itertools
import operator
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

from melc.data.mapped import Release, keep_rows

T = TypeVar("T")

_FEW_ROWS = 32_768
_SEGMENT_ROWS = 65_536
_MOST_SEGMENTS = 64
# Rows in a stretch: their projections stay in the cache between two steps.
STRETCH = 131_072
# Elements of X that stay in a core's cache while several problems read them.
_CACHED_NUMBERS = 32_768


class Pass:
    """A pass that a problem waits for. ``results`` is None until the pass is made."""

    def __init__(self, begin: Callable[[], Any], step: Callable[[Any, int, int], None]) -> None:
        self.begin, self.step = begin, step
        self.results: Any = None


class BrokenOff(Exception):
    """Raised in the remaining problems when another problem failed or the user interrupted."""


class Together:
    """Collects the passes of ``n_problems`` problems, each in its own thread, and makes them together."""

    def __init__(self, n_problems: int) -> None:
        self._active = n_problems
        self._waiting: list[Any] = []
        self._changed = threading.Condition()
        self._make: Callable[[list[Any]], None] | None = None
        self._broken = False

    def run(self, wanted: Any, make: Callable[[list[Any]], None]) -> Any:
        """Wait until all problems want a pass, then return the results of this one.

        The last thread to arrive makes all passes by calling ``make``.
        """
        with self._changed:
            self.check()
            self._waiting.append(wanted)
            self._make = make
            self._go_if_complete()
            self._changed.wait_for(lambda: self._broken or wanted.results is not None)
        if wanted.results is None:
            raise BrokenOff
        return wanted.results

    def leave(self) -> None:
        """Report that a problem has ended, so that the others no longer wait for it."""
        with self._changed:
            self._active -= 1
            self._go_if_complete()

    def check(self) -> None:
        """Raise :class:`BrokenOff` if the problems are to end."""
        if self._broken:
            raise BrokenOff

    def break_off(self) -> None:
        """End all problems, both those that wait and those that work."""
        self._broken = True  # set before taking the lock, which the thread that makes the passes holds until it sees it
        with self._changed:
            self._waiting = []
            self._changed.notify_all()

    def _go_if_complete(self) -> None:
        if not self._waiting or len(self._waiting) < self._active:
            return
        passes, self._waiting = self._waiting, []
        assert self._make is not None
        self._make(passes)
        self._changed.notify_all()


def solve_together(problems: Sequence[Callable[[], T]], together: Together) -> list[T]:
    """Run each problem in its own thread and return their results in order. The first error ends all problems."""

    def run(problem: Callable[[], T]) -> T:
        result = problem()
        together.leave()
        return result

    with ThreadPoolExecutor(len(problems)) as pool:
        futures = [pool.submit(run, problem) for problem in problems]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:  # includes KeyboardInterrupt, which is raised in this thread
            together.break_off()
            raise
    return [future.result() for future in futures]


class Passes:
    """Makes passes over ``n_rows`` rows of ``n_features`` features.

    ``block_rows`` is the number of rows that are multiplied at once, or zero if X cannot be read in parts. After each
    segment ``release(start, stop)`` is called with its rows.
    """

    def __init__(
        self, n_rows: int, n_features: int, block_rows: int, n_threads: int, release: Release = keep_rows
    ) -> None:
        self.n_rows, self.n_features, self.block_rows, self.n_threads = n_rows, n_features, block_rows, n_threads
        self._release = release
        self.together: Together | None = None
        self.watched: Together | None = None  # for a sample: its passes are its own, but end with these problems
        self._pool: ThreadPoolExecutor | None = None

    def run(self, begin: Callable[[], T], step: Callable[[T, int, int], None]) -> list[T]:
        """Make a pass over all rows and return one accumulator for each segment, in order.

        Each segment creates its accumulator with ``begin()`` and calls ``step(accumulator, start, stop)`` for each of
        its stretches.
        """
        if self.watched is not None:
            self.watched.check()
        if self.together is None and self.n_rows <= _FEW_ROWS:  # small data: avoid the overhead of what follows
            something = begin()
            step(something, 0, self.n_rows)
            self._release(0, self.n_rows)
            return [something]
        wanted = Pass(begin, step)
        if self.together is not None:
            self.together.run(wanted, self._make)
        else:
            self._make([wanted])
        return list(wanted.results)

    def blocks(self) -> Iterable[slice]:
        """Yield slices that cover all rows. Problems that are solved together can be broken off between two of them."""
        for a in range(0, self.n_rows, _SEGMENT_ROWS):
            if self.together is not None:
                self.together.check()
            yield slice(a, a + _SEGMENT_ROWS)

    def close(self) -> None:
        """Shut down the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _make(self, passes: list[Pass]) -> None:
        """Make several passes together and set their results, in the order of the segments."""

        def work(start: int, stop: int) -> list[Any]:
            begun = [each.begin() for each in passes]
            for a, b in self._stretches(start, stop, len(passes)):
                if self.together is not None:
                    self.together.check()
                for each, something in zip(passes, begun, strict=True):
                    each.step(something, a, b)
            self._release(start, stop)
            return begun

        results = self._map(work)
        for i, each in enumerate(passes):
            each.results = [begun[i] for begun in results]

    def _map(self, work: Callable[[int, int], T]) -> list[T]:
        edges = self._segments()
        if len(edges) == 2 or self.n_threads == 1:
            return [work(a, b) for a, b in itertools.pairwise(edges)]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_threads)
        return list(self._pool.map(work, edges[:-1], edges[1:]))

    def _segments(self) -> list[int]:
        if not self.block_rows:
            return [0, self.n_rows]
        n = min(_MOST_SEGMENTS, max(1, self.n_rows // _SEGMENT_ROWS))
        return [self.n_rows * i // n for i in range(n + 1)]

    def _stretches(self, start: int, stop: int, n_passes: int) -> list[tuple[int, int]]:
        """Return the stretches of a segment as pairs (start, stop).

        A single pass keeps only its projections in the cache. Several passes also reuse the rows of X, so their
        stretches are shorter. These are divided at whole blocks of the products, so that sums are added in the same
        order and the results are the same to the last bit either way.
        """
        if not self.block_rows:
            return [(start, stop)]
        whole = [(a, min(a + STRETCH, stop)) for a in range(start, stop, STRETCH)]
        if n_passes == 1:
            return whole
        size = self.block_rows * max(1, _CACHED_NUMBERS // self.n_features // self.block_rows)
        return [(c, min(c + size, b)) for a, b in whole for c in range(a, b, size)]


def add_up(parts: Iterable[T]) -> T:
    """Return the sum of the parts, added in their order. The first part may be modified."""
    return functools.reduce(operator.iadd, parts)
