"""Curves that are fitted together: their sums, the fit, the knots; and monotone curves."""

import warnings

import numpy as np
import pytest
from benchmarks.bands import POPULATIONS, coverage
from hypothesis import given
from hypothesis import strategies as st

import naive
from melc import MELC, AdditiveMELC
from melc.data.hats import CurveRequest, HatBasis
from melc.export import from_json, to_json
from melc.fit.curves import fit_curves, information_of, knots_of, no_curves, smooth_shape, with_estimated_strengths
from melc.fit.joint_fit import balancing_factors, class_densities
from melc.fit.validation import monotone_signs
from melc.kernels import left_out_scores
from test_additive import assert_same_model, assert_sound, learn

RIDGES = {1: 0.3, 4: 0.05}


class Data:
    """Rows of two or four classes along two lines that both say something, weighted or not."""

    def __init__(self, n_classes, n=300, seed=0, weighted=True):
        rng = np.random.default_rng(seed)
        self.codes = (np.arange(n) % n_classes).astype(np.int8)
        self.z = rng.normal(size=(2, n))
        self.z[0] += self.codes
        self.z[1] *= 1 + (self.codes == 1)
        self.weights = rng.uniform(0.5, 3, n) if weighted else np.ones(n)
        self.factors = balancing_factors(tuple(np.bincount(self.codes, self.weights)))
        self.targets = self.weights * self.factors[self.codes]
        self.knots = [knots_of(along, 10) for along in self.z]
        self.n_blocks = 1 if n_classes == 2 else n_classes
        self.basis = naive.curve_basis(self.z, self.knots)
        self.hats = HatBasis(np.concatenate(self.knots), np.cumsum([0, *map(len, self.knots)]))

    def sums(self, hats, beta, block):
        request = CurveRequest(hats, beta, self.factors, block)
        sums = request.zeros()
        sums.add(hats.entries(self.z), self.codes, (self.weights, 1), request)
        return sums

    def curves(self, signs=(0, 0)):
        curves = no_curves(self.n_blocks)
        for along, knots, sign in zip(self.z, self.knots, signs, strict=True):
            information = information_of(along, knots, self.targets)
            curves = curves.with_line(knots, smooth_shape(len(knots), information, sign))
        return curves

    def some_beta(self, size=1.0):
        return size * np.random.default_rng(1).normal(size=(self.n_blocks, self.basis.shape[1]))

    def slope(self, curves):
        """The gradient of the penalised likelihood by the twin."""
        pulls = [curves.penalty(b) @ each for b, each in enumerate(curves.beta)]
        return naive.curve_gradient(self.basis, self.codes, self.targets, curves.beta) - pulls


@pytest.fixture(scope="module", params=[2, 4], ids=["two classes", "four classes"])
def data(request):
    return Data(request.param)


@pytest.fixture(scope="module")
def fitted(data):
    return fit_curves(data.curves(), data.sums, tol=1e-7)


# --------------------------------------------------------------------------------------------------------------- sums


@pytest.mark.parametrize("n_knots", [2, 3, 5, 6, 7, 24, 60])
@pytest.mark.parametrize("n", [1, 499, 501])
def test_entries_are_the_hats_that_are_not_zero(n_knots, n):
    """Also at knots, and beyond the outermost."""
    rng = np.random.default_rng(0)
    knots = np.cumsum(rng.uniform(0.1, 1, (2, n_knots)), axis=1)
    z = np.where(rng.random((2, n)) < 0.2, rng.choice(knots[0], (2, n)), rng.uniform(-1, 1.1 * knots.max(), (2, n)))
    basis = HatBasis(np.empty(0), np.zeros(1, dtype=np.int64)).with_knots(knots[0]).with_knots(knots[1])
    entries, dense = basis.entries(z), np.zeros((n, 1 + 2 * n_knots))
    dense[:, 0] = 1
    for at, part in zip(entries.at, entries.part, strict=True):
        dense[np.arange(n), at], dense[np.arange(n), at + 1] = 1 - part, part
    np.testing.assert_allclose(dense, naive.curve_basis(z, knots), atol=1e-12)
    weights = rng.random(n)
    np.testing.assert_allclose(entries.sums(weights, 1 + 2 * n_knots)[1:], (weights @ dense)[1:], atol=1e-12)
    last = basis.entries(z[1:])
    np.testing.assert_array_equal(entries.at[1:], last.at)
    np.testing.assert_array_equal(entries.part[1:], last.part)


@pytest.mark.parametrize("size", [0.0, 1.0, 9.0], ids=["zero", "moderate", "where rows are certain"])
def test_sums_are_those_of_the_formulas(data, size):
    beta = data.some_beta(size)
    for block in range(data.n_blocks):
        sums = data.sums(data.hats, beta, block)
        rows = data.basis, data.codes, data.targets
        assert sums.likelihood == pytest.approx(naive.curve_likelihood(*rows, beta), rel=1e-10)
        np.testing.assert_allclose(sums.gradient, naive.curve_gradient(*rows, beta), atol=1e-9)
        expected = naive.curve_hessian(data.basis, data.targets, beta, block)
        np.testing.assert_allclose(np.tril(sums.hessian), np.tril(expected), atol=1e-9)
    assert data.sums(data.hats, beta, None).hessian.size == 0


def test_the_gradient_is_the_slope_of_the_likelihood(data):
    beta, step = data.some_beta(), 1e-5
    gradient = data.sums(data.hats, beta, None).gradient
    for at in np.ndindex(beta.shape):
        moved = np.zeros_like(beta)
        moved[at] = step
        up, down = (data.sums(data.hats, beta + sign * moved, None).likelihood for sign in (1, -1))
        assert gradient[at] == pytest.approx((up - down) / (2 * step), abs=1e-5)


def test_sums_of_parts_add_up(data):
    request = CurveRequest(data.hats, data.some_beta(), data.factors, 0)
    sums = request.zeros()
    for part in (slice(0, 7), slice(7, 7), slice(7, 299), slice(299, None)):
        some = request.zeros()
        entries = data.hats.entries(np.ascontiguousarray(data.z[:, part]))
        some.add(entries, data.codes[part], (data.weights[part], 1), request)
        sums += some
    whole = data.sums(data.hats, request.beta, 0)
    assert sums.likelihood == pytest.approx(whole.likelihood, rel=1e-12)
    np.testing.assert_allclose(sums.gradient, whole.gradient, atol=1e-10)
    np.testing.assert_allclose(sums.hessian, whole.hessian, atol=1e-10)


def test_one_weight_for_all_rows(data):
    """Without weights there is a single one, and the step between weights is zero."""
    request = CurveRequest(data.hats, data.some_beta(), data.factors, 0)
    sums, expected, entries = request.zeros(), request.zeros(), data.hats.entries(data.z)
    sums.add(entries, data.codes, (np.ones(1), 0), request)
    expected.add(entries, data.codes, (np.ones(len(data.codes)), 1), request)
    assert sums.likelihood == expected.likelihood
    np.testing.assert_array_equal(sums.hessian, expected.hessian)


def test_the_information_is_the_sum_of_squared_entries():
    data = Data(2)
    for along, knots in zip(data.z, data.knots, strict=True):
        expected = np.sum(data.targets[:, None] * naive.hats(along, knots) ** 2)
        assert information_of(along, knots, data.targets) == pytest.approx(expected)


# ---------------------------------------------------------------------------------------------------------------- fit


def test_the_penalty_is_that_of_second_differences(data):
    curves = data.curves()
    expected = np.diag(np.append(0.0, np.full(data.basis.shape[1] - 1, RIDGES[data.n_blocks])))
    for line, (along, knots) in enumerate(zip(data.z, data.knots, strict=True)):
        rough = naive.roughness(len(knots), information_of(along, knots, data.targets))
        expected[curves.part(line), curves.part(line)] += rough
    np.testing.assert_allclose(curves.penalty(0), expected, atol=1e-12)


def test_the_coefficients_are_those_of_the_largest_penalised_likelihood(data, fitted):
    penalties = [fitted.penalty(b) for b in range(data.n_blocks)]
    # In units of standard errors: a step of Newton's method would change next to nothing.
    steps = [covariance @ slope for covariance, slope in zip(fitted.covariances, data.slope(fitted), strict=True)]
    exact = data.n_blocks == 1
    assert np.abs(steps).max() < (1e-6 if exact else 5e-3)
    best = naive.fitted_curves(data.basis, data.codes, data.targets, penalties)
    mine, twin = (naive.block_probabilities(data.basis, beta) for beta in (fitted.beta, best))
    np.testing.assert_allclose(mine, twin, atol=1e-6 if exact else 2e-3)


def test_the_covariance_is_the_inverse_of_the_penalised_hessian(data, fitted):
    for b, covariance in enumerate(fitted.covariances):
        hessian = naive.curve_hessian(data.basis, data.targets, fitted.beta, b) + fitted.penalty(b)
        np.testing.assert_allclose(covariance @ hessian, np.eye(len(hessian)), atol=1e-4 if data.n_blocks == 1 else 0.1)


@pytest.mark.parametrize("smoothing", [0.01, 1.0, 20.0])
def test_strengths_are_a_fixed_point(smoothing):
    data = Data(2, n=600)
    fitted = fit_curves(data.curves(), data.sums, smoothing, tol=1e-7)
    for line, rough in enumerate(shape.penalty for shape in fitted.shapes):
        part, strength = fitted.part(line), fitted.strengths[0, line]
        beta = fitted.beta[0, part]
        freedom = len(rough) - 2 - strength * np.trace(fitted.covariances[0][part, part] @ rough)
        assert 0 < freedom < len(rough) - 2
        estimate = smoothing * freedom / (beta @ rough @ beta)
        assert abs(np.log(np.clip(estimate, 1e-4 * smoothing, 1e6) / strength)) * min(1, freedom) < 0.5
    _, changed = with_estimated_strengths(fitted, 0, fitted.covariances[0], smoothing)
    assert changed < 0.5


def test_a_larger_smoothing_makes_stronger_penalties():
    data = Data(2, n=600)
    strengths = [fit_curves(data.curves(), data.sums, s).strengths[0] for s in (1e-12, 0.1, 1.0, 10.0, 1e12)]
    assert np.all(np.diff(strengths[:-1], axis=0) > 0)
    assert np.max(strengths) == 1e6  # where a curve is straight


@pytest.mark.parametrize("n_classes", [2, 4])
def test_rows_left_out_are_as_if_refitted_without_them(n_classes):
    data = Data(n_classes, n=60, weighted=False)
    fitted = fit_curves(data.curves(), data.sums, tol=1e-7)
    found = np.empty((data.n_blocks, 60))
    entries = data.hats.entries(data.z)
    rows = entries.at, entries.part, data.codes, data.weights, 1, data.factors
    left_out_scores(*rows, fitted.beta, fitted.covariances, found)
    penalties = [fitted.penalty(b) for b in range(data.n_blocks)]
    expected = np.empty_like(found)
    for i in range(60):
        others = np.arange(60) != i
        beta = naive.fitted_curves(data.basis[others], data.codes[others], data.targets[others], penalties)
        expected[:, i] = beta @ data.basis[i]
    if data.n_blocks > 1:
        found, expected = (each - each.mean(axis=0) for each in (found, expected))
    plain = fitted.beta @ data.basis.T
    plain = plain - (plain.mean(axis=0) if data.n_blocks > 1 else 0)
    moved, should = (found - plain).ravel(), (expected - plain).ravel()
    assert np.corrcoef(moved, should)[0, 1] > 0.95
    assert np.mean(np.abs(moved - should)) < 0.3 * np.mean(np.abs(should))
    assert 0.7 < moved @ should / (should @ should) < 1.3


def test_of_a_row_of_weight_k_one_copy_is_left_out():
    """So what is found for a row of weight three is found for each of three copies of it."""
    data = Data(2, n=60, weighted=False)
    fitted = fit_curves(data.curves(), data.sums)
    curves, weighted, copies = (fitted.beta, fitted.covariances), np.empty((1, 60)), np.empty((1, 180))
    once, thrice = data.hats.entries(data.z), data.hats.entries(np.repeat(data.z, 3, axis=1))
    left_out_scores(once.at, once.part, data.codes, np.full(60, 3.0), 1, data.factors, *curves, weighted)
    codes = np.repeat(data.codes, 3)
    left_out_scores(thrice.at, thrice.part, codes, np.ones(180), 1, data.factors, *curves, copies)
    np.testing.assert_allclose(copies[0, ::3], weighted[0], rtol=1e-12)


def test_a_straight_truth_gets_a_straight_curve():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 1))
    y = rng.random(2_000) < 1 / (1 + np.exp(-1.5 * X[:, 0]))
    (line,) = learn(X, y).lines_
    knots, values = line.curves[0].knots, line.curves[0].log_odds
    inner = np.abs(knots) < 2
    slope, intercept = np.polyfit(knots[inner], values[inner], 1)
    assert abs(slope - 1.5) < 0.25
    np.testing.assert_allclose(values[inner], slope * knots[inner] + intercept, atol=0.1)
    wave = rng.random(2_000) < 1 / (1 + np.exp(-3 * np.sin(3 * X[:, 0])))
    curve = learn(X, wave).lines_[0].curves[0]
    assert np.mean(np.abs(curve.at(X[:, 0]) - 3 * np.sin(3 * X[:, 0]))) < 0.5


def test_fits_of_the_same_rows_in_another_order_or_in_copies_agree():
    data = Data(2)
    fitted = fit_curves(data.curves(), data.sums, tol=1e-7)
    order = np.random.default_rng(0).permutation(len(data.codes))
    for rows, weights in ((order, data.weights[order]), (np.repeat(order, 2), np.repeat(data.weights[order] / 2, 2))):
        other = Data(2)
        other.z, other.codes = np.ascontiguousarray(data.z[:, rows]), data.codes[rows]
        other.weights, other.targets = weights, weights * data.factors[data.codes[rows]]
        found = fit_curves(other.curves(), other.sums, tol=1e-7)
        np.testing.assert_allclose(found.beta, fitted.beta, atol=1e-6)
        np.testing.assert_allclose(found.covariances, fitted.covariances, atol=1e-6)


@pytest.mark.parametrize("place", [0.0, 1e-300, -7.0, 1e9, 1e150])
@pytest.mark.parametrize("n_floats", [0, 1, 5])
def test_densities_of_rows_that_are_a_few_floats_apart(place, n_floats):
    z = place + np.spacing(place) * (np.arange(40) % (n_floats + 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        places, densities = class_densities(z, (np.arange(40) % 2).astype(np.int8), np.ones(40), 2)
    assert np.all(np.diff(places) > 0)
    assert np.isfinite(densities).all()
    assert densities.min() >= 0


def test_densities_have_area_one():
    data = Data(4)
    places, densities = class_densities(data.z[0], data.codes, data.weights, 4)
    areas = 0.5 * (densities[:, 1:] + densities[:, :-1]) @ np.diff(places)
    np.testing.assert_allclose(areas, 1, atol=0.02)


def test_bands_contain_the_truth():
    """On average over the rows; python -m benchmarks.bands has more populations."""
    assert 0.85 < coverage(POPULATIONS[1], repeats=10, n=400) <= 1


# -------------------------------------------------------------------------------------------------------------- knots


@given(
    values=st.lists(st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float), min_size=1, max_size=200),
    scale=st.sampled_from([1e-150, 1.0, 1e150]),
    most=st.sampled_from([10, 16, 24]),
)
def test_knots_ascend_within_the_rows(values, scale, most):
    z = scale * np.array(values)
    knots = knots_of(z, most)
    assert 2 <= len(knots) <= most + 2
    assert np.all(np.diff(knots) > 0)
    assert np.isfinite(knots).all()
    if len(np.unique(z)) > 1:
        assert np.isin(knots, z).all()
        assert knots[0] == z.min() or knots[-1] == z.max()
    if abs(np.median(z) - z.mean()) > 1e-11 * np.ptp(z) + 1e-14 * np.abs(z).max():
        np.testing.assert_array_equal(knots_of(-z, most), -knots[::-1])
    assert np.isfinite(information_of(z, knots, np.ones(len(z))))


@pytest.mark.parametrize("place", [0.0, 1e-300, -7.0, 1e20, 1e150])
def test_knots_of_equal_rows(place):
    low, high = knots_of(np.full(9, place), 24)
    assert low < place < high


def test_few_values_are_all_knots_and_an_outlier_does_not_change_that():
    values = np.array([0.0, 1.0, 2.0, 5.0])
    np.testing.assert_array_equal(knots_of(np.repeat(values, 50), 24), values)
    np.testing.assert_array_equal(knots_of(np.append(np.repeat(values, 50), 1e8), 24), np.append(values, 1e8))
    np.testing.assert_array_equal(knots_of(np.array([0.3, 0.1 + 0.2, 1.0]), 24), [0.3, 1.0])  # equal but for rounding
    noise = 1e-17 * np.random.default_rng(0).normal(size=200)
    assert len(knots_of(np.repeat([0.0, 1.0], 100) + noise, 24)) == 2


@pytest.mark.parametrize("far", [3.0, 1e7])
def test_rounding_does_not_move_knots(far):
    """Sums of rounded numbers have the same knots in whatever order they were added."""
    rng = np.random.default_rng(0)
    parts = np.round(rng.normal(size=(400, 3)), 1)
    parts[0] = far
    one, other = (parts[:, order] @ np.full(3, 1 / np.sqrt(3)) for order in ([0, 1, 2], [2, 1, 0]))
    other[1::2] = np.nextafter(other[1::2], np.inf)
    assert len(np.unique(one)) != len(np.unique(other))
    np.testing.assert_allclose(knots_of(one, 24), knots_of(other, 24), rtol=0, atol=1e-14 * far)


def test_an_outlier_does_not_join_values_that_lie_densely():
    """Here neighbouring values would count as equal, one after the other."""
    z = np.append(np.linspace(0, 1, 10_000), 2e8)
    assert len(knots_of(z, 24)) >= 5


def test_a_feature_most_of_whose_values_are_equal_has_knots_where_the_others_are():
    z = np.concatenate([np.zeros(9_000), np.random.default_rng(0).uniform(1, 2, 1_000)])
    knots = knots_of(z, 24)
    assert np.sum((knots >= 1) & (knots <= 2)) >= 8


def test_tails_have_knots_of_their_own():
    """A curve is not straight from the last decile to the farthest row."""
    z = np.random.default_rng(0).normal(size=10_000)
    knots = knots_of(z, 24)
    assert knots[0] == z.min()
    assert knots[-1] == z.max()
    assert np.sum(knots < np.quantile(z, 0.08)) >= 3
    assert np.sum(knots > np.quantile(z, 0.92)) >= 3
    z[0] = 1e6
    assert np.sum(np.abs(knots_of(z, 24)) < 4) >= 12


# ----------------------------------------------------------------------------------------------------------- monotone


def bumpy(n=800, seed=0):
    """Log-odds that rise and fall along the first feature, and rise along the second."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    odds = 2 * np.sin(2.5 * X[:, 0]) + X[:, 0] + X[:, 1]
    return X, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


def along(model, feature, n_features=4):
    """The log-odds of rows that differ in one feature, from far below to far above the data."""
    rows = np.tile(np.random.default_rng(5).normal(size=n_features), (801, 1))
    rows[:, feature] = np.linspace(-40, 40, 801)
    return model.decision_function(rows)


@pytest.mark.parametrize("other_features", [False, True])
@pytest.mark.parametrize("wish", ["increasing", "decreasing"])
def test_monotone_curves(wish, other_features):
    X, y = bumpy()
    sign = 1 if wish == "increasing" else -1
    free = learn(sign * X, y, features_per_line=1, full_lines="never")
    assert np.diff(sign * along(free, 0)).min() < -1e-3
    model = learn(sign * X, y, monotone={0: wish, 2: wish}, other_features=other_features)
    for feature in (0, 2):
        assert np.diff(sign * along(model, feature)).min() >= -1e-9
    assert np.ptp(along(model, 0)) > 1
    for line in model.lines_:
        assert len(line.features) == 1 or not set(line.features) & {0, 2}
        if set(line.features) & {0, 2}:
            assert np.diff(sign * line.curves[0].log_odds).min() >= 0
    assert_sound(model, sign * X)
    if other_features:
        assert set(np.flatnonzero(model.importances_)) == {0, 1, 2, 3} or any(line.minor for line in model.lines_)


def test_a_monotone_curve_against_the_data_is_constant():
    X, y = bumpy()
    model = learn(X, y, features_per_line=1, full_lines="never", monotone={1: "decreasing"}, other_features=True)
    (line,) = [line for line in model.lines_ if line.features.tolist() == [1]]
    assert np.ptp(line.curves[0].log_odds) < 1e-6
    assert_sound(model, X)


def test_a_wish_that_the_data_fulfil_changes_nothing():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(1, 2_000))
    data = Data(2)
    data.z, data.codes = z, (rng.random(2_000) < 1 / (1 + np.exp(-2 * z[0]))).astype(np.int8)
    data.weights, data.knots = np.ones(2_000), [knots_of(z[0], 10)]
    data.targets = data.weights
    data.factors = np.ones(2)
    free, monotone = (fit_curves(data.curves((sign,)), data.sums, tol=1e-7) for sign in (0, 1))
    np.testing.assert_allclose(monotone.beta, free.beta, atol=1e-5)


def test_monotone_wishes_survive_json():
    X, y = bumpy(200)
    for monotone in ({0: "increasing"}, ["increasing", None, None, None]):
        again = from_json(to_json(learn(X, y, monotone=monotone)))
        assert again.monotone == [1, 0, 0, 0]
        assert_same_model(again.fit(X, y), learn(X, y, monotone=monotone))
    broken = to_json(learn(X, y, monotone={0: 1})).replace('"monotone": [1.0', '"monotone": [5.0')
    with pytest.raises(ValueError, match=r"5\.0 for feature 0"):
        from_json(broken)


def test_all_features_monotone():
    X, y = bumpy()
    model = learn(X, y, monotone=["increasing", "increasing", "decreasing", "decreasing"])
    for feature, sign in enumerate((1, 1, -1, -1)):
        assert np.diff(sign * along(model, feature)).min() >= -1e-9
    assert {len(line.features) for line in model.lines_} == {1}


def test_monotone_features_by_name():
    frames = pytest.importorskip("pandas")
    X, y = bumpy()
    frame = frames.DataFrame(X, columns=list("abcd"))
    named = learn(frame, y, monotone={"a": "increasing", "b": None})
    assert_same_model(named, learn(X, y, monotone=["increasing", None, None, None]))
    with pytest.raises(ValueError, match=r"names the feature 'e'.*\['a', 'b', 'c', 'd'\]"):
        learn(frame, y, monotone={"e": "increasing"})


@pytest.mark.parametrize(
    ("monotone", "message"),
    [
        (["increasing"], "1 entries, but X has 4 features"),
        ({4: "increasing"}, "names the feature 4.*0 to 3"),
        ({"a": "increasing"}, "names the feature 'a'"),
        ({0: "rising"}, "'rising' for feature 0"),
        ({0: 2}, "2 for feature 0"),
        ({0: ["increasing"]}, "for feature 0"),
    ],
)
def test_wishes_that_cannot_be_read(monotone, message):
    X, y = bumpy(100)
    with pytest.raises(ValueError, match=message):
        AdditiveMELC(monotone=monotone).fit(X, y)


def test_monotone_curves_need_two_classes():
    X, _ = bumpy(90)
    with pytest.raises(ValueError, match="monotone needs two classes, but y has 3"):
        AdditiveMELC(monotone={0: "increasing"}).fit(X, np.arange(90) % 3)


def test_signs_of_wishes():
    classes = np.array([0, 1])
    assert monotone_signs(None, 2, None, classes).tolist() == [0, 0]
    assert monotone_signs([1, -1, 0, None], 4, None, classes).tolist() == [1, -1, 0, 0]
    assert monotone_signs({1: "decreasing"}, 3, None, classes).tolist() == [0, -1, 0]


# ---------------------------------------------------------------------------------------------------- several classes


def test_melc_of_several_classes_has_a_line_for_each_and_a_curve_for_each_on_every_line():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 4
    X = rng.normal(size=(400, 3)) + 2.5 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])[y]
    model = MELC(random_state=0, n_init=2).fit(X, y)
    assert model.coef_.shape == (4, 3)
    assert len(model.lines_) == 4
    assert_sound(model, X)
    for line in model.lines_:
        added = np.stack([curve.at(X @ line.direction) for curve in line.curves])
        np.testing.assert_allclose(added.sum(axis=0), 0, atol=1e-9)
        np.testing.assert_allclose(added.mean(axis=1), 0, atol=0.002)
    odds = model.decision_function(X)
    np.testing.assert_allclose(model.predict_proba(X), np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(odds, model.line_log_odds(X).sum(axis=1) + model.intercepts_)
    assert model.score(X, y) > 0.8
    shuffled = rng.permutation(400)
    assert_same_model(model, MELC(random_state=0, n_init=2).fit(X[shuffled], y[shuffled]))
