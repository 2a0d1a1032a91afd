"""Data as people have them: degenerate, badly scaled, far apart, heavy-tailed, and far from everything."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score

import naive
from melc import MELC, AdditiveMELC, cauchy_schwarz_divergence
from melc.arrays import unit
from melc.data.memory import MemoryRows
from melc.objective import Objective
from melc.objective.moments import MomentsDivergence
from melc.objective.penalised import PairwiseDivergence
from melc.paper.datasets import list_datasets, load
from melc.sums import Exact

pytestmark = pytest.mark.slow

METHODS = ("moments", "exact", "discard", "bin")
DEGENERATE = "A class does not vary along the direction found"


def overlapping(n=200, d=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, d))
    X[:, 0] += 1.5 * y
    return X, y


def fitted(X, y, method="moments", **settings):
    """A model of few starts; nothing but a stop at the iteration limit may be warned of."""
    eps = 1e-6 if method == "moments" else 1e-2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MELC(selection="divergence", method=method, eps=eps, n_init=2, random_state=0, **settings).fit(X, y)


def assert_sound(model, X):
    """Everything that a model says is a number, and its answers agree with each other."""
    assert np.all(np.isfinite(model.coef_))
    assert np.all(np.isfinite(model.divergence_))
    assert np.all(np.isfinite(model.thresholds_))
    assert np.all(np.diff(model.thresholds_) > 0)
    proba, decision = model.predict_proba(X), model.decision_function(X)
    assert np.all((proba >= 0) & (proba <= 1))
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert np.all(np.isfinite(decision))
    np.testing.assert_array_equal(model.predict(X), model.classes_[np.argmax(proba, axis=1)])
    np.testing.assert_array_equal(model.predict(X), model.classes_[(decision > 0).astype(int)])


# ---------------------------------------------------------------------------------- degenerate directions


def test_a_constant_feature_has_no_weight_and_changes_nothing():
    X, y = overlapping()
    wider = np.column_stack([np.full(len(X), 1e9), X, np.zeros(len(X))])
    plain, other = fitted(X, y), fitted(wider, y)
    assert other.coef_[0, 0] == other.coef_[0, 5] == 0
    assert other.divergence_ == pytest.approx(plain.divergence_, rel=1e-9)


@pytest.mark.parametrize("n", [200, 1200])
def test_duplicate_features_share_their_weight(n):
    X, y = overlapping(n)
    model = fitted(np.column_stack([X, X[:, 0], 2 * X[:, 1]]), y)
    scale = X.std(axis=0)
    assert model.coef_[0, 4] == pytest.approx(model.coef_[0, 0], rel=1e-6)
    assert model.coef_[0, 5] * 2 * scale[1] == pytest.approx(model.coef_[0, 1] * scale[1], rel=1e-6)


@pytest.mark.parametrize("n", [40, 1200])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", [np.round, lambda X: (X > 0.3).astype(float), lambda X: np.round(2 * X) / 2 + 0.1])
def test_integer_binary_and_tied_features(form, method, n):
    X, y = overlapping(n)
    model = fitted(form(X), y, method)
    assert_sound(model, form(X))
    assert model.divergence_ > 0.2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("d", [12, 40])
def test_fewer_rows_than_features_warn_with_names_and_remedy(d, method):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(12, d)), np.arange(12) % 2
    with pytest.warns(UserWarning, match=rf"{DEGENERATE}, which rests on the features 'x\d+', .*shrinkage=\"auto\""):
        model = MELC(selection="divergence", method=method, eps=1e-3, n_init=1, random_state=0).fit(X, y)
    assert_sound(model, X)
    assert_sound(model, rng.normal(size=(500, d)))
    assert_sound(fitted(X, y, method, shrinkage="auto"), X)


@pytest.mark.parametrize("method", METHODS)
def test_a_class_of_two_points_warns_and_shrinkage_mends_it(method):
    X, _ = overlapping(60)
    y = np.arange(60) < 2
    with pytest.warns(UserWarning, match=DEGENERATE):
        model = MELC(selection="divergence", method=method, eps=1e-3, n_init=2, random_state=0).fit(X, y)
    assert_sound(model, X)
    assert_sound(fitted(X, y, method, shrinkage=0.1), X)


def test_the_floor_is_the_stated_part_of_the_variance_of_all_rows():
    X = np.array([[0.0], [0.0], [1.0], [3.0]])
    floored = np.array([0.0, 0.0, 1.0, 3.0])
    floored[:2] = np.array([-1.0, 1.0]) * 1e-9 * np.std(X)
    value = cauchy_schwarz_divergence(X, [0, 0, 1, 1], [1.0])
    # The same kernels, but for the points of the first class: D is that of a class with the floor's variance.
    by_floor = naive.kernel_variances(floored, np.array([0, 0, 1, 1]), 1.0)
    assert [float(v) for v in by_floor] == pytest.approx(
        [float(v) for v in naive.kernel_variances(X[:, 0], np.array([0, 0, 1, 1]), 1.0)], rel=1e-6
    )
    assert np.isfinite(value)


# ------------------------------------------------------------------------------------------------- scales


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [200, 1000])
@pytest.mark.parametrize(
    "units",
    [1e-150, 1e150, np.array([1e-8, 1.0, 1e4, 1e8]), np.array([1e-150, 1e-3, 1e50, 1e150])],
    ids=["tiny", "huge", "mixed", "wild"],
)
def test_units_do_not_matter(units, n, method):
    """Up to rounding, which the jumps of the paper's two methods blow up."""
    X, y = overlapping(n)
    plain, model = fitted(X, y, method), fitted(X * units, y, method)
    assert_sound(model, X * units)
    tolerance = 1e-3 if method in ("discard", "bin") else 1e-9
    assert model.divergence_ == pytest.approx(plain.divergence_, rel=tolerance)
    np.testing.assert_allclose(unit(model.coef_[0] * units), unit(plain.coef_[0]), atol=10 * np.sqrt(tolerance))
    assert np.mean(model.predict(X * units) == plain.predict(X)) > 0.98


@pytest.mark.parametrize("method", METHODS)
def test_a_power_of_two_changes_no_digit(method):
    X, y = overlapping()
    plain, model = fitted(X, y, method), fitted(2.0**400 * X, y, method)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_allclose(model.thresholds_, 2.0**400 * plain.thresholds_, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_offset_does_not_matter(method, order):
    X, y = overlapping(1000)
    plain, moved = fitted(X, y, method), fitted(np.asarray(X + 1e9, order=order), y, method)
    assert_sound(moved, X + 1e9)
    tolerance = 1e-2 if method in ("discard", "bin") else 1e-5
    np.testing.assert_allclose(moved.coef_, plain.coef_, atol=10 * tolerance)
    assert np.mean(moved.predict(X + 1e9) == plain.predict(X)) > 0.98


@pytest.mark.parametrize("method", ["moments", "exact"])
def test_rows_around_a_point_have_the_same_divergence(method):
    X, y = overlapping(1000)
    rows = MemoryRows(X, y.astype(np.int8))
    v = np.array([0.3, -1.0, 2.0, 0.5])
    centre = np.array([5.0, -3.0, 100.0, 0.0])
    one, two = (Objective(r, method=method, eps=1e-9).evaluate(v) for r in (rows, rows.around(centre)))
    assert two.divergence == pytest.approx(one.divergence, abs=2e-9)
    np.testing.assert_allclose(two.gradient, one.gradient, atol=1e-7)


@pytest.mark.parametrize("method", ["exact", "moments"])
@pytest.mark.parametrize("length", [2.0**-600, 2.0**600])
def test_the_length_of_the_direction_does_not_matter(length, method):
    X, y = overlapping(1000)
    v = np.array([0.3, -1.0, 2.0, 0.5])
    plain = cauchy_schwarz_divergence(X, y, v, method=method, eps=1e-6, return_gradient=True)
    other = cauchy_schwarz_divergence(X, y, length * v, method=method, eps=1e-6, return_gradient=True)
    assert other[0] == plain[0]
    np.testing.assert_array_equal(other[1] * length, plain[1])


@pytest.mark.parametrize("units", [1e-150, 1e150])
def test_one_threshold_in_extreme_units(units):
    X = np.concatenate([np.linspace(0, 1, 30), np.linspace(4, 5, 30)])[:, None] * units
    y = np.repeat([0, 1], 30)
    model = fitted(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    assert len(model.thresholds_) == 1
    assert model.thresholds_[0] == pytest.approx(2.5 * units)


def test_a_class_that_does_not_vary_in_the_smallest_units():
    X = np.array([[3e150, 2e-150], [4e150, 3e-150], [3e150, 2e-150], [1e150, 4e-150]])
    with pytest.warns(UserWarning, match=DEGENERATE):
        model = MELC(selection="divergence", n_init=2, random_state=555).fit(X, [0, 1, 1, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_sound(model, np.vstack([X, 1e6 * X, -X]))


@pytest.mark.parametrize("factor", [1e-250, 1e-12, 1e18, 1e200])
def test_weights_that_cannot_be_counts_are_refused(factor):
    X, y = overlapping()
    with pytest.raises(ValueError, match=r"weights of class 0 add up to 1e.*counts as that many rows.*scale"):
        MELC(selection="divergence").fit(X, y, sample_weight=np.full(200, factor))


@pytest.mark.parametrize("classifier", [MELC, AdditiveMELC])
def test_weights_of_a_class_that_are_nothing_beside_another_are_refused(classifier):
    X, y = overlapping()
    weights = np.where(y == 0, 1e-9, 1.0) * np.random.default_rng(0).uniform(0.5, 1, len(y))
    with pytest.raises(
        ValueError, match=r"weights of class 0 add up to only \S+e-\d+ times .* Limit the largest weights"
    ):
        classifier().fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("factor", [2e-8, 5e12])
@pytest.mark.parametrize("n", [200, 1200])
def test_the_smallest_and_largest_weights_that_are_taken(factor, n, method):
    X, y = overlapping(n)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = MELC(selection="divergence", method=method, eps=1e-4, n_init=1, random_state=0).fit(
            X, y, sample_weight=np.full(n, factor / n * 200)
        )
    assert_sound(model, X)


@pytest.mark.parametrize("bad", [1e-200, 1e200])
def test_units_whose_squares_are_no_numbers_are_refused(bad):
    X, y = overlapping()
    X[:, 2] *= bad
    with pytest.raises(ValueError, match=r"Feature 2 has a standard deviation of .*e[-+]200.*Choose other units"):
        MELC(selection="divergence").fit(X, y)


def test_a_spread_below_rounding_is_refused():
    X = (1e9 + np.arange(20) % 2 * 1.2e-7)[:, None]
    assert len(np.unique(X)) == 2
    with pytest.raises(ValueError, match=r"rounding.*Subtract a common offset"):
        MELC(selection="divergence").fit(X, np.arange(20) % 2)


@pytest.mark.parametrize("listing", list_datasets(), ids=lambda listing: listing.entry.name)
def test_the_papers_sets_do_as_well_in_raw_units(listing):
    """libSVM's scaling undone: features with ranges up to 10⁵ and offsets, half of the rows to train on."""
    if not listing.at_hand:
        pytest.skip(f"{listing.entry.name} is not at hand: {listing.where}")
    data = load(listing.entry.name)
    rng = np.random.default_rng(0)
    low, span = rng.uniform(-1e3, 1e3, size=data.X.shape[1]), 10 ** rng.uniform(0, 5, size=data.X.shape[1])
    raw = low + span * data.X
    train = np.arange(len(data.y)) % 2 == 0
    scores = []
    for X in (data.X, raw):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", DEGENERATE)  # sonar has 104 rows and 60 features
            model = MELC(selection="divergence", n_init=4, random_state=3).fit(X[train], data.y[train])
        scores.append(balanced_accuracy_score(data.y[~train], model.predict(X[~train])))
    assert abs(scores[0] - scores[1]) <= 0.02


# --------------------------------------------------------------------------------------------- separation


@pytest.mark.parametrize("n", [60, 1200])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bandwidths", [1e3, 1e6, 1e9])
def test_classes_far_apart_are_told_apart(bandwidths, method, n):
    X, y = overlapping(n, d=3)
    X[:, 0] += 0.4 * bandwidths * y
    model = fitted(X, y, method)
    assert_sound(model, X)
    np.testing.assert_array_equal(model.predict(X), y)
    z = model.transform(X)[:, 0]
    between = (model.thresholds_ > z[y == 0].max()) & (model.thresholds_ < z[y == 1].min())
    assert between.sum() == 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [60, 1200])
def test_touching_classes(method, n):
    X = np.sort(np.random.default_rng(1).uniform(size=n))[:, None]
    y = (np.arange(n) >= n // 2).astype(int)
    model = fitted(X, y, method)
    assert_sound(model, X)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("distance", [1e2, 1e4, 1e6, 1e8, 1e9])
def test_the_certificate_holds_for_classes_far_apart(distance):
    """Beside rounding: points are known to 1e-16 of the distance, and so are the variances that D goes by."""
    rng = np.random.default_rng(2)
    codes = (np.arange(1500) % 2).astype(np.int8)
    X = rng.normal(size=(1500, 2)) + distance * codes[:, None]
    rows, v = MemoryRows(X, codes), np.array([1.0, 0.3])
    by_bins, exact = MomentsDivergence(rows, 1.0, 1e-6).evaluate(v), PairwiseDivergence(rows, 1.0, Exact()).evaluate(v)
    assert by_bins.error <= 1e-6
    assert abs(by_bins.divergence - exact.divergence) <= 1e-6 + 1e-16 * distance * abs(exact.divergence)
    if distance <= 1e4:
        np.testing.assert_allclose(by_bins.gradient, exact.gradient, rtol=1e-6)
    assert np.all(np.isfinite(by_bins.gradient))


def test_bins_of_classes_far_apart_whose_nearest_points_weigh_next_to_nothing():
    """Every pair of bins is below the smallest number; the nearest points decide."""
    X = np.array([[-1.9801653275169063], [2.502015501132172e-8], [-1.9801652665357918], [8.83653815910913e-9]])
    weights = np.array([622451.8193030426, 131359.45647809064, 6.99257601209539e-05, 1.063133503267896e-06])
    rows, v = MemoryRows(X, np.array([1, 0, 1, 0], dtype=np.int8), weights), np.ones(1)
    by_bins, exact = MomentsDivergence(rows, 1.0, 1e-6).evaluate(v), PairwiseDivergence(rows, 1.0, Exact()).evaluate(v)
    assert by_bins.divergence == pytest.approx(exact.divergence, rel=1e-9)


# -------------------------------------------------------------------------------------------------- tails


def heavy(kind, n, rng):
    y = np.arange(n) % 2
    X = {
        "normal": lambda: rng.normal(size=(n, 3)),
        "cauchy": lambda: rng.standard_cauchy(size=(n, 3)),
        "lognormal": lambda: np.exp(3 * rng.normal(size=(n, 3))),
        "outlier": lambda: np.where(np.arange(3 * n).reshape(n, 3) == 5, 1e12, rng.normal(size=(n, 3))),
    }[kind]()
    X[:, 0] += y
    return X, y


@pytest.mark.parametrize("kind", ["cauchy", "lognormal", "outlier"])
def test_heavy_tails_keep_the_certificate_and_the_work(kind):
    """Exponentials and bins, which are the time and the memory of a sum, within ten times those of normal data."""
    spent = {}
    for each in ("normal", kind):
        X, y = heavy(each, 3000, np.random.default_rng(5))
        rows = MemoryRows(X, y.astype(np.int8))
        binned, exact = MomentsDivergence(rows, 1.0, 1e-6), PairwiseDivergence(rows, 1.0, Exact())
        spent[each] = []
        for v in (np.array([1.0, 0, 0]), np.array([0.3, 1.0, -0.5]), np.array([0, 1.0, 1.0])):
            evaluation = binned.evaluate(v)
            assert abs(evaluation.divergence - exact.evaluate(v).divergence) <= 1e-6
            assert evaluation.error <= 1e-6
            spent[each].append(evaluation.n_exponentials)
    assert max(spent[kind]) < 10 * max(spent["normal"])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["cauchy", "lognormal", "outlier"])
def test_heavy_tails_can_be_fitted(kind, method):
    X, y = heavy(kind, 900, np.random.default_rng(6))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = MELC(selection="divergence", method=method, eps=1e-3, n_init=2, random_state=0).fit(X, y)
    assert_sound(model, X)


# --------------------------------------------------------------------------------------------- prediction


@pytest.mark.parametrize("gamma", [0.2, 1.0])
@pytest.mark.parametrize("n", [100, 6000])
def test_far_away_the_outermost_class_goes_on(n, gamma):
    """At ±10⁶ bandwidths the log-odds are those of the outermost rows."""
    X, y = overlapping(n, d=2)
    X[y == 1, 0] *= 1.7
    model = fitted(X, y, gamma=gamma)
    z = model.transform(X)[:, 0]
    variances = naive.kernel_variances(z, y, gamma)
    away = 1e6 * float(np.sqrt(max(variances)))
    points = np.array([z.min() - away, z.max() + away])
    rows = points[:, None] * model.coef_  # of length one, so these project on the points
    assert_sound(model, rows)
    ends = np.array([z.min(), z.max()])[:, None] * model.coef_
    np.testing.assert_array_equal(model.predict(rows), model.predict(ends))
    np.testing.assert_allclose(model.decision_function(rows), model.decision_function(ends), rtol=1e-12)


@pytest.mark.parametrize("away", [1e6, 1e12, 1e100, 1e300])
def test_nothing_breaks_at_any_distance(away):
    X, y = overlapping()
    model = fitted(X, y)
    rows = away * np.vstack([np.eye(4), -np.eye(4), np.ones((1, 4))])
    assert_sound(model, rows)


# ---------------------------------------------------------------------------------- found by random data


def test_classes_that_are_single_points():
    """No class varies along any direction: the discriminant has nothing to divide by."""
    X = np.array([[-3e6, 1e6], [-3e6, 1e6], [0.1, 0.0], [0.1, 0.0]])
    for method in METHODS:
        with pytest.warns(UserWarning, match=DEGENERATE):
            model = MELC(selection="divergence", method=method, n_init=2, max_iter=50, random_state=0).fit(
                X, [0, 0, 1, 1]
            )
        assert_sound(model, X)
        np.testing.assert_array_equal(model.predict(X), [0, 0, 1, 1])


@pytest.mark.filterwarnings("ignore:.*does not vary")
@pytest.mark.parametrize("n", [5_000, 20_000])
@pytest.mark.parametrize("rare", [False, True])
def test_a_class_whose_rows_are_all_the_same(n, rare):
    rng = np.random.default_rng(0)
    y = (np.arange(n) % (n // 3) == 1) if rare else np.arange(n) % 2 == 1
    X = rng.normal(size=(n, 3))
    X[y] = 6.0, 1.0, 2.0
    model = MELC(selection="divergence", random_state=0, n_init=2, max_iter=50).fit(X, y)
    assert np.isfinite(model.divergence_)
    np.testing.assert_array_equal(model.predict(X[y]), True)


def test_a_spike_narrower_than_the_steps_between_numbers_is_met():
    """Far from zero, the kernel of a constant class would fit between two neighbouring numbers."""
    X = 1.09e9 + np.array([[0.0], [5.3], [0.0], [2.4]])
    with pytest.warns(UserWarning, match=DEGENERATE):
        model = MELC(selection="divergence", random_state=0).fit(X, [0, 1, 0, 1])
    assert_sound(model, X)
    np.testing.assert_array_equal(model.predict(X), [0, 1, 0, 1])


def test_a_spike_whose_square_is_hardly_a_number():
    X = np.array([[-1e-150, -3.0], [-7e-151, -1.0], [-3e-151, 2.0], [2e-150, 3.0]])
    with pytest.warns(UserWarning, match=DEGENERATE):
        model = MELC(selection="divergence", n_init=1, random_state=201).fit(X, [0, 0, 1, 1])
    assert_sound(model, np.concatenate([X, [[1e300, 1e300], [-1e300, 1.0]]]))


def test_three_classes_that_are_points_next_to_nothing_apart():
    X = 3e-143 * np.array([[1.0], [0.0], [2.0], [1.0], [0.0], [2.0]])
    with pytest.warns(UserWarning, match=DEGENERATE):
        model = MELC(selection="divergence", gamma=0.1, n_init=1, random_state=443).fit(X, [1, 0, 2, 1, 0, 2])
    np.testing.assert_array_equal(model.predict(X), [1, 0, 2, 1, 0, 2])


def test_empirical_priors_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    X, y = overlapping(60)
    weights = rng.uniform(0.1, 3, size=60)
    first = MELC(selection="divergence", priors="empirical", n_init=1, random_state=0).fit(X, y, weights)
    for _ in range(5):
        order = rng.permutation(60)
        again = MELC(selection="divergence", priors="empirical", n_init=1, random_state=0).fit(
            X[order], y[order], weights[order]
        )
        np.testing.assert_array_equal(again.thresholds_, first.thresholds_)


@pytest.mark.parametrize(("options", "scale"), [({"gamma": 1e6}, 1e150), ({"bandwidth": 1e160}, 1.0)])
def test_widths_whose_squares_are_no_floats_are_refused(options, scale):
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(100, 2))
    with pytest.raises(ValueError, match="Use a smaller gamma or bandwidth, or divide"):
        MELC(random_state=0, **options).fit(X, X[:, 0] > 0)
