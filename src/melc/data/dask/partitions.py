"""Partitions, wherever Dask keeps them, and rounds over them.

A round asks every partition for something that adds up: the moments of its points, its part of a gradient. A worker
keeps nothing between rounds but its partitions, and everything that it needs to know is sent by value, so that it may
die, or another join, at any time. What partitions return is added in pairs that depend on their numbers only: the
result is the same bits wherever they are.
"""

import functools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import dask
import numpy as np

from melc.data.dask.worker import Call, Part, Place, Sums, added, checked, work

# Partitions are held in memory where they fill no more than this part of it.
_MEMORY_TO_FILL = 0.5
# Seconds until the workers are asked again who holds which partition, and results are let go.
_KNOWN_FOR = 1.0


def _work(
    numbers: Sequence[int], n: int, calls: Sequence[Call], places: Sequence[Place], parts: Sequence[Part]
) -> Sums:
    """One task of a round, with the threads of the worker that it runs on."""
    return work(numbers, n, calls, places, parts, _threads_here())


def _call(task: Callable[..., Sums], parts: Sequence[Part]) -> Sums:
    return task(parts)


def _checked(number: int, *given: Any) -> Part:
    """A partition of features, labels and perhaps weights, be they in a tuple."""
    X, y, *weights = given[0] if len(given) == 1 else given
    return checked(number, X, y, weights[0] if weights else None)


def checked_at(workers: list[str], number: int, given: tuple[Any, ...]) -> Any:
    """A partition, checked there if all goes well: the scheduler may choose another worker."""
    if not workers:
        return dask.delayed(_checked)(number, *given)
    with dask.annotate(workers=workers, allow_other_workers=True):
        return dask.delayed(_checked)(number, *given)


def _threads_here() -> int:
    """Those of the worker that this runs on."""
    from distributed import get_worker

    try:
        return int(get_worker().state.nthreads)
    except ValueError:  # no worker, but a thread of Dask's own scheduler, which has others
        return 1


class Partitions:
    """Partitions, wherever Dask keeps them, and rounds over them.

    With a client and room they are futures, and a round is one task a worker over those that it holds. The workers
    named are a wish: the scheduler may choose others, and computes anew what was lost. Otherwise a round is one task a
    partition, which is read again wherever there is no room to keep it.
    """

    def __init__(self, parts: list[Any], held: bool) -> None:
        self._client = active_client()
        self._futures: list[Any] = []
        self._done: list[Any] = []  # futures of past rounds: a message to let them go would keep the next round waiting
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
        return Partitions([dask.delayed(function)(part) for part in self._futures or self._parts], held)

    def only(self, chosen: Iterable[int]) -> "Partitions":
        """Some of the partitions."""
        self._parts = [self._parts[i] for i in chosen]
        self._futures = [self._futures[i] for i in chosen] if self._futures else []
        return self

    def compute(self, function: Callable[..., Any]) -> list[Any]:
        """function(number, partition) of every partition."""
        parts = self._futures or self._parts
        return list(dask.compute(*[dask.delayed(function)(i, part) for i, part in enumerate(parts)]))

    def round(self, calls: list[Call], places: list[Place]) -> list[Any]:
        """Make the calls on every partition; what they return is added up."""
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
        """One task a worker; what it returns."""
        assert self._client is not None
        parts = [[self._futures[i] for i in mine] for _, mine in groups]
        if self._in_place:  # a task goes to its partitions unasked, and one message takes all
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
        except BaseException:  # also somebody's Ctrl-C
            self._client.cancel(futures)
            raise

    def _grouped(self) -> list[tuple[str, list[int]]]:
        """Workers and the partitions that each shall work on: its own, as far as that is fair."""
        if time.monotonic() - self._grouped_at > _KNOWN_FOR:
            assert self._client is not None
            _wait(self._futures)  # what is being made has no holder yet, and would be sent anywhere
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
    """A worker for each of n partitions, in proportion to its threads, and neighbours with the same: it can then add
    up what they return. Empty if there are no workers yet."""
    shares = np.cumsum([0, *workers.values()]) * n // max(1, sum(workers.values()))
    return [worker for worker, count in zip(workers, np.diff(shares), strict=True) for _ in range(count)]


def share_out(held_by: list[Sequence[str]], workers: dict[str, int]) -> dict[str, list[int]]:
    """Numbers of partitions for every worker, in proportion to its threads; whoever holds one has the first claim."""
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
    """Whether partitions can be held in memory, with room to work in."""
    from distributed.system import MEMORY_LIMIT
    from psutil import virtual_memory

    client = active_client()
    if client is None:
        return n_bytes <= _MEMORY_TO_FILL * min(MEMORY_LIMIT, virtual_memory().available)
    some = client.scheduler_info()["workers"].values()
    if not some:  # workers will come when there is work
        return True
    room = np.mean([worker["memory_limit"] or math.inf for worker in some]) * len(client.nthreads())
    return bool(n_bytes <= _MEMORY_TO_FILL * room)
