"""The data sets: the paper's ten, scikit-learn's own, and generated ones with fixed seeds."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import stats
from sklearn import datasets as bundled

from melc.paper import datasets as paper

PAPER, BUNDLED, GENERATED = "from the paper", "from scikit-learn", "generated"
N_ROWS = 1000

Data = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class DataSet:
    """A data set by name. ``load`` returns its rows and labels, or raises ``melc.paper.datasets.DataSetError``."""

    name: str
    group: str
    what: str
    load: Callable[[], Data]
    n_folds: int = 5


def _of_paper(name: str) -> Data:
    data = paper.load(name)
    return data.X, data.y


def _of_scikit_learn(name: str) -> Data:
    X, y = getattr(bundled, f"load_{name}")(return_X_y=True)
    return X, y


def diabetes_progression() -> Data:
    X, y = _of_scikit_learn("diabetes")
    return X, (y > np.median(y)).astype(int)


def thresholds() -> Data:
    """Classes that alternate along one direction, with four thresholds, and one label in twenty wrong."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N_ROWS, 8))
    z = X @ _direction(8)
    y = np.searchsorted([-1.1, -0.35, 0.35, 1.1], z) % 2
    return X, np.where(rng.random(N_ROWS) < 0.05, 1 - y, y)


def rings() -> Data:
    """A ring between a disc and the outside, in two features of six."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(N_ROWS, 6))
    radius = np.hypot(X[:, 0], X[:, 1]) + 0.1 * rng.normal(size=N_ROWS)
    return X, ((radius > 0.8) & (radius < 1.6)).astype(int)


def xor() -> Data:
    """The sign of a product of two features of six: neither tells anything by itself."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N_ROWS, 6))
    return X, (X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=N_ROWS) > 0).astype(int)


def additive() -> Data:
    """A sum of curves of four features of eight, cut at its median."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(N_ROWS, 8))
    score = 2 * np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 1.5 * np.abs(X[:, 2]) - X[:, 3] + rng.normal(size=N_ROWS)
    return X, (score > np.median(score)).astype(int)


def linear(shape: str = "normal") -> Data:
    """Classes on two sides of a hyperplane, the same in every shape of the features but for how far rows lie out.

    The label depends on the rank of a row's score alone. So the true hyperplane has the same accuracy in every shape,
    and the accuracies of a model can be compared.
    """
    rng = np.random.default_rng(5)
    normal = rng.normal(size=(N_ROWS, 6))
    noise = 0.4 * rng.normal(size=N_ROWS)
    far = rng.random(N_ROWS) < 0.05
    X = {
        "normal": normal,
        "Student t": stats.t.ppf(stats.norm.cdf(normal), df=2),
        "lognormal": np.exp(normal),
        "outliers": normal,
    }[shape]
    ranks = np.argsort(np.argsort(X @ _direction(6)))
    y = (stats.norm.ppf((ranks + 1) / (N_ROWS + 1)) + noise[ranks] > 0).astype(int)
    return (np.where(far[:, None], 20 * X, X) if shape == "outliers" else X), y  # still on its side of the hyperplane


def wide() -> Data:
    """More features than rows: 120 rows, 400 features, of which ten tell the classes apart."""
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(120, 400)), np.repeat([0, 1], 60)
    X[y == 1, :10] += 1.0
    return X, y


def imbalanced() -> Data:
    """Forty rows of one class among two thousand of the other."""
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(2040, 6)), np.repeat([0, 1], [2000, 40])
    X[y == 1, :2] += 1.5
    return X, y


def _direction(n_features: int) -> np.ndarray:
    """A direction of length one to which every feature contributes, each less than the one before."""
    v = (-1.0) ** np.arange(n_features) * np.linspace(1, 0.3, n_features)
    return v / np.linalg.norm(v)


def _all() -> list[DataSet]:
    entries = paper.registry().values()
    shapes = {each.name: f"{each.shape[0]:,} × {each.shape[1]}" for each in entries}
    ten = [DataSet(name, PAPER, what, partial(_of_paper, name)) for name, what in shapes.items()]
    return [
        *ten,
        DataSet("wdbc", BUNDLED, "breast cancer, 569 × 30", partial(_of_scikit_learn, "breast_cancer")),
        DataSet("progression", BUNDLED, "diabetes above the median, 442 × 10", diabetes_progression),
        DataSet("iris", BUNDLED, "three classes, 150 × 4", partial(_of_scikit_learn, "iris"), n_folds=3),
        DataSet("wine", BUNDLED, "three classes, 178 × 13", partial(_of_scikit_learn, "wine"), n_folds=3),
        DataSet("digits", BUNDLED, "ten classes, 1,797 × 64", partial(_of_scikit_learn, "digits"), n_folds=3),
        DataSet("thresholds", GENERATED, "four thresholds along a direction, 1,000 × 8", thresholds),
        DataSet("rings", GENERATED, "a disc, a ring and the outside, 1,000 × 6", rings),
        DataSet("xor", GENERATED, "the sign of a product, 1,000 × 6", xor),
        DataSet("additive", GENERATED, "a sum of curves, 1,000 × 8", additive),
        DataSet("linear", GENERATED, "a hyperplane, normal features, 1,000 × 6", linear),
        DataSet(
            "student-t", GENERATED, "the same, Student t with two degrees of freedom", partial(linear, "Student t")
        ),
        DataSet("lognormal", GENERATED, "the same, lognormal features", partial(linear, "lognormal")),
        DataSet("outliers", GENERATED, "the same, one row in twenty 20 × as far out", partial(linear, "outliers")),
        DataSet("wide", GENERATED, "more features than rows, 120 × 400", wide),
        DataSet("imbalanced", GENERATED, "1 : 50, 2,040 × 6", imbalanced),
    ]


SETS = {each.name: each for each in _all()}
HEAVY_TAILED = ("student-t", "lognormal", "outliers")  # forms of "linear"
