"""The command ``melc card``: a rule of few features with whole-number weights, for use with a pencil."""

import io
from pathlib import Path
from typing import Annotated, Any

import typer

from melc.cli.console import Reporter, echo, guarded
from melc.cli.files import check_output, table_source, write_binary, write_text
from melc.cli.options import MODEL, Debug, Force, Quiet, RoleOptions, Seed, TableFile, TableOptions

# Rows of a large file on which the rule is validated, a random sample.
_MAX_ROWS_VALIDATED = 20_000
_PICTURES = (".png", ".svg", ".pdf")


@guarded
def card(
    *,
    data: TableFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Picture of the card to write: .png, .svg or .pdf.")
    ] = None,
    save_model: Annotated[
        Path | None, typer.Option("--save-model", help="Model file to write, for melc predict and others.")
    ] = None,
    columns: RoleOptions,
    max_features: Annotated[
        int, typer.Option("--max-features", min=1, help="Features in the rule at the most.", rich_help_panel=MODEL)
    ] = 5,
    whole_weights: Annotated[
        int, typer.Option("--whole-weights", min=1, max=100, help="Largest weight of a feature.", rich_help_panel=MODEL)
    ] = 5,
    title: Annotated[
        str | None, typer.Option(help="Heading of the card; the target and the classes if not given.")
    ] = None,
    cv: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 5,
    seed: Seed = 0,
    reading: TableOptions,
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit a rule of few features with whole-number weights, and print it as an index card.

    The card says how often the rule is right on rows that it was not fitted to.

    Example: [bold]melc card patients.csv --target outcome --drop id -o card.pdf[/bold]
    """
    from melc.classifier import MELC
    from melc.export.text import export_text
    from melc.plotting.card import held_out_shares
    from melc.tables.assess import possible_folds, said_of_few_rows
    from melc.tables.model_file import StoredModel, model_text, reading_of
    from melc.tables.pictures import ending_of
    from melc.tables.training import open_training

    for file in (output, save_model):
        if file is not None:
            check_output(file, force)
    if output is not None:
        ending_of(output, _PICTURES)
    report = Reporter(quiet)
    options: dict[str, Any] = {"max_features": max_features, "whole_weights": whole_weights, "random_state": seed}
    model = MELC(**options, categorical_features=columns.categorical or None)
    with report.reading(data, open_training(table_source(data, reading), columns.roles())) as rows:
        _check_two_classes(rows.classes.tolist(), rows.target)
        with report.progress(f"fitting {len(rows.codes)} rows"):
            rows.fitted(model)
        sample = rows.sample(_MAX_ROWS_VALIDATED, seed)
        n_folds = possible_folds(sample, cv)
        if not n_folds:
            report.note(f"no cross-validation: {said_of_few_rows(sample)}")
        with report.progress(f"validating with {n_folds} folds"):
            held_out = held_out_shares(model, sample.X, sample.labels, n_folds, sample.weights) if n_folds else None
        stored = StoredModel(model, rows.target, reading_of(rows.source))
    echo(export_text(model, style="card") + (f"\n{held_out.sentence}" if held_out else ""))
    if output is not None:
        with report.progress(f"drawing {output}"):
            picture = _picture(model, held_out, title or _heading(stored), output)
        write_binary(output, picture, "A picture")
        report.wrote("Card", output)
    if save_model is not None:
        write_text(save_model, model_text(stored))
        report.wrote("Model", save_model)


def _check_two_classes(classes: list[Any], target: str) -> None:
    if len(classes) > 2:
        shown = ", ".join(map(str, classes[:5])) + (", …" if len(classes) > 5 else "")
        raise ValueError(
            f"A card is for two classes, and the target {target!r} has {len(classes)}: {shown}. Separate one of them "
            f"from the others, for example with --positive {classes[0]}."
        )


def _heading(stored: Any) -> str:
    first, second = stored.classes.tolist()
    return f"{stored.target}: {first} or {second}?"


def _picture(model: Any, held_out: Any, title: str, output: Path) -> bytes:
    from melc.plotting.card import CardDisplay

    display = CardDisplay.from_estimator(model, title=title, held_out=held_out)
    buffer = io.BytesIO()
    display.figure_.savefig(buffer, format=output.suffix.lower()[1:], dpi=200)
    return buffer.getvalue()
