"""The commands of ``melc``, each a few calls of the library."""

import json
import sys
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from melc import __version__
from melc.console import Reporter, guarded

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Multithreshold Entropy Linear Classifier: from a table to predictions and a picture.",
)


class TableFormat(StrEnum):
    auto = "auto"
    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    libsvm = "libsvm"


class Method(StrEnum):
    moments = "moments"
    exact = "exact"
    discard = "discard"
    bin = "bin"


class RuleFormat(StrEnum):
    text = "text"
    json = "json"
    sql = "sql"
    onnx = "onnx"


class Imputation(StrEnum):
    median = "median"


Data = Annotated[str, typer.Argument(help="CSV, TSV, Parquet or libSVM text, also gzipped; - is standard input.")]
ModelFile = Annotated[Path, typer.Argument(help="A model that `melc fit` wrote.")]
Target = Annotated[str | None, typer.Option("--target", "-t", help="Column with the classes (libSVM has its own).")]
Format = Annotated[TableFormat, typer.Option("--format", help="Format of DATA; by its content if not given.")]
Delimiter = Annotated[str | None, typer.Option(help="Between the columns of a CSV; a comma if not given.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")]
Weights = Annotated[str | None, typer.Option(help="Column with the weights of the rows.")]
Positive = Annotated[str | None, typer.Option(help="Class to tell from all others together.")]
Impute = Annotated[Imputation | None, typer.Option(help="Fill gaps: median of numbers, most frequent text.")]
Gamma = Annotated[float, typer.Option(min=0, help="Kernel width over Silverman's: less for more detail.")]
ShrinkageOption = Annotated[
    str | None, typer.Option("--shrinkage", help="For few rows of many features: auto, or a number from 0 to 1.")
]
MethodOption = Annotated[Method, typer.Option(help="How sums over pairs of rows are computed.")]
Starts = Annotated[int, typer.Option("--n-init", min=1, help="Number of starts.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Standardize = Annotated[bool, typer.Option("--standardize", help="Search among standardised features.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite what is there.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes, no summary.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@app.callback(invoke_without_command=True)
def version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    if version:
        typer.echo(f"melc {__version__}")
        raise typer.Exit


@app.command()
@guarded
def fit(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the model goes.")],
    target: Target = None,
    gamma: Gamma = 1.0,
    shrinkage: ShrinkageOption = None,
    method: MethodOption = Method.moments,
    n_init: Starts = 10,
    drop: Drop = None,
    weights: Weights = None,
    positive: Positive = None,
    standardize: Standardize = False,
    impute: Impute = None,
    cv: Annotated[bool, typer.Option("--cv/--no-cv", help="Cross-validate, in five folds.")] = True,
    seed: Seed = 0,
    format: Format = TableFormat.auto,
    delimiter: Delimiter = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit a model to a table and keep it in a file.

    Columns of texts are one-hot encoded, and the encoding is kept with the model.

    Example: [bold]melc fit patients.csv --target outcome --drop id -o model.json[/bold]
    """
    from melc.classifier import MELC
    from melc.progress import counting_runs
    from melc.tables.fit import Roles, fit_table, problem_of

    report = Reporter(quiet)
    _check_free(output, force)
    model = MELC(gamma=gamma, method=method.value, n_init=n_init, shrinkage=_shrinkage(shrinkage), random_state=seed)
    roles = Roles(target, tuple(drop or ()), weights, positive, impute is not None)
    with report.progress(f"reading {data}"):
        problem, name = problem_of(_read(data, format, delimiter), roles)
    n_classes = len(set(problem.labels.tolist()))
    runs = n_init * (n_classes if n_classes > 2 else 1)
    with (
        report.progress(f"fitting {len(problem.labels)} rows", runs) as step,
        report.warnings_as_notes(),
        counting_runs(model, step),
    ):
        fitted = fit_table(problem, name, model, standardize=standardize)
    accuracy = _cross_validated(problem, model, seed, report) if cv else None
    _write(output, fitted.to_json())
    _print_fit(fitted, problem, accuracy, output, as_json, quiet)


@app.command()
@guarded
def predict(
    model: ModelFile,
    data: Data,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A CSV; standard output if not given.")] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of every class.")] = False,
    format: Format = TableFormat.auto,
    delimiter: Delimiter = None,
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Predict the class of every row of a table, in its order. The table may be larger than memory.

    Columns that the model does not need are ignored.

    Example: [bold]melc predict model.json new.csv --proba -o predictions.csv[/bold]
    """
    from melc.files import replacing
    from melc.tables.predictions import write_predictions

    report = Reporter(quiet)
    fitted = _load(model)
    if output is not None:
        _check_free(output, force)
    source = _source(data, format, delimiter)
    with report.progress(f"predicting {data}"), replacing(output) if output else nullcontext() as draft:
        if draft is None:
            unseen = write_predictions(fitted, source, proba, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        else:
            with open(draft, "wb") as stream:
                unseen = write_predictions(fitted, source, proba, stream)
    for name, count in unseen.items():
        report.note(f"{count} values of {name!r} are new to the model; they count as its most frequent text")


@app.command()
@guarded
def explain(
    model: ModelFile,
    format: Annotated[RuleFormat, typer.Option("--format", help="What to write.")] = RuleFormat.text,
    digits: Annotated[int, typer.Option(min=1, help="Significant digits of the text; 17 are all.")] = 5,
    odds: Annotated[bool, typer.Option("--odds", help="Of several classes, also what their odds are made of.")] = False,
    table: Annotated[str, typer.Option(help="Name of the table in SQL.")] = "data",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; standard output if not given.")] = None,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Tell the rule of a model in words and intervals, or as JSON, SQL or ONNX.

    Example: [bold]melc explain model.json --format sql --table patients[/bold]
    """
    fitted = _load(model)
    if output is not None:
        _check_free(output, force)
    content = _explained(fitted, format, digits, odds, table)
    if output is not None:
        _write(output, content)
    elif isinstance(content, bytes):
        if sys.stdout.isatty():
            raise ValueError("ONNX is binary: name a file with -o, or send the output to one.")
        sys.stdout.buffer.write(content)
    else:
        typer.echo(content)


@app.command()
@guarded
def plot(
    model: ModelFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="A .png, .svg, .pdf or .html.")],
    data: Annotated[
        str | None, typer.Argument(help="Rows to show along the projection; with classes, if there.")
    ] = None,
    label: Annotated[str | None, typer.Option("--class", help="Of several classes, the one to show.")] = None,
    format: Format = TableFormat.auto,
    delimiter: Delimiter = None,
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Draw the densities of the classes along the projection, with thresholds and rows.

    Example: [bold]melc plot model.json patients.csv -o picture.png[/bold]
    """
    from melc.tables.pictures import draw

    fitted = _load(model)
    _check_free(output, force)
    with Reporter(quiet).progress(f"drawing {output}"):
        table = None if data is None else _read(data, format, delimiter)
        draw(fitted, table, output, label)


@app.command()
@guarded
def evaluate(
    data: Data,
    target: Target = None,
    cv: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 5,
    compare: Annotated[bool, typer.Option("--compare", help="Beside logistic regression, LDA and SVMs.")] = False,
    gamma: Gamma = 1.0,
    shrinkage: ShrinkageOption = None,
    method: MethodOption = Method.moments,
    n_init: Starts = 10,
    drop: Drop = None,
    weights: Weights = None,
    positive: Positive = None,
    impute: Impute = None,
    seed: Seed = 0,
    format: Format = TableFormat.auto,
    delimiter: Delimiter = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Cross-validate on a table: balanced accuracy, MCC and AUC with their spread.

    Example: [bold]melc evaluate patients.csv --target outcome --compare[/bold]
    """
    from melc.classifier import MELC
    from melc.tables.assess import competitors, cross_validate, summarise
    from melc.tables.fit import Roles, problem_of

    report = Reporter(quiet)
    roles = Roles(target, tuple(drop or ()), weights, positive, impute is not None)
    problem, _ = problem_of(_read(data, format, delimiter), roles)
    wanted = _shrinkage(shrinkage)
    models = {"MELC": MELC(gamma=gamma, method=method.value, n_init=n_init, shrinkage=wanted, random_state=seed)}
    models |= competitors() if compare else {}
    scores = []
    with report.progress("cross-validation", cv * len(models)) as step, report.warnings_as_notes():
        for score in cross_validate(problem, models, n_folds=cv, seed=seed):
            scores.append(score)
            step()
    _print_scores(summarise(scores), cv, as_json)


@app.command()
@guarded
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the picture.")] = Path("melc-demo"),
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit two data sets, print a table beside logistic regression, save a picture.

    Example: [bold]melc demo[/bold]
    """
    from melc.demo import run

    with Reporter(quiet).progress("demonstration"):
        run(output, say=(lambda text: None) if quiet else typer.echo)


@app.command()
@guarded
def datasets(as_json: AsJson = False, debug: Debug = False) -> None:
    """List the paper's ten data sets and where they are.

    Example: [bold]melc datasets[/bold]
    """
    from melc.paper.datasets import list_datasets
    from melc.tables.summary import aligned

    found: list[dict[str, Any]] = [
        {
            "name": listing.entry.name,
            "rows": listing.entry.shape[0],
            "features": listing.entry.shape[1],
            "classes": listing.entry.class_counts,
            "at_hand": listing.at_hand,
            "where": listing.where,
            "source": listing.entry.source,
        }
        for listing in list_datasets()
    ]
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    rows = [("name", "rows", "features", "classes", "at hand")]
    for entry in found:
        classes = ", ".join(f"{label:+d}: {count}" for label, count in entry["classes"].items())
        at_hand = "yes" if entry["at_hand"] else "no"
        rows.append((entry["name"], str(entry["rows"]), str(entry["features"]), classes, at_hand))
    ends = ["source", *(f"{entry['source']} ({entry['where']})" for entry in found)]
    for line, end in zip(aligned(rows, indent="").splitlines(), ends, strict=True):
        typer.echo(f"{line}  {end}")


@app.command()
@guarded
def reproduce(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for records and report.")] = Path("melc-paper"),
    quick: Annotated[bool, typer.Option("--quick", help="A small part of everything, in two minutes.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Number of processes.")] = 2,
    report_only: Annotated[bool, typer.Option("--report-only", help="Run nothing, report on what is there.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run the paper's evaluation and write its report. Stopped at any moment, the same command goes on from there.

    Example: [bold]melc reproduce --quick[/bold]
    """
    from melc.paper.pipeline import reproduce as run

    report = Reporter(quiet)
    profile = "quick" if quick else "full"
    try:
        done = run(output, profile, n_jobs=jobs, report_only=report_only, show_progress=not quiet)
    except KeyboardInterrupt:
        report.note(f"what is finished is in {output / 'records'}; the same command goes on from there")
        raise
    for name, why in done.missing.items():
        report.note(f"missing data set {name}: {why}")
    if not quiet:
        for verdict in done.verdicts:
            typer.echo(f"{verdict.verdict}: {verdict.claim} — {verdict.measured}")
        typer.echo(f"{done.n_solved} cells run now. Report: {done.html}")


def _source(data: str, format: TableFormat, delimiter: str | None) -> Any:
    from melc.tables.read import Source

    mark = {r"\t": "\t", "tab": "\t"}.get(delimiter or "", delimiter)
    if mark is not None and len(mark) != 1:
        raise typer.BadParameter(f"{delimiter!r} is not one character.", param_hint="--delimiter")
    return Source(data, format.value, mark)


def _read(data: str, format: TableFormat, delimiter: str | None) -> Any:
    from melc.tables.read import read_table

    return read_table(_source(data, format, delimiter))


def _load(path: Path) -> Any:
    from melc.export.document import MOST_BYTES
    from melc.tables.model import table_model_from_json

    with open(path, "rb") as stream:
        content = stream.read(MOST_BYTES + 1)
    try:
        return table_model_from_json(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _check_free(path: Path, force: bool) -> None:
    """Refuse before any work what would fail or overwrite after it."""
    if path.exists() and not force:
        raise ValueError(f"{path} exists already; --force overwrites it.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.absolute().parent}.")


def _shrinkage(given: str | None) -> float | str | None:
    if given is None or given == "auto":
        return given
    try:
        number = float(given)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ValueError(f"--shrinkage {given} is neither auto nor a number from 0 to 1.")
    return number


def _write(path: Path, content: str | bytes) -> None:
    from melc.files import replacing

    with replacing(path) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


def _explained(fitted: Any, format: RuleFormat, digits: int, odds: bool, table: str) -> str | bytes:
    from melc.export.onnx_graph import to_onnx

    if format is RuleFormat.text:
        return str(fitted.to_text(digits=digits, odds=odds))
    if format is RuleFormat.json:
        return str(fitted.to_json(indent=2))
    if format is RuleFormat.sql:
        return str(fitted.to_sql(table))
    return bytes(to_onnx(fitted.model).SerializeToString())


def _cross_validated(problem: Any, model: Any, seed: int, report: Reporter) -> tuple[float, float, int] | None:
    """Mean and spread of the balanced accuracy, and the number of folds; None where a class is too small."""
    from melc.tables.assess import cross_validate, possible_folds, summarise

    n_folds = possible_folds(problem.labels, 5)
    if n_folds < 2:
        report.note("not cross-validated: a class has one row only")
        return None
    scores = []
    with report.progress("cross-validation", n_folds) as step, report.warnings_as_notes():
        for score in cross_validate(problem, {"MELC": model}, n_folds=n_folds, seed=seed):
            scores.append(score)
            step()
    summary = summarise(scores)[0]
    return summary.means[0], summary.spreads[0], n_folds


def _print_fit(
    fitted: Any, problem: Any, accuracy: tuple[float, float, int] | None, output: Path, as_json: bool, quiet: bool
) -> None:
    from melc.tables.summary import fit_summary, fit_text

    summary = fit_summary(fitted, problem, accuracy)
    if as_json:
        typer.echo(json.dumps(summary | {"model": str(output)}, indent=2, ensure_ascii=False))
    elif not quiet:
        typer.echo(fit_text(summary))
        typer.echo(f"The model is in {output}")


def _print_scores(summaries: list[Any], n_folds: int, as_json: bool) -> None:
    from melc.tables.assess import MEASURES
    from melc.tables.summary import aligned

    if as_json:
        found = {
            s.model: {m: {"mean": a, "spread": b} for m, a, b in zip(MEASURES, s.means, s.spreads, strict=True)}
            | {"fit_seconds": s.seconds}
            for s in summaries
        }
        typer.echo(json.dumps({"folds": n_folds, "models": found}, indent=2))
        return
    rows = [("", *MEASURES, "fit time")]
    for s in summaries:
        cells = [f"{a:.3f} ± {b:.3f}" for a, b in zip(s.means, s.spreads, strict=True)]
        rows.append((s.model, *cells, f"{s.seconds:.2f} s"))
    typer.echo(aligned(rows, indent=""))
    typer.echo(f"mean ± standard deviation over {n_folds} folds")
