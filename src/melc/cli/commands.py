"""The commands of ``melc``. Each consists of a few calls of the library."""

from pathlib import Path
from typing import Annotated, Any

import typer

from melc import __version__
from melc.cli.console import Reporter, guarded
from melc.cli.files import (
    check_output,
    is_standard_output,
    load_model,
    read_data,
    table_source,
    write_binary,
    write_text,
    writing,
)
from melc.cli.formats import AS_TEXT, FORMATS, RuleFormat, Wanted
from melc.cli.options import (
    STANDARD_OUTPUT,
    AsJson,
    Data,
    Debug,
    Delimiter,
    Drop,
    Force,
    Format,
    Gamma,
    Impute,
    ModelFile,
    Positive,
    Quiet,
    Seed,
    Shrinkage,
    Standardize,
    Starts,
    SumMethod,
    TableFormat,
    Target,
    Weights,
)
from melc.cli.printing import print_datasets, print_fit, print_scores

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Multithreshold Entropy Linear Classifier: fit, apply, explain and plot models of tables in files.",
)


@app.callback(invoke_without_command=True)
def version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"melc {__version__}")
        raise typer.Exit


@app.command()
@guarded
def fit(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write; - is standard output.")],
    target: Target = None,
    gamma: Gamma = 1.0,
    shrinkage: Shrinkage = None,
    method: SumMethod = "moments",
    n_init: Starts = 10,
    drop: Drop = None,
    weights: Weights = None,
    positive: Positive = None,
    standardize: Standardize = False,
    impute: Impute = None,
    cv: Annotated[bool, typer.Option("--cv/--no-cv", help="Cross-validate with five folds.")] = True,
    seed: Seed = 0,
    format: Format = TableFormat.auto,
    delimiter: Delimiter = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit a model to a table and write it to a file.

    Text columns are one-hot encoded; the encoding is stored with the model.

    Example: [bold]melc fit patients.csv --target outcome --drop id -o model.json[/bold]
    """
    from melc.fit.progress import counting_runs
    from melc.tables.fit import Roles, fit_table, problem_of

    report = Reporter(quiet)
    check_output(output, force)
    if is_standard_output(output) and as_json:
        raise ValueError("-o - and --json would mix the model and its summary; write the model to a file.")
    model = _model(gamma, method, n_init, shrinkage, seed)
    roles = Roles(target, tuple(drop or ()), weights, positive, impute is not None)
    with report.progress(f"reading {data}"):
        problem, name = problem_of(read_data(data, format, delimiter), roles)
    n_classes = len(set(problem.labels.tolist()))
    n_runs = n_init * (n_classes if n_classes > 2 else 1)
    with (
        report.progress(f"fitting {len(problem.labels)} rows", n_runs) as step,
        report.warnings_as_notes(),
        counting_runs(model, step),
    ):
        fitted = fit_table(problem, name, model, standardize=standardize)
    accuracy = _cross_validated_accuracy(problem, model, seed, report) if cv else None
    write_text(output, fitted.to_json())
    print_fit(fitted, problem, accuracy, output, as_json, quiet)


@app.command()
@guarded
def predict(
    model: ModelFile,
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="CSV file to write; - is standard output.")
    ] = STANDARD_OUTPUT,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of every class.")] = False,
    format: Format = TableFormat.auto,
    delimiter: Delimiter = None,
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Predict the class of every row of a table, in the same order. The table may be larger than memory.

    Columns that the model does not use are ignored.

    Example: [bold]melc predict model.json new.csv --proba -o predictions.csv[/bold]
    """
    from melc.tables.predictions import write_predictions

    report = Reporter(quiet)
    fitted = load_model(model)
    check_output(output, force)
    source = table_source(data, format, delimiter)
    with report.progress(f"predicting {data}"), writing(output) as stream:
        unseen = write_predictions(fitted, source, proba, stream)
    for name, count in unseen.items():
        report.note(
            f"column {name!r}: {count} values do not occur in the training data; "
            "they are treated as the most frequent training value"
        )


@app.command()
@guarded
def explain(
    model: ModelFile,
    format: Annotated[RuleFormat, typer.Option("--format", help="Output format.")] = AS_TEXT,
    digits: Annotated[int, typer.Option(min=1, help="Significant digits in the text; 17 shows numbers in full.")] = 5,
    odds: Annotated[
        bool, typer.Option("--odds", help="With more than two classes, add the numbers and formulas of the odds.")
    ] = False,
    table: Annotated[str, typer.Option(help="Name of the table in the SQL query.")] = "data",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write; - is standard output.")
    ] = STANDARD_OUTPUT,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Print the rule of a model as text, JSON, SQL or ONNX.

    Example: [bold]melc explain model.json --format sql --table patients[/bold]
    """
    fitted = load_model(model)
    check_output(output, force)
    content = FORMATS[format.value](fitted, Wanted(digits, odds, table))
    if isinstance(content, bytes):
        write_binary(output, content, "ONNX")
    else:
        write_text(output, content)


@app.command()
@guarded
def plot(
    model: ModelFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="File to write: .png, .svg, .pdf or .html; - writes PNG to standard output."
        ),
    ],
    data: Annotated[
        str | None,
        typer.Argument(help="Rows to show along the projection, by class if the table has the target column."),
    ] = None,
    label: Annotated[str | None, typer.Option("--class", help="With more than two classes, the one to show.")] = None,
    format: Format = TableFormat.auto,
    delimiter: Delimiter = None,
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Plot the class densities along the projection, with the thresholds and optionally the rows of a table.

    Example: [bold]melc plot model.json patients.csv -o picture.png[/bold]
    """
    from melc.tables.pictures import draw, ending_of

    fitted = load_model(model)
    check_output(output, force)
    ending = ".png" if is_standard_output(output) else ending_of(output)
    with Reporter(quiet).progress(f"drawing {output}"):
        table = None if data is None else read_data(data, format, delimiter)
        picture = draw(fitted, table, ending, title=output.stem, label=label)
    write_binary(output, picture, "A picture")


@app.command()
@guarded
def evaluate(
    data: Data,
    target: Target = None,
    cv: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 5,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also evaluate logistic regression, LDA, a linear and an RBF SVM.")
    ] = False,
    gamma: Gamma = 1.0,
    shrinkage: Shrinkage = None,
    method: SumMethod = "moments",
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
    """Cross-validate on a table: balanced accuracy, MCC and AUC, mean and standard deviation.

    Example: [bold]melc evaluate patients.csv --target outcome --compare[/bold]
    """
    from melc.tables.assess import competitors, summarise
    from melc.tables.fit import Roles, problem_of

    report = Reporter(quiet)
    model = _model(gamma, method, n_init, shrinkage, seed)
    roles = Roles(target, tuple(drop or ()), weights, positive, impute is not None)
    problem, _ = problem_of(read_data(data, format, delimiter), roles)
    models = {"MELC": model, **(competitors() if compare else {})}
    print_scores(summarise(_fold_scores(problem, models, cv, seed, report)), cv, as_json)


@app.command()
@guarded
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the picture.")] = Path("melc-demo"),
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit two data sets, compare with logistic regression, and save a picture.

    Example: [bold]melc demo[/bold]
    """
    from melc.cli.demo import run

    with Reporter(quiet).progress("demonstration"):
        run(output, say=(lambda text: None) if quiet else typer.echo)


@app.command()
@guarded
def datasets(as_json: AsJson = False, debug: Debug = False) -> None:
    """List the paper's ten data sets and where each is stored.

    Example: [bold]melc datasets[/bold]
    """
    from melc.paper.datasets import list_datasets

    print_datasets(list_datasets(), as_json)


@app.command()
@guarded
def reproduce(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for records and report.")] = Path("melc-paper"),
    quick: Annotated[bool, typer.Option("--quick", help="Run a small part of everything, about two minutes.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Number of processes.")] = 2,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Run nothing; write the report from existing records.")
    ] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run the paper's evaluation and write a report. If interrupted, run the same command again to continue.

    Example: [bold]melc reproduce --quick[/bold]
    """
    from melc.paper.pipeline import reproduce as run

    report = Reporter(quiet)
    profile = "quick" if quick else "full"
    try:
        done = run(output, profile, n_jobs=jobs, report_only=report_only, show_progress=not quiet)
    except KeyboardInterrupt:
        report.note(f"finished results are in {output / 'records'}; run the same command again to continue")
        raise
    for name, why in done.missing.items():
        report.note(f"missing data set {name}: {why}")
    if not quiet:
        for verdict in done.verdicts:
            typer.echo(f"{verdict.verdict}: {verdict.claim} — {verdict.measured}")
        typer.echo(f"{done.n_solved} cells run now. Report: {done.html}")


def _model(gamma: float, method: str, n_init: int, shrinkage: str | None, seed: int) -> Any:
    """Return an unfitted model; options that it would refuse are refused here, before any work."""
    from melc.classifier import MELC
    from melc.objective import METHODS

    if method not in METHODS:
        raise typer.BadParameter(f"{method!r} is not one of {', '.join(METHODS)}.", param_hint="--method")
    return MELC(gamma=gamma, method=method, n_init=n_init, shrinkage=_shrinkage(shrinkage), random_state=seed)


def _shrinkage(given: str | None) -> float | str | None:
    """Return the value of ``--shrinkage`` as ``MELC`` takes it."""
    if given is None or given == "auto":
        return given
    try:
        number = float(given)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ValueError(f"--shrinkage must be auto or a number from 0 to 1; got {given}.")
    return number


def _cross_validated_accuracy(problem: Any, model: Any, seed: int, report: Reporter) -> tuple[float, float, int] | None:
    """Return (mean, standard deviation, number of folds) of the balanced accuracy; None if a class has one row."""
    from melc.tables.assess import possible_folds, summarise

    n_folds = possible_folds(problem.labels, 5)
    if n_folds < 2:
        report.note("no cross-validation: a class has only one row")
        return None
    summary = summarise(_fold_scores(problem, {"MELC": model}, n_folds, seed, report))[0]
    return summary.means[0], summary.spreads[0], n_folds


def _fold_scores(problem: Any, models: dict[str, Any], n_folds: int, seed: int, report: Reporter) -> list[Any]:
    """Return the scores of every model on every fold, with a progress bar."""
    from melc.tables.assess import cross_validate

    scores = []
    with report.progress("cross-validation", n_folds * len(models)) as step, report.warnings_as_notes():
        for score in cross_validate(problem, models, n_folds=n_folds, seed=seed):
            scores.append(score)
            step()
    return scores
