"""FasterRisk in a Python of its own: reads tasks from its input and writes models to its output, both pickled.

The package asks for older versions of NumPy and scikit-learn than melc does, so it cannot be imported beside melc:

    python -m venv .venv-fasterrisk && .venv-fasterrisk/bin/pip install fasterrisk

``MELC_FASTERRISK`` can name another Python that has it. Only the lower part of this file is run there.
"""

import pickle
import subprocess
import sys
import time
from functools import lru_cache
from typing import Any

_LARGEST = 5


def fit(X: Any, y: Any, n_features: int) -> tuple[float, Any, float]:
    """Return intercept and coefficients of the log-odds, and processor seconds of the fit; y is 0 or 1.

    Coefficients are whole numbers from −5 to 5 divided by a common multiplier.
    """
    process = _process()
    pickle.dump((X, y, n_features), process.stdin, protocol=4)
    process.stdin.flush()
    return pickle.load(process.stdout)


@lru_cache(maxsize=1)
def _process() -> Any:
    import os

    from benchmarks.measure import ROOT

    python = os.environ.get("MELC_FASTERRISK", str(ROOT / ".venv-fasterrisk" / "bin" / "python"))
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    try:
        return subprocess.Popen(
            [python, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **one_thread}
        )
    except FileNotFoundError as error:
        raise SystemExit(
            f"FasterRisk needs an environment of its own, and there is no {python}. Create it by\n"
            "    python -m venv .venv-fasterrisk && .venv-fasterrisk/bin/pip install fasterrisk\n"
            "or choose other models with --models."
        ) from error


def _answer_tasks() -> None:
    from fasterrisk.fasterrisk import RiskScoreOptimizer

    while True:
        try:
            X, y, n_features = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        start = time.process_time()
        optimizer = RiskScoreOptimizer(X=X, y=2.0 * y - 1, k=n_features, lb=-_LARGEST, ub=_LARGEST)
        optimizer.optimize()
        multiplier, intercept, coefficients = optimizer.get_models(model_index=0)  # that of the least logistic loss
        seconds = time.process_time() - start
        pickle.dump((intercept / multiplier, coefficients / multiplier, seconds), sys.stdout.buffer, protocol=4)
        sys.stdout.flush()


if __name__ == "__main__":
    _answer_tasks()
