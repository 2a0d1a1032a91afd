"""The tables of the report, one function each.

A value is a number, a mean with its standard deviation, a string, or None if there is no record. `Table` writes
Markdown and CSV; the HTML page formats the same values.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pandas as pd

from melc.paper import results as means
from melc.paper.results import APPROXIMATIONS, Results, paper_table

NAMES = {"bin": "bin", "discard": "dist", "exact": "exact", "moments": "moments"}
SOLVER_NAMES = {"cg": "CG", "lbfgs": "L-BFGS-B", "sphere": "sphere"}
TYPICAL_EPS = 0.05  # the middle of the paper's seven values
TYPICAL_GAMMA = 1.0

_NORM_COLUMNS = ("median ‖v‖", "largest ‖v‖", "evaluations", "most", "iterations", "converged %", "mean D")
_OFF_COLUMNS = ("measured", "paper", "difference", "γ = 0.5", "γ = 1", "γ = 2", "SD over folds and starts")


@dataclass(frozen=True)
class MeanAndSpread:
    """A mean and the standard deviation around it, which is None for a single value."""

    mean: float
    spread: float | None


Value = float | str | MeanAndSpread | None


@dataclass(frozen=True)
class Table:
    """A table with a title and a note. ``decimals`` is the number of decimals of each column.

    ``timed`` marks tables of measured times, which differ between runs.
    """

    name: str
    title: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    decimals: tuple[int, ...]
    timed: bool = False

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
        writer.writerows([[_csv_value(value) for value in row] for row in self.rows])
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


def all_tables(results: Results) -> list[Table]:
    """Return all tables of the report, in order."""
    makers: tuple[Callable[[Results], Table], ...] = (
        exp_call_ratios,
        iterations,
        endings,
        balanced_accuracies,
        norms,
        solvers,
        seconds_per_start,
        milliseconds_per_evaluation,
        *(lambda results, method=method: ratios_by_setting(results, method) for method in APPROXIMATIONS),
        off_sets,
        *((ratios_by_number_of_folds,) if results.profile.other_n_folds else ()),
    )
    return [make(results) for make in makers]


def exp_call_ratios(results: Results) -> Table:
    """Return Table 1, measured and as in the paper."""
    measured, paper = means.ratios(results), paper_table("exp_call_ratio")
    columns = [(solver, method) for solver in ("cg", "lbfgs") for method in ("bin", "discard")]
    rows = _beside_paper(results, measured, paper, columns)
    difference = (measured - paper).dropna().abs().groupby(["solver", "method"]).mean()
    differences = ", ".join(f"{SOLVER_NAMES[s]} {NAMES[m]} {value:.3f}" for (s, m), value in difference.items())
    return Table(
        "table1",
        "Table 1: ratio of exp calls to the exact method",
        "Mean over folds, starts, γ and ε of the exponentials of one run over those that the exact sum would "
        "have needed for the same evaluations. “Paper” is the paper's Table 1. Mean absolute differences: "
        + differences
        + ".",
        ("data set", *_paper_header(columns)),
        tuple(rows),
        (0, *[3, 2] * len(columns)),
    )


def iterations(results: Results) -> Table:
    """Return Table 2, measured and as in the paper."""
    columns = [(solver, method) for solver in ("cg", "lbfgs") for method in ("bin", "exact", "discard")]
    measured = means.iterations(results)
    rows = _beside_paper(results, measured, paper_table("iterations"), columns)
    extra = [("cg", "moments"), ("lbfgs", "moments")]
    rows = [
        (*row, *(_lookup(measured, (name, *column)) for column in extra))
        for name, row in zip(results.profile.data_sets, rows, strict=True)
    ]
    return Table(
        "table2",
        "Table 2: iterations until the solver stops",
        "Mean over folds, starts, γ and ε. “Paper” is the paper's Table 2; moment bins are not in the paper.",
        ("data set", *_paper_header(columns), "CG moments", "L-BFGS-B moments"),
        tuple(rows),
        (0, *[1, 0] * len(columns), 1, 1),
    )


def endings(results: Results) -> Table:
    """Return why solvers stop: convergence, a line search without a better point, or the limit of iterations."""
    found = means.endings(results)
    order = [(s, m) for s in ("cg", "lbfgs") for m in ("exact", "moments", "discard", "bin") if (s, m) in found.index]
    rows: list[tuple[Value, ...]] = []
    for solver, method in order:
        row = found.loc[(solver, method)]
        shares = (100 * float(row[ending]) for ending in ("converged", "stalled", "stopped"))
        counts = (float(row[name]) for name in ("n_iter", "n_evaluations", "lost"))
        rows.append((SOLVER_NAMES[solver], NAMES[method], *shares, *counts))
    return Table(
        "endings",
        "How runs end",
        "Share of runs that converged, whose line search found no better point, or that met the limit of iterations; "
        "means over everything. “D lost” is against the exact method from the same start.",
        ("solver", "method", "converged %", "stalled %", "limit %", "iterations", "evaluations", "D lost"),
        tuple(rows),
        (0, 0, 1, 1, 1, 1, 1, 4),
    )


def balanced_accuracies(results: Results) -> Table:
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
    rows = [
        (name, *(_spread(frame.loc[frame["data_set"] == name, "bac"]) for frame in fits.values()))
        for name in results.profile.data_sets
    ]
    return Table(
        "accuracy",
        "Balanced accuracy beside other classifiers",
        f"Mean ± standard deviation over the test folds; L-BFGS-B. MELC has γ = {TYPICAL_GAMMA:g}, untuned, "
        f"and ε = {TYPICAL_EPS:g} for bin and dist; “best γ” picks γ with the test scores in view and is an "
        "upper limit, not a fair figure. The support vector machines and logistic regression tune their "
        "constants on the training fold.",
        ("data set", *fits),
        tuple(rows),
        (0, *[3] * len(fits)),
    )


def norms(results: Results) -> Table:
    """Return the norm experiment: runs with and without the penalty."""
    groups = results.norm_runs().groupby(["data_set", "method", "solver", "penalty"], sort=True)
    rows = [
        (
            data_set,
            NAMES[method],
            SOLVER_NAMES[solver],
            "with" if penalty else "without",
            float(group["norm"].median()),
            float(group["norm"].max()),
            float(group["n_evaluations"].mean()),
            float(group["n_evaluations"].max()),
            float(group["n_iter"].mean()),
            100 * float(group["converged"].mean()),
            float(group["exact_divergence"].mean()),
        )
        for (data_set, method, solver, penalty), group in groups
    ]
    return Table(
        "norms",
        "The norm of v with and without the penalty",
        f"Final ‖v‖ and number of evaluations over folds, starts and γ; ε = {results.profile.norm_eps:g}.",
        ("data set", "method", "solver", "penalty", *_NORM_COLUMNS),
        tuple(rows),
        (0, 0, 0, 0, 3, 1, 1, 0, 1, 0, 4),
    )


def solvers(results: Results) -> Table:
    """Return a comparison of CG, L-BFGS-B and gradient ascent on the sphere, with the exact method."""
    runs = results.runs[
        (results.runs["method"] == "exact")
        & results.runs["penalty"]
        & results.runs["gamma"].isin(results.profile.sphere_gammas)
    ]
    by_solver = runs.groupby(["data_set", "solver"])[["n_evaluations", "n_iter", "exact_divergence", "converged"]]
    mean = by_solver.mean()
    columns = {"iterations": "n_iter", "evaluations": "n_evaluations", "D": "exact_divergence"}
    columns |= {"converged %": "converged"}
    rows = [
        (
            name,
            *(
                _lookup(mean[column], (name, solver), 100 if column == "converged" else 1)
                for column in columns.values()
                for solver in SOLVER_NAMES
            ),
        )
        for name in results.profile.data_sets
    ]
    gammas = ", ".join(f"{gamma:g}" for gamma in results.profile.sphere_gammas)
    return Table(
        "solvers",
        "Out of the sphere, or on it",
        f"Exact method, γ = {gammas}, means over folds and starts. The sphere solver is gradient ascent on "
        "the unit sphere, which the penalty is meant to replace.",
        ("data set", *(f"{title} {solver}" for title in columns for solver in SOLVER_NAMES.values())),
        tuple(rows),
        (0, *[1] * 6, *[4] * 3, *[0] * 3),
    )


def seconds_per_start(results: Results) -> Table:
    """Return the mean wall-clock time of one solver run."""
    mean = results.grid_runs().groupby(["data_set", "solver", "method"])["seconds"].mean()
    title = "Wall clock: seconds from a start to where the solver stops"
    share = results.runs["processor_seconds"].sum() / results.runs["seconds"].sum()
    note = (
        "Means over folds, starts, γ and ε; one thread per run. The runs had a processor "
        f"for {min(share, 1):.0%} of the time on the clock; less than all means a busy machine."
    )
    return _timing(results, mean, 3, "seconds", title, note)


def milliseconds_per_evaluation(results: Results) -> Table:
    """Return the mean processor time of one evaluation of D and its gradient."""
    columns = ["processor_seconds", "n_evaluations"]
    totals = results.grid_runs().groupby(["data_set", "solver", "method"])[columns].sum()
    mean = 1000 * totals["processor_seconds"] / totals["n_evaluations"]
    title = "Processor time: milliseconds per evaluation of D and its gradient"
    note = "Time of all runs over all their evaluations; includes the solver's own work."
    return _timing(results, mean, 3, "milliseconds", title, note)


def ratios_by_setting(results: Results, method: str) -> Table:
    """Return the ratio of exp calls by γ and ε, which the paper mentions but does not print."""
    runs = results.grid_runs()
    mean = runs[runs["method"] == method].groupby(["eps", "gamma"])["ratio"].mean()
    gammas, epsilons = results.profile.gammas, results.profile.epsilons
    return Table(
        f"ratio-{NAMES[method]}",
        f"Ratio of exp calls by γ and ε: {NAMES[method]}",
        "Means over data sets, solvers, folds and starts.",
        ("ε", *(f"γ = {gamma:g}" for gamma in gammas)),
        tuple((f"{eps:g}", *(_lookup(mean, (eps, gamma)) for gamma in gammas)) for eps in epsilons),
        (0, *[3] * len(gammas)),
    )


def off_sets(results: Results) -> Table:
    """Return the entries of Table 1 that differ by more than 0.06, with the variation over folds and starts."""
    runs = results.grid_runs()
    measured, paper = means.ratios(results), paper_table("exp_call_ratio")
    difference = (measured - paper).dropna()
    rows = [_off_row(runs, place, measured[place], paper[place]) for place in difference.index[abs(difference) > 0.06]]
    return Table(
        "off",
        "Entries of Table 1 that differ by more than 0.06",
        "Beside each, the mean ratio at γ = 0.5, 1 and 2 over all ε, and the standard deviation of the mean "
        "ratio between (fold, start) pairs, which says how much of the difference chance could explain.",
        ("data set", "solver", "method", *_OFF_COLUMNS),
        tuple(rows),
        (0, 0, 0, 3, 2, 3, 3, 3, 3, 3),
    )


def ratios_by_number_of_folds(results: Results) -> Table:
    """Return Table 1 measured with other numbers of folds, that is, with fewer or more training rows."""
    numbers = sorted({results.profile.n_folds, *results.profile.other_n_folds})
    runs = results.runs[results.runs["penalty"] & (results.runs["solver"] == "lbfgs")]
    mean = runs.groupby(["method", "n_folds", "data_set"])["ratio"].mean()
    paper = paper_table("exp_call_ratio").xs("lbfgs", level="solver")
    header, columns, differences = [], [], []
    for method in ("bin", "discard"):
        own_paper = paper.xs(method, level="method")
        for n_folds in numbers:
            measured = mean.get((method, n_folds), pd.Series(dtype=float))
            header.append(f"{NAMES[method]}, {n_folds} folds")
            columns.append(measured)
            differences.append(f"{header[-1]}: {(measured - own_paper).dropna().mean():+.3f}")
        header.append(f"{NAMES[method]} paper")
        columns.append(own_paper)
    return Table(
        "folds",
        "Table 1 with other numbers of folds",
        "L-BFGS-B; one fold and one start where the number is not the profile's. The fewer the folds, the fewer the "
        "training rows, the wider Silverman's kernel and the fewer "
        "the points per bin: both ratios grow. Mean difference from the paper: " + "; ".join(differences) + ".",
        ("data set", *header),
        tuple((n, *(_lookup(column, n) for column in columns)) for n in results.profile.data_sets),
        (0, *[3 if "folds" in title else 2 for title in header]),
    )


def _off_row(runs: pd.DataFrame, place: tuple[str, str, str], measured: float, paper: float) -> tuple[Value, ...]:
    """Return the row of an entry of Table 1 that differs from the paper's."""
    data_set, solver, method = place
    own = runs[(runs["data_set"] == data_set) & (runs["solver"] == solver) & (runs["method"] == method)]
    by_gamma = own.groupby("gamma")["ratio"].mean()
    by_start = own.groupby(["fold", "start"])["ratio"].mean()
    between = float(by_start.std(ddof=0)) if len(by_start) > 1 else "–"
    gammas = [_lookup(by_gamma, gamma) for gamma in (0.5, 1.0, 2.0)]
    return (
        data_set,
        SOLVER_NAMES[solver],
        NAMES[method],
        measured,
        paper,
        measured - paper,
        *gammas,
        between,
    )


def _timing(results: Results, mean: pd.Series, decimals: int, name: str, title: str, note: str) -> Table:
    """Return a table of times by data set, solver and method."""
    columns = [(s, m) for s in ("cg", "lbfgs") for m in ("exact", "discard", "bin", "moments")]
    header = [f"{SOLVER_NAMES[solver]} {NAMES[method]}" for solver, method in columns]
    rows = [(n, *(_lookup(mean, (n, *column)) for column in columns)) for n in results.profile.data_sets]
    return Table(name, title, note, ("data set", *header), tuple(rows), (0, *[decimals] * len(columns)), timed=True)


def _beside_paper(
    results: Results, measured: pd.Series, paper: pd.Series, columns: list[tuple[str, str]]
) -> list[tuple[Value, ...]]:
    """Return one row per data set: its name, then for every column the measured value and the paper's."""
    return [
        (name, *(_lookup(source, (name, *column)) for column in columns for source in (measured, paper)))
        for name in results.profile.data_sets
    ]


def _paper_header(columns: Iterable[tuple[str, str]]) -> list[str]:
    """Return the headers of the columns of `_beside_paper`."""
    names = [f"{SOLVER_NAMES[solver]} {NAMES[method]}" for solver, method in columns]
    return [title for name in names for title in (name, f"{name} paper")]


def _lookup(series: pd.Series, place: object, factor: float = 1) -> float | None:
    """Return the value at an index times ``factor``, or None if it is missing."""
    return factor * float(series.loc[place]) if place in series.index else None


def _best_gamma(cells: pd.DataFrame) -> pd.DataFrame:
    """Return, for each data set, the cells of the γ with the best mean test BAC."""
    mean = cells.groupby(["data_set", "gamma"])["bac"].mean()
    best = mean.groupby("data_set").idxmax()
    return cells[[place in set(best) for place in zip(cells["data_set"], cells["gamma"], strict=True)]]


def _spread(values: pd.Series) -> MeanAndSpread | None:
    """Return mean and standard deviation, or None if there are no values. A single value has no deviation."""
    if not len(values):
        return None
    return MeanAndSpread(float(values.mean()), float(values.std(ddof=0)) if len(values) > 1 else None)


def _csv_value(value: Value) -> str:
    if isinstance(value, MeanAndSpread):
        return f"{value.mean!r} ± {'–' if value.spread is None else repr(value.spread)}"
    return "" if value is None else str(value)
