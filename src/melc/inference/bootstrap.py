"""Intervals for the weights, thresholds, divergence and accuracy of a model, by the bootstrap."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.inference.alignment import Aligned, Lines, divergences_of
from melc.inference.intervals import Interval, ThresholdInterval, accuracy_of, limits, unbiased
from melc.inference.resampling import Refit, checked_number, computed, refit_of, resampled
from melc.model.names import column_width, line_name

# Two directions are in the same optimum if the projections of the rows along them correlate by at least this.
SAME_OPTIMUM = 0.9
# Fewest resamples, and the fewest in which a line or threshold must be found to have an interval.
FEWEST_RESAMPLES, _FEWEST_FOUND = 20, 5
# The fewest rows beside a threshold that has an interval, or if that is less, the least part of all rows. Of Cauchy
# data the 90 % intervals of thresholds with fewer contained the truth in 1 of 5 cases, those with more in 13 of 14.
_FEWEST_BESIDE, _LEAST_BESIDE = 20, 0.1
# Features of a line that a summary lists.
_MOST_LISTED = 20


@dataclass(frozen=True)
class Bootstrap:
    """Bootstrap intervals of a model, from fits to resamples of its rows.

    Attributes
    ----------
    n : int
        Number of resamples.
    confidence : float
        The probability with which the intervals should contain the true value.
    coef : Interval
        The weights, arrays of the shape of ``model.directions_``. Limits are infinite if a line was found too rarely.
    thresholds : list of lists of ThresholdInterval
        For each line, its thresholds.
    divergence : Interval
        The divergence, corrected for its bias: a number, or with more than two classes an array of shape (n_classes,).
        For an :class:`melc.AdditiveMELC`, the divergence of the log-odds of the classes.
    accuracy : Interval
        The balanced accuracy of the model on new rows, by ten-fold cross-validation, repeated twice.
    same_optimum : float
        The share of resamples that end in the same optimum: the projections of all rows along the direction of the
        resample and along that of the model have a correlation of at least 0.9 in absolute value. With several lines,
        the mean share.
    importances : Interval
        The ``importances_`` of the features, arrays of shape (n_features,).
    line_shares : ndarray of shape (n_lines,)
        The share of resamples with a line of the same features. It is always 1 for the only line of a model, and for
        the lines of a :class:`melc.MELC` with more than two classes.
    feature_names : list of str
        The names of the features.
    feature_spread : ndarray of shape (n_features,)
        The standard deviations of the features.
    classes : ndarray of shape (n_classes,)
        The class labels.
    line_names : list of str
        The numbers of the lines from 1, with the class if each was found for one: "line 2 (found for 1)".
    minor : ndarray of bool of shape (n_lines,)
        Whether a line is minor (see ``other_features`` of :class:`melc.AdditiveMELC`).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from melc import MELC
    >>> X, species = load_iris(return_X_y=True)
    >>> y = species == 1
    >>> model = MELC(n_init=2, random_state=0).fit(X, y)
    >>> from melc.inference import bootstrap
    >>> found = bootstrap(model, X, y, n=20, random_state=0)
    >>> found.coef.low.shape, len(found.thresholds[0])
    ((1, 4), 2)
    """

    n: int
    confidence: float
    coef: Interval = field(repr=False)
    thresholds: list[list[ThresholdInterval]] = field(repr=False)
    divergence: Interval
    accuracy: Interval
    same_optimum: float
    importances: Interval = field(repr=False)
    line_shares: Floats = field(repr=False)
    feature_names: list[str] = field(repr=False)
    feature_spread: Floats = field(repr=False)
    classes: NDArray[Any] = field(repr=False)
    line_names: list[str] = field(repr=False)
    minor: NDArray[np.bool_] = field(repr=False)

    def summary(self) -> str:
        """Return the intervals as text."""
        accuracy = self.accuracy
        text = [
            f"{self.confidence:.0%} intervals from {self.n} resamples",
            f"balanced accuracy on new rows: {accuracy.estimate:.3f} ({accuracy.low:.3f} to {accuracy.high:.3f})",
            *self._divergences_as_text(),
            f"same optimum: {self.same_optimum:.0%} of the resamples",
        ]
        for k in np.flatnonzero(~self.minor):
            text += ["", *self._line_as_text(int(k))]
        n_minor = int(self.minor.sum())
        text += ["", f"and {n_minor} minor line{'s'[: n_minor > 1]}, each of one feature"] if n_minor else []
        return "\n".join(text)

    def _divergences_as_text(self) -> list[str]:
        estimates, lows, highs = (np.atleast_1d(each) for each in vars(self.divergence).values())
        names = [""] if len(estimates) == 1 else [f" of class {label}" for label in self.classes.tolist()]
        return [
            f"divergence{name}, less its bias: {estimate:.4g} ({low:.4g} to {high:.4g})"
            for name, estimate, low, high in zip(names, estimates, lows, highs, strict=True)
        ]

    def _line_as_text(self, k: int) -> list[str]:
        """Return the heading of a line, its weights and its thresholds, one line of text each."""
        weights, low, high = (each[k] for each in vars(self.coef).values())
        features = np.flatnonzero(weights)
        shown, hidden = features[:_MOST_LISTED], len(features[_MOST_LISTED:])
        width = column_width(self.feature_names[j] for j in shown)
        text = [self._heading(k)]
        text += [
            f"  {self.feature_names[j]:<{width}}  {weights[j]:.4g} ({_interval_limits(low[j], high[j])})" for j in shown
        ]
        text += [f"  and {hidden} more"] if hidden else []
        for each in self.thresholds[k]:
            beside = "" if np.isfinite(each.high - each.low) else f", {each.rows:.0f} rows beside it"
            ends = _interval_limits(each.low, each.high)
            text.append(f"  threshold {each.value:.4g} ({ends}), in {each.share:.0%}{beside}")
        return text

    def _heading(self, k: int) -> str:
        """Return the name of a line, with its share unless every resample has such a line."""
        if len(self.line_names) == 1:
            return "weights"
        name, plain = self.line_names[k], f"line {k + 1}"
        return f"{name}, in {self.line_shares[k]:.0%} of the resamples" if name == plain else name


def bootstrap(
    model: Any,
    X: Any,
    y: Any,
    *,
    n: int = 200,
    confidence: float = 0.9,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> Bootstrap:
    """Return intervals for the weights, thresholds, divergence and accuracy of a fitted model.

    The model is refitted, with new random starts, to n resamples of its rows. A resample has as many rows of each class
    as the data, drawn with replacement. The intervals are for the values that the same model, with the same bandwidths,
    would have on infinitely many rows. The user guide describes how they are computed and how often they contain the
    true value.

    Before weights and thresholds are compared with those of the model, the direction of a resample is rescaled to the
    same length (in units of the standard deviations of the features), projections are measured from their mean, and the
    sign is chosen so that the projections correlate positively. A threshold of a resample matches a threshold of the
    model if both separate the same classes, in the same order, and each is the nearest such threshold to the other.

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline or fitted search
        A fitted model. Scalers before it in a pipeline stay as they are, and the intervals are in the units of the raw
        features; the best estimator of a search is used, with its parameters. With ``gamma="auto"``, all fits use the
        gamma that was chosen.
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        The rows that the model was fitted to.
    y : array-like of shape (n_rows,)
        Their labels.
    n : int, default=200
        Number of resamples, at least 20.
    confidence : float, default=0.9
        The probability with which each interval should contain the true value.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows. A row is drawn together with its weight.
    n_jobs : int, default=None
        Number of processes, as in scikit-learn: None means one, -1 all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the resamples and of the starts of the fits.
    verbose : int, default=0
        If positive, print progress.

    Returns
    -------
    intervals : Bootstrap

    Examples
    --------
    >>> import numpy as np
    >>> from melc import MELC
    >>> from melc.inference import bootstrap
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + 0.3 * X[:, 1] > 0.2
    >>> result = bootstrap(MELC(random_state=0).fit(X, y), X, y, n=20, random_state=0)
    >>> result.coef.low.shape, len(result.thresholds[0])
    ((1, 2), 1)
    """
    n = checked_number(n, FEWEST_RESAMPLES)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1, such as 0.9.")
    return intervals_of(refit_of(model, X, y, sample_weight), n, confidence, random_state, n_jobs, verbose)


def intervals_of(
    refit: Refit,
    n: int,
    confidence: float,
    random_state: Any,
    n_jobs: int | None,
    verbose: int = 0,
    accuracy: Interval | None = None,
) -> Bootstrap:
    """Return the intervals of a model that can be fitted again; the accuracy on new rows may be known already."""
    lines = Lines.of(refit.model, refit.X, refit.weights)
    outcomes = list(computed(_outcome, (refit, lines), n, random_state, n_jobs, verbose, "bootstrap"))
    known = accuracy_of(refit, confidence, random_state, n_jobs) if accuracy is None else accuracy
    return _Collected(refit, lines, outcomes, confidence).result(known)


@dataclass(frozen=True)
class Outcome:
    """What is kept of a resample."""

    lines: list[Aligned | None]
    divergence: Floats
    importances: Floats


def _outcome(known: tuple[Refit, Lines], seed: int) -> Outcome:
    """Fit the model to a resample."""
    refit, lines = known
    weights = refit.weights * resampled(refit.codes, refit.n_classes, np.random.default_rng(seed))
    model = refit(seed, refit.codes, weights)
    divergence = divergences_of(model, refit.X, refit.codes, weights)
    return Outcome(lines.aligned(model), divergence, model.importances_)


@dataclass(frozen=True)
class _Collected:
    """The outcomes of all resamples."""

    refit: Refit
    lines: Lines
    outcomes: list[Outcome]
    confidence: float

    def result(self, accuracy: Interval) -> Bootstrap:
        """Return the intervals."""
        n, n_lines = len(self.outcomes), len(self.lines.lines)
        present = [[line for each in self.outcomes if (line := each.lines[k]) is not None] for k in range(n_lines)]
        alike = [sum(each.correlation >= SAME_OPTIMUM for each in line) / n for line in present]
        return Bootstrap(
            n=n,
            confidence=self.confidence,
            coef=self._weights(present),
            thresholds=[self._thresholds(k, line) for k, line in enumerate(present)],
            divergence=self._divergence(),
            accuracy=accuracy,
            same_optimum=float(np.mean(alike)),
            importances=self._importances(),
            line_shares=np.array([len(line) / n for line in present]),
            feature_names=self.refit.feature_names,
            feature_spread=self.lines.spread,
            classes=self.refit.model.classes_,
            line_names=[line_name(self.refit.model, k) for k in range(n_lines)],
            minor=np.array([line.minor for line in self.refit.model.lines_]),
        )

    def _weights(self, present: list[list[Aligned]]) -> Interval:
        """The weights of each line. None is larger than it would be if it were the only one."""
        weights, spread = self.refit.model.directions_, self.lines.spread
        low, high = np.full(weights.shape, -np.inf), np.full(weights.shape, np.inf)
        for k, line in enumerate(present):
            largest = np.divide(self.lines.lines[k].length, spread, out=np.zeros_like(spread), where=spread > 0)
            if len(line) >= _FEWEST_FOUND:
                found = limits(weights[k], np.array([each.coef for each in line]), self.confidence)
                low[k], high[k] = (np.clip(limit, -largest, largest) for limit in found)
        return Interval(weights, low, high)

    def _thresholds(self, k: int, line: list[Aligned]) -> list[ThresholdInterval]:
        found, mine = [], self.lines.lines[k]
        # Rows, not weights: a heavy row is drawn as a whole, so it is a single observation.
        intervals = np.searchsorted(mine.thresholds, mine.projections, side="right")
        counts = np.bincount(intervals, minlength=len(mine.thresholds) + 1)
        for i, value in enumerate(mine.thresholds):
            values = np.array([each.thresholds[i] for each in line])
            values = values[np.isfinite(values)]
            low, high, rows = -np.inf, np.inf, float(counts[i : i + 2].min())
            if len(values) >= _FEWEST_FOUND and rows >= min(_FEWEST_BESIDE, _LEAST_BESIDE * counts.sum()):
                low, high = (float(limit) for limit in limits(value, values, self.confidence))
            found.append(ThresholdInterval(float(value), low, high, len(values) / len(self.outcomes), rows))
        return found

    def _divergence(self) -> Interval:
        refit = self.refit
        estimate = divergences_of(refit.model, refit.X, refit.codes, refit.weights)
        values = np.array([each.divergence for each in self.outcomes])
        centre = unbiased(estimate, values)
        found = [np.maximum(each, 0.0) for each in (centre, *limits(centre, values, self.confidence))]
        return Interval(*(float(each[0]) if len(each) == 1 else each for each in found))

    def _importances(self) -> Interval:
        estimate = self.refit.model.importances_
        low, high = limits(estimate, np.array([each.importances for each in self.outcomes]), self.confidence)
        return Interval(estimate, np.maximum(low, 0.0), high)


def _interval_limits(low: float, high: float) -> str:
    """Return the limits of an interval as text; infinite ones are those of what too few resamples have."""
    return f"{low:.4g} to {high:.4g}" if np.isfinite(high - low) else "no interval"
