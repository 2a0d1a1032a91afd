"""The weights of the features with their intervals, and the lines with their curves."""

from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.model.curve import Curve, simplified
from melc.model.line import Line, decides_alone
from melc.model.names import by_contribution, contributions_of, numbers_by_importance, terms_of
from melc.model.places import level_text, name_in_sum, scale_along
from melc.report.stability import of_sample
from melc.report.storage import in_thousandths, scale_out, visible
from melc.report.subject import Subject

_MOST_WEIGHTS_LISTED, _MOST_LINES_DRAWN, _MOST_TERMS = 20, 36, 4
# Places at which the densities along a line are drawn, and how exactly its curves are drawn, as a part of their height.
_DENSITY_PLACES, _CURVE_ERROR = 61, 0.003
# Curves of a line that are drawn, of the classes with the most rows; with bands, if there are at most so many.
_MOST_CURVES, _MOST_BANDS = 12, 4
# Levels of a category in a picture, and levels of one category in a line of several columns whose points are listed.
_MOST_LEVELS, _MOST_POINTS = 25, 12


def feature_weights(subject: Subject, resamples: Any) -> dict[str, Any]:
    """Return the contributions of the features, with intervals from ``resamples`` (a Bootstrap, or None)."""
    if subject.is_of_directions:
        text = (
            "The contribution of a feature is its weight times its standard deviation: how far it moves the "
            "projection. Larger values of the features to the right mean higher projections."
        )
        shown = [0] if decides_alone(subject.model) else subject.shown_classes
        figures = [_contributions(subject, k, resamples) for k in shown]
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
    """Return the contributions to the projection on the k-th line."""
    model = subject.model
    values = contributions_of(model, model.lines_[k])
    ends = None
    if resamples is not None:
        ends = resamples.coef.low[k] * model.feature_spread_, resamples.coef.high[k] * model.feature_spread_
    title = "" if decides_alone(model) else subject.line_name(k)
    return {"title": title, "unit": "weight × standard deviation", **_bars(subject, values, ends)}


def _importances(subject: Subject, resamples: Any) -> dict[str, Any]:
    ends = None if resamples is None else (resamples.importances.low, resamples.importances.high)
    return {"title": "", "unit": "importance", **_bars(subject, subject.model.importances_, ends)}


def _bars(subject: Subject, values: Floats, ends: tuple[Floats, Floats] | None) -> dict[str, Any]:
    order = np.argsort(-np.abs(values), kind="stable")[:_MOST_WEIGHTS_LISTED]
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


def line_pictures(subject: Subject, resamples: Any) -> list[dict[str, Any]]:
    """Return the lines for pictures, the most important first, and minor ones after all others.

    Lines that were chosen among many have a ``share``: in how many resamples a line of the same features was found.
    """
    order = [number - 1 for number in numbers_by_importance(subject.model)[:_MOST_LINES_DRAWN]]
    no_shares = resamples is None or subject.is_of_directions
    return [_line_picture(subject, k, None if no_shares else float(resamples.line_shares[k])) for k in order]


def _line_picture(subject: Subject, k: int, share: float | None) -> dict[str, Any]:
    line: Line = subject.model.lines_[k]
    shown = subject.largest_classes(_MOST_CURVES)
    return {
        "number": k,
        "title": f"{subject.line_name(k)}:",
        "terms": _terms(subject, line),
        "importance": float(line.importance),
        "share": share,
        "minor": line.minor,
        "classes": shown,
        "scale": scale_out(scale_along(subject.model, line, subject.names)),
        **(_levels(line, shown) if line.levels else _curves(line, shown)),
        "points": _points(subject, line),
    }


def _terms(subject: Subject, line: Line) -> str:
    """Return what the places on a line are: the values of its only column, or a weighted sum."""
    names = {j: visible(subject.names[j]) for j in by_contribution(line)[: _MOST_TERMS + 1]}
    if len(line.features) == 1 and line.direction.sum() > 0:
        return names[int(line.features[0])]
    in_sum = {j: name_in_sum(subject.model.columns_, j, name) for j, name in names.items()}
    return "z = " + " ".join(terms_of(line, in_sum, _MOST_TERMS, 3))


def _curves(line: Line, shown: list[int]) -> dict[str, Any]:
    """Return the curves of a line, what missing values add, and the densities along it."""
    places = np.linspace(line.places[0], line.places[-1], _DENSITY_PLACES)
    heights = np.array([np.interp(places, line.places, line.densities[code]) for code in shown])
    numbers = [0] if len(line.curves) == 1 else shown
    has_missing = line.curves[0].missing is not None
    return {
        "levels": None,
        "curves": _drawn_curves(line, numbers),
        "missing": [line.decisive[k].missing for k in numbers] if has_missing else None,
        "n_missing": float(line.missing_counts.sum()),
        "thresholds": line.thresholds,
        "codes": line.codes.tolist(),
        "range": [float(line.places[0]), float(line.places[-1])],
        "densities": in_thousandths(heights),
    }


def _levels(line: Line, shown: list[int]) -> dict[str, Any]:
    """Return the levels of a category with the most rows: what they add, and their shares in the classes."""
    totals = line.counts.sum(axis=1)
    chosen = np.sort(np.argsort(-totals, kind="stable")[:_MOST_LEVELS])
    numbers = [0] if len(line.curves) == 1 else shown
    banded = len(line.errors) > 0 and len(numbers) <= _MOST_BANDS
    return {
        "levels": {
            "numbers": chosen.tolist(),
            "names": [visible(level_text(line.levels[k])) for k in chosen],
            "counts": totals[chosen].tolist(),
            "values": [line.decisive[k].log_odds[chosen].tolist() for k in numbers],
            "errors": [line.errors[k][chosen].tolist() for k in numbers] if banded else None,
            "shares": in_thousandths(line.densities[shown][:, chosen]),
            "codes": line.level_codes[chosen].tolist(),
            "n_hidden": len(totals) - len(chosen),
            "n_hidden_rows": float(totals.sum() - totals[chosen].sum()),
        },
        "curves": [],
    }


def _points(subject: Subject, line: Line) -> list[dict[str, Any]]:
    """Return, for each category in a sum, what its levels add to z: weight × score, the largest first."""
    categories, found = subject.model.columns_.categories, []
    for j in [j for j in by_contribution(line) if j in categories and not line.levels][:_MOST_TERMS]:
        points = line.direction[j] * categories[j].scores
        order = np.argsort(-points, kind="stable")
        # Of very many levels the extreme ones.
        listed = (
            order if len(order) <= _MOST_POINTS else order[[*range(_MOST_POINTS // 2), *range(-_MOST_POINTS // 2, 0)]]
        )
        rows = [[visible(level_text(categories[j].names[k])), float(f"{points[k]:.4g}")] for k in listed]
        found.append({"name": visible(subject.names[j]), "rows": rows, "n_hidden": len(order) - len(rows)})
    return found


def _drawn_curves(line: Line, numbers: list[int]) -> list[dict[str, Any]]:
    """Return some of the curves of a line, with their standard errors if there are any and the curves are few."""
    banded = len(line.errors) > 0 and len(numbers) <= _MOST_BANDS
    return [_drawn(line.decisive[k], line.errors[k] if banded else None) for k in numbers]


def _drawn(curve: Curve, errors: Floats | None) -> dict[str, Any]:
    """Return a curve with as few knots as a picture needs."""
    values = curve.log_odds if errors is None else np.column_stack([curve.log_odds, curve.log_odds + errors])
    shown = simplified(curve.knots, values, _CURVE_ERROR * float(np.abs(curve.log_odds).max()))
    kept = None if errors is None else errors[shown]
    return {"knots": curve.knots[shown], "log_odds": curve.log_odds[shown], "errors": kept}
