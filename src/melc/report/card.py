"""The model card: data, settings, versions, and the certificate of the divergence."""

import datetime
import hashlib
import platform
from typing import Any

import numpy as np
import scipy
import sklearn
from scipy import sparse

from melc._version import __version__
from melc.arrays import Floats
from melc.data.products import project_on
from melc.divergence import cauchy_schwarz_divergence
from melc.fit.validation import check_totals
from melc.report.storage import visible
from melc.report.subject import Subject, dense

# The method of the divergence on a page: its error is certified.
_CERTIFIED = "moments"

_MOST_CLASSES_ON_CARD, _MOST_COLUMNS_ON_CARD = 20, 12


def card_of(subject: Subject) -> list[tuple[str, str]]:
    """Return the rows of the card: what, and its value."""
    model = subject.model
    return [
        ("Model", f"{type(model).__name__}, {_lines_text(len(model.lines_))}, {len(subject.labels)} classes"),
        ("Rows", f"{subject.n_rows:,}"),
        ("Features", f"{model.n_features_in_:,}"),
        ("Classes", _classes(subject)),
        *(_absent(subject) | subject.about).items(),
        ("Hash of the rows", f"SHA-256 {rows_hash(subject)}"),
        ("Settings", ", ".join(f"{name}={value!r}" for name, value in sorted(model.get_params(deep=False).items()))),
        *_certificates(subject),
        ("Versions", _versions_text()),
        ("Date of this report", f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC"),
    ]


def _lines_text(n: int) -> str:
    return "one line" if n == 1 else f"{n} lines"


def _classes(subject: Subject) -> str:
    counts = subject.class_counts
    order = subject.largest_classes(_MOST_CLASSES_ON_CARD)
    shown = [f"{visible(subject.labels[k])} {counts[k]:,} ({counts[k] / subject.n_rows:.1%})" for k in order]
    more = [f"and {len(counts) - len(shown)} more"] if len(counts) > len(shown) else []
    return ", ".join(shown + more)


def _absent(subject: Subject) -> dict[str, str]:
    """Return in which columns values are missing, and in which there are levels that the model does not know."""
    missing, unknown = (_columns_text(subject, counts.tolist()) for counts in subject.n_absent)
    found = {"Missing values": missing or "none"}
    return found | ({"Unknown categories": f"{unknown}; they say nothing about the class"} if unknown else {})


def _columns_text(subject: Subject, counts: list[int]) -> str:
    """Return the columns with a count other than zero, with the counts, or an empty text."""
    found = [f"{visible(subject.names[j])} {count:,}" for j, count in enumerate(counts) if count]
    more = len(found) - _MOST_COLUMNS_ON_CARD
    return ", ".join(found[:_MOST_COLUMNS_ON_CARD]) + (f" and {more} more columns" if more > 0 else "")


def rows_hash(subject: Subject) -> str:
    """Return the SHA-256 of the coded rows as doubles, each block followed by the numbers of its classes."""
    digest = hashlib.sha256()
    for coded, codes in subject.blocks():
        digest.update(np.ascontiguousarray(dense(coded), dtype="<f8").data)
        digest.update(np.ascontiguousarray(codes, dtype="<i4").data)
    return digest.hexdigest()


def _certificates(subject: Subject) -> list[tuple[str, str]]:
    """Return the divergence along each shown line on these rows, with its certified error, beside that of the fit.

    With more than two classes, line k was found for class k, and its divergence is that of the class from all others.
    """
    model = subject.model
    if not hasattr(model, "divergence_"):
        return [("Certificate", "none: the lines are chosen by their likelihood, not by their divergence")]
    if model.shrinkage is not None:
        return [("Divergence", f"{_numbers(model.divergence_)}, as fitted; not computed anew with shrinkage")]
    eps = model.eps if model.method == _CERTIFIED else 1e-6
    stored = np.atleast_1d(model.divergence_)
    totals = np.asarray(np.bincount(subject.codes, subject.weights, len(model.classes_)), dtype=np.float64)
    check_totals(model.classes_[totals > 0], totals[totals > 0])
    rows = []
    for k in [0] if len(stored) == 1 else subject.shown_classes:
        own = subject.codes == (1 if len(stored) == 1 else k)
        name = "Certificate" if len(stored) == 1 else f"Certificate. {subject.line_name(k)}"
        if not own.any():
            rows.append((name, "none: the class of this line has no rows here"))
            continue
        # Along a direction, only the projections matter.
        z = np.concatenate([_summed(model, coded, k) for coded, _ in subject.blocks()])
        options = {"gamma": model.gamma_, "method": _CERTIFIED, "eps": eps, "sample_weight": subject.weights}
        here = cauchy_schwarz_divergence(z, own, [1.0], **options)
        rows.append((name, _certificate(here, float(stored[k]), eps, bool(model.columns_.categories))))
    return rows


def _summed(model: Any, coded: Any, k: int) -> Floats:
    """Return the weighted sums of coded rows in the k-th line, shape (n_rows, 1), also if the line reads codes."""
    rows = coded if sparse.issparse(coded) else model.columns_.quantities(coded, model.feature_mean_)
    return project_on(rows, model.directions_[[k]], 1)


def _certificate(here: float, stored: float, eps: float, has_scores: bool) -> str:
    """Return what the divergence on these rows says of the fit; both have an error of at most ``eps``."""
    same = abs(here - stored) <= 2 * eps + 1e-9 * abs(stored)
    why = "other rows, rows with weights, or levels with scores from other rows"
    why = why if has_scores else "other rows, or rows with weights"
    verdict = "as in the fit" if same else f"{stored:.7g} in the fit: {why}"
    return f"divergence {here:.7g} on these rows, certified to ±{eps:g}; {verdict}"


def _numbers(values: Any) -> str:
    return ", ".join(f"{value:.5g}" for value in np.atleast_1d(values)[:_MOST_CLASSES_ON_CARD])


def _versions_text() -> str:
    return (
        f"melc {__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"Python {platform.python_version()}"
    )
