"""``melc predict`` on a large CSV against reading the same file with the same reader alone: time, and memory."""

import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measure import Profile, Row, benchmark, in_new_process
from melc import MELC
from melc.export import to_json

N_COLUMNS = 10


def _write_table(path: Path, n_rows: int, block: int = 250_000) -> None:
    import pyarrow as pa
    import pyarrow.csv

    rng = np.random.default_rng(0)
    names = [f"c{j}" for j in range(N_COLUMNS)]
    with pyarrow.csv.CSVWriter(path, pa.schema([(name, pa.float64()) for name in names])) as writer:
        for start in range(0, n_rows, block):
            rows = rng.normal(size=(min(block, n_rows - start), N_COLUMNS)).round(6)
            writer.write_table(pa.table(list(rows.T), names=names))


def _write_model(path: Path) -> None:
    import pandas as pd

    X = np.random.default_rng(1).normal(size=(1000, N_COLUMNS))
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(N_COLUMNS)])
    model = MELC(n_init=1, random_state=0).fit(frame, np.where(np.abs(X[:, 0]) < 0.7, "in", "out"))
    path.write_text(to_json(model))


@benchmark("predict-csv")
def predict_csv(profile: Profile) -> Iterator[Row]:
    """Each side in processes of its own, so that its peak of memory is its own too; imports do not count."""
    n = profile.rows(5_000_000)
    what = f"melc predict on a CSV of {n:,} × {N_COLUMNS} / reading it alone"
    if importlib.util.find_spec("pyarrow") is None:
        yield Row("predict-csv", what, skipped="pyarrow is not installed: pip install 'melc[cli]'")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_table(folder / "table.csv", n)
        _write_model(folder / "model.json")
        runs = [
            (in_new_process("read_csv", name, str(N_COLUMNS)), in_new_process("predict_csv", name))
            for _ in range(profile.rounds(3))
        ]
        size = (folder / "table.csv").stat().st_size
    read, predicted = (min((run[i] for run in runs), key=lambda found: found["seconds"]) for i in (0, 1))
    for found in (read, predicted):
        if found["rows"] != n:
            raise RuntimeError(f"{found['rows']} rows instead of {n}")
    note = f"{predicted['seconds']:.1f} s against {read['seconds']:.1f} s for {size / 1e6:.0f} MB"
    yield Row("predict-csv", what, predicted["seconds"] / read["seconds"], note=note, details={"runs": runs})
    if predicted["peak"] is not None:
        yield Row("predict-csv-memory", "memory of that prediction", predicted["peak"] / 1e9, "GB", details=predicted)
