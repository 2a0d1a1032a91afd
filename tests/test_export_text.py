"""Text: what is printed predicts as the model does, and is short enough to be read; for both classifiers."""

import copy
import json
import re
from collections import Counter
from dataclasses import replace
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
from melc.export import export_text, from_json
from melc.export.text import numbers_apart
from melc.model.curve import Curve
from melc.model.line import decides_alone
from melc.model.names import minor_lines_sentence

RULES = ["two classes", "two classes, priors", "one line", "one line, priors", "one line of three classes"]
SEVERAL_LINES = ["lines of two features", "lines, priors", "three classes", "lines of three classes"]


class TestPredictions:
    @pytest.mark.parametrize("name", RULES)
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
    def test_counts_of_ten_classes(self):
        model, _ = fitted_digits()
        text = export_text(model)
        for k, line in enumerate(model.lines_):
            block = text[text.index(f"Line {k + 1}, ") :].split("\n\n")[0].splitlines()[1:]
            for row, counts in zip(block, line.counts, strict=True):
                shown = re.findall(r"(\d+) of class (\d)", row)
                assert all(counts[int(label)] == int(n) for n, label in shown)
                others = re.search(r", (\d+) of (\d) other classes\)", row)
                hidden = counts.sum() - sum(int(n) for n, _ in shown)
                assert hidden == (int(others[1]) if others else 0)
                assert len(shown) + (int(others[2]) if others else 0) == np.count_nonzero(counts)
                assert len(row) < 140

    @pytest.mark.slow
    def test_ten_classes(self):
        model, rows = fitted_digits()
        labels, _ = apply_text_with_odds(export_text(model, odds=True), rows)
        np.testing.assert_array_equal(labels.astype(int), model.predict(rows.to_numpy()))

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
        order = sorted(range(len(model.lines_)), key=lambda k: -model.lines_[k].importance)
        assert numbers == [k + 1 for k in order]
        assert sorted(numbers) == [*range(1, len(model.lines_) + 1)] != [1]

    def test_intercept_classes_and_decision(self):
        model = additive(priors=[0.9, 0.1], max_lines=2).fit(*rings())
        text = export_text(model)
        assert text.startswith(f"Log-odds of outer against inner: {model.intercepts_[0]:.3g} + what 2 lines add\n")
        assert text.endswith("Where the log-odds are above 0, outer is predicted, elsewhere inner.")

    @pytest.mark.parametrize("name", ["three classes, priors", "lines of three classes"])
    def test_several_classes(self, name):
        model, _ = fitted_case(name)
        heading, *blocks, closing = export_text(model).split("\n\n")
        first, *constants = heading.splitlines()
        assert first == f"Log-odds of each class: a constant + what {len(model.lines_)} lines add. The constants:"
        assert [row.split() for row in constants] == [
            [label, f"{value:.3g}"] for label, value in zip(model.classes_, model.intercepts_, strict=True)
        ]
        assert closing == "The class with the largest log-odds is predicted, the first of equals."
        assert len(blocks) == len(model.lines_)

    def test_intervals_of_several_classes(self):
        (X, y), (model, _) = flowers(), fitted_case("lines of three classes")
        text = export_text(model)
        for k, line in enumerate(model.lines_):
            block = text[text.index(f"Line {k + 1}, ") :].split("\n\n")[0].splitlines()[1:]
            interval = np.searchsorted(line.thresholds, X @ line.direction, side="right")
            assert len(block) == len(line.codes)
            for i, row in enumerate(block):
                assert f"   for {model.classes_[line.codes[i]]}  " in row
                shown = {label: int(n) for n, label in re.findall(r"(\d+) (\w+)", row.split("(")[1])}
                assert shown == Counter(y[interval == i])
                assert list(shown.values()) == sorted(shown.values(), reverse=True)

    def test_minor_lines_are_a_sentence_unless_predictions_are_to_be_computed(self):
        model, _ = fitted_case("minor lines")
        minor = [line for line in model.lines_ if line.minor]
        main = len(model.lines_) - len(minor)
        assert minor
        assert main
        text = export_text(model)
        assert f"+ what {main} line" in text
        assert text.count("\nLine ") == main
        strongest = sorted(minor, key=lambda line: -line.importance)
        names = ", ".join(f"feature {line.features[0]}" for line in strongest)
        assert f"\n\nand small curves of {len(minor)} other feature{'s' * (len(minor) > 1)}: {names}\n" in text
        full = export_text(model, odds=True)
        assert full.count("\nLine ") == len(model.lines_)
        assert "small curves" not in full
        numbers = [int(n) for n in re.findall(r"^Line (\d+),", full, re.MULTILINE)]
        assert [model.lines_[n - 1].minor for n in numbers] == [False] * main + [True] * len(minor)

    def test_an_interval_without_rows(self):
        model = copy.copy(fitted_case("lines of three classes")[0])
        model.lines_ = [replace(line, counts=np.zeros_like(line.counts)) for line in model.lines_]
        assert "  (no rows)" in export_text(model)

    def test_of_many_minor_lines_some_are_named(self):
        model = copy.copy(fitted_case("minor lines")[0])
        line = next(line for line in model.lines_ if line.minor)
        model.lines_ = [replace(line, direction=each, feature_importances=each) for each in np.eye(40)]
        sentence = minor_lines_sentence(model, [f"x{j}" for j in range(40)])
        assert sentence == "and small curves of 40 other features: " + ", ".join(f"x{j}" for j in range(12)) + ", …"
        model.lines_ = model.lines_[:1]
        assert minor_lines_sentence(model, ["a"]) == "and small curves of 1 other feature: a"

    def test_an_interval_is_uncertain_if_the_curve_is_near_zero_all_over_it(self):
        model = copy.copy(fitted_case("lines of two features")[0])
        curve = Curve(np.array([-2.0, 0.0, 2.0, 4.0]), np.array([-1.0, 1.0, -0.1, -0.2]))
        line = replace(model.lines_[0], curves=(curve,), errors=(np.full(4, 0.4),), counts=np.ones((3, 2)))
        model.lines_ = [line, *model.lines_[1:]]
        text = export_text(model)
        block = text[text.index("Line 1, ") :].split("\n\n")[0].splitlines()[1:]
        assert [", uncertain" in row for row in block] == [False, False, True]
        assert "\n\nuncertain: the curve is nowhere in the interval two standard errors from 0.\n\n" in text
        sure = [replace(each, errors=()) for each in model.lines_]
        model.lines_ = sure
        assert "uncertain" not in export_text(model)

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
                assert re.search(rf"   for {'outer' if line.codes[i] else 'inner'}(, uncertain)?  ", row)

    @pytest.mark.parametrize("name", ["lines of two features", "lines, priors"])
    def test_the_range_of_an_interval_holds_what_the_line_adds_there(self, name):
        model, _ = fitted_case(name)
        text = export_text(model, digits=12)
        for k, line in enumerate(model.lines_):
            block = text[text.index(f"Line {k + 1}, ") :].split("\n\n")[0]
            ranges = [[float(least), float(most)] for least, most in re.findall(r"adds (\S+) to (\S+) ", block)]
            (curve,) = line.curves
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
