"""What must hold of every fit, whatever the data."""

import copy
import math
import pickle
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from fuzz.cases import COSTLY, FORMS, Case, Floats
from fuzz.lines import faults, faults_of_exports, faults_of_line, fitted_lines, rounding_decides
from fuzz.rounding import feature_rounding, is_spike, rounding, tolerance
from melc import MELC
from melc.data.hashing import RowHashes
from melc.data.memory import MemoryRows
from melc.export import from_json, to_json
from melc.fit import projection
from melc.fit.coordinates import Coordinates, estimate_shrinkage
from melc.fit.density import Density
from melc.fit.solvers import best_run
from melc.fit.tabulation import DensityRatio
from melc.fit.validation import MOST_SORTED_NUMBERS
from melc.objective import Objective
from melc.objective.base import shrunk_along

# Beginnings of the errors for data that cannot be fitted, and of the warnings about what is found.
REFUSALS = (
    "None of the ",
    "No feature has a standard deviation of more than",
    "Feature ",
    "At least two classes are needed",
    "The weights of class ",
    "Class ",
    "gamma=",
)
WARNINGS = (
    (r"(Class .* against the rest: )?The best of \d+ runs stopped", ConvergenceWarning),
    (r"By their weights, (the )?\d+ rows", UserWarning),
    (r"The weights of class .* are very unequal", UserWarning),
    (r"(Class .* against the rest: )?A class does not vary along the direction found", UserWarning),
    (r"All rows of class .* are equal", UserWarning),
    (r"The standard deviation of feature .* is only .* times the spacing of numbers", UserWarning),
)

# Methods whose result does not depend on the units; the error of the others is one of the data's.
_FREE_OF_SCALE = ("moments", "exact")
_CERTIFIED = 1e-6
# How far a curve may be from its formula, and the places of a table above which it may be farther.
_CURVE_ERROR, _FULL_TABLE = 0.002, 200_000
# Numbers up to which equal rows are joined, and rows up to which the fit is the same to the last bit in any order.
_JOINED_NUMBERS, _ORDERED_ROWS = 1 << 22, 20_000
# Divergence above which the classes are so far apart that rounding may lead to another optimum.
_FAR_APART = 20.0
# Directions beside one that are compared with it.
_NEIGHBOURS = 32


class Violation(AssertionError):
    """An invariant does not hold."""


@dataclass(frozen=True)
class Failure:
    """Which invariant failed (the same bug keeps its name while a case shrinks), and how."""

    invariant: str
    message: str


@dataclass(frozen=True)
class Fit:
    """A fitted model, what every search had to begin with, and the formulas of the curves."""

    model: MELC
    searches: list[tuple[Any, ...]]
    formulas: list[DensityRatio]

    def directions(self) -> Iterator[tuple[Floats, DensityRatio, float, Any]]:
        """Direction, formula of the curve, divergence and rows, one for every pair of classes."""
        divergences = np.atleast_1d(self.model.divergence_).tolist()
        every = zip(self.model.coef_, self.formulas, divergences, self.searches, strict=True)
        return ((v, formula, divergence, search[0]) for v, formula, divergence, search in every)


def check(case: Case) -> Failure | None:
    """The first invariant that fails on a case, if any does."""
    with _only_documented_warnings():
        try:
            fit = fitted(case)
        except Exception as error:
            return None if _is_refusal(error) else _crash("fit", error)
        for name, invariant in INVARIANTS.items():
            if name in COSTLY and name not in case.checks:
                continue
            try:
                invariant(case, fit)
            except Violation as violation:
                return Failure(name, str(violation))
            except Exception as error:
                if not _is_refusal(error):  # of a fit to the same data with other weights
                    return _crash(name, error)
    return None


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, ValueError) and str(error).startswith(REFUSALS)


def _crash(name: str, error: Exception) -> Failure:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/melc/" in f.filename or "/fuzz/" in f.filename]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else "?"
    return Failure(f"{name}: {type(error).__name__} in {where}", f"{type(error).__name__}: {error}")


@contextmanager
def _only_documented_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for message, category in WARNINGS:
            warnings.filterwarnings("ignore", message=message, category=category)
        yield


def fitted(case: Case) -> Fit:
    searches: list[tuple[Any, ...]] = []
    formulas: list[DensityRatio] = []

    def recorded(*arguments: Any) -> Any:
        searches.append(arguments)
        return search(*arguments)

    def recorded_formula(formula: DensityRatio) -> Any:
        formulas.append(formula)
        return tabulate(formula)

    search, on_grid, tabulate = projection.search, projection.search_on_grid, projection.tabulate

    def recorded_on_grid(*arguments: Any) -> Any:
        rows, problem, n_starts, rng, *_ = arguments
        starts = problem.coordinates.starting_directions(n_starts, copy.deepcopy(rng))
        # With many features all but the first are drawn otherwise.
        searches.append((rows, problem, starts if rows.n_features <= 128 else starts[:1]))
        return on_grid(*arguments)

    with (
        mock.patch.object(projection, "search", recorded),
        mock.patch.object(projection, "search_on_grid", recorded_on_grid),
        mock.patch.object(projection, "tabulate", recorded_formula),
    ):
        model = MELC(**case.settings).fit(case.features(), case.y, case.weights)
    if len(model.classes_) > 2:  # curves are fitted together, but rounding is measured by the kernels of directions
        formulas = [_formula(search, v) for search, v in zip(searches, model.coef_, strict=True)]
    return Fit(model, searches, formulas)


def _formula(searched: tuple[Any, ...], v: Floats) -> DensityRatio:
    """The densities of a class and of all others along a direction."""
    rows, problem = searched[:2]
    shrunk = shrunk_along(problem.shrinkage, v)
    return projection.density_ratio(rows, problem.settings, shrunk, rows.summarise(v), v, rows.in_memory())


def _require(condition: Any, message: str) -> None:
    if not condition:
        raise Violation(message)


def probes(case: Case, fit: Fit) -> Any:
    """Training rows, rows around them, rows a million bandwidths away, and some at the end of the world."""
    rng = np.random.default_rng(len(case.X))
    X = case.X[:: max(1, len(case.X) // 200)]
    low, high = X.min(axis=0), X.max(axis=0)
    around = low + (high - low) * rng.uniform(-1, 2, size=(20, X.shape[1]))
    far = [
        X.mean(axis=0) + sign * distance * max(d.bandwidth for d in formula.densities) * v
        for v, formula, *_ in fit.directions()
        for distance in (30.0, 1e3, 1e6)
        for sign in (-1, 1)
    ]
    everything = np.concatenate([X, around, far])
    if case.form == "float32":
        limit = np.finfo(np.float32).max
        return FORMS[case.form](np.clip(everything, -limit, limit))
    edge = np.full((1, X.shape[1]), 1e300)
    return FORMS[case.form](np.concatenate([everything, edge, -edge]))


def finite_model(case: Case, fit: Fit) -> None:
    _require(np.isfinite(fit.model.divergence_).all(), f"divergence_ = {fit.model.divergence_}")
    for line, formula in zip(fit.model.lines_, fit.formulas, strict=True):
        for fault in faults_of_line(line):
            raise Violation(fault)
        for density in formula.densities:
            good = np.isfinite(density.support).all() and density.variance > 0 and np.isfinite(density.variance)
            _require(good and np.all(density.weights > 0), f"no density: variance {density.variance}")
        if len(fit.model.classes_) == 2 and len(line.thresholds):
            own = line.counts[np.arange(len(line.codes)), line.codes]
            _require(np.all(own > 0), f"an interval has no row of its class: {line.counts}, {line.codes}")


def predictions_agree(case: Case, fit: Fit) -> None:
    model, X = fit.model, probes(case, fit)
    proba, decision, labels = model.predict_proba(X), model.decision_function(X), model.predict(X)
    _require(np.isfinite(decision).all(), f"decision_function gave {decision[~np.isfinite(decision)][:3]}")
    _require(np.isfinite(model.transform(X)).all(), "transform is not finite")
    _require(np.all((proba >= 0) & (proba <= 1)), f"probabilities from {proba.min()} to {proba.max()}")
    _require(np.allclose(proba.sum(axis=1), 1, rtol=0, atol=1e-12), "probabilities do not add up to one")
    most_likely = model.classes_[np.argmax(proba, axis=1)]
    _require(np.array_equal(labels, most_likely), f"predict {labels} is not the most likely {most_likely}")
    if decision.ndim == 1:
        by_sign = model.classes_[(decision > 0).astype(int)]
        _require(np.array_equal(labels, by_sign), "predict is not the sign of decision_function")
        interval = np.searchsorted(model.thresholds_, model.transform(X)[:, 0], side="right")
        _require(np.array_equal(labels, model.interval_classes_[interval]), "predict is not what the thresholds say")
    else:
        best = model.classes_[np.argmax(decision, axis=1)]
        _require(np.array_equal(labels, best), "predict is not the class of the best odds")


def curves_follow_densities(case: Case, fit: Fit) -> None:
    """At the training rows a curve is the formula of the densities, written down naively, where it has its sign.

    Elsewhere an interval was joined with its neighbours, and the curve says little. Those of more than two classes are
    fitted together instead.
    """
    if len(fit.model.classes_) > 2:
        return
    z = fit.model.transform(case.features())[slice(None) if case.weights is None else case.weights > 0]
    for points, line, (v, formula, _, rows) in zip(z.T, fit.model.lines_, fit.directions(), strict=True):
        if rounding(rows.X, v, formula) > 1e-6:
            continue
        first, second = (_naive_log(density, points) for density in formula.densities)
        background = formula.log_background(points)
        expected = np.logaddexp(second, background) - np.logaddexp(first, background)
        curve, offset = line.curves[0], float(line.offsets[0])
        found = curve.at(points)
        # Between two knots without a crossing that was left out: there the curve is straight.
        knots = np.concatenate([[-np.inf], curve.knots, [np.inf]])
        after = np.searchsorted(curve.knots, points, side="right") + 1
        table = projection.tabulate(formula)
        if len(table.z) > _FULL_TABLE:
            continue
        left_out = np.setdiff1d(table.crossings, curve.thresholds)
        clear = np.searchsorted(left_out, knots[after]) == np.searchsorted(left_out, knots[after - 1])
        same_side = ((found > 0) == (expected > 0)) & ((found > -offset) == (expected > -offset))
        wrong = clear & same_side & (np.abs(found - expected) > _CURVE_ERROR)
        if offset:  # intervals at that level were joined as well, and the curve is straight over them
            wrong &= np.abs(expected + offset) > 1
        _require(not wrong.any(), f"curve {found[wrong][:3]}, not {expected[wrong][:3]}, at {points[wrong][:3]}")


def _naive_log(density: Density, points: Floats) -> Floats:
    squares = ((points[:, None] - density.support) / density.bandwidth) ** 2
    return np.asarray(
        logsumexp(np.log(density.weights) - squares / 2, axis=1) - np.log(density.bandwidth * math.sqrt(2 * math.pi))
    )


def better_than_starts(case: Case, fit: Fit) -> None:
    """D reached is at least that of every start; on samples, that of every direction handed on."""
    if case.settings.get("selection") != "divergence":
        return
    for (v, _, divergence, _), search in zip(fit.directions(), fit.searches, strict=True):
        rows, problem, starts = search[:3]
        if rows.n_rows > 20_000:
            continue
        objective = problem.objective(rows)
        if (
            problem.smooth
        ):  # evaluated like the starts: bins depend on the length of a direction, and so do their errors
            divergence = objective.evaluate(objective.coordinates_of(v)).divergence
        # The paper's methods jump where rounding moves a point across an edge.
        accepted = 1e-9 if problem.smooth else 1e-6
        for start in starts:
            begun = objective.evaluate(objective.coordinates_of(start)).divergence
            # A direction is as good as its digits: classes √D apart magnify what rounding turns it by.
            allowed = accepted * (1 + abs(begun)) * (1 + 1e-7 * math.sqrt(abs(begun)))
            if problem.smooth and divergence < begun - allowed:
                allowed += max(_unsteadiness(objective, v), _unsteadiness(objective, start))
            _require(divergence >= begun - allowed, f"D = {divergence}, but {begun} at a start")


def _unsteadiness(objective: Objective, v: Floats) -> float:
    """How much D changes among directions that differ from v in the last digit of their components only.

    Offsets of 10⁹ widths magnify that digit. No search can end closer to the highest D than this.
    """
    digits = np.random.default_rng(0).choice([-1, 0, 1], size=(_NEIGHBOURS, len(v)))
    near = [objective.coordinates_of(v * (1 + np.finfo(float).eps * each)) for each in digits]
    return float(np.ptp([objective.evaluate(u).divergence for u in near]))


def divergence_is_its_own(case: Case, fit: Fit) -> None:
    """D as reported is D of the direction as reported, and the best of all runs if these are selected by D."""
    results = fit.model.results_ if len(fit.searches) > 1 else [fit.model.results_]
    for (v, formula, divergence, rows), runs in zip(fit.directions(), results, strict=True):
        if (
            rows.n_rows <= 20_000 and case.settings.get("selection") == "divergence"
        ):  # of several runs that end at the same optimum, any will do
            highest = max(run.divergence for run in runs)
            _require(best_run(runs).divergence <= divergence <= highest, "divergence_ is not that of the best run")
        if rows.n_rows > 5_000 or case.settings["method"] not in _FREE_OF_SCALE:
            continue
        again = _divergence(rows.X, rows.codes, v, rows.weights, case)
        allowed = 2 * _CERTIFIED + tolerance(rows.X, v, formula, divergence)
        _require(abs(again - divergence) <= allowed, f"divergence_ = {divergence}, but D(coef_) = {again}")


def saved_and_loaded(case: Case, fit: Fit) -> None:
    X, model = probes(case, fit), fit.model
    for name, other in (("JSON", from_json(to_json(model))), ("pickle", pickle.loads(pickle.dumps(model)))):
        for method in ("predict_proba", "decision_function"):
            same = np.array_equal(getattr(model, method)(X), getattr(other, method)(X))
            _require(same, f"{method} differs after {name}")


def row_order(case: Case, fit: Fit) -> None:
    order = np.random.default_rng(len(case.y)).permutation(len(case.y))
    if case.X.size <= _JOINED_NUMBERS and len(case.y) <= _ORDERED_ROWS:
        _same_bits(fit, fitted(case.with_rows(order)))
    else:
        _same_divergence(case, fit, case.with_rows(order), 1.0, 1e-10)


def repeats(case: Case, fit: Fit) -> None:
    """Rows that come several times equal rows of that weight."""
    times = np.random.default_rng(len(case.y)).integers(1, 4, size=len(case.y))
    several = replace(case.with_rows(np.repeat(np.arange(len(case.y)), times)), weights=None)
    weighted = replace(case, weights=times.astype(float))
    if several.X.size <= _JOINED_NUMBERS and len(case.y) <= _ORDERED_ROWS:
        _same_bits(fitted(weighted), fitted(several))


def common_scale(case: Case, fit: Fit) -> None:
    """All features times a number."""
    if case.settings["method"] in _FREE_OF_SCALE and case.form != "float32" and _small_enough(case.X, 1e5):
        _same_divergence(case, fit, replace(case, X=case.X * 1e5), 1.0, 1e-9)


def units(case: Case, fit: Fit) -> None:
    """Other units a feature: the divergence of the same projection is the same."""
    factors = 10 ** np.random.default_rng(len(case.y)).uniform(-5, 5, size=case.X.shape[1])
    if case.settings["method"] in _FREE_OF_SCALE and case.form != "float32" and _small_enough(case.X, 1e5):
        _same_divergence(case, fit, replace(case, X=case.X * factors), factors, 1e-9)


def translation(case: Case, fit: Fit) -> None:
    """A translation by as much as the data are wide."""
    if case.settings["method"] in _FREE_OF_SCALE and case.form != "float32":
        shift = np.ptp(case.X, axis=0) * np.random.default_rng(len(case.y)).normal(size=case.X.shape[1])
        _same_divergence(case, fit, replace(case, X=case.X + shift), 1.0, 1e-9)


def form(case: Case, fit: Fit) -> None:
    """X in another form in memory: the divergence of the same direction is the same."""
    if case.settings["method"] in _FREE_OF_SCALE:
        _same_divergence(case, fit, replace(case, form="columns"), 1.0, 1e-9)


def certificate(case: Case, fit: Fit) -> None:
    """The error of moment bins is within the certified one."""
    if len(case.y) > 5_000:
        return
    for v, formula, divergence, rows in fit.directions():
        allowed = _CERTIFIED + tolerance(rows.X, v, formula, divergence)
        found = _divergence(rows.X, rows.codes, v, rows.weights, case, "moments")
        exact = _divergence(rows.X, rows.codes, v, rows.weights, case, "exact")
        _require(abs(found - exact) <= allowed, f"moment bins: {found}, exactly {exact}, allowed {allowed}")


def feature_order(case: Case, fit: Fit) -> None:
    """Features in another order: the same model up to rounding, if the data are small."""
    if case.X.size > MOST_SORTED_NUMBERS:
        return
    order = np.random.default_rng(len(case.y)).permutation(case.X.shape[1])
    other = MELC(**case.settings).fit(FORMS[case.form](case.X[:, order]), case.y, case.weights)
    _same_up_to_the_search(case, fit, other, other.coef_[:, np.argsort(order)])


def label_swap(case: Case, fit: Fit) -> None:
    """The two classes numbered the other way."""
    if len(fit.model.classes_) == 2 and not isinstance(case.settings.get("priors"), list):
        other = MELC(**case.settings).fit(case.features(), case.y.max() + case.y.min() - case.y, case.weights)
        _same_up_to_the_search(case, fit, other, other.coef_)


def _same_up_to_the_search(case: Case, fit: Fit, other: MELC, directions: Floats) -> None:
    """Whether the direction of another fit has the same divergence, in problems that rounding does not decide.

    Fits take the same steps, which rounding moves a little; where the classes are far apart, or one has few rows, it
    may move them to another optimum. The methods of the paper jump. Elsewhere it is tried whether rounding alone has
    the same effect, on the first iteration and on the end: with narrow kernels, a solver can magnify it a thousand
    times in a few steps.
    """
    few = np.unique(case.y, return_counts=True)[1].min() < 3 * case.X.shape[1]
    if len(fit.model.classes_) > 2 or few or case.settings["method"] not in _FREE_OF_SCALE:
        return
    ((v, formula, divergence, _),) = fit.directions()
    far_apart = divergence > _FAR_APART or is_spike(formula)
    if far_apart or max(rounding(case.X, u, formula) for u in (v, *directions)) > 1e-9:
        return
    # Both with the shrinkage of the same sample: a fit of many rows has another one.
    before, found = (
        _divergence(case.features(), case.y == fit.model.classes_[1], each, case.weights, case)
        for each in (v, directions[0])
    )
    same = _is_about(found, before) or _rounding_moves_the_search(case, before, _begin_alike(fit.model, other))
    _require(same, f"D = {before} became {found}, {v} became {directions[0]}")


def _begin_alike(one: MELC, other: MELC) -> bool:
    """Whether the first iterations of all runs of two fits end at the same divergence, up to rounding."""
    pairs = zip(one.results_, other.results_, strict=True)
    return all(np.allclose(a.history[:1], b.history[:1], rtol=1e-8) for a, b in pairs)


def _is_about(found: float, before: float) -> bool:
    return abs(found - before) <= 1e-3 * (1 + abs(before))


def _rounding_moves_the_search(case: Case, before: float, begun_alike: bool) -> bool:
    """Whether fits end at another divergence when units of features change by some of their last digits.

    Unless other fits have ``begun_alike``, that must change where the first iterations end as well.
    """
    stored = FORMS["rows" if case.form == "float32" else case.form]  # such digits are beyond single precision
    steps = np.random.default_rng(0).integers(-4, 5, size=(_NEIGHBOURS // 4, case.X.shape[1]))
    first, ends_moved = None, False
    for factors in 1 + np.finfo(float).eps * steps:
        near = MELC(**case.settings).fit(stored(case.X * factors), case.y, case.weights)
        codes = case.y == near.classes_[1]
        end = _divergence(case.features(), codes, near.coef_[0] * factors, case.weights, case)
        ends_moved |= not _is_about(end, before)
        first = first or near
        begun_alike |= not _begin_alike(first, near)
        if ends_moved and begun_alike:
            return True
    return False


def missing_values(case: Case, fit: Fit) -> None:
    """NaN in any column, which had none in the fit, counts as its mean, in predictions and in every export."""
    if case.form in ("csr", "csc"):
        return
    rows = np.repeat(case.X[:1], case.X.shape[1] + 1, axis=0)
    np.fill_diagonal(rows, np.nan)
    rows[-1] = np.nan
    filled = np.where(np.isnan(rows), fit.model.feature_mean_, rows)
    for model in (fit.model, fitted_lines(case)):
        odds = model.decision_function(rows)
        _require(np.isfinite(odds).all(), f"decision_function of missing values gave {odds}")
        if case.form != "float32":
            again = model.decision_function(filled)
            same = np.allclose(odds, again, rtol=1e-6, atol=1e-6)
            _require(same or rounding_decides(model, filled), f"missing values gave {odds}, the means {again}")
        for fault in faults_of_exports(model, rows):
            raise Violation(fault)


def lines(case: Case, fit: Fit) -> None:
    """An additive model of the same data."""
    for fault in faults(case):
        raise Violation(fault)


def _small_enough(X: Floats, factor: float) -> bool:
    """Whether squares of the data, times a factor, are still within the range of floats."""
    sizes = np.abs(X[X != 0])
    return bool(np.all((sizes < 1e152 / factor) & (sizes > 1e-140 * factor)))


def _divergence(X: Any, codes: Any, v: Floats, weights: Any, case: Case, method: str | None = None) -> float:
    """D of a direction as a fit of these rows would see it."""
    hashes = RowHashes(X, weights, canonical=True)  # samples for shrinkage are of the same rows, whatever their units
    rows = MemoryRows(X, np.asarray(codes).astype(np.int8), weights, hashes=hashes)
    scale = Coordinates(rows).scale
    objective = Objective(
        rows,
        gamma=case.settings["gamma"],
        method=method or case.settings["method"],
        eps=_CERTIFIED,
        scale=scale,
        shrinkage=estimate_shrinkage(rows, case.settings.get("shrinkage"), scale),
    )
    return objective.evaluate(objective.coordinates_of(v)).divergence


def _same_divergence(case: Case, fit: Fit, other: Case, factors: float | Floats, accepted: float) -> None:
    """D of the directions found on the data and on the same data written otherwise."""
    if len(case.y) > 5_000:
        return
    labels = fit.model.classes_ if len(fit.searches) > 1 else fit.model.classes_[1:]
    codes = [case.y == label for label in labels]
    for (v, formula, _, _), each in zip(fit.directions(), codes, strict=True):
        error = max(rounding(case.X, v, formula), rounding(other.X, v / factors, formula))
        error = max(error, feature_rounding(case), feature_rounding(other))
        if error > 1e-6 or is_spike(formula):
            continue
        before = _divergence(case.features(), each, v, case.weights, case)
        after = _divergence(other.features(), each, v / factors, other.weights, case)
        allowed = (accepted + 100 * error) * (1 + abs(before))
        allowed += 2 * _CERTIFIED * (case.settings["method"] == "moments")
        _require(abs(after - before) <= allowed, f"D = {before} became {after}, allowed {allowed}")


def _same_bits(fit: Fit, other: Fit) -> None:
    a, b = fit.model, other.model
    _require(np.array_equal(a.divergence_, b.divergence_), f"D = {a.divergence_} became {b.divergence_}")
    _require(np.array_equal(a.coef_, b.coef_), f"coef_ {a.coef_} became {b.coef_}")
    for first, second in zip(a.lines_, b.lines_, strict=True):
        pairs = list(zip(first.curves, second.curves, strict=True))
        same = all(np.array_equal(one.knots, two.knots) for one, two in pairs)
        same &= all(np.array_equal(one.log_odds, two.log_odds) for one, two in pairs)
        _require(same, f"a curve with thresholds {first.thresholds} became one with {second.thresholds}")


INVARIANTS: dict[str, Callable[[Case, Fit], None]] = {
    "finite model": finite_model,
    "predictions agree": predictions_agree,
    "curves follow densities": curves_follow_densities,
    "better than starts": better_than_starts,
    "own divergence": divergence_is_its_own,
    "saved and loaded": saved_and_loaded,
    "row order": row_order,
    "repeats": repeats,
    "common scale": common_scale,
    "units": units,
    "translation": translation,
    "form": form,
    "certificate": certificate,
    "lines": lines,
    "feature order": feature_order,
    "label swap": label_swap,
    "missing values": missing_values,
}
