"""The commands of ``melc``. Each consists of a few calls of the library."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from melc import __version__
from melc.cli.card import card
from melc.cli.console import Command, Commands, Reporter, guarded, printable
from melc.cli.files import check_output, is_standard_output, load_model, table_source, write_binary, write_text, writing
from melc.cli.fitting import (
    check_no_fitting_options,
    compared_models,
    fold_scores,
    n_steps,
    order_priors,
    unfitted_model,
    verdict_on,
)
from melc.cli.options import (
    STANDARD_OUTPUT,
    AsJson,
    ColumnOptions,
    CsvOptions,
    Debug,
    Force,
    ModelFile,
    ModelOptions,
    Output,
    Quiet,
    RoleOptions,
    Seed,
    TableFile,
    TableOptions,
    Target,
    Weights,
)
from melc.cli.paper import datasets, demo, reproduce
from melc.cli.printing import print_check, print_fit, print_score, print_scores


class RuleFormat(StrEnum):
    """Formats in which ``melc explain`` writes the rule of a model."""

    text = "text"
    json = "json"
    sql = "sql"
    onnx = "onnx"


app = typer.Typer(
    cls=Commands,
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
    *,
    data: TableFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write; - is standard output.")],
    columns: RoleOptions,
    fitting: ModelOptions,
    cv: Annotated[
        bool, typer.Option("--cv/--no-cv", help="Cross-validate with five folds, or not.", show_default=False)
    ] = True,
    reading: TableOptions,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit a model to a table and write it to a file.

    Columns may hold numbers, texts, dates, true and false, and missing values.

    Example: [bold]melc fit patients.csv --target outcome --drop id -o model.json[/bold]

    Example: [bold]melc fit patients.csv --target outcome --lines 8 -o model.json[/bold]
    """
    from melc.fit.progress import compiling_note, counting_runs
    from melc.tables.check import deciding_columns, said_of_deciding
    from melc.tables.model_file import StoredModel, model_text, reading_of
    from melc.tables.summary import fit_summary
    from melc.tables.training import open_training

    report = Reporter(quiet)
    check_output(output, force)
    if is_standard_output(output) and as_json:
        raise ValueError("-o - and --json would mix the model and its summary; write the model to a file.")
    model = unfitted_model(**asdict(fitting), categorical_features=columns.categorical)
    source = table_source(data, reading)
    with report.reading(data, open_training(source, columns.roles())) as rows:
        order_priors(model, rows.classes)
        doing = f"fitting {len(rows.codes)} rows" + (f" ({note})" if (note := compiling_note()) else "")
        with report.progress(doing, n_steps(model, len(rows.classes))) as step, counting_runs(model, step):
            rows.fitted(model)
        verdict = verdict_on(rows, model, fitting.seed, report) if cv else None
        deciding = deciding_columns(rows.X, rows.codes)
        remarks = [said_of_deciding(deciding)] if deciding else []
        summary = fit_summary(model, rows.class_counts, verdict, remarks)
    write_text(output, model_text(StoredModel(model, rows.target, reading_of(rows.source))))
    print_fit(summary, output, as_json, quiet)


@app.command()
@guarded
def check(
    *,
    data: TableFile,
    columns: ColumnOptions,
    reading: TableOptions,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Look through a table before a fit: what each column holds, what is wrong with it, and the command to fit with.

    Example: [bold]melc check patients.csv --target outcome[/bold]
    """
    from melc.tables.check import check_table

    report = Reporter(quiet)
    with report.progress(f"reading {data}"):
        found = check_table(table_source(data, reading), columns.roles())
    print_check(found, as_json)


@app.command()
@guarded
def predict(
    *,
    model: ModelFile,
    data: TableFile,
    output: Output = STANDARD_OUTPUT,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of every class.")] = False,
    keep: Annotated[list[str] | None, typer.Option(help="Column of DATA to carry through; may be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON: a list with one object per row.")] = False,
    reading: TableOptions,
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Predict the class of every row of a table, in the same order. The table may be larger than memory.

    Columns that the model does not use are ignored, unless they are named with --keep.

    Example: [bold]melc predict model.json new.csv --keep id --proba -o predictions.csv[/bold]
    """
    from melc.tables.apply import write_predictions

    report = Reporter(quiet)
    fitted = load_model(model)
    check_output(output, force)
    source = table_source(data, reading, fitted)
    with report.progress(f"predicting {data}"), writing(output) as stream:
        unseen = write_predictions(fitted.model, source, stream, proba=proba, keep=tuple(keep or ()), as_json=as_json)
    report.note_unseen(unseen)
    report.wrote("Predictions", output)


@app.command()
@guarded
def explain(
    *,
    model: ModelFile,
    data: Annotated[
        str | None,
        typer.Argument(help="Table whose first rows are explained instead of the rule; - is standard input."),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Number of rows of DATA that are explained.")] = 5,
    format: Annotated[
        RuleFormat, typer.Option("--format", help="Output format: text, json, sql or onnx.")
    ] = RuleFormat.text,
    digits: Annotated[int, typer.Option(min=1, help="Significant digits in the text; 17 shows numbers in full.")] = 5,
    odds: Annotated[
        bool,
        typer.Option(
            "--odds", help="Add what the odds are computed from to the text, or the log-odds to the SQL query."
        ),
    ] = False,
    table: Annotated[str, typer.Option(help="Name of the table in the SQL query.")] = "data",
    output: Output = STANDARD_OUTPUT,
    reading: CsvOptions,
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Print the rule of a model as text, JSON, SQL or ONNX, or explain rows of a table.

    For a row: the part of each feature in its log-odds, and the smallest change of its numbers that changes the class.

    Example: [bold]melc explain model.json --format sql --table patients[/bold]

    Example: [bold]melc explain model.json patients.csv --rows 3[/bold]
    """
    report = Reporter(quiet)
    fitted = load_model(model)
    check_output(output, force)
    if data is not None:
        from melc.tables.apply import explained_rows

        if format != RuleFormat.text:
            raise ValueError(f"Rows are explained as text: leave out --format {format.value} or the table {data!r}.")
        with report.warnings_as_notes():
            text = explained_rows(fitted.model, table_source(data, reading, fitted), rows)
        write_text(output, printable(text))
    elif format == RuleFormat.onnx:
        from melc.export.onnx_graph import to_onnx

        write_binary(output, to_onnx(fitted.model).SerializeToString(), "ONNX")
    elif format == RuleFormat.json:
        from melc.tables.model_file import model_text

        write_text(output, model_text(fitted, indent=2))
    elif format == RuleFormat.sql:
        from melc.tables.apply import sql_of

        write_text(output, sql_of(fitted.model, table, odds=odds))
    else:
        from melc.export.text import export_text

        write_text(output, printable(export_text(fitted.model, digits=digits, odds=odds)))
    report.wrote("Explanation", output)


@app.command()
@guarded
def plot(
    *,
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
    reading: TableOptions,
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
    with report.progress(f"drawing {output}"):
        source = None if data is None else table_source(data, reading, fitted)
        picture = draw(fitted, source, ending, title=output.stem, label=label)
    write_binary(output, picture, "A picture")
    report.wrote("Picture", output)


@app.command()
@guarded
def report(
    *,
    model: ModelFile,
    data: TableFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write; - is standard output.")],
    target: Target = None,
    weights: Weights = None,
    title: Annotated[str | None, typer.Option(help="Title of the page; the target if not given.")] = None,
    resamples: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Resamples for intervals, 20 or more, 0 for none; as many as take little time if not given.",
        ),
    ] = None,
    cv: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 5,
    max_rows: Annotated[
        int, typer.Option(min=20, help="Most rows in cross-validation and resamples; of more, a random sample.")
    ] = 10_000,
    rows: Annotated[int, typer.Option(min=0, help="Rows of DATA to put on the page, to choose from.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Number of processes.")] = 1,
    seed: Seed = 0,
    reading: TableOptions,
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
    source = table_source(data, reading, fitted)
    options = {"n_resamples": resamples, "cv": cv, "seed": seed, "n_jobs": jobs, "rows": rows}
    with (
        reporter.reading(data, open_rows(fitted, source, target, weights)) as table,
        reporter.progress(f"writing {output}", STEPS) as step,
    ):
        page = table_report(fitted, table, title, lambda _: step(), max_rows=max_rows, **options)
    write_text(output, page)
    reporter.wrote("Report", output)


@app.command()
@guarded
def evaluate(
    *,
    context: typer.Context,
    data: TableFile,
    fitted: Annotated[
        Path | None, typer.Option("--model", help="Score this fitted model on the table instead of cross-validating.")
    ] = None,
    cv: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 5,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Also evaluate MELC or an additive model, logistic regression, LDA and SVMs."),
    ] = False,
    columns: RoleOptions,
    fitting: ModelOptions,
    reading: TableOptions,
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
    from melc.tables.apply import score_file
    from melc.tables.assess import summarise
    from melc.tables.training import open_training

    report = Reporter(quiet)
    if fitted is not None:
        check_no_fitting_options(context)
        stored = load_model(fitted)
        source = table_source(data, reading, stored)
        with report.progress(f"scoring {data}"):
            scores = score_file(stored, source, columns.target, columns.weights)
        report.note_unseen(scores.n_unseen)
        print_score(scores, as_json)
        return
    model = unfitted_model(**asdict(fitting), categorical_features=columns.categorical)
    source = table_source(data, reading)
    with report.reading(data, open_training(source, columns.roles())) as rows:
        order_priors(model, rows.classes)
        folds = fold_scores(rows, compared_models(model, compare), cv, fitting.seed, report)
    print_scores(summarise(folds), cv, as_json)


for command in (card, demo, datasets, reproduce):  # of other modules
    app.command()(command)
for each in app.registered_commands:
    each.cls = Command
