"""The verdict in words: how often the model is right on new rows, beside other classifiers, and what to distrust."""

from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.inference.intervals import Interval
from melc.model.line import Line
from melc.model.names import by_contribution
from melc.model.places import level_text
from melc.report.heldout import HeldOut, Predictions
from melc.report.storage import visible
from melc.report.subject import Subject

# Classes whose accuracy is a part of the sentence, and remarks of a kind that are listed.
_MOST_IN_SENTENCE, _MOST_REMARKS = 4, 3
# Fewer rows than this are few: of a class, and of an interval or level.
_FEW_OF_CLASS, _FEW_OF_INTERVAL = 20, 5
# A threshold in fewer of the resamples is uncertain.
_RARE = 0.5
# Standard errors beyond which differences are not put down to chance: of two classifiers, and of one of many groups.
_CLEAR, _CLEAR_OF_MANY = 1.96, 3.5


def verdict_of(
    subject: Subject, found: HeldOut, accuracy: Interval | None, resamples: Any, groups: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a banner if the model should not be used as it is, sentences about new rows, and what to distrust."""
    distrust = [*_small_classes(subject), *_small_intervals(subject), *_rare_thresholds(subject, resamples)]
    if accuracy is None:
        return {"banner": found.reason, "text": [], "distrust": distrust}
    shares, names = found.accuracies(found.own), [visible(label) for label in subject.labels]
    return {
        "banner": _banner(subject, found, accuracy),
        "text": [_on_new_rows(subject, shares, accuracy), _beside_others(found)],
        "distrust": [*_weak_classes(subject, shares), *distrust, *_bad_groups(found, groups, names)],
    }


def _banner(subject: Subject, found: HeldOut, accuracy: Interval) -> str:
    chance = 1 / len(subject.labels)
    if accuracy.low <= chance:
        return (
            f"This model is no better than chance on new rows: its balanced accuracy is {accuracy.estimate:.1%}, and "
            f"guessing gives {chance:.1%}. Do not use its predictions, and read nothing into its lines."
        )
    if (found.own.codes == found.codes).all():
        return (
            "This model is right on all held-out rows. That is rare in honest data: check whether a feature is a copy "
            "of the class, or is known only after it."
        )
    return ""


def _on_new_rows(subject: Subject, shares: Floats, accuracy: Interval) -> str:
    names = [visible(label) for label in subject.labels]
    interval = f"90% interval {accuracy.low:.1%} to {accuracy.high:.1%}"
    if len(names) > _MOST_IN_SENTENCE:
        best, worst = int(np.argmax(shares)), int(np.argmin(shares))
        ends = f"{shares[worst]:.0%} (class {names[worst]}) and {shares[best]:.0%} (class {names[best]})"
        each = f"between {ends} of the rows of a class"
    else:
        each = ", ".join(f"{share:.0%} of class {name}" for name, share in zip(names, shares, strict=True))
        each = " and ".join(each.rsplit(", ", 1))
    return (
        f"On new rows it is right for {each}. On average over the classes that is {accuracy.estimate:.1%} (balanced "
        f"accuracy, {interval}); guessing would give {1 / len(names):.1%}."
    )


def _beside_others(found: HeldOut) -> str:
    """Return a sentence on the other classifiers, which were scored on the same rows."""
    verdicts: dict[str, list[str]] = {"about as good, up to chance": [], "clearly worse": [], "clearly better": []}
    for name, other in list(found.models.items())[1:]:
        difference, error = _difference(found, found.own, other)
        clear = abs(difference) > _CLEAR * error
        verdict = "about as good, up to chance" if not clear else f"clearly {'worse' if difference > 0 else 'better'}"
        verdicts[verdict].append(f"{name} ({found.accuracies(other).mean():.1%})")
    parts = [
        f"{' and '.join(names)} {'are' if len(names) > 1 else 'is'} {what}" for what, names in verdicts.items() if names
    ]
    return f"On the same rows, {'; '.join(parts)}." if parts else ""


def _difference(found: HeldOut, own: Predictions, other: Predictions) -> tuple[float, float]:
    """Return by how much the balanced accuracy of one classifier is above that of another, and the standard error."""
    gain = (own.codes == found.codes).astype(float) - (other.codes == found.codes)
    mean, variance = [], []
    for code in np.unique(found.codes):
        values, weights = gain[found.codes == code], found.weights[found.codes == code]
        average = np.average(values, weights=weights)
        mean.append(average)
        variance.append(np.sum(weights**2 * (values - average) ** 2) / weights.sum() ** 2)
    return float(np.mean(mean)), float(np.sqrt(np.sum(variance)) / len(mean))


def _weak_classes(subject: Subject, shares: Floats) -> list[str]:
    """Return the classes whose rows are missed more often than found."""
    weak = [k for k in np.argsort(shares, kind="stable").tolist() if shares[k] < 0.5][:_MOST_REMARKS]
    return [f"Class {visible(subject.labels[k])}: of its new rows only {shares[k]:.0%} are recognised." for k in weak]


def _small_classes(subject: Subject) -> list[str]:
    counts = subject.class_counts
    few = [k for k in np.argsort(counts, kind="stable").tolist() if 0 < counts[k] < _FEW_OF_CLASS][:_MOST_REMARKS]
    return [
        f"Class {visible(subject.labels[k])} has only {counts[k]} rows: all that is said of it is rough." for k in few
    ]


def _small_intervals(subject: Subject) -> list[str]:
    """Return the intervals and levels that rest on few rows."""
    remarks = []
    for k, line in enumerate(subject.model.lines_):
        totals = line.counts.sum(axis=1)
        few = np.flatnonzero((totals < _FEW_OF_INTERVAL) & (totals > 0)).tolist()
        if few and not line.minor:
            where = _places_text(subject, k, line, few)
            remarks.append(f"{where}: what the model says there rests on {totals[few].sum():.3g} training rows.")
    return remarks[:_MOST_REMARKS]


def _places_text(subject: Subject, k: int, line: Line, few: list[int]) -> str:
    name = visible(subject.names[by_contribution(line)[0]]) if line.levels else subject.line_name(k)
    if line.levels:
        return f"{name} = {', '.join(visible(level_text(line.levels[i])) for i in few[:_MOST_REMARKS])}"
    ends = [f"{end:.4g}" for end in line.thresholds]
    places = []
    for i in few[:_MOST_REMARKS]:
        below, above = ends[i - 1 : i], ends[i : i + 1]
        if below and above:
            places.append(f"between {below[0]} and {above[0]}")
        else:
            places.append(f"below {above[0]}" if above else f"above {below[0]}")
    return f"{name}, {' and '.join(places)}"


def _rare_thresholds(subject: Subject, resamples: Any) -> list[str]:
    if resamples is None:
        return []
    remarks = []
    for k, thresholds in enumerate(resamples.thresholds):
        rare = [each for each in thresholds if each.share < _RARE]
        if rare and not resamples.minor[k]:
            values = ", ".join(f"{each.value:.4g}" for each in rare[:_MOST_REMARKS])
            named = f"thresholds {values} are" if len(rare) > 1 else f"threshold {values} is"
            remarks.append(f"{subject.line_name(k)}: the {named} found in less than half of the resamples.")
    return remarks[:_MOST_REMARKS]


def _bad_groups(found: HeldOut, groups: list[dict[str, Any]], names: list[str]) -> list[str]:
    """Return groups of rows in which a class is recognised clearly less often than elsewhere.

    Of more than two classes, all are put together.
    """
    n_parts = len(groups[0]["rows"][0][1]) if groups else 1
    overall = found.accuracies(found.own) if n_parts > 1 else [np.average(found.own.codes == found.codes)]
    bad = []
    for column in groups:
        for group, totals, correct in column["rows"]:
            for k, (n, right) in enumerate(zip(totals, correct, strict=True)):
                lack = (n * overall[k] - right) / np.sqrt(max(n * overall[k] * (1 - overall[k]), 1e-9))
                if n >= _FEW_OF_CLASS and lack > _CLEAR_OF_MANY:
                    who = f"rows of class {names[k]}" if n_parts > 1 else "rows"
                    share = f"only {right / n:.0%} are recognised, against {overall[k]:.0%} of all"
                    bad.append((lack, f"{column['name']} {group}: of {n:,.0f} {who}, {share}."))
    return [text for _, text in sorted(bad, reverse=True)[:_MOST_REMARKS]]
