"""One HTML page about a fitted model: nothing outside of it is needed to show it."""

import base64
import hashlib
import html
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from numbers import Integral
from pathlib import Path
from string import Template
from typing import Any

from melc.export.files import check_writable, replacing
from melc.inference.bootstrap import FEWEST_RESAMPLES
from melc.report.contents import contents_of
from melc.report.storage import page_json, visible
from melc.report.subject import Subject, subject_of

_SCRIPTS = ("model", "change", "draw", "policy", "decisions", "lines", "sections", "whatif", "page")


def write_report(model: Any, X: Any, y: Any, path: str | os.PathLike[str], **options: Any) -> Path:
    """Write a report on a fitted model to an HTML file, completely or not at all, and return its path.

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline of scalers or fitted search
        A fitted model.
    X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        Rows on which to evaluate the model, normally those of the fit. May be a memory map.
    y : array-like of shape (n_samples,)
        Their classes.
    path : str or path
        The file, which is replaced if it exists.
    **options
        As for :func:`report_html`.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from melc import MELC
    >>> X, species = load_iris(return_X_y=True)
    >>> y = species == 1
    >>> model = MELC(n_init=2, random_state=0).fit(X, y)
    >>> import pathlib, tempfile
    >>> from melc.report import write_report
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(model, X, y, pathlib.Path(folder) / "report.html", n_resamples=0, cv=2)
    ...     path.name
    'report.html'
    """
    check_writable(Path(path))  # before any work is done
    return Report(report_html(model, X, y, **options)).save(path)


@dataclass(frozen=True, repr=False)
class Report:
    """A report on a model, which is shown in notebooks and written to a file by ``save``.

    Examples
    --------
    >>> from melc.report import Report
    >>> Report("<!doctype html><title>A page</title>", height=400)
    <melc report, 0 kB; save(path) writes it to a file>
    """

    text: str
    height: int = 720

    def _repr_html_(self) -> str:
        # Alone in a frame, the page neither takes styles from the notebook nor gives it any. Its scripts may run, but
        # have no access to the notebook.
        return (
            f'<iframe srcdoc="{html.escape(self.text)}" sandbox="allow-scripts" title="melc report" '
            f'style="width:100%;height:{self.height}px;border:1px solid #8884;border-radius:8px"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<melc report, {len(self.text.encode()) // 1000} kB; save(path) writes it to a file>"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, completely or not at all; return its path."""
        check_writable(Path(path))
        with replacing(path) as draft:
            draft.write_text(self.text, encoding="utf-8")
        return Path(path)


def show_report(model: Any, X: Any, y: Any, *, height: int = 720, **options: Any) -> Report:
    """Return a report for a notebook, which shows it if this is the last line of a cell.

    Parameters
    ----------
    model, X, y
        As for :func:`write_report`.
    height : int, default=720
        Height in pixels.
    **options
        As for :func:`report_html`.

    Returns
    -------
    report : Report

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from melc import MELC
    >>> X, species = load_iris(return_X_y=True)
    >>> y = species == 1
    >>> model = MELC(n_init=2, random_state=0).fit(X, y)
    >>> from melc.report import show_report
    >>> show_report(model, X, y, n_resamples=0, cv=2)
    <melc report, ... kB; save(path) writes it to a file>
    """
    return Report(report_html(model, X, y, **options), height)


def report_html(
    model: Any,
    X: Any,
    y: Any,
    *,
    title: str | None = None,
    n_resamples: int | None = None,
    cv: int | None = None,
    max_rows: int = 10_000,
    rows: int = 0,
    sample_weight: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> str:
    """Return a report on a fitted model as HTML text, mostly of 100 to 300 kB.

    The page has counts of rows in bins, but no row of the data unless ``rows`` asks for some. Some knots of the curves
    of a ``MELC`` are projections of training rows, as in its JSON file.

    Parameters
    ----------
    model, X, y
        As for :func:`write_report`.
    title : str, default=None
        Title of the page.
    n_resamples : int, default=None
        Number of resamples for intervals and stability, at least 20, or 0 for none. By default 40, or 0 with more than
        500 features, because each fit takes long then.
    cv : int, default=None
        Number of folds in the cross-validation. By default 5, or 2 with more than 500 features.
    max_rows : int, default=10_000
        If there are more rows, cross-validation and resamples use a random sample of this size. Everything else uses
        all rows.
    rows : int, default=0
        Number of rows of the data to include on the page, which can be selected in the form.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, normally those of the fit. Fits, counts and scores use them.
    random_state : int, default=0
        Seed of samples, folds and resamples.
    n_jobs : int, default=None
        Number of processes for the resamples.
    verbose : int, default=0
        If positive, print what is being done.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from melc import MELC
    >>> X, species = load_iris(return_X_y=True)
    >>> y = species == 1
    >>> model = MELC(n_init=2, random_state=0).fit(X, y)
    >>> from melc.report import report_html
    >>> "versicolor" in report_html(model, X, y, title="Is it versicolor?", n_resamples=0, cv=2)
    True
    """
    check_options(n_resamples or 0, 2 if cv is None else cv, max_rows, rows)
    subject = subject_of(model, X, y, max_rows=max_rows, seed=random_state, sample_weight=sample_weight)
    step = print if verbose > 0 else _silent
    options = {"n_resamples": n_resamples, "cv": cv, "seed": random_state, "n_jobs": n_jobs, "rows": rows}
    return page_of(subject, title or f"{type(subject.model).__name__} report", step, **options)


def page_of(subject: Subject, title: str, step: Callable[[str], None], **options: Any) -> str:
    """Return the page about a subject; ``step`` is told what is being done."""
    style, script = _asset("style.css"), "\n".join(_asset(f"{name}.js") for name in _SCRIPTS)
    return Template(_asset("page.html")).substitute(
        title=html.escape(visible(title)),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=page_json(contents_of(subject, step, **options)),
    )


def _asset(name: str) -> str:
    return files("melc.report").joinpath("assets", name).read_text("utf-8")


def _hash(text: str) -> str:
    """Return the hash by which the page's policy allows this script or style, and no other."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _silent(_: str) -> None:
    pass


def check_options(n_resamples: Any, cv: Any, max_rows: Any, rows: Any) -> None:
    """Raise ``ValueError`` for options that are not whole numbers, or too small."""
    least = {
        "n_resamples": (n_resamples, FEWEST_RESAMPLES if n_resamples else 0),
        "cv": (cv, 2),
        "max_rows": (max_rows, 20),
        "rows": (rows, 0),
    }
    for name, (value, lowest) in least.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < lowest:
            raise ValueError(f"{name}={value!r} should be a whole number of at least {lowest}.")
