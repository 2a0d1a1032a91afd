"""Records: a line of JSON for every data set, model and repeat that was measured.

A record holds all that its figures depend on: the settings of the model, the folds, and the versions of the packages.
Of melc that is a digest of the code that a fit runs, and of generated data sets one of their numbers. Records of other
settings or versions stay in the file and are left aside.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import melc
from benchmarks.measure import ROOT
from benchmarks.quality.models import MODELS, Model
from benchmarks.quality.sets import GENERATED, SETS, DataSet
from melc.paper.datasets import content_hash

RECORDS = ROOT / "benchmarks" / "results" / "quality.jsonl"
SCHEMA = 1  # increase it when the meaning of a field changes
_NOT_IN_A_FIT = ("cli", "paper", "tables", "plotting", "export")


@dataclass(frozen=True)
class Cell:
    """All folds of one repeat of one model on one data set, and what the result depends on."""

    data_set: str
    model: str
    repeat: int
    n_folds: int
    settings: str
    versions: dict[str, str]
    schema: int = SCHEMA

    @property
    def key(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class Record:
    """The figures of a cell, one for each fold. ``lines`` is None for models that have none."""

    cell: Cell
    balanced_accuracy: list[float]
    log_loss: list[float]
    seconds: list[float]
    lines: list[int] | None


def cells_of(sets: Iterable[DataSet], models: Iterable[Model], n_repeats: int) -> list[Cell]:
    """Return all cells, the quicker models first."""
    return [_cell(data, model, repeat) for model in models for repeat in range(n_repeats) for data in sets]


def _cell(data: DataSet, model: Model, repeat: int) -> Cell:
    packages = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    if model.package == "melc":
        packages["melc"] = melc_digest()
    elif model.package is not None:
        packages[model.package] = version(model.package)
    if data.group == GENERATED:
        packages["rows"] = _rows_digest(data.name)
    return Cell(data.name, model.name, repeat, data.n_folds, model.settings(), packages)


@lru_cache
def melc_digest() -> str:
    """Return a digest of the source files of melc that a fit may run: its version alone does not tell them apart."""
    package = Path(melc.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] not in _NOT_IN_A_FIT:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@lru_cache
def _rows_digest(name: str) -> str:
    return content_hash(*SETS[name].load())[:12]


def read(path: Path) -> dict[str, Record]:
    """Return the complete records of a file by the keys of their cells. A file that does not exist has none."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]  # what follows the last line break was cut off
    found = [_record(line, f"line {number} of {path}") for number, line in enumerate(lines, 1)]
    return {record.cell.key: record for record in found}


def _record(line: str, where: str) -> Record:
    try:
        fields: dict[str, Any] = json.loads(line)
        return Record(Cell(**fields.pop("cell")), **fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{where} is not a record ({error}); delete the line and run again") from error


def current(found: dict[str, Record]) -> list[Record]:
    """Return the records of today's settings and versions."""
    return [record for record in found.values() if _is_current(record.cell)]


def _is_current(cell: Cell) -> bool:
    data, model = SETS.get(cell.data_set), MODELS.get(cell.model)
    if data is None or model is None or not model.is_installed:
        return False
    return cell.key == _cell(data, model, cell.repeat).key


def append(record: Record, path: Path) -> None:
    """Add a record to a file as one line, after removing a last line that was cut off when a run was ended."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b") as stream:
        stream.seek(0)
        complete = stream.read().rfind(b"\n") + 1
        stream.truncate(complete)
        stream.write((json.dumps(asdict(record), sort_keys=True) + "\n").encode())
        stream.flush()
        os.fsync(stream.fileno())
