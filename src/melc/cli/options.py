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
Gamma = Annotated[float, typer.Option(min=0, help="Kernel width relative to Silverman's rule; less for more detail.")]
Shrinkage = Annotated[
    str | None,
    typer.Option("--shrinkage", help="For few rows with many features: auto, or a number from 0 to 1."),
]
SumMethod = Annotated[
    str, typer.Option("--method", help="How the sums over pairs of rows are computed: moments, exact, discard or bin.")
]
Starts = Annotated[int, typer.Option("--n-init", min=1, help="Number of starts of the search.")]
MaxIter = Annotated[int, typer.Option("--max-iter", min=1, help="Maximum number of iterations of a run.")]
Tolerance = Annotated[float, typer.Option("--tol", min=0, help="Gradient at which a run has converged.")]
Priors = Annotated[
    str | None,
    typer.Option(help="empirical, or numbers in the order of the classes; by default all classes count equally."),
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Standardize = Annotated[bool, typer.Option("--standardize", help="Standardise the features during the search.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite an existing output file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress, notes or summary.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
