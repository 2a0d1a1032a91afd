"""Far more features than rows."""

import tracemalloc

import numpy as np
import pytest

from melc import MELC


@pytest.mark.filterwarnings("ignore")
def test_very_many_features_need_no_covariance_of_them_all():
    """A covariance of 12,000 features would take a gigabyte."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 12_000)) + 0.1 * y[:, None]
    MELC(n_init=1, max_iter=2).fit(X[:, :50], y)
    tracemalloc.start()
    try:
        model = MELC(n_init=2, max_iter=20, random_state=0).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.score(X, y) > 0.98  # an interval of a single row does not earn its place
    assert peak < 20 * X.nbytes
