"""Partitions of Dask collections, and rounds over them.

A round calls a function on each partition and adds up the results: moments of points, parts of a gradient. Between
rounds a worker stores only its partitions, and all other data are sent by value, so workers may die or join at any
time. Results are added in pairs that depend only on the numbers of the partitions, so the sum is the same to the last
bit wherever the partitions are.
"""

import functools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import dask
import numpy as np

from melc.data.dask.worker import Call, Part, PartitionPlace, Sums, added, checked, work

# Partitions are held in memory if they fill at most this fraction of it.
_MEMORY_TO_FILL = 0.5
# Seconds after which the scheduler is asked again which worker holds which partition, and old results are released.
_KNOWN_FOR = 1.0


def _work(
    numbers: Sequence[int], n: int, calls: Sequence[Call], places: Sequence[PartitionPlace], parts: Sequence[Part]
) -> Sums:
    """Run one task of a round, with as many threads as its worker has."""
    return work(numbers, n, calls, places, parts, _threads_here())


def _call(task: Callable[..., Sums], parts: Sequence[Part]) -> Sums:
    return task(parts)


def _checked_partition(number: int, *given: Any) -> Part:
    """Return a partition, checked. ``given`` is X, y and perhaps weights, or one tuple of these."""
    X, y, *weights = given[0] if len(given) == 1 else given
    return checked(number, X, y, weights[0] if weights else None)


def checked_at(workers: list[str], number: int, given: tuple[Any, ...]) -> Any:
    """Return a delayed partition that is checked when computed, preferably by one of ``workers``."""
    if not workers:
        return dask.delayed(_checked_partition)(number, *given)
    with dask.annotate(workers=workers, allow_other_workers=True):
        return dask.delayed(_checked_partition)(number, *given)


def _threads_here() -> int:
    """Return the number of threads of the Dask worker that this runs on."""
    from distributed import get_worker

    try:
        return int(get_worker().state.nthreads)
    except ValueError:  # not on a worker, but in a thread of Dask's local scheduler, which runs others in parallel
        return 1


class Partitions:
    """Partitions of Dask collections, and rounds over them.

    If there is a client and enough memory (``held``), the partitions are futures, and a round is one task for each
    worker over the partitions that it holds. The scheduler may choose other workers, and it computes lost partitions
    again. Otherwise a round is one task for each partition, and partitions that do not fit in memory are read again in
    each round.
    """

    def __init__(self, parts: list[Any], held: bool) -> None:
        self._client = active_client()
        self._futures: list[Any] = []
        self._done: list[Any] = []  # futures of past rounds; releasing them at once would delay the next round
        self._groups: list[tuple[str, list[int]]] = []
        self._in_place = False  # whether every worker holds the partitions of its group
        self._grouped_at = -math.inf
        self._parts = parts
        if held and self._client is not None:
            self._futures = self._client.compute(parts)
        elif held:
            self._parts = list(dask.persist(*parts))

    def __len__(self) -> int:
        return len(self._parts)

    def mapped(self, function: Callable[..., Any], held: bool) -> "Partitions":
        """Return the partitions ``function(partition)``."""
        return Partitions([dask.delayed(function)(part) for part in self._futures or self._parts], held)

    def only(self, chosen: Iterable[int]) -> "Partitions":
        """Keep only the chosen partitions, and return self."""
        self._parts = [self._parts[i] for i in chosen]
        self._futures = [self._futures[i] for i in chosen] if self._futures else []
        return self

    def compute(self, function: Callable[..., Any]) -> list[Any]:
        """Return the list of ``function(number, partition)`` for all partitions."""
        parts = self._futures or self._parts
        return list(dask.compute(*[dask.delayed(function)(i, part) for i, part in enumerate(parts)]))

    def round(self, calls: list[Call], places: list[PartitionPlace]) -> list[Any]:
        """Make the calls on each partition. Return, for each call, the sum of its results over the partitions."""
        n = len(self)
        groups = self._grouped() if self._futures else [("", [i]) for i in range(n)]
        tasks = [functools.partial(_work, mine, n, calls, [places[i] for i in mine]) for _, mine in groups]
        if self._futures:
            results = self._sent(tasks, groups)
        else:
            parts = (self._parts[i] for _, (i,) in groups)
            later = [dask.delayed(task, pure=False)([part]) for task, part in zip(tasks, parts, strict=True)]
            results = dask.compute(*later)
        sums: Sums = {}
        for result in results:
            sums.update(result)
        (total,) = added(sums, n).values()
        return total

    def _sent(self, tasks: Sequence[Callable[..., Sums]], groups: list[tuple[str, list[int]]]) -> list[Sums]:
        """Run one task on each worker and return the results."""
        assert self._client is not None
        parts = [[self._futures[i] for i in mine] for _, mine in groups]
        if self._in_place:  # the scheduler sends each task to its partitions by itself; map submits all in one message
            futures = self._client.map(_call, tasks, parts, pure=False)
        else:
            options = {"allow_other_workers": True, "pure": False}
            futures = [
                self._client.submit(_call, task, mine, workers=[worker], **options)
                for task, mine, (worker, _) in zip(tasks, parts, groups, strict=True)
            ]
        self._done += futures
        try:
            return list(self._client.gather(futures))
        except BaseException:  # includes KeyboardInterrupt
            self._client.cancel(futures)
            raise

    def _grouped(self) -> list[tuple[str, list[int]]]:
        """Return pairs of a worker and the partitions it works on: those it holds, unless it holds more than others."""
        if time.monotonic() - self._grouped_at > _KNOWN_FOR:
            assert self._client is not None
            _wait(self._futures)  # a partition that is still being computed has no holder yet
            holders = self._client.who_has(self._futures)
            workers = self._client.nthreads()
            held_by = [holders.get(future.key, ()) for future in self._futures]
            self._groups = [(w, mine) for w, mine in share_out(held_by, workers).items() if mine]
            self._in_place = all(w in held_by[i] for w, mine in self._groups for i in mine)
            self._done.clear()
            self._grouped_at = time.monotonic()
        return self._groups


def _wait(futures: list[Any]) -> None:
    from distributed import wait

    wait(futures)


def side_by_side(n: int, workers: dict[str, int]) -> list[str]:
    """Return a worker for each of n partitions, or an empty list if there are no workers yet.

    Workers get partitions in proportion to their threads. Neighbouring partitions go to the same worker, which can then
    add up their results.
    """
    shares = np.cumsum([0, *workers.values()]) * n // max(1, sum(workers.values()))
    return [worker for worker, count in zip(workers, np.diff(shares), strict=True) for _ in range(count)]


def share_out(held_by: list[Sequence[str]], workers: dict[str, int]) -> dict[str, list[int]]:
    """Return the numbers of the partitions that each worker works on, in proportion to its threads.

    ``held_by[i]`` are the workers that hold partition i. They are preferred, up to their fair share.
    """
    shares: dict[str, list[int]] = {worker: [] for worker in workers}
    threads = sum(workers.values())
    fair = {w: math.ceil(len(held_by) * n / threads) for w, n in workers.items()}
    left = []
    for i, holders in enumerate(held_by):
        willing = [w for w in holders if w in shares and len(shares[w]) < fair[w]]
        if willing:
            shares[min(willing, key=lambda w: len(shares[w]) / workers[w])].append(i)
        else:
            left.append(i)
    for i in left:
        shares[min(shares, key=lambda w: (len(shares[w]) + 1) / workers[w])].append(i)
    return {worker: sorted(mine) for worker, mine in shares.items()}


def active_client() -> Any:
    """Return the active client, or None."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def fits_in_memory(n_bytes: float) -> bool:
    """Return whether partitions of this total size can be held in memory, with room left to work in."""
    from distributed.system import MEMORY_LIMIT
    from psutil import virtual_memory

    client = active_client()
    if client is None:
        return n_bytes <= _MEMORY_TO_FILL * min(MEMORY_LIMIT, virtual_memory().available)
    some = client.scheduler_info()["workers"].values()
    if not some:  # a cluster that starts its workers when there is work
        return True
    room = np.mean([worker["memory_limit"] or math.inf for worker in some]) * len(client.nthreads())
    return bool(n_bytes <= _MEMORY_TO_FILL * room)
