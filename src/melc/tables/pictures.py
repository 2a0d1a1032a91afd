"""Plots of a table model as the content of a file: an image, or an HTML page with the plots and the rule."""

import html
import io
from pathlib import Path
from typing import Any

from melc.model.units import is_additive
from melc.plotting import LinesDisplay, ProjectionDisplay, WeightsDisplay
from melc.plotting.common import new_figure
from melc.plotting.lines import figure_size, lines_of
from melc.tables.fit import labels_of
from melc.tables.model import TableModel
from melc.tables.scoring import known_labels

FORMATS = (".png", ".svg", ".pdf", ".html")
_MOST_ROWS_OF_TEXT = 2000  # of the rule on a page
# Lines of an additive model in an image, and of each class on a page.
_LINES_IN_IMAGE, _LINES_ON_PAGE = 9, 24


def ending_of(path: Path) -> str:
    """Return the ending of a picture file; raise ``ValueError`` if it is none of :data:`FORMATS`."""
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise ValueError(f"{path}: unknown picture format {path.suffix!r}; choose one of {', '.join(FORMATS)}.")
    return ending


def draw(fitted: TableModel, table: Any, ending: str, *, title: str = "", label: str | None = None) -> bytes:
    """Return a plot of a model, with the rows of a table if given, as the content of a file with the given ending."""
    X, y = _rows(fitted, table)
    class_label = _class_of(fitted, label)
    if ending == ".html":
        return _page(fitted, X, y, class_label, title).encode()
    buffer = io.BytesIO()
    draw_figure = _lines if is_additive(fitted.model) else _projection
    draw_figure(fitted, X, y, class_label).savefig(buffer, format=ending[1:], dpi=150)
    return buffer.getvalue()


def _rows(fitted: TableModel, table: Any) -> tuple[Any, Any]:
    """Return the features of the rows, shape (n_rows, n_features), and their labels if the table has the target."""
    if table is None:
        return None, None
    missing = [name for name in fitted.encoding.kinds if name not in table.column_names]
    if missing:
        raise ValueError(f"The model needs the column {missing[0]!r}, which is missing from the table.")
    X = fitted.encoding.encode(table).X
    if fitted.target not in table.column_names:
        return X, None
    labels = labels_of(table.column(fitted.target), fitted.target)
    return X, known_labels(fitted, labels) if fitted.model.classes_.dtype.kind in "UO" else labels


def _class_of(fitted: TableModel, label: str | None) -> Any:
    """Return the class given on the command line, or None for all."""
    classes = fitted.model.classes_
    if label is None:
        return None
    found = [c for c in classes if str(c) == label]
    if not found:
        raise ValueError(f"--class {label} is not a class of the model; choose one of {', '.join(map(str, classes))}.")
    return found[0]


def _projection(fitted: TableModel, X: Any, y: Any, class_label: Any) -> Any:
    n = len(fitted.model.decisions_) if class_label is None else 1
    figure = new_figure(7, 4.5 * n)
    ProjectionDisplay.from_estimator(fitted.model, X, y, class_label=class_label, ax=figure.subplots(n))
    return figure


def _lines(fitted: TableModel, X: Any, y: Any, class_label: Any, most: int = _LINES_IN_IMAGE) -> Any:
    """Return a figure of the most important lines of an additive model."""
    figure = new_figure(*figure_size(min(most, len(lines_of(fitted.model, class_label)))))
    options = {"class_label": class_label, "max_lines": most, "feature_names": fitted.encoding.feature_names}
    LinesDisplay.from_estimator(fitted.model, X, y, **options, ax=figure)
    return figure


def _weights(fitted: TableModel, X: Any, class_label: Any) -> Any:
    names = fitted.encoding.feature_names
    figure = new_figure(7, 1 + 0.28 * min(len(names), 15))
    title = None if len(fitted.model.decisions_) == 1 else f"{class_label} against the rest"
    options = {"feature_names": names, "class_label": class_label, "title": title}
    WeightsDisplay.from_estimator(fitted.model, X, **options, ax=figure.subplots())
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
    sections = _line_sections if is_additive(fitted.model) else _projection_sections
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font-family: system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; color: #222 }}
svg {{ max-width: 100%; height: auto }}
pre {{ background: #f5f5f5; padding: 1rem; overflow-x: auto }}
</style></head><body>
<h1>{html.escape(title)}</h1>
{sections(fitted, X, y, class_label)}
<h2>Rule</h2>
<pre>{html.escape(_rule(fitted))}</pre>
</body></html>
"""


def _projection_sections(fitted: TableModel, X: Any, y: Any, class_label: Any) -> str:
    """Return the densities along the projections, and the weights of each."""
    weights = "\n".join(_svg(_weights(fitted, X, label)) for label in _shown(fitted, class_label))
    return f"""<h2>Densities along the projection</h2>
{_svg(_projection(fitted, X, y, class_label))}
<h2>Features</h2>
{weights}"""


def _line_sections(fitted: TableModel, X: Any, y: Any, class_label: Any) -> str:
    """Return the lines of each class."""
    figures = (_lines(fitted, X, y, label, _LINES_ON_PAGE) for label in _shown(fitted, class_label))
    return "\n".join(["<h2>What each line adds to the log-odds</h2>", *map(_svg, figures)])


def _shown(fitted: TableModel, class_label: Any) -> list[Any]:
    """Return the classes to show: the one chosen, or all of more than two, each against the rest."""
    classes = fitted.model.classes_
    return classes.tolist() if class_label is None and len(classes) > 2 else [class_label]
