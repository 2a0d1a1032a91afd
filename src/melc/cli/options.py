"""Arguments and options that several commands share.

A group of options is a dataclass. A command with a parameter of that type has all options of the group.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
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


Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed.", rich_help_panel=SEARCH)]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        help="Column with the classes; not needed for libSVM.",
        metavar="NAME",
        rich_help_panel=COLUMNS,
    ),
]
Weights = Annotated[
    str | None, typer.Option(help="Column with the sample weights.", metavar="NAME", rich_help_panel=COLUMNS)
]
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
        str | None,
        typer.Option(
            help="Character between the columns; detected if not given.", metavar="CHARACTER", rich_help_panel=DATA
        ),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(
            help="Encoding of the text, such as cp1252 or utf-16; utf-8 if not given.",
            metavar="NAME",
            rich_help_panel=DATA,
        ),
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option(
            help="Decimal mark of the numbers; detected if not given.", metavar="CHARACTER", rich_help_panel=DATA
        ),
    ] = None
    thousands: Annotated[
        str | None,
        typer.Option(
            help="Mark between thousands, as in 1,234,567; detected if not given.",
            metavar="CHARACTER",
            rich_help_panel=DATA,
        ),
    ] = None
    date_format: Annotated[
        str | None,
        typer.Option(
            "--date-format",
            help="How dates are written, such as %d.%m.%Y; detected if not given.",
            metavar="FORMAT",
            rich_help_panel=DATA,
        ),
    ] = None
    na_values: Annotated[
        list[str] | None,
        typer.Option(
            "--na-values",
            help="Text for a missing value, besides NA and such; may be repeated.",
            metavar="TEXT",
            rich_help_panel=DATA,
        ),
    ] = None
    skip_rows: Annotated[
        int | None,
        typer.Option(
            "--skip-rows",
            min=0,
            help="Lines to skip before the line with the names of the columns.",
            rich_help_panel=DATA,
        ),
    ] = None


@dataclass(frozen=True)
class TableOptions(CsvOptions):
    """How a table in any format is read."""

    format: Annotated[
        TableFormat,
        typer.Option(
            "--format", help="Format of DATA: csv, tsv, parquet or libsvm; auto detects it.", rich_help_panel=DATA
        ),
    ] = TableFormat.auto


@dataclass(frozen=True)
class ColumnOptions:
    """Which columns are used."""

    target: Target = None
    drop: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to leave out, such as id,name; may be repeated.", metavar="NAMES", rich_help_panel=COLUMNS
        ),
    ] = None
    keep_only: Annotated[
        list[str] | None,
        typer.Option(
            "--keep-only",
            help="Columns to use, and no others; may be repeated.",
            metavar="NAMES",
            rich_help_panel=COLUMNS,
        ),
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
        str | None,
        typer.Option(
            help="Class to separate from all other classes together.", metavar="CLASS", rich_help_panel=COLUMNS
        ),
    ] = None
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of numbers that are codes, not quantities; may be repeated.",
            metavar="NAME",
            rich_help_panel=COLUMNS,
        ),
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
        typer.Option(
            help="Fit an additive model of at most this many lines for each class, or auto, instead of one line.",
            rich_help_panel=MODEL,
        ),
    ] = None
    gamma: Annotated[
        str | None,
        typer.Option(
            help="Kernel width relative to the usual one, less for more detail; auto, or 1 if not given.",
            rich_help_panel=MODEL,
        ),
    ] = None
    selection: Annotated[
        SelectionRule | None,
        typer.Option(
            "--selection",
            help="What chooses among the directions found: divergence, or likelihood if not given.",
            rich_help_panel=SEARCH,
        ),
    ] = None
    bandwidth: Annotated[
        str | None,
        typer.Option(
            help="Kernel width before gamma: silverman, pooled, a number, or robust if not given.",
            rich_help_panel=MODEL,
        ),
    ] = None
    shrinkage: Annotated[
        str | None,
        typer.Option(
            "--shrinkage", help="For few rows with many features: auto, or a number from 0 to 1.", rich_help_panel=MODEL
        ),
    ] = None
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="How the sums over pairs of rows are computed: exact, discard, bin, or moments if not given.",
            rich_help_panel=SEARCH,
        ),
    ] = None
    n_init: Annotated[
        int | None,
        typer.Option(
            "--n-init",
            min=1,
            max=10**6,
            help="Number of starts of the search; 10 if not given.",
            rich_help_panel=SEARCH,
        ),
    ] = None
    max_iter: Annotated[
        int | None,
        typer.Option(
            "--max-iter",
            min=1,
            max=10**6,
            help="Maximum number of iterations of a run; 200 if not given.",
            rich_help_panel=SEARCH,
        ),
    ] = None
    tol: Annotated[
        float | None,
        typer.Option(
            "--tol", min=0, help="Gradient at which a run has converged; 1e-05 if not given.", rich_help_panel=SEARCH
        ),
    ] = None
    priors: Annotated[
        str | None,
        typer.Option(
            help="Shares of the classes, as no=0.9,yes=0.1, or empirical; equal if not given.",
            rich_help_panel=MODEL,
        ),
    ] = None
    seed: Seed = 0
