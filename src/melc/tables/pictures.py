"""Plots of a table model as the content of a file: an image, or an HTML page with the plots and the rule."""

import html
import io
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from melc.model.line import decides_alone
from melc.model.names import found_for
from melc.plotting import LinesDisplay, ProjectionDisplay, WeightsDisplay
from melc.plotting.common import name_of, new_figure
from melc.plotting.lines import figure_size, lines_to_show
from melc.tables.apply import labelled_blocks
from melc.tables.model import TableModel
from melc.tables.read import column_names, read_blocks
from melc.tables.source import Source, TableError, as_plain_file

FORMATS = (".png", ".svg", ".pdf", ".html")
_MOST_ROWS = 100_000  # of a table in a picture
_MOST_ROWS_OF_TEXT = 2000  # of the rule on a page
# Lines in an image, and on a page, and features of each.
_LINES_IN_IMAGE, _LINES_ON_PAGE, _FEATURES_SHOWN = 9, 24, 15


def ending_of(path: Path) -> str:
    """Return the ending of a picture file; raise ``ValueError`` if it is none of :data:`FORMATS`."""
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise ValueError(f"{path}: unknown picture format {path.suffix!r}; choose one of {', '.join(FORMATS)}.")
    return ending


def draw(fitted: TableModel, source: Source | None, ending: str, *, title: str = "", label: str | None = None) -> bytes:
    """Return a plot of a model, with the rows of a file if given, as the content of a file with the given ending."""
    X, y = _rows(fitted, source)
    class_label = _class_of(fitted, label)
    if ending == ".html":
        return _page(fitted, X, y, class_label, title).encode()
    buffer = io.BytesIO()
    _lines(fitted, X, y, class_label, _LINES_IN_IMAGE).savefig(buffer, format=ending[1:], dpi=150)
    return buffer.getvalue()


def _rows(fitted: TableModel, source: Source | None) -> tuple[Any, Any]:
    """Return the features of the rows, shape (n_rows, n_features), and their labels if the table has the target.

    Of more than ``_MOST_ROWS`` rows a random sample is returned, so that tables of any size can be shown.
    """
    if source is None:
        return None, None
    with tempfile.TemporaryDirectory(prefix="melc-") as folder, as_plain_file(source, Path(folder)) as plain:
        X, y, n_rows = _sample(_blocks(fitted, plain))
    if n_rows == 0:
        raise TableError(f"{source.name}: the file has a header but no rows.")
    if n_rows > len(X):
        warnings.warn(f"the picture shows a random sample of {len(X):,} of the {n_rows:,} rows", stacklevel=2)
    return X, y


def _blocks(fitted: TableModel, source: Source) -> Iterator[tuple[Any, Any]]:
    """Yield the features and labels of blocks of rows; the labels are None if the table does not have the target."""
    if fitted.target in column_names(source):
        for _, encoded, codes in labelled_blocks(fitted, source, fitted.target):
            yield encoded.X, fitted.model.classes_[codes]
    else:
        for block in read_blocks(source, fitted.encoding.kinds, len(fitted.encoding.feature_names)):
            yield fitted.encoding.encode(block).X, None


def _sample(blocks: Iterable[tuple[Any, Any]]) -> tuple[Any, Any, int]:
    """Return a random sample of the rows of blocks in their order, their labels, and the number of rows in all.

    Each row draws a number, and those with the smallest numbers stay.
    """
    rng = np.random.default_rng(0)
    X, y, drawn, n_rows = None, None, np.empty(0), 0
    for more, labels in blocks:
        n_rows += len(more)
        drawn = np.concatenate([drawn, rng.random(len(more))])
        X = more if X is None else np.concatenate([X, more])
        y = labels if y is None else np.concatenate([y, labels])
        if len(drawn) > _MOST_ROWS:
            stay = np.sort(np.argpartition(drawn, _MOST_ROWS)[:_MOST_ROWS])
            X, y, drawn = X[stay], None if y is None else y[stay], drawn[stay]
    return X, y, n_rows


def _class_of(fitted: TableModel, label: str | None) -> Any:
    """Return the class given on the command line, or None for all."""
    classes = fitted.model.classes_
    if label is None:
        return None
    found = [c for c in classes if str(c) == label]
    if not found:
        raise ValueError(f"--class {label} is not a class of the model; choose one of {', '.join(map(str, classes))}.")
    return found[0]


def _lines(fitted: TableModel, X: Any, y: Any, class_label: Any, most: int) -> Any:
    """Return a figure of the lines: densities with thresholds if one decides, else the curves of the most important."""
    names = fitted.encoding.feature_names
    if decides_alone(fitted.model):
        figure = new_figure(7, 4.5)
        ProjectionDisplay.from_estimator(fitted.model, X, y, feature_names=names, ax=figure)
    else:
        figure = new_figure(*figure_size(len(lines_to_show(fitted.model, most, False)[0])))
        options = {"class_label": class_label, "feature_names": names, "max_lines": most}
        LinesDisplay.from_estimator(fitted.model, X, y, **options, ax=figure)
    return figure


def _weights(fitted: TableModel, X: Any, number: int) -> Any:
    """Return a figure of the weights in a line."""
    names = fitted.encoding.feature_names
    figure = new_figure(7, 1.2 + 0.28 * min(len(names), _FEATURES_SHOWN))
    title = None if decides_alone(fitted.model) else name_of(fitted.model, number)
    WeightsDisplay.from_estimator(
        fitted.model, X, line=number, feature_names=names, max_features=_FEATURES_SHOWN, title=title, ax=figure
    )
    return figure


def _svg(figure: Any) -> str:
    """Return the figure as an SVG element to embed in HTML."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _rule(fitted: TableModel) -> str:
    """Return the rule as text, shortened if it is very long."""
    lines = [line if len(line) <= 500 else f"{line[:500]}…" for line in fitted.to_text(digits=5).splitlines()]
    more = [f"… and {len(lines) - _MOST_ROWS_OF_TEXT} more lines; melc explain prints them all"] * (
        len(lines) > _MOST_ROWS_OF_TEXT
    )
    return "\n".join(lines[:_MOST_ROWS_OF_TEXT] + more)


def _page(fitted: TableModel, X: Any, y: Any, class_label: Any, title: str) -> str:
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
{_sections(fitted, X, y, class_label)}
<h2>Rule</h2>
<pre>{html.escape(_rule(fitted))}</pre>
</body></html>
"""


def _sections(fitted: TableModel, X: Any, y: Any, class_label: Any) -> str:
    """Return the lines, and the weights if there is a single line, or one that was found for each class."""
    model = fitted.model
    alone = decides_alone(model)
    parts = ["<h2>Densities and weights</h2>" if alone else "<h2>What each line adds to the log-odds</h2>"]
    parts.append(_svg(_lines(fitted, X, y, class_label, _LINES_ON_PAGE)))
    if alone or found_for(model, 0) is not None:
        parts += [] if alone else ["<h2>Weights</h2>"]
        shown = range(1, 1 + min(len(model.lines_), _LINES_ON_PAGE))
        parts += [_svg(_weights(fitted, X, number)) for number in shown]
    return "\n".join(parts)
