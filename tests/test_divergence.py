"""The two public functions: values, agreement of methods, and errors that help."""

import math
import re

import numpy as np
import pytest

import naive
from melc import cauchy_schwarz_divergence, information_potential


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[25:] += [1.0, 0.0, -0.5]
    y = np.repeat(["no", "yes"], [25, 35])
    return X, y, np.array([0.7, -0.2, 0.4])


def test_divergence_and_gradient_are_the_naive_ones(data):
    X, y, v = data
    codes = (y == "yes").astype(int)
    for gamma in (0.1, 1.0, 2.0):
        value, gradient = cauchy_schwarz_divergence(X, y, v, gamma=gamma, return_gradient=True)
        assert value == pytest.approx(naive.divergence(X, codes, v, gamma), rel=1e-10)
        np.testing.assert_allclose(
            gradient, naive.FrozenDivergence(X, codes, v, gamma).gradient(), rtol=1e-7, atol=1e-9
        )
        assert cauchy_schwarz_divergence(X, y, v, gamma=gamma) == value


def test_equal_classes_have_no_divergence(data):
    X, _, v = data
    y = np.repeat([0, 1], len(X))
    assert cauchy_schwarz_divergence(np.vstack([X, X]), y, v) == pytest.approx(0, abs=1e-12)


def test_divergence_is_never_negative():
    """Cauchy and Schwarz."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        X, y = rng.normal(size=(20, 2)), np.repeat([0, 1], [7, 13])
        assert cauchy_schwarz_divergence(X, y, rng.normal(size=2), gamma=rng.uniform(0.1, 2)) >= -1e-12


def test_labels_of_any_kind_and_lists(data):
    X, y, v = data
    expected = cauchy_schwarz_divergence(X, y, v)
    for labels in (y.tolist(), (y == "yes") * 7 - 3, y == "yes", (y == "yes") * 1.0):
        assert cauchy_schwarz_divergence(X.tolist(), labels, v.tolist()) == expected


def test_swapped_labels(data):
    X, y, v = data
    swapped = np.where(y == "yes", "no", "yes")
    assert cauchy_schwarz_divergence(X, swapped, v) == pytest.approx(cauchy_schwarz_divergence(X, y, v), rel=1e-13)


@pytest.mark.parametrize("method", ["exact", "discard", "bin"])
def test_zero_weight_is_absence_and_weight_k_is_k_copies(data, method):
    X, y, v = data
    copies = np.random.default_rng(2).integers(0, 4, size=len(y))
    weighted = cauchy_schwarz_divergence(X, y, v, method=method, eps=0.05, sample_weight=copies, return_gradient=True)
    repeated = cauchy_schwarz_divergence(
        np.repeat(X, copies, axis=0), np.repeat(y, copies), v, method=method, eps=0.05, return_gradient=True
    )
    assert weighted[0] == pytest.approx(repeated[0], rel=1e-11)
    np.testing.assert_allclose(weighted[1], repeated[1], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("method", ["discard", "bin"])
def test_approximate_divergence_tends_to_exact(data, method):
    X, y, v = data
    exact = cauchy_schwarz_divergence(X, y, v)
    errors = [abs(cauchy_schwarz_divergence(X, y, v, method=method, eps=e) - exact) for e in (1e-2, 1e-10)]
    assert errors[0] > 1e-7 > errors[1]


def test_information_potential_is_the_integral_of_the_product():
    """Two kernel densities of variances summing to V, multiplied and integrated numerically."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=20), rng.normal(size=30) + 1
    t = np.linspace(-12, 12, 20_001)
    f, g = (np.exp(naive.log_density(t, p, V)) for p, V in ((x, 0.2), (y, 0.1)))
    integral = float(np.sum(f * g) * (t[1] - t[0]))
    assert information_potential(x, y, 0.2 + 0.1) == pytest.approx(integral, rel=1e-10)
    assert information_potential(x, y, 0.3) == pytest.approx(naive.ip(x, y, 0.3), rel=1e-13)


def test_information_potential_of_far_points_is_zero_not_an_error():
    assert information_potential([0.0], [1e9], 1.0) == 0.0


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("method", ["exact", "moments", "discard", "bin"])
@pytest.mark.parametrize("n_rows", [200, 2000])
def test_offsets_do_not_matter_to_the_gradient(method, offset, n_rows):
    """Up to the rounding of the rows themselves. A constant feature has no gradient."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(n_rows, 2)), np.zeros(n_rows)])
    y, v = rng.integers(2, size=n_rows), np.array([1.0, 0.5, 0.1])
    options = {"method": method, "eps": 1e-6, "return_gradient": True}
    D, gradient = cauchy_schwarz_divergence(X, y, v, **options)
    moved_D, moved = cauchy_schwarz_divergence(X + offset, y, v, **options)
    assert moved_D == pytest.approx(D, rel=1e-13 * offset + 1e-6)
    np.testing.assert_allclose(moved, gradient, atol=1e-14 * offset + 2e-6)


@pytest.mark.parametrize("scale", [1e-289, 1e-160, 1e160, 1e288])
@pytest.mark.parametrize("method", ["exact", "moments"])
def test_the_range_of_units_that_is_right(data, method, scale):
    X, y, v = data
    expected = cauchy_schwarz_divergence(X, y, v, method=method, return_gradient=True)
    found = cauchy_schwarz_divergence(X * scale, y, v, method=method, return_gradient=True)
    error = 1e-6 if method == "moments" else 0.0  # bins have widths of powers of two, so they differ with the units
    assert found[0] == pytest.approx(expected[0], rel=1e-9, abs=error)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-7, atol=1e-9 + error)


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-295, 1e295, 1e301, 3e307])
@pytest.mark.parametrize("method", ["exact", "moments", "discard", "bin"])
def test_units_beyond_the_range_of_squares_are_refused(data, method, scale):
    X, y, v = data
    with pytest.raises(ValueError, match=r"projections on v are about .* Choose other units for the features"):
        cauchy_schwarz_divergence(X * scale, y, v, method=method, eps=0.1, return_gradient=True)


@pytest.mark.parametrize("scale", [1e-160, 1e160])
@pytest.mark.parametrize("method", ["discard", "bin"])
def test_methods_of_the_paper_cannot_scale(data, method, scale):
    X, y, v = data
    with pytest.raises(ValueError, match=rf"with method='{method}' they must be between 1e-150 and 1e\+150"):
        cauchy_schwarz_divergence(X * scale, y, v, method=method, eps=0.1)


def test_a_gradient_that_overflows_is_refused(data):
    X, y, v = data
    with pytest.raises(ValueError, match="gradient overflows"):
        cauchy_schwarz_divergence(X * 1e300, y, 1e-310 * v, return_gradient=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 0}, "gamma=0 must be a positive"),
        ({"gamma": -1.5}, r"gamma=-1\.5.*1\.0 is Silverman"),
        ({"gamma": math.nan}, "gamma=nan"),
        ({"gamma": math.inf}, "gamma=inf"),
        ({"method": "magic"}, r"method='magic'.*choose one of.*exact"),
        ({"method": "bin"}, r"method='bin' needs eps.*eps=0\.01"),
        ({"method": "discard", "eps": 0}, "eps=0 must be positive"),
        ({"method": "bin", "eps": -0.1}, r"eps=-0\.1 must be positive"),
        ({"method": "bin", "eps": math.nan}, "eps=nan must be positive"),
        ({"v": [0.0, 0.0, 0.0]}, "nonzero finite vector"),
        ({"v": [1.0, math.nan, 0.0]}, "nonzero finite vector"),
        ({"v": [1.0, 2.0]}, r"shape \(2,\).*3 features"),
        ({"y": ["one"] * 60}, r"two different labels; found 1: \['one'\]"),
        ({"y": list(range(60))}, "two different labels; found 60"),
        ({"y": ["a", "b"]}, "inconsistent numbers of samples"),
        ({"sample_weight": [-1.0] * 60}, "[Nn]egative"),
        ({"sample_weight": [1e-300] * 60}, "weights of class .* add up to .*e-299.*scale the weights"),
        ({"sample_weight": [1e300] * 60}, r"weights of class .* add up to .*e\+301.*scale the weights"),
    ],
)
def test_bad_arguments_are_named_with_the_remedy(data, options, message):
    X, y, v = data
    arguments = {"X": X, "y": y, "v": v} | options
    with pytest.raises(ValueError, match=message):
        cauchy_schwarz_divergence(**arguments)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers(data, value):
    X, y, v = data
    X[3, 1] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        cauchy_schwarz_divergence(X, y, v)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        information_potential(X[:, 1], X[:, 0], 1.0)


@pytest.mark.parametrize("variance", [0.0, -1.0, math.nan, math.inf, 1e-310, 1e301])
def test_information_potential_needs_a_variance(variance):
    with pytest.raises(ValueError, match=re.escape(f"variance={variance}")):
        information_potential([0.0], [1.0], variance)


def test_information_potential_of_points_whose_squares_overflow():
    with pytest.raises(ValueError, match=r"y holds 1e\+160; the square"):
        information_potential([0.0], [-1e160], 1.0)
    for method in ("exact", "moments", "discard", "bin"):
        for variance in (1e-150, 1e150):
            for points in ([0.0, 1e-155], [1.0, -1e150]):
                found = information_potential(points, [1e-155], variance, method=method, eps=1e-3)
                assert 0 <= found < math.inf


def test_information_potential_needs_points_and_a_known_method():
    with pytest.raises(ValueError, match="0 sample"):
        information_potential([], [1.0], 1.0)
    with pytest.raises(ValueError, match="method='nope'"):
        information_potential([0.0], [1.0], 1.0, method="nope")
    with pytest.raises(ValueError, match="needs eps"):
        information_potential([0.0], [1.0], 1.0, method="discard")
