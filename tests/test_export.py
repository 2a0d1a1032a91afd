"""A model as text, JSON, SQL and ONNX decides as the model does; a damaged file is one clear error."""

import copy
import io
import json
import pickle
import re
import sqlite3
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import NotFittedError

from melc import MELC
from melc.export import export_text, from_json, to_json, to_onnx, to_sql
from sqlite_mathematics import needs_sqlite_mathematics

AWKWARD_NAMES = ['"; DROP TABLE "data"; --', "it's", "näme with space", "x * 2), (", "1 < 2", "[a]"]


def bands(n=400, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    position = X @ np.arange(1, d + 1) / d
    return X, np.where(np.abs(position) < 0.6, "inner", "outer")


@pytest.fixture(scope="module")
def model():
    X, y = bands()
    return MELC(n_init=1, random_state=0).fit(pd.DataFrame(X, columns=["a", "b", "c d"]), y)


@pytest.fixture(scope="module")
def many_rows():
    return pd.DataFrame(np.random.default_rng(1).normal(size=(100_000, 3), scale=3), columns=["a", "b", "c d"])


def apply_text_rule(text, frame):
    """Evaluate a rule from its printed form alone."""
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
    """The class of every row among several, from nothing but what is printed."""
    *blocks, closing = text.split("\n\n")
    least = float(re.search(r"(\S+) × \(1 \+ log\(1 \+ \|log f1 - log f0\|\)\)", closing)[1])
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


def _text_odds(numbers, z, s, least):
    """The formulas at the end of the text."""
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
    return s * np.maximum(s * plain, least * (1 + np.log(1 + np.abs(log_f1 - log_f0))))


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


class TestText:
    def test_the_printed_rule_decides_as_predict(self, model, many_rows):
        labels = apply_text_rule(export_text(model), many_rows)
        np.testing.assert_array_equal(labels, model.predict(many_rows))

    def test_counts_are_those_of_the_training_rows(self, model):
        X, y = bands()
        intervals = np.searchsorted(model.thresholds_, X @ model.coef_[0], side="right")
        lines = export_text(model).splitlines()[-len(model.interval_classes_) :]
        for k, line in enumerate(lines):
            inner, outer = (np.sum((intervals == k) & (y == label)) for label in ("inner", "outer"))
            assert line.endswith(f"({inner} inner, {outer} outer)")

    def test_strongest_feature_first(self, model):
        shown = [line.split("  ")[-1] for line in export_text(model).splitlines()[1:4]]
        order = np.argsort(-np.abs(model.coef_[0]))
        assert shown == [["a", "b", "c d"][i] for i in order]

    def test_awkward_names_and_labels_stay_readable_by_a_program(self):
        X, y = bands(d=6)
        names = [*AWKWARD_NAMES[:4], "line\nbreak", "  spaces  "]
        labels = np.where(y == "inner", "a (b), <c>", "two  spaces\n")
        fitted = MELC(n_init=1, random_state=0).fit(pd.DataFrame(X, columns=names), labels)
        text = export_text(fitted)
        np.testing.assert_array_equal(
            apply_text_rule(text, pd.DataFrame(X, columns=names)),
            fitted.predict(pd.DataFrame(X, columns=names)),
        )

    def test_digits_shorten(self, model):
        assert len(export_text(model, digits=3)) < len(export_text(model))

    def test_weighted_counts_and_models_without_counts(self, model):
        X, y = bands()
        weighted = MELC(n_init=1, random_state=0).fit(X, y, sample_weight=np.full(len(y), 0.5))
        assert re.search(r"\(\d+\.5 inner|\(\d+ inner, \d+\.5 outer", export_text(weighted))
        bare = copy.deepcopy(json.loads(to_json(model)))
        for decision in bare["decisions"]:
            decision["counts"] = None
        assert export_text(from_json(json.dumps(bare))).endswith("outer")

    def test_wrong_number_of_names(self, model):
        with pytest.raises(ValueError, match="feature_names has 1 names, but the model has 3"):
            export_text(model, ["only"])


class TestJson:
    def test_predictions_survive_to_the_last_bit(self, model, many_rows):
        again = from_json(to_json(model))
        np.testing.assert_array_equal(again.predict(many_rows), model.predict(many_rows))
        few = many_rows[:2000]
        np.testing.assert_array_equal(again.decision_function(few), model.decision_function(few))
        np.testing.assert_array_equal(again.predict_proba(few), model.predict_proba(few))

    def test_attributes_survive(self, model):
        again = from_json(to_json(model))
        assert again.get_params() == model.get_params()
        for name in ("coef_", "thresholds_", "interval_classes_", "classes_", "feature_names_in_"):
            np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
        assert (again.divergence_, again.n_iter_) == (model.divergence_, model.n_iter_)
        assert to_json(again) == to_json(model)

    @pytest.mark.parametrize(
        "labels",
        [
            np.array([3, -7]),
            np.array([200, 255], dtype=np.uint8),
            np.array([False, True]),
            np.array([1.0, 2.0]),
            np.array(["ü", "日本"]),
            np.array(["a", "b"], dtype=object),
        ],
        ids=lambda labels: str(labels.dtype),
    )
    def test_labels_of_every_type(self, labels):
        X, y = bands(100)
        fitted = MELC(n_init=1, random_state=0).fit(X, labels[(y == "inner").astype(int)])
        again = from_json(to_json(fitted))
        assert again.classes_.dtype == fitted.classes_.dtype
        np.testing.assert_array_equal(again.predict(X), fitted.predict(X))

    def test_a_generator_as_random_state_is_left_out(self):
        X, y = bands(100)
        fitted = MELC(n_init=1, random_state=np.random.RandomState(0)).fit(X, y)
        assert from_json(to_json(fitted)).random_state is None

    def test_kilobytes_whatever_the_number_of_rows(self):
        X, y = bands(6_000)
        fitted = MELC(n_init=1, method="bin", eps=1e-2, random_state=0).fit(X, y)
        assert len(to_json(fitted)) < 200_000
        assert len(pickle.dumps(fitted)) < 200_000

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            to_json(MELC())

    def test_bytes_are_read_too(self, model):
        assert from_json(to_json(model).encode()).n_features_in_ == 3


def change(path, value):
    """An edit of a document: put a value at a path, or delete what is there."""

    def edit(document):
        *parents, last = path
        for key in parents:
            document = document[key]
        if value is DELETE:
            del document[last]
        else:
            document[last] = value

    return edit


def two_thresholds(model):
    """The model's document with a decision of three intervals, whatever it was."""
    document = json.loads(to_json(model))
    document["decisions"][0] |= {"thresholds": [-0.6, 0.6], "codes": [1, 0, 1], "counts": [[0, 1]] * 3}
    return document


DELETE = object()
DENSITY = ("decisions", 0, "densities", 0)

FAULTS = {
    "foreign format": (change(["format"], "other"), "This is no melc model"),
    "no format": (change(["format"], DELETE), "This is no melc model"),
    "no version": (change(["version"], DELETE), "the key 'version' is missing"),
    "newer version": (change(["version"], 99), "version 99.*Upgrade melc"),
    "version as text": (change(["version"], "1"), "version.*: expected a whole number"),
    "version true": (change(["version"], True), "version.*: expected a whole number"),
    "no classes": (change(["classes"], DELETE), "the key 'classes' is missing"),
    "unknown key": (change(["surprise"], 1), "the key 'surprise' is not known"),
    "one class": (change(["classes", "values"], ["a"]), "two or more different labels"),
    "equal classes": (change(["classes", "values"], ["a", "a"]), "two or more different labels"),
    "number among texts": (change(["classes", "values", 0], 1), r"values\[0\]: expected a text"),
    "label type": (change(["classes", "type"], "datetime64"), "type: expected 'str' or"),
    "label type as list": (change(["classes", "type"], ["str"]), "type: expected 'str' or"),
    "three classes, one rule": (change(["classes", "values"], ["a", "b", "c"]), "expected 3 items, found 1"),
    "unknown parameter": (change(["parameters", "fast"], 1), "the key 'fast' is not known"),
    "wrong parameter": (change(["parameters", "gamma"], -1), "'gamma' parameter of MELC"),
    "parameter type": (change(["parameters", "n_init"], "many"), "'n_init' parameter of MELC"),
    "coef as text": (change(["coef", 0, 0], "0.5"), r"coef\[0\]\[0\]: expected a finite number"),
    "coef empty": (change(["coef", 0], []), "expected at least one weight"),
    "coef flat": (change(["coef"], [1.0]), r"coef\[0\]: expected a list"),
    "coef huge integer": (change(["coef", 0, 0], 10**400), "expected a finite number"),
    "names missing one": (change(["feature_names"], ["a", "b"]), "feature_names: expected 3 items, found 2"),
    "names equal": (change(["feature_names"], ["a", "a", "b"]), "expected names that differ"),
    "thresholds descend": (change(["decisions", 0, "thresholds"], [2.0, 1.0]), "expected ascending"),
    "threshold null": (change(["decisions", 0, "thresholds", 0], None), "expected a finite number"),
    "code out of range": (change(["decisions", 0, "codes", 0], 7), "whole number from 0 to 1"),
    "codes repeat": (change(["decisions", 0, "codes"], [0, 0, 0]), "codes that take turns"),
    "codes too few": (change(["decisions", 0, "codes"], [0]), "expected 3 items, found 1"),
    "counts negative": (change(["decisions", 0, "counts", 0, 0], -1), "counts of zero or more"),
    "no densities": (change(["decisions", 0, "densities"], DELETE), "the key 'densities' is missing"),
    "one density": (change(["decisions", 0, "densities"], []), "expected 2 items"),
    "variance zero": (change([*DENSITY, "variance"], 0), "variance: expected a positive number"),
    "weights off": (change([*DENSITY, "weights", 0], 5.0), "positive weights with sum one"),
    "support unsorted": (change([*DENSITY, "support", 0], 1e9), "support: expected ascending"),
    "decisions object": (change(["decisions"], {}), "decisions: expected a list"),
    "decision number": (change(["decisions", 0], 5), r"decisions\[0\]: expected an object"),
    "divergence text": (change(["divergence"], "big"), "divergence: expected a list"),
    "iterations zero": (change(["n_iter"], 0), "whole number from 1"),
}


class TestFaultyFiles:
    @pytest.mark.parametrize("name", FAULTS)
    def test_one_clear_error_for_every_fault(self, model, name):
        edit, message = FAULTS[name]
        document = two_thresholds(model)
        from_json(json.dumps(document))
        edit(document)
        with pytest.raises(ValueError, match=message) as caught:
            from_json(json.dumps(document))
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "or it is damaged"),
            ("{", "or it is damaged"),
            (b"\xff\xfe\x00", "or it is damaged"),
            ("[]", "expected an object"),
            ("null", "expected an object"),
            ('{"format": NaN}', "NaN, which is no finite number"),
            ('{"format": -Infinity}', "-Infinity, which is no finite number"),
            ('{"a": 1, "a": 2}', "a key occurs twice"),
            ("[" * 100_000, "nested too deeply"),
            ("9" * 10_000, "or it is damaged"),
            (12, "expected text, found int"),
        ],
    )
    def test_text_that_is_no_model(self, text, message):
        with pytest.raises(ValueError, match=message):
            from_json(text)

    def test_overflowing_numbers_are_refused(self, model):
        text = to_json(model).replace(f'"variance": {model.decisions_[0].densities[0].variance!r}', '"variance": 1e999')
        assert "1e999" in text
        with pytest.raises(ValueError, match="variance: expected a finite number, found inf"):
            from_json(text)

    def test_oversize(self, model):
        with pytest.raises(ValueError, match="more than the limit of 100"):
            from_json(to_json(model), max_bytes=100)

    def test_every_truncation(self, model):
        text = to_json(model)
        for end in np.linspace(0, len(text) - 1, 200).astype(int):
            with pytest.raises(ValueError, match="damaged"):
                from_json(text[:end])

    @settings(max_examples=300, deadline=None)
    @given(data=st.data())
    def test_changed_bytes_give_a_model_or_a_value_error(self, model, data):
        content = bytearray(to_json(model).encode())
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.integers(0, len(content) - 1))
            content[place] = data.draw(st.integers(0, 255))
        self._accepts_or_refuses(bytes(content))

    @settings(max_examples=200, deadline=None)
    @given(st.binary(max_size=200))
    def test_random_bytes(self, content):
        self._accepts_or_refuses(content)

    @settings(max_examples=200, deadline=None)
    @given(data=st.data())
    def test_any_part_replaced_by_any_json(self, model, data):
        document = json.loads(to_json(model))
        parents = [document]
        while isinstance(parents[-1], (dict, list)) and parents[-1]:
            keys = list(parents[-1]) if isinstance(parents[-1], dict) else list(range(len(parents[-1])))
            key = data.draw(st.sampled_from(keys[:6]))
            child = parents[-1][key]
            if not isinstance(child, (dict, list)) or data.draw(st.booleans()):
                parents[-1][key] = data.draw(ANY_JSON)
                break
            parents.append(child)
        self._accepts_or_refuses(json.dumps(document).encode())

    def _accepts_or_refuses(self, content):
        try:
            restored = from_json(content)
        except ValueError:
            return
        rows = np.zeros((2, restored.n_features_in_))
        if hasattr(restored, "feature_names_in_"):
            rows = pd.DataFrame(rows, columns=list(restored.feature_names_in_))
        assert set(restored.predict(rows)) <= set(restored.classes_)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def run_sql(query, frame, table="data"):
    with sqlite3.connect(":memory:") as connection:
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


class TestSql:
    def test_sqlite_decides_as_predict(self, model, many_rows):
        rows = run_sql(to_sql(model), many_rows)
        np.testing.assert_array_equal([row[-1] for row in rows], model.predict(many_rows))
        np.testing.assert_allclose([row[-2] for row in rows], many_rows.to_numpy() @ model.coef_[0])

    def test_names_and_labels_cannot_break_out(self):
        X, y = bands(d=len(AWKWARD_NAMES))
        frame = pd.DataFrame(X, columns=AWKWARD_NAMES)
        labels = np.where(y == "inner", "'; DROP TABLE data; --", "O\"Neil's")
        fitted = MELC(n_init=1, random_state=0).fit(frame, labels)
        table = 'odd "table"; DROP TABLE x'
        rows = run_sql(to_sql(fitted, table), frame, table)
        assert [row[-1] for row in rows] == fitted.predict(frame).tolist()

    @pytest.mark.parametrize("labels", [[1, 2], [False, True], [1.0, 2.0]])
    def test_labels_that_are_no_texts(self, labels):
        X, y = bands(200)
        fitted = MELC(n_init=1, random_state=0).fit(X, np.array(labels)[(y == "inner").astype(int)])
        rows = run_sql(to_sql(fitted), pd.DataFrame(X, columns=["x0", "x1", "x2"]))
        assert [row[-1] for row in rows] == fitted.predict(X).tolist()

    def test_null_in_null_out(self, model):
        rows = run_sql(to_sql(model), pd.DataFrame({"a": [None], "b": [1.0], "c d": [2.0]}, dtype=object))
        assert rows[0][-1] is None

    def test_a_missing_column_is_an_error_not_a_text(self, model):
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            run_sql(to_sql(model), pd.DataFrame({"a": [1.0], "b": [1.0]}))

    def test_more_features_than_sqlite_takes_in_one_chain(self, model):
        document = two_thresholds(model)
        document["coef"] = [np.random.default_rng(0).normal(size=1500, scale=0.03).tolist()]
        del document["feature_names"]
        wide = from_json(json.dumps(document))
        X = np.random.default_rng(1).normal(size=(60, 1500))
        rows = run_sql(to_sql(wide), pd.DataFrame(X, columns=[f"x{i}" for i in range(1500)]))
        assert [row[-1] for row in rows] == wide.predict(X).tolist()
        assert len({row[-1] for row in rows}) == 2

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"prediction": "A"}, "'A' is also a feature"),
            ({"projection": "b"}, "'b' is also a feature"),
            ({"prediction": "z", "projection": "Z"}, "need different names"),
            ({"feature_names": ["a", "A", "b"]}, "'a' occurs twice"),
            ({"table": "a\0b"}, "NUL character"),
            ({"feature_names": ["a", "b"]}, "feature_names has 2 names"),
        ],
    )
    def test_faults(self, model, arguments, message):
        with pytest.raises(ValueError, match=message):
            to_sql(model, **arguments)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")
class TestOnnx:
    def session(self, fitted):
        onnxruntime = pytest.importorskip("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        content = to_onnx(fitted).SerializeToString()
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def test_onnxruntime_decides_as_predict(self, model, many_rows):
        session = self.session(model)
        for start in range(0, len(many_rows), 20_000):  # the densities are rows × support points
            rows = many_rows[start : start + 20_000]
            labels, decision = session.run(None, {"X": rows.to_numpy()})
            np.testing.assert_array_equal(labels, model.predict(rows))
            np.testing.assert_allclose(decision, model.decision_function(rows), rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("labels", [[1, 2], [False, True], [1.0, 2.0]])
    def test_labels_that_are_no_texts(self, labels):
        X, y = bands(200)
        fitted = MELC(n_init=1, random_state=0).fit(X, np.array(labels)[(y == "inner").astype(int)])
        found, _ = self.session(fitted).run(None, {"X": X})
        assert found.tolist() == fitted.predict(X).tolist()

    def test_far_from_the_data_and_at_the_thresholds(self):
        X, y = bands(200, d=1)
        fitted = MELC(n_init=1, random_state=0).fit(X, y)
        edges = fitted.thresholds_ / fitted.coef_[0, 0]
        rows = np.concatenate([edges, [-1e6, 1e6, 0.0]])[:, None]
        found, decision = self.session(fitted).run(None, {"X": rows})
        assert found.tolist() == fitted.predict(rows).tolist()
        np.testing.assert_allclose(decision, fitted.decision_function(rows), rtol=1e-9, atol=1e-9)

    def test_without_onnx_the_error_has_the_remedy(self, model, monkeypatch):
        monkeypatch.setitem(sys.modules, "onnx", None)
        with pytest.raises(ImportError, match=r"pip install 'melc\[export\]'"):
            to_onnx(model)


@pytest.fixture(scope="module", params=[None, "empirical"])
def iris(request):
    frame, species = load_iris(return_X_y=True, as_frame=True)
    labels = np.array(["setosa", "versicolor", "virginica"])[species]
    keep = np.arange(150) % 4 != 2 * species  # unequal classes, so that priors matter
    fitted = MELC(n_init=2, tol=1e-3, random_state=0, priors=request.param).fit(frame[keep], labels[keep])
    return fitted, pd.DataFrame(around(frame.to_numpy(), 100_000), columns=frame.columns)


def around(X, n, seed=0):
    """Rows among the data, and every fourth one far outside: up to 1e8 times their range, and beyond 1e100 times."""
    rng = np.random.default_rng(seed)
    low, high = X.min(axis=0), X.max(axis=0)
    rows = rng.uniform(low - 0.3 * (high - low), high + 0.3 * (high - low), size=(n, X.shape[1]))
    far = np.arange(n) % 4 == 0
    exponents = np.where(rng.random(n) < 0.8, rng.uniform(0, 8, n), rng.uniform(100, 155, n))
    rows[far] *= 10 ** exponents[far, None]
    return rows


@pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")
class TestSeveralClasses:
    def test_json(self, iris):
        fitted, rows = iris
        again = from_json(to_json(fitted))
        np.testing.assert_array_equal(again.predict(rows), fitted.predict(rows))
        np.testing.assert_array_equal(again.predict_proba(rows[:1000]), fitted.predict_proba(rows[:1000]))
        assert to_json(again) == to_json(fitted)
        for name in ("thresholds_", "interval_classes_"):
            for ours, theirs in zip(getattr(again, name), getattr(fitted, name), strict=True):
                np.testing.assert_array_equal(ours, theirs)

    def test_onnx(self, iris):
        fitted, rows = iris
        session = TestOnnx().session(fitted)
        for start in range(0, len(rows), 20_000):
            part = rows[start : start + 20_000]
            labels, decision = session.run(None, {"X": part.to_numpy()})
            np.testing.assert_array_equal(labels, fitted.predict(part))
            np.testing.assert_allclose(decision, fitted.decision_function(part), rtol=1e-9, atol=1e-9)

    def test_text_has_a_rule_a_class_and_none_contradicts_predict(self, iris):
        fitted, rows = iris
        *blocks, closing = export_text(fitted).split("\n\n")
        assert len(blocks) == 3
        assert closing.startswith("Where one rule alone names its class, that class is predicted. Where none or")
        assert "odds=True" in closing
        named = [apply_text_rule(block.split("\n", 1)[1], rows) != "rest" for block in blocks]
        alone = np.sum(named, axis=0) == 1
        assert alone.mean() > 0.2
        expected = fitted.classes_[np.argmax(named, axis=0)]
        np.testing.assert_array_equal(fitted.predict(rows)[alone], expected[alone])

    def test_text_with_odds_decides_as_predict(self, iris):
        fitted, rows = iris
        text = export_text(fitted, odds=True)
        np.testing.assert_array_equal(apply_text_with_odds(text, rows), fitted.predict(rows))
        assert "odds=True" not in text

    def test_a_class_called_rest_is_told_from_the_rest(self):
        X, y = load_iris(return_X_y=True)
        fitted = MELC(n_init=1, tol=1e-2, random_state=0).fit(X, np.array(["rest", "b", "c"])[y])
        assert '\nClass "rest" against the rest\n' in export_text(fitted)
        assert re.search(r'<=? z.*   "rest"  \(\d+ rest, \d+ "rest"\)', export_text(fitted))

    def test_odds_add_nothing_to_two_classes(self, model):
        assert export_text(model, odds=True) == export_text(model)

    @needs_sqlite_mathematics
    def test_sql(self, iris):
        fitted, rows = iris
        rows = rows[:2000]
        found = run_sql(to_sql(fitted), rows)
        assert [row[-1] for row in found] == fitted.predict(rows).tolist()
        near = np.abs(rows).max(axis=1) < 100
        projections = np.array([row[-4:-1] for row in found])
        np.testing.assert_allclose(projections[near], fitted.transform(rows)[near], atol=1e-12)

    def test_pickle_and_skops(self, iris):
        fitted, rows = iris
        for again in (pickle.loads(pickle.dumps(fitted)), _through_skops(fitted)):
            np.testing.assert_array_equal(again.predict(rows[:5000]), fitted.predict(rows[:5000]))


# With the number of rows that SQLite can classify in no time.
OTHERS = {"wine": (load_wine, 2000), "digits": (load_digits, 60)}


@pytest.fixture(scope="module", params=OTHERS)
def other(request):
    load, n_rows = OTHERS[request.param]
    X, y = load(return_X_y=True)
    frame = pd.DataFrame(around(X, 10_000), columns=[f"x{i}" for i in range(X.shape[1])])
    return MELC(n_init=1, tol=1e-2, random_state=0).fit(X[::2], y[::2]), frame, n_rows


@pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")
class TestMoreFeaturesAndClasses:
    """Wine and digits: dozens of features, up to ten classes, whole numbers as labels."""

    def test_text_with_odds(self, other):
        fitted, rows, _ = other
        found = apply_text_with_odds(export_text(fitted, odds=True), rows)
        np.testing.assert_array_equal(found.astype(int), fitted.predict(rows.to_numpy()))

    def test_onnx(self, other):
        fitted, rows, _ = other
        session = TestOnnx().session(fitted)
        for start in range(0, len(rows), 2000):
            part = rows[start : start + 2000].to_numpy()
            np.testing.assert_array_equal(session.run(["label"], {"X": part})[0], fitted.predict(part))

    @needs_sqlite_mathematics
    def test_sql(self, other):
        fitted, rows, n = other
        expected = fitted.predict(rows[:n].to_numpy())
        assert len(np.unique(expected)) > 2
        assert [row[-1] for row in run_sql(to_sql(fitted), rows[:n])] == expected.tolist()


@needs_sqlite_mathematics
class TestSqlOfSeveralClasses:
    def fit(self, labels, columns=("a", "b", "c")):
        """Few rows, so that the query is quick."""
        rng = np.random.default_rng(0)
        y = np.arange(10 * len(columns)) % 3
        X = pd.DataFrame(rng.normal(size=(len(y), len(columns))) + 2 * y[:, None], columns=columns)
        return MELC(n_init=1, random_state=0).fit(X, np.array(labels)[y]), X

    def test_a_hundred_thousand_rows(self):
        fitted, X = self.fit(["low", "middle", "high"])
        rows = pd.DataFrame(around(X.to_numpy(), 100_000), columns=X.columns)
        np.testing.assert_array_equal([row[-1] for row in run_sql(to_sql(fitted), rows)], fitted.predict(rows))

    @pytest.mark.parametrize("labels", [[3, 5, 11], [1.0, 2.0, 3.0], ["'; DROP TABLE data; --", "O\"Neil's", ""]])
    def test_labels(self, labels):
        fitted, X = self.fit(labels)
        assert [row[-1] for row in run_sql(to_sql(fitted), X)] == fitted.predict(X).tolist()

    @pytest.mark.parametrize("table", ['odd "table"; DROP TABLE x', "melc0_0", "MELC_0_0", "p", "z0"])
    def test_names(self, table):
        fitted, X = self.fit(["a", "b", "c"], [*AWKWARD_NAMES, "z0", "c0", "own", "place", "p"])
        assert [row[-1] for row in run_sql(to_sql(fitted, table), X, table)] == fitted.predict(X).tolist()

    def test_null_in_null_out(self):
        fitted, _ = self.fit(["a", "b", "c"])
        rows = run_sql(to_sql(fitted), pd.DataFrame({"a": [None], "b": [1.0], "c": [2.0]}, dtype=object))
        assert rows[0][-1] is None

    def test_a_class_that_no_interval_belongs_to(self):
        """Priors that leave a class without any threshold."""
        fitted, X = self.fit(["a", "b", "c"])
        document = json.loads(to_json(fitted))
        document["decisions"][1] |= {"thresholds": [], "codes": [0], "counts": None}
        changed = from_json(json.dumps(document))
        assert [row[-1] for row in run_sql(to_sql(changed), X)] == changed.predict(X).tolist()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"prediction": "projection1"}, "need different names"),
            ({"feature_names": ["a", "b", "Projection2"]}, "'projection2' is also a feature"),
        ],
    )
    def test_faults(self, arguments, message):
        fitted, _ = self.fit(["a", "b", "c"])
        with pytest.raises(ValueError, match=message):
            to_sql(fitted, **arguments)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")
def test_a_model_that_never_changes_its_mind(model):
    """No threshold at all: one density is above the other everywhere."""
    document = two_thresholds(model)
    document["decisions"][0] |= {"thresholds": [], "codes": [1], "counts": [[3, 5]]}
    constant = from_json(json.dumps(document))
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)), columns=["a", "b", "c d"])
    assert set(constant.predict(rows)) == {"outer"}
    assert set(apply_text_rule(export_text(constant), rows)) == {"outer"}
    assert {row[-1] for row in run_sql(to_sql(constant), rows)} == {"outer"}
    assert set(TestOnnx().session(constant).run(None, {"X": rows.to_numpy()})[0]) == {"outer"}


def _through_skops(fitted):
    content = skops.io.dumps(fitted)
    return skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))


class TestOtherRoundTrips:
    def same(self, again, model, rows):
        np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
        np.testing.assert_array_equal(again.decision_function(rows[:500]), model.decision_function(rows[:500]))

    def test_pickle(self, model, many_rows):
        self.same(pickle.loads(pickle.dumps(model)), model, many_rows)

    def test_joblib(self, model, many_rows):
        buffer = io.BytesIO()
        joblib.dump(model, buffer)
        buffer.seek(0)
        self.same(joblib.load(buffer), model, many_rows)

    def test_skops_trusts_nothing_but_this_package(self, model, many_rows):
        content = skops.io.dumps(model)
        untrusted = skops.io.get_untrusted_types(data=content)
        assert all(name.startswith("melc.") for name in untrusted)
        self.same(skops.io.loads(content, trusted=untrusted), model, many_rows)
