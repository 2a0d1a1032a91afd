"""The nearest change of class: exact for one line, never a change that is none, and near the best for several lines."""

import ctypes
import datetime
import os
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import OptimizeResult
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import naive
from melc import MELC, AdditiveMELC
from melc.explain import existence, nearest_change, numbers, search
from melc.explain.search import ChangeSpace, RowsToChange
from melc.model.curve import Curve
from tables_data import SIZES, awkward_rows, mixed_frame


def rows(n=300, seed=0):
    """Three features of different units, of which the third is constant; the class is that of a band."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), 40 + 20 * rng.normal(size=n), np.full(n, 3.0)])
    z = X[:, 0] + (X[:, 1] - 40) / 30
    return X, np.where(np.abs(z + 0.2 * rng.normal(size=n)) > 0.8, "outside", "inside")


ONE_LINE = {
    "MELC": MELC(n_init=2, random_state=0),
    "AdditiveMELC": AdditiveMELC(max_lines=1, features_per_line=None, random_state=0),
}


@pytest.fixture(scope="module", params=ONE_LINE)
def band(request):
    X, y = rows()
    return clone(ONE_LINE[request.param]).fit(X, y), X


def test_every_change_changes_the_class_and_is_as_long_as_it_says(band):
    model, X = band
    found = nearest_change(model, X)
    assert found.found.all()
    assert found.exact
    assert np.all(found.labels != model.predict(X))
    np.testing.assert_array_equal(model.predict(found.rows), found.labels)
    np.testing.assert_array_equal(found.rows - X, found.changes)
    lengths = np.linalg.norm(found.changes[:, :2] / X[:, :2].std(axis=0), axis=1)
    np.testing.assert_allclose(found.distance, lengths, rtol=1e-6)
    assert not found.changes[:, 2].any()


@pytest.mark.parametrize("offset", [1e3, 1e7])
@pytest.mark.parametrize("features", [None, [4]])
def test_changed_rows_have_another_class_however_they_lie_in_memory(offset, features):
    """Beside large offsets, the last digits of a projection depend on the layout and on the rows around it.

    The line that decides may move by much less than others.
    """
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(300, 5))
    y = np.digitize(np.sin(1.5 * Z[:, 0]) + np.abs(Z[:, 1] + Z[:, 2]) + 0.3 * Z[:, 3], [0.6, 1.4])
    X = Z * [0.01, 1, 1, 1e4, 1] + [offset, 0, offset, -offset, 0]
    model = AdditiveMELC(random_state=0).fit(X, y)
    change = nearest_change(model, X, features=features)
    assert change.found.sum() > 100
    for size in (300, 33, 6, 1):
        for start in range(0, 300, size):
            some = slice(start, start + size)
            np.testing.assert_array_equal(model.predict(np.asfortranarray(change.rows[some])), change.labels[some])


def test_the_change_of_one_line_is_the_smallest(band):
    """The formula, and brute force in the plane of the two features."""
    model, X = band
    found = nearest_change(model, X)
    (line,), spread = model.lines_, model.feature_spread_
    apart = np.abs((X @ line.direction)[:, None] - line.thresholds).min(axis=1)
    np.testing.assert_allclose(found.distance, apart / np.linalg.norm(line.direction * spread), rtol=1e-9)
    plane = clone(model).fit(X[:, :2], rows()[1])
    change = nearest_change(plane, X[:12, :2])
    for i, x in enumerate(X[:12, :2]):
        before = plane.predict(x[None])[0]
        radius = naive.nearest_change_in_a_plane(
            plane.predict, x, plane.feature_spread_, lambda labels, before=before: labels != before, 3.0
        )
        assert radius - 3 / 800 - 1e-9 <= change.distance[i] <= radius * (1 + 1e-9)


@pytest.mark.parametrize("kind", ONE_LINE)
def test_a_row_on_the_threshold_has_the_shortest_way_down(kind):
    X = np.arange(20.0)[:, None] / 7
    model = clone(ONE_LINE[kind]).fit(X, X[:, 0] > 1)
    (line,) = model.lines_
    row = line.thresholds / line.direction
    assert row @ line.direction == line.thresholds[0]
    assert model.predict(row[None])[0]  # a threshold belongs to the interval above it
    found = nearest_change(model, row[None])
    assert found.found[0]
    assert 0 < found.distance[0] < 1e-12
    assert found.labels[0] != model.predict(row[None])[0]


@pytest.mark.parametrize("bounds", [None, {0: (0, None)}])
@pytest.mark.parametrize(("offset", "scale"), [(1e6, 1e-3), (0.0, 1e150), (0.0, 1e-150)])
def test_rows_beside_a_threshold_change_whatever_the_units(offset, scale, bounds):
    x = np.random.default_rng(0).normal(size=(400, 1))
    y, X = np.abs(x[:, 0]) < 0.7, scale * x + offset
    model = MELC(n_init=2, random_state=0).fit(X, y)
    on = model.thresholds_[:, None]
    beside = np.concatenate([on, np.nextafter(on, np.inf), np.nextafter(on, -np.inf)])
    found = nearest_change(model, beside, bounds=bounds if offset else None)
    assert found.found.all()
    assert (model.predict(found.rows) != model.predict(beside)).all()
    assert found.distance.max() < 1e-5


def test_just_before_the_threshold_nothing_changes(band):
    model, X = band
    found = nearest_change(model, X)
    np.testing.assert_array_equal(model.predict(X + found.changes * (1 - 1e-9)), model.predict(X))


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e9])
@pytest.mark.parametrize("kind", ONE_LINE)
def test_rounding_does_not_hide_the_change(kind, offset):
    X, y = rows(120)
    X = X + offset
    model = clone(ONE_LINE[kind]).fit(X, y)
    found = nearest_change(model, X)
    assert found.found.all()
    np.testing.assert_array_equal(model.predict(found.rows), found.labels)
    assert np.all(found.labels != model.predict(X))


def test_only_the_chosen_features_change(band):
    model, X = band
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = clone(model).fit(frame, rows()[1])
    found = nearest_change(named, frame, features=["b"])
    assert not found.changes[:, [0, 2]].any()
    assert np.all(found.labels != model.predict(X))
    assert np.all(found.distance >= nearest_change(model, X).distance)
    np.testing.assert_allclose(found.changes, nearest_change(model, X, features=[1]).changes, rtol=1e-9)
    (line,) = model.lines_
    apart = np.abs((X @ line.direction)[:, None] - line.thresholds).min(axis=1)
    np.testing.assert_allclose(np.abs(found.changes[:, 1]), apart / abs(line.direction[1]), rtol=1e-9)


def test_what_cannot_change_is_not_found(band):
    model, X = band
    found = nearest_change(model, X[:5], features=[2])  # constant in the training rows
    assert not found.found.any()
    assert np.isinf(found.distance).all()
    np.testing.assert_array_equal(found.rows, X[:5])
    np.testing.assert_array_equal(found.labels, model.predict(X[:5]))
    assert "no change" in found.summary(0)


def test_rows_of_the_wanted_class_stay(band):
    model, X = band
    before = model.predict(X)
    found = nearest_change(model, X, to="inside")
    assert np.all(found.labels == "inside")
    assert not found.distance[before == "inside"].any()
    alone = nearest_change(model, X[before != "inside"])
    np.testing.assert_allclose(found.distance[before != "inside"], alone.distance, rtol=1e-12)
    assert "already" in found.summary(int(np.flatnonzero(before == "inside")[0]))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"features": "a"}, r"use \['a'\]"),
        ({"features": ["weight"]}, "'weight', which is no feature of the model"),
        ({"features": [3]}, "contains 3, but the model has 3 features"),
        ({"features": [True, False, False]}, "contains True, which is neither a name nor an index"),
        ({"features": [1.7]}, "contains 1.7, which is neither a name nor an index"),
        ({"to": "beside"}, "to='beside' is not a class of the model"),
    ],
)
def test_bad_wishes_are_refused(band, wanted, message):
    with pytest.raises(ValueError, match=message):
        nearest_change(*band, **wanted)


@pytest.mark.parametrize("unit", ["D", "us", "ns"])
def test_a_date_is_a_class_like_others(unit):
    X = np.arange(20.0)[:, None]
    days = np.where(X[:, 0] > 9, "2021-03-01", "2020-01-01").astype(f"datetime64[{unit}]")
    model = MELC(n_init=1, random_state=0).fit(X, days)
    for to in (days[-1], pd.Timestamp("2021-03-01"), datetime.date(2021, 3, 1), "2021-03-01"):
        assert (nearest_change(model, X, to=to).labels == days[-1]).all()
    for wrong in ("2021-03-02", "soon", 7):
        with pytest.raises(
            ValueError, match=r"is not a class of the model; choose one of \['2020-01-01', '2021-03-01'"
        ):
            nearest_change(model, X, to=wrong)


def test_pipelines_frames_and_sparse_rows(band):
    model, X = band
    expected = nearest_change(model, X)
    np.testing.assert_allclose(nearest_change(model, sparse.csr_array(X)).changes, expected.changes, rtol=1e-12)
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    for scaler in (StandardScaler(), MinMaxScaler()):
        pipeline = make_pipeline(scaler, clone(model)).fit(frame, rows()[1])
        found = nearest_change(pipeline, frame)
        scaled = nearest_change(pipeline[-1], pipeline[:-1].transform(frame))
        np.testing.assert_allclose(found.distance, scaled.distance, rtol=1e-6)
        after = pipeline.predict(pd.DataFrame(found.rows, columns=["a", "b"]))
        np.testing.assert_array_equal(after, found.labels)
        assert np.all(after != pipeline.predict(frame))
        assert found.feature_names == ["a", "b"]


def one_line_of_three_classes():
    """A model with a single line, along which the classes follow each other as 0, 1, 0, 2."""
    model = AdditiveMELC(max_lines=1, features_per_line=None, random_state=0).fit(*rows())
    knots = np.array([-2.0, 0.0, 2.0, 4.0])
    values = ([1.0, -1.0, 1.0, -1.0], [-1.0, 1.0, -1.0, -1.0], [-1.0, -1.0, -1.0, 1.0])
    curves = tuple(Curve(knots, np.array(each)) for each in values)
    model.classes_, model.intercepts_ = np.arange(3), np.zeros(3)
    model.lines_ = [replace(model.lines_[0], direction=np.array([0.6, 0.8, 0.0]), curves=curves, offsets=np.zeros(3))]
    return model


@pytest.mark.parametrize("wanted", [None, 0, 1, 2])
def test_one_line_leads_to_the_nearest_interval_of_the_class(wanted):
    model = one_line_of_three_classes()
    (line,) = model.lines_
    assert line.thresholds.tolist() == [-1, 1, 3]
    assert line.codes.tolist() == [0, 1, 0, 2]
    X = np.column_stack([np.linspace(-3, 6, 91), np.zeros(91), np.zeros(91)]) / 0.6
    found = nearest_change(model, X, to=wanted)
    assert found.exact
    assert found.found.all()
    before = model.predict(X)
    np.testing.assert_array_equal(model.predict(found.rows), found.labels)
    z, dense = X @ line.direction, np.linspace(-4, 8, 240_001)
    classes = line.codes[np.searchsorted(line.thresholds, dense, side="right")]
    for i, place in enumerate(z):
        there = classes != before[i] if wanted is None else classes == wanted
        expected = 0.0 if before[i] == wanted else np.abs(dense[there] - place).min()
        moved = abs(found.rows[i] @ line.direction - place)
        assert moved == pytest.approx(expected, abs=1e-4)


def several_classes(n=240):
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 2)) * [1, 5] + np.array([[0, 0], [3, 5], [0, 15]])[y], y


def ring(n=300):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 2)) * [1, 10]
    return X, (X[:, 0] ** 2 + (X[:, 1] / 10) ** 2 > 1.4).astype(int)


SEARCHED = {
    "three classes": lambda: (MELC(n_init=2, random_state=0), *several_classes()),
    "lines": lambda: (AdditiveMELC(random_state=0), *ring()),
    "lines of three classes": lambda: (AdditiveMELC(random_state=0), *several_classes()),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", SEARCHED)
def test_a_search_comes_close_to_brute_force(case):
    """It is an upper bound: never shorter than the best, and on these rows not longer than what brute force finds."""
    model, X, y = SEARCHED[case]()
    model.fit(X, y)
    found = nearest_change(model, X[:15])
    assert found.found.all()
    assert not found.exact
    np.testing.assert_array_equal(model.predict(found.rows), found.labels)
    assert np.all(found.labels != model.predict(X[:15]))
    ratios = []
    for i, x in enumerate(X[:15]):
        before = model.predict(x[None])[0]
        radius = naive.nearest_change_in_a_plane(
            model.predict, x, model.feature_spread_, lambda labels, before=before: labels != before, 4.0
        )
        # Brute force knows no more than its steps in radius and in angle.
        assert found.distance[i] > radius * (1 - 2 * np.pi / 720) - 4 / 800
        ratios.append(found.distance[i] / radius)
    assert np.max(ratios) < 1.001


@pytest.mark.parametrize("case", SEARCHED)
def test_the_search_computes_the_log_odds_of_the_model(case):
    model, X, y = SEARCHED[case]()
    model.fit(X, y)
    space, z = ChangeSpace(model, model.feature_spread_), X @ model.directions_.T
    expected = model.decision_function(X)
    expected = np.column_stack([np.zeros(len(X)), expected]) if expected.ndim == 1 else expected
    np.testing.assert_allclose(space.odds(z), expected, atol=1e-9)
    codes, step = np.arange(len(X)) % expected.shape[1], 1e-7
    for k, slopes in enumerate(space.slopes(z, codes).T):
        ahead = space.odds(z + step * np.eye(z.shape[1])[k])
        numeric = np.take_along_axis((ahead - space.odds(z)) / step, codes[:, None], axis=1)[:, 0]
        np.testing.assert_allclose(slopes, numeric, atol=1e-4)


def test_a_search_for_a_class():
    X, y = several_classes()
    model = MELC(n_init=2, random_state=0).fit(X, y)
    found = nearest_change(model, X[:60], to=2)
    assert found.found.all()
    assert np.all(found.labels == 2)
    np.testing.assert_array_equal(model.predict(found.rows), 2)
    one_feature = nearest_change(model, X[:60], features=[1])
    assert not one_feature.changes[:, 0].any()


def test_the_search_is_repeatable_and_each_row_on_its_own():
    X, y = ring()
    model = AdditiveMELC(random_state=0).fit(X, y)
    first, second = nearest_change(model, X[:30]), nearest_change(model, X[:30])
    np.testing.assert_array_equal(first.rows, second.rows)
    single = [nearest_change(model, X[[i]]).distance[0] for i in range(10)]
    np.testing.assert_allclose(single, first.distance[:10], rtol=0.01)


def test_the_summary_shows_old_and_new_values(band):
    model, X = band
    found = nearest_change(model, X, feature_names=["height", "weight", "arms"])
    text = found.summary(4)
    assert text.startswith(f"class {found.labels[4]} at a distance of {found.distance[4]:.3g}")
    assert f"{X[4, 1]:.6g} → {found.rows[4, 1]:.6g}" in text
    assert "arms" not in text


@pytest.mark.parametrize("far", [10.0, 1e4])
@pytest.mark.parametrize("kind", [MELC(n_init=2, random_state=0), AdditiveMELC(random_state=0)])
def test_a_search_finds_the_class_from_far_away(kind, far):
    """All classes lie among the training rows, so each can be reached from anywhere."""
    rng = np.random.default_rng(1)
    y = rng.integers(8, size=400)
    X = rng.normal(size=(400, 4)) + 3 * rng.normal(size=(8, 4))[y]
    model = kind.fit(X, y)
    for wanted in (None, 2):
        found = nearest_change(model, far * X[:40], to=wanted)
        assert found.found.all()
        np.testing.assert_array_equal(model.predict(found.rows), found.labels)
        assert np.all(found.distance < 3 * np.linalg.norm(far * X[:40] / X.std(axis=0), axis=1) + 5)


def test_a_search_sees_what_narrow_kernels_show():
    X, y = several_classes()
    model = MELC(gamma=0.01, n_init=2, random_state=0).fit(X, y)
    assert nearest_change(model, X[:60]).found.all()


def nearest_along_a_feature(model, x, feature, to, reach=12.0, n=400_001):
    """Brute force: the distance, in standard deviations, at which one feature changes the class."""
    steps = np.linspace(-reach, reach, n)
    rows = np.tile(x, (n, 1))
    rows[:, feature] += steps * model.feature_spread_[feature]
    labels = model.predict(rows)
    there = labels != model.predict(x[None]) if to is None else labels == to
    return np.abs(steps[there]).min(initial=np.inf)


@pytest.mark.parametrize("to", [None, 0, 2])
@pytest.mark.parametrize("kind", [MELC(n_init=2, gamma=0.3, random_state=0), AdditiveMELC(random_state=0)])
def test_one_free_feature_is_exact(kind, to):
    """From the first change on, steps of 6e-5 deviations see the class; spikes that are narrower only the walk sees."""
    X, y = several_classes()
    model = clone(kind).fit(X, y)
    rows = X[:12] + np.array([0.5, -8.0]) * np.arange(12)[:, None] / 4
    for feature in (0, 1):
        found = nearest_change(model, rows, features=[feature], to=to)
        assert found.exact
        for i, x in enumerate(rows):
            expected = nearest_along_a_feature(model, x, feature, to)
            assert found.distance[i] <= expected * (1 + 1e-9)
            if np.isfinite(expected):
                assert found.distance[i] >= expected - 6e-5
                assert found.found[i]


def hidden_class_model():
    """Two lines along two features; class 2 is ahead only within some hundredths of the point (3, -2)."""
    model = AdditiveMELC(max_lines=1, features_per_line=None, random_state=0).fit(*rows())
    line = model.lines_[0]
    lines = []
    for k, centre in enumerate((3.0, -2.0)):
        knots = np.array([centre - 0.1, centre, centre + 0.1])
        curves = (
            Curve(knots, np.zeros(3)),
            Curve(np.array([-1.0, 1.0]), np.array([-1.0, 1.0]) if k == 0 else np.zeros(2)),
            Curve(knots, np.array([-4.0, 1.0, -4.0])),
        )
        lines.append(replace(line, direction=np.eye(3)[k], curves=curves, offsets=np.zeros(3)))
    model.classes_, model.intercepts_, model.lines_ = np.arange(3), np.array([0.0, 0.0, -0.9]), lines
    model.feature_mean_, model.feature_spread_ = np.zeros(3), np.array([1.0, 1.0, 0.0])
    return model


def test_a_small_region_of_a_class_is_found():
    model = hidden_class_model()
    assert model.predict([[3.0, -2.0, 0.0]]) == [2]
    X = np.random.default_rng(3).normal(size=(20, 3)) * [4, 4, 0]
    found = nearest_change(model, X, to=2)
    assert found.found.all()
    assert np.all(found.labels == 2)
    assert np.all(np.abs(found.distance - np.linalg.norm(X[:, :2] - [3, -2], axis=1)) < 0.1)


def test_not_found_is_a_proof():
    """With a lower intercept the class is nowhere ahead, although the first line alone favours it."""
    model = hidden_class_model()
    model.intercepts_ = np.array([0.0, 0.0, -1.01])
    found = nearest_change(model, np.zeros((3, 3)), to=2)
    assert not found.found.any()
    assert np.isinf(found.distance).all()


def test_lines_of_the_solver_are_not_printed(monkeypatch, capfd):
    """HiGHS prints a line past Python now and then; what others print is kept."""
    milp, library = existence.milp, ctypes.CDLL("ucrtbase" if os.name == "nt" else None)

    def loud(*arguments, **options):
        library.puts(b"HighsMipSolverData::transformNewIntegerFeasibleSolution tmpSolver.run();")
        os.write(1, b"of others\n")
        return milp(*arguments, **options)

    monkeypatch.setattr(existence, "milp", loud)
    print("before")
    leads = [np.array([[-1.0], [1.0], [-1.0]])]
    ends = np.array([-9.0]), np.array([9.0])
    place = existence.place_ahead(np.zeros(1), np.eye(1), *ends, [np.array([1.0, 2.0, 3.0])], leads, np.zeros(1))
    assert 1.5 < place[0] < 2.5
    library.fflush(None)
    assert capfd.readouterr().out.splitlines() == ["before", "of others"]


def test_what_is_undecided_is_said(monkeypatch):
    def give_up(*arguments):
        raise existence.Undecided

    monkeypatch.setattr(search, "place_ahead", give_up)
    model = hidden_class_model()
    model.intercepts_ = np.array([0.0, 0.0, -1.01])
    with pytest.warns(UserWarning, match="For 3 rows no change of class was found, nor a proof that there is none"):
        nearest_change(model, np.zeros((3, 3)), to=2)


def three_lines(seed, n_knots):
    """Random curves of three lines in a plane, with steep pieces: z, moves, knots and leads of one rival."""
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0, np.pi, 3)
    knots = [np.sort(rng.normal(size=n_knots)) for _ in range(3)]
    leads = [rng.normal(size=(n_knots, 1)) for _ in range(3)]
    return 3 * rng.normal(size=3), np.column_stack([np.cos(angles), np.sin(angles)]), knots, leads


def leads_at(places, z, moves, knots, leads):
    lines = zip(knots, leads, (z + places @ moves.T).T, strict=True)
    return sum(np.interp(there, at, values[:, 0]) for at, values, there in lines)


def largest_lead(z, moves, knots, leads):
    """The sum is linear between the lines of knots, so it is largest where two of these cross."""
    crossings = [
        np.linalg.solve(moves[[i, j]], [a - z[i], b - z[j]])
        for i, j in ((0, 1), (0, 2), (1, 2))
        for a in knots[i]
        for b in knots[j]
    ]
    return leads_at(np.array(crossings), z, moves, knots, leads).max()


@pytest.mark.parametrize(
    ("seed", "n_knots", "margin"), [(11, 20, 1e-3), (24, 20, 1e-3), (0, 6, 1e-7), (7, 6, 1e-7), (7, 6, -1e-3)]
)
def test_a_place_is_named_where_a_class_is_barely_ahead_and_only_there(seed, n_knots, margin):
    lines, free = three_lines(seed, n_knots), np.full(2, np.inf)
    constant = margin - largest_lead(*lines)
    place = existence.place_ahead(*lines[:2], -free, free, *lines[2:], np.array([constant]))
    if margin < 0:
        assert place is None
    else:
        assert leads_at(place[None], *lines) + constant > 0


def test_a_place_that_the_solver_names_wrongly_proves_nothing():
    """With such steep curves its tolerance is enough for a lead that is none."""
    lines, free = three_lines(11, 20), np.full(2, np.inf)
    constant = -1e-3 - largest_lead(*lines)
    with suppress(existence.Undecided):
        assert existence.place_ahead(*lines[:2], -free, free, *lines[2:], np.array([constant])) is None


def test_a_program_that_fails_proves_nothing(monkeypatch):
    failed = OptimizeResult(x=None, status=4, mip_dual_bound=None)
    monkeypatch.setattr(existence, "milp", lambda *arguments, **options: failed)
    lines, free = three_lines(0, 6), np.full(2, np.inf)
    with pytest.raises(existence.Undecided):
        existence.place_ahead(*lines[:2], -free, free, *lines[2:], np.zeros(1))


def test_a_place_that_no_ray_confirms_proves_nothing(monkeypatch):
    monkeypatch.setattr(search, "place_ahead", lambda z, moves, *others: np.ones(moves.shape[1]))
    model = hidden_class_model()
    model.intercepts_ = np.array([0.0, 0.0, -1.01])
    for bounds in (None, {0: (-9, 9)}):
        with pytest.warns(UserWarning, match="For 3 rows no change of class was found, nor a proof that there is none"):
            nearest_change(model, np.zeros((3, 3)), to=2, bounds=bounds)


def test_a_change_that_is_lost_to_rounding_proves_nothing(band, monkeypatch):
    monkeypatch.setattr(numbers, "_DOUBLINGS", 0)
    model, X = band
    with pytest.warns(UserWarning, match="For 5 rows no change of class was found, nor a proof that there is none"):
        nearest_change(model, X[:5])


def test_the_walk_along_a_ray_stops_at_its_limit_and_at_the_first_change():
    """Against many places on each ray."""
    X, y = several_classes()
    model = AdditiveMELC(random_state=0).fit(X, y)
    space, rng = ChangeSpace(model, model.feature_spread_), np.random.default_rng(0)
    z, codes = X[:10] @ model.directions_.T, np.searchsorted(model.classes_, model.predict(X[:10]))
    free = np.full((10, space.n_dimensions), np.inf)
    rays = rng.normal(size=(10, 8, space.n_dimensions))
    rays /= np.linalg.norm(rays, axis=2, keepdims=True)
    places = np.linspace(0, 6, 30_001)
    for goal in (None, 1):
        rows = RowsToChange(space, z, codes, -free, free, goal)
        found, lengths = rows.first_changes(rays, np.full((10, 8), 6.0))
        np.testing.assert_allclose(found, lengths, rtol=1e-12)
        for i, j in np.ndindex(10, 8):
            leaders = space.odds(z[i] + places[:, None] * (space.moves @ rays[i, j])).argmax(axis=1)
            there = leaders != codes[i] if goal is None else leaders == goal
            expected = places[there].min(initial=np.inf) if not there[0] else 0.0
            assert found[i, j] == pytest.approx(expected, abs=3e-4)
        nearer, _ = rows.first_changes(rays, 0.5 * found)
        assert np.isinf(nearer[np.isfinite(found) & (found > 0)]).all()


@pytest.mark.parametrize("classifier", [MELC, AdditiveMELC])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_changes_of_the_rows_of_a_table(classifier, n_classes):
    frame, y = mixed_frame(250, 1, n_classes)
    rows = awkward_rows(frame).iloc[:25]
    model = classifier(categorical_features=["code"], random_state=0).fit(frame, y)
    change = nearest_change(model, rows)
    assert change.found.all()
    assert np.all(change.labels != model.predict(rows))
    after = pd.DataFrame(change.as_columns())
    after["size"] = pd.Categorical(after["size"], SIZES, ordered=True)
    assert np.mean(model.predict(after) == change.labels) > 0.8  # dates are rounded to microseconds
    gone = np.isnan(change.before)
    for j in (0, 1, 5):  # numbers and dates that are missing stay so
        assert np.isnan(change.rows[gone[:, j], j]).all()
    for j in (2, 3, 4, 6):  # levels stay levels
        known = change.rows[~np.isnan(change.rows[:, j]), j]
        assert np.all(known == np.round(known))
    np.testing.assert_allclose(np.linalg.norm(change.standardised, axis=1), change.distance)
    only = nearest_change(model, rows, features=["job"])
    assert not only.changes[:, [0, 1, 3, 4, 5, 6]].any()
    assert "job" in only.summary(int(np.flatnonzero(only.found)[0]))


def test_one_level_is_the_nearest_change_where_it_suffices():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"town": rng.choice(list("abc"), 600), "x": rng.normal(size=600)})
    y = np.where((frame["town"] == "a") ^ (rng.random(600) < 0.05), "in", "out")
    model = AdditiveMELC(random_state=0).fit(frame, y)
    change = nearest_change(model, frame.iloc[:50])
    assert change.found.all()
    assert np.all(change.distance <= 1.0)
    assert np.mean(change.distance == 1.0) > 0.9  # another town, and nothing else


@pytest.mark.parametrize("kind", [MELC, AdditiveMELC])
@pytest.mark.parametrize("year", [1969, 2015])
def test_a_changed_date_stays_over_its_threshold_when_it_is_written(kind, year):
    """Near 1970 the rounding of a number of days is far less than a microsecond."""
    rng = np.random.default_rng(year)
    when = pd.Timestamp(f"{year}-03-01") + pd.to_timedelta(900 * rng.random(200), unit="D")
    frame = pd.DataFrame({"when": when.astype("datetime64[us]"), "x": rng.normal(size=200)})
    level = (when - when.min()).days / 300 + 0.4 * frame["x"]
    model = kind(random_state=0).fit(frame, (np.abs(level - 1.5) < 0.6).astype(int))
    for features in (None, ["when"]):
        change = nearest_change(model, frame, features=features)
        after = pd.DataFrame(change.as_columns())
        np.testing.assert_array_equal(model.predict(after), change.labels)
        assert np.mean(change.found) > 0.9
