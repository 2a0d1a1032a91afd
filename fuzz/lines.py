"""What must hold of an additive model, whatever the data."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fuzz.cases import FORMS, Case
from melc import AdditiveMELC

# Settings that MELC has as well, and values of its own.
_SHARED = ("gamma", "random_state", "n_jobs", "priors")
_OWN: dict[str, tuple[Any, ...]] = {"features_per_line": (2, 1, None), "full_lines": ("auto", "first", "never")}


def faults(case: Case) -> Iterator[str]:
    """Fit lines to the data of a case, and tell what is wrong with them."""
    model = _fitted(case)
    for line in model.lines_:
        numbers = line.coef, line.knots, line.log_odds, line.densities, line.counts, line.feature_importances
        if not all(np.isfinite(each).all() for each in numbers):
            yield f"a line is not finite: {line}"
        if abs(np.linalg.norm(line.coef) - 1) > 1e-12:
            yield f"a direction of length {np.linalg.norm(line.coef)}"
        if np.any(np.diff(line.knots) <= 0):
            yield f"knots do not ascend: {line.knots}"
        if not len(line.adds()) == len(line.favours) == len(line.counts) == len(line.thresholds) + 1:
            yield f"{len(line.thresholds)} thresholds, but {len(line.adds())} and {len(line.counts)} intervals"
    yield from _faults_of_predictions(model, case)
    if case.X.size <= 200_000:
        order = np.random.default_rng(len(case.y)).permutation(len(case.y))
        other = _fitted(case.with_rows(order))
        if not np.array_equal(other.coef_, model.coef_):
            yield f"coef_ {model.coef_} became {other.coef_} with other rows first"


def _fitted(case: Case) -> AdditiveMELC:
    rng = np.random.default_rng(case.settings["random_state"])
    shape: dict[str, Any] = {name: values[int(rng.integers(len(values)))] for name, values in _OWN.items()}
    settings = {
        name: case.settings[name] for name in ("gamma", "random_state", "n_jobs", "priors") if name in case.settings
    }
    return AdditiveMELC(max_lines=int(rng.choice([1, 4, 40])), **shape, **settings).fit(
        case.features(), case.y, case.weights
    )


def _faults_of_predictions(model: AdditiveMELC, case: Case) -> Iterator[str]:
    largest = np.finfo(np.float32).max if case.form == "float32" else 1e300
    edge = np.full((1, case.X.shape[1]), largest)
    X = FORMS[case.form](np.concatenate([case.X[:200], edge, -edge, 0 * edge]))
    proba, decision, labels = model.predict_proba(X), model.decision_function(X), model.predict(X)
    if not (np.isfinite(decision).all() and np.isfinite(model.predict_log_proba(X)).all()):
        yield f"decisions are not finite: {decision}"
    if not np.allclose(proba.sum(axis=1), 1, rtol=0, atol=1e-12):
        yield "probabilities do not add up to one"
    if not np.array_equal(labels, model.classes_[np.argmax(proba, axis=1)]):
        yield "predict is not the most likely class"
    total = model.line_log_odds(X).sum(axis=1) + model.intercept_.sum()
    if not np.allclose(decision if decision.ndim == 1 else decision.sum(axis=1), total, rtol=1e-9, atol=1e-9):
        yield "lines do not add up to the decision"
