"""The commands ``melc demo``, ``datasets`` and ``reproduce``: a demonstration, and the paper's evaluation."""

from pathlib import Path
from typing import Annotated

import typer

from melc.cli.console import Reporter, guarded
from melc.cli.options import AsJson, Debug, Quiet
from melc.cli.printing import print_datasets


@guarded
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for picture or tables.")] = Path("melc-demo"),
    tables: Annotated[bool, typer.Option("--tables", help="Only write tables to try the other commands with.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit two data sets, compare with logistic regression, and save a picture; or write tables to try melc with.

    Example: [bold]melc demo[/bold]

    Example: [bold]melc demo --tables -o .[/bold]
    """
    from melc.cli.demo import run_demo, write_tables

    if tables:
        for path in write_tables(output):
            Reporter(quiet).wrote("Table", path)
        return
    with Reporter(quiet).progress("demonstration"):
        run_demo(output, say=(lambda text: None) if quiet else typer.echo)


@guarded
def datasets(as_json: AsJson = False, debug: Debug = False) -> None:
    """List the paper's ten data sets and where each is stored.

    Example: [bold]melc datasets[/bold]
    """
    from melc.paper.datasets import list_datasets

    print_datasets(list_datasets(), as_json)


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
