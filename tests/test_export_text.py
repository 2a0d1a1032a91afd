"""Text: what is printed predicts as the model does, and is short enough to be read; for both classifiers."""

import json
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from export_cases import (
    AWKWARD_NAMES,
    CASES,
    KINDS,
    additive,
    apply_text_rule,
    apply_text_with_odds,
    bands,
    fitted_case,
    fitted_digits,
    flowers,
    framed,
    rings,
    short,
    with_curve,
)
from melc.export import export_text, from_json, to_json
from melc.export.text import numbers_apart
from melc.model.line import decides_alone, log_odds_of

RULES_OF_TWO = ["two classes", "two classes, priors", "one line", "one line, priors"]
SEVERAL_LINES = ["lines of two features", "lines, priors", "lines of three classes"]


class TestPredictions:
    @pytest.mark.parametrize("name", RULES_OF_TWO)
    def test_a_rule_decides_as_predict(self, name):
        model, rows = fitted_case(name)
        np.testing.assert_array_equal(apply_text_rule(export_text(model), rows), model.predict(rows))

    @pytest.mark.parametrize("name", CASES)
    def test_with_odds_labels_and_probabilities_can_be_computed(self, name):
        model, rows = fitted_case(name)
        labels, proba = apply_text_with_odds(export_text(model, odds=True), rows)
        np.testing.assert_array_equal(labels, model.predict(rows).astype(str))
        near = np.abs(rows).max(axis=1) < 100  # further away, the order of a sum matters
        np.testing.assert_allclose(proba[near], model.predict_proba(rows)[near], atol=1e-9)

    @pytest.mark.slow
    def test_ten_classes(self):
        model, rows = fitted_digits()
        labels, _ = apply_text_with_odds(export_text(model, odds=True), rows)
        np.testing.assert_array_equal(labels.astype(int), model.predict(rows.to_numpy()))

    def test_a_rule_alone_that_names_its_class_is_right(self):
        model, rows = fitted_case("three classes")
        *blocks, closing = export_text(model).split("\n\n")
        assert len(blocks) == 3
        assert closing.startswith("Where one rule alone names its class, that class is predicted. Where none or")
        assert "odds=True" in closing
        named = [apply_text_rule(block.split("\n", 1)[1], rows) != "rest" for block in blocks]
        alone = np.sum(named, axis=0) == 1
        assert alone.mean() > 0.2
        np.testing.assert_array_equal(model.predict(rows)[alone], model.classes_[np.argmax(named, axis=0)][alone])
        assert "odds=True" not in export_text(model, odds=True)

    @pytest.mark.parametrize("estimator", [short(), additive()])
    def test_awkward_names_and_labels_stay_readable_by_a_program(self, estimator):
        X, y = bands(d=6)
        frame = pd.DataFrame(X, columns=[*AWKWARD_NAMES[:4], "line\nbreak", "  spaces  "])
        for first, second in (("a (b), <c>", "two  spaces\n"), ("a (b), <c>", "against b: 5 + what")):
            model = estimator.fit(frame, np.where(y == "inner", first, second))
            labels, _ = apply_text_with_odds(export_text(model, odds=True), frame)
            np.testing.assert_array_equal(labels, model.predict(frame))
            if decides_alone(model):
                np.testing.assert_array_equal(apply_text_rule(export_text(model), frame), model.predict(frame))


class TestRules:
    def test_counts_are_those_of_the_training_rows(self):
        (X, y), (model, _) = bands(), fitted_case("two classes")
        intervals = np.searchsorted(model.thresholds_, X @ model.coef_[0], side="right")
        lines = export_text(model).splitlines()[-len(model.interval_classes_) :]
        assert len(lines) > 1
        for k, line in enumerate(lines):
            inner, outer = (np.sum((intervals == k) & (y == label)) for label in ("inner", "outer"))
            assert line.endswith(f"({inner} inner, {outer} outer)")

    def test_strongest_feature_first(self):
        model, rows = fitted_case("two classes")
        shown = [line.split("  ")[-1] for line in export_text(model).splitlines()[1:4]]
        order = np.argsort(-np.abs(model.coef_[0] * model.feature_spread_))
        assert shown == rows.columns[order].tolist()

    def test_weighted_counts(self):
        X, y = bands()
        weighted = short().fit(X, y, sample_weight=np.full(len(y), 0.5))
        assert re.search(r"\(\d+\.5 inner|\(\d+ inner, \d+\.5 outer", export_text(weighted))

    @pytest.mark.parametrize("estimator", [short(), additive()])
    def test_a_class_called_rest_is_told_from_the_rest(self, estimator):
        X, y = flowers()
        text = export_text(estimator.fit(X, np.where(y == "setosa", "rest", y)))
        assert re.search(r'^(Class|Log-odds of) "rest" against the rest', text, re.MULTILINE)
        assert re.search(r'   (for )?"rest"  \(\d+ rest, \d+ "rest"\)', text)

    def test_a_model_that_never_changes_its_mind(self):
        constant = from_json(json.dumps(with_curve(fitted_case("two classes")[0], [0.5], [2.0], [[3, 5]])))
        assert export_text(constant).endswith("\n  any z   outer  (3 inner, 5 outer)")
        constant = from_json(json.dumps(with_curve(fitted_case("lines, priors")[0], [0.5], [9.0], [[3, 5]])))
        assert export_text(constant).endswith("\n  any z   outer  (3 inner, 5 outer)")


class TestSeveralLines:
    @pytest.mark.parametrize("name", SEVERAL_LINES)
    def test_lines_are_numbered_from_one_and_in_the_order_of_importance(self, name):
        model, _ = fitted_case(name)
        numbers = [int(n) for n in re.findall(r"^Line (\d+), importance", export_text(model), re.MULTILINE)]
        expected = [
            k + 1 for each in log_odds_of(model) for k in sorted(each.lines, key=lambda k: -model.lines_[k].importance)
        ]
        assert numbers == expected
        assert sorted(numbers) == [*range(1, len(model.lines_) + 1)] != [1]

    def test_intercept_classes_and_decision(self):
        text = export_text(additive(priors=[0.9, 0.1], max_lines=2).fit(*rings()))
        assert text.startswith("Log-odds of outer against inner: -2.2 + what 2 lines add\n")
        assert text.endswith("Where the log-odds are above 0, outer is predicted, elsewhere inner.")

    def test_several_classes(self):
        text = export_text(fitted_case("lines of three classes")[0])
        found = re.findall(r"^Log-odds of (\w+) against the rest: 0 \+", text, re.MULTILINE)
        assert found == ["setosa", "versicolor", "virginica"]
        assert text.endswith("The class with the largest log-odds is predicted, the first of equals.")

    def test_the_only_line_of_a_class_among_others_with_several_includes_the_intercept(self):
        model, _ = fitted_case("lines of three classes, priors")
        document = json.loads(to_json(model))
        first = next(k for k, line in enumerate(document["lines"]) if line["class_index"] == 2)
        kept = [line for k, line in enumerate(document["lines"]) if line["class_index"] != 2 or k == first]
        intercept = document["intercepts"][2]
        curve = document["lines"][first]
        changes = np.count_nonzero(np.diff(np.array(curve["log_odds"]) + intercept > 0))
        curve["counts"] = [[1, 2]] * (changes + 1)
        changed = from_json(json.dumps(document | {"lines": kept}))
        text = export_text(changed, odds=True)
        assert "Log-odds of virginica against the rest: 0.0 + what 1 line adds" in text
        rows = fitted_case("lines of three classes, priors")[1]
        np.testing.assert_array_equal(apply_text_with_odds(text, rows)[0], changed.predict(rows))

    def test_weights_and_counts_of_a_line(self):
        (X, y), (model, _) = rings(), fitted_case("lines of two features")
        text = export_text(model, digits=6)
        for k, line in enumerate(model.lines_):
            block = text[text.index(f"Line {k + 1}, ") :].split("\n\n")[0].splitlines()
            terms = re.findall(r"(-?) ?([\d.e-]+) feature (\d)", block[0].split("z = ")[1])
            weights = {int(j): float(sign + number) for sign, number, j in terms}
            assert weights == pytest.approx({int(j): line.direction[j] for j in line.features}, rel=1e-5)
            interval = np.searchsorted(line.thresholds, X @ line.direction, side="right")
            for i, row in enumerate(block[1:]):
                inner, outer = (np.sum((interval == i) & (y == label)) for label in ("inner", "outer"))
                assert row.endswith(f"({inner} inner, {outer} outer)")
                assert f"for {'outer' if line.codes[i] else 'inner'} " in row

    @pytest.mark.parametrize("name", SEVERAL_LINES)
    def test_the_range_of_an_interval_holds_what_the_line_adds_there(self, name):
        model, _ = fitted_case(name)
        text = export_text(model, digits=12)
        for k, line in enumerate(model.lines_):
            block = text[text.index(f"Line {k + 1}, ") :].split("\n\n")[0]
            ranges = [[float(least), float(most)] for least, most in re.findall(r"adds (\S+) to (\S+) ", block)]
            curve = line.curve
            ends = [curve.knots[0] - 1, *curve.thresholds, curve.knots[-1] + 1]
            for (left, right), (least, most) in zip(pairwise(ends), ranges, strict=True):
                values = curve.at(np.linspace(left, right, 2001))
                assert values.min() == pytest.approx(least, abs=0.02 * np.ptp(curve.log_odds))
                assert values.max() == pytest.approx(most, abs=0.02 * np.ptp(curve.log_odds))
                assert values.min() >= least - 1e-9
                assert values.max() <= most + 1e-9

    def test_the_strongest_of_many_features_and_the_number_of_the_others(self):
        X, y = rings(d=9)
        model = additive(features_per_line=None, max_lines=2).fit(X, y)
        heading = next(line for line in export_text(model).splitlines() if line.startswith("Line 1,"))
        strongest = np.argsort(-model.lines_[0].feature_importances)[:4]
        assert [int(j) for j in re.findall(r" x(\d)", heading)] == strongest.tolist()
        assert heading.endswith(f" + {len(model.lines_[0].features) - 4} more")
        text = export_text(additive(features_per_line=None, max_lines=2).fit(X[:, :5], y))
        assert "Line 1" in text
        assert "more" not in text  # the fifth is named rather than counted

    def test_short_unless_digits_are_asked_for(self):
        model, _ = fitted_case("lines of two features")
        assert re.search(r"importance \d\.\d\d?: z = -?[\d.e-]{1,9} feature", export_text(model))
        assert len(export_text(model)) < len(export_text(model, digits=9)) < len(export_text(model, odds=True))


class TestDigits:
    @pytest.mark.parametrize("name", KINDS)
    def test_they_shorten(self, name):
        model, _ = fitted_case(name)
        assert len(export_text(model, digits=3, odds=True)) < len(export_text(model, odds=True))

    @pytest.mark.parametrize("estimator", [short(), additive(features_per_line=1, full_lines="never")])
    @pytest.mark.parametrize("offset", [0.0, 1e3, -1e6])
    def test_thresholds_stay_apart_where_features_have_an_offset(self, estimator, offset):
        """Three digits of -999999.4 and -1000000.6 are the same."""
        X, y = bands(d=2)
        model = estimator.fit(X + offset, y)
        for text in (export_text(model, digits=3), export_text(model, digits=3, odds=True)):
            shown = [float(t) for t in re.findall(r"^  z < (\S+)| z < (\S+) ", text, re.MULTILINE) for t in t if t]
            expected = np.concatenate([line.thresholds for line in model.lines_])
            assert len(set(shown)) == len(shown) == len(expected) > 1
            np.testing.assert_allclose(np.sort(shown), np.sort(expected), rtol=6e-3, atol=0.1)

    def test_as_many_as_asked_for_or_needed(self):
        assert numbers_apart(np.array([0.23456, 1.09876]), 5.0, 2) == ["0.23", "1.1"]
        assert numbers_apart(np.array([2001.26, 2002.44]), 5.0, 3) == ["2001.3", "2002.4"]
        assert numbers_apart(np.array([123456.7]), 5.0, 3) == ["123457"]  # one, but the rows lie within five
        assert numbers_apart(np.array([123456.7]), 1e6, 3) == ["1.23e+05"]
        close = np.array([1.0, np.nextafter(1, 2)])
        assert [float(text) for text in numbers_apart(close, 1.0, 3)] == close.tolist()
        assert numbers_apart(np.array([1 / 3]), 1.0, None) == [repr(1 / 3)]
        assert numbers_apart(np.array([]), 0.0, 3) == []


@pytest.mark.parametrize("name", KINDS)
def test_wrong_number_of_names(name):
    model, _ = fitted_case(name)
    with pytest.raises(ValueError, match=f"feature_names has 1 names, but the model has {model.n_features_in_}"):
        export_text(model, ["only"])


@pytest.mark.parametrize("estimator", [short(), additive()])
def test_text_has_no_characters_that_a_terminal_obeys(estimator):
    names = ["a\x7f\x9b31m", "b\u202etxt", "c\u2028d", "e\U000e0001f"]
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = estimator.fit(framed(X), X[:, 0] * X[:, 1] > 0)
    text = export_text(model, feature_names=names, odds=True)
    assert all(line.isprintable() for line in text.split("\n"))
    assert r"b\u202etxt" in text
