"""A permutation test: whether the divergence of a model is more than one finds where there is nothing to find."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.inference.alignment import divergences_of
from melc.inference.resampling import Refit, checked_number, computed, refit_of


@dataclass(frozen=True)
class PermutationTest:
    """The divergence of a model, compared with those of models fitted to permuted labels.

    Attributes
    ----------
    divergence : float
        The divergence of the model fitted to these rows; with more than two classes, the mean over the classes.
    null : ndarray of shape (n,)
        The divergences with permuted labels.
    p_value : float
        The probability of such a divergence, or a larger one, if the labels had nothing to do with the features:
        (1 + number of ``null`` that are not smaller) / (1 + n).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from melc import MELC
    >>> X, species = load_iris(return_X_y=True)
    >>> y = species == 1
    >>> model = MELC(n_init=2, random_state=0).fit(X, y)
    >>> from melc.inference import permutation_test
    >>> test = permutation_test(model, X, y, n=19, random_state=0)
    >>> test.null.shape, test.p_value
    ((19,), 0.05)
    """

    divergence: float
    null: Floats = field(repr=False)
    p_value: float

    def summary(self) -> str:
        """Return the result in one sentence."""
        reached = int(np.sum(self.null >= self.divergence))
        return (
            f"divergence {self.divergence:.4g}; with permuted labels {np.median(self.null):.4g} at the median and "
            f"{self.null.max():.4g} at most; {reached} of {len(self.null)} reach it: p = {self.p_value:.3g}"
        )


def permutation_test(
    model: Any,
    X: Any,
    y: Any,
    *,
    n: int = 200,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> PermutationTest:
    """Test whether the labels are related to the features, with the divergence as the test statistic.

    With many features, some direction separates any two classes to some extent. The model is refitted in the same way
    to the same rows with permuted labels; the p-value tells how often that leads to a divergence at least as large. For
    an :class:`melc.AdditiveMELC` it is the divergence of the log-odds of the rows of the classes.

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline or fitted search
        A fitted model. Scalers before it in a pipeline stay as they are; of a search, the best estimator is used, with
        its parameters.
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        The rows that the model was fitted to.
    y : array-like of shape (n_rows,)
        Their labels.
    n : int, default=200
        Number of permutations. The smallest possible p-value is 1 / (1 + n).
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows; they stay with the rows.
    n_jobs : int, default=None
        Number of processes, as in scikit-learn: None means one, -1 all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the permutations and of the starts of the fits.
    verbose : int, default=0
        If positive, print progress.

    Returns
    -------
    test : PermutationTest

    Examples
    --------
    >>> import numpy as np
    >>> from melc import MELC
    >>> from melc.inference import permutation_test
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> y = X[:, 0] > 0
    >>> permutation_test(MELC(random_state=0).fit(X, y), X, y, n=19, random_state=0).p_value
    0.05
    """
    n = checked_number(n, 1)
    refit = refit_of(model, X, y, sample_weight)
    observed = _refitted_divergence(refit, 0, refit.codes)
    null = np.array(list(computed(_permuted, refit, n, random_state, n_jobs, verbose, "permutation_test")))
    return PermutationTest(observed, null, (1 + int(np.sum(null >= observed))) / (1 + n))


def _permuted(refit: Refit, seed: int) -> float:
    """The divergence of the model with permuted labels."""
    return _refitted_divergence(refit, seed, np.random.default_rng(seed).permutation(refit.codes))


def _refitted_divergence(refit: Refit, seed: int, codes: Any) -> float:
    model = refit(seed, codes, refit.weights)
    return float(np.mean(divergences_of(model, refit.X, codes, refit.weights)))
