"""Models of both classifiers, rows, and interpreters of exported models, shared by the tests of melc.export."""

import json
import re
import sqlite3
from functools import cache

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.datasets import load_digits, load_iris, load_wine

from melc import MELC, AdditiveMELC
from melc.export import to_json, to_onnx

AWKWARD_NAMES = ['"; DROP TABLE "data"; --', "it's", "näme with space", "x * 2), (", "1 < 2", "[a]"]


def bands(n=400, d=3, seed=0):
    """Return rows and labels: "inner" if a linear combination of the features is near zero, else "outer"."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    position = X @ np.arange(1, d + 1) / d
    return X, np.where(np.abs(position) < 0.6, "inner", "outer")


def rings(n=300, d=5, seed=0):
    """Return rows and labels: "inner" within an ellipse in the plane of the first two features, else "outer"."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, np.where(X[:, 0] ** 2 + 0.7 * X[:, 1] ** 2 + 0.3 * X[:, 2] > 1.2, "outer", "inner")


def flowers():
    """Return the rows and species of iris; unequal classes, so that priors matter."""
    X, species = load_iris(return_X_y=True)
    keep = np.arange(150) % 4 != 2 * species
    return X[keep], np.array(["setosa", "versicolor", "virginica"])[species[keep]]


def framed(X):
    return pd.DataFrame(X, columns=[f"feature {j}" for j in range(X.shape[1])])


def short(**options):
    """Return a MELC that is fitted quickly."""
    return MELC(**{"n_init": 1, "tol": 1e-2, "random_state": 0, **options})


def additive(**options):
    """Return an AdditiveMELC of few lines."""
    return AdditiveMELC(**{"max_lines": 4, "random_state": 0, **options})


CASES = {
    "two classes": (bands, short()),
    "two classes, priors": (bands, short(priors=[0.8, 0.2])),
    "three classes": (flowers, short()),
    "three classes, priors": (flowers, short(priors="empirical")),
    "wine": (lambda: load_wine(return_X_y=True), short()),
    "lines of two features": (rings, additive()),
    "lines of one feature": (rings, additive(features_per_line=1)),
    "lines of all features": (lambda: rings(d=8), additive(features_per_line=None)),
    "one line": (rings, additive(max_lines=1, full_lines="never")),
    "one line, priors": (rings, additive(max_lines=1, priors=[0.6, 0.4])),
    "minor lines": (rings, additive(max_lines=2, other_features=True)),
    "lines, priors": (rings, additive(priors=[0.9, 0.1])),
    "lines of three classes": (flowers, additive()),
    "lines of three classes, priors": (flowers, additive(priors=[0.6, 0.3, 0.1], features_per_line=None)),
    "one line of three classes": (flowers, additive(max_lines=1, full_lines="never", priors="empirical")),
}
# One of each kind: two or more classes, both classifiers.
KINDS = ["two classes", "three classes, priors", "lines, priors", "lines of three classes"]


@cache
def fitted_case(name):
    """Return a fitted model, and 5000 rows in and far outside the range of its training rows."""
    data, estimator = CASES[name]
    X, y = data()
    return estimator.fit(framed(X), y), framed(around(X, 5000))


@cache
def fitted_digits():
    """Return a MELC of ten classes, and the training rows, of 64 features."""
    X, y = load_digits(return_X_y=True)
    return short().fit(X, y), pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])


def around(X, n, seed=0):
    """Return n rows in the range of the data, every fourth one multiplied by up to 1e8 or by 1e100 to 1e155."""
    rng = np.random.default_rng(seed)
    low, high = X.min(axis=0), X.max(axis=0)
    rows = rng.uniform(low - 0.3 * (high - low), high + 0.3 * (high - low), size=(n, X.shape[1]))
    far = np.arange(n) % 4 == 0
    exponents = np.where(rng.random(n) < 0.8, rng.uniform(0, 8, n), rng.uniform(100, 155, n))
    rows[far] *= 10 ** exponents[far, None]
    return rows


def on_thresholds(estimator, d=1):
    """Return a model of a single feature, and rows on its thresholds and knots, and on the floats next to them."""
    X, y = bands(300, d=d)
    model = estimator.fit(framed(X), y)
    places = np.concatenate([[*line.curves[0].knots, *line.thresholds] for line in model.lines_])
    return model, framed(np.concatenate([places, np.nextafter(places, -9), np.nextafter(places, 9)])[:, None])


def with_curve(model, knots, log_odds, counts):
    """Return the document of a model of two classes with a single line that has another curve."""
    document = json.loads(to_json(model))
    line = document["lines"][0] | {"knots": knots, "log_odds": [log_odds], "errors": [], "counts": counts}
    return document | {"lines": [line]}


def widened(model, n_features):
    """Return the document of a model of two classes whose first line has weights of so many features."""
    document = json.loads(to_json(model))
    weights = np.random.default_rng(0).normal(size=n_features)
    weights = (weights / np.linalg.norm(weights)).tolist()
    everything = {"features": list(range(n_features)), "weights": weights, "feature_importances": [1] * n_features}
    document["lines"][0] |= everything
    known = {"feature_mean": [0.0] * n_features, "feature_spread": [1.0] * n_features}
    return document | {"n_features": n_features, "feature_names": None, **known}


# ----------------------------------------------------------------------------------------------------------------- text


def apply_text_rule(text, frame):
    """Return the labels predicted by a printed rule, shape (n_rows,)."""
    weights_part, rule_part = text.split("class by the interval of z, with the training rows in it:\n")
    z = _text_projection(weights_part.splitlines()[1:], frame)
    labels = np.full(len(frame), None, dtype=object)
    for line in rule_part.splitlines():
        interval, rest = re.fullmatch(r"  (\S.*?)\s{3,}(.*)", line).groups()
        labels[_inside(interval, z)] = _leading_label(rest)
    return labels


def apply_text_with_odds(text, frame):
    """Return labels, shape (n_rows,), and probabilities, shape (n_rows, n_classes), by a text with odds."""
    *blocks, closing = text.split("\n\n")
    labels, odds = None, np.zeros((1, len(frame)))
    if heading := re.fullmatch(r"Log-odds of .* against .*: (\S+) \+ what \d+ lines? adds?", blocks[0]):
        odds += float(heading[1])
    elif blocks[0].startswith("Log-odds of each class: a constant + what "):
        rows = [re.fullmatch(r"  (\S.*?)\s{2,}(\S+)", row).groups() for row in blocks[0].splitlines()[1:]]
        labels = np.array([_unquote(label) for label, _ in rows])
        odds = np.repeat([[float(constant)] for _, constant in rows], len(frame), axis=1)
    for block in blocks:
        if "at the points of" in block:
            odds += _text_curves(block, frame)
    two = re.match(r"Where the log-odds are above 0, (.*) is predicted, elsewhere (.*)\.\nThe probability", closing)
    if two:
        labels = np.array([_unquote(two[2]), _unquote(two[1])])
        second = 1 / (1 + np.exp(np.clip(-odds[0], None, 700)))
        return labels[(odds[0] > 0).astype(int)], np.column_stack([1 - second, second])
    assert closing.startswith("The class with the largest log-odds is predicted, the first of equals.\n")
    assert closing.endswith("The probabilities are exp(log-odds) of each class, divided by their sum.")
    shares = np.exp(odds - odds.max(axis=0))
    return labels[np.argmax(odds, axis=0)], (shares / shares.sum(axis=0)).T


def _text_curves(block, frame):
    """Return what a line adds by its weights and the points of its curves, shape (n_curves, n_rows)."""
    rule, points = re.split(r"\n  z and .* at the points of .*:\n", block)
    start = re.search(r"z is the sum of weight × feature:\n", rule).end()
    weights = [line for line in rule[start:].splitlines() if re.match(r" +-?[0-9.e+-]+  \S", line)]
    table = [line for line in points.splitlines() if not line.startswith("    z ")]
    places, *values = np.array([[float(number) for number in line.split()] for line in table]).T
    z = _text_projection(weights, frame)
    return np.array([np.interp(z, places, column) for column in values])


def _text_projection(lines, frame):
    z = np.zeros(len(frame))
    for line in lines:
        number, name = line.strip().split("  ", 1)
        z += float(number) * frame[_unquote(name)].to_numpy()
    return z


def _inside(interval, z):
    if interval == "any z":
        return np.ones(len(z), dtype=bool)
    parts = interval.split(" ")
    if parts[0] == "z":
        return z < float(parts[2])
    low = z >= float(parts[0])
    return low if len(parts) == 3 else low & (z < float(parts[4]))


def _leading_label(text):
    return json.JSONDecoder().raw_decode(text)[0] if text.startswith('"') else text.split("  ")[0]


def _unquote(text):
    return json.loads(text) if text.startswith('"') else text


def apply_table_text(text, rows):
    """Return labels and probabilities by a text with odds, as :func:`apply_text_with_odds`, for rows of a table."""
    *blocks, closing = text.split("\n\n")
    two = re.match(r"Where the log-odds are above 0, (.*) is predicted, elsewhere (.*)\.\nThe probability", closing)
    if two:
        labels, constants = np.array([_unquote(two[2]), _unquote(two[1])]), [0.0]
        if heading := re.fullmatch(r"Log-odds of .* against .*: (\S+) \+ what \d+ lines? adds?", blocks[0]):
            constants = [float(heading[1])]
    else:
        pairs = [re.fullmatch(r"  (\S.*?)\s{2,}(\S+)", row).groups() for row in blocks[0].splitlines()[1:]]
        labels, constants = np.array([_unquote(label) for label, _ in pairs]), [float(number) for _, number in pairs]
    odds = np.repeat(np.array(constants)[:, None], len(rows), axis=1)
    for block in blocks:
        if re.search(r" at (each level|the points of .*):\n", block):
            odds += _added_to_rows(block, rows, len(constants))
    if two:
        second = 1 / (1 + np.exp(np.clip(-odds[0], None, 700)))
        return labels[(odds[0] > 0).astype(int)], np.column_stack([1 - second, second])
    shares = np.exp(odds - odds.max(axis=0))
    return labels[np.argmax(odds, axis=0)], (shares / shares.sum(axis=0)).T


def _added_to_rows(block, rows, n_curves):
    """Return what a line adds by a block of text, shape (n_curves, n_rows)."""
    rule, table = re.split(r"\n  .* at (?:each level|the points of .*):\n", block)
    cells = [line.strip().rsplit(maxsplit=n_curves) for line in table.splitlines()[n_curves > 1 :]]
    if cells[0][0][:1] == '"' or "the level of " in rule:
        name = _unquote(re.search(r"the level of (.*?)(?:, with the training rows:)?\n", rule)[1])
        values = {_level(cell): np.array(numbers, dtype=float) for cell, *numbers in cells}
        other = values.get("any other level", values.get("others"))
        return np.array([values.get(level, other) for level in _levels_in(rows[name])]).T
    missing = [np.array(numbers, dtype=float) for cell, *numbers in cells if cell == "missing"]
    knots, *values = np.array([cell for cell in cells if cell[0] != "missing"], dtype=float).T
    z = _sum_in_text(rule, rows, with_places=not missing)
    added = np.array([np.interp(z, knots, each) for each in values])
    return np.where(np.isnan(z), missing[0][:, None], added) if missing else added


def _sum_in_text(rule, rows, with_places):
    """Return z by the weights and points of a text, NaN where a number is missing, unless there is a place for it."""
    z, points = np.zeros(len(rows)), {}
    start = re.search(r"z is the sum of weight × feature.*:\n", rule).end()
    for line in rule[start:].splitlines():
        if not (found := re.match(r" +(-?[0-9.e+-]+)  (.*)", line)):
            break
        weight, what = float(found[1]), found[2]
        name = next(name for name in rows.columns if re.match(rf"{re.escape(name)}($| = | \()", what))
        if what.startswith(f"{name} = "):
            points.setdefault(name, {})[_level(what.removeprefix(f"{name} = "))] = weight
            continue
        place = re.search(r"(-?[0-9.e+-]+) if missing\)$", what)
        z += weight * _numbers_in(rows[name]).fillna(float(place[1]) if place and with_places else np.nan).to_numpy()
    for name, of_levels in points.items():
        other = of_levels.get("others", 0.0)
        z += np.array([of_levels.get(level, other) for level in _levels_in(rows[name])])
    return z


def _numbers_in(column):
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.astype(float).where(column.notna())
    return (column - pd.Timestamp(0)) / pd.Timedelta(days=1) if column.dtype.kind == "M" else column.astype(float)


def _level(text):
    """Return a level of a text as a pair that tells names from words."""
    words = {"(missing)": "missing", "(others)": "others", "(any other)": "any other level"}
    return words.get(text, ("name", _unquote(text)))


def _levels_in(column):
    whole = [str(int(x)) if isinstance(x, float) and x == x and x == int(x) else str(x) for x in column]
    return ["missing" if gone else ("name", x) for x, gone in zip(whole, column.isna(), strict=True)]


# ----------------------------------------------------------------------------------------------- databases and runtimes


def run_sql(query, frame, table="data", types=None, before=""):
    """Return the rows that SQLite gives for a query on a table with the rows of the frame.

    ``types`` are those of the columns by name, ``before`` is SQL that is run first.
    """
    with sqlite3.connect(":memory:") as connection:
        quoted, *columns = ['"' + name.replace('"', '""') + '"' for name in [table, *frame.columns]]
        kinds = [(types or {}).get(name, "") for name in frame.columns]
        defined = ", ".join(f"{name} {kind}" for name, kind in zip(columns, kinds, strict=True))
        marks = ", ".join("?" * frame.shape[1])
        connection.execute(f"CREATE TABLE {quoted} ({defined})")
        values = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
        connection.executemany(f"INSERT INTO {quoted} VALUES ({marks})", values)
        connection.execute(before)
        rows = connection.execute(query).fetchall()
        count = connection.execute(f"SELECT COUNT(*) FROM {quoted}").fetchone()[0]
    connection.close()
    assert count == len(frame)
    return rows


def run_duckdb(query, frame, table="data", types=None, before=""):
    """Return the rows that DuckDB gives for a query on a table with the rows of the frame, in their order.

    ``types`` are those of the columns by name, ``before`` is SQL that is run first.
    """
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        # Pandas' own types know missing values, which DuckDB takes for NULL.
        rows = frame.astype({name: "Float64" for name, kind in frame.dtypes.items() if kind == np.float64})
        connection.register("given", rows.reset_index(drop=True).rename_axis("number of row").reset_index())
        quoted, *columns = ['"' + name.replace('"', '""') + '"' for name in [table, *frame.columns]]
        if types:
            kinds = zip(columns, (types[name] for name in frame.columns), strict=True)
            columns = [f"CAST({name} AS {kind}) AS {name}" for name, kind in kinds]
        selected = ", ".join(['"number of row"', *columns])
        connection.execute(f"CREATE TEMPORARY TABLE {quoted} AS SELECT {selected} FROM given")
        if before:
            connection.execute(before)
        rows = connection.execute(query).fetchall()
    return [row[1:] for row in sorted(rows, key=lambda row: row[0])]


def onnx_session(fitted, **options_of_export):
    """Return a session of ONNX Runtime with the exported model."""
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    content = to_onnx(fitted, **options_of_export).SerializeToString()
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def onnx_inputs(session, model, rows, dtype="float64"):
    """Return the columns of a frame as the inputs of a session."""
    if model.columns_.are_numbers:
        return {"X": rows.to_numpy(dtype)}
    found = {}
    for each in session.get_inputs():
        column, j = rows[each.name], list(model.feature_names_in_).index(each.name)
        if each.type == "tensor(string)":
            levels = model.columns_.categories[j].levels if j in model.columns_.categories else model.columns_.ranks[j]
            missing = "" if "" not in levels else "(missing)" if "(missing)" not in levels else "(missing)_"
            found[each.name] = column.astype(object).where(column.notna(), missing).to_numpy(dtype=object)
        else:
            found[each.name] = _numbers_in(column).to_numpy(dtype=dtype)
    return found


def through_skops(fitted):
    """Return the model after writing it with skops and reading it back, which trusts nothing but this package."""
    content = skops.io.dumps(fitted)
    untrusted = skops.io.get_untrusted_types(data=content)
    assert all(name.startswith("melc.") for name in untrusted)
    return skops.io.loads(content, trusted=untrusted)
