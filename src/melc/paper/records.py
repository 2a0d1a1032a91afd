"""One JSON file per finished cell: what was asked, what came out, with which versions.

A record is written to a draft and moved into place, so that a record that exists is whole whatever
happened to the run. Its file name is the cell's label and a hash of all its settings: change any setting and
it is another record.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from melc.export.files import replacing
from melc.paper.protocol import BaselineCell, Cell, MelcCell

SCHEMA = 1  # raise when the meaning of a field changes; records of another schema are not found


@dataclass(frozen=True)
class Run:
    """One solver run from one start.

    ``n_exponentials`` and ``n_pairs`` are totals over the run: exponentials computed, and those the exact
    method would have computed for the same evaluations. ``divergence`` is D as the method sees it,
    ``exact_divergence`` D of the final direction by the exact sum. ``seconds`` is what the clock showed,
    ``processor_seconds`` what the run used of it: all of it on an idle machine, less on a busy one.
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
    """A finished cell. ``runs`` is empty for baselines; ``best`` is the run that was scored."""

    cell: Cell
    balanced_accuracy: float
    runs: tuple[Run, ...]
    best: int | None
    seconds: float
    versions: dict[str, str]


def key(cell: Cell) -> str:
    """A readable name for the cell that is unique to its settings.

    >>> key(BaselineCell("heart", 0, 5, 0, "LDA"))
    'heart-fold0-LDA-acd097a2031d'
    """
    settings = {"schema": SCHEMA, "kind": type(cell).__name__, **asdict(cell)}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    return f"{cell.label}-{digest[:12]}"


def path_of(cell: Cell, folder: Path) -> Path:
    return folder / f"{key(cell)}.json"


def write(record: Record, folder: Path) -> Path:
    """Write the record so that it is either whole or absent."""
    folder.mkdir(parents=True, exist_ok=True)
    path = path_of(record.cell, folder)
    content = {"kind": type(record.cell).__name__, **asdict(record)}
    with replacing(path) as draft:
        draft.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> Record:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        kind = {"MelcCell": MelcCell, "BaselineCell": BaselineCell}[content.pop("kind")]
        content["cell"] = kind(**content["cell"])
        content["runs"] = tuple(Run(**run) for run in content["runs"])
        return Record(**content)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a record of melc ({error}); delete it and run again") from error


def read_all(cells: list[Cell], folder: Path) -> list[Record]:
    """The records of those cells that are finished, in the order of the cells."""
    paths = [path_of(cell, folder) for cell in cells]
    return [read(path) for path in paths if path.exists()]


def pending(cells: list[Cell], folder: Path) -> list[Cell]:
    """The cells that have no record yet."""
    finished = {path.stem for path in folder.glob("*.json")} if folder.is_dir() else set()
    return [cell for cell in cells if key(cell) not in finished]


def remove_leftovers(folder: Path) -> None:
    """Drafts of a run that was killed while writing."""
    for path in folder.glob(".melc-*"):
        path.unlink(missing_ok=True)
