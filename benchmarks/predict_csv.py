"""``melc predict`` on a large CSV: memory, and speed beside reading the same file with the same reader alone.

    python benchmarks/predict_csv.py [--rows 5000000]

Each measurement runs in a process of its own, so that its peak of memory is its own too.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from melc import MELC
from melc.tables.encoding import Column, Encoding
from melc.tables.model import TableModel

N_COLUMNS = 10
READ_ALONE = """
import sys
from melc.tables import Source, read_blocks
kinds = {f"c{j}": "number" for j in range(10)}
print(sum(block.num_rows for block in read_blocks(Source(sys.argv[1]), kinds)))
"""


def write_table(path, n_rows, block=250_000):
    rng = np.random.default_rng(0)
    names = [f"c{j}" for j in range(N_COLUMNS)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pyarrow.csv.CSVWriter(path, schema) as writer:
        for start in range(0, n_rows, block):
            rows = rng.normal(size=(min(block, n_rows - start), N_COLUMNS)).round(6)
            writer.write_table(pa.table(list(rows.T), names=names))


def write_model(path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1000, N_COLUMNS))
    model = MELC(n_init=1, random_state=0).fit(X, np.where(np.abs(X[:, 0]) < 0.7, "in", "out"))
    columns = tuple(Column(f"c{j}") for j in range(N_COLUMNS))
    path.write_text(TableModel(model, Encoding(columns), "y").to_json())


def measured(command):
    """Wall time and peak memory of a process."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *map(str, command)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    n_rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "table.csv", n_rows)
        write_model(folder / "model.json")
        size = (folder / "table.csv").stat().st_size / 1e6
        start_up, _ = measured(["-c", "import melc.tables"])
        predict = ["-m", "melc.cli", "predict", folder / "model.json", folder / "table.csv", "-o", folder / "out.csv"]
        runs = [(measured(["-c", READ_ALONE, folder / "table.csv"]), measured([*predict, "-f"])) for _ in range(3)]
        n_written = (folder / "out.csv").read_bytes().count(b"\n") - 1
    read = min(seconds for (seconds, _), _ in runs) - start_up
    predicted = min(seconds for _, (seconds, _) in runs) - start_up
    memory = max(peak for _, (_, peak) in runs)
    print(f"{n_rows} rows × {N_COLUMNS}, {size:.0f} MB; {n_written} predictions written; best of three runs")
    print(f"reading alone {read:.2f} s, predicting {predicted:.2f} s (start-up of {start_up:.2f} s left out)")
    print(f"throughput {read / predicted:.2f} of reading alone; peak memory {memory:.0f} MB")


if __name__ == "__main__":
    main()
