"""Several problems on the same rows, solved side by side so that every block of X is read once for all.

Each problem runs in a thread of its own. Whenever one wants a pass over X it waits until all the others want one
too, or have ended; then the passes are made together, stretch by stretch of rows.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class Pass:
    """One problem's wish for a pass, and what came of it."""

    def __init__(self, begin: Callable[[], Any], step: Callable[[Any, int, int], None]) -> None:
        self.begin, self.step = begin, step
        self.results: list[Any] | None = None
        self.error: BaseException | None = None


class Together:
    """Gathers the passes of a number of problems."""

    def __init__(self, n_problems: int) -> None:
        self._active = n_problems
        self._waiting: list[Pass] = []
        self._changed = threading.Condition()
        self._make: Callable[[list[Pass]], None] | None = None

    def run(self, wish: Pass, make: Callable[[list[Pass]], None]) -> list[Any]:
        """Wait for the others, then have all passes made (by ``make``, in whichever thread comes last)."""
        with self._changed:
            self._waiting.append(wish)
            self._make = make
            self._go_if_complete()
            self._changed.wait_for(lambda: wish.results is not None or wish.error is not None)
        if wish.error is not None:
            raise RuntimeError("A pass over the rows failed.") from wish.error
        assert wish.results is not None
        return wish.results

    def leave(self) -> None:
        """A problem has ended; the others need not wait for it."""
        with self._changed:
            self._active -= 1
            self._go_if_complete()

    def _go_if_complete(self) -> None:
        if not self._waiting or len(self._waiting) < self._active:
            return
        passes, self._waiting = self._waiting, []
        try:
            assert self._make is not None
            self._make(passes)
        except BaseException as error:
            for each in passes:
                each.error = error
            raise
        finally:
            self._changed.notify_all()


def solve_together(problems: Sequence[Callable[[], T]], together: Together) -> list[T]:
    """Run every problem in a thread; results in their order."""

    def run(problem: Callable[[], T]) -> T:
        try:
            return problem()
        finally:
            together.leave()

    with ThreadPoolExecutor(len(problems)) as pool:
        return list(pool.map(run, problems))
