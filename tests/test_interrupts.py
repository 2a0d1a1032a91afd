"""Ctrl-C is heard within two seconds of computing and leaves no thread behind; forks and threads are safe."""

import multiprocessing
import queue
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest

from melc import MELC
from melc.data import memory

pytestmark = pytest.mark.slow

HEARD_WITHIN = 2.0  # seconds

BEGINNING = """
import threading
import warnings

import numpy as np
from melc import MELC, AdditiveMELC, information_potential

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)


def data(n, d, n_classes=2):
    y = rng.integers(n_classes, size=n)
    return rng.normal(size=(n, d)) + y[:, None], y


"""

SCENE = """
{prepare}
print("begun", flush=True)
try:
    {work}
    print("finished", flush=True)
except KeyboardInterrupt:
    print("heard", threading.active_count(), flush=True)
"""

# What is compiled or fitted before, and what is interrupted. A process goes through the scenes of a group in turn.
SCENES = {
    "sums": {
        "exact": (
            "MELC(method='exact', n_init=1, max_iter=2).fit(*data(500, 4)); X, y = data(60_000, 4)",
            "MELC(method='exact', n_init=1).fit(X, y)",
        ),
        "discard": (
            "MELC(method='discard', n_init=1, max_iter=2).fit(*data(500, 4)); X, y = data(400_000, 4)",
            "MELC(method='discard', eps=1e-12, n_init=1).fit(X, y)",
        ),
        "bin": (
            "MELC(method='bin', n_init=1, max_iter=2).fit(*data(500, 4)); X, y = data(400_000, 4)",
            "MELC(method='bin', eps=1e-12, n_init=1).fit(X, y)",
        ),
        "potential": (
            "information_potential([0.0], [1.0], 1.0); x = rng.normal(size=500_000)",
            "information_potential(x, x, 1.0)",
        ),
    },
    "many rows": {
        "moments, two threads": (
            "MELC(n_init=1, max_iter=2).fit(*data(30_000, 10)); X, y = data(2_000_000, 10)",
            "MELC(n_jobs=2, n_init=10_000, random_state=0).fit(X, y)",
        ),
        "several classes together": (
            "MELC(n_init=1, max_iter=2).fit(*data(30_000, 10)); X, y = data(500_000, 10, 5)",
            "MELC(n_jobs=2, n_init=10_000, random_state=0).fit(X, y)",
        ),
        "predict": (
            "model = MELC(n_init=1, max_iter=2).fit(*data(20_000, 2)); X, y = data(8_000_000, 2)",
            "model.predict_proba(X); model.predict_proba(X); model.predict_proba(X)",
        ),
    },
    "lines": {
        "lines of many rows": (
            "AdditiveMELC(max_lines=1).fit(*data(12_000, 10)); X, y = data(3_000_000, 10)",
            "AdditiveMELC(n_jobs=2, random_state=0).fit(X, y ^ (X[:, 0] * X[:, 1] > 0)); "
            "AdditiveMELC(n_jobs=2, random_state=0).fit(X, y ^ (X[:, 0] * X[:, 1] > 0))",
        ),
        "lines of many features": (
            "AdditiveMELC(max_lines=1).fit(*data(500, 4)); X, y = data(10_000, 900); y = y ^ (X[:, 0] * X[:, 1] > 0)",
            "AdditiveMELC(n_jobs=2, random_state=0).fit(X, y)",
        ),
        "lines of several classes": (
            "AdditiveMELC(max_lines=1).fit(*data(5_000, 4)); X, y = data(200_000, 20, 12)",
            "AdditiveMELC(n_jobs=2, random_state=0).fit(X, y)",
        ),
        "predict by lines": (
            "model = AdditiveMELC().fit(*data(20_000, 2)); X, y = data(8_000_000, 2)",
            "model.predict_proba(X); model.predict_proba(X); model.predict_proba(X)",
        ),
    },
}


@pytest.mark.parametrize("scenes", SCENES.values(), ids=SCENES)
def test_an_interrupt_is_heard(scenes):
    code = BEGINNING + "".join(SCENE.format(prepare=prepare, work=work) for prepare, work in scenes.values())
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        lines: queue.Queue[str] = queue.Queue()
        assert child.stdout is not None
        threading.Thread(target=lambda: [lines.put(line.strip()) for line in child.stdout], daemon=True).start()
        try:
            for scene in scenes:
                assert lines.get(timeout=120) == "begun", scene
                with pytest.raises(queue.Empty):  # well into the work
                    lines.get(timeout=1.0)
                child.send_signal(signal.SIGINT)
                assert lines.get(timeout=HEARD_WITHIN) == "heard 1", scene
            assert child.wait(timeout=10) == 0
        finally:
            child.kill()


def many_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=140_000)
    return rng.normal(size=(len(y), 3)) + y[:, None], y


def fitted_direction(X, y):
    return MELC(n_init=1, max_iter=10, tol=1e-3, random_state=0, n_jobs=2).fit(X, y).coef_


@pytest.mark.parametrize("start", ["fork", "loky"])
def test_processes_started_after_a_fit_with_threads_fit_the_same(start):
    X, y = many_rows()
    expected = fitted_direction(X, y)
    if start == "fork":
        with multiprocessing.get_context("fork").Pool(2) as pool:
            found = [pool.apply_async(fitted_direction, (X, y)) for _ in range(2)]
            found = [each.get(timeout=120) for each in found]
    else:
        found = joblib.Parallel(n_jobs=2, backend="loky", timeout=120)(
            joblib.delayed(fitted_direction)(X, y) for _ in range(2)
        )
    for direction in found:
        np.testing.assert_array_equal(direction, expected)


def test_fits_in_several_threads_at_once_are_the_same():
    X, y = many_rows()
    expected = fitted_direction(X, y)
    with ThreadPoolExecutor(3) as pool:
        for direction in pool.map(lambda _: fitted_direction(X, y), range(3)):
            np.testing.assert_array_equal(direction, expected)


def test_no_thread_is_left_after_a_fit_that_failed(monkeypatch):
    X, y = many_rows()
    before = threading.active_count()

    def fails(*_):
        raise MemoryError

    fitted_direction(X, y)
    monkeypatch.setattr(memory.kernels, "weigh_points", fails)
    with pytest.raises(MemoryError):
        fitted_direction(X, y)
    assert threading.active_count() == before
