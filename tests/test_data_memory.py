"""Rows in memory, and in files that are mapped into it: what a fit keeps of them beside themselves."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

OUT_OF_CORE = """
import sys
import numpy as np
from melc import MELC
from melc.data import hashing, memory
from peaks import peak_of

X, y = np.load(sys.argv[1] + "/X.npy", mmap_mode="r"), np.load(sys.argv[1] + "/y.npy", mmap_mode="r")
memory._MAX_PROJECTIONS_KEPT = hashing._MAX_HASHES_KEPT = 1 << 17  # as if there were hundreds of millions

def fit():
    return MELC(random_state=0, n_init=2, n_jobs=2).fit(X, y)

fit()  # what is compiled now need not be compiled later
beyond, model = peak_of(fit)
print(beyond, model.divergence_)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="anonymous memory is read from /proc")
def test_a_memory_map_is_trained_in_blocks(tmp_path):
    """Beyond the file itself, which the system may drop from memory, a fit holds next to nothing a row."""
    rng = np.random.default_rng(0)
    n = 2_000_000
    X = rng.normal(size=(n, 10)).astype(np.float32)
    y = (np.abs(X[:, 0] + 0.5 * rng.normal(size=n)) > 1).astype(np.int8)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    command, folders = [sys.executable, "-c", OUT_OF_CORE, str(tmp_path)], [*sys.path, str(Path(__file__).parent)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, folders))}
    found = subprocess.run(command, capture_output=True, text=True, timeout=55, check=True, env=environment)
    beyond, divergence = map(float, found.stdout.split())
    # Samples, a table of 4 MB that helps to draw them, and some bytes a row.
    assert beyond < 45e6, f"{beyond / 1e6:.0f} MB beside {X.nbytes / 1e6:.0f} MB"
    assert 0.5 < divergence < 5
