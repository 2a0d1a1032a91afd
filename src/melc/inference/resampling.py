"""Fits of the same model to other data: resamples of the rows, or permuted labels; in parallel, with progress."""

import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_random_state

from melc._sklearn import HAS_CALLBACKS, check_no_masks, check_weights
from melc.arrays import Floats
from melc.data.frames import has_numbers_only, is_frame, rows_of
from melc.fit.intake import coded_rows
from melc.model.names import feature_names_of
from melc.model.units import fitted_model, nameless, without_search

# Lines of progress that are printed.
_LINES = 10
# Types of matrices that are taken as they are.
_NUMBERS = [np.float64, np.float32]


@dataclass(frozen=True)
class Refit:
    """A fitted model, in the units of the rows, and how to fit it again to other labels or weights of the same rows.

    ``X`` are the rows as a user has them, ``scaled`` after the scalers of a pipeline, and ``codes`` are their labels.
    """

    estimator: Any  # the model, or a pipeline of scalers that ends in it
    model: Any
    feature_names: list[str]
    X: Any
    scaled: Any
    codes: NDArray[np.int64]
    weights: Floats

    @property
    def n_classes(self) -> int:
        return len(self.model.classes_)

    def __call__(self, seed: int, codes: NDArray[np.int64], weights: Floats) -> Any:
        """Return the model fitted with other codes or weights, in the units of the rows."""
        last = self.estimator[-1] if isinstance(self.estimator, Pipeline) else self.estimator
        model = _unfitted(last, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the data are like was said when the model was fitted
            model.fit(self.scaled, codes, sample_weight=_enough(codes, weights))
        if not isinstance(self.estimator, Pipeline):
            return model
        pipeline = copy.copy(self.estimator)
        pipeline.steps = [*self.estimator.steps[:-1], (self.estimator.steps[-1][0], model)]
        return fitted_model(pipeline)


def _enough(codes: NDArray[np.int64], weights: Floats) -> Floats:
    """Return weights of which that of a class is at least two, as a fit needs, if a single row of it is left."""
    totals = np.bincount(codes, weights)
    alone = (np.bincount(codes, weights > 0) == 1) & (totals < 2)
    return np.asarray(weights * np.where(alone, 2 / totals, 1.0)[codes])


def _unfitted(model: Any, seed: int) -> Any:
    """Return an unfitted model with the same parameters, the gamma that was chosen, and a seed of its own."""
    twin = clone(model)
    settings: dict[str, Any] = {"random_state": seed, "verbose": 0}
    if twin.gamma == "auto":
        settings["gamma"] = model.gamma_
    if HAS_CALLBACKS:
        twin.set_callbacks()
    return twin.set_params(**settings)


def refit_of(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Refit:
    """Return how to fit the model in an estimator again to rows X with labels y, after checking them."""
    check_no_masks(X, y)
    estimator = without_search(estimator)
    model = fitted_model(estimator)
    as_table = is_frame(X) and not has_numbers_only(X)
    if as_table:
        coded_rows(model, X)
        scaled = X
    else:
        scaled = estimator[:-1].transform(X) if isinstance(estimator, Pipeline) else X
        checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": _NUMBERS, "ensure_all_finite": "allow-nan"}
        X, scaled = check_array(X, input_name="X", **checks), check_array(scaled, **checks)
    if X.shape[1] != model.n_features_in_:
        raise ValueError(f"X has {X.shape[1]} features, but the model has {model.n_features_in_}.")
    labels = np.asarray(y)
    if labels.shape != (X.shape[0],):
        raise ValueError(f"y has shape {labels.shape}, but X has {X.shape[0]} rows; pass one label per row.")
    weights = check_weights(1.0 if sample_weight is None else sample_weight, X.shape[0])
    if not weights.all():
        kept = np.flatnonzero(weights)
        X, scaled, labels, weights = rows_of(X, kept), rows_of(scaled, kept), labels[kept], weights[kept]
    if not np.array_equal(np.unique(labels), model.classes_):
        raise ValueError(
            f"y has the classes {np.unique(labels).tolist()[:10]}, but the model those of "
            f"{model.classes_.tolist()[:10]}: pass the rows that it was fitted to."
        )
    names, codes = feature_names_of(model), np.searchsorted(model.classes_, labels)
    if not as_table:
        estimator, model = nameless(estimator), nameless(model)
    return Refit(estimator, model, names, X, scaled, codes, weights)


def resampled(codes: NDArray[np.int64], n_classes: int, rng: np.random.Generator) -> Floats:
    """Return how often each row is drawn, shape (n_rows,): of every class as many rows as it has, with replacement."""
    counts = np.zeros(len(codes))
    for c in range(n_classes):
        members = np.flatnonzero(codes == c)
        counts[members] = np.bincount(rng.integers(len(members), size=len(members)), minlength=len(members))
    return counts


def checked_number(n: Any, least: int) -> int:
    """Return a number of fits, checked."""
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < least:
        raise ValueError(f"n={n!r}; expected a whole number of at least {least}.")
    return int(n)


def computed(
    task: Callable[..., Any], arguments: Any, n: int, random_state: Any, n_jobs: int | None, verbose: int, name: str
) -> Iterator[Any]:
    """Yield ``task(arguments, seed)`` for n seeds, in their order; print progress if ``verbose``.

    The seeds follow from ``random_state`` alone, so the results do not depend on the number of processes.
    """
    seeds = check_random_state(random_state).randint(2**31 - 1, size=n)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    for done, result in enumerate(parallel(delayed(task)(arguments, int(seed)) for seed in seeds), 1):
        if verbose and (done * _LINES // n > (done - 1) * _LINES // n):
            print(f"[{name}] {done} of {n}", flush=True)
        yield result
