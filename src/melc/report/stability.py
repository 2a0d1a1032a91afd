"""How much the model depends on chance: the starts of its search, and the rows that happened to be drawn."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from melc.inference import bootstrap
from melc.model.units import fitted_model, is_additive
from melc.report.counts import shown_axes
from melc.report.storage import visible
from melc.report.subject import Subject

# Starts whose divergence is within this of the best are said to lead to the same optimum.
_SAME = 0.01


def resampled(subject: Subject, n: int, seed: int, n_jobs: int | None) -> Any:
    """Return the bootstrap of the model on the sample of rows, or None if no resamples are wanted."""
    if n == 0:
        return None
    X, y = subject.sampled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warnings of the fit itself have been given
        return bootstrap(subject.estimator, X, y, n=n, random_state=seed, n_jobs=n_jobs)


def of_sample(subject: Subject) -> str:
    """Return a remark on the rows that were resampled, if these are not all."""
    n = len(subject.sample)
    return "" if n == subject.n_rows else f" of a random sample of {n:,} of the {subject.n_rows:,} rows"


def stability_of(subject: Subject, resamples: Any) -> dict[str, Any]:
    """Return sentences, the divergences of the starts, and a table of thresholds with their intervals."""
    starts = _starts(subject)
    text = [_about_starts(start) for start in starts]
    found: dict[str, Any] = {"text": text, "starts": starts, "table": None}
    if resamples is None:
        return found | {"text": [*text, "No resamples were drawn."]}
    text += _about_resamples(subject, resamples)
    return found | {"table": _thresholds(subject, resamples)}


def _starts(subject: Subject) -> list[dict[str, Any]]:
    """Return the divergence that each start of the search led to, for each line that is shown."""
    if is_additive(subject.model):
        return []
    model, refitted = subject.model, False
    if not hasattr(model, "results_"):  # read from a file
        model, refitted = _refitted(subject), True
    runs = model.results_ if len(subject.labels) > 2 else [model.results_]
    chosen = np.atleast_1d(model.divergence_)
    return [
        {
            "title": f"{visible(subject.labels[k])} against the rest" if len(runs) > 1 else "",
            "divergences": [float(run.divergence) for run in runs[k]],
            "chosen": float(chosen[k]),
            "refitted": refitted,
        }
        for k in shown_axes(subject)
    ]


def _refitted(subject: Subject) -> Any:
    X, y = subject.sampled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted_model(clone(subject.estimator).fit(X, y))


def _about_starts(start: dict[str, Any]) -> str:
    values = np.array(start["divergences"])
    same = int(np.sum(np.abs(values - start["chosen"]) <= _SAME * abs(start["chosen"])))
    title = f"{start['title']}: " if start["title"] else ""
    again = " of a new fit, since the file of a model does not have its starts" if start["refitted"] else ""
    linear = "; the direction chosen is a linear one, which predicts the classes better" if not same else ""
    return (
        f"{title}{same} of {len(values)} starts{again} led to the divergence of the chosen direction, "
        f"{start['chosen']:.4g}{linear}."
    )


def _about_resamples(subject: Subject, resamples: Any) -> list[str]:
    share, accuracy = f"{resamples.confidence:.0%}", resamples.accuracy
    text = [
        f"{resamples.n} resamples{of_sample(subject)}: the balanced accuracy on rows left out of them is "
        f"{accuracy.estimate:.3f} ({share} interval {accuracy.low:.3f} to {accuracy.high:.3f})."
    ]
    if is_additive(subject.model):
        text.append("Above the curve of each line stands in how many resamples a line of the same features was found.")
    else:
        text.append(f"{resamples.same_optimum:.0%} of the resamples lead to the same optimum.")
    return text


def _thresholds(subject: Subject, resamples: Any) -> dict[str, Any] | None:
    """Return a table of the thresholds with their intervals; of an additive model there is none."""
    if is_additive(subject.model):
        return None
    several = len(subject.labels) > 2
    rows = [
        [
            f"{visible(subject.labels[k])}: threshold {i}" if several else f"threshold {i}",
            f"{each.value:.4g}",
            "–" if not np.isfinite(each.low) else f"{each.low:.4g} to {each.high:.4g}",
            f"{each.share:.0%}",
        ]
        for k in shown_axes(subject)
        for i, each in enumerate(resamples.thresholds[k], start=1)
    ]
    head = ["threshold", "value", f"{resamples.confidence:.0%} interval", "resamples that have it"]
    return {"head": head, "rows": rows, "caption": "Thresholds over the resamples"} if rows else None
