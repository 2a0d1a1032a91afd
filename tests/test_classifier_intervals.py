"""Every interval of a fitted model has training rows of its class, whatever the data are stored in."""

import json

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_moons

from export_cases import onnx_session, run_sql
from melc import MELC
from melc.data.memory import MemoryRows
from melc.export import export_text, from_json, to_json, to_sql
from melc.paper import solve
from melc.paper.solve import Split
from melc.plotting import ProjectionDisplay


def moons():
    return make_moons(400, noise=0.2, random_state=0)


DATA = {
    "moons": moons,
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "three classes": lambda: load_iris(return_X_y=True),
}


def far_along(model, k, distance):
    """A row whose projection on direction k is ``distance``."""
    return distance * model.coef_[[k]]


def assert_every_interval_has_rows(model, X, y, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    z = X @ model.coef_.T
    for k, line in enumerate(model.lines_):
        interval, n = np.searchsorted(line.thresholds, z[:, k], side="right"), len(line.codes)
        counts = np.stack([np.bincount(interval, weights * (y == label), n) for label in model.classes_], axis=1)
        np.testing.assert_allclose(line.counts, counts, rtol=1e-12)
        if len(model.classes_) == 2:  # of more, a line need not favour the class of its rows: the lines add up
            assert counts[np.arange(n), line.codes].min() > 0


@pytest.mark.parametrize("priors", [None, "empirical"])
@pytest.mark.parametrize("name", DATA)
def test_no_interval_is_without_training_rows_of_its_class(name, priors):
    X, y = DATA[name]()
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    options = {"n_init": 2, "max_iter": 2000, "random_state": 0, "priors": priors}
    for given in (None, weights):
        assert_every_interval_has_rows(MELC(**options).fit(X, y, given), X, y, given)


def test_sparse_rows_and_rows_on_dask(monkeypatch):
    da = pytest.importorskip("dask.array")
    X, y = moons()
    paper = MELC(n_init=2, random_state=0, selection="divergence")
    expected = clone(paper).fit(X, y)
    monkeypatch.setattr("melc.fit.intake._WORTH_DENSE", 0)
    monkeypatch.setattr("melc.fit.intake._belong_in_memory", lambda *_: False)
    on_dask = clone(paper).fit(da.from_array(X, chunks=(150, 2)), da.from_array(y, chunks=150))
    for model in (clone(paper).fit(sparse.csr_matrix(X), y), on_dask):
        assert_every_interval_has_rows(model, X, y)
        np.testing.assert_allclose(model.thresholds_, expected.thresholds_, atol=1e-4)


def test_far_from_all_rows_the_outermost_class_goes_on():
    """The second density of moons is the wider one, so that it used to win 27 deviations out on the other side too."""
    X, y = moons()
    model = MELC(n_init=2, random_state=0).fit(X, y)
    assert len(model.thresholds_) == 1
    z = model.transform(X)[:, 0]
    for sign, outermost in ((-1, z.min()), (1, z.max())):
        row, last = far_along(model, 0, sign * 1e6), far_along(model, 0, outermost)
        assert model.predict(row) == model.predict(last)
        np.testing.assert_allclose(model.decision_function(row), model.decision_function(last), rtol=1e-9)


def test_an_interval_that_does_not_earn_its_place_is_joined():
    """A single row of the other class beyond all others once made an interval of its own."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, 100), rng.normal(4, 1, 100), [-6.0]])[:, None]
    y = np.array([0] * 100 + [1] * 101)
    model = MELC(random_state=0).fit(X, y)
    assert model.interval_classes_.tolist() == [0, 1]
    assert model.predict([[-6.0]]) == [0]
    assert abs(model.predict_proba([[-6.0]])[0, 0] - 0.5) < 0.05
    # Forty of them do.
    X, y = np.concatenate([X, rng.normal(-6, 0.3, (40, 1))]), np.append(y, [1] * 40)
    assert MELC(random_state=0).fit(X, y).interval_classes_.tolist() == [1, 0, 1]


def test_text_and_documents_show_the_joined_intervals():
    X, y = load_breast_cancer(return_X_y=True)
    model = MELC(n_init=1, max_iter=2000, random_state=0, selection="divergence").fit(X, y)
    text = export_text(model, digits=3)
    assert "(0 of class 0, 0 of class 1)" not in text
    (line,) = json.loads(to_json(model))["lines"]
    assert all(sum(counts) > 0 for counts in line["counts"])
    np.testing.assert_array_equal(from_json(to_json(model)).predict(X), model.predict(X))


@pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")
def test_queries_and_graphs_have_the_joined_intervals():
    """The rows of moons are on either side of one threshold, and there is no second one far away."""
    X, y = moons()
    model = MELC(n_init=2, random_state=0).fit(X, y)
    far = np.concatenate([far_along(model, 0, -1e6), far_along(model, 0, 1e6)])
    expected = model.predict(far).tolist()
    assert sorted(expected) == [0, 1]
    assert [row[-1] for row in run_sql(to_sql(model), pd.DataFrame(far, columns=["x0", "x1"]))] == expected
    labels, decision, _ = onnx_session(model).run(None, {"X": far})
    assert labels.tolist() == expected
    np.testing.assert_allclose(decision, model.decision_function(far))


def test_pictures_show_the_joined_intervals():
    X, y = moons()
    model = MELC(n_init=2, random_state=0).fit(X, y)
    shown = ProjectionDisplay.from_estimator(model, X, y)
    plt.close(shown.figure_)
    assert len(shown.threshold_lines_) == 1
    bands = [str(label) for label in model.interval_classes_]
    assert [text.get_text() for text in shown.ax_.texts] == bands  # and no note of thresholds outside


def test_the_evaluation_of_the_paper_compares_densities_everywhere():
    """A test row far beyond the rows of the first class is given to the second, whose density is the wider one."""
    X, y = moons()
    model = MELC(n_init=2, random_state=0).fit(X, y)
    side = -1 if model.interval_classes_[0] == 0 else 1
    test_rows = np.concatenate([X, far_along(model, 0, side * 1e6)])
    fold = Split(X, y, test_rows, np.append(model.predict(X), 1))
    accuracy = solve._accuracy(fold, MemoryRows(X, y.astype(np.int8)), model.coef_[0], model.gamma)
    assert accuracy == 1
    assert model.predict(test_rows)[-1] == 0
