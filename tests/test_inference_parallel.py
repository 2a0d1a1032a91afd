"""Resampling on several processes gives the same as on one and ends promptly; the intervals contain the truth."""

import signal
import subprocess
import sys

import numpy as np
import psutil
import pytest
from benchmarks.coverage import Case, band, coverage

from melc import MELC, AdditiveMELC
from melc.inference import bootstrap, permutation_test

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", [MELC, AdditiveMELC])
def test_the_number_of_processes_does_not_matter(kind):
    X, y = band(np.random.default_rng(0), 120)
    model = kind(random_state=0).fit(X, y)
    one, two = (bootstrap(model, X, y, n=20, random_state=3, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.coef.low, two.coef.low)
    assert one.accuracy == two.accuracy
    assert one.divergence == two.divergence
    one, two = (permutation_test(model, X, y, n=8, random_state=3, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.null, two.null)


CHILD = """
import numpy as np
from melc import MELC
from melc.inference import bootstrap

rng = np.random.default_rng(0)
y = rng.integers(2, size=500)
X = rng.normal(size=(500, 4)) + y[:, None]
model = MELC(n_init=1, random_state=0).fit(X, y)
for n_jobs in (None, 2):
    bootstrap(model, X, y, n=20, n_jobs=n_jobs)
    print("begun", flush=True)
    try:
        bootstrap(model, X, y, n=100_000, n_jobs=n_jobs, random_state=0)
    except KeyboardInterrupt:
        print("heard", flush=True)
        input()
"""


def test_an_interrupt_ends_all_processes():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", CHILD], **pipes) as child:
        try:
            for _ in ("one process", "two more"):
                assert child.stdout.readline() == "begun\n"
                with pytest.raises(subprocess.TimeoutExpired):  # well into the work
                    child.wait(1.0)
                child.send_signal(signal.SIGINT)
                assert child.stdout.readline() == "heard\n"
                others = [each for each in psutil.Process(child.pid).children() if "LokyProcess" in str(each.cmdline())]
                assert psutil.wait_procs(others, timeout=10)[1] == []
                child.stdin.write("\n")
                child.stdin.flush()
            assert child.wait(timeout=20) == 0
        finally:
            child.kill()


def test_intervals_contain_the_truth():
    """A small version of ``python -m benchmarks.coverage``, with samples so few that 75 % may stand for 90 %."""
    shares = coverage(Case(band, 200), repeats=12, n=20, jobs=1, large=10_000)
    for name in ("weights", "thresholds", "divergence", "accuracy"):
        assert shares[name] >= 0.75, name
    assert np.mean([shares[name] for name in ("weights", "thresholds", "divergence", "accuracy")]) < 0.985
