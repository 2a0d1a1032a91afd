"""The model as the page computes with it: the formulas that ``predict`` uses."""

from typing import Any

import numpy as np

from melc.model.line import log_odds_of
from melc.report.fields import features_in
from melc.report.subject import Subject


def answers_of(subject: Subject) -> dict[str, Any]:
    """Return what the page needs to answer as the model does, for rows that are entered in the form.

    Features without a field stay at typical values: what they add to the projection on a line is its ``rest``.
    """
    model, features = subject.model, features_in(subject.fields)
    others = np.setdiff1d(np.arange(model.n_features_in_), features)
    rest = model.directions_[:, others] @ subject.typical[others]
    return {
        "features": features.tolist(),
        "lines": [
            {
                "weights": line.direction[features],
                "rest": float(constant),
                "class_index": int(line.class_index),
                "thresholds": line.thresholds,
                "codes": line.codes.tolist(),
            }
            for line, constant in zip(model.lines_, rest, strict=True)
        ],
        "log_odds": [
            {
                "constant": each.constant,
                "lines": each.lines.tolist(),
                "curves": [{"knots": curve.knots, "log_odds": curve.log_odds} for curve in each.curves],
            }
            for each in log_odds_of(model)
        ],
    }
