"""The nearest change of class where not everything may change: bounds, fixed features, whole numbers, levels."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from melc import MELC, AdditiveMELC
from melc.explain import existence, nearest_change, search, steps
from tables_data import mixed_frame


def four_features(n=300):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 4)) * [1, 10, 0.1, 3] + [0, 40, 1, 0]
    z = X[:, 0] + X[:, 1] / 12 - 4 * X[:, 2] + X[:, 3] / 4
    return X, np.where(np.abs(z - np.median(z)) > 0.9, "outside", "inside")


def whole_numbers(n=300):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 12, size=(n, 2)).astype(float)
    return X, ((X[:, 0] - 6) ** 2 + (X[:, 1] - 5) ** 2 < 14).astype(int)


@pytest.fixture(scope="module")
def one_line():
    X, y = four_features()
    return MELC(n_init=2, random_state=0).fit(X, y), X


@pytest.fixture(scope="module")
def lines():
    X, y = whole_numbers()
    return AdditiveMELC(random_state=0).fit(X, y), X


def smallest_within(model, x, low, high):
    """The smallest change of one line within bounds: the length of clip(t · pull) at each threshold, by bisection."""
    (line,), spread = model.lines_, model.feature_spread_
    pull, lengths = line.direction * spread, [np.inf]
    for threshold in line.thresholds:
        needed = threshold - x @ line.direction
        towards = np.sign(needed) * pull

        def change(t, towards=towards):
            return np.clip(t * towards, (low - x) / spread, (high - x) / spread)

        def short(t, needed=needed, change=change):
            return abs(needed) - abs(change(t) @ pull)

        if short(1e6) < 0:
            lengths.append(np.linalg.norm(change(brentq(short, 0, 1e6, xtol=1e-14))))
    return min(lengths)


def test_bounds_keep_the_change_of_one_line_the_smallest(one_line):
    model, X = one_line
    low, high = np.array([-0.4, 35.0, -np.inf, -2.0]), np.array([0.4, 45.0, np.inf, 2.0])
    inside = X[np.all((low <= X) & (high >= X), axis=1)][:15]
    found = nearest_change(model, inside, bounds={0: (-0.4, 0.4), 1: (35, 45), "x3": (-2, 2)})
    assert found.exact
    assert found.found.all()
    assert np.all((found.rows >= low) & (found.rows <= high))
    assert np.all(model.predict(found.rows) != model.predict(inside))
    expected = [smallest_within(model, x, low, high) for x in inside]
    np.testing.assert_allclose(found.distance, expected, rtol=1e-6)
    assert np.mean(found.distance > nearest_change(model, inside).distance * 1.01) > 0.1  # the bounds matter


def test_bounds_that_leave_no_change(one_line):
    model, X = one_line
    narrow = {j: (value - 1e-9, value + 1e-9) for j, value in enumerate(X[0])}
    assert not nearest_change(model, X[:1], bounds=narrow).found.any()


def test_values_outside_their_bounds_stay_or_move_towards_them(one_line):
    model, X = one_line
    found = nearest_change(model, X, bounds={0: (0, 0.5)})
    low, high = np.minimum(X[:, 0], 0), np.maximum(X[:, 0], 0.5)
    assert np.all((found.rows[:, 0] >= low) & (found.rows[:, 0] <= high))


@pytest.mark.parametrize("to", [None, 1])
def test_bounds_of_several_lines_against_a_grid(lines, to):
    model, X = lines
    rows, spread = X[np.all((X >= 2) & (X <= 10), axis=1)][:25], model.feature_spread_
    found = nearest_change(model, rows, bounds={0: (2, 10), 1: (2, 10)}, to=to)
    places = np.stack(np.meshgrid(*2 * [np.linspace(2, 10, 401)]), axis=-1).reshape(-1, 2)
    labels, before = model.predict(places), model.predict(rows)
    assert np.all((found.rows >= 2) & (found.rows <= 10))
    for i, x in enumerate(rows):
        there = labels != before[i] if to is None else labels == to
        expected = 0.0 if before[i] == to else np.linalg.norm((places[there] - x) / spread, axis=1).min()
        assert found.found[i]
        assert found.distance[i] <= 1.05 * expected + 1e-9


def test_a_proof_with_bounds(lines):
    """Class 1 lies around (6, 5): from 0 to 2 and 10 to 12 there is none of it, and that is known without a warning."""
    model, X = lines
    corner = X[np.all(X <= 1, axis=1)][:3]
    found = nearest_change(model, corner, bounds={0: (0, 1), 1: (0, 1)}, to=1)
    assert not found.found.any()
    np.testing.assert_array_equal(found.rows, corner)


def test_whole_numbers_against_all_of_them(lines):
    model, X = lines
    found = nearest_change(model, X[:60], integers=[0, 1], bounds={0: (0, 11), 1: (0, 11)})
    every = np.stack(np.meshgrid(*2 * [np.arange(12.0)]), axis=-1).reshape(-1, 2)
    labels, before = model.predict(every), model.predict(X[:60])
    np.testing.assert_array_equal(found.rows, np.round(found.rows))
    assert found.found.all()
    assert found.exact
    expected = [
        np.linalg.norm((every[labels != b] - x) / model.feature_spread_, axis=1).min()
        for x, b in zip(X[:60], before, strict=True)
    ]
    np.testing.assert_allclose(found.distance, expected, rtol=1e-12)


def test_fixed_features_and_some_whole_numbers(one_line):
    model, X = one_line
    pipeline = make_pipeline(StandardScaler(), MELC(n_init=2, random_state=0)).fit(*four_features())
    for each in (model, pipeline):
        found = nearest_change(each, X[:50].round(), fixed=["x0"], integers=["x1"])
        assert not found.changes[:, 0].any()
        np.testing.assert_array_equal(found.rows[:, 1], np.round(found.rows[:, 1]))
        assert np.mean(found.found) > 0.9
        np.testing.assert_array_equal(each.predict(found.rows), found.labels)


def test_numbers_that_may_take_some_values_only(lines):
    model, X = lines
    found = nearest_change(model, X[:40], levels={0: [0, 6, 11]}, integers=[1])
    changed = found.rows[:, 0] != X[:40, 0]
    assert np.isin(found.rows[changed, 0], [0, 6, 11]).all()
    np.testing.assert_array_equal(found.rows[:, 1], np.round(found.rows[:, 1]))
    assert found.found.all()


@pytest.mark.parametrize("wish", [{"bounds": {0: (0, 11), 1: (0, 11)}, "integers": [0, 1]}, {"integers": [0, 1]}])
@pytest.mark.parametrize("to", [None, 0, 1])
def test_the_smallest_change_to_whole_numbers_that_are_not_in_the_row(lines, wish, to):
    model, X = lines
    rows = X[:30] + 0.3  # may stay as they are
    found = nearest_change(model, rows, to=to, **wish)
    before = model.predict(rows)
    values = [np.append(np.arange(12.0), np.nan)] * 2
    every = np.stack(np.meshgrid(*values), axis=-1).reshape(-1, 2)
    for i, x in enumerate(rows):
        places = np.where(np.isnan(every), x, every)
        labels = model.predict(places)
        there = labels != before[i] if to is None else labels == to
        expected = 0.0 if before[i] == to else np.linalg.norm((places[there] - x) / model.feature_spread_, axis=1).min()
        assert found.distance[i] == pytest.approx(expected, abs=1e-9)
    assert found.exact


def test_whole_numbers_and_one_that_need_not_be(lines):
    """After each whole number the other feature moves as little as it must."""
    model, X = lines
    rows = X[:20] + np.array([0.0, 0.37])
    found = nearest_change(model, rows, integers=[0], bounds={0: (0, 11)})
    fine, labels_before = np.linspace(-1, 13, 2801), model.predict(rows)
    every = np.stack(np.meshgrid(np.arange(12.0), fine), axis=-1).reshape(-1, 2)
    labels = model.predict(every)
    assert found.exact
    assert found.found.all()
    for i, x in enumerate(rows):
        others = every[labels != labels_before[i]]
        assert found.distance[i] <= np.linalg.norm((others - x) / model.feature_spread_, axis=1).min() + 1e-9


def waves(scale):
    """Two classes in turns along one feature, which is far from whole numbers if the scale is small."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, scale, 200)
    y = np.where(np.sin(2 * x / scale) + 0.5 * rng.normal(size=200) > 0, "high", "low")
    return AdditiveMELC(random_state=0).fit(x[:, None], y), x[:20, None]


@pytest.mark.parametrize("scale", [0.01, 3.0, 1e6])
@pytest.mark.parametrize("bounds", [None, {0: (-1e9, 1e9)}])
def test_one_whole_number_is_decided_on_any_scale(scale, bounds):
    """The nearest one of another class, or without a warning that there is none: beyond the curves nothing changes."""
    model, rows = waves(scale)
    steps = np.arange(-5, 6.0) if scale < 1e6 else np.arange(-3e4, 3e4)
    for to in (None, "high"):
        found = nearest_change(model, rows, integers=[0], to=to, bounds=bounds)
        for i, (x,) in enumerate(rows):
            places, before = np.round(x) + steps, model.predict(rows[i : i + 1])[0]
            labels = model.predict(places[:, None])
            there = labels != before if to is None else labels == to
            if before != to and (there.any() or scale < 1e6):
                expected = np.abs(places[there] - x).min(initial=np.inf) / model.feature_spread_[0]
                assert found.distance[i] == pytest.approx(expected, rel=1e-12)


def test_whole_numbers_that_are_far_apart_stay_where_others_suffice():
    """The third has a unit of a hundred deviations."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [100, 100, 0.01]
    z = X @ [0.01, 0.01, 100]
    model = MELC(n_init=1, random_state=0).fit(X, z > 0)
    rows = np.round(X[np.abs(z) > 1][:20])
    found = nearest_change(model, rows, integers=[0, 1, 2])
    assert np.all(found.distance <= nearest_change(model, rows, features=[0], integers=[0]).distance)


def test_levels_that_were_not_all_tried_prove_nothing(lines, monkeypatch):
    model, X = lines
    corner = X[np.all(X <= 1, axis=1)][:3]
    wishes = {"levels": {0: [0, 1]}, "bounds": {1: (0, 1)}, "to": 1}
    alone = nearest_change(model, corner, levels={0: [0, 1]}, fixed=[1], to=1)
    assert not alone.found.any()  # all that may change was tried
    assert not nearest_change(model, corner, **wishes).found.any()  # as well
    monkeypatch.setattr(steps, "_MOST_EXACT", 1)
    with pytest.warns(UserWarning, match="For 3 rows no change of class was found, nor a proof"):
        nearest_change(model, corner, **wishes)


def test_missing_numbers_stay_missing(lines):
    model, X = lines
    rows = np.where(np.arange(20)[:, None] % 3 == [0, 4], np.nan, X[:20])
    found = nearest_change(model, rows, levels={0: [0, 6, 11]}, integers=[1], bounds={1: (0, 11)})
    np.testing.assert_array_equal(np.isnan(found.rows), np.isnan(rows))
    assert np.all(found.labels[found.found] != model.predict(rows)[found.found])


def test_a_proof_where_a_value_is_missing(monkeypatch):
    """The values that are known decide within their bounds, without a warning, and what is not decided is said."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X**2).sum(axis=1) < 2
    X[rng.random(300) < 0.2, 0] = np.nan
    model = AdditiveMELC(random_state=0).fit(X, y)
    rows, wishes = np.array([[np.nan, 3.0, 3.0]]), {"bounds": {1: (2.9, 3.1), 2: (2.9, 3.1)}, "to": True}
    assert not nearest_change(model, rows, **wishes).found.any()

    def give_up(*arguments):
        raise existence.Undecided

    monkeypatch.setattr(search, "place_ahead", give_up)
    with pytest.warns(UserWarning, match="For 1 rows no change of class was found, nor a proof"):
        nearest_change(model, rows, **wishes)


def test_levels_bounds_and_whole_numbers_of_a_table():
    frame, y = mixed_frame(250, 1, 2)
    model = AdditiveMELC(categorical_features=["code"], random_state=0).fit(frame, y)
    job = [level for level in model.columns_.categories[frame.columns.get_loc("job")].levels if level is not None][:2]
    dates = {name: (frame[name].min(), None) for name in frame if pd.api.types.is_datetime64_any_dtype(frame[name])}
    found = nearest_change(model, frame.iloc[:30], levels={"job": job}, bounds=dates, fixed=["size"])
    after = pd.DataFrame(found.as_columns())
    changed = (found.changes[:, frame.columns.get_loc("job")] != 0) & found.found
    assert after["job"][changed].isin(job).all()
    assert not found.changes[:, frame.columns.get_loc("size")].any()
    for name, (first, _) in dates.items():
        assert (after[name].dropna() >= first).all()


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"bounds": [(0, 1)]}, "bounds must be a dict"),
        ({"bounds": {"weight": (0, 1)}}, "bounds contains 'weight', which is no feature"),
        ({"bounds": {0: 3}}, r"bounds of 'x0' must be a pair \(least, largest\), with None for no bound; found 3"),
        ({"bounds": {0: (2, 1)}}, "bounds of 'x0' must be ascending"),
        ({"bounds": {0: (0.2, 0.8)}, "integers": [0]}, "bounds of 'x0' contain no whole number"),
        ({"bounds": {0: ("low", 1)}}, "'x0' takes numbers; found 'low'"),
        ({"fixed": "x0"}, r"fixed must be a list of names or indices; found the text 'x0': use \['x0'\]"),
        ({"integers": [9]}, "integers contains 9, but the model has 4 features"),
        ({"levels": {"x0": "a"}}, "levels of 'x0' must be a list of values"),
        ({"levels": {"x0": [None]}}, "'x0' takes numbers; found None"),
        ({"levels": {"x0": [1, math.inf]}}, "levels of 'x0' must be finite"),
        ({"levels": {"x0": [3, 7]}, "bounds": {0: (2, 5)}}, "levels of 'x0' contain 7, which bounds or"),
        ({"levels": {"x0": [3, 4.5]}, "integers": [0]}, "levels of 'x0' contain 4.5, which bounds or"),
    ],
)
def test_wishes_that_cannot_be_met_are_refused(one_line, wishes, message):
    with pytest.raises(ValueError, match=message):
        nearest_change(*one_line, **wishes)


@pytest.mark.parametrize("wish", [{"bounds": {"day": (2019, None)}}, {"levels": {"day": [7]}}])
def test_numbers_are_no_dates(wish):
    frame = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=20)})
    model = MELC(random_state=0).fit(frame, np.arange(20) > 9)
    with pytest.raises(ValueError, match="'day' takes dates; found"):
        nearest_change(model, frame, **wish)


def test_categories_have_levels_and_no_bounds():
    frame = pd.DataFrame({"town": ["a", "b", "a", "b"] * 5, "x": np.arange(20.0)})
    model = AdditiveMELC(random_state=0).fit(frame, np.arange(20) > 9)
    with pytest.raises(ValueError, match=r"'town', which is a category; say with levels=\{'town': \[...\]\}"):
        nearest_change(model, frame, bounds={"town": (0, 1)})
    with pytest.raises(ValueError, match=r"levels of 'town' contain 'c', which is no level that was seen; it has"):
        nearest_change(model, frame, levels={"town": ["c"]})
