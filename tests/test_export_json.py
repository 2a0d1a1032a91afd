"""JSON: a model read back predicts to the last bit what it predicted; a damaged file gives one clear error."""

import io
import json
import pickle
import re
from dataclasses import fields
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from export_cases import CASES, KINDS, additive, bands, fitted_case, flowers, framed, rings, short, through_skops
from melc import MELC, AdditiveMELC
from melc.export import export_text, from_json, to_json

DOCS = Path(__file__).parents[1] / "docs"
BOTH = pytest.mark.parametrize("estimator", [short(), additive(max_lines=1)])


def assert_same(again, model, rows):
    assert type(again) is type(model)
    for method in ("predict", "decision_function", "predict_proba", "line_log_odds"):
        np.testing.assert_array_equal(getattr(again, method)(rows), getattr(model, method)(rows))


class TestRoundTrips:
    @pytest.mark.parametrize("name", CASES)
    def test_predictions_survive_to_the_last_bit(self, name):
        model, rows = fitted_case(name)
        assert_same(from_json(to_json(model)), model, rows)

    @pytest.mark.parametrize("name", CASES)
    def test_attributes_survive(self, name):
        model, _ = fitted_case(name)
        again = from_json(to_json(model).encode())
        assert again.get_params() == model.get_params()
        written = {name for name in vars(model) if name.endswith("_")} - {"result_", "results_"}
        assert {name for name in vars(again) if name.endswith("_")} == written
        for name in written - {"lines_"}:
            np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
            assert type(getattr(again, name)) is type(getattr(model, name))
        for ours, theirs in zip(again.lines_, model.lines_, strict=True):
            for name in (field.name for field in fields(theirs) if field.name != "curves"):
                np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
            for mine, curve in zip(ours.curves, theirs.curves, strict=True):
                np.testing.assert_array_equal(mine.knots, curve.knots)
                np.testing.assert_array_equal(mine.log_odds, curve.log_odds)
        assert to_json(again) == to_json(model)
        assert export_text(again, odds=True) == export_text(model, odds=True)

    def test_thresholds_of_a_melc_survive(self):
        for name in ("two classes, priors", "three classes, priors"):
            model, _ = fitted_case(name)
            again = from_json(to_json(model))
            for attribute in ("coef_", "thresholds_", "interval_classes_"):
                for ours, theirs in zip(getattr(again, attribute), getattr(model, attribute), strict=True):
                    np.testing.assert_array_equal(ours, theirs)

    @pytest.mark.parametrize("name", KINDS)
    def test_pickle_joblib_and_skops(self, name):
        model, rows = fitted_case(name)
        buffer = io.BytesIO()
        joblib.dump(model, buffer)
        buffer.seek(0)
        for again in (pickle.loads(pickle.dumps(model)), joblib.load(buffer), through_skops(model)):
            assert_same(again, model, rows)

    @BOTH
    @pytest.mark.parametrize(
        "labels",
        [
            np.array([3, -7]),
            np.array([200, 255], dtype=np.uint8),
            np.array([False, True]),
            np.array([1.0, 2.0]),
            np.array(["ü", "日本"]),
            np.array(["b", "a"], dtype=object),
        ],
        ids=lambda labels: str(labels.dtype),
    )
    def test_labels_of_every_type(self, labels, estimator):
        X, y = bands(100)
        model = estimator.fit(X, labels[(y == "inner").astype(int)])
        again = from_json(to_json(model))
        assert again.classes_.dtype == model.classes_.dtype
        np.testing.assert_array_equal(again.predict(X), model.predict(X))

    @pytest.mark.parametrize(
        ("kind", "given"),
        [
            (MELC, {"gamma": 0.5, "shrinkage": "auto", "tol": 1e-3, "warm_start": True, "n_init": 1}),
            (AdditiveMELC, {"gamma": 0.5, "max_lines": 2, "features_per_line": None, "full_lines": "first"}),
        ],
    )
    def test_every_parameter_is_read_back(self, kind, given):
        model = kind(random_state=7, priors=[0.25, 0.75], n_jobs=-1, verbose=0, **given).fit(*bands(100))
        assert from_json(to_json(model)).get_params() == model.get_params()

    @BOTH
    def test_a_generator_as_random_state_is_left_out(self, estimator):
        model = estimator.fit(*bands(100))
        model.random_state = np.random.RandomState(0)
        assert from_json(to_json(model)).random_state is None
        model.random_state = 0

    @pytest.mark.parametrize("kind", [MELC, AdditiveMELC])
    def test_not_fitted(self, kind):
        with pytest.raises(NotFittedError):
            to_json(kind())


class TestContents:
    def test_the_document_tells_which_classifier_it_is(self):
        for name, kind in (("two classes", "MELC"), ("lines, priors", "AdditiveMELC")):
            document = json.loads(to_json(fitted_case(name)[0]))
            assert (document["format"], document["version"], document["classifier"]) == ("melc-model", 1, kind)

    def test_of_the_rows_there_are_projections_as_the_pages_say(self):
        """The outermost of each line, perhaps others. With a single feature, they are values of the feature."""
        X, y = bands(300, d=1)
        (line,) = json.loads(to_json(short().fit(X, y)))["lines"]
        assert [line["knots"][0], line["knots"][-1]] == [X.min(), X.max()]
        assert len(np.intersect1d(line["knots"], X)) > 2
        X, y = bands(6_000)
        document = json.loads(to_json(short().fit(X, y)))
        numbers = {float(number) for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", json.dumps(document))}
        assert not numbers.intersection(X.ravel())
        page = " ".join((DOCS / "user_guide" / "exports.md").read_text(encoding="utf-8").split())
        for text in (page, " ".join(to_json.__doc__.split())):
            assert re.search(r"the curves begin and end at the outermost \*?projections\*? of training rows", text)
            assert re.search(r"[Ww]ith a single feature, these are (its values|values of the feature)", text)

    @pytest.mark.slow
    @BOTH
    def test_kilobytes_whatever_the_number_of_rows(self, estimator):
        model = estimator.fit(*bands(6_000))
        assert len(to_json(model)) < 50_000
        assert len(pickle.dumps(model)) < 200_000


DELETE = object()


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


def update(**values):
    """Return a function that changes the first line of a document."""
    return lambda document: document["lines"][0].update(values)


LINE = ("lines", 0)

FAULTS = {
    "foreign format": (change(["format"], "other"), "Not a melc model: its 'format' should be 'melc-model', found"),
    "format as list": (change(["format"], ["melc-model"]), "Not a melc model"),
    "no format": (change(["format"], DELETE), "Not a melc model"),
    "no version": (change(["version"], DELETE), "the key 'version' is missing"),
    "newer version": (change(["version"], 99), "version 99.*Upgrade melc"),
    "version as text": (change(["version"], "1"), "version.*: expected an integer"),
    "version true": (change(["version"], True), "version.*: expected an integer"),
    "no classifier": (change(["classifier"], DELETE), "the key 'classifier' is missing"),
    "unknown classifier": (change(["classifier"], "SVC"), "classifier: expected 'MELC' or 'AdditiveMELC', found 'SVC'"),
    "classifier as list": (change(["classifier"], ["MELC"]), "classifier: expected 'MELC' or 'AdditiveMELC'"),
    "no classes": (change(["classes"], DELETE), "the key 'classes' is missing"),
    "unknown key": (change(["surprise"], 1), "the key 'surprise' is not known"),
    "one class": (change(["classes", "values"], ["a"]), "two or more different labels in ascending order"),
    "equal classes": (change(["classes", "values"], ["a", "a"]), "two or more different labels in ascending order"),
    "number among texts": (change(["classes", "values", 0], 1), r"values\[0\]: expected a string"),
    "label infinite as float32": (
        change(["classes"], {"type": "float32", "values": [1.0, 1e300]}),
        r"values: expected numbers in the range of float32, found \[1.0, 1e\+300\]",
    ),
    "label type": (change(["classes", "type"], "datetime64"), "type: expected 'str' or"),
    "label type as list": (change(["classes", "type"], ["str"]), "type: expected 'str' or"),
    "three classes": (change(["classes", "values"], ["a", "b", "c"]), "intercepts: expected 3 items, found 1"),
    "unknown parameter": (change(["parameters", "fast"], 1), "the key 'fast' is not known"),
    "wrong parameter": (change(["parameters", "gamma"], -1), "'gamma' parameter of (Additive)?MELC"),
    "parameter type": (change(["parameters", "verbose"], "much"), "'verbose' parameter of (Additive)?MELC"),
    "truth for a number": (change(["parameters", "gamma"], True), "'gamma' parameter of (Additive)?MELC must not be"),
    "no threads": (change(["parameters", "n_jobs"], 0), "parameters: .*'n_jobs' parameter of (Additive)?MELC"),
    "parameter object": (change(["parameters", "priors"], {"a": 0.5}), "priors: expected a finite number"),
    "parameter in a list": (
        change(["parameters", "priors"], [0.5, {"b": 1}]),
        r"priors\[1\]: expected a finite",
    ),
    "too many priors": (change(["parameters", "priors"], [0.3, 0.3, 0.4]), "parameters: priors=.*one for each class"),
    "priors above one": (change(["parameters", "priors"], [1, 1]), "parameters: priors=.*must add up to one"),
    "seed object": (change(["parameters", "random_state"], {"seed": 1}), "random_state: expected a finite number"),
    "seed negative": (change(["parameters", "random_state"], -1), "'random_state' parameter of (Additive)?MELC"),
    "huge integer": (change(["parameters", "verbose"], 10**30), "verbose: expected an integer"),
    "names missing one": (change(["feature_names"], ["a", "b"]), "feature_names: expected 5 items, found 2"),
    "names equal": (change(["feature_names"], list("aabcd")), "feature_names: expected different names"),
    "no features": (change(["n_features"], 0), "n_features: expected an integer from 1"),
    "features of a giant": (change(["n_features"], 2**40), "n_features: expected an integer from 1 to [0-9]+, found"),
    "mean too short": (change(["feature_mean"], [1.0]), "feature_mean: expected 5 items, found 1"),
    "mean not finite": (change(["feature_mean", 0], 1e999), "contains Infinity, which is not a finite number"),
    "no mean": (change(["feature_mean"], None), "feature_mean: expected a list"),
    "spread too short": (change(["feature_spread"], [1.0]), "feature_spread: expected 5 items, found 1"),
    "spread negative": (change(["feature_spread", 1], -1.0), "feature_spread: expected standard deviations"),
    "spread huge": (change(["feature_spread", 1], 1e308), "feature_spread: expected standard deviations"),
    "intercepts text": (change(["intercepts"], "big"), "intercepts: expected a list"),
    "intercepts too many": (change(["intercepts"], [0.0, 0.0]), "intercepts: expected 1 items, found 2"),
    "intercept of a giant": (change(["intercepts"], [1e300]), "intercepts: expected numbers from -1500 to 1500"),
    "another intercept": (
        change(["intercepts"], [99.0]),
        "counts: expected 1 items, found",
    ),
    "no lines": (change(["lines"], []), r"lines: expected one or more lines, found \[\]"),
    "lines object": (change(["lines"], {}), "lines: expected a list"),
    "line number": (change([*LINE], 5), r"lines\[0\]: expected an object"),
    "line without knots": (change([*LINE, "knots"], DELETE), r"lines\[0\]: the key 'knots' is missing"),
    "line with more": (change([*LINE, "colour"], 1), r"lines\[0\]: the key 'colour' is not known"),
    "feature out of range": (change([*LINE, "features", 1], 5), r"features\[1\]: expected an integer from 0 to 4"),
    "features descend": (update(features=[1, 0], weights=[0.6, 0.8]), "features: expected ascending indices"),
    "feature twice": (update(features=[1, 1], weights=[0.6, 0.8]), "features: expected ascending indices"),
    "no feature": (change([*LINE, "features"], []), "features: expected ascending indices of one or more"),
    "weight too few": (update(features=[0, 1], weights=[1.0]), "weights: expected 2 items, found 1"),
    "weight zero": (update(features=[0, 1], weights=[1.0, 0.0]), "weights: expected weights other than zero whose"),
    "weights too long": (update(features=[0, 1], weights=[0.7, 0.8]), "weights: .* whose squares add up to one"),
    "weights too short": (update(features=[0, 1], weights=[1e-200, 1e-200]), "weights: .* whose squares add up to one"),
    "weight huge": (change([*LINE, "weights", 0], -1e308), "weights: .* whose squares add up to one"),
    "weight huge integer": (change([*LINE, "weights", 0], 10**400), "expected a finite number"),
    "weight as text": (change([*LINE, "weights", 0], "1"), r"weights\[0\]: expected a finite number"),
    "minor as number": (change([*LINE, "minor"], 0), "minor: expected true or false, found 0"),
    "knots descend": (change([*LINE, "knots", 0], 1e9), "knots: expected one or more ascending"),
    "no knots": (change([*LINE, "knots"], []), "knots: expected one or more ascending"),
    "a knot less": (change([*LINE, "knots", 0], DELETE), r"log_odds\[0\]: expected [0-9]+ items, found"),
    "knots far apart": (update(knots=[-1.7e308, 1.7e308], log_odds=[[-1, 1]]), "knots: .* neither tiny nor huge"),
    "knots close together": (update(knots=[0, 5e-324], log_odds=[[-1, 1]]), "knots: .* neither tiny nor huge"),
    "slope infinite": (update(knots=[0, 1.2e-305], log_odds=[[-1500, 1500]]), "knots: .* neither tiny nor huge"),
    "log-odds null": (change([*LINE, "log_odds", 0, 0], None), r"log_odds\[0\]\[0\]: expected a finite number"),
    "log-odds of a giant": (change([*LINE, "log_odds", 0, 0], 1e300), "log_odds: expected numbers from -1500 to 1500"),
    "two curves": (change([*LINE, "log_odds"], [[1], [2]]), "log_odds: expected 1 items, found 2"),
    "errors of two curves": (change([*LINE, "errors"], [[1], [2]]), "errors: expected 1 items, found 2"),
    "errors too few": (change([*LINE, "errors"], [[1]]), r"errors\[0\]: expected [0-9]+ items, found 1"),
    "errors null": (change([*LINE, "errors"], None), "errors: expected a list"),
    "counts negative": (change([*LINE, "counts", 0, 0], -1), r"counts\[0\]\[0\]: expected a number that is not neg"),
    "counts too few": (change([*LINE, "counts"], [[1, 2]]), "counts: expected [0-9]+ items, found 1"),
    "counts of one class": (change([*LINE, "counts", 0], [1]), r"counts\[0\]: expected 2 items, found 1"),
    "importance text": (change([*LINE, "importance"], "high"), "importance: expected a finite number"),
    "importance negative": (change([*LINE, "importance"], -1), "importance: expected a number that is not negative"),
    "shares negative": (change([*LINE, "feature_importances", 0], -1), r"feature_importances\[0\]: expected a number"),
    "places descend": (change([*LINE, "places", 0], 1e9), "places: expected one or more ascending"),
    "one density": (change([*LINE, "densities"], [[]]), "densities: expected 2 items, found 1"),
    "density negative": (change([*LINE, "densities", 0, 0], -1), r"densities\[0\]\[0\]: expected a number that is not"),
    "density too short": (change([*LINE, "densities", 1], [1]), r"densities\[1\]: expected [0-9]+ items, found 1"),
}

# Faults in what only one of the classifiers has.
FAULTS_OF_ONE = {
    "no divergence": ("MELC", change(["divergence"], DELETE), "the key 'divergence' is missing"),
    "divergence text": ("MELC", change(["divergence"], "big"), "divergence: expected a list"),
    "two divergences": ("MELC", change(["divergence"], [1.0, 1.0]), "divergence: expected 1 items, found 2"),
    "iterations zero": ("MELC", change(["n_iter"], 0), "an integer from 1"),
    "gamma negative": ("MELC", change(["gamma"], -1), "gamma: expected a number from 1e-15 to 1e[+]15"),
    "gamma huge": ("MELC", change(["gamma"], 1e16), "gamma: expected a number from 1e-15 to 1e[+]15"),
    "wrong starts": ("MELC", change(["parameters", "n_init"], "many"), "'n_init' parameter of MELC"),
    "true for iterations": ("MELC", change(["parameters", "max_iter"], True), "'max_iter' parameter of MELC must not"),
    "other classifier": ("MELC", change(["classifier"], "AdditiveMELC"), "the key 'divergence' is not known"),
    "no longer additive": ("AdditiveMELC", change(["classifier"], "MELC"), "the key 'divergence' is missing"),
    "parameter of MELC": ("AdditiveMELC", change(["parameters", "n_init"], 3), "the key 'n_init' is not known"),
    "monotone in more features": (
        "AdditiveMELC",
        change(["parameters", "monotone"], [1, 0, 0, 0, 0, 0]),
        "parameters: monotone has 6 entries, but X has 5 features",
    ),
    "no line allowed": ("AdditiveMELC", change(["parameters", "max_lines"], 0), "'max_lines' parameter of Additive"),
}


@pytest.fixture(scope="module")
def models():
    """A model of two classes of either classifier, each with a single line."""
    X, y = rings()
    return {type(each).__name__: each.fit(framed(X), y) for each in (short(), additive(max_lines=1))}


@pytest.fixture(params=["MELC", "AdditiveMELC"])
def model(request, models):
    return models[request.param]


class TestFaultyFiles:
    @pytest.mark.parametrize("name", FAULTS)
    def test_one_clear_error_for_every_fault(self, model, name):
        self._refuses(model, *FAULTS[name])

    @pytest.mark.parametrize("name", FAULTS_OF_ONE)
    def test_one_clear_error_for_faults_of_one_classifier(self, models, name):
        kind, edit, message = FAULTS_OF_ONE[name]
        self._refuses(models[kind], edit, message)

    def _refuses(self, model, edit, message):
        document = json.loads(to_json(model))
        assert len(document["lines"][0]["counts"]) > 1
        from_json(json.dumps(document))
        edit(document)
        with pytest.raises(ValueError, match=message) as caught:
            from_json(json.dumps(document))
        assert "\n" not in str(caught.value)

    def test_a_standard_error_is_not_negative(self):
        document = json.loads(to_json(fitted_case("lines of three classes")[0]))
        document["lines"][0]["errors"][2][1] = -0.1
        with pytest.raises(ValueError, match=r"errors\[2\]\[1\]: expected a number that is not negative, found -0.1"):
            from_json(json.dumps(document))

    def test_each_class_has_a_curve_counts_and_a_density(self):
        document = json.loads(to_json(fitted_case("lines of three classes")[0]))
        for key in ("log_odds", "errors", "densities"):
            changed = json.loads(json.dumps(document))
            del changed["lines"][1][key][-1]
            with pytest.raises(ValueError, match=rf"lines\[1\].{key}: expected 3 items, found 2"):
                from_json(json.dumps(changed))
        document["lines"][1]["counts"][0] = [1, 2]
        with pytest.raises(ValueError, match=r"lines\[1\].counts\[0\]: expected 3 items, found 2"):
            from_json(json.dumps(document))

    @pytest.mark.parametrize(
        ("name", "wanted"), [("two classes", "a single line"), ("three classes", "3 lines, one for each class")]
    )
    def test_the_number_of_lines_of_a_melc(self, name, wanted):
        document = json.loads(to_json(fitted_case(name)[0]))
        lines = document["lines"]
        for line in lines:
            line["knots"], line["errors"], line["counts"] = [0.5], [], [[1] * len(document["classes"]["values"])]
            line["log_odds"] = [[1.0] for _ in line["log_odds"]]
        for wrong in ([*lines, lines[0]], lines[1:]):
            with pytest.raises(ValueError, match=f"lines: expected {wanted if wrong else 'one or more lines'}"):
                from_json(json.dumps(document | {"lines": wrong}))

    def test_their_number_is_checked_before_they_are_read(self):
        document = json.loads(to_json(fitted_case("two classes")[0]))
        with pytest.raises(ValueError, match="lines: expected a single line"):
            from_json(json.dumps(document | {"lines": ["no line"] * 2}))

    def test_counts_belong_to_the_thresholds_of_the_curve_plus_the_intercept(self):
        document = json.loads(to_json(short(priors=[0.9, 0.1]).fit(*flowers_of_two())))
        from_json(json.dumps(document))
        document["intercepts"] = [-document["intercepts"][0]]
        with pytest.raises(ValueError, match=r"counts: expected \d items, found \d"):
            from_json(json.dumps(document))

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
        text = re.sub(r'"importance": [0-9.e-]+', '"importance": 1e999', to_json(model))
        assert "1e999" in text
        with pytest.raises(ValueError, match="importance: expected a finite number, found inf"):
            from_json(text)

    def test_oversize(self, model):
        with pytest.raises(ValueError, match="exceed the limit of 100"):
            from_json(to_json(model), max_bytes=100)

    def test_every_truncation(self, model):
        text = to_json(model)
        for end in np.linspace(0, len(text) - 1, 200).astype(int):
            with pytest.raises(ValueError, match="damaged"):
                from_json(text[:end])

    @pytest.mark.slow
    @settings(max_examples=120, deadline=None)
    @given(data=st.data())
    def test_changed_bytes_give_a_model_or_a_value_error(self, models, data):
        model = models[data.draw(st.sampled_from(sorted(models)))]
        content = bytearray(to_json(model).encode())
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        self._accepts_or_refuses(bytes(content))

    @pytest.mark.slow
    @settings(max_examples=80, deadline=None)
    @given(st.binary(max_size=200))
    def test_random_bytes(self, content):
        self._accepts_or_refuses(content)

    @pytest.mark.slow
    @settings(max_examples=120, deadline=None)
    @given(data=st.data())
    def test_any_part_replaced_by_any_json(self, models, data):
        parent = document = json.loads(to_json(models[data.draw(st.sampled_from(sorted(models)))]))
        while True:
            keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
            key = data.draw(st.sampled_from(keys[:15]))
            child = parent[key]
            if not isinstance(child, (dict, list)) or not child or data.draw(st.booleans()):
                parent[key] = data.draw(ANY_JSON)
                break
            parent = child
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
        assert np.isfinite(restored.decision_function(rows)).all()


def flowers_of_two():
    X, y = flowers()
    return X, y == "versicolor"


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize("value", ["x" * 10_000, [1.0] * 5000])
@pytest.mark.parametrize("name", ["eps", "priors", "bandwidth", "long" * 2_500])
def test_an_error_about_a_parameter_is_short(name, value):
    X = np.arange(20.0)[:, None]
    document = json.loads(to_json(MELC(n_init=1, random_state=0).fit(X, X[:, 0] > 9)))
    document["parameters"][name] = value
    with pytest.raises(ValueError, match=r"melc model\.parameters: ") as caught:
        from_json(json.dumps(document))
    assert len(str(caught.value)) < 400


def test_a_label_that_cannot_be_encoded_is_refused():
    model = MELC(n_init=1, random_state=0).fit([[0.0], [1.0], [4.0], [5.0]], ["a\ud800"] * 2 + ["b"] * 2)
    with pytest.raises(ValueError, match=r"^'a\\ud800' contains half of a character, which JSON cannot express"):
        to_json(model)


@pytest.mark.parametrize(("name", "level"), [("\ud800", "a"), ("town", "\ud800")])
def test_names_and_levels_that_cannot_be_encoded_are_refused(name, level):
    numbers = np.arange(40)
    towns = pd.Series(np.resize(np.array([level, "b"], dtype=object), 40), dtype=object)
    model = short().fit(pd.DataFrame({"town": towns, "x": np.cos(numbers)}), (numbers + (numbers % 5 == 0)) % 2)
    model.feature_names_in_ = np.array([name, "x"], dtype=object)
    with pytest.raises(ValueError, match=r"^'\\ud800' contains half of a character, which JSON cannot express"):
        to_json(model)
