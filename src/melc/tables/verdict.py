"""What cross-validation says of a model, in words: how often it is right, and what to distrust."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.tables.assess import Summary

# Classes in the matrix and in the sentence.
_MOST_IN_MATRIX, _MOST_IN_SENTENCE = 8, 3
# Intervals with fewer training rows are remarked upon.
_FEW_ROWS = 5
# Another model is clearly better, or this one not worth its lines, from these differences of balanced accuracy on.
_CLEARLY, _HARDLY = 0.03, 0.01
_SMALLEST = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Verdict:
    """Scores of a model on rows that it has not seen, in ``n_folds`` folds, and perhaps those of the other model.

    ``confusion`` has a row for each true class and a column for each predicted one.
    """

    classes: list[str]
    scores: Summary
    n_folds: int
    other: Summary | None = None

    @property
    def confusion(self) -> Floats:
        """Held-out rows of all folds, or their weights."""
        return self.scores.confusion

    @property
    def recalls(self) -> Floats:
        """The share of the rows of each class that is recognised; 0 if all weights of a class are."""
        return np.nan_to_num(shares(self.confusion, 1))

    @property
    def precisions(self) -> Floats:
        """The share of the rows predicted as each class that are of it; NaN if none is."""
        return shares(self.confusion, 0)

    @property
    def is_at_chance(self) -> bool:
        """Whether the balanced accuracy is within two standard errors of that of guessing."""
        recalls, totals, n = self.recalls, self.confusion.sum(axis=1), len(self.classes)
        error = np.sqrt(np.sum(recalls * (1 - recalls) / np.maximum(totals, _SMALLEST))) / n
        return bool(recalls.mean() <= 1 / n + 2 * error)

    def as_dict(self) -> dict[str, Any]:
        """Return the scores as plain data."""
        return {
            "confusion": self.confusion.tolist(),
            "recall": dict(zip(self.classes, self.recalls.tolist(), strict=True)),
            "precision": {
                label: None if np.isnan(share) else float(share)
                for label, share in zip(self.classes, self.precisions, strict=True)
            },
        }

    def sentence(self) -> str:
        """Return in words how often the model is right on new rows."""
        order = np.argsort(self.recalls, kind="stable")
        shown = sorted(order[:_MOST_IN_SENTENCE]) if len(order) > _MOST_IN_SENTENCE else range(len(order))
        first, *others = [(self.classes[k], _of_100(self.recalls[k])) for k in shown]
        begin = f"Of 100 new rows of class {first[0]} it recognises about {first[1]}"
        more = "".join(f", of class {name} {hits}" for name, hits in others)
        worst = " (the classes that are recognised least)" if len(order) > len(shown) else ""
        return f"{begin}{more}{worst}; guessing would recognise {_of_100(1 / len(self.classes))}."

    def remarks(self, n_lines: int) -> list[str]:
        """Return what to distrust: a model at chance, or one that another is clearly better than."""
        found = []
        if self.is_at_chance:
            found.append(
                "It is no better than guessing on rows that it has not seen, however well it may fit those it has."
            )
        return found if self.other is None else [*found, *self._beside(self.other, n_lines)]

    def _beside(self, other: Summary, n_lines: int) -> list[str]:
        """Return whether the other kind of model is better, or as good and easier to read."""
        own, others = self.scores.means[0], other.means[0]
        error = np.hypot(self.scores.spreads[0], other.spreads[0]) / np.sqrt(self.n_folds)
        scores = f"balanced accuracy {others:.3f} against {own:.3f}"
        if other.model == "MELC":
            is_enough = own - others < _HARDLY and n_lines > other.n_lines
            return [f"Without --lines, the model does as well and is easier to read: {scores}."] if is_enough else []
        if others - own <= max(_CLEARLY, 2 * error):
            return []
        cost = f"at the cost of about {other.n_lines:.0f} lines to read instead of {n_lines}"
        return [f"With --lines auto, the model is clearly better: {scores}, {cost}."]


def shares(confusion: Floats, axis: int) -> Floats:
    """Return the share of the right ones among the rows of each class (1), or of each prediction (0); NaN if none."""
    totals = confusion.sum(axis=axis)
    return np.divide(np.diag(confusion), totals, out=np.full(len(totals), np.nan), where=totals > 0)


def matrix_cells(classes: list[str], confusion: Floats, head: str) -> list[tuple[str, ...]]:
    """Return a confusion matrix with recall and precision as rows of cells; of many classes, without the counts."""
    recalls, precisions = shares(confusion, 1), shares(confusion, 0)
    if len(classes) > _MOST_IN_MATRIX:
        each = zip(classes, map(_share, recalls), map(_share, precisions), strict=True)
        return [(head, "recall", "precision"), *each]
    rows = [(head, *(f"predicted {name}" for name in classes), "recall")]
    for name, counts, recall in zip(classes, confusion, recalls, strict=True):
        rows.append((name, *(f"{count:g}" for count in counts), _share(recall)))
    return [*rows, ("precision", *map(_share, precisions), "")]


def few_rows_remarks(lines: list[dict[str, Any]]) -> list[str]:
    """Return a remark for each line with intervals that rest on few training rows; ``lines`` are of a summary."""
    found = []
    for line in lines:
        totals = np.sum(line["counts"], axis=1)
        if line["levels"] or line["minor"] or not (totals < _FEW_ROWS).any():
            continue
        k = int(np.argmin(totals))
        ends = ["", *line["shown_thresholds"], ""]
        below, above = ends[k], ends[k + 1]
        where = f"from {below} to {above}" if below and above else f"above {below}" if below else f"below {above}"
        rows = "row" if totals[k] == 1 else "rows"
        found.append(f"Along line {line['number']}, the interval {where} rests on {totals[k]:g} training {rows}.")
    return found


def _of_100(share: float) -> str:
    return f"{100 * share:.0f}"


def _share(share: float) -> str:
    return "-" if np.isnan(share) else f"{share:.3f}"
