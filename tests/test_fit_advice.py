"""What a finished fit warns of: with the remedy, the features by name, and a line of the user's own."""

import inspect
import re
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from melc import MELC, AdditiveMELC

DEGENERATE = "A class does not vary along the direction found"


def make(n=60, d=3, n_classes=2):
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, d)) + y[:, None], y


def short(**options):
    """A search that ends at its limit."""
    return MELC(selection="divergence", max_iter=1, tol=0, n_init=1, random_state=0, **options)


ESTIMATORS = {
    "alone": short,
    "in a pipeline": lambda: make_pipeline(StandardScaler(), short()),
    "in a pipeline in a pipeline": lambda: make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), short())),
    "exact": lambda: short(method="exact"),
}


def caught_in(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return caught


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_warnings_point_at_the_line_that_called_fit(estimator):
    model = ESTIMATORS[estimator]()
    X, y = make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1
        model.fit(X, y)
    (warning,) = caught
    assert warning.category is ConvergenceWarning
    assert (warning.filename, warning.lineno) == (__file__, line)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_function_of_the_users_is_where_its_fit_is(n_classes):
    X, y = make(n_classes=n_classes)

    def train():
        return make_pipeline(StandardScaler(), short()).fit(X, y)

    caught = caught_in(train)
    assert len(caught) == (1 if n_classes == 2 else n_classes)
    first = inspect.getsourcelines(train)[1]
    assert {(each.filename, each.lineno) for each in caught} == {(__file__, first + 1)}


def test_fit_transform_points_at_its_caller_too():
    X, y = make()
    (warning,) = caught_in(lambda: short().fit_transform(X, y))
    assert warning.filename == __file__


def test_a_warning_names_the_features_and_no_more_than_a_few():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(10, 30)), np.arange(10) % 2
    (warning,) = [
        each
        for each in caught_in(lambda: MELC(selection="divergence", n_init=1, random_state=0).fit(X, y))
        if each.category is not ConvergenceWarning
    ]
    message = str(warning.message)
    assert message.startswith(f"{DEGENERATE}, which rests on the features 'x")
    assert message.count("'x") == 5
    assert " more: its density is a spike" in message
    assert 'Set shrinkage="auto"' in message
    assert warning.filename == __file__


@pytest.mark.parametrize("total", [1.0, 5.9, 601.5, 60_000.0])
@pytest.mark.parametrize("on_dask", [False, True])
def test_weights_that_are_no_numbers_of_rows_warn_with_the_remedy(total, on_dask, monkeypatch):
    X, y = make()
    data = [X, y, np.full(60, total / 60)]
    if on_dask:
        da = pytest.importorskip("dask.array")
        monkeypatch.setattr("melc.fit.intake._belong_in_memory", lambda *_: False)
        data = [da.from_array(each, chunks=(20, *each.shape[1:])) for each in data]
    caught = [
        str(warning.message)
        for warning in caught_in(lambda: MELC(selection="divergence", n_init=1, random_state=0).fit(*data))
    ]
    assert len(caught) == 1
    message = caught[0]
    assert message.startswith(f"By their weights, 60 rows count as {total:.3g}. ")
    assert message.endswith(f" for so many rows, multiply the weights by {60 / total:.6g}.")


@pytest.mark.parametrize("weight", [0.2, 1.0, 3.7, 9.0])
def test_numbers_of_rows_do_not_warn(weight):
    X, y = make()
    MELC(selection="divergence", n_init=1, random_state=0).fit(X, y, np.full(60, weight))


@pytest.mark.parametrize("kind", [MELC(n_init=1, random_state=0), AdditiveMELC(max_lines=1, random_state=0)])
@pytest.mark.parametrize(("n_heavy", "weight"), [(10, 1000), (1, 10**9)])
def test_a_few_heavy_rows_warn(kind, n_heavy, weight):
    """Whole numbers may be numbers of rows, and yet they seldom are."""
    X, y = make()
    weights = np.ones(60)
    weights[:n_heavy] = weight
    with pytest.warns(UserWarning, match=r"By their weights, (the 30|60) rows"):
        clone(kind).fit(X, y, weights)


@pytest.mark.parametrize("kind", [MELC(n_init=1, random_state=0), AdditiveMELC(max_lines=1, random_state=0)])
def test_a_row_that_has_most_of_the_weight_of_its_class_warns(kind):
    X, y = make()
    weights = np.ones(60)
    weights[0] = 150.5
    with pytest.warns(UserWarning, match=r"weights of class 0 are very unequal: its 30 rows tell as much as 1\.\d"):
        clone(kind).fit(X, y, weights)


def test_counts_of_equal_rows_do_not_warn():
    """However unequal they are: most rows of these data are equal."""
    rng = np.random.default_rng(0)
    X, y = np.round(rng.normal(size=(4_000, 2)) * (rng.random((4_000, 2)) < 0.3), 1), rng.integers(0, 2, 4_000)
    rows, counts = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    of_first = counts[rows[:, 2] == 0]
    assert of_first.sum() ** 2 / (of_first**2).sum() < len(of_first) / 10
    for kind in (MELC(n_init=1, random_state=0), AdditiveMELC(max_lines=1, random_state=0)):
        kind.fit(rows[:, :2], rows[:, 2].astype(int), counts)


@pytest.mark.parametrize("kind", [MELC(n_init=1, random_state=0), AdditiveMELC(max_lines=1, random_state=0)])
@pytest.mark.parametrize("weights", [(1000.0, 1000.0, 1.0), (1000.0, 11.0, 1.0), (2e4, 3e-3, 1.0)])
def test_weights_multiplied_as_a_warning_says_are_accepted(kind, weights):
    X, y = make()
    given = np.array(weights)[y]
    given[:2] = weights[2]
    for _ in range(3):
        messages = [str(warning.message) for warning in caught_in(partial(clone(kind).fit, X, y, given))]
        advice = [re.search(r"multiply (the weights|those of this class) by (\S+)\.$", each) for each in messages]
        if not any(advice):
            break
        (found,), (message,) = advice, messages
        of_class = re.search(r"rows of class (\d)", message)
        chosen = y == int(of_class[1]) if of_class else np.ones(60, dtype=bool)
        given = np.where(chosen, given * float(found[2]), given)
    assert not any(advice)


@pytest.mark.parametrize("other", [1.0, 100.0])
def test_light_rows_of_one_class_warn(other):
    X, y = make()
    with pytest.warns(UserWarning, match=r"rows of class 1 count as 0\.00.* multiply those of this class by 10000\."):
        MELC(n_init=1, random_state=0).fit(X, y, np.where(y == 1, 1e-4, other))


BOTH = {"MELC": MELC(n_init=2, random_state=0), "AdditiveMELC": AdditiveMELC(random_state=0)}


def far_out(offset, n=300):
    X = np.random.default_rng(0).normal(loc=[0, offset], size=(n, 2))
    return X, X[:, 1] > offset


@pytest.mark.parametrize("kind", BOTH)
def test_an_offset_of_many_deviations_does_not_matter(kind):
    X, y = far_out(1e12)
    model = clone(BOTH[kind]).fit(X, y)
    assert model.score(X, y) > 0.97
    np.testing.assert_allclose(model.feature_spread_, X.std(axis=0), rtol=1e-3)


@pytest.mark.parametrize("kind", BOTH)
def test_where_rounding_has_left_little_a_warning_says_so(kind):
    X, y = far_out(1e15)  # eight steps to a deviation
    with pytest.warns(UserWarning, match=r"feature 'x1' is only 7\.9 times the spacing of numbers at its mean"):
        model = clone(BOTH[kind]).fit(X, y)
    assert model.score(X, y) > 0.9
    # The deviation is that of the numbers as they are stored.
    assert model.feature_spread_[1] == pytest.approx((X[:, 1] - 1e15).std(), rel=1e-9)


@pytest.mark.parametrize("kind", BOTH)
def test_several_rounded_features_are_counted(kind):
    X, y = far_out(1e15)
    with pytest.warns(UserWarning, match=r"1 other feature has few steps as well\."):
        clone(BOTH[kind]).fit(X[:, [1, 1]] + [0.0, 4.0], y)


@pytest.mark.parametrize("kind", BOTH)
def test_rounding_is_no_feature(kind):
    """Sums that are one up to rounding take no part, and a warning says so."""
    X, y = make()
    parts = np.random.default_rng(1).dirichlet(np.ones(7), size=60)
    with pytest.warns(
        UserWarning, match=r"feature 'x3' is only 0\.\d+ times .* \(1\), .*, and the model does not use it"
    ):
        model = clone(BOTH[kind]).fit(np.column_stack([X, parts.sum(axis=1)]), y)
    assert model.feature_spread_[-1] == 0
    assert not model.directions_[:, -1].any()


@pytest.mark.parametrize("kind", BOTH)
def test_a_model_needs_more_than_rounding(kind):
    X = 5e15 + np.arange(60.0)[:, None] % 2
    with pytest.raises(ValueError, match="No feature has a standard deviation of more than 2 times the spacing"):
        clone(BOTH[kind]).fit(X, X[:, 0] > 5e15)


@pytest.mark.parametrize("kind", BOTH)
def test_what_single_precision_has_lost_is_told_of(kind):
    X, y = far_out(1e7)
    with pytest.warns(UserWarning, match=r"feature 'x1' is only 1 times the spacing .* information is lost\. Subtract"):
        clone(BOTH[kind]).fit(X.astype(np.float32), y)


def test_a_class_of_equal_rows_is_told_of():
    rng = np.random.default_rng(0)
    X, y = np.vstack([rng.normal(size=(60, 2)), np.zeros((2, 2))]), np.repeat(["well", "ill"], [60, 2])
    for kind, message in (("MELC", DEGENERATE), ("AdditiveMELC", "All rows of class 'ill' are equal")):
        with pytest.warns(UserWarning, match=message):
            clone(BOTH[kind]).fit(X, y)
