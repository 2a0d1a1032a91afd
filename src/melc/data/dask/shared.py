"""Rounds over the partitions that several problems share, for example one problem for each class.

The problems run in parallel, each in its own thread. A problem that needs a round waits until all others need one too,
or have ended. Then one round is made for all of them. Nothing here imports Dask.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

Solution = TypeVar("Solution")


class Ended(Exception):
    """Raised in the remaining problems when another problem failed or the user interrupted."""


class Request:
    """What a problem wants from a round; ``result`` is set, and ``done``, when the round is made."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.result: Any = None
        self.done = False


class SharedRounds:
    """Solves problems on the same partitions, each in its own thread, and makes one round for all their requests.

    ``rows`` are the :class:`melc.data.dask.rows.DaskRows` of each problem.
    """

    def __init__(self, rows: Sequence[Any]) -> None:
        for each in rows:
            each.rounds = self
        self._n_problems = self._n_running = len(rows)
        self._waiting: list[Request] = []
        self._changed = threading.Condition()
        self._make: Callable[[list[Request]], None] | None = None
        self._ended = False

    def solve_all(self, solve: Callable[[int], Solution]) -> list[Solution]:
        """Return ``solve(k)`` for each problem k. The first error ends all problems."""

        def run(k: int) -> Solution:
            result = solve(k)
            self._leave()
            return result

        with ThreadPoolExecutor(self._n_problems) as pool:
            futures = [pool.submit(run, k) for k in range(self._n_problems)]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:  # includes KeyboardInterrupt, which is raised in this thread
                self._end()
                raise
        return [future.result() for future in futures]

    def run(self, request: Request, make: Callable[[list[Request]], None]) -> None:
        """Wait until all problems request a round, and until it is made.

        The last thread to arrive makes the round by calling ``make``.
        """
        with self._changed:
            self.check()
            self._waiting.append(request)
            self._make = make
            self._make_if_complete()
            self._changed.wait_for(lambda: self._ended or request.done)
        if not request.done:
            raise Ended

    def _leave(self) -> None:
        """Report that a problem has ended, so that the others no longer wait for it."""
        with self._changed:
            self._n_running -= 1
            self._make_if_complete()

    def check(self) -> None:
        """Raise :class:`Ended` if the problems are to end."""
        if self._ended:
            raise Ended

    def _end(self) -> None:
        """End all problems: each at its next request or check."""
        self._ended = True  # before taking the lock, which a thread holds while it makes a round
        with self._changed:
            self._waiting = []
            self._changed.notify_all()

    def _make_if_complete(self) -> None:
        if not self._waiting or len(self._waiting) < self._n_running:
            return
        requests, self._waiting = self._waiting, []
        assert self._make is not None
        self._make(requests)
        self._changed.notify_all()
