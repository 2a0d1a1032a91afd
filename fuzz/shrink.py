"""A smaller case that fails in the same way."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from fuzz.cases import Case

_PLAIN = {"method": "moments", "solver": "lbfgs", "gamma": 1.0, "n_init": 1, "max_iter": 1}
_ALWAYS = ("random_state", "n_jobs")


def shrink(case: Case, fails: Callable[[Case], bool], seconds: float = 60.0) -> Case:
    """Take away rows, features, settings and digits while the case still fails, until nothing more can go."""
    end = time.monotonic() + seconds
    smaller: Case | None = case
    while smaller is not None:
        case = smaller
        smaller = next((each for each in _simpler(case) if time.monotonic() < end and fails(each)), None)
    return case


def _simpler(case: Case) -> Iterator[Case]:
    """Cases that have a little less than this one, the largest steps first."""
    n, d = case.X.shape
    for rows in _without_some(n):
        yield case.with_rows(rows)
    for columns in _without_some(d):
        if len(columns):
            yield replace(case, X=case.X[:, columns])
    yield from _plainer(case)
    yield from _rounder(case)


def _without_some(n: int) -> Iterator[np.ndarray]:
    """All numbers below n but a stretch of them: a half, a quarter, …, one."""
    size = n // 2
    while size:
        for start in range(0, n, size):
            yield np.delete(np.arange(n), slice(start, start + size))
        size //= 2


def _plainer(case: Case) -> Iterator[Case]:
    if case.weights is not None:
        yield replace(case, weights=None)
    if case.form != "rows":
        yield replace(case, form="rows")
    if len(case.checks) > 1:
        for name in case.checks:
            yield replace(case, checks=tuple(other for other in case.checks if other != name))
    for name, value in case.settings.items():
        if name in _PLAIN and value != _PLAIN[name]:
            yield replace(case, settings={**case.settings, name: _PLAIN[name]})
        elif name not in _PLAIN and name not in _ALWAYS:
            yield replace(case, settings={key: other for key, other in case.settings.items() if key != name})


def _rounder(case: Case) -> Iterator[Case]:
    """Numbers of fewer digits, all at once, then column by column."""
    for digits in (1, 2, 4):
        rounded = np.array([float(f"{value:.{digits - 1}e}") for value in case.X.ravel()]).reshape(case.X.shape)
        every = np.any(rounded != case.X, axis=0)
        if every.any():
            yield replace(case, X=rounded)
        for column in np.flatnonzero(every):
            X = case.X.copy()
            X[:, column] = rounded[:, column]
            yield replace(case, X=X)
