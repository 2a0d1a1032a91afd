"""A fitted model as CSV: classes, constants, weights, and points of the curves."""

import csv
import io
from typing import Any

from melc.model.line import log_odds_of
from melc.model.names import feature_names_of
from melc.model.units import fitted_model


def to_csv(model: Any) -> str:
    """Return all that is needed to compute the log-odds of each class; of two classes, of the second."""
    model = fitted_model(model)  # of a pipeline or a search, in the units of the user's columns
    names, labels = feature_names_of(model), model.classes_.tolist()
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(["part", "class", "line", "at", "value"])
    table.writerows(["class", label, "", "", ""] for label in labels)
    for label, formula in zip(labels[-len(model.intercepts_) :], log_odds_of(model), strict=True):
        table.writerow(["constant", label, "", "", formula.constant])
        for k, curve in enumerate(formula.curves, start=1):
            points = zip(curve.knots, curve.log_odds, strict=True)
            table.writerows(["log-odds", label, k, z, value] for z, value in points)
    for k, line in enumerate(model.lines_, start=1):
        table.writerows(["weight", "", k, names[j], line.direction[j]] for j in line.features)
    return text.getvalue()
