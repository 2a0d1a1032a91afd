"""Each recipe of CONTRIBUTING.md is a file; it works as the page says."""

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from export_cases import AWKWARD_NAMES, CASES, additive, fitted_case, rings, short
from melc import MELC, cauchy_schwarz_divergence
from melc._sklearn import StrOptions
from melc.fit import intake
from melc.fit.intake import STORAGES, Storage
from melc.fit.solvers import SOLVERS, Solver
from melc.objective import METHODS, penalised
from melc.sums import SUMS
from recipes import bfgs_solver, export_csv, npy_storage, window_sum

ROOT = Path(__file__).parents[1]
RECIPES = sorted((ROOT / "tests" / "recipes").glob("*.py"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_the_page_shows_the_file(path):
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert f"```python\n# tests/recipes/{path.name}\n{path.read_text(encoding='utf-8')}```" in page


def two_classes(n=300, d=3):
    """Return rows of two classes that differ in the first feature, shape (n, d), and their labels, (n,)."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + 2 * np.outer(y, np.eye(d)[0]), y


@pytest.fixture
def window(monkeypatch):
    """Register the summation method, as the line in SUMS would when the package is imported."""
    monkeypatch.setitem(SUMS, "window", window_sum.Window)
    monkeypatch.setitem(METHODS, "window", penalised._pairwise("window"))
    monkeypatch.setitem(MELC._parameter_constraints, "method", [StrOptions(set(METHODS))])


@pytest.mark.usefixtures("window")
def test_the_summation_method_with_a_wide_window_is_the_exact_one():
    X, y = two_classes()
    v = np.array([1.0, 0.5, 0])
    exact = cauchy_schwarz_divergence(X, y, v, method="exact")
    assert cauchy_schwarz_divergence(X, y, v, method="window", eps=100.0) == pytest.approx(exact, abs=1e-10)
    assert cauchy_schwarz_divergence(X, y, v, method="window", eps=0.01) != pytest.approx(exact, abs=1e-3)
    with pytest.raises(ValueError, match="eps"):
        cauchy_schwarz_divergence(X, y, v, method="window")
    options = {"n_init": 1, "random_state": 0}
    model = MELC(method="window", eps=100.0, **options).fit(X, y)
    assert model.score(X, y) == pytest.approx(MELC(method="exact", **options).fit(X, y).score(X, y), abs=0.01)


@pytest.fixture
def bfgs(monkeypatch):
    """Register the solver, as the line in SOLVERS would when the package is imported."""
    monkeypatch.setitem(SOLVERS, "bfgs", Solver("BFGS of SciPy", bfgs_solver.bfgs))
    monkeypatch.setitem(MELC._parameter_constraints, "solver", [StrOptions(set(SOLVERS))])


@pytest.mark.usefixtures("bfgs")
def test_the_solver_finds_the_same_optimum():
    X, y = two_classes()
    options = {"n_init": 2, "random_state": 0, "tol": 1e-7}
    found, expected = (MELC(solver=solver, **options).fit(X, y) for solver in ("bfgs", "cg"))
    assert abs(found.coef_[0] @ expected.coef_[0]) == pytest.approx(1, abs=1e-8)


@pytest.mark.usefixtures("bfgs")
def test_the_solver_says_if_it_has_not_converged():
    X, y = two_classes()
    with pytest.warns(ConvergenceWarning, match="limit of 1 iteration"):
        MELC(solver="bfgs", n_init=1, max_iter=1, selection="divergence", random_state=0).fit(X, y)


@pytest.fixture
def npy_files(monkeypatch):
    """Register the storage."""
    monkeypatch.setattr(intake, "STORAGES", [*STORAGES, Storage(*NPY)])


NPY = (npy_storage.holds, npy_storage.collect, npy_storage.gather)


@pytest.mark.usefixtures("npy_files")
@pytest.mark.parametrize("n", [300, 21_000])  # brought into memory, and read from the file
@pytest.mark.parametrize("weighted", [False, True])
def test_the_storage_gives_the_model_of_the_same_rows_in_memory(n, weighted, tmp_path):
    X, y = two_classes(n, d=10)
    weights = 0.5 + y if weighted else None
    np.save(tmp_path / "X.npy", X)
    options = {"n_init": 1, "random_state": 0}
    found = MELC(**options).fit(tmp_path / "X.npy", y, sample_weight=weights)
    expected = MELC(**options).fit(X, y, sample_weight=weights)
    assert found.n_features_in_ == 10
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-6)
    assert np.mean(found.predict(X) == expected.predict(X)) > 0.999


@pytest.mark.usefixtures("npy_files")
def test_the_storage_refuses_what_rows_in_memory_are_refused_for(tmp_path):
    X, y = two_classes(21_000, d=10)
    X[5, 2] = np.nan
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match="NaN"):
        MELC().fit(tmp_path / "X.npy", y)
    np.save(tmp_path / "X.npy", np.nan_to_num(X))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MELC().fit(tmp_path / "X.npy", y[1:])


def apply_csv(text, frame):
    """Return labels and log-odds, shape (n_rows, n), by a table of the recipe."""
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == ["part", "class", "line", "at", "value"]
    classes = np.array([label for part, label, *_ in rows if part == "class"])
    odds = {label: np.full(len(frame), float(value)) for part, label, _, _, value in rows if part == "constant"}
    for number in sorted({line for _, _, line, _, _ in rows if line}, key=int):
        own = [row for row in rows if row[2] == number]
        z = sum(frame[name].to_numpy() * float(weight) for part, _, _, name, weight in own if part == "weight")
        for label, total in odds.items():
            points = [(float(at), float(value)) for part, of, _, at, value in own if (part, of) == ("log-odds", label)]
            total += np.interp(z, *np.transpose(points))
    found = np.column_stack(list(odds.values()))
    codes = (found[:, 0] > 0).astype(int) if len(classes) == 2 else np.argmax(found, axis=1)
    return classes[codes], found


@pytest.mark.parametrize("name", CASES)
def test_the_table_predicts_as_the_model_does(name):
    model, rows = fitted_case(name)
    labels, odds = apply_csv(export_csv.to_csv(model), rows)
    np.testing.assert_array_equal(labels, model.predict(rows).astype(str))
    near = (np.abs(rows).max(axis=1) < 100).to_numpy()  # further away, the order of a sum matters
    expected = model.decision_function(rows).reshape(len(rows), -1)
    np.testing.assert_allclose(odds[near], expected[near], atol=1e-9)


@pytest.mark.parametrize("estimator", [short(), additive()])
def test_awkward_names_and_scalers(estimator):
    X, y = rings(d=6)
    frame = pd.DataFrame(X, columns=[*AWKWARD_NAMES[:3], 'a, "b"', "line\nbreak", "return\r"])
    pipeline = make_pipeline(StandardScaler(), estimator).fit(frame, np.where(y == "inner", "a,b", "c\n"))
    np.testing.assert_array_equal(apply_csv(export_csv.to_csv(pipeline), frame)[0], pipeline.predict(frame))
