"""What a report is about: a fitted model and rows with their classes, checked before any work."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import column_or_1d
from sklearn.utils.validation import validate_data

from melc.arrays import Floats
from melc.data.dask.collections import is_lazy
from melc.export.document import to_document
from melc.export.sql import to_sql
from melc.export.text import export_text
from melc.model.line import decides_alone
from melc.model.names import feature_names_of, found_for, line_name
from melc.model.units import fitted_model, nameless, without_search
from melc.report.fields import Field, form_fields
from melc.report.storage import visible

_BLOCK_ELEMENTS = 1 << 22
# Rows from which typical values and ranges are taken.
_ROWS_FOR_RANGES = 10_000


@dataclass(frozen=True)
class Subject:
    """A fitted model and the rows that a report shows it on.

    ``estimator`` is what the user gave, to be fitted anew; ``model`` is the fitted model of the raw features. Both are
    without feature names, so that they take plain matrices. ``X`` has shape (n_rows, n_features); ``codes``, of shape
    (n_rows,), are the places of the rows' classes in ``model.classes_``. ``sample`` are the indices of the rows on
    which models are refitted. ``typical``, of shape (n_features,), are medians. ``fields`` says how a row is entered in
    the form. ``export`` has the methods of :class:`PlainExport`. ``about`` are further rows of the model card.
    """

    estimator: Any
    model: Any
    X: Any
    codes: NDArray[Any]
    names: list[str]
    sample: NDArray[np.int64]
    typical: Floats
    fields: list[Field]
    export: Any
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

    @property
    def priors(self) -> Floats:
        """The priors of the classes; those of the rows of the report, if they are to be as the rows are."""
        given = self.model.priors
        if given is None:
            return np.full(len(self.labels), 1 / len(self.labels))
        shares = np.asarray(self.class_counts if isinstance(given, str) else given, dtype=np.float64)
        return shares / shares.sum()

    def line_name(self, k: int) -> str:
        """Return the number of a line, from 1, and the class that it was found for, if it was found for one."""
        return "L" + visible(line_name(self.model, k))[1:]

    @property
    def is_of_directions(self) -> bool:
        """Whether the model is read by its directions: it has a single line, or one that was found for each class."""
        return decides_alone(self.model) or found_for(self.model, 0) is not None

    def blocks(self) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Yield the rows in blocks of a few megabytes, with the codes of their classes."""
        size = max(1, _BLOCK_ELEMENTS // self.X.shape[1])
        for start in range(0, self.X.shape[0], size):
            yield self.X[start : start + size], self.codes[start : start + size]

    def sampled(self) -> tuple[Any, NDArray[Any]]:
        """Return the rows of the sample and their labels."""
        return self.X[self.sample], self.model.classes_[self.codes[self.sample]]


@dataclass(frozen=True)
class PlainExport:
    """A model of numeric features as text, SQL and a JSON document."""

    model: Any
    names: list[str]

    def to_text(self, *, digits: int) -> str:
        return export_text(self.model, self.names, digits=digits)

    def to_sql(self) -> str:
        return to_sql(self.model, feature_names=self.names)

    def to_document(self) -> dict[str, Any]:
        return to_document(self.model)


def subject_of(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    max_rows: int,
    seed: int,
    codes: NDArray[Any] | None = None,
    fields: Callable[[Any, list[str], Floats], list[Field]] = form_fields,
    feature_names: list[str] | None = None,
    about: dict[str, str] | None = None,
    export: Any = None,
) -> Subject:
    """Return the subject of a report, after checking that the rows fit the model.

    ``codes`` can be given in place of y. ``fields`` makes the fields of the form from the model, the names and some
    rows. ``export`` has the methods of :class:`PlainExport`, if those are not meant.
    """
    if is_lazy(X, y):
        raise ValueError(
            "A report needs rows in memory or in a memory-mapped file, found a Dask collection. Pass a part of the "
            "rows: for example X.partitions[0].compute(), and the same of y."
        )
    estimator = without_search(estimator)
    model = fitted_model(estimator)
    rows = validate_data(
        model, X, reset=False, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32], ensure_all_finite=False
    )
    rows = rows.tocsr() if sparse.issparse(rows) else rows
    if codes is None:
        codes = _codes_of(model.classes_, column_or_1d(y, warn=True), rows.shape[0])
    if len(np.unique(codes)) < 2:
        only = model.classes_[codes[:1]].tolist()[0]
        raise ValueError(f"All rows are of class {only!r}; a report needs rows of two classes or more.")
    names = feature_names_of(model, feature_names)
    sample = _rows_to_fit_on(codes, max_rows, rows.shape[1], np.random.default_rng(seed))
    some = sample[:: math.ceil(len(sample) / min(_ROWS_FOR_RANGES, _few(rows.shape[1])))]
    shown = _dense(rows[some])
    typical = np.median(shown, axis=0)
    form = fields(model, names, shown)
    exported = PlainExport(model, names) if export is None else export
    return Subject(
        nameless(estimator), nameless(model), rows, codes, names, sample, typical, form, exported, about or {}
    )


def _few(n_features: int) -> int:
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
    wanted = min(max_rows, _few(n_features))
    if len(codes) <= wanted:
        return np.arange(len(codes))
    share = wanted / len(codes)
    chosen = []
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        chosen.append(rng.choice(rows, min(len(rows), max(20, round(share * len(rows)))), replace=False, shuffle=False))
    return np.sort(np.concatenate(chosen))


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
