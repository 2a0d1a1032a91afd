"""Records as data frames, with one row per cell or run, and the means used by tables and figures."""

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import pandas as pd

from melc.paper.protocol import MelcCell, Profile
from melc.paper.records import Record

APPROXIMATIONS = ("discard", "bin")  # the paper's two, in the order of its Figure 2
PLACE = ["data_set", "solver", "method"]  # of an entry in Tables 1 and 2


@dataclass(frozen=True)
class Results:
    """The data of tables, figures and verdicts.

    ``cells`` has one row per fit of MELC (best start), ``runs`` one row per start, ``baselines`` one row per other
    classifier and fold. ``missing`` contains the data sets that could not be loaded, with the reason.
    """

    profile: Profile
    cells: pd.DataFrame
    runs: pd.DataFrame
    baselines: pd.DataFrame
    versions: tuple[str, ...]
    missing: dict[str, str]

    @property
    def data_sets(self) -> list[str]:
        """Data sets with at least one record, in the paper's order."""
        present = set(self.cells["data_set"])
        return [name for name in self.profile.data_sets if name in present]

    def grid_runs(self) -> pd.DataFrame:
        """Return the runs of the paper's grid: its two solvers, with the penalty, on the profile's folds."""
        return self._grid(self.runs)

    def grid_cells(self) -> pd.DataFrame:
        """Return the cells of the paper's grid."""
        return self._grid(self.cells)

    def _grid(self, frame: pd.DataFrame) -> pd.DataFrame:
        of_grid = frame["penalty"] & frame["solver"].isin(self.profile.solvers)
        return frame[of_grid & (frame["n_folds"] == self.profile.n_folds)]

    def norm_runs(self) -> pd.DataFrame:
        """Return the runs without the penalty, and those with the penalty and otherwise the same settings."""
        free = self.runs[~self.runs["penalty"]]
        settings = ["data_set", "fold", "n_folds", "solver", "method", "gamma", "eps"]
        partners = self.runs.merge(free[settings].drop_duplicates(), on=settings)
        return partners.sort_values(["penalty", *settings, "start"], ignore_index=True)


def results_of(profile: Profile, records: list[Record], missing: dict[str, str]) -> Results:
    """Return the records as data frames."""
    cells: list[dict[str, Any]] = []
    baselines: list[dict[str, Any]] = []
    runs = []
    for record in records:
        settings = asdict(record.cell)
        row = {**settings, "bac": record.balanced_accuracy}
        (cells if isinstance(record.cell, MelcCell) else baselines).append(row)
        for start, run in enumerate(record.runs):
            runs.append({**settings, **asdict(run), "start": start, "ratio": run.n_exponentials / run.n_pairs})
    if not cells:
        raise ValueError("there are no records of MELC to report on; run the evaluation first")
    versions = {", ".join(f"{name} {version}" for name, version in sorted(r.versions.items())) for r in records}
    return Results(
        profile=profile,
        cells=pd.DataFrame(cells),
        runs=pd.DataFrame(runs),
        baselines=pd.DataFrame(baselines, columns=["data_set", "fold", "model", "bac"]),
        versions=tuple(sorted(versions)),
        missing=missing,
    )


def ratios(results: Results) -> pd.Series:
    """Return Table 1: the mean ratio of exponentials to the exact method, by (data set, solver, method)."""
    return results.grid_runs().groupby(PLACE)["ratio"].mean()


def iterations(results: Results) -> pd.Series:
    """Return Table 2: the mean number of iterations, by (data set, solver, method)."""
    return results.grid_runs().groupby(PLACE)["n_iter"].mean()


def accuracy_losses(results: Results) -> pd.DataFrame:
    """Return Figure 2: BAC(exact) − BAC(approximation), by (method, data set, γ, ε).

    Each approximate fit is compared with the exact one on the same fold with the same solver. The means are over folds
    and both solvers, because the paper has one panel for both. A positive value is a loss, as in the paper.
    """
    cells = results.grid_cells()
    partner = ["data_set", "gamma", "fold", "solver"]
    exact = cells.loc[cells["method"] == "exact", [*partner, "bac"]].rename(columns={"bac": "exact"})
    pairs = cells[cells["method"].isin(APPROXIMATIONS)].merge(exact, on=partner)
    pairs["loss"] = pairs["exact"] - pairs["bac"]
    return pairs.groupby(["method", "data_set", "gamma", "eps"])[["bac", "exact", "loss"]].mean().reset_index()


def endings(results: Results) -> pd.DataFrame:
    """Return how runs end, by (solver, method): shares of runs, mean counts, and the loss in D.

    The loss is the exact divergence at the end of the exact method's run from the same start, minus that at the end of
    this run.
    """
    runs = results.grid_runs()
    partner = ["data_set", "gamma", "fold", "solver", "start"]
    exact = runs.loc[runs["method"] == "exact", [*partner, "exact_divergence"]]
    pairs = runs.merge(exact.rename(columns={"exact_divergence": "reached"}), on=partner)
    pairs["lost"] = pairs["reached"] - pairs["exact_divergence"]
    for ending in ("converged", "stalled", "stopped"):
        pairs[ending] = pairs["reason"].str.startswith(ending)
    columns = ["converged", "stalled", "stopped", "n_iter", "n_evaluations", "lost"]
    return pairs.groupby(["solver", "method"])[columns].mean()


@lru_cache
def paper_table(name: str) -> pd.Series:
    """Return a table of the paper by (data set, solver, method): "exp_call_ratio" (Table 1) or "iterations" (Table 2).

    >>> float(paper_table("exp_call_ratio")["sonar", "cg", "bin"])
    0.32
    """
    table = json.loads(files("melc.paper").joinpath("paper_tables.json").read_text("utf-8"))[name]
    values = {
        (data_set, *column): value
        for data_set, row in table["rows"].items()
        for column, value in zip(table["columns"], row, strict=True)
    }
    return pd.Series(values, dtype=float).rename_axis(PLACE)
