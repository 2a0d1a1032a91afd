"""Tables as they come: what columns hold, how rows become numbers, and what must not change a model."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import naive
from melc import MELC, AdditiveMELC
from melc.data.frames import LabelColumn, NumberColumn, read_columns
from melc.data.hats import CurveRequest
from melc.export import from_json, to_json
from melc.fit import columns as fit_columns
from melc.fit.balance import Balance
from melc.fit.columns import learn_columns
from melc.fit.curves import fit_curves, information_of, levels_shape, no_curves, smooth_shape
from melc.fit.level_scores import joint_scores
from melc.model.units import fitted_model
from tables_data import awkward_rows, mixed_frame

BOTH = pytest.mark.parametrize("classifier", [MELC, AdditiveMELC])
CLASSES = pytest.mark.parametrize("n_classes", [2, 3])


def learn(classifier, frame, y, weights=None, **settings):
    return classifier(random_state=0, categorical_features=["code"], **settings).fit(frame, y, weights)


# ----------------------------------------------------------------------------------------------- reading columns


def read(frame, *categorical):
    return dict(zip(frame.columns, read_columns(frame, [name in categorical for name in frame.columns]), strict=True))


def test_what_the_columns_of_a_pandas_frame_hold():
    frame = pd.DataFrame(
        {
            "float": [1.5, None, 2.0],
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "objects": pd.Series([1, 2.5, None], dtype=object),
            "date": pd.to_datetime(["2020-01-01 00:00", None, "2020-01-02 12:00"]),
            "zone": pd.to_datetime(["2020-01-01", None, "2020-01-02"], utc=True),
            "python date": [datetime.date(2020, 1, 1), None, datetime.date(2020, 1, 2)],
            "duration": pd.to_timedelta(["1D", None, "36h"]),
            "text": ["b", None, "a"],
            "truth": [True, False, True],
            "nullable truth": pd.array([True, None, False], dtype="boolean"),
            "category": pd.Categorical(["y", None, "x"], ["unused", "x", "y"]),
            "ordered": pd.Categorical(["low", None, "high"], ["low", "medium", "high"], ordered=True),
            "mixed": [1, "one", None],
            "code": [3, 7, 3],
            "intervals": pd.cut([1, 2, 9], [0, 5, 10]),
        }
    )
    found = read(frame, "code")
    day = 18262.0  # of 1 January 2020 since 1970
    numbers = {
        "float": [1.5, np.nan, 2.0],
        "nullable": [1, np.nan, 3],
        "objects": [1, 2.5, np.nan],
        "date": [day, np.nan, day + 1.5],
        "zone": [day, np.nan, day + 1],
        "python date": [day, np.nan, day + 1],
        "duration": [1, np.nan, 1.5],
    }
    for name, values in numbers.items():
        assert isinstance(found[name], NumberColumn)
        np.testing.assert_array_equal(found[name].values, values)
        assert found[name].is_date == ("date" in name or name == "zone")
    labels = {
        "text": ["b", None, "a"],
        "truth": [True, False, True],
        "nullable truth": [True, None, False],
        "category": ["y", None, "x"],
        "ordered": ["low", None, "high"],
        "mixed": [1, "one", None],
        "code": [3, 7, 3],
        "intervals": ["(0, 5]", "(0, 5]", "(5, 10]"],
    }
    for name, values in labels.items():
        column = found[name]
        assert isinstance(column, LabelColumn)
        assert [*column.labels, None][column.codes[0]] == values[0]
        assert [[*column.labels, None][code] for code in column.codes] == values
        assert column.ordered == (name in ("ordered", "intervals"))
    assert found["ordered"].labels == ("low", "medium", "high")
    assert found["category"].labels == ("x", "y")


def test_what_the_columns_of_a_polars_frame_hold():
    frame = pl.DataFrame(
        {
            "float": [1.5, None, 2.0],
            "date": [datetime.date(2020, 1, 1), None, datetime.date(2020, 1, 2)],
            "time": [datetime.datetime(2020, 1, 1, 12), None, datetime.datetime(2020, 1, 2)],
            "duration": [datetime.timedelta(days=1), None, datetime.timedelta(hours=36)],
            "text": ["b", None, "a"],
            "truth": [True, None, False],
            "category": pl.Series(["y", None, "x"], dtype=pl.Categorical),
            "enum": pl.Series(["y", None, "x"], dtype=pl.Enum(["z", "y", "x"])),
            "code": [3, None, 7],
        }
    )
    found = read(frame, "code")
    for name, values in {
        "float": [1.5, np.nan, 2.0],
        "date": [18262, np.nan, 18263],
        "time": [18262.5, np.nan, 18263],
        "duration": [1, np.nan, 1.5],
    }.items():
        np.testing.assert_array_equal(found[name].values, values)
    for name, values in {
        "text": ["b", None, "a"],
        "truth": [True, None, False],
        "category": ["y", None, "x"],
        "enum": ["y", None, "x"],
        "code": [3, None, 7],
    }.items():
        assert [[*found[name].labels, None][code] for code in found[name].codes] == values
    with pytest.raises(ValueError, match="Column 'lists' has the type List"):
        read(pl.DataFrame({"lists": [[1], [2]]}))


# ------------------------------------------------------------------------------------------------ levels and places


@CLASSES
def test_scores_of_levels(n_classes):
    rng = np.random.default_rng(n_classes)
    n = 900
    codes, index = rng.integers(-1, 4, n), rng.integers(0, n_classes, n)
    index = np.where((codes == 2) & (rng.random(n) < 0.7), 1, index)
    weights = rng.integers(1, 4, n).astype(float)
    learned = learn_columns([LabelColumn(codes, ("a", "b", "c", "d"))], ["x"], index, weights, n_classes)
    category = learned.columns.categories[0]
    labels = [["a", "b", "c", "d", None][code] for code in codes]
    expected = naive.level_scores(labels, index, weights, n_classes)
    assert dict(zip(category.levels, category.scores, strict=True)) == pytest.approx(expected)
    assert np.all(np.diff(category.scores) >= 0)  # levels are in their order
    np.testing.assert_array_equal(learned.quantities[0], category.scores_of(learned.codes[0]))


def test_levels_of_few_rows_are_scored_by_other_rows():
    rng = np.random.default_rng(0)
    index = rng.integers(0, 2, 300)
    codes = rng.integers(0, 60, 300)
    index = np.where(rng.random(300) < 0.6, codes % 2, index)
    number = NumberColumn(rng.normal(size=300))
    labels = LabelColumn(codes, tuple(map(str, range(60))))
    learned = learn_columns([labels, number], ["x", "y"], index, None, 2)
    category = learned.columns.categories[0]
    own = category.scores_of(learned.codes[0])
    assert category.scores.any()
    assert np.mean(learned.quantities[0] != own) > 0.8
    alone = [k for k in range(300) if np.sum(codes == codes[k]) == 1]
    assert np.all(learned.quantities[0][alone] == 0)  # nothing is known of a level without the row itself


def test_balanced_columns_do_not_keep_levels_in_one_fold():
    """Levels of equal size and score must be told apart, or all rows of a town are in the same fold."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 150)
    town = (2 * rng.integers(0, 7, 300) + np.where(rng.random(300) < 0.8, y, 1 - y)).astype(str)
    balanced = {"sex": np.tile(["m", "f"], 150), "arm": np.repeat(np.tile(["t", "c"], 75), 2)}
    frame = pd.DataFrame({"town": town, **balanced})
    assert AdditiveMELC(random_state=0).fit(frame, y).score(frame, y) > 0.75


@pytest.mark.parametrize(("n_each", "share"), [(4, 0.9), (20, 0.97)])
def test_the_more_a_level_tells_the_better_the_model(n_each, share):
    """Levels whose rows are all equal and nearly all of one class are no copies."""
    rng = np.random.default_rng(0)
    town, of_town = np.repeat(np.arange(60), n_each), rng.permutation(np.arange(60) % 2)
    frame = pd.DataFrame({"town": town.astype(str), "region": (town // 6).astype(str)})
    y = np.where(rng.random(len(town)) < share, of_town[town], 1 - of_town[town])
    model = AdditiveMELC(random_state=0).fit(frame, y)
    assert np.mean(model.predict(frame) == of_town[town]) > 0.9


TOWNS = 1.5 * np.random.default_rng(0).normal(size=40)


def towns(n, seed):
    """Rows of towns, and columns that are constant within each town."""
    rng = np.random.default_rng(seed)
    town = rng.integers(0, 40, n)
    frame = pd.DataFrame({"town": [f"t{k}" for k in town], "region": [f"r{k % 5}" for k in town]})
    frame["people"] = np.round(1e4 * np.abs(np.sin(3.3 * town + 1)))
    return frame, rng.random(n) < 1 / (1 + np.exp(-2 * TOWNS[town]))


@pytest.mark.parametrize("kind", [MELC, AdditiveMELC])
@pytest.mark.parametrize("other", ["region", "people"])
def test_columns_that_are_constant_within_levels_do_not_hide_their_scores(kind, other):
    (frame, y), (new, truth) = towns(480, 1), towns(2_000, 2)
    models = [kind(random_state=0).fit(frame[names], y) for names in (["town"], ["town", other])]
    alone, both = (balanced_accuracy_score(truth, model.predict(new[model.feature_names_in_])) for model in models)
    assert both > alone - 0.03  # chance before: all rows of a town are in one fold


@BOTH
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("n_towns", "strength"), [(1_200, 1.5), (1_200, 5.0), (400, 5.0)])
def test_hundreds_of_levels_with_a_constant_each_are_no_copies(classifier, seed, n_towns, strength):
    """Of 1,200 towns the rarest share a score, so that few rows have a level for themselves."""
    rng = np.random.default_rng(seed)
    effects = strength * rng.normal(size=n_towns)
    towns = pd.DataFrame({"town": [f"t{k}" for k in range(n_towns)], "people": 37.0 * rng.permutation(n_towns)})
    town = np.repeat(np.arange(n_towns), rng.integers(5, 21, n_towns))
    y = rng.random(len(town)) < 1 / (1 + np.exp(-effects[town]))
    model = classifier(random_state=0).fit(towns.iloc[town], y)
    assert roc_auc_score(effects > 0, model.decision_function(towns)) > 0.85


def test_of_equal_rows_that_have_a_level_for_themselves_all_but_one_are_counted():
    index = np.repeat([0, 1], 30)
    codes = np.concatenate([np.repeat([0, 1, 2, 3], [20, 1, 1, 8]), np.repeat([0, 1, 2, 3], [4, 0, 1, 25])])
    weights = np.full(60, 1.0)
    learned = learn_columns(
        [LabelColumn(codes, tuple("abcd")), NumberColumn((codes > 1).astype(float))], ["x", "y"], index, weights, 2
    )
    for level, (first, second) in enumerate([(20, 4), (1, 0), (1, 1), (8, 25)]):
        left = 1 - 1 / (first + second)
        expected = (left * second + 5) / (left * (first + second) + 10) - 0.5
        assert learned.quantities[0][codes == level] == pytest.approx(np.full(first + second, expected))


@BOTH
def test_copies_of_rows_with_names_do_not_reveal_the_class(classifier):
    """Every level consists of equal rows, as with towns, but copies are all of one class."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc")).assign(name=[f"n{k}" for k in range(200)])
    y = frame["a"] + rng.normal(size=200) > 0
    twice = classifier(random_state=0).fit(pd.concat([frame, frame], ignore_index=True), np.tile(y, 2))
    new = pd.DataFrame(rng.normal(size=(2_000, 3)), columns=list("abc")).assign(name="unknown")
    assert roc_auc_score(new["a"] + rng.normal(size=2_000) > 0, twice.decision_function(new)) > 0.7


@pytest.mark.parametrize("how", ["oversampled", "weighted"])
def test_levels_of_copies_do_not_reveal_the_class(how):
    """A rare class whose rows are copied or weighted, with a column of noise in which most levels have few rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=3_000)
    y = x + rng.normal(size=3_000) > 1
    frame = pd.DataFrame({"x": x, "street": rng.integers(0, 400, 3_000).astype(str)})
    rows, weights = np.arange(1_000), None
    times = np.count_nonzero(~y[rows]) / np.count_nonzero(y[rows])
    if how == "oversampled":
        rows = np.repeat(rows, np.where(y[rows], round(times), 1))
    else:
        weights = np.where(y[rows], times, 1.0)
    found = MELC(random_state=0).fit(frame.iloc[rows], y[rows], weights)
    expected = MELC(random_state=0).fit(frame[["x"]].iloc[:1_000], y[:1_000])
    scores = [
        roc_auc_score(y[1_000:], model.decision_function(frame[list(model.feature_names_in_)][1_000:]))
        for model in (found, expected)
    ]
    assert scores[0] > scores[1] - 0.1


def test_sizes_of_weighted_levels_do_not_depend_on_the_order_of_rows():
    """Levels with equal scores are told apart by their sizes, whose last digit depends on the order."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        town, effects = rng.integers(0, 75, 600), rng.normal(size=75)
        frame = pd.DataFrame({"town": town.astype(str), "region": (town // 3).astype(str)})
        y = effects[town] * 1.5 + rng.normal(size=600) > 0
        weights, order = rng.choice([0.5, 1.0, 2.7, 3.1], 600), rng.permutation(600)
        one, other = AdditiveMELC(random_state=0), AdditiveMELC(random_state=0)
        expected = one.fit(frame, y, weights).decision_function(frame)
        found = other.fit(frame.iloc[order], y[order], weights[order]).decision_function(frame)
        np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("kind", [AdditiveMELC(random_state=0), MELC(max_features=2, whole_weights=4, random_state=0)])
def test_weighted_tables_are_the_same_in_any_order_and_as_copies(kind):
    for seed in (3, 9, 13):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 145)
        frame = pd.DataFrame({"x": rng.normal(size=145) + y})
        frame["t"] = [f"l{k}" for k in (y + rng.integers(0, 20, 145)) % 20]
        frame["u"] = [f"m{k}" for k in rng.integers(0, 4, 145)]
        weights, order = rng.integers(1, 5, 145), rng.permutation(145)
        copies = np.repeat(order, weights[order])
        expected = clone(kind).fit(frame, y, weights).decision_function(frame)
        shuffled = clone(kind).fit(frame.iloc[order], y[order], weights[order])
        np.testing.assert_array_equal(shuffled.decision_function(frame), expected)
        repeated = clone(kind).fit(frame.iloc[copies], y[copies])
        np.testing.assert_allclose(repeated.decision_function(frame), expected, atol=1e-8)


@pytest.mark.parametrize("n", [15_000, 20_100])
def test_exchanged_labels_of_larger_tables_mirror_the_model(n):
    """Samples are drawn by what the rows hold, not by scores, whose signs change."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{j}": rng.integers(0, 8, n).astype(str) for j in range(5)})
    frame = frame.assign(**{f"n{j}": rng.normal(size=n) for j in range(5 if n == 20_100 else 9)})
    odds = sum(rng.normal(size=8)[frame[f"c{j}"].astype(int)] for j in range(5)) + frame["n0"] ** 2 - 1
    y = rng.random(n) < 1 / (1 + np.exp(-odds))
    one, other = (AdditiveMELC(max_lines=3, random_state=0).fit(frame, each) for each in (y, ~y))
    np.testing.assert_allclose(other.decision_function(frame), -one.decision_function(frame), atol=1e-8)


def test_levels_that_differ_by_chance_have_no_scores():
    rng = np.random.default_rng(1)
    index, codes = rng.integers(0, 2, 400), rng.integers(0, 100, 400)
    labels = LabelColumn(codes, tuple(map(str, range(100))))
    learned = learn_columns([labels, NumberColumn(rng.normal(size=400))], ["x", "y"], index, None, 2)
    assert not learned.columns.categories[0].scores.any()
    alone = learn_columns([labels], ["x"], index, None, 2)
    assert alone.quantities[0].any()  # if there is nothing else, they are kept


@BOTH
def test_hundreds_of_levels_of_few_rows_do_not_hide_what_frequent_ones_tell(classifier):
    """One row in twenty is of the second class. By a χ² test all 1,000 towns together differ no more than by chance."""
    shares, effects = 1 / np.arange(1, 1_001), 1.4 * np.random.default_rng(100).normal(size=1_000)

    def rows(n, seed):
        rng = np.random.default_rng(seed)
        town, x = rng.choice(1_000, n, p=shares / shares.sum()), rng.normal(size=n)
        y = effects[town] + 0.7 * x + rng.logistic(size=n) > 4
        return pd.DataFrame({"town": [f"t{k}" for k in town], "x": x}), y

    (frame, y), (new, truth) = rows(3_000, 1), rows(20_000, 2)
    without, model = (classifier(random_state=0).fit(frame[names], y) for names in (["x"], ["town", "x"]))
    scores = [roc_auc_score(truth, each.decision_function(new[each.feature_names_in_])) for each in (without, model)]
    assert scores[1] > scores[0] + 0.05


@pytest.mark.parametrize("n_levels", [3, 30, 1_000])
@pytest.mark.parametrize("share", [0.5, 0.05])
def test_levels_seldom_differ_by_more_than_chance_if_nothing_tells_them_apart(n_levels, share):
    rng, found = np.random.default_rng(0), 0
    for _ in range(400):
        codes, index = rng.integers(0, n_levels, 600), (rng.random(600) < share).astype(int)
        balance = Balance(index, np.ones(600), 2)
        class_weights = balance.class_weights(codes, n_levels) * (balance.n_effective / balance.total)
        found += not fit_columns._differ_by_chance(class_weights, balance.row_weights)
    assert found < 0.1 * 400


def test_the_rarest_of_very_many_levels_are_one():
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.arange(1_600), rng.integers(0, 100, 2_000)])
    index = rng.integers(0, 2, len(codes))
    category = learn_columns(
        [LabelColumn(codes, tuple(map(str, range(1_600))))], ["x"], index, None, 2
    ).columns.categories[0]
    assert category.others
    assert set(category.levels) == {str(k) for k in range(100)}
    assert category.names[-1] == "(others)"
    column = LabelColumn(np.array([0, 1, 2, -1]), ("7", "1450", "never seen"))
    assert category.coded(column).tolist() == [category.levels.index("7"), 100, 100, 100]


def test_missing_numbers_have_a_place_like_them():
    rng = np.random.default_rng(0)
    x = rng.normal(size=4_000)
    index = (rng.random(4_000) < 1 / (1 + np.exp(-3 * x))).astype(int)
    gone = rng.random(4_000) < np.where(index == 1, 0.2, 0.02)  # mostly of the second class
    learned = learn_columns([NumberColumn(np.where(gone, np.nan, x))], ["x"], index, None, 2)
    share = np.mean(index[gone]) / np.mean(index)
    share /= share + np.mean(index[gone] == 0) / np.mean(index == 0)
    assert learned.columns.places[0] == pytest.approx(np.log(share / (1 - share)) / 3, abs=0.25)
    assert np.all(learned.quantities[0][gone] == learned.columns.places[0])


@BOTH
@pytest.mark.parametrize("value", [1.0, 0.0, -1 / 3, 1e8, pd.Timestamp("2020-01-01")])
@pytest.mark.parametrize("with_noise", [False, True])
def test_columns_of_one_value_tell_where_they_are_missing(classifier, value, with_noise):
    """As in a survey in which a tick is 1, and there is nothing otherwise."""
    rng, y = np.random.default_rng(0), np.arange(400) % 2
    ticked = rng.random(400) < 0.1 + 0.8 * y
    frame = pd.DataFrame({"smokes": pd.Series([value] * 400).where(ticked)})
    if with_noise:
        frame["noise"] = rng.normal(size=400)
    model = classifier(random_state=0).fit(frame, y)
    assert np.mean(model.predict(frame) == ticked) > 0.95
    np.testing.assert_array_equal(from_json(to_json(model)).predict(frame), model.predict(frame))


def test_tables_of_levels_and_of_missing_values_are_fitted_as_a_dense_basis_would_be():
    rng = np.random.default_rng(0)
    n, n_levels, knots = 500, 5, np.array([-1.0, 0.0, 1.0, 9.0])
    levels, z = rng.integers(0, n_levels, n).astype(float), rng.normal(size=n).clip(-1, 1)
    gone = rng.random(n) < 0.2
    z[gone] = knots[-1]
    codes = (rng.random(n) < 1 / (1 + np.exp(-(levels - 2) - np.where(gone, 1.0, z)))).astype(np.int8)
    weights = rng.uniform(0.5, 1.5, n)
    curves = no_curves(1).with_line(np.arange(float(n_levels)), levels_shape(n_levels))
    curves = curves.with_line(knots, smooth_shape(len(knots), information_of(z, knots, weights), with_missing=True))

    def summed(basis, beta, block):
        request = CurveRequest(basis, beta, np.ones(2), block)
        sums = request.zeros()
        sums.add(basis.entries(np.stack([levels, z])), codes, (weights, 1), request)
        return sums

    fitted = fit_curves(curves, summed, tol=1e-9)
    hats = np.stack([np.interp(z, knots, row) for row in np.eye(len(knots))], axis=1)
    dense = np.column_stack([np.ones(n), np.eye(n_levels)[levels.astype(int)], hats])
    best = naive.fitted_curves(dense, codes, weights, [fitted.penalty(0)])
    np.testing.assert_allclose(fitted.beta, best, atol=1e-6)
    assert not fitted.shapes[1].penalty[-1].any()  # the value of missing rows is not smoothed
    strength, values = fitted.strengths[0, 0], fitted.beta[0, 1 : 1 + n_levels]
    freedom = n_levels - strength * np.trace(fitted.covariances[0][1 : 1 + n_levels, 1 : 1 + n_levels])
    assert strength == pytest.approx(freedom / (values @ values), rel=0.3)  # Fellner and Schall's fixed point


# ------------------------------------------------------------------------------------- what must not change a model


@BOTH
@CLASSES
def test_neither_order_nor_copies_nor_names_of_levels_change_a_model(classifier, n_classes):
    frame, y = mixed_frame(300, 1, n_classes)
    asked = awkward_rows(mixed_frame(200, 2)[0])
    odds = learn(classifier, frame, y).decision_function(asked)
    order = np.random.default_rng(3).permutation(len(y))
    same = [learn(classifier, frame.iloc[order], y[order]).decision_function(asked)]
    renamed = {job: f"job {k}" for k, job in enumerate(sorted(frame["job"].dropna().unique(), reverse=True))}
    other, others = (each.assign(job=each["job"].replace(renamed).astype("category")) for each in (frame, asked))
    same.append(learn(classifier, other, y).decision_function(others))
    for found in same:
        np.testing.assert_allclose(found, odds, atol=1e-8)
    weights = np.random.default_rng(4).integers(1, 4, len(y))
    copies = np.repeat(np.arange(len(y)), weights)
    weighted = learn(classifier, frame, y, weights).decision_function(asked)
    np.testing.assert_allclose(
        learn(classifier, frame.iloc[copies], y[copies]).decision_function(asked), weighted, atol=1e-5
    )


@BOTH
@pytest.mark.parametrize("n", [200, 600])
def test_neither_order_of_columns_nor_of_classes_changes_a_model(classifier, n):
    """Levels have few rows, so that they are scored by other folds."""
    rng = np.random.default_rng(2)
    town = rng.integers(0, 15, n)
    y = (rng.random(n) < np.where(town % 2, 0.75, 0.25)).astype(int)
    numbers = rng.normal(size=(n, 2)) + np.column_stack([y, np.zeros(n)])
    frame = pd.DataFrame({"x": numbers[:, 0], "town": np.array(list("abcdefghijklmno"))[town], "z": numbers[:, 1]})
    odds, other = classifier(random_state=0).fit(frame, y).decision_function(frame), frame[["z", "town", "x"]]
    reordered = classifier(random_state=0).fit(other, y).decision_function(other)
    np.testing.assert_allclose(reordered, odds, atol=1e-8)
    exchanged = classifier(random_state=0).fit(frame, 1 - y).decision_function(frame)
    np.testing.assert_allclose(-exchanged, odds, atol=0.002)


@BOTH
def test_a_polars_frame_gives_the_same_model(classifier):
    frame, y = mixed_frame(300, 1)
    frame = frame.drop(columns="size")  # polars has no ordered categories
    asked = mixed_frame(100, 2)[0].drop(columns="size")
    odds = learn(classifier, frame, y).decision_function(asked)
    model = learn(classifier, pl.from_pandas(frame), y)
    np.testing.assert_allclose(model.decision_function(pl.from_pandas(asked)), odds, atol=1e-12)
    np.testing.assert_allclose(model.decision_function(asked), odds, atol=1e-12)


@BOTH
def test_rows_of_weight_zero_are_as_if_they_were_not_there(classifier):
    frame, y = mixed_frame(300, 1)
    extra = frame.iloc[:40].assign(job="never", age=1e6)
    weights = np.append(np.ones(300), np.zeros(40))
    model = learn(classifier, pd.concat([frame, extra]), np.append(y, y[:40]), weights)
    np.testing.assert_array_equal(model.decision_function(frame), learn(classifier, frame, y).decision_function(frame))


@BOTH
def test_a_frame_of_numbers_is_a_matrix(classifier):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] > 0
    model = classifier(random_state=0).fit(pd.DataFrame(X, columns=list("abc")), y)
    np.testing.assert_array_equal(model.directions_, classifier(random_state=0).fit(X, y).directions_)
    assert model.columns_.are_numbers


@BOTH
@CLASSES
def test_predictions_of_rows_one_by_one(classifier, n_classes):
    frame, y = mixed_frame(250, 1, n_classes)
    asked = awkward_rows(mixed_frame(60, 2)[0])
    model = learn(classifier, frame, y)
    odds = model.decision_function(asked)
    assert np.isfinite(odds).all()
    one_by_one = np.concatenate([model.decision_function(asked.iloc[[k]]) for k in range(len(asked))])
    np.testing.assert_allclose(one_by_one, odds, atol=1e-12)
    np.testing.assert_allclose(naive.table_log_odds(model, asked), odds.reshape(len(asked), -1), atol=1e-9)


# ----------------------------------------------------------------------------------------------------- what models do


def test_categories_and_missing_values_are_terms_of_their_own():
    rng = np.random.default_rng(0)
    n = 1_200
    town = rng.choice(list("abcdef"), n)
    x = rng.normal(size=n)
    odds = np.array([2, -2, 1, -1, 0, 0])[np.searchsorted(list("abcdef"), town)] + 1.5 * x
    y = rng.random(n) < 1 / (1 + np.exp(-odds))
    gone = rng.random(n) < np.where(y, 0.3, 0.05)
    model = AdditiveMELC(features_per_line=1, full_lines="never", random_state=0)
    model.fit(pd.DataFrame({"town": town, "x": np.where(gone, np.nan, x)}), y)
    by_column = {int(line.features[0]): line for line in model.lines_}
    assert set(by_column) == {0, 1}
    table = dict(zip(by_column[0].levels, by_column[0].curves[0].log_odds, strict=True))
    assert table["a"] > table["c"] > table["d"] > table["b"]
    assert by_column[0].counts.sum() == n
    assert by_column[1].curves[0].missing > 0.5
    assert by_column[1].missing_counts.tolist() == [np.sum(gone & ~y), np.sum(gone & y)]


def test_many_levels_of_noise_cost_little():
    frame, y = mixed_frame(900, 5)
    test, truth = mixed_frame(2_000, 6)
    rng = np.random.default_rng(0)
    scores = []
    for noise in (False, True):
        parts = [
            each.assign(noise=rng.integers(0, 900, len(each)).astype(str)) if noise else each for each in (frame, test)
        ]
        for classifier in (MELC, AdditiveMELC):
            model = learn(classifier, parts[0], y)
            scores.append(roc_auc_score(truth == model.classes_[1], model.decision_function(parts[1])))
    assert scores[2] > scores[0] - 0.005
    assert scores[3] > scores[1] - 0.005


def test_monotone_columns_with_missing_values():
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    y = rng.random(500) < 1 / (1 + np.exp(-2 * np.abs(x)))
    X = np.where(rng.random(500) < 0.1, np.nan, x)[:, None]
    model = AdditiveMELC(monotone=["increasing"], random_state=0).fit(X, y)
    grid = np.linspace(-5, 5, 1_000)[:, None]
    assert np.all(np.diff(model.decision_function(grid)) >= 0)
    assert np.isfinite(model.decision_function(np.array([[np.nan]])))
    frame, y = mixed_frame(100)
    with pytest.raises(ValueError, match="'job' is a category"):
        AdditiveMELC(monotone={"job": "increasing"}).fit(frame, y)


@BOTH
def test_scalers_before_a_model_of_missing_values_are_folded(classifier):
    rng = np.random.default_rng(0)
    X = rng.normal(5, 3, (300, 3))
    y = X[:, 0] + (X[:, 1] - 5) ** 2 / 3 > 8
    X[rng.random(X.shape) < 0.1] = np.nan
    pipeline = make_pipeline(StandardScaler(), classifier(random_state=0)).fit(X, y)
    np.testing.assert_allclose(fitted_model(pipeline).decision_function(X), pipeline.decision_function(X), atol=1e-9)


@BOTH
def test_a_value_missing_where_none_was_counts_as_the_mean(classifier):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.abs(X[:, 0] + X[:, 1]) > 1
    model = classifier(random_state=0).fit(X, y)
    asked = X[:20].copy()
    asked[:, 1] = np.nan
    filled = np.where(np.isnan(asked), model.feature_mean_, asked)
    np.testing.assert_allclose(model.decision_function(asked), model.decision_function(filled), atol=1e-12)


# ------------------------------------------------------------------------------------------- what is said, or refused


def test_columns_that_tell_nothing_are_named():
    frame, y = mixed_frame(200)
    frame["name"] = [f"person {k}" for k in range(200)]
    frame["same"] = "x"
    frame["gone"] = np.nan
    with pytest.warns(UserWarning, match="Column") as caught:
        model = AdditiveMELC(random_state=0).fit(frame, y)
    texts = [str(each.message) for each in caught]
    assert any("Column 'name' has 200 different texts in 200 rows" in text for text in texts)
    assert sum("is constant" in text for text in texts) == 2
    assert np.isfinite(model.decision_function(frame)).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"job": 3}, "'job' held texts in the fit, such as .* but now holds numbers, such as 3"),
        ({"age": "old"}, "'age' held numbers in the fit, but now holds texts, such as 'old'"),
        ({"day": "2020-01-01"}, "'day' held dates in the fit, but now holds texts, .*Convert it to dates"),
        ({"day": 3.0}, "'day' held dates in the fit, but now holds numbers"),
        ({"income": np.inf}, "column 'income' holds inf in row 0"),
        ({"code": "x"}, "'code' held numbers in the fit, such as .*, but now holds texts"),
        ({"job": [[1]] * 120}, "Column 'job' holds list objects"),
    ],
)
def test_columns_that_do_not_hold_what_they_did(changed, message):
    frame, y = mixed_frame(120)
    model = learn(MELC, frame, y)
    with pytest.raises(ValueError, match=message):
        model.predict(frame.assign(**changed))


def test_what_cannot_be_fitted():
    frame, y = mixed_frame(120)
    with pytest.raises(ValueError, match="column 'age' holds inf in row 3"):
        MELC().fit(frame.assign(age=np.where(np.arange(120) == 3, np.inf, 1.0)), y)
    with pytest.raises(ValueError, match="a categorical feature holds it"):
        MELC(categorical_features=["code"]).fit(frame.assign(code=np.inf), y)
    with pytest.raises(ValueError, match="categorical_features names 'nobody', which is not a column of X"):
        MELC(categorical_features=["nobody"]).fit(frame, y)
    with pytest.raises(ValueError, match="categorical_features has 2 truth values, but X has 7 columns"):
        MELC(categorical_features=[True, False]).fit(frame, y)
    with pytest.raises(ValueError, match="need a dense array or a frame, but X is sparse"):
        MELC(categorical_features=[0]).fit(sparse.csr_matrix(np.eye(20)), np.arange(20) % 2)
    with pytest.raises(ValueError, match="NaN"):
        MELC().fit(sparse.csr_matrix(np.where(np.eye(20) == 1, np.nan, 0)), np.arange(20) % 2)
    with pytest.raises(ValueError, match="Pass a pandas or polars frame"):
        MELC().fit(frame.to_numpy(), y)
    with pytest.raises(ValueError, match="feature names"):
        learn(MELC, frame, y).predict(frame.rename(columns={"age": "years"}))


def test_categories_of_arrays():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 5, 400), rng.normal(size=400)])
    y = np.isin(X[:, 0], [1, 3]) ^ (rng.random(400) < 0.1)
    by_index, by_mask = (
        AdditiveMELC(categorical_features=chosen, random_state=0).fit(X, y) for chosen in ([0], [True, False])
    )
    np.testing.assert_array_equal(by_index.decision_function(X), by_mask.decision_function(X))
    assert by_index.score(X, y) > 0.85
    assert by_index.predict(np.array([[7.0, 0.0], [np.nan, 0.0]])).shape == (2,)


def test_nothing_is_said_of_tables_in_order():
    frame, y = mixed_frame(300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = learn(AdditiveMELC, frame, y).predict(awkward_rows(frame))
    assert set(labels) == set(y)


def ends_of_tic_tac_toe():
    """All boards at which a game ends, as a frame of nine columns of texts, and whether the first player has won."""
    lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    seen, waiting, ends = set(), [("-" * 9, "x")], []
    while waiting:
        board, player = waiting.pop()
        if board in seen:
            continue
        seen.add(board)
        won = [who for who in "xo" if any(all(board[i] == who for i in line) for line in lines)]
        if won or "-" not in board:
            ends.append((*board, won == ["x"]))
            continue
        other = "o" if player == "x" else "x"
        waiting += [(board[:i] + player + board[i + 1 :], other) for i in range(9) if board[i] == "-"]
    frame = pd.DataFrame(sorted(ends), columns=[*(f"cell {i}" for i in range(9)), "won"])
    return frame.drop(columns="won"), frame["won"].to_numpy()


def test_one_direction_has_scores_that_are_fitted_together():
    """By the shares of the classes at the levels, accuracy is 0.73: they mix what a cell says with what others say."""
    frame, y = ends_of_tic_tac_toe()
    assert len(y) == 958
    learned = np.random.default_rng(0).random(len(y)) < 0.7
    model = MELC(random_state=0).fit(frame[learned], y[learned])
    assert balanced_accuracy_score(y[~learned], model.predict(frame[~learned])) > 0.93


def test_joint_scores_are_those_of_a_logistic_regression():
    rng = np.random.default_rng(0)
    levels = {1: rng.integers(0, 3, 400), 4: rng.integers(0, 4, 400)}
    numbers, weights = rng.normal(size=(400, 2)) * [1, 100], rng.uniform(0.5, 2, 400)
    codes = (levels[1] + levels[4] + numbers[:, 0] + rng.normal(size=400) > 3).astype(float)
    found = joint_scores(levels, {1: 3, 4: 4}, numbers, codes, weights)
    rows = np.column_stack([np.eye(3)[levels[1]], np.eye(4)[levels[4]], numbers])
    mean = np.average(numbers, axis=0, weights=weights)
    rows[:, 7:] = (numbers - mean) / np.sqrt(np.average((numbers - mean) ** 2, axis=0, weights=weights))
    expected = LogisticRegression(C=1 / 5, tol=1e-10, max_iter=1000).fit(rows, codes, weights).coef_[0]
    for j, part in ((1, expected[:3]), (4, expected[3:7])):
        centred = part - np.average(part[levels[j]], weights=weights)
        np.testing.assert_allclose(found[j], centred, atol=1e-5)


@pytest.mark.parametrize(("n_first", "weight"), [(30_000, 1.0), (950, 1.0), (950, 1e6)])
def test_joint_scores_of_a_rare_class_and_of_heavy_rows(monkeypatch, n_first, weight):
    """Of many rows some are taken, but all of a rare class, and weights are no reason to take fewer."""
    monkeypatch.setattr(fit_columns, "_ROWS_REGRESSED", 1000)
    rng = np.random.default_rng(0)
    effects = np.array([-1.2, -0.4, 0.4, 1.2])
    levels = [rng.choice(4, n, p=softmax(side * effects / 2)) for side, n in ((-1, n_first), (1, 950))]
    y = np.repeat([0, 1], [n_first, 950])
    columns = [LabelColumn(np.concatenate(levels), tuple("abcd")), NumberColumn(rng.normal(size=len(y)))]
    learned = learn_columns(columns, ["level", "number"], y, np.full(len(y), weight), 2, one_direction=True)
    category = learned.columns.categories[0]
    scores = np.array([category.scores[category.levels.index(level)] for level in "abcd"])
    assert np.abs(scores - scores.mean() - effects).max() < 0.4
