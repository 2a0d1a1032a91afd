"""Plots of a model, with the rows of a file, as the content of an image file, or of an HTML page with the rule."""

import html
import io
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from melc.export.text import export_text
from melc.model.line import decides_alone
from melc.model.names import found_for
from melc.plotting import LinesDisplay, ProjectionDisplay, WeightsDisplay
from melc.plotting.common import name_of, new_figure
from melc.plotting.lines import figure_size, lines_to_show
from melc.tables.apply import labelled_blocks
from melc.tables.frames import kinds_for, rows_for
from melc.tables.model_file import StoredModel
from melc.tables.read import column_names, read_blocks
from melc.tables.source import Source, TableError, arrow, as_plain_file

FORMATS = (".png", ".svg", ".pdf", ".html")
_MOST_ROWS = 100_000  # of a table in a picture
_MOST_ROWS_OF_TEXT = 2000  # of the rule on a page
# Lines in an image, and on a page, and features of each.
_LINES_IN_IMAGE, _LINES_ON_PAGE, _FEATURES_SHOWN = 9, 24, 15


def ending_of(path: Path, known: tuple[str, ...] = FORMATS) -> str:
    """Return the ending of a picture file; raise ``ValueError`` if it is none of those known."""
    ending = path.suffix.lower()
    if ending not in known:
        raise ValueError(f"{path}: unknown picture format {path.suffix!r}; choose one of {', '.join(known)}.")
    return ending


def draw(
    fitted: StoredModel, source: Source | None, ending: str, *, title: str = "", label: str | None = None
) -> bytes:
    """Return a plot of a model, with the rows of a file if given, as the content of a file with the given ending."""
    X, y = _rows(fitted, source)
    model, class_label = fitted.model, _class_of(fitted.classes, label)
    if ending == ".html":
        return _page(model, X, y, class_label, title).encode()
    buffer = io.BytesIO()
    _lines(model, X, y, class_label, _LINES_IN_IMAGE).savefig(buffer, format=ending[1:], dpi=150)
    return buffer.getvalue()


def _rows(fitted: StoredModel, source: Source | None) -> tuple[Any, Any]:
    """Return the rows as a frame, and their labels if the table has the target.

    Of more than ``_MOST_ROWS`` rows a random sample is returned, so that tables of any size can be shown.
    """
    if source is None:
        return None, None
    with tempfile.TemporaryDirectory(prefix="melc-") as folder, as_plain_file(source, Path(folder)) as plain:
        table, y, n_rows = _sample(_blocks(fitted, plain))
    if n_rows == 0:
        raise TableError(f"{source.name}: the file has a header but no rows.")
    if n_rows > table.num_rows:
        warnings.warn(f"the picture shows a random sample of {_MOST_ROWS:,} of the {n_rows:,} rows", stacklevel=2)
    return rows_for(fitted.model, table, source), y


def _blocks(fitted: StoredModel, source: Source) -> Iterator[tuple[Any, Any]]:
    """Yield blocks of rows and their labels; the labels are None if the table does not have the target."""
    if fitted.target is not None and fitted.target in column_names(source):
        for block, codes in labelled_blocks(fitted, source, fitted.target):
            yield block, fitted.classes[codes]
    else:
        for block in read_blocks(source, kinds_for(fitted.model, source)):
            yield block, None


def _sample(blocks: Iterable[tuple[Any, Any]]) -> tuple[Any, Any, int]:
    """Return a random sample of the rows of blocks in their order, their labels, and the number of rows in all.

    Each row draws a number, and those with the smallest numbers stay.
    """
    rng = np.random.default_rng(0)
    rows, y, drawn, n_rows = None, None, np.empty(0), 0
    for more, labels in blocks:
        n_rows += more.num_rows
        drawn = np.concatenate([drawn, rng.random(more.num_rows)])
        rows = more if rows is None else arrow().concat_tables([rows, more])
        y = labels if y is None else np.concatenate([y, labels])
        if len(drawn) > _MOST_ROWS:
            stay = np.sort(np.argpartition(drawn, _MOST_ROWS)[:_MOST_ROWS])
            rows, y, drawn = rows.take(stay), None if y is None else y[stay], drawn[stay]
    return rows, y, n_rows


def _class_of(classes: Any, label: str | None) -> Any:
    """Return the class given on the command line, or None for all."""
    if label is None:
        return None
    found = [c for c in classes if str(c) == label]
    if not found:
        raise ValueError(f"--class {label} is not a class of the model; choose one of {', '.join(map(str, classes))}.")
    return found[0]


def _lines(model: Any, X: Any, y: Any, class_label: Any, most: int) -> Any:
    """Return a figure of the lines: densities with thresholds if one decides, else the curves of the most important."""
    if decides_alone(model):
        figure = new_figure(7, 4.5)
        ProjectionDisplay.from_estimator(model, X, y, ax=figure)
    else:
        figure = new_figure(*figure_size(len(lines_to_show(model, most, False)[0])))
        LinesDisplay.from_estimator(model, X, y, class_label=class_label, max_lines=most, ax=figure)
    return figure


def _weights(model: Any, X: Any, number: int) -> Any:
    """Return a figure of the weights in a line."""
    figure = new_figure(7, 1.2 + 0.28 * min(model.n_features_in_, _FEATURES_SHOWN))
    title = None if decides_alone(model) else name_of(model, number)
    WeightsDisplay.from_estimator(model, X, line=number, max_features=_FEATURES_SHOWN, title=title, ax=figure)
    return figure


def _svg(figure: Any) -> str:
    """Return the figure as an SVG element to embed in HTML."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _rule(model: Any) -> str:
    """Return the rule as text, shortened if it is very long."""
    lines = [line if len(line) <= 500 else f"{line[:500]}…" for line in export_text(model, digits=5).splitlines()]
    more = [f"… and {len(lines) - _MOST_ROWS_OF_TEXT} more lines; melc explain prints them all"] * (
        len(lines) > _MOST_ROWS_OF_TEXT
    )
    return "\n".join(lines[:_MOST_ROWS_OF_TEXT] + more)


def _page(model: Any, X: Any, y: Any, class_label: Any, title: str) -> str:
    """Return a self-contained HTML page with the plots and the rule."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font-family: system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; color: #222 }}
svg {{ max-width: 100%; height: auto }}
pre {{ background: #f5f5f5; padding: 1rem; overflow-x: auto }}
</style></head><body>
<h1>{html.escape(title)}</h1>
{_sections(model, X, y, class_label)}
<h2>Rule</h2>
<pre>{html.escape(_rule(model))}</pre>
</body></html>
"""


def _sections(model: Any, X: Any, y: Any, class_label: Any) -> str:
    """Return the lines, and the weights if there is a single line, or one that was found for each class."""
    alone = decides_alone(model)
    parts = ["<h2>Densities and weights</h2>" if alone else "<h2>What each line adds to the log-odds</h2>"]
    parts.append(_svg(_lines(model, X, y, class_label, _LINES_ON_PAGE)))
    if alone or found_for(model, 0) is not None:
        parts += [] if alone else ["<h2>Weights</h2>"]
        shown = range(1, 1 + min(len(model.lines_), _LINES_ON_PAGE))
        parts += [_svg(_weights(model, X, number)) for number in shown]
    return "\n".join(parts)
