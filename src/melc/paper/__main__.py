"""``python -m melc.paper``: the evaluation from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from melc.paper.datasets import list_datasets
from melc.paper.pipeline import reproduce as run_reproduction

app = typer.Typer(add_completion=False, no_args_is_help=True, help="The paper's evaluation.")


@app.command()
def reproduce(
    output: Annotated[Path, typer.Option(help="Folder for records, tables, figures and report.")] = Path("melc-paper"),
    quick: Annotated[bool, typer.Option("--quick", help="A small part of everything, in two minutes.")] = False,
    jobs: Annotated[int, typer.Option(help="Processes.", min=1)] = 2,
    report_only: Annotated[bool, typer.Option("--report-only", help="Run nothing, report on what is there.")] = False,
) -> None:
    """Run the evaluation; stopped at any moment, the same command goes on from there."""
    console = Console()
    profile = "quick" if quick else "full"
    try:
        done = run_reproduction(output, profile, n_jobs=jobs, report_only=report_only)
    except KeyboardInterrupt:
        console.print(f"Stopped. Finished cells are in {output / 'records'}; the same command goes on from there.")
        raise typer.Exit(130) from None
    except ValueError as error:
        console.print(f"[red]{error}[/red]")
        raise typer.Exit(1) from error
    for name, why in done.missing.items():
        console.print(f"[red]missing data set {name}[/red]: {why}")
    for verdict in done.verdicts:
        console.print(f"[bold]{verdict.verdict}[/bold]: {verdict.claim} — {verdict.measured}", highlight=False)
    console.print(f"{done.n_solved} cells run now. Report: {done.html}")


@app.command()
def datasets() -> None:
    """The ten data sets: shape, classes, source, and whether they are at hand."""
    table = Table("name", "shape", "classes", "at hand", "where", "source")
    for listing in list_datasets():
        entry = listing.entry
        shape = f"{entry.shape[0]} × {entry.shape[1]}"
        classes = ", ".join(f"{label:+d}: {count}" for label, count in entry.class_counts.items())
        table.add_row(entry.name, shape, classes, "yes" if listing.at_hand else "no", listing.where, entry.source)
    Console().print(table)


if __name__ == "__main__":
    app()
