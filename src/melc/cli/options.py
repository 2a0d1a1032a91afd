"""Arguments and options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class TableFormat(StrEnum):
    auto = "auto"
    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    libsvm = "libsvm"


# As an output file: standard output.
STANDARD_OUTPUT = Path("-")


class Imputation(StrEnum):
    median = "median"


class Chosen(StrEnum):
    """By what a direction is chosen."""

    likelihood = "likelihood"
    divergence = "divergence"


Data = Annotated[str, typer.Argument(help="CSV, TSV, Parquet or libSVM file, may be compressed; - is standard input.")]
ModelFile = Annotated[Path, typer.Argument(help="Model file written by `melc fit`.")]
Target = Annotated[str | None, typer.Option("--target", "-t", help="Column with the classes; not needed for libSVM.")]
Format = Annotated[TableFormat, typer.Option("--format", help="Format of DATA; auto detects it from content and name.")]
Delimiter = Annotated[str | None, typer.Option(help="Character between the columns of a CSV file; default: found out.")]
Encoding = Annotated[str, typer.Option(help="Encoding of a CSV file, such as latin-1 or utf-16.")]
Decimal = Annotated[str, typer.Option(help="Decimal point of the numbers in a CSV file.")]
MissingValues = Annotated[
    list[str] | None,
    typer.Option("--na-values", help="Text in a CSV file for a missing value, besides NA and such; may be repeated."),
]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")]
Weights = Annotated[str | None, typer.Option(help="Column with the sample weights.")]
Positive = Annotated[str | None, typer.Option(help="Class to separate from all other classes together.")]
Impute = Annotated[
    Imputation | None,
    typer.Option(help="Fill missing values: numbers with the median, text with the most frequent value."),
]
Lines = Annotated[
    str | None,
    typer.Option(help="Fit an additive model of at most this many lines for each class, or auto, instead of one line."),
]
Gamma = Annotated[
    str | None,
    typer.Option(help="Kernel width relative to the usual one, less for more detail; or auto.", show_default="1"),
]
Selection = Annotated[
    Chosen | None,
    typer.Option("--selection", help="What chooses among the directions found.", show_default="likelihood"),
]
Bandwidth = Annotated[
    str | None,
    typer.Option(help="Kernel width before gamma: robust, silverman, pooled or a number.", show_default="robust"),
]
Shrinkage = Annotated[
    str | None,
    typer.Option("--shrinkage", help="For few rows with many features: auto, or a number from 0 to 1."),
]
SumMethod = Annotated[
    str | None,
    typer.Option(
        "--method",
        help="How the sums over pairs of rows are computed: moments, exact, discard or bin.",
        show_default="moments",
    ),
]
Starts = Annotated[
    int | None, typer.Option("--n-init", min=1, max=10**6, help="Number of starts of the search.", show_default="10")
]
MaxIter = Annotated[
    int | None,
    typer.Option("--max-iter", min=1, max=10**6, help="Maximum number of iterations of a run.", show_default="200"),
]
Tolerance = Annotated[
    float | None, typer.Option("--tol", min=0, help="Gradient at which a run has converged.", show_default="1e-05")
]
Priors = Annotated[
    str | None,
    typer.Option(help="empirical, or numbers in the order of the classes; by default all classes count equally."),
]
MaxRows = Annotated[
    int, typer.Option(min=20, help="Most rows in cross-validation and resamples; of more, a random sample.")
]
Resamples = Annotated[
    int | None,
    typer.Option(
        min=0, help="Resamples for intervals, 20 or more, 0 for none; default: 100, with over 500 features none."
    ),
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed.")]
Standardize = Annotated[
    bool,
    typer.Option("--standardize", help="Standardise the features; seldom needed, since units do not matter."),
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite an existing output file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress, notes or summary.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
