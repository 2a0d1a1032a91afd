"""Arguments and options that several commands share.

A group of options is a dataclass. A command with a parameter of that type has all options of the group.
"""

from dataclasses import dataclass
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


# As an output file: standard output.
STANDARD_OUTPUT = Path("-")


class SelectionRule(StrEnum):
    """Criteria by which one of the directions found is selected."""

    likelihood = "likelihood"
    divergence = "divergence"


Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed.")]
Target = Annotated[str | None, typer.Option("--target", "-t", help="Column with the classes; not needed for libSVM.")]
TableFile = Annotated[
    str, typer.Argument(help="CSV, TSV, Parquet or libSVM file, may be compressed; - is standard input.")
]
Output = Annotated[Path, typer.Option("--output", "-o", help="File to write; - is standard output.")]
ModelFile = Annotated[Path, typer.Argument(help="Model file written by `melc fit`.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite an existing output file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress, notes or summary.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@dataclass(frozen=True)
class CsvOptions:
    """How a CSV file is read."""

    delimiter: Annotated[
        str | None, typer.Option(help="Character between the columns of a CSV file; default: found out.")
    ] = None
    encoding: Annotated[str, typer.Option(help="Encoding of a CSV file, such as latin-1 or utf-16.")] = "utf-8"
    decimal: Annotated[str, typer.Option(help="Decimal point of the numbers in a CSV file.")] = "."
    na_values: Annotated[
        list[str] | None,
        typer.Option(
            "--na-values", help="Text in a CSV file for a missing value, besides NA and such; may be repeated."
        ),
    ] = None


@dataclass(frozen=True)
class TableOptions(CsvOptions):
    """How a table in any format is read."""

    format: Annotated[
        TableFormat, typer.Option("--format", help="Format of DATA; auto detects it from content and name.")
    ] = TableFormat.auto


@dataclass(frozen=True)
class RoleOptions:
    """What the columns are used for in a fit."""

    target: Target = None
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")] = None
    weights: Annotated[str | None, typer.Option(help="Column with the sample weights.")] = None
    positive: Annotated[str | None, typer.Option(help="Class to separate from all other classes together.")] = None
    categorical: Annotated[
        list[str] | None, typer.Option(help="Column of numbers that are codes, not quantities; may be repeated.")
    ] = None

    def roles(self) -> Any:
        """Return the :class:`melc.tables.Roles` that the options describe."""
        from melc.tables.roles import Roles

        columns = tuple(self.drop or ()), self.weights, self.positive, tuple(self.categorical or ())
        return Roles(self.target, *columns)


@dataclass(frozen=True)
class ModelOptions:
    """The kind of model and how it is fitted; None stands for the default of the model."""

    lines: Annotated[
        str | None,
        typer.Option(
            help="Fit an additive model of at most this many lines for each class, or auto, instead of one line."
        ),
    ] = None
    gamma: Annotated[
        str | None,
        typer.Option(help="Kernel width relative to the usual one, less for more detail; or auto.", show_default="1"),
    ] = None
    selection: Annotated[
        SelectionRule | None,
        typer.Option("--selection", help="What chooses among the directions found.", show_default="likelihood"),
    ] = None
    bandwidth: Annotated[
        str | None,
        typer.Option(help="Kernel width before gamma: robust, silverman, pooled or a number.", show_default="robust"),
    ] = None
    shrinkage: Annotated[
        str | None,
        typer.Option("--shrinkage", help="For few rows with many features: auto, or a number from 0 to 1."),
    ] = None
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="How the sums over pairs of rows are computed: moments, exact, discard or bin.",
            show_default="moments",
        ),
    ] = None
    n_init: Annotated[
        int | None,
        typer.Option("--n-init", min=1, max=10**6, help="Number of starts of the search.", show_default="10"),
    ] = None
    max_iter: Annotated[
        int | None,
        typer.Option("--max-iter", min=1, max=10**6, help="Maximum number of iterations of a run.", show_default="200"),
    ] = None
    tol: Annotated[
        float | None, typer.Option("--tol", min=0, help="Gradient at which a run has converged.", show_default="1e-05")
    ] = None
    priors: Annotated[
        str | None,
        typer.Option(help="empirical, or numbers in the order of the classes; by default all classes count equally."),
    ] = None
    seed: Seed = 0
