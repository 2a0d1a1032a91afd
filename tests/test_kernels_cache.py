"""Machine code that was compiled just now and machine code from the cache on disk compute the same bits."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

FITS = """
import sys
import numpy as np
from melc import MELC, AdditiveMELC

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
y = np.abs(X[:, 0] + 0.3 * X[:, 1] + 0.5 * rng.normal(size=120)) < 0.8
weights = rng.integers(0, 4, size=(6, 120)).astype(float)
kinds = {"MELC": MELC, "AdditiveMELC": AdditiveMELC}
def bits(kind):
    return [kind(random_state=0).fit(X, y, w).directions_.tobytes().hex() for w in weights]

coefs = {name: bits(kinds[name]) for name in sys.argv[1:]}
print(sorted(coefs.items()))
"""


def fits(cache, *kinds):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", FITS, *kinds]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300).stdout


def test_the_first_fit_on_a_machine_equals_the_next(tmp_path):
    first = fits(tmp_path, "MELC", "AdditiveMELC")
    assert first == fits(tmp_path, "MELC", "AdditiveMELC")
    assert first == fits(tmp_path, "AdditiveMELC", "MELC")
