"""What the commands print on standard output: tables for people, JSON for programs."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from melc.cli.console import called_with, echo
from melc.cli.files import is_standard_output

# Letters in a row of text on the narrowest terminal.
_NARROWEST = 40


def print_fit(summary: dict[str, Any], output: Path, as_json: bool, quiet: bool) -> None:
    """Print the summary of a fitted model.

    If the model was written to standard output, the summary goes to standard error.
    """
    from melc.tables.summary import fit_text

    if as_json:
        _print_json(summary | {"model": str(output)})
    elif not quiet:
        shown = is_standard_output(output)
        echo(fit_text(summary, _width(sys.stderr if shown else sys.stdout)), err=shown)
        echo(f"Model written to {'standard output' if shown else output}", err=shown)


def _width(stream: Any) -> int:
    """Return the letters in a row of text: that of a terminal, if it is narrow."""
    from melc.tables.summary import WIDTH

    return max(_NARROWEST, min(WIDTH, shutil.get_terminal_size().columns)) if stream.isatty() else WIDTH


def print_check(found: Any, as_json: bool) -> None:
    """Print what the columns of a table hold, and the command that fits a model to it."""
    if as_json:
        _print_json(found.as_dict())
        return
    echo(found.text())
    if found.target is None:
        echo("No column has few enough different values for classes; name the one to predict with --target.")
        return
    command = called_with("fit", [*found.remedy, "-o", "model.json"])
    echo(f"To fit a model:\n  {command}")


def print_scores(summaries: list[Any], n_folds: int, as_json: bool) -> None:
    """Print the cross-validated scores of one or more models."""
    from melc.tables.assess import MEASURES
    from melc.tables.summary import aligned

    if as_json:
        found = {
            s.model: {m: {"mean": a, "spread": b} for m, a, b in zip(MEASURES, s.means, s.spreads, strict=True)}
            | {"fit_seconds": s.seconds}
            for s in summaries
        }
        _print_json({"folds": n_folds, "models": found})
        return
    rows = [("", *MEASURES, "fit time")]
    for s in summaries:
        cells = [f"{a:.3f} ± {b:.3f}" for a, b in zip(s.means, s.spreads, strict=True)]
        rows.append((s.model, *cells, f"{s.seconds:.2f} s"))
    echo(aligned(rows, indent=""))
    echo(f"mean ± standard deviation over {n_folds} folds")


def print_score(scores: Any, as_json: bool) -> None:
    """Print the scores of a fitted model: the confusion matrix, precision and recall, balanced accuracy, log loss."""
    from melc.tables.summary import aligned, matrix_cells

    if as_json:
        _print_json(scores.as_dict())
        return
    classes = [str(label) for label in scores.classes]
    echo(aligned(matrix_cells(classes, scores.confusion, "true class"), indent=""))
    echo(f"{scores.n_rows} rows; balanced accuracy {scores.balanced_accuracy:.3f}, log loss {scores.log_loss:.4g}")


def print_datasets(listings: list[Any], as_json: bool) -> None:
    """Print the paper's data sets: size, classes, whether they are available offline, and source."""
    from melc.tables.summary import aligned

    if as_json:
        _print_json([_dataset_fields(listing) for listing in listings])
        return
    rows = [("name", "rows", "features", "classes", "available")]
    for listing in listings:
        entry = listing.entry
        classes = ", ".join(f"{label:+d}: {count}" for label, count in entry.class_counts.items())
        n_rows, n_features = entry.shape
        rows.append((entry.name, str(n_rows), str(n_features), classes, "yes" if listing.at_hand else "no"))
    sources = ["source", *(f"{listing.entry.source} ({listing.where})" for listing in listings)]
    for line, source in zip(aligned(rows, indent="").splitlines(), sources, strict=True):
        echo(f"{line}  {source}")


def _dataset_fields(listing: Any) -> dict[str, Any]:
    entry, (n_rows, n_features) = listing.entry, listing.entry.shape
    fields = {"name": entry.name, "rows": n_rows, "features": n_features, "classes": entry.class_counts}
    return fields | {"at_hand": listing.at_hand, "where": listing.where, "source": entry.source}


def _print_json(content: Any) -> None:
    echo(json.dumps(content, indent=2, ensure_ascii=False))
