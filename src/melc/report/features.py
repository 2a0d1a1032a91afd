"""The weights of the features with their intervals, and the lines of an additive model."""

from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.model.line import Line
from melc.model.names import by_contribution, contributions_of, terms_of
from melc.model.units import is_additive
from melc.report.counts import shown_axes
from melc.report.stability import of_sample
from melc.report.storage import visible
from melc.report.subject import Subject

_MOST_FEATURES, _MOST_LINES, _MOST_NAMED = 20, 36, 4
# Places at which the densities along a line are drawn.
_N_PLACES = 61


def weights_of(subject: Subject, resamples: Any) -> dict[str, Any]:
    """Return the contributions of the features, with intervals from ``resamples`` (a Bootstrap, or None)."""
    if is_additive(subject.model):
        text = (
            "The importance of a feature is how much it moves the log-odds on the training rows: that of the lines, "
            "divided among their features."
        )
        figures = [_importances(subject, resamples)]
    else:
        text = (
            "The contribution of a feature is its weight times its standard deviation: how far it moves the "
            "projection. Features to the right speak for higher projections."
        )
        figures = [_contributions(subject, k, resamples) for k in shown_axes(subject)]
    return {"text": text + _about_whiskers(subject, resamples), "figures": figures}


def _about_whiskers(subject: Subject, resamples: Any) -> str:
    if resamples is None:
        return ""
    narrower = "; of all rows they would be narrower" if len(subject.sample) < subject.n_rows else ""
    drawn = f"{resamples.n} resamples{of_sample(subject)}{narrower}"
    return f" Whiskers are intervals of {resamples.confidence:.0%} confidence, corrected for bias, from {drawn}."


def _contributions(subject: Subject, k: int, resamples: Any) -> dict[str, Any]:
    values = contributions_of(subject.model, k)
    spread = getattr(subject.model, "feature_spread_", np.ones(len(values)))
    ends = None if resamples is None else (resamples.coef.low[k] * spread, resamples.coef.high[k] * spread)
    several = len(subject.labels) > 2
    title = f"{visible(subject.labels[k])} against the rest" if several else ""
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
    """Return the lines of an additive model for pictures, the most important first; of a ``MELC`` none."""
    if not is_additive(subject.model):
        return []
    model = subject.model
    order = sorted(range(len(model.lines_)), key=lambda k: -model.lines_[k].importance)[:_MOST_LINES]
    shares = [None] * len(model.lines_) if resamples is None else resamples.line_shares.tolist()
    return [_line(subject, model.lines_[k], shares[k], k) for k in order]


def _line(subject: Subject, line: Line, share: float | None, k: int) -> dict[str, Any]:
    names = {j: visible(subject.names[j]) for j in by_contribution(line)[: _MOST_NAMED + 1]}
    several = len(subject.labels) > 2
    return {
        "title": f"Line {k}" + (f" for {visible(subject.labels[line.class_index])}:" if several else ":"),
        "terms": "z = " + " ".join(terms_of(line, names, _MOST_NAMED, 3)),
        "importance": float(line.importance),
        "share": share,
        "class_index": int(line.class_index),
        "knots": line.knots,
        "log_odds": line.log_odds,
        "range": [float(line.places[0]), float(line.places[-1])],
        "densities": _heights(line),
    }


def _heights(line: Line) -> list[list[int]]:
    """Return the densities of both sides at evenly spaced places, in thousandths of the highest."""
    places = np.linspace(line.places[0], line.places[-1], _N_PLACES)
    heights = np.array([np.interp(places, line.places, density) for density in line.densities])
    thousandths: list[list[int]] = np.rint(1000 * heights / max(heights.max(), 1e-300)).astype(int).tolist()
    return thousandths
