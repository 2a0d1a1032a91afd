"""Run cells that have no record yet, several at a time, and leave one record for each.

Workers write their records themselves, the moment a cell is finished. Whatever stops the run, Ctrl-C or
``kill -9``, only the cells under way are lost, and running again goes on from there.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from melc.paper import records
from melc.paper.protocol import Cell
from melc.paper.records import Record


def run(
    cells: list[Cell],
    folder: Path,
    *,
    n_jobs: int = 1,
    solve: Callable[[Cell], Record] | None = None,
    show_progress: bool = True,
) -> int:
    """Solve every cell that has no record in `folder`; returns how many were solved now."""
    folder.mkdir(parents=True, exist_ok=True)
    records.remove_leftovers(folder)
    todo = records.pending(cells, folder)
    with _progress(show_progress) as progress:
        task = progress.add_task("cells", total=len(cells), completed=len(cells) - len(todo))
        for _ in _outcomes(todo, folder, n_jobs, solve or _default_solve()):
            progress.advance(task)
    return len(todo)


def solve_and_write(cell: Cell, folder: Path, solve: Callable[[Cell], Record], main_process: int) -> None:
    """What a worker does; nothing is sent back, the record on disk is the result."""
    if os.getpid() != main_process:
        _end_with(main_process)
    records.write(solve(cell), folder)


@lru_cache
def _end_with(main_process: int) -> None:
    """End this worker soon after the main process has gone: ``kill -9`` gives that one no time to say so."""

    def watch() -> None:
        while os.getppid() == main_process:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _outcomes(todo: list[Cell], folder: Path, n_jobs: int, solve: Callable[[Cell], Record]):  # type: ignore[no-untyped-def]
    """Yields once for each finished cell, as it finishes."""
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size="auto")
    return parallel(delayed(solve_and_write)(cell, folder, solve, os.getpid()) for cell in todo)


def _default_solve() -> Callable[[Cell], Record]:
    from melc.paper.solve import solve

    return solve


def _progress(show: bool):  # type: ignore[no-untyped-def]
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        "[progress.description]{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        "left",
        TimeRemainingColumn(),
    )
    # Speed is averaged over minutes: cells differ a hundredfold in cost.
    return Progress(*columns, console=Console(stderr=True), disable=not show, speed_estimate_period=300)
