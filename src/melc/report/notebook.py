"""The page in a notebook."""

import html
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from melc.export.files import replacing
from melc.report.page import check_folder, report_html


@dataclass(frozen=True, repr=False)
class Report:
    """A page about a model, which notebooks show in place and ``save`` writes to a file.

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

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, completely or not at all; return its path."""
        check_folder(Path(path))
        with replacing(path) as draft:
            draft.write_text(self.text, encoding="utf-8")
        return Path(path)


def show_report(model: Any, X: Any, y: Any, *, height: int = 720, **options: Any) -> Report:
    """Return the page about a fitted model for a notebook, which shows it if this is the last line of a cell.

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
