"""Learning one projection from labelled rows: starting directions, search, and the densities along the result.

The densities also choose ``gamma="auto"``, the factor on their bandwidth that predicts held-out rows best.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from melc._sklearn import one_blas_thread
from melc.arrays import Floats
from melc.data.dask.shared import SharedRounds
from melc.data.hashing import RowHashes
from melc.data.memory import MemoryRows
from melc.data.points import ClassSummaries
from melc.data.sample import draw_sample
from melc.data.source import Rows
from melc.fit.coordinates import Coordinates, estimate_shrinkage
from melc.fit.density import LEAST_VARIANCE, densities_along, density_variances
from melc.fit.evidence import Judge
from melc.fit.few_features import FewFeatures, handy_units
from melc.fit.grid_search import MOST_GRID_FEATURES, search_on_grid
from melc.fit.search import Problem, Settings, search
from melc.fit.solvers import BY_LIKELIHOOD, Result, best_run
from melc.fit.tabulation import DensityRatio, curve_of, picture_densities, tabulate
from melc.fit.validation import MOST_SORTED_NUMBERS, canonical
from melc.model.line import Line
from melc.objective.base import NO_SHRINKAGE, Shrunk, is_floored, shrunk_along, shrunk_variances

# Number of rows from which scales and starting directions are estimated, and those on which few features are chosen.
_SAMPLE_ROWS, _ROWS_FOR_FEW = 10_000, 2_000

# If Coordinates.variance_left is below this, the features of a class cancel each other and the class hardly varies. It
# is about one for random directions, and a hundredth or more for directions found on real data.
_CANCELLED = 1e-8

# Minimum bandwidth of a density, in units of the spacing of floats at the outermost projection.
_STEPS_PER_KERNEL = 8

_NO_UNITS: Floats = np.empty(0)
# Pooled widths of the kernels are used if the likelihood is higher with them by more than this, in nats per row.
_CLEARLY_LIKELIER = 0.01

# Largest bandwidth: its square is still a float.
_LARGEST_BANDWIDTH = 1e153

# Choices of ``gamma="auto"``.
TRIED_GAMMAS = (0.4, 0.65, 1.0, 1.5, 2.5)
# The number of folds, and the fraction of the starts that the search of a fold makes.
_N_FOLDS, _STARTS_PER_FOLD = 3, 1 / 3
# The most rows that are divided into folds, and the fewest rows of a class that can be divided.
_MOST_ROWS_DIVIDED, _FEWEST_DIVIDED = 20_000, 6


@dataclass(frozen=True)
class Projection:
    """A direction of length one, how it was found, and the line along it if there are two classes."""

    direction: Floats
    line: Line | None
    best: Result
    runs: list[Result]
    mean: Floats  # weighted means of the features
    spread: Floats  # standard deviations of the features, zero for those that are not used
    steps: Floats  # see Coordinates
    variance_left: float  # see Coordinates.variance_left
    floored: bool  # whether the variance of a class along the direction is below the floor
    units: Floats  # of the features, if their weights are whole numbers, otherwise empty

    @property
    def is_degenerate(self) -> bool:
        """Whether a class hardly varies along the direction, for example because its features cancel each other."""
        return self.floored or self.variance_left < _CANCELLED


# Called after each run, with a function that returns the projection of the best run so far. Returns True to stop.
ProjectionListener = Callable[[Result, Callable[[], Projection]], bool]


@one_blas_thread
def learn_projections(
    parts: list[Rows],
    settings: Settings,
    intercept: float | None,
    rng: np.random.RandomState,
    known: Floats | None,
    run_ended: ProjectionListener,
    coded: NDArray[np.bool_],
) -> list[Projection]:
    """Return one projection for each part: rows in which one class has code 1 and the others code 0.

    ``intercept`` is the log ratio of the priors of two classes. With None, no lines are made along the directions.
    Parts in Dask collections are solved in parallel, which saves rounds over the cluster. ``known``, of shape
    (n_parts, d), are directions to start from instead of new ones. ``coded``, of shape (d,), tells which columns are
    categories or ranks.
    """
    rngs = [rng] if len(parts) == 1 else same_for_all(parts, rng)

    def learn(k: int, run_ended: ProjectionListener) -> Projection:
        start = None if known is None else known[k]
        with contextlib.closing(_sorted_part(parts, k)) as rows:
            return learn_projection(rows, settings, rngs[k], start, run_ended, intercept, coded)

    if len(parts) == 1 or not parts[0].distributed:
        return [learn(k, run_ended) for k in range(len(parts))]
    rounds = SharedRounds(parts)

    def ended(run: Result, projection: Callable[[], Projection]) -> bool:
        rounds.check()
        return run_ended(run, projection)

    return rounds.solve_all(lambda k: learn(k, ended))


def learn_projection(
    rows: Rows,
    settings: Settings,
    rng: np.random.RandomState,
    known: Floats | None = None,
    run_ended: ProjectionListener = lambda run, projection: False,
    intercept: float | None = None,
    coded: NDArray[np.bool_] | None = None,
) -> Projection:
    """Return the best direction for two classes and, given an intercept, the line along it.

    The search starts from ``known``, of shape (d,), if it is given, otherwise from ``settings.n_init`` directions.
    ``intercept`` is the log ratio of the priors; it says where the decision changes. ``coded`` tells which columns are
    categories or ranks, which have no units.
    """
    sample = draw_sample(rows, _SAMPLE_ROWS, rng)
    coordinates = Coordinates(sample, sample.n_rows == rows.n_rows)
    _check_width(settings, coordinates)
    shrinkage = estimate_shrinkage(rows, settings.shrinkage, coordinates.scale)
    # With shrinkage the divergence chooses: the likelihood does not take the shrunk widths of the kernels into account.
    by_likelihood = settings.selection == "likelihood" and shrinkage is None
    judge = Judge(coordinates, settings.gamma) if by_likelihood else None
    simple = settings.max_features is not None or settings.whole_weights is not None
    finished: list[Result] = []

    def projection(best: Result, runs: list[Result], units: Floats = _NO_UNITS) -> Projection:
        mean, spread, direction = coordinates.mean, coordinates.finite_scale, best.direction
        if direction[np.argmax(np.abs(direction) * spread)] < 0:
            direction = -direction  # the feature that contributes most has a positive weight
        summary = rows.summarise(direction)
        shrunk = shrunk_along(shrinkage, direction)
        line = None
        if intercept is not None:
            formula = density_ratio(rows, settings, shrunk, summary, direction, sample)
            if simple and settings.bandwidth == "robust":
                pooled = density_ratio(rows, replace(settings, bandwidth="pooled"), shrunk, summary, direction, sample)
                formula = _likelier(formula, pooled, sample, direction)
            line = replace(_line_along(rows, formula, direction, spread, intercept), units=units)
        left = coordinates.variance_left(direction, shrunk_variances(summary.spread, shrunk))
        floored = is_floored(summary.spread, shrunk)
        return Projection(direction, line, best, runs, mean, spread, coordinates.steps, left, floored, units)

    def after_run(run: Result) -> bool:
        finished.append(run)
        return run_ended(run, lambda: projection(best_run(finished), finished))

    problem = Problem(settings, coordinates, shrinkage, judge)
    if not simple:
        return projection(*search_directions(rows, problem, rng, known, after_run))
    best, units = _search_simple_direction(rows, problem, rng, known, coded)
    after_run(best)
    return projection(best, [best], units)


def _search_simple_direction(
    rows: Rows,
    problem: Problem,
    rng: np.random.RandomState,
    known: Floats | None,
    coded: NDArray[np.bool_] | None,
) -> tuple[Result, Floats]:
    """Return the best direction of few features, or with whole-number weights, and the units of the features.

    The direction of all features is searched as usual, and rounded.
    """
    settings, coordinates = problem.settings, problem.coordinates
    most = min(settings.max_features or rows.n_features, rows.n_features)
    few = FewFeatures(draw_sample(coordinates.sample, _ROWS_FOR_FEW, rng), problem, most)
    best, _ = search_directions(rows, problem, rng, known)
    direction, algorithm = best.direction, best.algorithm
    if most < rows.n_features:
        direction, algorithm = few.best_direction([direction]), "exchange of single features"
    units = _NO_UNITS
    if settings.whole_weights is not None:
        units = handy_units(coordinates, coded, direction, settings.whole_weights)
        direction = few.whole_direction(direction, units, settings.whole_weights)
    return _evaluated(direction, rows, problem, "converged: no exchange is better", algorithm), units


def _check_width(settings: Settings, coordinates: Coordinates) -> None:
    """Raise an error if the square of a bandwidth may be beyond the range of floats."""
    fixed = 0.0 if isinstance(settings.bandwidth, str) else float(settings.bandwidth)
    largest = max(float(np.linalg.norm(coordinates.finite_scale)), fixed)
    if settings.gamma * largest > _LARGEST_BANDWIDTH:
        raise ValueError(
            f"gamma={settings.gamma:g} times a width of {largest:.3g} is beyond the range of floating-point numbers "
            "when it is squared. Use a smaller gamma or bandwidth, or divide the features by their standard deviations."
        )


def search_directions(
    rows: Rows,
    problem: Problem,
    rng: np.random.RandomState,
    known: Floats | None = None,
    run_ended: Callable[[Result], bool] = lambda run: False,
) -> tuple[Result, list[Result]]:
    """Return the best run, and the runs from all starts: on a grid where that is possible, otherwise by the solver.

    If the problem has a judge, the best may also be a linear direction.
    """
    settings, coordinates = problem.settings, problem.coordinates
    centre, sample = coordinates.far_centre, coordinates.sample
    with contextlib.closing(rows.around(centre)) if centre is not None else contextlib.nullcontext(rows) as near:
        dense = not sparse.issparse(sample.X) and sample.n_features <= MOST_GRID_FEATURES
        if known is None and problem.shrinkage is None and settings.has_grid and dense:
            best, runs = search_on_grid(near, problem, settings.n_init, rng, run_ended)
        else:
            starts = [known] if known is not None else coordinates.starting_directions(settings.n_init, rng)
            best, runs = search(near, problem, starts, rng, run_ended)
        return best if problem.judge is None else _or_linear(best, problem.judge, near, problem), runs


def _or_linear(best: Result, judge: Judge, rows: Rows, problem: Problem) -> Result:
    """Return the best run, or a linear direction with its divergence if the judge prefers it."""
    directions = [best.direction, *judge.linear_directions()]
    chosen = judge.best(directions)
    if chosen == 0:
        return best
    return _evaluated(directions[chosen], rows, problem, BY_LIKELIHOOD, "none: a linear direction")


def _evaluated(direction: Floats, rows: Rows, problem: Problem, reason: str, algorithm: str) -> Result:
    """Return a direction that no solver has found, with its divergence."""
    objective = problem.objective(rows)
    evaluation = objective.evaluate(objective.coordinates_of(direction))
    return Result(
        direction=direction,
        divergence=evaluation.divergence,
        norm=1.0,
        n_iter=0,
        n_evaluations=1,
        n_exponentials=evaluation.n_exponentials,
        converged=True,
        reason=reason,
        history=(),
        algorithm=algorithm,
    )


def _line_along(rows: Rows, formula: DensityRatio, direction: Floats, spread: Floats, intercept: float) -> Line:
    """Return the line along a direction, with the curve of a formula."""
    table = tabulate(formula)

    def count(thresholds: Floats) -> Floats:
        return rows.count(direction, thresholds)

    curve = curve_of(table, intercept, count)
    added = [curve.at(density.support) for density in formula.densities]
    weights = [0.5 * density.weights for density in formula.densities]
    mean = sum(float(w @ g) for w, g in zip(weights, added, strict=True))
    importance = sum(float(w @ np.abs(g - mean)) for w, g in zip(weights, added, strict=True))
    contributions = np.abs(direction) * spread
    places, densities = picture_densities(table)
    return Line(
        direction=direction,
        curves=(curve,),
        importance=importance,
        feature_importances=importance * contributions / contributions.sum(),
        counts=count(curve.plus(intercept).thresholds),
        places=places,
        densities=densities,
        offsets=np.array([intercept]),
    )


def _likelier(usual: DensityRatio, pooled: DensityRatio, rows: MemoryRows, direction: Floats) -> DensityRatio:
    """Return the usual formula, or the one with pooled widths if its likelihood is clearly higher.

    If projections have few distinct values, class variances may say nothing about the distances between these.
    """
    losses = [_log_loss(formula, rows, direction) for formula in (usual, pooled)]
    return pooled if losses[1] < losses[0] - _CLEARLY_LIKELIER else usual


def _log_loss(formula: DensityRatio, rows: MemoryRows, direction: Floats) -> float:
    """Return the mean log loss of a formula on some rows, in nats; both classes count equally.

    It is exactly the same if the classes are exchanged.
    """
    log_odds, weights = formula.log_odds(rows.project(direction)), rows.all_weights()
    losses = np.logaddexp(0, np.where(rows.codes == 1, -log_odds, log_odds))
    return float(sum(0.5 * np.average(losses[each], weights=weights[each]) for each in map(rows.members, (0, 1))))


def density_ratio(
    rows: Rows, settings: Settings, shrunk: Shrunk, summary: ClassSummaries, direction: Floats, sample: MemoryRows
) -> DensityRatio:
    """Return the formula of the curve along a direction of shape (d,) with the given summary."""
    # The bandwidth must not be below the spacing of floats, or a kernel could fall between two neighbouring floats.
    least = max(LEAST_VARIANCE, (_STEPS_PER_KERNEL * float(np.spacing(summary.largest))) ** 2)
    variances = density_variances(settings.bandwidth, settings.gamma, summary.spread, shrunk, sample, direction)
    densities = densities_along(rows, direction, summary, (max(variances[0], least), max(variances[1], least)))
    first, second = rows.total_weights
    return DensityRatio(densities, (first, second))


def same_for_all(parts: Sequence[Rows], rng: np.random.RandomState) -> list[np.random.RandomState]:
    """Return a generator for each part, all of the same seed: the order of the classes does not matter then."""
    seed = rng.randint(2**31 - 1)
    return [np.random.RandomState(seed) for _ in parts]


def _sorted_part(parts: Sequence[Rows], k: int) -> Rows:
    """Return a part; of several small ones in memory, with all rows of its two classes in the order of their contents.

    Rows are sorted by class at first. Samples and folds are drawn by the place of a row, and so the order of the
    classes would decide which rows they have.
    """
    rows = parts[k]
    many = rows.n_rows * rows.n_features > MOST_SORTED_NUMBERS
    if len(parts) == 1 or many or rows.distributed:
        return rows
    own = rows.in_memory()
    X, codes, weights = canonical(own.X, own.codes, own.weights)
    return MemoryRows(X, codes, weights, own.n_threads, hashes=RowHashes(X, weights, canonical=True))


@one_blas_thread
def choose_gamma(parts: list[Rows], settings: Settings, rng: np.random.RandomState) -> float:
    """Return the gamma of the lowest log loss over three folds of the rows of each part, or 1 if rows are too few.

    The direction of a fold is searched once, with gamma one and fewer starts, and serves all widths.
    """
    losses = np.zeros(len(TRIED_GAMMAS))
    searched = replace(settings, gamma=1.0, n_init=max(1, round(_STARTS_PER_FOLD * settings.n_init)))
    for part, own in enumerate(same_for_all(parts, rng)):
        sample = draw_sample(_sorted_part(parts, part), _MOST_ROWS_DIVIDED, own)
        if min(sample.counts) < _FEWEST_DIVIDED:
            return 1.0
        for kept, held in _folds(sample, own):
            direction = learn_projection(kept, searched, own).direction
            summary = kept.summarise(direction)
            for k, gamma in enumerate(TRIED_GAMMAS):
                tried = replace(settings, gamma=gamma)
                formula = density_ratio(kept, tried, NO_SHRINKAGE, summary, direction, kept)
                losses[k] += _log_loss(formula, held, direction)
    return TRIED_GAMMAS[int(np.argmin(losses))]


def _folds(rows: MemoryRows, rng: np.random.RandomState) -> Iterator[tuple[MemoryRows, MemoryRows]]:
    """Yield the rows outside and inside each fold. The folds divide the rows of both classes.

    Both classes are divided with the same seed, so that nothing depends on which of them is the first.
    """
    seed = rng.randint(2**31)
    fold_of = [np.random.RandomState(seed).permutation(np.arange(count) % _N_FOLDS) for count in rows.counts]
    for fold in range(_N_FOLDS):
        first, second = (np.flatnonzero(each != fold) for each in fold_of)
        held_first, held_second = (np.flatnonzero(each == fold) for each in fold_of)
        yield rows.take((first, second)), rows.take((held_first, held_second))
