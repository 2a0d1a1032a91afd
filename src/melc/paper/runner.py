"""Run all cells that have no record yet, in parallel, and write one record for each.

Every worker writes the record of a cell as soon as it is finished. If the run is interrupted, by Ctrl-C or ``kill -9``,
only the cells in progress are lost, and the next run continues from there.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from melc.paper import records
from melc.paper.protocol import Cell
from melc.paper.records import Record
from melc.paper.solve import solve as solve_cell


def run_cells(
    cells: list[Cell],
    folder: Path,
    *,
    n_jobs: int = 1,
    solve: Callable[[Cell], Record] = solve_cell,
    show_progress: bool = True,
) -> int:
    """Solve every cell that has no record in `folder` and return the number of cells solved."""
    folder.mkdir(parents=True, exist_ok=True)
    records.remove_leftovers(folder)
    todo = records.pending(cells, folder)
    with _progress(show_progress) as progress:
        task = progress.add_task("cells", total=len(cells), completed=len(cells) - len(todo))
        for _ in _outcomes(todo, folder, n_jobs, solve):
            progress.advance(task)
    return len(todo)


def solve_and_write(cell: Cell, folder: Path, solve: Callable[[Cell], Record], main_process: int) -> None:
    """Solve a cell in a worker process. The result is the record written to disk; nothing is returned."""
    if os.getpid() != main_process:
        _end_with(main_process)
    records.write_record(solve(cell), folder)


@lru_cache
def _end_with(main_process: int) -> None:
    """Start a thread that ends this worker soon after the main process has ended.

    A main process that is ended by ``kill -9`` cannot end its workers itself.
    """

    def watch() -> None:
        while os.getppid() == main_process:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _outcomes(todo: list[Cell], folder: Path, n_jobs: int, solve: Callable[[Cell], Record]) -> Any:
    """Return a generator that yields once per cell, as soon as it is finished."""
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size="auto")
    return parallel(delayed(solve_and_write)(cell, folder, solve, os.getpid()) for cell in todo)


def _progress(show: bool) -> Any:
    """Return a progress bar with the elapsed and the remaining time."""
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
    # The speed is averaged over minutes, because some cells take a hundred times as long as others.
    return Progress(*columns, console=Console(stderr=True), disable=not show, speed_estimate_period=300)
