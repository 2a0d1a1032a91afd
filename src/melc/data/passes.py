"""Passes over rows: in segments on threads, and for several problems at once.

Segments of rows are worked on by threads. Their number depends on the number of rows only, and their results are
added in their order, so that any number of threads gives the same bits.

Several problems on the same rows (one for every class, say) run side by side, each in a thread of its own. Whenever
one wants a pass it waits until all others want one too, or have ended; then the passes are made together, stretch by
stretch, so that every block of X is read once for all.
"""

import functools
import itertools
import operator
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

T = TypeVar("T")

_FEW_ROWS = 32_768
_SEGMENT_ROWS = 65_536
_MOST_SEGMENTS = 64
# Rows whose projections are worked on while they are still in the cache.
STRETCH = 131_072
# Numbers of X that stay in a core's cache while several problems read them.
_CACHED_NUMBERS = 32_768


class Pass:
    """A pass that one problem waits for, and what came of it."""

    def __init__(self, begin: Callable[[], Any], step: Callable[[Any, int, int], None]) -> None:
        self.begin, self.step = begin, step
        self.results: Any = None


class BrokenOff(Exception):
    """Another problem failed, or the user interrupted: the rest need not go on."""


class Together:
    """Gathers the passes of a number of problems."""

    def __init__(self, n_problems: int) -> None:
        self._active = n_problems
        self._waiting: list[Any] = []
        self._changed = threading.Condition()
        self._make: Callable[[list[Any]], None] | None = None
        self._broken = False

    def run(self, wanted: Any, make: Callable[[list[Any]], None]) -> Any:
        """Wait for the others, then have all passes made (by ``make``, in whichever thread comes last)."""
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
        """Tell that a problem has ended; the others need not wait for it."""
        with self._changed:
            self._active -= 1
            self._go_if_complete()

    def check(self) -> None:
        """Raise an error if the problems are to end."""
        if self._broken:
            raise BrokenOff

    def break_off(self) -> None:
        """End all problems, those that wait and those that work."""
        self._broken = True  # before the lock, which whoever makes the passes holds: this ends them too
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
    """Run every problem in a thread and return the results in their order. The first error ends them all."""

    def run(problem: Callable[[], T]) -> T:
        result = problem()
        together.leave()
        return result

    with ThreadPoolExecutor(len(problems)) as pool:
        futures = [pool.submit(run, problem) for problem in problems]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:  # also somebody's Ctrl-C, which arrives here
            together.break_off()
            raise
    return [future.result() for future in futures]


class Passes:
    """Makes passes over ``n_rows`` rows of ``n_features`` features.

    ``block_rows`` is the number of rows that are multiplied at once, and zero where X cannot be read in parts.
    """

    def __init__(self, n_rows: int, n_features: int, block_rows: int, n_threads: int) -> None:
        self.n_rows, self.n_features, self.block_rows, self.n_threads = n_rows, n_features, block_rows, n_threads
        self.together: Together | None = None
        self.watched: Together | None = None  # a sample makes its passes alone, but ends with the others
        self._pool: ThreadPoolExecutor | None = None

    def run(self, begin: Callable[[], T], step: Callable[[T, int, int], None]) -> list[T]:
        """Make a pass: every segment begins something and takes steps with it, stretch by stretch.

        Returns what the segments began, in their order.
        """
        if self.watched is not None:
            self.watched.check()
        if self.together is None and self.n_rows <= _FEW_ROWS:  # small data have no time for more
            something = begin()
            step(something, 0, self.n_rows)
            return [something]
        wanted = Pass(begin, step)
        if self.together is not None:
            self.together.run(wanted, self._make)
        else:
            self._make([wanted])
        return list(wanted.results)

    def blocks(self) -> Iterable[slice]:
        """Yield all rows in parts, between which problems that are solved together can be broken off."""
        for a in range(0, self.n_rows, _SEGMENT_ROWS):
            if self.together is not None:
                self.together.check()
            yield slice(a, a + _SEGMENT_ROWS)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _make(self, passes: list[Pass]) -> None:
        """Make several passes at once; results in the order of the segments."""

        def work(start: int, stop: int) -> list[Any]:
            begun = [each.begin() for each in passes]
            for a, b in self._stretches(start, stop, len(passes)):
                if self.together is not None:
                    self.together.check()
                for each, something in zip(passes, begun, strict=True):
                    each.step(something, a, b)
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
        """The parts of a segment.

        One pass keeps its projections in the cache; several also want to find the rows there. Several take the
        stretches of one in parts that are whole blocks of the products: sums are then added in the same order either
        way, to the same bits.
        """
        if not self.block_rows:
            return [(start, stop)]
        whole = [(a, min(a + STRETCH, stop)) for a in range(start, stop, STRETCH)]
        if n_passes == 1:
            return whole
        size = self.block_rows * max(1, _CACHED_NUMBERS // self.n_features // self.block_rows)
        return [(c, min(c + size, b)) for a, b in whole for c in range(a, b, size)]


def add_up(parts: Iterable[T]) -> T:
    """Return the sum in the given order; the first part is changed."""
    return functools.reduce(operator.iadd, parts)
