"""The lines of an additive model, added one at a time; after each, all curves are fitted again together.

The search (:mod:`melc.fit.candidates`) proposes the direction that adds most to the likelihood of the lines so far; for
the first line it also considers directions of large divergence. With the new line all curves are fitted together
(:mod:`melc.fit.curves`). The line stays if the total log-likelihood, with every row left out of the curves, rises by at
least one nat. With more than two classes, each class proposes a direction against the rest, and the lines of a round
are judged together.

All this is done on a sample, if there are many rows. Only the last fit of the curves is to all rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from melc._sklearn import one_blas_thread
from melc.arrays import Floats
from melc.data.memory import MemoryRows
from melc.data.sample import draw_sample
from melc.fit.candidates import WEIGHT, Candidates
from melc.fit.columns import Design
from melc.fit.coordinates import Coordinates
from melc.fit.evidence import Prospect, Standing
from melc.fit.grid_search import Mapped, threads
from melc.fit.intake import Labelled
from melc.fit.joint_fit import CurvesAlong, JointFit, log_odds_against_rest
from melc.fit.projection import same_for_all, search_directions
from melc.fit.search import Problem, Settings
from melc.model.line import Line

# Rows on which lines are judged, and rows among these on which directions are searched; fewer, if there would be more
# than this many numbers (columns times classes times rows).
_JUDGED_ROWS, _SEARCHED_ROWS, _SEARCHED_NUMBERS = 10_000, 4_000, 10_000_000
# The log-likelihood that a line must add, in nats.
_LEAST_GAIN = 1.0
# Rows from which threads are worth starting.
_WORTH_THREADS = 3_000
# Starts of the search for the direction of the largest divergence, which the first line may take.
_STARTS = 10
# Two directions whose absolute cosine is larger are the same.
_SAME_COSINE = 0.9999
# Of the directions that several classes propose, those that add at least this fraction of the best are taken.
_WORTHWHILE = 0.2
# Where missing values are put to set them apart from known values, in standard deviations of the known ones.
_MISSING_AT = 4.0
# The most minor lines: of the features that add most to the likelihood.
_MOST_MINOR = 100

# Called with the number of features of a line and the log loss with it; returns whether to stop.
Listener = Callable[[int, float], bool]


@dataclass(frozen=True)
class Proposal:
    """A direction, the features' shares in it, both of shape (d,), and what it seems to add to the likelihood."""

    direction: Floats
    shares: Floats
    gain: float


@dataclass(frozen=True)
class Plan:
    """The settings of a pursuit: parameters of :class:`melc.AdditiveMELC` with the same names.

    ``signs``, of shape (d,), is 1 for features along which the log-odds must not fall, −1 where they must not rise.
    """

    max_lines: int
    features_per_line: int | None
    full_lines: str
    gamma: float
    other_features: bool
    signs: Floats


@dataclass(frozen=True)
class AdditiveFit:
    """The lines, the intercepts, and the weighted means and standard deviations of the features, of shape (d,).

    ``steps`` are these deviations in steps of rounding: see :class:`Coordinates`.
    """

    lines: list[Line]
    intercepts: Floats
    mean: Floats
    spread: Floats
    steps: Floats


@one_blas_thread
def pursue(
    data: Labelled, plan: Plan, log_priors: Floats, rng: np.random.RandomState, line_ended: Listener
) -> AdditiveFit:
    """Return the additive model of labelled rows; ``log_priors`` are logarithms of prior ratios, shape (n_blocks,)."""
    rows, n_classes, n_columns = data.rows, len(data.classes), data.design.n_columns
    most = max(1_000, _SEARCHED_NUMBERS // (n_columns * n_classes))
    sample = draw_sample(rows, min(_JUDGED_ROWS, most), rng)
    searched = draw_sample(sample, min(_SEARCHED_ROWS, most), rng)
    quantities = searched.first_columns(n_columns)
    parts = [quantities] if n_classes == 2 else [quantities.against_rest(k) for k in range(n_classes)]
    joint = JointFit(rows, sample, n_classes, plan.gamma, data.columns, data.design)
    with threads(sample.n_threads if searched.n_rows >= _WORTH_THREADS else 1) as mapped:
        missing_apart = _with_missing_apart(searched, data.design)
        own = same_for_all(parts, rng)
        searches = [_Search(part, plan, each, mapped, missing_apart) for part, each in zip(parts, own, strict=True)]
        found = _add_lines(joint, searches, searched, plan, line_ended)
        if plan.other_features:
            found = _with_minor_lines(joint, found, searches[0])
    lines, intercepts = joint.lines(joint.fitted_to_all_rows(found), log_priors)
    judged = sample.first_columns(n_columns)
    coordinates = Coordinates(judged if n_classes == 2 else judged.against_rest(0), sample.n_rows == rows.n_rows)
    return AdditiveFit(lines, intercepts, coordinates.mean, coordinates.finite_scale, coordinates.steps)


def _with_missing_apart(rows: MemoryRows, design: Design) -> dict[int, Floats]:
    """Return the columns with missing values, each of shape (n,) and scaled, with missing values above all others.

    In the search for directions a missing value is replaced by a number, which does not show that it is missing.
    """
    found = {}
    for k, axis in enumerate(design.axes):
        z = rows.X[:, design.n_columns + k]
        known = z <= axis.highest
        if not axis.n_levels and known.any() and not known.all():
            middle, spread = float(z[known].mean()), float(z[known].std()) or 1.0
            scaled = np.clip((z - middle) / spread, 1 - _MISSING_AT, _MISSING_AT - 1)
            found[axis.column] = np.where(known, scaled, _MISSING_AT)
    return found


def _add_lines(
    joint: JointFit, searches: "Sequence[_Search]", searched: MemoryRows, plan: Plan, line_ended: Listener
) -> CurvesAlong:
    """Return fitted lines, added as long as they raise the likelihood: at least one, at most ``max_lines``."""
    found, likelihood, round_number = joint.without_lines(), -np.inf, 0
    while len(found) < plan.max_lines:
        proposals = _worthwhile([search.best(round_number) for search in searches])
        trial = _with_proposals(joint, found, proposals, plan)
        if len(trial) == len(found):
            break
        trial = joint.fitted(trial)
        scores = joint.left_out(trial)
        reached = joint.likelihood(scores)
        if round_number > 0 and reached - likelihood < _LEAST_GAIN * (len(trial) - len(found)):
            break
        found, likelihood, round_number = trial, reached, round_number + 1
        for block, search in enumerate(searches):
            known = scores if searched.n_rows == joint.sample.n_rows else joint.scores_of(found, searched)
            search.standing.log_odds = log_odds_against_rest(known, block)
        if line_ended(int(np.count_nonzero(found.directions[-1])), -likelihood / float(joint.balanced_weights.sum())):
            break
    return found


def _with_proposals(joint: JointFit, found: CurvesAlong, proposals: "list[Proposal]", plan: Plan) -> CurvesAlong:
    """Return the lines and the proposed new ones, up to ``max_lines``; the curves of these are not fitted yet."""
    for proposal in proposals:
        if len(found) < plan.max_lines and _is_new(proposal, found):
            sign = _sign_of(proposal.direction, plan.signs)
            found = joint.with_line(found, proposal.direction, proposal.shares, sign)
    return found


def _is_new(proposal: Proposal, found: CurvesAlong) -> bool:
    """Return whether no line has this direction. Shares are compared, because weights depend on units."""
    direction, others = np.sign(proposal.direction) * proposal.shares, np.sign(found.directions) * found.shares
    cosines = others @ direction / (np.linalg.norm(others, axis=1) * np.linalg.norm(direction))
    return not np.any(np.abs(cosines) > _SAME_COSINE)


def _worthwhile(proposals: "list[Proposal]") -> "list[Proposal]":
    """Return the proposals that would add most, the best first."""
    ordered = sorted(proposals, key=lambda proposal: -proposal.gain)
    # The best is kept in any case: on pure noise, every direction seems to lower the likelihood.
    return [each for k, each in enumerate(ordered) if k == 0 or each.gain >= _WORTHWHILE * ordered[0].gain]


def _with_minor_lines(joint: JointFit, found: CurvesAlong, search: "_Search") -> CurvesAlong:
    """Return the lines and a minor one for each feature that has no line of its own."""
    alone = found.directions[np.count_nonzero(found.directions, axis=1) == 1].any(axis=0)
    for feature in search.candidates.best_features(search.standing.prospect(), _MOST_MINOR):
        if not alone[feature]:
            direction = np.zeros(joint.design.n_columns)
            direction[feature] = 1.0
            sign = _sign_of(direction, search.plan.signs)
            found = joint.with_line(found, direction, direction, sign, minor=True)
    return joint.fitted(found)


def _sign_of(direction: Floats, signs: Floats) -> int:
    """Return the sign of the curve along a direction: only lines of a single feature are monotone."""
    features = np.flatnonzero(direction)
    return int(signs[features[0]]) if len(features) == 1 else 0


class _Search:
    """The search for a further direction of one class against the others, coded 1 and 0."""

    def __init__(
        self, rows: MemoryRows, plan: Plan, rng: np.random.RandomState, mapped: Mapped, missing_apart: dict[int, Floats]
    ) -> None:
        self.rows, self.plan, self.rng, self.missing_apart = rows, plan, rng, missing_apart
        self.candidates = Candidates(rows, mapped, plan.signs != 0)
        self.standing = Standing(rows.codes, rows.weights, plan.gamma)

    def best(self, k: int) -> Proposal:
        """Return the best direction for round k."""
        plan, prospect, found = self.plan, self.standing.prospect(), []
        if plan.features_per_line is not None or not len(self.candidates.combined):
            find = self.candidates.pair if plan.features_per_line == 2 else self.candidates.single
            found.append(find(prospect))
        full = plan.features_per_line is None or plan.full_lines == "auto" or (plan.full_lines == "first" and k == 0)
        if full and len(self.candidates.combined):
            found.append(self.candidates.full(prospect, self._divergent() if k == 0 else ()))
        best = max(found, key=lambda candidate: candidate.likelihood)
        proposal = Proposal(*self.candidates.in_units(best.direction), best.likelihood - self.standing.likelihood)
        return proposal if plan.features_per_line is None else self._or_with_missing(proposal, prospect)

    def _or_with_missing(self, proposal: Proposal, prospect: Prospect) -> Proposal:
        """Return the proposal, or a single column if this adds more once its missing values are set apart."""
        for column, z in self.missing_apart.items():
            gain = prospect.likelihood(z) - WEIGHT / prospect.n_rows - self.standing.likelihood
            if gain > proposal.gain:
                direction = np.zeros(self.candidates.n_features)
                direction[column] = 1.0
                proposal = Proposal(direction, direction, gain)
        return proposal

    def _divergent(self) -> list[Floats]:
        """Return directions of large divergence, as :class:`melc.MELC` finds them, for scaled features."""
        candidates = self.candidates
        settings = Settings(self.plan.gamma, n_init=_STARTS, max_iter=100, tol=1e-4)
        best, runs = search_directions(candidates.rows, Problem(settings, candidates.coordinates), self.rng)
        return [candidates.scaled(run.direction) for run in {id(run): run for run in [best, *runs]}.values()]
