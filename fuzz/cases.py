"""What is fitted: a case is data and settings, drawn from a seed and a number, and written as JSON."""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Rng = np.random.Generator

# Checks that cost a fit or more: a case takes one of them.
COSTLY = (
    "row order",
    "repeats",
    "common scale",
    "units",
    "translation",
    "form",
    "certificate",
    "lines",
    "feature order",
    "label swap",
    "missing values",
)

FORMS: dict[str, Callable[[Floats], Any]] = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
}


@dataclass(frozen=True)
class Case:
    """Rows X with classes y, perhaps weights, the form in which X is handed over, and the parameters of the model."""

    X: Floats
    y: NDArray[np.int64]
    weights: Floats | None
    form: str
    settings: dict[str, Any]
    checks: tuple[str, ...]

    def features(self) -> Any:
        return FORMS[self.form](self.X)

    def to_json(self) -> str:
        values = {name: _plain(value) for name, value in vars(self).items()}
        return json.dumps(values)

    @classmethod
    def from_json(cls, text: str) -> "Case":
        values = json.loads(text)
        weights = values["weights"]
        return cls(
            X=np.array(values["X"], dtype=float),
            y=np.array(values["y"], dtype=np.int64),
            weights=None if weights is None else np.array(weights, dtype=float),
            form=values["form"],
            settings=values["settings"],
            checks=tuple(values["checks"]),
        )

    def with_rows(self, rows: NDArray[Any]) -> "Case":
        weights = None if self.weights is None else self.weights[rows]
        return dataclasses.replace(self, X=self.X[rows], y=self.y[rows], weights=weights)

    def snippet(self) -> str:
        """The fit as a few lines of Python."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        form = {
            "rows": "",
            "columns": "X = np.asfortranarray(X)\n",
            "float32": "X = X.astype(np.float32)\n",
            "csr": "X = scipy.sparse.csr_array(X)\n",
            "csc": "X = scipy.sparse.csc_array(X)\n",
        }[self.form]
        weights = "" if self.weights is None else f", sample_weight={self.weights.tolist()}"
        return (
            f"import numpy as np, scipy.sparse\nfrom melc import MELC\n\nX = np.array({self.X.tolist()})\n{form}"
            f"y = {self.y.tolist()}\nmodel = MELC({given}).fit(X, y{weights})\n"
        )


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def draw(seed: int, number: int) -> Case:
    """Case ``number`` of a seed: the same whenever it is drawn."""
    rng = np.random.default_rng([seed, number])
    n, d, n_classes = _shape(rng)
    y = _labels(rng, n, n_classes)
    X = _features(rng, y, d)
    _set_apart(rng, X, y)
    if rng.random() < 0.07:
        X[rng.integers(n), rng.integers(d)] = 1e12 * rng.choice([-1, 1])
    form = str(rng.choice(list(FORMS), p=[0.6, 0.1, 0.1, 0.1, 0.1]))
    X = _scaled(rng, X, single_precision=form == "float32")
    if form == "float32":
        X = X.astype(np.float32).astype(float)
    return Case(X, y, _weights(rng, n), form, _settings(rng, n, n_classes), (str(rng.choice(COSTLY)),))


def _shape(rng: Rng) -> tuple[int, int, int]:
    """Mostly small; sometimes more features than rows, or so many rows that bins and samples are used."""
    n_classes = int(rng.choice([2, 3, 4, 5], p=[0.85, 0.09, 0.04, 0.02]))
    kind = rng.random()
    if kind < 0.0004:
        return int(rng.integers(20_001, 24_000)), int(rng.integers(1, 4)), 2
    if kind < 0.02:
        return int(rng.integers(1_000, 5_000)), int(rng.integers(1, 5)), min(n_classes, 3)
    if kind < 0.12:
        n = int(rng.integers(2 * n_classes, 20))
        return n, int(rng.integers(n - 1, 2 * n + 1)), n_classes
    return int(rng.integers(max(10, 2 * n_classes), 200)), int(rng.integers(1, 8)), n_classes


def _labels(rng: Rng, n: int, n_classes: int) -> NDArray[np.int64]:
    """At least two rows a class; at times no more in the first."""
    sure = np.repeat(np.arange(n_classes), 2)
    lowest = 1 if rng.random() < 0.15 else 0
    return rng.permutation(np.concatenate([sure, rng.integers(lowest, n_classes, size=n - len(sure))]))


_COLUMNS: dict[str, Callable[[Rng, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "uniform": lambda rng, n: rng.uniform(size=n),
    "integer": lambda rng, n: rng.poisson(3, size=n).astype(float),
    "binary": lambda rng, n: rng.integers(2, size=n).astype(float),
    "ties": lambda rng, n: np.round(rng.normal(size=n), 1),
    "cauchy": lambda rng, n: rng.standard_cauchy(size=n),
    "log-normal": lambda rng, n: rng.lognormal(sigma=2, size=n),
    "constant": lambda rng, n: np.full(n, rng.choice([0.0, 1.0, 0.1, -7e8])),
}
_WITHOUT_SHIFT = ("binary", "constant")


def _features(rng: Rng, y: NDArray[np.int64], d: int) -> Floats:
    """Columns of all kinds, or all of one kind; each says something of the classes or nothing."""
    kinds = rng.choice(list(_COLUMNS), size=d)
    if rng.random() < 0.3:
        kinds[:] = kinds[0]
    strength = rng.choice([0.0, 0.5, 2.0])
    columns: list[Floats] = []
    for kind in kinds:
        column = _COLUMNS[kind](rng, len(y))
        if kind not in _WITHOUT_SHIFT:
            shifts = strength * rng.normal(size=y.max() + 1)
            column += np.round(shifts)[y] if kind == "integer" else shifts[y]
        if columns and rng.random() < 0.08:  # another column once more, perhaps in other units
            column = columns[int(rng.integers(len(columns)))] * rng.choice([1.0, -2.5])
        columns.append(column)
    return np.column_stack(columns)


def _set_apart(rng: Rng, X: Floats, y: NDArray[np.int64]) -> None:
    """Classes that touch, that just part, or that lie up to a billion bandwidths apart."""
    kind, column = rng.random(), rng.integers(X.shape[1])
    if kind < 0.05:
        X[:, column] = y + rng.choice([0.0, 1.0, 0.5, 0.25], size=len(y))
    elif kind < 0.10:
        X[:, column] = y + rng.uniform(0, 0.9, size=len(y))
    elif kind < 0.22:
        X += np.outer(y * 10 ** rng.uniform(3, 9), rng.normal(size=X.shape[1]))


def _scaled(rng: Rng, X: Floats, single_precision: bool) -> Floats:
    """Other units, for all features or for each."""
    d = X.shape[1]
    kind = rng.random()
    if kind < 0.55:
        return X
    if kind < 0.68:
        return np.asarray(X * 10 ** rng.uniform(-8, 8, size=d))
    if kind < 0.80 or single_precision:
        return np.asarray(X + np.round(rng.normal(size=d), 2) * (1e4 if single_precision else 1e9))
    if kind < 0.90:
        return np.asarray(X * 10 ** rng.uniform(-150, 150))
    return np.asarray(X * rng.choice([1e-150, 1.0, 1e150], size=d))


def _weights(rng: Rng, n: int) -> Floats | None:
    kind = rng.random()
    if kind < 0.75:
        return None
    if kind < 0.88:
        return rng.integers(1, 5, size=n).astype(float)
    if kind < 0.96:
        return rng.uniform(0.1, 3, size=n)
    return np.asarray(10.0 ** rng.uniform(-6, 6, size=n))


def _settings(rng: Rng, n: int, n_classes: int) -> dict[str, Any]:
    slow = n > 700
    method = str(rng.choice(["moments", "exact", "discard", "bin"], p=[0.5, 0.2, 0.15, 0.15]))
    if slow and (n > 1_500 or rng.random() < 0.8):
        method = "moments"
    settings: dict[str, Any] = {
        "method": method,
        "solver": str(rng.choice(["lbfgs", "cg", "sphere"], p=[0.6, 0.2, 0.2])),
        "gamma": float(rng.choice([1.0, 0.1, 0.3, 3.0, 10.0], p=[0.6, 0.1, 0.1, 0.1, 0.1])),
        "selection": str(rng.choice(["divergence", "likelihood"])),
        "n_init": int(rng.integers(1, 3 if slow else 4)),
        "max_iter": int(rng.choice([1, 5, 15] if slow else [1, 5, 15, 40])),
        "random_state": int(rng.integers(1000)),
        "n_jobs": 1,
    }
    if method in ("discard", "bin"):
        settings["eps"] = float(rng.choice([1e-6, 1e-3, 0.1]))
    if rng.random() < 0.3:
        settings["shrinkage"] = ["auto", 0.1, 1.0][int(rng.integers(3))]
    if rng.random() < 0.15:
        settings["priors"] = "empirical"
    elif rng.random() < 0.1:
        shares = rng.choice([1e-12, 1e-6, 0.2, 1.0, 5.0], size=n_classes)
        settings["priors"] = (shares / shares.sum()).tolist()
    return settings
