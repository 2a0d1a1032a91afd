"""Every kernel on so little data that it also runs uncompiled, line by line, for ``make coverage``."""

import numpy as np
import pytest
from scipy import sparse

from melc import MELC, AdditiveMELC
from melc.data.memory import MemoryRows
from melc.kernels import ORDER
from melc.objective.moments import MomentsDivergence
from melc.objective.penalised import PairwiseDivergence
from melc.sums import Exact
from melc.sums.bins import BinLayout

FORMS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "csr": sparse.csr_array,
}


def few_rows(kind="overlapping", n=40):
    rng = np.random.default_rng(0)
    codes = (np.arange(n) % 2).astype(np.int8)
    X = rng.normal(size=(n, 2)).astype(np.float32).astype(float)
    if kind == "apart":
        X += 40.0 * codes[:, None]
    elif kind == "outlier":
        X[0] = 2.0**20
    elif kind == "heavy":
        X = X**5
    return X, codes


def assert_same(binned, exact, tolerance):
    assert binned.divergence == pytest.approx(exact.divergence, abs=tolerance)
    np.testing.assert_allclose(binned.gradient, exact.gradient, atol=1e3 * tolerance * (1 + abs(exact.divergence)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("offset", [None, 100.0])
def test_bins_on_every_form_of_rows(form, offset):
    X, codes = few_rows()
    weights = np.random.default_rng(1).uniform(0.5, 2, size=len(codes)) if form == "rows" else None
    shifted = X if offset is None else (X + offset).astype(np.float32).astype(float)
    rows = MemoryRows(FORMS[form](shifted), codes, weights)
    if offset is not None and form != "csr":
        rows = rows.around(np.full(2, offset))
    v = np.array([0.6, -0.8])
    exact = PairwiseDivergence(MemoryRows(shifted, codes, weights), 1.0, Exact()).evaluate(v)
    assert_same(MomentsDivergence(rows, 1.0, 1e-6).evaluate(v), exact, 1e-6)


@pytest.mark.parametrize("kind", ["overlapping", "apart", "outlier", "heavy"])
def test_bins_of_points_of_every_kind(kind):
    X, codes = few_rows(kind)
    rows, v = MemoryRows(X, codes), np.array([0.6, 0.8])
    assert_same(
        MomentsDivergence(rows, 1.0, 1e-4).evaluate(v), PairwiseDivergence(rows, 1.0, Exact()).evaluate(v), 1e-4
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_features_in_bins(weighted):
    X, codes = few_rows()
    weights = np.random.default_rng(1).uniform(0.5, 2, size=len(codes)) if weighted else None
    rows, v = MemoryRows(X, codes, weights), np.array([0.6, 0.8])
    layout = BinLayout(0.0, (0.5, 0.25), (-2, -4), (4, 8))  # too short for some
    binned = rows.bin(v, layout, with_features=True)
    assert len(binned.outside)
    table = np.random.default_rng(2).normal(size=(layout.n_bins, ORDER - 1))
    found = np.tensordot(table, binned.features, axes=([0, 1], [0, 2]))
    np.testing.assert_allclose(found, rows.pull_back_binned(v, layout, table, None), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["heavy", "apart"])
def test_points_beyond_the_table(kind, weighted, monkeypatch):
    monkeypatch.setattr("melc.sums.bins._MOST_BINS", 8)
    X, codes = few_rows(kind)
    weights = np.random.default_rng(1).uniform(0.5, 2, size=len(codes)) if weighted else None
    rows, v = MemoryRows(X, codes, weights), np.array([0.6, 0.8])
    assert_same(
        MomentsDivergence(rows, 1.0, 1e-6).evaluate(v), PairwiseDivergence(rows, 1.0, Exact()).evaluate(v), 1e-6
    )


@pytest.mark.parametrize(
    "of",
    [
        lambda rows, gamma: PairwiseDivergence(rows, gamma, Exact()),
        lambda rows, gamma: MomentsDivergence(rows, gamma, 1e-6),
    ],
)
def test_directions_along_which_a_class_or_nothing_varies(of):
    X, codes = few_rows()
    for code in (0, 1):
        spiked = X.copy()
        spiked[codes == code, 0] = 1.0
        found = of(MemoryRows(spiked, codes), 1.0).evaluate(np.array([1.0, 0.0]))
        assert found.floored
        assert np.isfinite(found.divergence)
        assert np.isfinite(found.gradient).all()
    X[:, 0] = 1.0
    nothing = of(MemoryRows(X, codes), 1.0).evaluate(np.array([1.0, 0.0]))
    assert (nothing.divergence, nothing.gradient.tolist()) == (0.0, [0.0, 0.0])


def test_wide_and_narrow_classes():
    """Bins of one class are merged for the sum across; most of them are empty."""
    X, codes = few_rows()
    X[codes == 1] *= 300.0
    rows, v = MemoryRows(X, codes), np.array([1.0, 0.5])
    assert_same(
        MomentsDivergence(rows, 1.0, 1e-6).evaluate(v), PairwiseDivergence(rows, 1.0, Exact()).evaluate(v), 1e-6
    )


@pytest.mark.parametrize("method", ["moments", "exact", "discard", "bin"])
@pytest.mark.parametrize("shrinkage", [None, 0.2])
def test_a_fit_by_every_method(method, shrinkage):
    X, codes = few_rows()
    X[:, 0] += 2 * codes
    model = MELC(
        method=method, eps=1e-3, shrinkage=shrinkage, n_init=1, max_iter=40, tol=1e-2, n_jobs=1, random_state=0
    ).fit(X, codes)
    assert model.score(X, codes) > 0.75


@pytest.mark.parametrize("features_per_line", [1, 2, None])
def test_a_fit_of_lines(features_per_line):
    X, codes = few_rows()
    X[:, 1] += 3 * codes
    model = AdditiveMELC(features_per_line=features_per_line, max_lines=2, n_jobs=1, random_state=0).fit(X, codes)
    assert model.score(X, codes) > 0.75
