"""The weights of the features with their intervals, and the lines with their curves."""

from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.model.curve import Curve, simplified
from melc.model.line import Line, decides_alone
from melc.model.names import by_contribution, contributions_of, terms_of
from melc.report.counts import axes_of, shown_axes
from melc.report.stability import of_sample
from melc.report.storage import in_thousandths, visible
from melc.report.subject import Subject

_MOST_FEATURES, _MOST_LINES, _MOST_NAMED = 20, 36, 4
# Places at which the densities along a line are drawn, and how exactly its curve is drawn, as a part of its height.
_N_PLACES, _PICTURE_ERROR = 61, 0.003


def weights_of(subject: Subject, resamples: Any) -> dict[str, Any]:
    """Return the contributions of the features, with intervals from ``resamples`` (a Bootstrap, or None)."""
    if decides_alone(subject.model):
        text = (
            "The contribution of a feature is its weight times its standard deviation: how far it moves the "
            "projection. Features to the right speak for higher projections."
        )
        figures = [_contributions(subject, k, resamples) for k in shown_axes(subject)]
    else:
        text = (
            "The importance of a feature is how much it moves the log-odds on the training rows: that of the lines, "
            "divided among their features."
        )
        figures = [_importances(subject, resamples)]
    return {"text": text + _about_whiskers(subject, resamples), "figures": figures}


def _about_whiskers(subject: Subject, resamples: Any) -> str:
    if resamples is None:
        return ""
    narrower = "; of all rows they would be narrower" if len(subject.sample) < subject.n_rows else ""
    drawn = f"{resamples.n} resamples{of_sample(subject)}{narrower}"
    return f" Whiskers are intervals of {resamples.confidence:.0%} confidence from {drawn}."


def _contributions(subject: Subject, k: int, resamples: Any) -> dict[str, Any]:
    """Return the contributions to the projection on the only line of a class."""
    model, number = subject.model, axes_of(subject.model)[k].number
    values = contributions_of(model, model.lines_[number])
    ends = None
    if resamples is not None:
        ends = resamples.coef.low[number] * model.feature_spread_, resamples.coef.high[number] * model.feature_spread_
    title = f"{visible(subject.labels[k])} against the rest" if len(subject.labels) > 2 else ""
    return {"title": title, "unit": "weight × standard deviation", **_bars(subject, values, ends)}


def _importances(subject: Subject, resamples: Any) -> dict[str, Any]:
    ends = None if resamples is None else (resamples.importances.low, resamples.importances.high)
    return {"title": "", "unit": "importance", **_bars(subject, subject.model.importances_, ends)}


def _bars(subject: Subject, values: Floats, ends: tuple[Floats, Floats] | None) -> dict[str, Any]:
    order = np.argsort(-np.abs(values), kind="stable")[:_MOST_FEATURES]
    rows = [
        {
            "name": visible(subject.names[j]),
            "value": _rounded(values[j]),
            "low": None if ends is None else _rounded(ends[0][j]),
            "high": None if ends is None else _rounded(ends[1][j]),
        }
        for j in order
    ]
    return {"rows": rows, "hidden": len(values) - len(rows)}


def _rounded(value: float) -> float | None:
    """Return a number with a few digits; None for a limit that is not known."""
    return float(f"{value:.5g}") if np.isfinite(value) else None


def lines_of(subject: Subject, resamples: Any) -> list[dict[str, Any]]:
    """Return the lines for pictures, the most important first.

    Lines that were chosen among many have a ``share``: in how many resamples a line of the same features was found.
    """
    model = subject.model
    order = sorted(range(len(model.lines_)), key=lambda k: -model.lines_[k].importance)[:_MOST_LINES]
    no_shares = resamples is None or decides_alone(model)
    return [_line(subject, k, None if no_shares else float(resamples.line_shares[k])) for k in order]


def _line(subject: Subject, k: int, share: float | None) -> dict[str, Any]:
    line: Line = subject.model.lines_[k]
    names = {j: visible(subject.names[j]) for j in by_contribution(line)[: _MOST_NAMED + 1]}
    places = np.linspace(line.places[0], line.places[-1], _N_PLACES)
    heights = np.array([np.interp(places, line.places, density) for density in line.densities])
    return {
        "title": f"{subject.line_name(k)}:",
        "terms": "z = " + " ".join(terms_of(line, names, _MOST_NAMED, 3)),
        "importance": float(line.importance),
        "share": share,
        **_drawn(line.decisive),
        "range": [float(line.places[0]), float(line.places[-1])],
        "densities": in_thousandths(heights),
    }


def _drawn(curve: Curve) -> dict[str, Floats]:
    """Return a curve with as few knots as a picture needs."""
    shown = simplified(curve.knots, curve.log_odds, _PICTURE_ERROR * float(np.abs(curve.log_odds).max()))
    return {"knots": curve.knots[shown], "log_odds": curve.log_odds[shown]}
