"""How much the model depends on chance: the starts of its search, and the rows that happened to be drawn."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from melc.fit.solvers import BY_LIKELIHOOD, Result
from melc.inference.bootstrap import intervals_of
from melc.inference.intervals import Interval, accuracy_interval
from melc.inference.resampling import refit_of
from melc.model.places import scale_along
from melc.model.units import last_step, weights_of_fit
from melc.report.heldout import HeldOut
from melc.report.subject import MANY_FEATURES, Subject

# Resamples, unless the user says how many, and the confidence of intervals.
_USUAL_RESAMPLES = 40
_CONFIDENCE = 0.9
# Directions with at least this cosine are said to be the same.
_SAME_DIRECTION = 0.98
# Rows of the table of thresholds.
_MOST_THRESHOLDS_LISTED = 60


def n_resamples_for(subject: Subject, wanted: int | None) -> int:
    """Return how many resamples to draw: as many as are wanted, or a number that does not take long."""
    if wanted is not None:
        return wanted
    return 0 if subject.has_many_features else _USUAL_RESAMPLES


def accuracy_on_new_rows(found: HeldOut) -> Interval | None:
    """Return the held-out balanced accuracy of the model with its interval; None if there are no predictions."""
    if found.reason:
        return None
    totals, squares = (np.bincount(found.codes, each) for each in (found.weights, found.weights**2))
    return accuracy_interval(found.accuracies(found.own), totals**2 / squares, _CONFIDENCE)


def bootstrap_of(subject: Subject, n: int, accuracy: Interval | None, seed: int, n_jobs: int | None) -> Any:
    """Return the bootstrap of the model on the sample of rows, or None if no resamples are wanted."""
    if n == 0:
        return None
    X, y, weights = subject.sampled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warnings of the fit itself have been given
        return intervals_of(refit_of(subject.estimator, X, y, weights), n, _CONFIDENCE, seed, n_jobs, 0, accuracy)


def of_sample(subject: Subject) -> str:
    """Return a remark on the rows that were resampled, if these are not all."""
    n = len(subject.sample)
    return "" if n == subject.n_rows else f" of a random sample of {n:,} of the {subject.n_rows:,} rows"


def stability_of(subject: Subject, resamples: Any) -> dict[str, Any]:
    """Return sentences, the divergences of the starts, and a table of thresholds with their intervals."""
    starts = _starts_of_lines(subject)
    text = [_about_starts(start) for start in starts]
    found: dict[str, Any] = {"text": text, "starts": starts, "table": None}
    if resamples is None:
        asked = f" With more than {MANY_FEATURES} features they take long, and are drawn only if asked for."
        return found | {"text": [*text, f"No resamples were drawn.{asked if subject.has_many_features else ''}"]}
    text += _about_resamples(subject, resamples)
    return found | {"table": _thresholds(subject, resamples)}


def _starts_of_lines(subject: Subject) -> list[dict[str, Any]]:
    """Return, for each line that is shown, the divergence that each start of the search led to, and what was chosen.

    None if the lines were not found by their divergence.
    """
    if not hasattr(subject.model, "divergence_"):
        return []
    model = last_step(subject.estimator)
    refitted = not hasattr(model, "results_")  # read from a file
    if refitted:
        model = last_step(_refitted(subject))
    several = len(subject.labels) > 2
    runs, chosen = (model.results_, model.result_) if several else ([model.results_], [model.result_])
    return [
        {
            "title": subject.line_name(k) if several else "",
            "divergences": [float(run.divergence) for run in runs[k]],
            "n_same": sum(_same_direction(model, run, chosen[k]) for run in runs[k]),
            "chosen": float(chosen[k].divergence),
            "linear": chosen[k].reason == BY_LIKELIHOOD,
            "refitted": refitted,
        }
        for k in (subject.shown_classes if several else [0])
    ]


def _refitted(subject: Subject) -> Any:
    X, y, weights = subject.sampled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weighted = {} if weights is None else weights_of_fit(subject.estimator, weights)
        return clone(subject.estimator).fit(X, y, **weighted)


def _same_direction(model: Any, run: Result, chosen: Result) -> bool:
    """Return whether a run ended in about the chosen direction, for standardised features; a mirror image is the same.

    Divergences are no evidence: on large data the runs are on samples.
    """
    first, second = run.direction * model.feature_spread_, chosen.direction * model.feature_spread_
    return abs(float(first @ second)) >= _SAME_DIRECTION * float(np.linalg.norm(first) * np.linalg.norm(second))


def _about_starts(start: dict[str, Any]) -> str:
    title = f"{start['title']}: " if start["title"] else ""
    again = ", in a new fit, since the file of a model does not keep them" if start["refitted"] else ""
    linear = " A linear classifier gave this direction; it predicts the classes better." if start["linear"] else ""
    n, same = len(start["divergences"]), start["n_same"]
    return (
        f"{title}The search for the best direction began from {n} different directions{again}. "
        f"{same} of them ended in the direction of the model, whose divergence is {start['chosen']:.4g}.{linear}"
    )


def _about_resamples(subject: Subject, resamples: Any) -> list[str]:
    drawn = f"The model was fitted anew to {resamples.n} resamples{of_sample(subject)}, drawn with replacement."
    if subject.is_of_directions:
        return [f"{drawn} {resamples.same_optimum:.0%} of these models have nearly the same direction."]
    return [f"{drawn} Above the curve of each line stands how many of these models have a line of the same features."]


def _thresholds(subject: Subject, resamples: Any) -> dict[str, Any] | None:
    """Return a table of the thresholds of lines that are not minor, with their intervals; None if there are none."""
    lines = subject.model.lines_
    several, scales = len(lines) > 1, [scale_along(subject.model, line, subject.names) for line in lines]
    rows = [
        [
            f"{subject.line_name(k)}, threshold {i}" if several else f"threshold {i}",
            scales[k].text(each.value),
            "–" if not np.isfinite(each.low) else f"{scales[k].text(each.low)} to {scales[k].text(each.high)}",
            f"{each.share:.0%}",
        ]
        for k, thresholds in enumerate(resamples.thresholds)
        if not resamples.minor[k] and not lines[k].levels
        for i, each in enumerate(thresholds, start=1)
    ]
    head = ["threshold", "value", f"{resamples.confidence:.0%} interval", "resamples that have it"]
    table = {"head": head, "rows": rows[:_MOST_THRESHOLDS_LISTED], "caption": "Thresholds over the resamples"}
    return table if rows else None
