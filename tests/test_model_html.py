"""What notebooks show of a fitted model: the lines with their pictures, intervals and features."""

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris

from melc import MELC, AdditiveMELC

X, SPECIES = load_iris(return_X_y=True, as_frame=True)
TWO = np.where(SPECIES == 1, "versicolor", "other")


@pytest.fixture(scope="module", params=["MELC, 2", "MELC, 3", "AdditiveMELC, 2", "AdditiveMELC, 3"])
def model(request):
    made = MELC(n_init=1, random_state=0) if request.param.startswith("MELC") else AdditiveMELC(random_state=0)
    return made.fit(X, TWO if request.param.endswith("2") else SPECIES)


def parts_of(model):
    """Return the HTML of each line, and the lines with their numbers, the most important first."""
    numbered = sorted(enumerate(model.lines_, start=1), key=lambda pair: -pair[1].importance)
    return model._fitted_html().split('<div><div style="font-weight:600">')[1:], numbered[:6]


def points_of(path):
    return np.array([[float(number) for number in point.split()] for point in path.removeprefix("M").split("L")])


def test_lines_by_importance_with_numbers_intervals_and_weights(model):
    parts, numbered = parts_of(model)
    assert len(parts) == len(numbered)
    for part, (number, line) in zip(parts, numbered, strict=True):
        heading = part.split("</div>")[0]
        expected = [f"Line {number}"] * (len(model.lines_) > 1)
        assert heading == ": ".join(
            expected + ["<bdi>versicolor</bdi> against <bdi>other</bdi>"] * (len(model.classes_) == 2)
        )
        shown = re.findall(r"<small>(.*?)</small>", part)
        assert shown == [f"{threshold:.4g}" for threshold in line.thresholds]
        assert part.count("border-bottom:3px") == len(line.codes)
        for j in line.features:
            assert f"<bdi>{X.columns[j]}</bdi></td><td>{line.direction[j]:.4g}</td>" in part
    hidden = len(model.lines_) - len(numbered)
    assert ("more lines" in parts[-1]) == (hidden > 0)


def test_pictures_show_the_densities_and_the_curve_on_one_scale(model):
    most = max(np.abs(curve.log_odds).max() for line in model.lines_ for curve in line.decisive)
    for part, (_, line) in zip(*parts_of(model), strict=True):
        paths = [points_of(path) for path in re.findall(r'd="(M[^H"]*)"', part)]
        areas, drawn = paths[: len(model.classes_)], paths[len(model.classes_) :]
        for area, heights in zip(areas, line.densities, strict=True):
            np.testing.assert_allclose(area[1:-1, 1], 90 * (1 - heights / line.densities.max()), atol=0.051)
            assert area[[0, -1]].tolist() == [[0, 90], [320, 90]]  # areas end at the bottom
        for points, curve in zip(drawn, line.decisive, strict=True):
            z = line.places[0] + points[:, 0] / 320 * np.ptp(line.places)
            slack = 0.1 + 45 / most * np.abs(np.gradient(curve.at(z))).max()  # places are rounded, too
            assert np.abs(points[:, 1] - 45 * (1 - curve.at(z) / most)).max() < slack
        ends = re.findall(r'<rect x="(.*?)" y="90"', part)
        inside = np.clip(line.thresholds, *line.places[[0, -1]])
        np.testing.assert_allclose(
            [float(x) for x in ends[1:]], (inside - line.places[0]) / np.ptp(line.places) * 320, atol=0.051
        )


def test_many_lines_and_features_are_counted():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 12))
    wide = MELC(n_init=1, random_state=0).fit(rows, rows.sum(axis=1) > 0)
    assert "and 4 more features" in wide._fitted_html()
    many = MELC(n_init=1, random_state=0, max_iter=1).fit(np.arange(48.0)[:, None], np.repeat(np.arange(8), 6))
    assert many._fitted_html().count("<svg") == 6
    assert "and 2 more lines" in many._fitted_html()


def test_a_legend_names_more_than_two_classes(model):
    legend = re.search(r"Classes: (.*?)</div>", model._fitted_html())
    assert (legend is not None) == (len(model.classes_) > 2)
    if legend:
        assert re.findall(r"<bdi>(.*?)</bdi>", legend[1]) == [str(label) for label in model.classes_]
        colours = re.findall(r"solid (#\w+)", legend[1])
        assert len(set(colours)) == 3
        for part, (_, line) in zip(*parts_of(model), strict=True):
            assert re.findall(r'height="8" fill="(#\w+)"', part) == [colours[code] for code in line.codes]


def test_minor_lines_are_a_sentence():
    model = AdditiveMELC(random_state=0).fit(X, TWO)
    before = model._fitted_html()
    assert "small curves" not in before
    *shown, last = model.lines_
    assert shown
    model.lines_ = [*shown, replace(last, minor=True)]
    after = model._fitted_html()
    assert after.count("<svg") == before.count("<svg") - 1
    n = len(last.features)
    assert f"and small curves of {n} other feature{'s' * (n > 1)}: <bdi>" in after
