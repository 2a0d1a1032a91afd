"""Directions of few features and of whole-number weights."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from melc import MELC, cauchy_schwarz_divergence
from melc.data.memory import MemoryRows
from melc.export import export_text, from_json, to_json
from melc.fit.balance import Balance
from melc.fit.columns import _with_whole_scores
from melc.fit.coordinates import Coordinates
from melc.fit.evidence import Judge
from melc.fit.few_features import FewFeatures, whole_weights
from melc.fit.search import Problem, Settings
from melc.model.columns import Category
from naive import best_exchange, best_whole_weights, distance_of_means
from tables_data import mixed_frame


def two_classes(n: int = 300, d: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which three features tell the class, one of them by both of its ends."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.logspace(-2, 3, d)
    z = X / X.std(axis=0)
    return X, (np.abs(2 * z[:, 1] - z[:, 4] + 0.7 * z[:, 6] + 0.5 * rng.normal(size=n)) > 1.5).astype(int)


def search_of(X: np.ndarray, y: np.ndarray, most: int, selection: str) -> FewFeatures:
    rows = MemoryRows(X, y.astype(np.int8), None, 1)
    coordinates = Coordinates(rows)
    judge = Judge(coordinates, 1.0) if selection == "likelihood" else None
    return FewFeatures(rows, Problem(Settings(selection=selection), coordinates, None, judge), most)


@pytest.mark.parametrize("selection", ["likelihood", "divergence"])
def test_no_exchange_of_a_feature_is_better(selection: str) -> None:
    X, y = two_classes()
    search = search_of(X, y, 3, selection)
    direction = search.best_direction([MELC(random_state=0).fit(X, y).coef_[0]])
    assert set(np.flatnonzero(direction)) == {1, 4, 6}
    found = search.candidates.scaled(direction[search.candidates.chosen])
    assert best_exchange(search.score, found, search.candidates.columns, y) <= search.score(found) + 1e-8


def test_divergences_are_compared_on_a_grid_where_it_has_a_value() -> None:
    X, y = two_classes(200)
    search = search_of(X, y, 3, "divergence")
    weights = np.random.default_rng(4).normal(size=(5, 8))
    for w in weights:
        direction, _ = search.candidates.in_units(w)
        assert search.score(w) == pytest.approx(cauchy_schwarz_divergence(X, y, direction), abs=1e-4)
    asked = []
    search.objective = SimpleNamespace(evaluate=asked.append, coordinates_of=lambda v: v)
    search.best_direction([])
    assert not asked
    apart = search_of(np.column_stack([X[:, 0], 1e3 * y + X[:, 1]]), y, 1, "divergence")
    near, far = sorted(apart.score(w) for w in np.eye(2))
    assert near < 1
    assert far > 1e4  # too far apart for a grid


def linear_classes(n: int, d: int = 12, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Rows of correlated features, and classes on two sides of a plane, up to noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d)))
    return X, (X[:, :4] @ [1.0, -1.0, 0.7, 0.7] + 2 * rng.normal(size=n) > 0).astype(int)


@pytest.mark.parametrize("seed", range(3))
def test_no_exchange_brings_the_means_farther_apart(seed: int) -> None:
    X, y = linear_classes(150, seed=seed)
    search = search_of(X, y, 4, "likelihood")
    weights, columns = search.discriminant(), search.candidates.columns
    used = np.flatnonzero(weights).tolist()
    assert len(used) == 4
    # Along Fisher's direction, the distance in units of the variance is that of the means in all of its features.
    first, second = (weights @ columns[:, y == c] for c in (0, 1))
    variance = 0.5 * (first.var() + second.var()) + 1e-3 * weights @ weights
    reached = distance_of_means(columns, y, used, 1e-3)
    assert (second.mean() - first.mean()) ** 2 / variance == pytest.approx(reached)
    for dropped in used:
        for j in np.setdiff1d(np.arange(len(columns)), used).tolist():
            assert distance_of_means(columns, y, [k if k != dropped else j for k in used], 1e-3) <= reached + 1e-9


def test_few_rows_of_classes_on_two_sides_get_the_linear_discriminant() -> None:
    X, y = linear_classes(150)
    search = search_of(X, y, 4, "likelihood")
    discriminant = search.discriminant()
    gain = search.improved(search._largest(discriminant)).score - search.score(discriminant)
    assert 0 < gain < 4 / 150  # four weights
    expected, _ = search.candidates.in_units(discriminant)
    np.testing.assert_allclose(search.best_direction([]), expected, rtol=1e-12)
    np.testing.assert_allclose(MELC(max_features=4, random_state=0).fit(X, y).coef_[0], expected, rtol=1e-9)


def test_classes_with_the_same_means_have_no_discriminant() -> None:
    # Each row has its mirror in the same class, so all class means are zero.
    half = np.random.default_rng(0).integers(-3, 4, size=(64, 4)).astype(float)
    X, y = np.vstack([half, -half]), np.tile(np.abs(half[:, 0] - half[:, 2]) > 2, 2).astype(int)
    assert not search_of(X, y, 2, "likelihood").discriminant().any()
    model = MELC(max_features=2, random_state=0).fit(X, y)
    assert set(np.flatnonzero(model.coef_[0])) == {0, 2}
    assert model.score(X, y) > 0.95


def test_the_limit_holds_and_more_features_than_the_data_have_change_nothing() -> None:
    X, y = two_classes()
    for most in (1, 2, 3):
        assert np.count_nonzero(MELC(max_features=most, random_state=0).fit(X, y).coef_) == most
    np.testing.assert_array_equal(MELC(random_state=0).fit(X, y).coef_[0] != 0, np.ones(8, dtype=bool))
    usual, unlimited = (MELC(max_features=most, random_state=0).fit(X, y) for most in (None, 8))
    np.testing.assert_allclose(unlimited.coef_, usual.coef_, rtol=1e-12)


def test_weights_copies_order_and_units_of_the_rows_do_not_matter() -> None:
    X, y = two_classes(200)
    model = MELC(max_features=3, whole_weights=5, random_state=0).fit(X, y)
    order = np.random.default_rng(1).permutation(len(y))
    assert np.array_equal(
        MELC(max_features=3, whole_weights=5, random_state=0).fit(X[order], y[order]).coef_, model.coef_
    )
    weights = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    weighted = MELC(max_features=3, random_state=0).fit(X, y, sample_weight=weights)
    copies = np.repeat(np.arange(len(y)), weights.astype(int))
    copied = MELC(max_features=3, random_state=0).fit(X[copies], y[copies])
    np.testing.assert_allclose(copied.coef_, weighted.coef_, rtol=1e-6)
    scaled = MELC(max_features=3, whole_weights=5, random_state=0).fit(100 * X, y)
    np.testing.assert_allclose(scaled.coef_, model.coef_, rtol=1e-9)
    np.testing.assert_allclose(scaled.lines_[0].units, 100 * model.lines_[0].units)


def test_every_class_of_several_has_few_features_with_whole_weights() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 6))
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    model = MELC(max_features=2, whole_weights=3, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8
    for line in model.lines_:
        assert len(line.features) <= 2
        assert np.abs(line.whole_weights).max() <= 3
        np.testing.assert_allclose(
            line.direction * line.units / np.abs(line.direction * line.units).max(),
            line.whole_weights / np.abs(line.whole_weights).max(),
            atol=1e-12,
        )


def test_whole_weights_are_the_best_of_all() -> None:
    # Of two weights up to three there are few enough to try them all.
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 2))
    y = (X @ [2.0, -3.0] + 0.5 * rng.normal(size=400) > 0).astype(int)
    search = search_of(X, y, 2, "likelihood")
    found = whole_weights(np.array([1.0, -1.4]), 3, search.score)
    # A direction and its mirror differ by the grid on which densities are computed.
    assert search.score(found.astype(float)) == pytest.approx(best_whole_weights(search.score, 2, 3), abs=3e-4)


def test_units_are_handy_and_near_the_spread() -> None:
    X, y = two_classes()
    X[:, 0] = np.round(100 * X[:, 0])
    line = MELC(whole_weights=5, random_state=0).fit(X, y).lines_[0]
    digits = line.units / 10.0 ** np.floor(np.log10(line.units) + 1e-9)
    assert np.isin(np.round(digits, 9), [1, 2, 5]).all()
    assert line.units[0] >= 1  # of whole numbers
    ratios = line.units / X.std(axis=0)
    assert ratios.min() > 0.6  # it may be larger where the weight is small
    assert ratios[np.argmax(np.abs(line.direction) * X.std(axis=0))] < 1.6


def test_a_category_is_one_feature_with_whole_points() -> None:
    frame, y = mixed_frame(400)
    model = MELC(max_features=3, whole_weights=5, random_state=0).fit(frame, y)
    assert len(model.lines_[0].features) <= 3
    for category in model.columns_.categories.values():
        assert np.array_equal(category.scores, np.round(category.scores))
    binary = pd.DataFrame({"smoker": np.where(np.arange(200) % 3 == 0, "yes", "no")})
    y = (np.arange(200) % 3 == 0) ^ (np.arange(200) % 10 == 0)
    model = MELC(whole_weights=5, random_state=0).fit(binary, y)
    assert sorted(model.columns_.categories[0].scores) == [0, 1]
    # Scores of ±0.2957…, of which one differs in the last digit: they are half a unit from zero up to rounding.
    first, second = (34 + 5) / (34 + 147 + 10) - 0.5, (147 + 5) / (34 + 147 + 10) - 0.5
    found, _ = _with_whole_scores(
        Category(("no", "yes"), np.array([first, second]), False),
        np.zeros(2),
        Balance(np.arange(2), np.ones(2), 2),
    )
    assert np.ptp(found.scores) == 1


def test_whole_weights_survive_json_and_scalers() -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = two_classes()
    model = MELC(max_features=3, whole_weights=5, random_state=0).fit(X, y)
    copy = from_json(to_json(model))
    np.testing.assert_array_equal(copy.lines_[0].whole_weights, model.lines_[0].whole_weights)
    text = to_json(model).replace('"units": [', '"units": [1.2345, ', 1)
    with pytest.raises(ValueError, match="units"):
        from_json(text)
    pipeline = make_pipeline(StandardScaler(), MELC(max_features=3, whole_weights=5, random_state=0)).fit(X, y)
    folded = from_json(to_json(pipeline))
    np.testing.assert_array_equal(folded.lines_[0].whole_weights, pipeline[-1].lines_[0].whole_weights)
    assert "score = " in export_text(pipeline, style="card")


@pytest.mark.parametrize("given", [{"max_features": 0}, {"whole_weights": 0}, {"whole_weights": 101}])
def test_impossible_limits_are_refused(given: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        MELC(**given).fit(*two_classes(50))


def test_a_score_of_few_values_has_widths_that_predict() -> None:
    # The variance of a class that lies at both ends tells nothing of the distances between the values.
    values = np.repeat([0, 1, 4, 5, 0, 1, 4, 5], [650, 30, 20, 5, 120, 10, 300, 70])
    y = np.repeat([0, 1], [705, 500])
    X = np.column_stack([values, np.arange(len(y)) % 2]).astype(float)
    card = MELC(max_features=1, whole_weights=3, random_state=0).fit(X, y)
    pooled = MELC(bandwidth="pooled", random_state=0).fit(X[:, :1], y)
    np.testing.assert_allclose(card.decision_function(X), pooled.decision_function(X[:, :1]))
    silverman = MELC(max_features=1, bandwidth="silverman", random_state=0).fit(X, y)
    assert not np.allclose(silverman.decision_function(X), pooled.decision_function(X[:, :1]))
