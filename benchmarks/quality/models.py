"""The models. All weigh the classes equally; most have their usual settings."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from melc import MELC, AdditiveMELC

AS_IN_THE_PAPER: dict[str, Any] = {"selection": "divergence", "bandwidth": "silverman"}  # what makes MELC the paper's


@dataclass(frozen=True)
class Model:
    """A model by name.

    ``make`` returns an unfitted estimator for a number of classes and a seed. ``weighted`` models are given balanced
    weights of the rows in ``fit``. ``package`` is the one whose changes may change the results; None means
    scikit-learn's alone.
    """

    name: str
    what: str
    make: Callable[[int, int], Any]
    weighted: bool = False
    package: str | None = None

    @property
    def is_installed(self) -> bool:
        return self.package != "interpret-core" or importlib.util.find_spec("interpret") is not None

    def settings(self) -> str:
        """Return what distinguishes this model from one of the same name with other settings."""
        return " ".join(repr(self.make(2, 0)).split()) + (", balanced weights" if self.weighted else "")


class TunedSVC(ClassifierMixin, BaseEstimator):
    """A support vector machine with a Gaussian kernel; cost and width are chosen by inner folds.

    Its decisions are those of the machine. Its probabilities come from a sigmoid that is fitted to the decision values
    of inner folds.
    """

    def __init__(self, costs: Any = (0.1, 1, 10, 100), widths: Any = (0.001, 0.01, 0.1, 1), random_state: Any = None):
        self.costs = costs
        self.widths = widths
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> "TunedSVC":
        inner = StratifiedKFold(3, shuffle=True, random_state=self.random_state)
        grid = {"C": self.costs, "gamma": self.widths}
        self.search_ = GridSearchCV(SVC(), grid, scoring="balanced_accuracy", cv=inner)
        self.search_.fit(X, y, sample_weight=sample_weight)
        best = SVC(**self.search_.best_params_)
        self.calibrated_ = CalibratedClassifierCV(best, cv=inner, ensemble=False).fit(X, y, sample_weight=sample_weight)
        self.classes_ = self.calibrated_.classes_
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.search_.predict(X)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.calibrated_.predict_proba(X)


def _paper(n_classes: int, seed: int) -> MELC:
    return MELC(random_state=seed, **AS_IN_THE_PAPER)


def _four_lines(n_classes: int, seed: int) -> AdditiveMELC:
    return AdditiveMELC(max_lines=4, random_state=seed)


def _logistic_regression(n_classes: int, seed: int) -> LogisticRegression:
    return LogisticRegression(class_weight="balanced", max_iter=5000)


def _discriminant(n_classes: int, seed: int) -> LinearDiscriminantAnalysis:
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=np.full(n_classes, 1 / n_classes))


def _gradient_boosting(n_classes: int, seed: int) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(class_weight="balanced", random_state=seed)


def _explainable_boosting(n_classes: int, seed: int) -> Any:
    """Main effects only: with its pairs a fit takes three to ten times as long, and is no longer as readable."""
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(interactions=0, n_jobs=1, random_state=seed)


_ALL = (
    Model("MELC", "one direction", lambda n_classes, seed: MELC(random_state=seed), package="melc"),
    Model("MELC-paper", "one direction, chosen as in the paper", _paper, package="melc"),
    Model("AdditiveMELC", "a few lines", lambda n_classes, seed: AdditiveMELC(random_state=seed), package="melc"),
    Model("AdditiveMELC-4", "at most four lines", _four_lines, package="melc"),
    Model("logistic", "logistic regression", _logistic_regression),
    Model("LDA", "linear discriminant analysis with shrinkage", _discriminant),
    Model("boosting", "gradient boosting", _gradient_boosting),
    Model(
        "SVM",
        "support vector machine with a Gaussian kernel",
        lambda n_classes, seed: TunedSVC(random_state=seed),
        weighted=True,
    ),
    Model("EBM", "explainable boosting machine", _explainable_boosting, weighted=True, package="interpret-core"),
)
MODELS = {each.name: each for each in _ALL}
