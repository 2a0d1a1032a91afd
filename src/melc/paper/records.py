"""Records: one JSON file per finished cell, with its settings, its results and the versions used.

A record is written to a temporary file and moved into place, so that an existing record is always complete. Its file
name is the label of the cell and a hash of all its settings, so that a cell with other settings has another record.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from melc.export.files import replacing
from melc.paper.protocol import BaselineCell, Cell, MelcCell

SCHEMA = 1  # increase it when the meaning of a field changes; records of other schemas are ignored


@dataclass(frozen=True)
class Run:
    """One solver run from one start.

    ``n_exponentials`` and ``n_pairs`` are totals over the run: the exponentials computed, and those that the exact
    method would have computed in the same evaluations. ``divergence`` is D at the final direction as computed by the
    method, ``exact_divergence`` by the exact sum. ``seconds`` is wall-clock time and ``processor_seconds`` processor
    time; on a busy machine the second is less than the first.
    """

    n_iter: int
    n_evaluations: int
    n_exponentials: int
    n_pairs: int
    divergence: float
    exact_divergence: float
    norm: float
    converged: bool
    reason: str
    seconds: float
    processor_seconds: float


@dataclass(frozen=True)
class Record:
    """Results of a cell. ``runs`` is empty for baselines; ``best`` is the index of the run that was scored."""

    cell: Cell
    balanced_accuracy: float
    runs: tuple[Run, ...]
    best: int | None
    seconds: float
    versions: dict[str, str]


def key(cell: Cell) -> str:
    """Return a readable name of the cell that is unique to its settings.

    >>> key(BaselineCell("heart", 0, 5, 0, "LDA"))
    'heart-fold0-LDA-acd097a2031d'
    """
    settings = {"schema": SCHEMA, "kind": type(cell).__name__, **asdict(cell)}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    return f"{cell.label}-{digest[:12]}"


def record_path(cell: Cell, folder: Path) -> Path:
    """Return the path of the record of a cell."""
    return folder / f"{key(cell)}.json"


def write_record(record: Record, folder: Path) -> Path:
    """Write the record, completely or not at all, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = record_path(record.cell, folder)
    content = {"kind": type(record.cell).__name__, **asdict(record)}
    with replacing(path) as draft:
        draft.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> Record:
    """Return the record in a file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        kind = {"MelcCell": MelcCell, "BaselineCell": BaselineCell}[content.pop("kind")]
        content["cell"] = kind(**content["cell"])
        content["runs"] = tuple(Run(**run) for run in content["runs"])
        return Record(**content)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a valid record ({error}); delete it and run again") from error


def read_all(cells: list[Cell], folder: Path) -> list[Record]:
    """Return the records of the finished cells, in the order of the cells."""
    paths = [record_path(cell, folder) for cell in cells]
    return [read(path) for path in paths if path.exists()]


def pending(cells: list[Cell], folder: Path) -> list[Cell]:
    """Return the cells that have no record yet."""
    finished = {path.stem for path in folder.glob("*.json")} if folder.is_dir() else set()
    return [cell for cell in cells if key(cell) not in finished]


def remove_leftovers(folder: Path) -> None:
    """Delete the temporary files of a run that was killed while writing."""
    for path in folder.glob(".melc-*"):
        path.unlink(missing_ok=True)
