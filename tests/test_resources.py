"""What is asked for is checked against what there is, before it is asked for."""

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse

from melc import MELC
from melc.fit.density import Density, search_grid


def refused_without_memory(fit, match, most_bytes=20e6):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=match):
            fit()
        assert tracemalloc.get_traced_memory()[1] < most_bytes
    finally:
        tracemalloc.stop()


def test_identifiers_are_no_classes():
    X = np.random.default_rng(0).normal(size=(100_000, 2))
    y = np.arange(100_000) // 2 * 1.0  # whole numbers as floats, two rows each
    refused_without_memory(lambda: MELC().fit(X, y), r"50000 classes in 100000 rows.*join the rare ones")


def test_codes_that_dwarf_the_data_are_refused(monkeypatch):
    monkeypatch.setattr("melc.fit.validation._SMALL_CODES", 2**20)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 1)), rng.integers(2_000, size=20_000)
    for form in (X, sparse.csr_array(X)):
        refused_without_memory(
            lambda form=form: MELC().fit(form, y), r"takes 38.1 MiB, while the features take 0.2 MiB"
        )


@pytest.mark.slow
def test_some_dozens_of_classes_are_fitted():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(30), 5)
    X = np.column_stack([y // 8, y % 8]) + rng.normal(scale=0.05, size=(150, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MELC(n_init=1, max_iter=3, shrinkage=0.1, random_state=0).fit(X, y)
    assert len(model.lines_) == 30


@pytest.mark.slow
def test_an_outlier_takes_no_more_memory_than_other_rows():
    """Bins of a bandwidth up to a row 10¹² away would be 10¹³."""
    rng = np.random.default_rng(0)
    y = np.arange(5_000) % 2
    X = rng.normal(size=(5_000, 3)) + y[:, None]
    used = []
    for outlier in (0.0, 1e12):
        X[0, 0] = outlier
        for method, eps in (("moments", 1e-6), ("bin", 1e-6), ("discard", 1e-6)):
            tracemalloc.start()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                MELC(method=method, eps=eps, n_init=1, max_iter=3, random_state=0).fit(X, y)
            used.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    for usual, hard in zip(used[:3], used[3:], strict=True):
        assert hard < 10 * usual


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [1e-6, 1e-12])
def test_a_model_of_tiny_kernels_is_no_larger_than_the_data(gamma):
    """Two knots for a row at most, and no more places in its picture, though each row has a kernel for itself."""
    rng = np.random.default_rng(0)
    y = np.arange(6_000) % 2
    X = rng.normal(size=(6_000, 1)) + y[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MELC(gamma=gamma, n_init=1, max_iter=1, random_state=0).fit(X, y)
    assert len(model.lines_[0].curves[0].knots) <= 12_000
    assert len(model.lines_[0].places) <= 12_000
    assert np.mean(model.predict(X) == y) > 0.65  # alone, no row earns an interval; one threshold gives 0.69


def test_a_grid_beyond_all_measure_is_refused(monkeypatch):
    monkeypatch.setattr("melc.fit.density._MOST_GRID", 1 << 16)
    support = np.linspace(0, 1, 5_000)
    many = Density(support, np.full(5_000, 1 / 5_000), 1e-18)
    few = Density(support[:2], np.full(2, 0.5), 1.0)
    search_grid((few, few))  # what is compiled now is no memory of the refusal
    refused_without_memory(lambda: search_grid((many, many)), r"bandwidth of 1e-09.*Raise gamma")
