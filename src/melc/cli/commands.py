"""The commands of ``melc``. Each consists of a few calls of the library."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from melc import __version__
from melc.cli.builtin import datasets, demo, reproduce
from melc.cli.console import Reporter, guarded
from melc.cli.files import (
    check_output,
    is_standard_output,
    load_model,
    table_source,
    write_binary,
    write_text,
    writing,
)
from melc.cli.fitting import (
    check_no_fitting_options,
    compared_models,
    cross_validated_accuracy,
    fold_scores,
    n_steps,
    unfitted_model,
)
from melc.cli.formats import AS_TEXT, FORMATS, Details, RuleFormat, explained
from melc.cli.options import (
    STANDARD_OUTPUT,
    AsJson,
    Bandwidth,
    Data,
    Debug,
    Decimal,
    Delimiter,
    Drop,
    Encoding,
    Force,
    Format,
    Gamma,
    Impute,
    Lines,
    MaxIter,
    MaxRows,
    MissingValues,
    ModelFile,
    Positive,
    Priors,
    Quiet,
    Resamples,
    Seed,
    Selection,
    Shrinkage,
    Standardize,
    Starts,
    SumMethod,
    TableFormat,
    Target,
    Tolerance,
    Weights,
)
from melc.cli.printing import print_fit, print_score, print_scores

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
    lines: Lines = None,
    gamma: Gamma = None,
    selection: Selection = None,
    bandwidth: Bandwidth = None,
    shrinkage: Shrinkage = None,
    method: SumMethod = None,
    n_init: Starts = None,
    max_iter: MaxIter = None,
    tol: Tolerance = None,
    priors: Priors = None,
    drop: Drop = None,
    weights: Weights = None,
    positive: Positive = None,
    standardize: Standardize = False,
    impute: Impute = None,
    cv: Annotated[bool, typer.Option("--cv/--no-cv", help="Cross-validate with five folds.")] = True,
    seed: Seed = 0,
    format: Format = TableFormat.auto,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
    na_values: MissingValues = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit a model to a table and write it to a file.

    Text columns are one-hot encoded; the encoding is stored with the model.

    Example: [bold]melc fit patients.csv --target outcome --drop id -o model.json[/bold]

    Example: [bold]melc fit patients.csv --target outcome --lines 8 -o model.json[/bold]
    """
    from melc.fit.progress import counting_runs
    from melc.tables.fit import Roles, fit_table
    from melc.tables.large import open_problem
    from melc.tables.summary import fit_summary

    report = Reporter(quiet)
    check_output(output, force)
    if is_standard_output(output) and as_json:
        raise ValueError("-o - and --json would mix the model and its summary; write the model to a file.")
    search = {"method": method, "n_init": n_init, "max_iter": max_iter, "tol": tol, "shrinkage": shrinkage}
    choices = {"gamma": gamma, "selection": selection, "bandwidth": bandwidth, "priors": priors}
    model = unfitted_model(lines, seed, **search, **choices)
    source = table_source(data, format, delimiter, encoding, decimal, na_values)
    roles = Roles(target, tuple(drop or ()), weights, positive, impute is not None)
    with ExitStack() as stack:
        with report.progress(f"reading {data}"), report.warnings_as_notes():
            problem, name = stack.enter_context(open_problem(source, roles))
        n_rows, n_classes = sum(problem.class_counts.values()), len(problem.class_counts)
        with (
            report.progress(f"fitting {n_rows} rows", n_steps(model, n_classes)) as step,
            report.warnings_as_notes(),
            counting_runs(model, step),
        ):
            fitted = fit_table(problem, name, model, standardize=standardize)
        accuracy = cross_validated_accuracy(problem, model, seed, report) if cv else None
        summary = fit_summary(fitted, problem, accuracy)
    write_text(output, fitted.to_json())
    print_fit(summary, output, as_json, quiet)


@app.command()
@guarded
def predict(
    model: ModelFile,
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write; - is standard output.")
    ] = STANDARD_OUTPUT,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of every class.")] = False,
    keep: Annotated[list[str] | None, typer.Option(help="Column of DATA to carry through; may be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON: a list with one object per row.")] = False,
    format: Format = TableFormat.auto,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
    na_values: MissingValues = None,
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Predict the class of every row of a table, in the same order. The table may be larger than memory.

    Columns that the model does not use are ignored, unless they are named with --keep.

    Example: [bold]melc predict model.json new.csv --keep id --proba -o predictions.csv[/bold]
    """
    from melc.tables.predictions import Wanted, write_predictions

    report = Reporter(quiet)
    fitted = load_model(model)
    check_output(output, force)
    source = table_source(data, format, delimiter, encoding, decimal, na_values)
    wanted = Wanted(proba, tuple(keep or ()), as_json)
    with report.progress(f"predicting {data}"), report.warnings_as_notes(), writing(output) as stream:
        unseen = write_predictions(fitted, source, wanted, stream)
    report.note_unseen(unseen)


@app.command()
@guarded
def explain(
    model: ModelFile,
    data: Annotated[
        str | None,
        typer.Argument(help="Table whose first rows are explained instead of the rule; - is standard input."),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Number of rows of DATA that are explained.")] = 5,
    format: Annotated[RuleFormat, typer.Option("--format", help="Output format.")] = AS_TEXT,
    digits: Annotated[int, typer.Option(min=1, help="Significant digits in the text; 17 shows numbers in full.")] = 5,
    odds: Annotated[
        bool,
        typer.Option(
            "--odds", help="Add what the odds are computed from to the text, or the log-odds to the SQL query."
        ),
    ] = False,
    table: Annotated[str, typer.Option(help="Name of the table in the SQL query.")] = "data",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write; - is standard output.")
    ] = STANDARD_OUTPUT,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
    na_values: MissingValues = None,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Print the rule of a model as text, JSON, SQL or ONNX, or explain rows of a table.

    For a row: the part of each feature in its log-odds, and the smallest change of its numbers that changes the class.

    Example: [bold]melc explain model.json --format sql --table patients[/bold]

    Example: [bold]melc explain model.json patients.csv --rows 3[/bold]
    """
    fitted = load_model(model)
    check_output(output, force)
    if data is not None:
        source = table_source(data, TableFormat.auto, delimiter, encoding, decimal, na_values)
        write_text(output, explained(fitted, source, rows, format))
        return
    content = FORMATS[format.value](fitted, Details(digits, odds, table))
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
        typer.Argument(help="Rows to show along the lines, by class if the table has the target column."),
    ] = None,
    label: Annotated[str | None, typer.Option("--class", help="Of more than two classes, show only this one.")] = None,
    format: Format = TableFormat.auto,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
    na_values: MissingValues = None,
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Plot the class densities along the line of a model with its thresholds, and optionally the rows of a table.

    If the lines of the model add up, plot what each of them adds.

    Example: [bold]melc plot model.json patients.csv -o picture.png[/bold]
    """
    from melc.tables.pictures import draw, ending_of

    fitted = load_model(model)
    check_output(output, force)
    ending = ".png" if is_standard_output(output) else ending_of(output)
    report = Reporter(quiet)
    with report.progress(f"drawing {output}"), report.warnings_as_notes():
        source = None if data is None else table_source(data, format, delimiter, encoding, decimal, na_values)
        picture = draw(fitted, source, ending, title=output.stem, label=label)
    write_binary(output, picture, "A picture")


@app.command()
@guarded
def report(
    model: ModelFile,
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write; - is standard output.")],
    target: Target = None,
    title: Annotated[str | None, typer.Option(help="Title of the page; default: the target.")] = None,
    resamples: Resamples = None,
    cv: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 5,
    max_rows: MaxRows = 10_000,
    rows: Annotated[int, typer.Option(min=0, help="Rows of DATA to put on the page, to choose from.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Number of processes.")] = 1,
    seed: Seed = 0,
    format: Format = TableFormat.auto,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
    na_values: MissingValues = None,
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a page about a model: one HTML file that works offline, with no row of the data unless asked for.

    It has densities with thresholds that can be moved, a form to try rows, weights with intervals, scores and the rule.

    Example: [bold]melc report model.json patients.csv -o report.html[/bold]
    """
    from melc.report.page import check_options
    from melc.tables.report import STEPS, open_rows, table_report

    check_options(resamples or 0, cv, max_rows, rows)
    fitted = load_model(model)
    check_output(output, force)
    reporter = Reporter(quiet)
    source = table_source(data, format, delimiter, encoding, decimal, na_values)
    options = {"n_resamples": resamples, "cv": cv, "seed": seed, "n_jobs": jobs, "rows": rows}
    with ExitStack() as stack:
        with reporter.progress(f"reading {data}"), reporter.warnings_as_notes():
            table = stack.enter_context(open_rows(fitted, source, target))
        with reporter.progress(f"writing {output}", STEPS) as step, reporter.warnings_as_notes():
            page = table_report(fitted, table, title, lambda _: step(), max_rows=max_rows, **options)
    write_text(output, page)


@app.command()
@guarded
def evaluate(
    context: typer.Context,
    data: Data,
    target: Target = None,
    fitted: Annotated[
        Path | None, typer.Option("--model", help="Score this fitted model on the table instead of cross-validating.")
    ] = None,
    cv: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 5,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Also evaluate MELC or an additive model, logistic regression, LDA and SVMs."),
    ] = False,
    lines: Lines = None,
    gamma: Gamma = None,
    selection: Selection = None,
    bandwidth: Bandwidth = None,
    shrinkage: Shrinkage = None,
    method: SumMethod = None,
    n_init: Starts = None,
    max_iter: MaxIter = None,
    tol: Tolerance = None,
    priors: Priors = None,
    drop: Drop = None,
    weights: Weights = None,
    positive: Positive = None,
    impute: Impute = None,
    seed: Seed = 0,
    format: Format = TableFormat.auto,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = ".",
    na_values: MissingValues = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Cross-validate on a table, or score a fitted model on rows that it has not seen.

    Cross-validation gives balanced accuracy, MCC and AUC, mean and standard deviation; a fitted model the confusion
    matrix, balanced accuracy and log loss.

    Example: [bold]melc evaluate patients.csv --target outcome --compare[/bold]

    Example: [bold]melc evaluate --model model.json test.csv[/bold]
    """
    from melc.tables.assess import summarise
    from melc.tables.fit import Roles
    from melc.tables.large import open_problem
    from melc.tables.scoring import score_file

    report = Reporter(quiet)
    source = table_source(data, format, delimiter, encoding, decimal, na_values)
    if fitted is not None:
        check_no_fitting_options(context)
        with report.progress(f"scoring {data}"), report.warnings_as_notes():
            scores = score_file(load_model(fitted), source, target, weights)
        report.note_unseen(scores.n_unseen)
        print_score(scores, as_json)
        return
    search = {"method": method, "n_init": n_init, "max_iter": max_iter, "tol": tol, "shrinkage": shrinkage}
    choices = {"gamma": gamma, "selection": selection, "bandwidth": bandwidth, "priors": priors}
    model = unfitted_model(lines, seed, **search, **choices)
    roles = Roles(target, tuple(drop or ()), weights, positive, impute is not None)
    models = compared_models(model, compare)
    with ExitStack() as stack:
        with report.progress(f"reading {data}"), report.warnings_as_notes():
            problem, _ = stack.enter_context(open_problem(source, roles))
        folds = fold_scores(problem, models, cv, seed, report)
    print_scores(summarise(folds), cv, as_json)


for command in (demo, datasets, reproduce):
    app.command()(command)
