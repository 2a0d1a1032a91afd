"""Tests of the claims of the paper's evaluation: the claim, the verdict and the measured numbers.

The docstring of each function says when its claim counts as true. The numbers are part of the verdict, so that readers
can apply their own limits. "partly" means that there is such a tendency, but weaker than claimed.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from melc.paper import results as means
from melc.paper.results import APPROXIMATIONS, Results, paper_table
from melc.paper.tables import NAMES, SOLVER_NAMES, TOLERATED_DIFFERENCE

HOLDS, PARTLY, FAILS, NOT_RUN = "holds", "partly", "does not hold", "not run"
_ONE_GAMMA = "only one γ was run"


@dataclass(frozen=True)
class TestedClaim:
    """A claim, close to the paper's wording, the verdict, and the numbers it is based on."""

    claim: str
    verdict: str
    measured: str


def all_verdicts(results: Results) -> list[TestedClaim]:
    """Return the verdicts on all claims, in the order of the paper."""
    tests: tuple[Callable[[Results], TestedClaim], ...] = (
        table1_agrees,
        discard_halves_pairs,
        bin_reduces_pairs,
        ratio_depends_on_data_not_solver,
        ratio_depends_on_gamma_and_eps,
        accuracy_changes_little,
        small_gamma_is_worst,
        accuracy_often_increases,
        approximation_needs_fewer_iterations,
        penalty_keeps_norm,
        penalty_saves_evaluations,
    )
    return [test(results) for test in tests]


def table1_agrees(results: Results) -> TestedClaim:
    """Holds if the mean absolute difference from the paper's Table 1 is at most 0.06."""
    claim = "Table 1: the mean ratios of exp calls"
    difference = (means.ratios(results) - paper_table("exp_call_ratio")).dropna().abs()
    mean, (data_set, solver, method) = float(difference.mean()), difference.idxmax()
    n_within = int((difference <= TOLERATED_DIFFERENCE).sum())
    verdict = HOLDS if mean <= TOLERATED_DIFFERENCE else FAILS
    measured = (
        f"mean absolute difference {mean:.3f} over {len(difference)} entries; largest {difference.max():.3f} "
        f"({_words((data_set, method, solver))}); {n_within} within {TOLERATED_DIFFERENCE}"
    )
    return TestedClaim(claim, verdict, measured)


def discard_halves_pairs(results: Results) -> TestedClaim:
    """Holds if the mean ratio is in [0.4, 0.6] and at least 8 in 10 data sets are in [0.35, 0.65]."""
    ratio = _ratio_by_data_set(results, "discard")
    near_half = ratio.between(0.35, 0.65)
    in_middle = 0.4 <= ratio.mean() <= 0.6
    verdict = HOLDS if in_middle and near_half.mean() >= 0.8 else PARTLY if in_middle else FAILS
    return TestedClaim(
        "Sorting and discarding roughly halves the number of analysed pairs",
        verdict,
        f"mean ratio {ratio.mean():.2f}, from {ratio.min():.2f} ({ratio.idxmin()}) to {ratio.max():.2f} "
        f"({ratio.idxmax()}); {int(near_half.sum())} of {len(ratio)} data sets in 0.35–0.65",
    )


def bin_reduces_pairs(results: Results) -> TestedClaim:
    """Holds if every data set's mean ratio is between 1/10 and 1/3, rounded as the paper's (0.095–0.345)."""
    ratio = _ratio_by_data_set(results, "bin")
    inside = ratio.between(0.095, 0.345)
    verdict = HOLDS if inside.all() else PARTLY if inside.mean() >= 0.5 else FAILS
    return TestedClaim(
        "Binning reduces it 3–10 times",
        verdict,
        f"reduction from {1 / ratio.max():.1f} times ({ratio.idxmax()}) to {1 / ratio.min():.1f} times "
        f"({ratio.idxmin()}); {int(inside.sum())} of {len(ratio)} data sets in 3–10",
    )


def ratio_depends_on_data_not_solver(results: Results) -> TestedClaim:
    """Holds if the mean difference between the solvers is below a quarter of the standard deviation over data sets."""
    claim = "The strength of reduction depends on the data set, not on the solver"
    ratio = means.ratios(results).unstack("solver")
    if ratio.index.get_level_values("data_set").nunique() == 1:
        return TestedClaim(claim, NOT_RUN, "only one data set was run")
    details, shares = [], []
    for method in APPROXIMATIONS:
        own = ratio.xs(method, level="method")
        between_solvers = (own["cg"] - own["lbfgs"]).abs()
        between_sets = own.mean(axis=1).std()
        shares.append(between_solvers.mean() / between_sets if between_sets > 0 else float("inf"))
        details.append(
            f"{NAMES[method]}: CG and L-BFGS-B differ by {between_solvers.mean():.3f} on average (at most "
            f"{between_solvers.max():.3f}, {between_solvers.idxmax()}), data sets by {between_sets:.3f} (SD)"
        )
    verdict = HOLDS if max(shares) < 0.25 else PARTLY if max(shares) < 1 else FAILS
    return TestedClaim(claim, verdict, "; ".join(details))


def ratio_depends_on_gamma_and_eps(results: Results) -> TestedClaim:
    """Holds if, for both methods, the ratio decreases with ε for every γ and its mean increases with γ.

    The paper says: "with increasing variance (which is proportional to γ²) the reduction strength decreases". For
    binning, Theorem 2 implies the opposite: a larger variance means wider bins.
    """
    claim = "The reduction depends heavily on γ and ε, and weakens as the variance (γ²) grows"
    runs = results.grid_runs()
    if runs["gamma"].nunique() == 1:
        return TestedClaim(claim, NOT_RUN, _ONE_GAMMA)
    falls_with_eps, details = [], []
    grows_with_gamma = {}
    for method in APPROXIMATIONS:
        mean = runs[runs["method"] == method].groupby(["eps", "gamma"])["ratio"].mean().unstack("gamma")
        falls_with_eps.append(bool((mean.diff().dropna() <= 1e-12).all(axis=None)))
        by_gamma = mean.mean()
        grows_with_gamma[method] = bool(by_gamma.is_monotonic_increasing)
        details.append(
            f"{NAMES[method]}: from {by_gamma.iloc[0]:.2f} at γ = {by_gamma.index[0]:g} to {by_gamma.iloc[-1]:.2f} "
            f"at γ = {by_gamma.index[-1]:g}, from {mean.iloc[0].mean():.2f} at ε = {mean.index[0]:g} to "
            f"{mean.iloc[-1].mean():.2f} at ε = {mean.index[-1]:g}"
        )
    everything = all(falls_with_eps) and all(grows_with_gamma.values())
    something = all(falls_with_eps) or any(grows_with_gamma.values())
    verdict = HOLDS if everything else PARTLY if something else FAILS
    return TestedClaim(claim, verdict, "; ".join(details))


def accuracy_changes_little(results: Results) -> TestedClaim:
    """Holds if the BAC changes by at most 0.03 in 90 % of the entries of the heat maps, partly if in 75 %."""
    losses = means.accuracy_losses(results)
    losses["change"] = losses["loss"].abs()
    within = float((losses["change"] <= 0.03).mean())
    details = "; ".join(_changes(method, losses[losses["method"] == method]) for method in APPROXIMATIONS)
    verdict = HOLDS if within >= 0.9 else PARTLY if within >= 0.75 else FAILS
    return TestedClaim("BAC changes by 0.5–3 % in general, up to few isolated cases", verdict, details)


def _changes(method: str, losses: pd.DataFrame) -> str:
    change, worst = losses["change"], losses.loc[losses["change"].idxmax()]
    return (
        f"{NAMES[method]}: median {change.median():.1%}, 90th percentile {change.quantile(0.9):.1%}, "
        f"{float((change <= 0.03).mean()):.0%} within 3 %, largest {worst['change']:.1%} "
        f"({worst['data_set']}, γ = {worst['gamma']:g}, ε = {worst['eps']:g})"
    )


def small_gamma_is_worst(results: Results) -> TestedClaim:
    """Holds if the mean change at the smallest γ is 1.5 times that at the others or more, and sonar or splice lose 8 %.

    Partly if the mean change is larger at the smallest γ.
    """
    claim = "For small γ the changes are larger, up to 10 % for sonar and splice"
    losses = means.accuracy_losses(results)
    if losses["gamma"].nunique() == 1:
        return TestedClaim(claim, NOT_RUN, _ONE_GAMMA)
    smallest = losses["gamma"].min()
    at_smallest = losses[losses["gamma"] == smallest]
    small = at_smallest["loss"].abs().mean()
    other = losses.loc[losses["gamma"] > smallest, "loss"].abs().mean()
    named = at_smallest.loc[at_smallest["data_set"].isin(["sonar", "splice"]), "loss"].max()
    verdict = HOLDS if small >= 1.5 * other and named >= 0.08 else PARTLY if small > other else FAILS
    worst = at_smallest.loc[at_smallest["loss"].idxmax()]
    return TestedClaim(
        claim,
        verdict,
        f"mean change in either direction {small:.1%} at γ = {smallest:g} against {other:.1%} at the others; largest "
        f"loss at γ = {smallest:g}: {worst['loss']:.1%} ({worst['data_set']}, {NAMES[worst['method']]}, "
        f"ε = {worst['eps']:g}), {'none measured' if pd.isna(named) else f'{named:.1%}'} on sonar and splice",
    )


def accuracy_often_increases(results: Results) -> TestedClaim:
    """Holds if BAC increases in at least a quarter of the entries of the heat maps."""
    loss = means.accuracy_losses(results)["loss"]
    increased, decreased = float((loss < 0).mean()), float((loss > 0).mean())
    verdict = HOLDS if increased >= 0.25 else FAILS
    measured = f"{increased:.0%} of entries increase, {decreased:.0%} decrease; mean change {-loss.mean():+.2%}"
    return TestedClaim("For many experiments BAC increases under approximation", verdict, measured)


def approximation_needs_fewer_iterations(results: Results) -> TestedClaim:
    """Holds if, for both methods, it does so for at least 9 in 10 pairs of data set and solver."""
    count = means.iterations(results).unstack("method")
    shares, details = [], []
    for method in APPROXIMATIONS:
        relative = (count[method] / count["exact"]).dropna()
        shares.append(float((relative < 1).mean()))
        details.append(
            f"{NAMES[method]}: fewer in {int((relative < 1).sum())} of {len(relative)} cases, "
            f"median {relative.median():.2f} times the exact method's"
        )
    verdict = HOLDS if min(shares) >= 0.9 else PARTLY if max(shares) >= 0.6 else FAILS
    stalled = means.endings(results)["stalled"].groupby("method").mean()
    ends = ", ".join(f"{NAMES[method]} {stalled[method]:.0%}" for method in (*APPROXIMATIONS, "exact"))
    details.append(f"runs that end because the line search finds no better point: {ends}")
    return TestedClaim("Both approximations need fewer iterations", verdict, "; ".join(details))


def penalty_keeps_norm(results: Results) -> TestedClaim:
    """Holds if every norm is within 0.05 of 1 with the penalty, and most norms exceed 1000 without it.

    Partly if only the first is true.
    """
    claim = "The penalty keeps the norm near 1; without it, it grows beyond 1000 (sonar, german)"
    runs = results.norm_runs()
    if runs.empty:
        return TestedClaim(claim, NOT_RUN, "no runs without the penalty")
    held = runs.loc[runs["penalty"], "norm"]
    free = runs[~runs["penalty"]]
    near_one = bool(((held - 1).abs() <= 0.05).all())
    mostly_beyond = float((free["norm"] > 1000).mean()) > 0.5
    verdict = HOLDS if near_one and mostly_beyond else PARTLY if near_one else FAILS
    without = "; ".join(
        f"{NAMES[method]} without: median {norm.median():,.1f}, largest {norm.max():,.1f}, "
        f"beyond 1000 in {float((norm > 1000).mean()):.0%} of runs"
        for method, norm in free.groupby("method")["norm"]
    )
    return TestedClaim(claim, verdict, f"with: from {held.min():.4f} to {held.max():.4f}; {without}")


def penalty_saves_evaluations(results: Results) -> TestedClaim:
    """Holds if runs without the penalty need at least 10 times the evaluations, partly if they need more."""
    claim = "The penalty cuts the number of evaluations by two orders of magnitude"
    runs = results.norm_runs()
    if runs.empty:
        return TestedClaim(claim, NOT_RUN, "no runs without the penalty")
    mean = runs.groupby(["data_set", "method", "solver", "penalty"])["n_evaluations"].mean().unstack("penalty")
    factor = mean[False] / mean[True]
    verdict = HOLDS if factor.min() >= 10 else PARTLY if factor.median() > 1.1 else FAILS
    most = runs.loc[~runs["penalty"], "n_evaluations"].max()
    return TestedClaim(
        claim,
        verdict,
        f"evaluations without the penalty over those with it: median {factor.median():.2f}, from "
        f"{factor.min():.2f} ({_words(factor.idxmin())}) to {factor.max():.2f} ({_words(factor.idxmax())}); "
        f"most in one run without it: {most:,}",
    )


def _words(place: tuple[str, str, str]) -> str:
    """Return (data set, method, solver) as text."""
    data_set, method, solver = place
    return f"{data_set}, {NAMES[method]}, {SOLVER_NAMES[solver]}"


def _ratio_by_data_set(results: Results, method: str) -> pd.Series:
    """Return the mean ratio of exponentials of a method, by data set."""
    return means.ratios(results).xs(method, level="method").groupby("data_set").mean()
