"""Text and JSON: exported models predict exactly as the model does; a damaged file gives one clear error."""

import copy
import io
import json
import pickle
import re
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from export_cases import AWKWARD_NAMES, apply_text_rule, bands, fitted_bands, random_rows, two_thresholds
from melc import MELC
from melc.export import export_text, from_json, to_json

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def model():
    return fitted_bands()


@pytest.fixture(scope="module")
def many_rows():
    return random_rows()


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

    def test_of_the_rows_there_are_projections_as_the_pages_say(self):
        """With a single feature these are its values. Of a class with many, only the outermost are there."""
        X, y = bands(300, d=1)
        (decision,) = json.loads(to_json(MELC(n_init=1, random_state=0).fit(X, y)))["decisions"]
        for label, density in zip(("inner", "outer"), decision["densities"], strict=True):
            assert set(np.abs(density["support"])) == set(np.abs(X[y == label, 0]))
        X, y = bands(6_000)
        fitted = MELC(n_init=1, random_state=0).fit(X, y)
        document = json.loads(to_json(fitted))
        numbers = {float(number) for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", json.dumps(document))}
        assert not numbers.intersection(X.ravel())
        for label, density in zip(("inner", "outer"), document["decisions"][0]["densities"], strict=True):
            z = np.sort(fitted.transform(X[y == label])[:, 0])
            assert len(density["support"]) < len(z) / 2
            assert [density["support"][0], density["support"][-1]] == [z[0], z[-1]]
        page = " ".join((DOCS / "user_guide" / "exports.md").read_text(encoding="utf-8").split())
        for text in (page, " ".join(to_json.__doc__.split())):
            assert re.search(r"projections\*? of the training rows if a class has (at most|no more than) 2,?048", text)
            assert re.search(r"[Ww]ith a single feature, these are its values", text)

    def test_a_generator_as_random_state_is_left_out(self):
        X, y = bands(100)
        fitted = MELC(n_init=1, random_state=np.random.RandomState(0)).fit(X, y)
        assert from_json(to_json(fitted)).random_state is None

    def test_kilobytes_whatever_the_number_of_rows(self):
        X, y = bands(6_000)
        fitted = MELC(n_init=1, method="bin", eps=1e-2, random_state=0).fit(X, y)
        assert len(to_json(fitted)) < 200_000
        assert len(pickle.dumps(fitted)) < 200_000

    def test_every_parameter_is_read_back(self):
        X, y = bands(100)
        given = {
            "gamma": 0.5,
            "priors": [0.25, 0.75],
            "shrinkage": "auto",
            "n_jobs": -1,
            "tol": 1e-3,
            "warm_start": True,
        }
        fitted = MELC(n_init=1, random_state=7, **given).fit(X, y)
        assert from_json(to_json(fitted)).get_params() == fitted.get_params()

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            to_json(MELC())

    def test_bytes_are_read_too(self, model):
        assert from_json(to_json(model).encode()).n_features_in_ == 3


def change(path, value):
    """Return a function that sets the value at a path of a document, or deletes it."""

    def edit(document):
        *parents, last = path
        for key in parents:
            document = document[key]
        if value is DELETE:
            del document[last]
        else:
            document[last] = value

    return edit


DELETE = object()
DENSITY = ("decisions", 0, "densities", 0)

FAULTS = {
    "foreign format": (change(["format"], "other"), "Not a melc model"),
    "file of melc fit": (change(["format"], "melc-table-model"), "Read it with melc.tables.table_model_from_json"),
    "no format": (change(["format"], DELETE), "Not a melc model"),
    "no version": (change(["version"], DELETE), "the key 'version' is missing"),
    "newer version": (change(["version"], 99), "version 99.*Upgrade melc"),
    "version as text": (change(["version"], "1"), "version.*: expected an integer"),
    "version true": (change(["version"], True), "version.*: expected an integer"),
    "no classes": (change(["classes"], DELETE), "the key 'classes' is missing"),
    "unknown key": (change(["surprise"], 1), "the key 'surprise' is not known"),
    "one class": (change(["classes", "values"], ["a"]), "two or more different labels in ascending order"),
    "equal classes": (change(["classes", "values"], ["a", "a"]), "two or more different labels in ascending order"),
    "number among texts": (change(["classes", "values", 0], 1), r"values\[0\]: expected a string"),
    "label type": (change(["classes", "type"], "datetime64"), "type: expected 'str' or"),
    "label type as list": (change(["classes", "type"], ["str"]), "type: expected 'str' or"),
    "three classes, one rule": (change(["classes", "values"], ["a", "b", "c"]), "expected 3 items, found 1"),
    "unknown parameter": (change(["parameters", "fast"], 1), "the key 'fast' is not known"),
    "wrong parameter": (change(["parameters", "gamma"], -1), "'gamma' parameter of MELC"),
    "parameter type": (change(["parameters", "n_init"], "many"), "'n_init' parameter of MELC"),
    "truth for a number": (change(["parameters", "max_iter"], True), "'max_iter' parameter of MELC must not be"),
    "no threads": (change(["parameters", "n_jobs"], 0), "parameters: .*'n_jobs' parameter of MELC"),
    "parameter object": (change(["parameters", "priors"], {"a": 0.5, "b": 0.5}), "priors: expected a finite number"),
    "parameter in a list": (
        change(["parameters", "priors"], [0.5, {"b": 1}]),
        r"priors\[1\]: expected a finite number",
    ),
    "too many priors": (change(["parameters", "priors"], [0.3, 0.3, 0.4]), "parameters: priors=.*one for each class"),
    "priors above one": (change(["parameters", "priors"], [1, 1]), "parameters: priors=.*must add up to one"),
    "seed object": (change(["parameters", "random_state"], {"seed": 1}), "random_state: expected a finite number"),
    "seed negative": (change(["parameters", "random_state"], -1), "'random_state' parameter of MELC"),
    "huge integer": (change(["parameters", "max_iter"], 10**30), "max_iter: expected an integer"),
    "spread negative": (change(["feature_spread"], [1.0, -1.0, 1.0]), "feature_spread: expected standard deviations"),
    "mean too short": (change(["feature_mean"], [1.0]), "feature_mean: expected 3 items, found 1"),
    "mean not finite": (change(["feature_mean"], [1.0, 1e999, 1.0]), "contains Infinity, which is not a finite number"),
    "spread too short": (change(["feature_spread"], [1.0]), "feature_spread: expected 3 items, found 1"),
    "variance tiny": (change([*DENSITY, "variance"], 1e-310), "variance: expected a positive number from 1e-305"),
    "variance huge": (change([*DENSITY, "variance"], 1e307), "variance: expected a positive number from 1e-305"),
    "support far away": (
        change([*DENSITY], {"support": [-1e200, 1e200], "weights": [0.5, 0.5], "variance": 1.0}),
        "densities: expected supports and variances whose squares do not overflow",
    ),
    "coef zero": (change(["coef", 0], [0.0, 0.0, 0.0]), "expected weights that are not all zero"),
    "coef huge": (change(["coef", 0, 0], 1e308), "coef: expected weights from -1 to 1"),
    "gamma negative": (change(["gamma"], -1), "gamma: expected a number from 1e-15 to 1e[+]15"),
    "gamma huge": (change(["gamma"], 1e16), "gamma: expected a number from 1e-15 to 1e[+]15"),
    "spread huge": (change(["feature_spread"], [1.0, 1e308, 1.0]), "feature_spread: expected standard deviations"),
    "coef as text": (change(["coef", 0, 0], "0.5"), r"coef\[0\]\[0\]: expected a finite number"),
    "coef empty": (change(["coef", 0], []), "expected at least one weight"),
    "coef flat": (change(["coef"], [1.0]), r"coef\[0\]: expected a list"),
    "coef huge integer": (change(["coef", 0, 0], 10**400), "expected a finite number"),
    "names missing one": (change(["feature_names"], ["a", "b"]), "feature_names: expected 3 items, found 2"),
    "names equal": (change(["feature_names"], ["a", "a", "b"]), "feature_names: expected different names"),
    "thresholds descend": (change(["decisions", 0, "thresholds"], [2.0, 1.0]), r"expected ascending.*\[2\.0, 1\.0\]"),
    "threshold null": (change(["decisions", 0, "thresholds", 0], None), "expected a finite number"),
    "code out of range": (change(["decisions", 0, "codes", 0], 7), "an integer from 0 to 1"),
    "codes repeat": (change(["decisions", 0, "codes"], [0, 0, 0]), "expected alternating codes"),
    "codes too few": (change(["decisions", 0, "codes"], [0]), "expected 3 items, found 1"),
    "counts negative": (change(["decisions", 0, "counts", 0, 0], -1), "expected non-negative counts"),
    "no densities": (change(["decisions", 0, "densities"], DELETE), "the key 'densities' is missing"),
    "one density": (change(["decisions", 0, "densities"], []), "expected 2 items"),
    "variance zero": (change([*DENSITY, "variance"], 0), "variance: expected a positive number"),
    "weights off": (change([*DENSITY, "weights", 0], 5.0), "positive weights that sum to 1"),
    "support unsorted": (change([*DENSITY, "support", 0], 1e9), "support: expected ascending"),
    "decisions object": (change(["decisions"], {}), "decisions: expected a list"),
    "decision number": (change(["decisions", 0], 5), r"decisions\[0\]: expected an object"),
    "divergence text": (change(["divergence"], "big"), "divergence: expected a list"),
    "iterations zero": (change(["n_iter"], 0), "an integer from 1"),
}


@pytest.mark.slow
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
            ("", "or a damaged one"),
            ("{", "or a damaged one"),
            (b"\xff\xfe\x00", "or a damaged one"),
            ("[]", "expected an object"),
            ("null", "expected an object"),
            ('{"format": NaN}', "contains NaN, which is not a finite number"),
            ('{"format": -Infinity}', "-Infinity, which is not a finite number"),
            ('{"a": 1, "a": 2}', "the same key twice"),
            ("[" * 100_000, "nested too deeply"),
            ("9" * 10_000, "or a damaged one"),
            (12, "expected text or bytes, found int"),
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
        with pytest.raises(ValueError, match="exceed the limit of 100"):
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


def test_text_has_no_characters_that_a_terminal_obeys():
    names = ["a\x7f\x9b31m", "b\u202etxt", "c\u2028d", "e\U000e0001f"]
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = MELC(n_init=1, random_state=0).fit(X, X[:, 0] > 0)
    text = export_text(model, feature_names=names)
    assert all(line.isprintable() for line in text.split("\n"))
    assert r"b\u202etxt" in text
