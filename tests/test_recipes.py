"""The recipe of CONTRIBUTING.md for an export format is a file; it works for both classifiers."""

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from export_cases import AWKWARD_NAMES, CASES, additive, fitted_case, rings, short
from recipes import export_csv

ROOT = Path(__file__).parents[1]


def apply_csv(text, frame):
    """Return labels and log-odds, shape (n_rows, n), by a table of the recipe."""
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == ["part", "class", "line", "at", "value"]
    classes = np.array([label for part, label, *_ in rows if part == "class"])
    odds = {label: np.full(len(frame), float(value)) for part, label, _, _, value in rows if part == "constant"}
    for number in sorted({line for _, _, line, _, _ in rows if line}, key=int):
        own = [row for row in rows if row[2] == number]
        z = sum(frame[name].to_numpy() * float(weight) for part, _, _, name, weight in own if part == "weight")
        points = [(float(at), float(value)) for part, _, _, at, value in own if part == "log-odds"]
        odds[own[0][1]] += np.interp(z, *np.transpose(points))
    found = np.column_stack(list(odds.values()))
    codes = (found[:, 0] > 0).astype(int) if len(classes) == 2 else np.argmax(found, axis=1)
    return classes[codes], found


@pytest.mark.parametrize("name", CASES)
def test_the_table_predicts_as_the_model_does(name):
    model, rows = fitted_case(name)
    labels, odds = apply_csv(export_csv.to_csv(model), rows)
    np.testing.assert_array_equal(labels, model.predict(rows).astype(str))
    near = (np.abs(rows).max(axis=1) < 100).to_numpy()  # further away, the order of a sum matters
    expected = model.decision_function(rows).reshape(len(rows), -1)
    np.testing.assert_allclose(odds[near], expected[near], atol=1e-9)


@pytest.mark.parametrize("estimator", [short(), additive()])
def test_awkward_names_and_scalers(estimator):
    X, y = rings(d=6)
    frame = pd.DataFrame(X, columns=[*AWKWARD_NAMES[:3], 'a, "b"', "line\nbreak", "return\r"])
    pipeline = make_pipeline(StandardScaler(), estimator).fit(frame, np.where(y == "inner", "a,b", "c\n"))
    np.testing.assert_array_equal(apply_csv(export_csv.to_csv(pipeline), frame)[0], pipeline.predict(frame))


def test_the_page_shows_the_file():
    code = Path(export_csv.__file__).read_text(encoding="utf-8")
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert f"```python\n# tests/recipes/export_csv.py\n{code}```" in page
