"""Records as figures: by data set and model, and over data sets."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.quality.models import MODELS
from benchmarks.quality.records import Record
from benchmarks.quality.sets import SETS

ACCURACY, LOSS, SECONDS, LINES = "balanced_accuracy", "log_loss", "seconds", "lines"


@dataclass(frozen=True)
class Difference:
    """How a model compares with another over data sets: ``by_set`` is its accuracy less that of the other."""

    by_set: pd.Series

    @property
    def mean(self) -> float:
        return float(self.by_set.mean())

    @property
    def error(self) -> float:
        """The standard error of the mean; NaN with a single data set."""
        return float(self.by_set.sem())


@dataclass(frozen=True)
class Summary:
    """Figures by data set and model. ``table`` has a row for each data set, model and repeat."""

    table: pd.DataFrame

    @property
    def models(self) -> list[str]:
        return [name for name in MODELS if name in set(self.table["model"])]

    @property
    def sets(self) -> list[str]:
        return [name for name in SETS if name in set(self.table["data_set"])]

    @property
    def n_repeats(self) -> int:
        return int(self.table["repeat"].nunique())

    def means(self, measure: str) -> pd.DataFrame:
        """Return the mean over repeats: a row for each data set, a column for each model, NaN where there is none."""
        return self._by_set(measure, "mean")

    def spreads(self, measure: str) -> pd.DataFrame:
        """Return the standard deviation over repeats; NaN with a single repeat."""
        return self._by_set(measure, "std")

    def _by_set(self, measure: str, statistic: str) -> pd.DataFrame:
        grouped = self.table.groupby(["data_set", "model"])[measure].agg(statistic).unstack("model")
        return grouped.reindex(index=self.sets, columns=self.models)

    def of_group(self, group: str | None = None) -> list[str]:
        """Return the data sets of one group or of all."""
        return [name for name in self.sets if group in (None, SETS[name].group)]

    def over_sets(self, measure: str, group: str | None = None) -> pd.Series:
        """Return the mean over data sets; NaN for a model that was not measured on all of them."""
        return self.means(measure).loc[self.of_group(group)].mean(skipna=False)

    def ranks(self) -> pd.Series:
        """Return the mean rank by accuracy, 1 being the best, among the models that were measured on all data sets."""
        return self.means(ACCURACY).dropna(axis=1).rank(axis=1, ascending=False).mean().reindex(self.models)

    def difference(self, model: str, other: str) -> Difference:
        """Compare two models over the data sets that both have."""
        both = self.means(ACCURACY).reindex(columns=[model, other]).dropna()
        return Difference((both[model] - both[other]).sort_values())


def summarise(found: Iterable[Record]) -> Summary:
    """Return the figures of records."""
    return Summary(pd.DataFrame([_row(record) for record in found], columns=_COLUMNS))


def _row(record: Record) -> tuple[str, str, int, float, float, float, float]:
    """The median of the seconds: the first fit of a process may load compiled code."""
    figures = np.mean(record.balanced_accuracy), np.mean(record.log_loss), np.median(record.seconds)
    lines = np.nan if record.lines is None else np.mean(record.lines)
    return record.cell.data_set, record.cell.model, record.cell.repeat, *map(float, figures), float(lines)


_COLUMNS = ["data_set", "model", "repeat", ACCURACY, LOSS, SECONDS, LINES]
