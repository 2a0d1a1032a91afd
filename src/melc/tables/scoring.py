"""Scores of a fitted model on the rows of a file of any size."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.tables.csv_files import Kind
from melc.tables.fit import labels_of, weights_of
from melc.tables.model import TableModel
from melc.tables.read import read_blocks
from melc.tables.source import Source, TableError

_SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)  # as in sklearn.metrics.log_loss


@dataclass(frozen=True)
class Scores:
    """Scores of a model. ``confusion`` has a row for each true class and a column for each predicted one."""

    classes: list[Any]
    confusion: Floats
    log_loss: float
    n_rows: int
    n_unseen: dict[str, int]  # values of text columns that do not occur in the training data

    @property
    def balanced_accuracy(self) -> float:
        """Mean over the classes that occur of the share of their rows that is predicted correctly."""
        totals = self.confusion.sum(axis=1)
        occur = totals > 0
        return float(np.mean(np.diag(self.confusion)[occur] / totals[occur]))

    def as_dict(self) -> dict[str, Any]:
        """Return the scores as plain data."""
        return {
            "rows": self.n_rows,
            "classes": self.classes,
            "confusion": self.confusion.tolist(),
            "balanced_accuracy": self.balanced_accuracy,
            "log_loss": self.log_loss,
        }


def score_file(fitted: TableModel, source: Source, target: str | None = None, weights: str | None = None) -> Scores:
    """Return the scores of a model on the rows of a file, read block by block.

    ``target`` is the column with the true classes, by default that of the model; ``weights`` one of sample weights.
    """
    target = target or fitted.target
    classes = fitted.model.classes_
    kind: Kind = "number" if classes.dtype.kind in "iu" else "text"
    kinds = fitted.encoding.kinds | {target: kind} | ({} if weights is None else {weights: "number"})
    confusion, loss, n_rows = np.zeros((len(classes), len(classes))), 0.0, 0
    unseen: Counter[str] = Counter()
    for block in read_blocks(source, kinds, len(fitted.encoding.feature_names)):
        encoded = fitted.encoding.encode(block)
        X = encoded.X
        unseen.update(encoded.n_unseen)
        truth = codes_in(fitted, block.column(target), target)
        mass = np.ones(len(truth)) if weights is None else weights_of(block.column(weights), weights)
        found = np.searchsorted(classes, fitted.model.predict(X))
        np.add.at(confusion, (truth, found), mass)
        own = fitted.model.predict_proba(X)[np.arange(len(truth)), truth]
        loss -= float(mass @ np.log(np.maximum(own, _SMALLEST_PROBABILITY)))
        n_rows += len(truth)
    if not confusion.sum():
        raise TableError(f"{source.name}: there are no rows to score the model on.")
    return Scores(classes.tolist(), confusion, loss / float(confusion.sum()), n_rows, dict(unseen))


def codes_in(fitted: TableModel, column: Any, name: str) -> Any:
    """Return the numbers of the classes in a column."""
    truth = known_labels(fitted, labels_of(column, name))
    names = fitted.model.classes_.astype(str)
    order = np.argsort(names)
    places = np.minimum(np.searchsorted(names, truth, sorter=order), len(names) - 1)
    codes = order[places]
    unknown = truth[names[codes] != truth]
    if len(unknown):
        raise TableError(
            f"The target {name!r} contains {str(unknown[0])!r}, which is not a class of the model; its classes are "
            f"{', '.join(names[:8])}."
        )
    return codes


def known_labels(fitted: TableModel, labels: Any) -> Any:
    """Return labels as texts that the model knows: in a model of "a" against "not a", all others become "not a"."""
    classes = fitted.model.classes_
    texts = labels.astype(str)
    opposite = [str(c) for c in classes if str(c).startswith("not ")]
    if len(classes) == 2 and opposite and opposite[0][4:] in map(str, classes):
        texts = np.where(texts == opposite[0][4:], texts, opposite[0])
    return texts
