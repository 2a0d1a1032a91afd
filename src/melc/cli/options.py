"""Arguments and options that several commands share.

A group of options is a dataclass. A command with a parameter of that type has all options of the group.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer


class TableFormat(StrEnum):
    auto = "auto"
    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    libsvm = "libsvm"


# Groups of options in the help.
DATA, COLUMNS, MODEL, SEARCH = "Reading DATA", "Columns", "Model", "Search"

# As an output file: standard output.
STANDARD_OUTPUT = Path("-")


class SelectionRule(StrEnum):
    """Criteria by which one of the directions found is selected."""

    likelihood = "likelihood"
    divergence = "divergence"


# Options of each group. Their names are those of the parameters, with hyphens.
_reading = partial(typer.Option, rich_help_panel=DATA)
_column = partial(typer.Option, rich_help_panel=COLUMNS)
_model = partial(typer.Option, rich_help_panel=MODEL)
_search = partial(typer.Option, rich_help_panel=SEARCH)

Seed = Annotated[int, _search(min=0, max=2**32 - 1, help="Random seed.")]
Target = Annotated[
    str | None, _column("--target", "-t", help="Column with the classes; not needed for libSVM.", metavar="NAME")
]
Weights = Annotated[str | None, _column(help="Column with the sample weights.", metavar="NAME")]
TableFile = Annotated[
    str, typer.Argument(help="CSV, TSV, Parquet, Excel or libSVM file, may be compressed; - is standard input.")
]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="File to write; standard output if not given.", show_default=False)
]
ModelFile = Annotated[Path, typer.Argument(help="Model file written by `melc fit`.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite an existing output file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress, notes or summary.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@dataclass(frozen=True)
class CsvOptions:
    """How a CSV file is read."""

    delimiter: Annotated[
        str | None, _reading(help="Character between the columns; detected if not given.", metavar="CHARACTER")
    ] = None
    encoding: Annotated[
        str | None, _reading(help="Encoding of the text, such as cp1252 or utf-16; utf-8 if not given.", metavar="NAME")
    ] = None
    decimal: Annotated[
        str | None, _reading(help="Decimal mark of the numbers; detected if not given.", metavar="CHARACTER")
    ] = None
    thousands: Annotated[
        str | None,
        _reading(help="Mark between thousands, as in 1,234,567; detected if not given.", metavar="CHARACTER"),
    ] = None
    date_format: Annotated[
        str | None, _reading(help="How dates are written, such as %d.%m.%Y; detected if not given.", metavar="FORMAT")
    ] = None
    na_values: Annotated[
        list[str] | None,
        _reading(help="Text for a missing value, besides NA and such; may be repeated.", metavar="TEXT"),
    ] = None
    skip_rows: Annotated[
        int | None, _reading(min=0, help="Lines to skip before the line with the names of the columns.")
    ] = None


@dataclass(frozen=True)
class TableOptions(CsvOptions):
    """How a table in any format is read."""

    format: Annotated[TableFormat, _reading(help="Format of DATA: csv, tsv, parquet or libsvm; auto detects it.")] = (
        TableFormat.auto
    )


@dataclass(frozen=True)
class ColumnOptions:
    """Which columns are used."""

    target: Target = None
    drop: Annotated[
        list[str] | None, _column(help="Columns to leave out, such as id,name; may be repeated.", metavar="NAMES")
    ] = None
    keep_only: Annotated[
        list[str] | None, _column(help="Columns to use, and no others; may be repeated.", metavar="NAMES")
    ] = None

    def roles(self) -> Any:
        """Return the :class:`melc.tables.Roles` that the options describe."""
        from melc.tables.roles import Roles

        return Roles(self.target, drop=tuple(self.drop or ()), keep_only=tuple(self.keep_only or ()))


@dataclass(frozen=True)
class RoleOptions(ColumnOptions):
    """What the columns are used for in a fit."""

    weights: Weights = None
    positive: Annotated[
        str | None, _column(help="Class to separate from all other classes together.", metavar="CLASS")
    ] = None
    categorical: Annotated[
        list[str] | None,
        _column(help="Column of numbers that are codes, not quantities; may be repeated.", metavar="NAME"),
    ] = None

    def roles(self) -> Any:
        """Return the :class:`melc.tables.Roles` that the options describe."""
        codes = tuple(self.categorical or ())
        return replace(super().roles(), weights=self.weights, positive=self.positive, categorical=codes)


@dataclass(frozen=True)
class ModelOptions:
    """The kind of model and how it is fitted; None stands for the default of the model."""

    lines: Annotated[
        str | None,
        _model(help="Fit an additive model of at most this many lines for each class, or auto, instead of one line."),
    ] = None
    gamma: Annotated[
        str | None,
        _model(help="Kernel width relative to the usual one, less for more detail; auto, or 1 if not given."),
    ] = None
    selection: Annotated[
        SelectionRule | None,
        _search(help="What chooses among the directions found: divergence, or likelihood if not given."),
    ] = None
    bandwidth: Annotated[
        str | None, _model(help="Kernel width before gamma: silverman, pooled, a number, or robust if not given.")
    ] = None
    shrinkage: Annotated[str | None, _model(help="For few rows with many features: auto, or a number from 0 to 1.")] = (
        None
    )
    method: Annotated[
        str | None,
        _search(help="How the sums over pairs of rows are computed: exact, discard, bin, or moments if not given."),
    ] = None
    n_init: Annotated[
        int | None, _search(min=1, max=10**6, help="Number of starts of the search; 10 if not given.")
    ] = None
    max_iter: Annotated[
        int | None, _search(min=1, max=10**6, help="Maximum number of iterations of a run; 200 if not given.")
    ] = None
    tol: Annotated[float | None, _search(min=0, help="Gradient at which a run has converged; 1e-05 if not given.")] = (
        None
    )
    priors: Annotated[
        str | None, _model(help="Shares of the classes, as no=0.9,yes=0.1, or empirical; equal if not given.")
    ] = None
    seed: Seed = 0
