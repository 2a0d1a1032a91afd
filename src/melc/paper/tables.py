"""The tables of the report, one function each.

A value is a number, a mean with its standard deviation, a string, or None if there is no record. `ReportTable` writes
Markdown and CSV; the HTML page formats the same values.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from melc.paper import results as means
from melc.paper.results import APPROXIMATIONS, Results, paper_table

NAMES = {"bin": "bin", "discard": "dist", "exact": "exact", "moments": "moments"}
SOLVER_NAMES = {"cg": "CG", "lbfgs": "L-BFGS-B", "sphere": "sphere"}
TYPICAL_EPS = 0.05  # the middle of the paper's seven values
TYPICAL_GAMMA = 1.0
# Of a measured entry of Table 1 from the paper's: single entries beyond it are listed, and the mean must be within it.
TOLERATED_DIFFERENCE = 0.06


@dataclass(frozen=True)
class MeanAndSpread:
    """A mean and the standard deviation around it, which is None for a single value."""

    mean: float
    spread: float | None

    def __str__(self) -> str:
        """Return both numbers in full."""
        return f"{self.mean!r} ± {'–' if self.spread is None else repr(self.spread)}"


Value = float | str | MeanAndSpread | None


@dataclass(frozen=True)
class ReportTable:
    """A table with a title and a note. ``decimals`` is the number of decimals of each column."""

    name: str
    title: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    decimals: tuple[int, ...]

    def text(self, value: Value, column: int) -> str:
        """Return a value as it is printed in a column."""
        return format_value(value, self.decimals[column])

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = ["| " + " | ".join(self.header) + " |", "|---" + "|---:" * (len(self.header) - 1) + "|"]
        rows = [[self.text(value, i) for i, value in enumerate(row)] for row in self.rows]
        return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"

    def csv(self) -> str:
        """Return the table as CSV, with numbers in full and means as "mean ± standard deviation"."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows(self.rows)
        return stream.getvalue()


def format_value(value: Value, decimals: int) -> str:
    """Return a value as text.

    >>> format_value(MeanAndSpread(0.81234, 0.02), 3), format_value(MeanAndSpread(0.8, None), 3)
    ('0.812 ± 0.020', '0.800 ± –')
    >>> format_value(None, 1), format_value(12345.6, 0)
    ('—', '12,346')
    """
    if value is None:
        return "—"
    if isinstance(value, str):
        return value
    if isinstance(value, MeanAndSpread):
        spread = "–" if value.spread is None else f"{value.spread:.{decimals}f}"
        return f"{value.mean:.{decimals}f} ± {spread}"
    return f"{value:,.{decimals}f}"


def all_tables(results: Results) -> list[ReportTable]:
    """Return all tables of the report, in order."""
    return [
        exp_call_ratios(results),
        iterations_table(results),
        endings_table(results),
        balanced_accuracies(results),
        norms(results),
        solvers(results),
        seconds_per_start(results),
        milliseconds_per_evaluation(results),
        *(ratios_by_setting(results, method) for method in APPROXIMATIONS),
        off_sets(results),
        *([ratios_by_number_of_folds(results)] if results.profile.other_n_folds else []),
    ]


def exp_call_ratios(results: Results) -> ReportTable:
    """Return Table 1, measured and as in the paper."""
    measured, paper = means.ratios(results), paper_table("exp_call_ratio")
    difference = (measured - paper).dropna().abs().groupby(["solver", "method"]).mean()
    differences = ", ".join(f"{SOLVER_NAMES[s]} {NAMES[m]} {value:.3f}" for (s, m), value in difference.items())
    return _by_data_set(
        results,
        "table1",
        "Table 1: ratio of exp calls to the exact method",
        "Mean over folds, starts, γ and ε of the exponentials of one run over those that the exact sum would "
        "have needed for the same evaluations. “Paper” is the paper's Table 1. Mean absolute differences: "
        + differences
        + ".",
        _beside_paper(measured, paper, ("bin", "discard")),
        (3, 2) * 4,
    )


def iterations_table(results: Results) -> ReportTable:
    """Return Table 2, measured and as in the paper."""
    measured = means.iterations(results)
    beside_paper = _beside_paper(measured, paper_table("iterations"), ("bin", "exact", "discard"))
    return _by_data_set(
        results,
        "table2",
        "Table 2: iterations until the solver stops",
        "Mean over folds, starts, γ and ε. “Paper” is the paper's Table 2; moment bins are not in the paper.",
        beside_paper | _by_solver(measured, ("moments",)),
        (1, 0) * 6 + (1, 1),
    )


def endings_table(results: Results) -> ReportTable:
    """Return why solvers stop: convergence, a line search without a better point, or the limit of iterations."""
    found = means.endings(results)
    order = [(s, m) for s in ("cg", "lbfgs") for m in ("exact", "moments", "discard", "bin") if (s, m) in found.index]
    shares = ["converged", "stalled", "stopped"]
    found[shares] *= 100
    columns = [*shares, "n_iter", "n_evaluations", "lost"]
    return ReportTable(
        "endings",
        "How runs end",
        "Share of runs that converged, whose line search found no better point, or that met the limit of iterations; "
        "means over everything. “D lost” is against the exact method from the same start.",
        ("solver", "method", "converged %", "stalled %", "limit %", "iterations", "evaluations", "D lost"),
        tuple((SOLVER_NAMES[s], NAMES[m], *map(float, found.loc[(s, m), columns])) for s, m in order),
        (0, 0, 1, 1, 1, 1, 1, 4),
    )


def balanced_accuracies(results: Results) -> ReportTable:
    """Return mean and standard deviation of BAC over the folds, for MELC and other classifiers."""
    cells = results.grid_cells()
    cells = cells[cells["solver"] == "lbfgs"]
    typical = cells[cells["gamma"] == TYPICAL_GAMMA]
    fits = {
        "MELC exact": typical[typical["method"] == "exact"],
        "MELC moments": typical[typical["method"] == "moments"],
        **{
            f"MELC {NAMES[method]}": typical[(typical["method"] == method) & (typical["eps"] == TYPICAL_EPS)]
            for method in APPROXIMATIONS
        },
        "MELC exact, best γ": _best_gamma(cells[cells["method"] == "exact"]),
    }
    fits |= dict(iter(results.baselines.groupby("model", sort=False)))
    return _by_data_set(
        results,
        "accuracy",
        "Balanced accuracy beside other classifiers",
        f"Mean ± standard deviation over the test folds; L-BFGS-B. MELC has γ = {TYPICAL_GAMMA:g}, untuned, "
        f"and ε = {TYPICAL_EPS:g} for bin and dist; “best γ” picks γ with the test scores in view and is an "
        "upper limit, not a fair figure. The support vector machines and logistic regression tune their "
        "constants on the training fold.",
        {title: frame.groupby("data_set")["bac"].agg(_spread) for title, frame in fits.items()},
        (3,) * len(fits),
    )


def norms(results: Results) -> ReportTable:
    """Return the norm experiment: runs with and without the penalty."""
    statistics = {
        "median ‖v‖": ("norm", "median"),
        "largest ‖v‖": ("norm", "max"),
        "evaluations": ("n_evaluations", "mean"),
        "most": ("n_evaluations", "max"),
        "iterations": ("n_iter", "mean"),
        "converged %": ("converged", "mean"),
        "mean D": ("exact_divergence", "mean"),
    }
    rows: list[tuple[Value, ...]] = []
    for place, group in results.norm_runs().groupby(["data_set", "method", "solver", "penalty"]):
        data_set, method, solver, penalty = place
        numbers = {title: float(group[column].agg(name)) for title, (column, name) in statistics.items()}
        numbers["converged %"] *= 100
        names = (data_set, NAMES[method], SOLVER_NAMES[solver], "with" if penalty else "without")
        rows.append((*names, *numbers.values()))
    return ReportTable(
        "norms",
        "The norm of v with and without the penalty",
        f"Final ‖v‖ and number of evaluations over folds, starts and γ; ε = {results.profile.norm_eps:g}.",
        ("data set", "method", "solver", "penalty", *statistics),
        tuple(rows),
        (0, 0, 0, 0, 3, 1, 1, 0, 1, 0, 4),
    )


def solvers(results: Results) -> ReportTable:
    """Return a comparison of CG, L-BFGS-B and gradient ascent on the sphere, with the exact method."""
    runs = results.runs[
        (results.runs["method"] == "exact")
        & results.runs["penalty"]
        & results.runs["gamma"].isin(results.profile.sphere_gammas)
    ]
    mean = runs.groupby(["solver", "data_set"])[["n_iter", "n_evaluations", "exact_divergence", "converged"]].mean()
    mean["converged"] *= 100
    mean.columns = ["iterations", "evaluations", "D", "converged %"]
    gammas = ", ".join(f"{gamma:g}" for gamma in results.profile.sphere_gammas)
    return _by_data_set(
        results,
        "solvers",
        "Out of the sphere, or on it",
        f"Exact method, γ = {gammas}, means over folds and starts. The sphere solver is gradient ascent on "
        "the unit sphere, which the penalty is meant to replace.",
        {f"{title} {SOLVER_NAMES[s]}": _part(mean[title], s) for title in mean.columns for s in SOLVER_NAMES},
        (1,) * 6 + (4,) * 3 + (0,) * 3,
    )


def seconds_per_start(results: Results) -> ReportTable:
    """Return the mean wall-clock time of one solver run."""
    share = results.runs["processor_seconds"].sum() / results.runs["seconds"].sum()
    return _timing(
        results,
        "seconds",
        "Wall clock: seconds from a start to where the solver stops",
        "Means over folds, starts, γ and ε; one thread per run. The runs had a processor "
        f"for {min(share, 1):.0%} of the time on the clock; less than all means a busy machine.",
        results.grid_runs().groupby(means.PLACE)["seconds"].mean(),
    )


def milliseconds_per_evaluation(results: Results) -> ReportTable:
    """Return the mean processor time of one evaluation of D and its gradient."""
    totals = results.grid_runs().groupby(means.PLACE)[["processor_seconds", "n_evaluations"]].sum()
    return _timing(
        results,
        "milliseconds",
        "Processor time: milliseconds per evaluation of D and its gradient",
        "Time of all runs over all their evaluations; includes the solver's own work.",
        1000 * totals["processor_seconds"] / totals["n_evaluations"],
    )


def ratios_by_setting(results: Results, method: str) -> ReportTable:
    """Return the ratio of exp calls by γ and ε, which the paper mentions but does not print."""
    runs = results.grid_runs()
    mean = runs[runs["method"] == method].groupby(["eps", "gamma"])["ratio"].mean()
    gammas, epsilons = results.profile.gammas, results.profile.epsilons
    return ReportTable(
        f"ratio-{NAMES[method]}",
        f"Ratio of exp calls by γ and ε: {NAMES[method]}",
        "Means over data sets, solvers, folds and starts.",
        ("ε", *(f"γ = {gamma:g}" for gamma in gammas)),
        tuple((f"{eps:g}", *(mean.get((eps, gamma)) for gamma in gammas)) for eps in epsilons),
        (0, *[3] * len(gammas)),
    )


def off_sets(results: Results) -> ReportTable:
    """Return the entries of Table 1 that differ by more than 0.06, with the variation over folds and starts."""
    runs = results.grid_runs()
    measured, paper = means.ratios(results), paper_table("exp_call_ratio")
    difference = (measured - paper).dropna()
    columns = ("measured", "paper", "difference", "γ = 0.5", "γ = 1", "γ = 2", "SD over folds and starts")
    rows: list[tuple[Value, ...]] = []
    for place in difference.index[abs(difference) > TOLERATED_DIFFERENCE]:
        data_set, solver, method = place
        own = runs[(runs["data_set"] == data_set) & (runs["solver"] == solver) & (runs["method"] == method)]
        by_gamma = own.groupby("gamma")["ratio"].mean()
        by_start = own.groupby(["fold", "start"])["ratio"].mean()
        between = float(by_start.std(ddof=0)) if len(by_start) > 1 else "–"
        gammas = [by_gamma.get(gamma) for gamma in (0.5, 1.0, 2.0)]
        numbers = (measured[place], paper[place], difference[place], *gammas, between)
        rows.append((data_set, SOLVER_NAMES[solver], NAMES[method], *numbers))
    return ReportTable(
        "off",
        f"Entries of Table 1 that differ by more than {TOLERATED_DIFFERENCE:g}",
        "Beside each, the mean ratio at γ = 0.5, 1 and 2 over all ε, and the standard deviation of the mean "
        "ratio between (fold, start) pairs, which says how much of the difference chance could explain.",
        ("data set", "solver", "method", *columns),
        tuple(rows),
        (0, 0, 0, 3, 2, 3, 3, 3, 3, 3),
    )


def ratios_by_number_of_folds(results: Results) -> ReportTable:
    """Return Table 1 measured with other numbers of folds, that is, with fewer or more training rows."""
    numbers = sorted({results.profile.n_folds, *results.profile.other_n_folds})
    runs = results.runs[results.runs["penalty"] & (results.runs["solver"] == "lbfgs")]
    mean = runs.groupby(["method", "n_folds", "data_set"])["ratio"].mean()
    paper = paper_table("exp_call_ratio").xs("lbfgs", level="solver")
    columns, differences = {}, []
    for method in ("bin", "discard"):
        own_paper = paper.xs(method, level="method")
        for n_folds in numbers:
            title = f"{NAMES[method]}, {n_folds} folds"
            columns[title] = _part(mean, method, n_folds)
            differences.append(f"{title}: {(columns[title] - own_paper).dropna().mean():+.3f}")
        columns[f"{NAMES[method]} paper"] = own_paper
    return _by_data_set(
        results,
        "folds",
        "Table 1 with other numbers of folds",
        "L-BFGS-B; one fold and one start where the number is not the profile's. The fewer the folds, the fewer the "
        "training rows, the wider Silverman's kernel and the fewer "
        "the points per bin: both ratios grow. Mean difference from the paper: " + "; ".join(differences) + ".",
        columns,
        tuple(3 if "folds" in title else 2 for title in columns),
    )


def _by_data_set(
    results: Results, name: str, title: str, note: str, columns: dict[str, pd.Series], decimals: tuple[int, ...]
) -> ReportTable:
    """Return a table with one row per data set. Each column is a series of values by data set."""
    rows = [(name, *(values.get(name) for values in columns.values())) for name in results.profile.data_sets]
    return ReportTable(name, title, note, ("data set", *columns), tuple(rows), (0, *decimals))


def _timing(results: Results, name: str, title: str, note: str, mean: pd.Series) -> ReportTable:
    """Return a table of times by data set, solver and method."""
    columns = _by_solver(mean, ("exact", "discard", "bin", "moments"))
    return _by_data_set(results, name, title, note, columns, (3,) * len(columns))


def _beside_paper(measured: pd.Series, paper: pd.Series, methods: Sequence[str]) -> dict[str, pd.Series]:
    """Return two columns for each solver and method: the measured values and those of the paper."""
    by_paper = _by_solver(paper, methods)
    pairs = [{title: own, f"{title} paper": by_paper[title]} for title, own in _by_solver(measured, methods).items()]
    return {title: values for pair in pairs for title, values in pair.items()}


def _by_solver(series: pd.Series, methods: Sequence[str]) -> dict[str, pd.Series]:
    """Return a column for each of the paper's solvers and each method, given values by data set, solver and method."""
    series = series.reorder_levels(["solver", "method", "data_set"]).sort_index()
    pairs = [(solver, method) for solver in ("cg", "lbfgs") for method in methods]
    return {f"{SOLVER_NAMES[s]} {NAMES[m]}": _part(series, s, m) for s, m in pairs}


def _part(series: pd.Series, *place: object) -> pd.Series:
    """Return the values whose first index levels are ``place``, by the last level; empty if there are none."""
    return series.loc[place] if place in series.index else pd.Series(dtype=float)


def _best_gamma(cells: pd.DataFrame) -> pd.DataFrame:
    """Return, for each data set, the cells of the γ with the best mean test BAC."""
    mean = cells.groupby(["data_set", "gamma"])["bac"].mean()
    best = mean.groupby("data_set").idxmax()
    return cells[[place in set(best) for place in zip(cells["data_set"], cells["gamma"], strict=True)]]


def _spread(values: pd.Series) -> MeanAndSpread:
    """Return mean and standard deviation. A single value has no deviation."""
    return MeanAndSpread(float(values.mean()), float(values.std(ddof=0)) if len(values) > 1 else None)
