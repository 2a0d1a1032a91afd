"""Records as data frames, one row a cell or one row a run, and the means that tables and figures share."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import pandas as pd

from melc.paper.protocol import MelcCell, Profile
from melc.paper.records import Record

APPROXIMATIONS = ("discard", "bin")  # the paper's own, in the order of its Figure 2
SETTINGS = ["data_set", "fold", "n_folds", "solver", "method", "gamma", "eps", "penalty"]


@dataclass(frozen=True)
class Results:
    """Everything that tables, figures and verdicts may draw from.

    ``cells`` has a row for each fit of MELC (best start), ``runs`` a row for each start, ``baselines`` a
    row for each other classifier and fold. ``missing`` names data sets that were not at hand, with why.
    """

    profile: Profile
    cells: pd.DataFrame
    runs: pd.DataFrame
    baselines: pd.DataFrame
    versions: tuple[str, ...]
    missing: dict[str, str]

    @property
    def data_sets(self) -> list[str]:
        """Those with at least one record, in the paper's order."""
        present = set(self.cells["data_set"])
        return [name for name in self.profile.data_sets if name in present]

    def grid_runs(self) -> pd.DataFrame:
        """The runs of the paper's grid: its two solvers, with the penalty, on the profile's folds."""
        return self._grid(self.runs)

    def grid_cells(self) -> pd.DataFrame:
        return self._grid(self.cells)

    def _grid(self, frame: pd.DataFrame) -> pd.DataFrame:
        of_grid = frame["penalty"] & frame["solver"].isin(self.profile.solvers)
        return frame[of_grid & (frame["n_folds"] == self.profile.n_folds)]

    def norm_runs(self) -> pd.DataFrame:
        """The runs without the penalty, and their partners with it."""
        free = self.runs[~self.runs["penalty"]]
        settings = [name for name in SETTINGS if name != "penalty"]
        partners = self.runs.merge(free[settings].drop_duplicates(), on=settings)
        return partners.sort_values(["penalty", *settings, "start"], ignore_index=True)


def gather(profile: Profile, records: list[Record], missing: dict[str, str]) -> Results:
    """Sort records into data frames."""
    melc = [record for record in records if isinstance(record.cell, MelcCell)]
    others = [record for record in records if not isinstance(record.cell, MelcCell)]
    if not melc:
        raise ValueError("there are no records of MELC to report on; run the cells first")
    return Results(
        profile=profile,
        cells=pd.DataFrame([_cell_row(record) for record in melc]),
        runs=pd.DataFrame([row for record in melc for row in _run_rows(record)]),
        baselines=pd.DataFrame(
            [{**asdict(record.cell), "bac": record.balanced_accuracy} for record in others],
            columns=["data_set", "fold", "model", "bac"],
        ),
        versions=tuple(sorted({_describe(record.versions) for record in records})),
        missing=missing,
    )


def ratios(results: Results) -> pd.Series:
    """Table 1: mean ratio of exponentials, by (data set, solver, method)."""
    return results.grid_runs().groupby(["data_set", "solver", "method"])["ratio"].mean()


def iterations(results: Results) -> pd.Series:
    """Table 2: mean number of iterations, by (data set, solver, method)."""
    return results.grid_runs().groupby(["data_set", "solver", "method"])["n_iter"].mean()


def accuracy_losses(results: Results) -> pd.DataFrame:
    """Figure 2: BAC of the exact method less that of an approximation, by (method, data set, γ, ε).

    Each approximate fit is set against the exact one on the same fold with the same solver; the means are over
    folds and the two solvers, for which the paper has one panel. Positive is a loss, as in the paper.
    """
    cells = results.grid_cells()
    partner = ["data_set", "gamma", "fold", "solver"]
    exact = cells.loc[cells["method"] == "exact", [*partner, "bac"]].rename(columns={"bac": "exact"})
    pairs = cells[cells["method"].isin(APPROXIMATIONS)].merge(exact, on=partner)
    pairs["loss"] = pairs["exact"] - pairs["bac"]
    return pairs.groupby(["method", "data_set", "gamma", "eps"])[["bac", "exact", "loss"]].mean().reset_index()


def endings(results: Results) -> pd.DataFrame:
    """How runs end, by (solver, method): shares of runs, mean counts, and D lost against the exact method.

    A run is set against the exact one from the same start; D is the exact divergence of where each ended.
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
    """A table of the paper by (data set, solver, method): "exp_call_ratio" (1) or "iterations" (2).

    >>> float(paper_table("exp_call_ratio")["sonar", "cg", "bin"])
    0.32
    """
    table = json.loads(files("melc.paper").joinpath("paper_tables.json").read_text("utf-8"))[name]
    values = {
        (data_set, *column): value
        for data_set, row in table["rows"].items()
        for column, value in zip(table["columns"], row, strict=True)
    }
    return pd.Series(values, dtype=float).rename_axis(["data_set", "solver", "method"])


def _cell_row(record: Record) -> dict[str, Any]:
    settings = {name: getattr(record.cell, name) for name in SETTINGS}
    assert record.best is not None
    best = record.runs[record.best]
    return {
        **settings,
        "bac": record.balanced_accuracy,
        "seconds": record.seconds,
        "exact_divergence": best.exact_divergence,
    }


def _run_rows(record: Record) -> list[dict[str, Any]]:
    settings = {name: getattr(record.cell, name) for name in SETTINGS}
    return [
        {**settings, **asdict(run), "start": start, "ratio": run.n_exponentials / run.n_pairs}
        for start, run in enumerate(record.runs)
    ]


def _describe(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
