"""AdditiveMELC on data as people have them: degenerate, badly scaled, heavy-tailed, large, and far from everything."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from melc import MELC, AdditiveMELC
from test_additive import assert_same_model, assert_sound, learn, noisy

pytestmark = pytest.mark.slow


def anywhere(X):
    """The rows, rows between and around them, and some at the end of the world."""
    d = X.shape[1]
    far = 1e300 * np.vstack([np.eye(d)[:20], -np.eye(d)[:20], np.ones((1, d)), -np.ones((1, d))])
    near = X.mean(axis=0) + 10 * X.std(axis=0) * np.random.default_rng(0).normal(size=(50, d))
    return np.vstack([X, near, far, np.zeros((1, d))])


# -------------------------------------------------------------------------------------------------------------- units


@pytest.mark.parametrize("units", [1e-150, 1e-100, 1e-5, 1e5, 1e100, 1e150])
def test_units_do_not_matter(units):
    X, y = noisy()
    plain, model = learn(X, y), learn(units * X, y)
    assert_sound(model, anywhere(units * X))
    np.testing.assert_allclose(model.directions_, plain.directions_, atol=1e-9)
    np.testing.assert_allclose(model.decision_function(units * X), plain.decision_function(X), atol=1e-6)


def test_a_power_of_two_changes_no_digit():
    X, y = noisy()
    plain, model = learn(X, y), learn(2.0**400 * X, y)
    np.testing.assert_array_equal(model.directions_, plain.directions_)
    np.testing.assert_allclose(model.decision_function(2.0**400 * X), plain.decision_function(X), atol=1e-12)


@pytest.mark.parametrize("features_per_line", [2, None])
def test_units_of_each_feature(features_per_line):
    X, y = noisy()
    units = np.array([1e-150, 1e150, 1.0, 1e-100])
    plain, model = (learn(each, y, features_per_line=features_per_line) for each in (X, X * units))
    assert_sound(model, anywhere(X * units))
    # Products with the largest and the smallest units lose nothing but digits.
    np.testing.assert_allclose(model.decision_function(X * units), plain.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(model.importances_, plain.importances_, atol=1e-6)


@pytest.mark.parametrize(("offset", "tolerance"), [(1e4, 1e-6), (1e9, 1e-2)])
def test_an_offset_does_not_matter(offset, tolerance):
    X, y = noisy(1_000)
    plain, model = learn(X, y), learn(X + offset, y)
    assert_sound(model, anywhere(X + offset))
    assert len(model.lines_) == len(plain.lines_)
    np.testing.assert_allclose(model.directions_, plain.directions_, atol=tolerance)
    np.testing.assert_allclose(model.decision_function(X + offset), plain.decision_function(X), atol=10 * tolerance)


# --------------------------------------------------------------------------------------------------------- degenerate


def test_constant_features_have_no_weight_and_change_nothing():
    X, y = noisy()
    wider = np.column_stack([np.full(len(X), 1e9), X, np.zeros(len(X))])
    plain, model = learn(X, y), learn(wider, y)
    assert not model.directions_[:, [0, -1]].any()
    assert not model.importances_[[0, -1]].any()
    assert len(model.lines_) == len(plain.lines_)
    np.testing.assert_allclose(model.decision_function(wider), plain.decision_function(X), atol=0.2)
    full = learn(wider, y, features_per_line=None)
    assert not full.directions_[:, [0, -1]].any()
    assert not full.importances_[[0, -1]].any()


DEGENERATE = {
    "the same feature three times": lambda X, y: np.column_stack([X, X, -2 * X]),
    "one feature": lambda X, y: X[:, :1],
    "binary": lambda X, y: X > 0.3,
    "integers": lambda X, y: np.round(X),
    "the class itself": lambda X, y: np.column_stack([X, y]),
    "only the class itself": lambda X, y: y[:, None],
    "only the class itself, far away": lambda X, y: y[:, None] + 1e9,
    "the class itself twice": lambda X, y: np.column_stack([y, y]),
    "one cell": lambda X, y: (np.arange(X.size) == 5).reshape(X.shape),
    "one cell of one feature": lambda X, y: (np.arange(len(X)) == 5)[:, None],
    "every row in both classes": lambda X, y: np.repeat(X[::2], 2, axis=0),
    "every value in both classes": lambda X, y: np.repeat(X[::2, :1], 2, axis=0),
    "every row in both classes, twice the same feature": lambda X, y: np.repeat(X[::2, [0, 0]], 2, axis=0),
    "an exclusive or of points": lambda X, y: np.column_stack(
        [np.arange(len(y)) // 2 % 2, (np.arange(len(y)) + 1) // 2 % 2]
    ),
    "one class is a point": lambda X, y: np.where(y[:, None] == 1, X, 0.3),
    "both classes are points": lambda X, y: y[:, None] * [3e6, -1e6],
    "an outlier": lambda X, y: np.where(np.arange(X.size).reshape(X.shape) == 5, 1e12, X),
    "an outlier in extreme units": lambda X, y: np.where(np.arange(X.size).reshape(X.shape) == 5, 1e150, X),
    "Cauchy": lambda X, y: np.random.default_rng(1).standard_cauchy(X.shape) + y[:, None],
    "fifth powers of Cauchy": lambda X, y: np.random.default_rng(1).standard_cauchy(X.shape) ** 5 + y[:, None],
    "log-normal": lambda X, y: np.exp(5 * X),
    "more features than rows": lambda X, y: np.random.default_rng(1).normal(size=(len(y), 120)),
    "far more features than rows": lambda X, y: np.random.default_rng(1).normal(size=(len(y), 1_050)),
    **{f"{k:g} apart": lambda X, y, k=k: X + np.outer(y, [k, k, 0, 0]) for k in (1e3, 1e6, 1e12)},
    **{f"{k:g} apart, the same twice": lambda X, y, k=k: (X + k * y[:, None])[:, [0, 0, 1, 1]] for k in (1e3, 1e9)},
}
OTHER_SETTINGS = [
    {"features_per_line": 1, "full_lines": "never", "other_features": True},
    {"features_per_line": None},
    {"full_lines": "never", "other_features": True},
]


@pytest.mark.parametrize("number", range(len(DEGENERATE)), ids=list(DEGENERATE))
def test_degenerate_data(number):
    """With the default settings, and with one of the others by turns."""
    kind = list(DEGENERATE)[number]
    X, y = noisy(100)
    X = np.asarray(DEGENERATE[kind](X, y), dtype=float)
    for settings in ({}, OTHER_SETTINGS[number % 3]) if X.shape[1] < 1_000 else ({},):
        model = learn(X, y, max_lines=3, **settings)
        assert_sound(model, anywhere(X))
        if "apart" in kind or "class itself" in kind or kind == "both classes are points":
            np.testing.assert_array_equal(model.predict(X), y)


SEVERAL = [
    "the same feature three times",
    "binary",
    "one cell of one feature",
    "an outlier in extreme units",
    "fifth powers of Cauchy",
    "more features than rows",
    "1e+12 apart",
]


@pytest.mark.parametrize("kind", SEVERAL)
def test_degenerate_data_of_four_classes(kind):
    X, y = noisy(100, n_classes=4)
    X = np.asarray(DEGENERATE[kind](X, y), dtype=float)
    assert_sound(learn(X, y, max_lines=4), anywhere(X))
    assert_sound_intervals(X[:, :40], y)


def assert_sound_intervals(X, y):
    """MELC of several classes fits its curves together, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*(stopped|does not vary)", category=UserWarning)
        model = MELC(n_init=2, max_iter=20, random_state=0).fit(X, y)
    assert model.coef_.shape == (len(model.classes_), X.shape[1])
    assert_sound(model, anywhere(X))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("d", [1, 2, 20])
def test_two_rows_of_each_class(d, n_classes):
    X = np.random.default_rng(d).normal(size=(2 * n_classes, d))
    for settings in ({}, {"features_per_line": None, "max_lines": 2}, {"full_lines": "never", "max_lines": 2}):
        assert_sound(learn(X, np.arange(2 * n_classes) % n_classes, **settings), anywhere(X))


def test_points_in_the_smallest_units():
    X = 3e-143 * np.array([[1.0], [0.0], [2.0], [1.0], [0.0], [2.0]])
    assert_sound(learn(X, [1, 0, 2, 1, 0, 2]), anywhere(X))


def test_a_class_in_two_hundred():
    rng = np.random.default_rng(0)
    n = 60_300
    y, train = np.arange(n) % 201 == 0, np.arange(n) // 201 % 2 == 0
    X = rng.normal(size=(n, 5))
    X[y, :2] += 2.5
    even, empirical = (learn(X[train], y[train], priors=priors) for priors in (None, "empirical"))
    assert_sound(even, anywhere(X[:1_000]))
    found = even.predict(X[~train])
    assert found[y[~train]].mean() > 0.9
    assert found[~y[~train]].mean() < 0.1

    def log_loss(odds):
        return np.mean(np.logaddexp(0, np.where(y[~train], -odds, odds)))

    truth = 2.5 * X[~train, :2].sum(axis=1) - 2.5**2 - np.log(200)
    assert log_loss(empirical.decision_function(X[~train])) < log_loss(truth) + 0.004
    assert log_loss(truth) + 0.004 < log_loss(np.log(1 / 200)) / 2


@pytest.mark.parametrize("factor", [2e-8, 1e-3, 1e6, 5e12])
def test_the_smallest_and_largest_weights_that_are_taken(factor):
    X, y = noisy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AdditiveMELC(max_lines=100, random_state=0).fit(X, y, np.full(200, factor))
    assert_sound(model, anywhere(X))


@pytest.mark.parametrize("factor", [2e-8, 1e6, 5e12])
def test_intervals_of_several_classes_with_the_smallest_and_largest_weights(factor):
    """Here a weight is a number of rows: the ridge of a fit of curves is next to nothing beside 10¹⁵ rows."""
    X, y = noisy(n_classes=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="By their weights|.*stopped", category=UserWarning)
        model = MELC(n_init=2, random_state=0).fit(X, y, np.full(200, factor))
    assert_sound(model, anywhere(X))


def test_weights_from_next_to_nothing_to_millions():
    X, y = noisy()
    weights = 10.0 ** np.random.default_rng(0).uniform(-9, 9, 200)
    with pytest.warns(UserWarning, match="The weights of class [01] are very unequal"):
        model = AdditiveMELC(random_state=0).fit(X, y, weights)
    assert_sound(model, anywhere(X))


# -------------------------------------------------------------------------------------------------------------- large


def test_many_rows():
    """Directions from a sample, curves from all rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150_000, 10))
    y = (X[:, 2] * X[:, 7] + 0.5 * rng.normal(size=len(X)) > 0).astype(int)
    model = learn(X, y, max_lines=4, n_jobs=2)
    assert model.lines_[0].counts.sum() == 150_000
    assert set(model.lines_[0].features) == {2, 7}
    assert_sound(model, X[:1_000])
    assert_same_model(model, learn(X, y, max_lines=4, n_jobs=1))


def test_weights_are_copies_on_data_too_large_to_be_sorted():
    """Where rows are not joined, up to the sample that directions are found on: the first line is all but the same."""
    X, y = noisy(30_000, d=8)
    times = np.random.default_rng(1).integers(1, 3, size=len(y))
    weighted = learn(X, y, times, max_lines=1)
    repeated = learn(np.repeat(X, times, axis=0), np.repeat(y, times), max_lines=1)
    difference = weighted.decision_function(X) - repeated.decision_function(X)
    assert np.abs(difference).mean() < 0.05


def test_a_wide_sparse_matrix():
    rng = np.random.default_rng(0)
    X = sparse.random_array((5_000, 20_000), density=0.001, format="csr", rng=rng)
    marked = sparse.csr_array((np.ones(2_500), (np.arange(0, 5_000, 2), np.full(2_500, 12_345))), shape=X.shape)
    X, y = sparse.csr_array(X + marked), np.arange(5_000) % 2 == 0
    model = learn(X, y, max_lines=2, full_lines="never")
    assert model.directions_.shape[1] == 20_000
    assert np.argmax(model.importances_) == 12_345
    assert model.score(X, y) > 0.998
    np.testing.assert_allclose(
        learn(X.tocsc(), y, max_lines=2, full_lines="never").directions_, model.directions_, atol=1e-9
    )


def test_a_feature_that_varies_in_no_row_of_the_sample():
    X = np.zeros((30_000, 1))
    X[::14_999] = 1
    assert_sound(learn(X, np.arange(30_000) % 2), X[:100])


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_one_outlier_does_not_hide_a_feature(size):
    """A single cell of a thousand deviations used to make the kernels wider than all other rows."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    X = np.column_stack([rng.normal(size=200) + 1.7 * y, rng.normal(size=200)])
    clean = AdditiveMELC(random_state=0).fit(X, y).score(X, y)
    X[7, 0] = size
    assert AdditiveMELC(random_state=0).fit(X, y).score(X, y) > clean - 0.03


def test_a_rare_value_is_no_outlier():
    """One row in a hundred has another value: beyond eight deviations, but all that the feature has to tell."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 1000)
    rare = np.zeros(2000)
    rare[1000:1040] = 1
    X = np.column_stack([rare, rng.normal(size=2000)])
    model = AdditiveMELC(random_state=0, features_per_line=1, full_lines="never").fit(X, y)
    assert model.decision_function([[1.0, 0.0]]) - model.decision_function([[0.0, 0.0]]) > 1


# ------------------------------------------------------------------------------- order of features, names of classes


def counted(n=400, d=8, seed=2):
    """Whole numbers, so that many candidates are equally good."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(3, size=(n, d)).astype(float)
    X[:, 4:] = X[:, 4:] > 2
    return X, (X[:, 0] + X[:, 1] + 2 * rng.normal(size=n) > 6).astype(int)


@pytest.mark.parametrize("model", [AdditiveMELC(random_state=0), MELC(gamma="auto", random_state=0)])
def test_the_order_of_the_features_does_not_matter(model):
    X, y = counted()
    expected = model.fit(X, y).decision_function(X)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(X.shape[1])
        found = model.fit(X[:, order], y).decision_function(X[:, order])
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_sums_of_rounded_numbers_are_the_same_in_any_order():
    """With weights of one, many rows have the same sum up to rounding, which must not count as different values."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    X = np.round(rng.normal(size=(60, 3)) + rng.normal(size=(3, 3))[y], 1)
    models = MELC(whole_weights=1, random_state=0), MELC(whole_weights=1, random_state=0)
    expected, found = (
        model.fit(X[:, order], y).decision_function(X[:, order])
        for model, order in zip(models, ([0, 1, 2], [2, 1, 0]), strict=True)
    )
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("model", [AdditiveMELC(random_state=0), MELC(gamma="auto", random_state=0)])
def test_the_numbers_of_the_classes_do_not_matter(model):
    """Also where the number of rows of a class is a multiple of ten, so that a quantile is between two rows."""
    X, y = counted()
    rows = np.concatenate([np.flatnonzero(y == c)[:150] for c in (0, 1)])
    X, y = X[rows] + np.random.default_rng(0).normal(size=(300, 8)), y[rows]
    expected = model.fit(X, y).decision_function(X)
    np.testing.assert_allclose(model.fit(X, 1 - y).decision_function(X), -expected, atol=1e-3)


@pytest.mark.parametrize(
    ("model", "n"),
    [
        (MELC(random_state=0), 3_100),  # more rows than directions are compared on
        (MELC(gamma="auto", random_state=0), 600),
        (AdditiveMELC(features_per_line=None, random_state=0), 600),
    ],
)
def test_the_order_of_three_classes_does_not_matter(model, n):
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 4)) + rng.normal(size=(3, 4))[y]
    X[:, 3] **= 2
    expected = model.fit(X, y).decision_function(X)
    order = np.array([1, 2, 0])
    np.testing.assert_allclose(model.fit(X, order[y]).decision_function(X)[:, order], expected, atol=1e-3)
