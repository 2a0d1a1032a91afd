"""What a report is about: a fitted model and rows with their classes, checked before any work."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.utils import column_or_1d

from melc._sklearn import check_no_masks, check_weights
from melc.arrays import Floats
from melc.data.dask.collections import is_lazy
from melc.data.frames import is_frame, rows_of
from melc.fit.intake import coded_rows
from melc.fit.validation import log_prior_ratios
from melc.model.line import decides_alone
from melc.model.names import feature_names_of, found_for, line_name
from melc.model.units import fitted_model, nameless, without_search
from melc.report.storage import visible

# With more features every fit takes long.
MANY_FEATURES = 500
# Classes that a page shows one by one in axes and figures: of more, those with the most rows.
_MOST_SHOWN = 8
_BLOCK_ELEMENTS = 1 << 22
# The share of a class without rows.
_LEAST_SHARE = 1e-12


@dataclass(frozen=True)
class Subject:
    """A fitted model and the rows that a report shows it on.

    ``estimator`` is what the user gave, to be fitted anew to rows of ``X``: a frame, or a matrix, then without
    names of columns. ``model`` is the fitted model of the raw columns, ``named`` the same with their names, and
    ``coded`` are all rows as it reads them (:mod:`melc.model.columns`), of shape (n_rows, n_columns). ``codes``, of
    shape (n_rows,), are the places of the rows' classes in ``model.classes_``. ``sample`` are the indices of the rows
    on which models are refitted. ``weights``, of shape (n_rows,), are those of the rows, None if all count the same.
    ``about`` are further rows of the model card.
    """

    estimator: Any
    model: Any
    named: Any
    X: Any
    coded: Any
    codes: NDArray[Any]
    names: list[str]
    sample: NDArray[np.int64]
    weights: Floats | None
    about: dict[str, str] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        return len(self.codes)

    @property
    def labels(self) -> list[str]:
        """The class labels as text."""
        return [str(label) for label in self.model.classes_.tolist()]

    @property
    def class_counts(self) -> NDArray[np.int64]:
        return np.bincount(self.codes, minlength=len(self.model.classes_))

    def largest_classes(self, most: int) -> list[int]:
        """Return the numbers of the classes, ascending: of more than ``most`` classes, those with the most rows."""
        return sorted(np.argsort(-self.class_counts, kind="stable")[:most].tolist())

    @property
    def shown_classes(self) -> list[int]:
        """The numbers of the classes that a page shows one by one."""
        return self.largest_classes(_MOST_SHOWN)

    @property
    def has_many_features(self) -> bool:
        """Whether fits take long."""
        return bool(self.coded.shape[1] > MANY_FEATURES)

    @property
    def mix(self) -> Floats:
        """The shares of the classes in the rows, by their weights."""
        totals = np.bincount(self.codes, self.weights, minlength=len(self.labels))
        return np.asarray(totals / totals.sum())

    @property
    def priors(self) -> Floats:
        """The priors of the classes; those of the rows of the report, if they are to be as the rows are."""
        ratios = log_prior_ratios(self.model.priors, self.model.classes_, np.maximum(self.mix, _LEAST_SHARE))
        return np.asarray(softmax([0.0, *ratios] if len(ratios) == 1 else ratios))

    @property
    def class_weights(self) -> Floats:
        """The weight of a row of each class with which the classes count as the priors of the model say."""
        return self.priors / np.maximum(self.mix, _LEAST_SHARE)

    @property
    def relative_weights(self) -> Floats:
        """How much each row counts, shape (n_rows,); one on average."""
        return np.ones(self.n_rows) if self.weights is None else self.weights / self.weights.mean()

    def line_name(self, k: int) -> str:
        """Return the number of a line, from 1, and the class that it was found for, if it was found for one."""
        return "L" + visible(line_name(self.model, k))[1:]

    @property
    def is_of_directions(self) -> bool:
        """Whether the model is read by its directions: it has a single line, or one that was found for each class.

        The line of a category has no direction.
        """
        alone = decides_alone(self.model) and not self.model.lines_[0].levels
        return alone or found_for(self.model, 0) is not None

    @cached_property
    def n_absent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each column, the rows in which it is missing, and those of which the level is not known to the model."""
        missing, unknown = np.zeros((2, self.coded.shape[1]), dtype=np.int64)
        for coded, _ in [] if sparse.issparse(self.coded) else self.blocks():
            missing += np.isnan(coded).sum(axis=0)
            for j, category in self.model.columns_.categories.items():
                unknown[j] += np.isnan(coded[:, j]).sum()
                number = category.levels.index(None) if None in category.levels else -1
                missing[j] += np.sum(coded[:, j] == number)
        return missing - unknown, unknown

    @property
    def has_missing(self) -> bool:
        """Whether a number of some row is missing."""
        return bool(np.delete(self.n_absent[0], list(self.model.columns_.categories)).any())

    def blocks(self) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Yield the coded rows in blocks of a few megabytes, with the codes of their classes."""
        size = max(1, _BLOCK_ELEMENTS // self.coded.shape[1])
        for start in range(0, self.n_rows, size):
            yield self.coded[start : start + size], self.codes[start : start + size]

    def sampled(self) -> tuple[Any, NDArray[Any], Floats | None]:
        """Return the rows of the sample, as the estimator takes them, their labels, and their weights or None."""
        weights = None if self.weights is None else self.weights[self.sample]
        return rows_of(self.X, self.sample), self.model.classes_[self.codes[self.sample]], weights


def subject_of(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    max_rows: int,
    seed: int,
    codes: NDArray[Any] | None = None,
    sample_weight: Any = None,
    about: dict[str, str] | None = None,
) -> Subject:
    """Return the subject of a report, after checking that the rows fit the model.

    ``codes`` can be given in place of y. Rows of weight zero are left out. ``about`` are further rows of the card.
    """
    if is_lazy(X, y):
        raise ValueError(
            "A report needs rows in memory or in a memory-mapped file, found a Dask collection. Pass a part of the "
            "rows: for example X.partitions[0].compute(), and the same of y."
        )
    check_no_masks(y=y)
    estimator = without_search(estimator)
    model = fitted_model(estimator)
    rows = coded_rows(model, X)
    rows = rows.tocsr() if sparse.issparse(rows) else rows
    if codes is None:
        codes = _codes_of(model.classes_, column_or_1d(y, warn=True), rows.shape[0])
    weights = None if sample_weight is None else check_weights(sample_weight, rows.shape[0])
    if weights is not None:
        kept = np.flatnonzero(weights)
        X, rows, codes, weights = rows_of(X, kept), rows[kept], codes[kept], weights[kept]
    if len(np.unique(codes)) < 2:
        only = model.classes_[codes[:1]].tolist()[0]
        raise ValueError(f"All rows are of class {only!r}; a report needs rows of two classes or more.")
    names = feature_names_of(model)
    sample = _rows_to_fit_on(codes, max_rows, rows.shape[1], np.random.default_rng(seed))
    kept, taken = _to_fit_on(estimator, model, X, rows)
    return Subject(kept, nameless(model), model, taken, rows, codes, names, sample, weights, about or {})


def _to_fit_on(estimator: Any, model: Any, X: Any, coded: Any) -> tuple[Any, Any]:
    """Return an estimator and the rows that it can be fitted to: those of the user if they are not all numbers."""
    if model.columns_.are_numbers:
        return nameless(estimator), coded
    return (estimator, X) if is_frame(X) else (nameless(estimator), np.asarray(X))


def few_rows(n_features: int) -> int:
    """Return a number of rows that takes little memory and time."""
    return max(200, _BLOCK_ELEMENTS // 2 // n_features)


def _codes_of(classes: NDArray[Any], y: NDArray[Any], n_rows: int) -> NDArray[Any]:
    """Return the place of each label among the classes; raise ``ValueError`` for labels that are no class."""
    if len(y) != n_rows:
        raise ValueError(f"X has {n_rows} rows, but y has {len(y)} labels: pass one label for each row.")
    codes = np.full(len(y), -1, dtype=np.int32)
    for code, label in enumerate(classes.tolist()):
        codes[np.asarray(y == label, dtype=bool)] = code
    unknown = y[codes < 0]
    if len(unknown):
        known = ", ".join(repr(label) for label in classes.tolist()[:8])
        raise ValueError(f"y contains {unknown[:1].tolist()[0]!r}, which is not a class of the model: {known}.")
    return codes


def _rows_to_fit_on(codes: NDArray[Any], max_rows: int, n_features: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the indices of rows to fit on, ascending: the same share of every class, but at least some of each."""
    wanted = min(max_rows, few_rows(n_features))
    if len(codes) <= wanted:
        return np.arange(len(codes))
    share = wanted / len(codes)
    chosen = []
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        chosen.append(rng.choice(rows, min(len(rows), max(20, round(share * len(rows)))), replace=False, shuffle=False))
    return np.sort(np.concatenate(chosen))


def dense(rows: Any) -> Floats:
    """Return rows, which may be sparse, as a matrix."""
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
