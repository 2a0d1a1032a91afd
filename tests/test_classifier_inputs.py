"""What may be handed to the estimator: frames, sparse matrices, float32, memory maps, labels of any kind."""

import tracemalloc
import warnings
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks.measure import in_new_process
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from melc import MELC, AdditiveMELC, cauchy_schwarz_divergence
from melc.explain import explain, nearest_change
from melc.inference import bootstrap, permutation_test
from melc.plotting import ChangeDisplay, ExplanationDisplay, FeaturePathDisplay, ProjectionDisplay
from melc.report import report_html


def make(n=200, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(np.abs(X @ np.linspace(1, 2, d)) + 0.3 * rng.normal(size=n) > 2, "outside", "inside")


def make_sparse(n, d, density, seed=0):
    """Rows of few entries; the sum of the first features tells the class, but for some noise."""
    X = sparse.random(n, d, density=density, format="csr", random_state=seed)
    score = np.asarray(X[:, :30].sum(axis=1)).ravel()
    score += 0.3 * score.std() * np.random.default_rng(seed).normal(size=n)
    return X, np.abs(score - np.median(score)) > 0.6 * score.std()


def settle(**options):
    return MELC(**({"n_init": 2, "random_state": 0} | options))


# ------------------------------------------------------------------------------------------------- frames


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_give_their_names_and_the_same_model(library):
    frames = pytest.importorskip(library)
    X, y = make()
    names = ["height", "weight", "age", "years at school"]
    frame = frames.DataFrame(dict(zip(names, X.T, strict=True)))
    plain, model = settle().fit(X, y), settle().fit(frame, frames.Series(y))
    assert list(model.feature_names_in_) == names
    assert list(model.classes_) == ["inside", "outside"]
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(frame), plain.predict(X))
    assert not hasattr(plain, "feature_names_in_")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[names[::-1]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


def test_a_refused_frame_leaves_the_names_as_they_were():
    pandas = pytest.importorskip("pandas")
    X, y = make()
    model = settle().fit(pandas.DataFrame(X, columns=list("abcd")), y)
    with pytest.raises(ValueError, match="one class"):
        model.fit(pandas.DataFrame(X[:, :2], columns=list("xy")), np.zeros(len(X)))
    assert list(model.feature_names_in_) == list("abcd")
    assert model.n_features_in_ == 4


# ------------------------------------------------------------------------------------------------- sparse


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d", "density"), [(300, 20, 0.3), (3000, 80, 0.2), (25_000, 40, 0.2)])
@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
def test_sparse_and_dense_fits_agree(n, d, density, container):
    """Small data, data in bins, and data searched through samples."""
    X, y = make_sparse(n, d, density)
    dense, thin = settle().fit(X.toarray(), y), settle().fit(container(X), y)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-6)
    np.testing.assert_allclose(thin.decision_function(container(X)), dense.decision_function(X.toarray()), atol=1e-4)
    assert np.mean(thin.predict(container(X)) == dense.predict(X.toarray())) > 0.999


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "d", "density", "seed"), [(3000, 600, 0.3, 1), (2000, 1000, 0.01, 0), (483, 371, 0.3, 553)]
)
def test_sparse_and_dense_fits_agree_after_many_iterations(n, d, density, seed, general_way):
    """So many that rounding would lead them to ends some 1e-6 apart."""
    X, y = make_sparse(n, d, density, seed)
    paper = settle(n_init=1, selection="divergence")
    dense, *thin = (clone(paper).fit(each, y) for each in (X.toarray(), X, X.tocsc()))
    assert dense.n_iter_ > 100
    for model in thin:
        assert np.linalg.norm(model.coef_ - dense.coef_) < 1e-7


@pytest.mark.slow
def test_sparse_and_dense_fits_agree_on_the_run_where_several_find_the_same_optimum(general_way):
    X, y = make_sparse(20_000, 100, 0.2)
    dense, *thin = (settle(random_state=3).fit(each, y) for each in (X.toarray(), X, X.tocsc()))
    first, second = (run.divergence for run in dense.results_)
    assert first == pytest.approx(second, rel=1e-9)
    for model in thin:
        assert np.linalg.norm(model.coef_ - dense.coef_) < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_matrix])
def test_a_hundred_thousand_columns_stay_sparse(container):
    few, y = make_sparse(2000, 30, 0.5)
    rng = np.random.default_rng(1)
    others = sparse.csr_matrix(
        (rng.random(20_000), (np.repeat(np.arange(2000), 10), rng.integers(0, 99_970, size=20_000))), (2000, 99_970)
    )
    X = container(sparse.hstack([few, others]))
    tracemalloc.start()
    try:
        with pytest.warns(ConvergenceWarning, match="limit of 10 iterations"):  # enough to see what it takes
            model = settle(n_init=1, max_iter=10).fit(X, y)
        predicted = model.predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.coef_.shape == (1, 100_000)
    assert np.mean(predicted == y) > 0.8
    # Dense it would be 1.6 GB. A few dozen directions of 0.8 MB are what the solver keeps.
    assert peak < 60e6


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_a_large_sparse_matrix_in_little_memory():
    """The whole process, with Python and compiled code, where the matrix alone would be 2.4 GB if it were dense."""
    found = in_new_process("sparse_memory", "6000", "50000", "600000", "1")
    assert found["nonzeros"] == 600_000
    assert found["accuracy"] > 0.8
    assert found["peak"] < 0.5e9


# ----------------------------------------------------------------------------------------- kinds of arrays


@pytest.mark.slow
def test_float32_is_not_copied():
    """Nothing as large as X appears in memory, let alone a copy in float64."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal(size=(150_000, 50), dtype=np.float32)
    y = X[:, 0] + X[:, 1] > 0.5 * rng.normal(size=len(X))
    settle(n_init=1).fit(X[:30_000], y[:30_000])  # compiled beforehand
    tracemalloc.start()
    try:
        model = settle(n_init=1, n_jobs=1).fit(X, y)
        predicted = model.predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.85 * X.nbytes  # samples, and a hash of eight bytes for each row
    assert np.mean(predicted == y) > 0.85
    wide = settle(n_init=1).fit(X.astype(np.float64), y)
    np.testing.assert_allclose(model.coef_, wide.coef_, atol=1e-6)
    assert model.coef_.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_read_only_memory_maps(tmp_path, order, dtype):
    X, y = make(n=3000)
    X = X.astype(dtype)
    np.save(tmp_path / "X.npy", np.asarray(X, order=order))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    plain, model = settle(n_init=1).fit(np.asarray(X, order=order), y), settle(n_init=1).fit(mapped, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(mapped), plain.predict(X))


@pytest.mark.parametrize("gamma", [1.0, 8.0])
@pytest.mark.parametrize("order", ["row by row", "as given"])
def test_rows_stored_feature_by_feature_where_the_optimum_is_flat(gamma, order, monkeypatch):
    """Noise, and densities so wide that D hardly depends on the direction; large data are not copied row by row."""
    if order == "as given":
        monkeypatch.setattr("melc.fit.intake._WORTH_DENSE", 0)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30_000, 8)), rng.integers(2, size=30_000)
    flat = settle(gamma=gamma, selection="divergence")
    plain, model = clone(flat).fit(X, y), clone(flat).fit(np.asfortranarray(X), y)
    assert model.result_.converged
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=0, atol=1e-8 if order == "as given" else 0)


def test_rows_in_another_order_where_the_optimum_is_flat():
    """Without the steps that refine the end, the coefficients differ by 1e-5 here."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30_000, 8)), rng.integers(2, size=30_000)
    order = np.random.default_rng(9).permutation(len(y))
    plain, model = (settle(selection="divergence").fit(*each) for each in ((X, y), (X[order], y[order])))
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=0, atol=1e-7)


@pytest.mark.parametrize("view", ["strided", "reversed", "integers", "list", "objects"])
def test_features_however_they_lie_in_memory(view):
    X, y = make()
    X = np.round(100 * X)
    shown = {
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
        "reversed": X[::-1].copy()[::-1],
        "integers": X.astype(np.int64),
        "list": X.tolist(),
        "objects": X.astype(object),
    }[view]
    np.testing.assert_array_equal(settle().fit(shown, y).coef_, settle().fit(X, y).coef_)


# ------------------------------------------------------------------------------------------------- labels


LABELS = {
    "strings": np.array(["no", "yes"]),
    "objects": np.array(["no", "yes"], dtype=object),
    "booleans": np.array([False, True]),
    "integers": np.array([-7, 3]),
    "whole floats": np.array([0.0, 1.0]),
    "small integers": np.array([0, 1], dtype=np.uint8),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_come_back_as_they_were(kind):
    X, y = make()
    labels = LABELS[kind]
    model = settle().fit(X, labels[(y == "outside").astype(int)])
    for found in (model.classes_, model.predict(X), model.interval_classes_):
        assert found.dtype == labels.dtype
    np.testing.assert_array_equal(model.classes_, labels)
    np.testing.assert_array_equal(model.predict(X) == labels[1], settle().fit(X, y).predict(X) == "outside")


@pytest.mark.parametrize("kind", ["category", "string", "boolean"])
def test_labels_of_pandas(kind):
    pandas = pytest.importorskip("pandas")
    X, y = make()
    values = y == "outside" if kind == "boolean" else y
    model = settle().fit(X, pandas.Series(values, dtype=kind))
    np.testing.assert_array_equal(model.predict(X) == model.classes_[1], settle().fit(X, y).predict(X) == "outside")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.linspace(0, 1, 200), "Unknown label type: continuous"),
        (np.eye(200)[:, :2], "should be a 1d array|y should|Unknown label|multilabel"),
    ],
)
def test_labels_that_are_none_are_refused(labels, message):
    with pytest.raises((ValueError, TypeError), match=message):
        settle().fit(make()[0], labels)


def objects(*values):
    """Return labels of any type as an array of 200 objects."""
    labels = np.empty(200, dtype=object)
    for k in range(200):
        labels[k] = values[k % len(values)]
    return labels


MISSING = {
    "None": objects("a", "b", None),
    "None in a list": ["a", None] * 100,
    "NaN": np.array([0.0, 1.0, np.nan, 2.0] * 50),
    "NaN among texts": objects("a", "b", np.nan),
    "NaN in a list of texts": ["a", float("nan")] * 100,
    "NaT": np.array(["2020-01-01", "NaT"] * 100, dtype="datetime64[D]"),
    "NaT in seconds": np.array([1, "NaT"] * 100, dtype="timedelta64[s]"),
    "NaT of pandas": pd.Series(pd.to_datetime(["2020-01-01", None] * 100)),
    "NA among objects": objects("a", "b", pd.NA),
    "NA among texts": pd.Series(["a", None] * 100, dtype="string"),
    "NA among integers": pd.Series([1, None] * 100, dtype="Int64"),
    "NA among truth values": pd.Series([True, None] * 100, dtype="boolean"),
    "NA in an array": pd.array([1, None] * 100, dtype="Int64"),
    "a missing category": pd.Series(["a", None] * 100, dtype="category"),
}


@pytest.mark.parametrize("kind", MISSING)
@pytest.mark.parametrize("as_table", [False, True])
def test_missing_labels_of_every_kind_are_refused_alike(kind, as_table):
    X = pd.DataFrame({"ward": ["A", "B", "C", "D"] * 50}) if as_table else make()[0]
    first = r"(None|nan|NaT|<NA>), in row [12]"
    said = (
        rf"Labels are missing in \d+ of 200 rows: the first is {first}\. Leave these rows out, which pandas\.isna\(y\)"
    )
    with pytest.raises(ValueError, match=said):
        settle().fit(X, MISSING[kind])


class Ward(Enum):
    A, B = 1, 2


class TextWard(str, Enum):  # noqa: UP042 - StrEnum is found by NumPy
    A, B, C = "a", "b", "c"


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            objects(*Ward),
            r"The labels are of the type Ward, whose values have no order\. .* \[str\(label\) for label in y\]",
        ),
        (objects({1: 2}, {3: 4}), "The labels are of the type dict, whose values have no order"),
        (
            objects(*list(TextWard)[:2]),
            r"The label <TextWard\.A: 'a'> is a text of the type TextWard, .*\[label\.value for",
        ),
        (objects(*TextWard), r"The label <TextWard\.A: 'a'> is a text of the type TextWard"),
        (objects(Decimal(1), Decimal(2)), r"type Decimal, in an array of objects.*\[str\(label\) for label in y\]"),
        (objects(date(2020, 1, 1), date(2021, 1, 1)), "type date, in an array of objects"),
        (np.array(["a", "bb"] * 100, dtype=np.dtypes.StringDType()), r"Labels of the type StringDType.*astype\(str\)"),
        (np.array([(1, 2), (3, 4)] * 100, dtype="i8, i8"), "are not supported"),
    ],
)
def test_labels_of_types_without_an_order_are_refused_in_words(labels, message):
    with pytest.raises(ValueError, match=message):
        settle().fit(make()[0], labels)


def masked(values, where):
    found = np.ma.masked_array(values, mask=np.zeros(np.shape(values), dtype=bool))
    found[where] = np.ma.masked
    return found


MASKED_X = r"X has masked values, 1 of 800, .* X\.astype\(float\)\.filled\(numpy\.nan\)"
READERS = {
    "fit": lambda model, X, y: clone(model).fit(X, y),
    "predict": lambda model, X, y: model.predict(X),
    "explain": lambda model, X, y: explain(model, X),
    "nearest change": lambda model, X, y: nearest_change(model, X),
    "bootstrap": lambda model, X, y: bootstrap(model, X, y, n=20),
    "permutation test": lambda model, X, y: permutation_test(model, X, y, n=20),
    "divergence": lambda model, X, y: cauchy_schwarz_divergence(X, y, [1, 0, 0, 0]),
    "report": lambda model, X, y: report_html(model, X, y),
    "picture of a line": lambda model, X, y: ProjectionDisplay.from_estimator(model, X, y),
    "picture of a row": lambda model, X, y: ExplanationDisplay.from_estimator(model, X, row=3),
    "picture of a change": lambda model, X, y: ChangeDisplay.from_estimator(model, X, row=3),
    "picture of numbers of features": lambda model, X, y: FeaturePathDisplay.from_estimator(model, X, y, cv=2),
}


@pytest.mark.parametrize("name", READERS)
def test_masked_values_are_refused_where_they_would_be_read(name):
    if "picture" in name:
        pytest.importorskip("matplotlib")
    X, y = make()
    model = MELC(n_init=1, random_state=0).fit(masked(X, []), y)
    read = READERS[name]
    with pytest.raises(ValueError, match=MASKED_X if "numbers" not in name else "X has masked values, 1 of 400, "):
        read(model, masked(X, (3, 0)), y)
    if name not in ("predict", "explain", "nearest change", "picture of a row", "picture of a change"):
        with pytest.raises(ValueError, match=r"y has masked values, 1 of [12]00, .* Leave these rows out"):
            read(model, X, masked(y, 3))


@pytest.mark.parametrize("classifier", [MELC, AdditiveMELC])
def test_masked_weights_are_refused(classifier):
    X, y = make()
    classifier(random_state=0).fit(X, y, masked(np.ones(200), []))
    with pytest.raises(ValueError, match=r"sample_weight has masked values, 1 of 200, .* Leave these rows out"):
        classifier(random_state=0).fit(X, y, masked(np.ones(200), 3))


def test_the_values_of_an_enum_are_labels():
    X, y = make()
    members = [TextWard.B if label == "outside" else TextWard.A for label in y]
    with pytest.raises(ValueError, match=r"an enum \[label\.value for label in y\]"):
        settle(n_init=1).fit(X, members)
    model = settle(n_init=1).fit(X, [label.value for label in members])
    assert model.classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "transform"])
def test_infinity_and_overflow_in_a_named_frame_give_no_warning_about_names(method):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    model = MELC(n_init=1, random_state=0).fit(frame, np.arange(60) % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="contains infinity"):
            getattr(model, method)(frame.assign(b=np.inf))
        assert np.isfinite(getattr(model, method)(frame.assign(b=np.nan))).all()
        assert np.isfinite(getattr(model, method)(frame.assign(a=1.7e308, b=-1.7e308))).all()


def test_a_quantity_as_target_is_refused_for_what_it_is():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"There are 400 classes in 400 rows: fewer than 4 rows .* use a regressor"):
        MELC().fit(rng.normal(size=(400, 3)), rng.permutation(400))


@pytest.mark.parametrize("kind", [MELC, AdditiveMELC])
def test_truth_values_and_texts_are_no_numbers(kind):
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    for name in sorted(set(kind().get_params()) - {"priors", "verbose", "warm_start", "other_features"}):
        for value in (True, False):
            with pytest.raises(ValueError, match=f"The '{name}' parameter of {kind.__name__} must"):
                kind(**{name: value}).fit(X, y)
    for priors in (["0.5", "0.5"], np.array([True, True]), np.array(["0.5", "0.5"])):
        with pytest.raises(ValueError, match="must be positive numbers"):
            kind(priors=priors).fit(X, y)
