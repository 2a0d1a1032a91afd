"""Models, rows and interpreters of exported rules, shared by the tests of melc.export."""

import json
import re
import sqlite3

import numpy as np
import pandas as pd
import pytest
import skops.io

from melc import MELC
from melc.export import to_json, to_onnx

AWKWARD_NAMES = ['"; DROP TABLE "data"; --', "it's", "näme with space", "x * 2), (", "1 < 2", "[a]"]


def bands(n=400, d=3, seed=0):
    """Return rows and labels: "inner" if a linear combination of the features is near zero, else "outer"."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    position = X @ np.arange(1, d + 1) / d
    return X, np.where(np.abs(position) < 0.6, "inner", "outer")


def fitted_bands():
    """Return a model of two classes with the features "a", "b" and "c d"."""
    X, y = bands()
    return MELC(n_init=1, random_state=0).fit(pd.DataFrame(X, columns=["a", "b", "c d"]), y)


def random_rows():
    """Return 100,000 rows for that model."""
    return pd.DataFrame(np.random.default_rng(1).normal(size=(100_000, 3), scale=3), columns=["a", "b", "c d"])


def around(X, n, seed=0):
    """Return n rows in the range of the data, every fourth one multiplied by up to 1e8 or by 1e100 to 1e155."""
    rng = np.random.default_rng(seed)
    low, high = X.min(axis=0), X.max(axis=0)
    rows = rng.uniform(low - 0.3 * (high - low), high + 0.3 * (high - low), size=(n, X.shape[1]))
    far = np.arange(n) % 4 == 0
    exponents = np.where(rng.random(n) < 0.8, rng.uniform(0, 8, n), rng.uniform(100, 155, n))
    rows[far] *= 10 ** exponents[far, None]
    return rows


def two_thresholds(model):
    """Return the document of the model, changed to two thresholds."""
    document = json.loads(to_json(model))
    document["decisions"][0] |= {"thresholds": [-0.6, 0.6], "codes": [1, 0, 1], "counts": [[0, 1]] * 3}
    return document


def apply_text_rule(text, frame):
    """Return the labels predicted by a printed rule, shape (n_rows,)."""
    weights_part, rule_part = text.split("class by the interval of z, with the training rows in it:\n")
    z = _text_projection(weights_part, frame)
    labels = np.full(len(frame), None, dtype=object)
    for line in rule_part.splitlines():
        interval, rest = re.fullmatch(r"  (\S.*?)\s{3,}(.*)", line).groups()
        labels[_inside(interval, z)] = _leading_label(rest)
    return labels


def _text_projection(weights_part, frame):
    z = np.zeros(len(frame))
    for line in weights_part.splitlines()[1:]:
        number, name = line.strip().split("  ", 1)
        z += float(number) * frame[_unquote(name)].to_numpy()
    return z


def apply_text_with_odds(text, frame):
    """Return the labels predicted by the printed rules and odds of more than two classes, shape (n_rows,)."""
    *blocks, closing = text.split("\n\n")
    least = float(re.search(r"(\S+) × \(1 \+ log\(1 \+ d\)\)", closing)[1])
    titles, rest = zip(*(block.split("\n", 1) for block in blocks), strict=True)
    labels = [_unquote(title.removeprefix("Class ").removesuffix(" against the rest")) for title in titles]
    rules, numbers = zip(*(part.split("\nodds of the class:\n") for part in rest), strict=True)
    named = np.array([apply_text_rule(rule, frame) != "rest" for rule in rules])
    best = np.argmax(named, axis=0)
    unclear = np.sum(named, axis=0) != 1
    weights = [rule.split("\nclass by the interval")[0] for rule in rules]
    odds = [
        _text_odds(numbers[k], _text_projection(weights[k], frame[unclear]), 2 * named[k][unclear] - 1, least)
        for k in range(len(labels))
    ]
    best[unclear] = np.argmax(odds, axis=0)
    return np.array(labels)[best]


def apply_additive_text(text, frame):
    """Return the labels predicted by the text of an additive model with odds, shape (n_rows,)."""
    *parts, closing = text.split("\n\n")
    odds, labels = [], []
    for part in parts:
        heading = re.fullmatch(r"Log-odds of (.*) against (.*): (\S+) \+ what \d+ lines? adds?", part)
        if heading:
            labels.append((_unquote(heading[2]), _unquote(heading[1])))
            odds.append(np.full(len(frame), float(heading[3])))
        else:
            odds[-1] += _text_curve(part, frame)
    if closing.startswith("Where the log-odds are above 0"):
        return np.array(labels[0])[(odds[0] > 0).astype(int)]
    return np.array([mine for _, mine in labels])[np.argmax(odds, axis=0)]


def _text_curve(block, frame):
    """Return what a line adds by its weights and the points of its curve."""
    rule, points = block.split("constant beyond the outermost:\n")
    weights = "\n".join([line for line in rule.splitlines() if line.startswith("    ")])
    places, values = np.array([[float(number) for number in line.split()] for line in points.splitlines()]).T
    return np.interp(_text_projection(f"\n{weights}", frame), places, values)


def _text_odds(numbers, z, s, least):
    """Return the log odds by the formulas at the end of the text."""
    head, rest, own = re.split(r"\n(?=  rest log prior|  class log prior)", numbers)
    value, points = {}, {}
    for whose, part in (("", head), ("rest", rest), ("class", own)):
        named, _, pairs = part.partition(" places and weights:\n")
        lines = [line.strip().rsplit("  ", 1) for line in named.splitlines() if line.strip() != whose]
        value |= {name: float(number) for name, number in lines}
        points[whose] = [[float(number) for number in line.split()] for line in pairs.splitlines()]
    t = np.clip(z, value["lowest t"], value["highest t"])
    log_f1, log_f0 = (
        value[f"{each} log prior"]
        - np.log(2 * np.pi * value[f"{each} variance"]) / 2
        + _log_sum(np.array(points[each]), t, value[f"{each} variance"])
        for each in ("class", "rest")
    )
    distance = (t - value["background centre"]) / value["background scale"]
    log_b = value["background log height"] - np.log(1 + distance**2)
    plain = np.logaddexp(0, log_f1 - log_b) - np.logaddexp(0, log_f0 - log_b)
    return s * np.maximum(s * plain, least * (1 + np.log(1 + np.maximum(s * (log_f1 - log_f0), 0))))


def _log_sum(points, t, variance):
    place, weight = points.T
    sums = []
    for part in np.array_split(t, len(t) * len(place) // 1_000_000 + 1):
        exponents = -((part[:, None] - place) ** 2) / (2 * variance)
        largest = exponents.max(axis=1)
        sums.append(largest + np.log(np.exp(exponents - largest[:, None]) @ weight))
    return np.concatenate(sums)


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


def run_sql(query, frame, table="data", functions=None):
    """Return the rows that SQLite gives for a query on a table with the rows of the frame.

    ``functions`` replace those of SQLite that take one argument, by name.
    """
    with sqlite3.connect(":memory:") as connection:
        for name, function in (functions or {}).items():
            connection.create_function(name, 1, function)
        columns = ", ".join('"' + name.replace('"', '""') + '"' for name in frame.columns)
        marks = ", ".join("?" * frame.shape[1])
        quoted = '"' + table.replace('"', '""') + '"'
        connection.execute(f"CREATE TABLE {quoted} ({columns})")
        connection.executemany(f"INSERT INTO {quoted} VALUES ({marks})", frame.to_numpy().tolist())
        rows = connection.execute(query).fetchall()
        count = connection.execute(f"SELECT COUNT(*) FROM {quoted}").fetchone()[0]
    connection.close()
    assert count == len(frame)
    return rows


def run_duckdb(query, frame):
    """Return the rows that DuckDB gives for a query on a table "data" with the rows of the frame, in their order."""
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("data", frame.reset_index(drop=True).rename_axis("number").reset_index())
        rows = connection.sql(query).fetchall()
    return [row[1:] for row in sorted(rows, key=lambda row: row[0])]


def onnx_session(fitted, **options_of_export):
    """Return a session of ONNX Runtime with the exported model."""
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    content = to_onnx(fitted, **options_of_export).SerializeToString()
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def through_skops(fitted):
    """Return the model after writing it with skops and reading it back."""
    content = skops.io.dumps(fitted)
    return skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))
