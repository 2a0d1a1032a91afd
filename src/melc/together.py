"""Several problems on the same rows, solved side by side so that every block of X is read once for all.

Each problem runs in a thread of its own. Whenever one wants a pass over X it waits until all the others want one
too, or have ended; then the passes are made together, stretch by stretch of rows.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

T = TypeVar("T")


class Pass:
    """One problem's wish for a pass, and what came of it."""

    def __init__(self, begin: Callable[[], Any], step: Callable[[Any, int, int], None]) -> None:
        self.begin, self.step = begin, step
        self.results: list[Any] | None = None


class BrokenOff(Exception):
    """Another problem failed, or the user lost patience: the rest need not go on."""


class Together:
    """Gathers the passes of a number of problems."""

    def __init__(self, n_problems: int) -> None:
        self._active = n_problems
        self._waiting: list[Pass] = []
        self._changed = threading.Condition()
        self._make: Callable[[list[Pass]], None] | None = None
        self._broken = False

    def run(self, wish: Pass, make: Callable[[list[Pass]], None]) -> list[Any]:
        """Wait for the others, then have all passes made (by ``make``, in whichever thread comes last)."""
        with self._changed:
            self.check()
            self._waiting.append(wish)
            self._make = make
            self._go_if_complete()
            self._changed.wait_for(lambda: self._broken or wish.results is not None)
        if wish.results is None:
            raise BrokenOff
        return wish.results

    def leave(self) -> None:
        """A problem has ended; the others need not wait for it."""
        with self._changed:
            self._active -= 1
            self._go_if_complete()

    def check(self) -> None:
        """Raises an error if the problems are to end."""
        if self._broken:
            raise BrokenOff

    def break_off(self) -> None:
        """Whoever waits, or wants to, is to end at once."""
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
    """Run every problem in a thread; results in their order. The first error ends them all."""

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
