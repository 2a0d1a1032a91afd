"""The demonstration ``melc demo``: two data sets compared with logistic regression, and tables to try."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from melc.classifier import MELC
from melc.export.files import replacing
from melc.model.units import fitted_model
from melc.plotting import ProjectionDisplay
from melc.plotting.common import new_figure

PICTURE = "densities.png"


@dataclass(frozen=True)
class Example:
    """A data set and one line about what it shows. ``X`` has shape (n_rows, n_features), ``y`` (n_rows,)."""

    name: str
    X: Any
    y: Any
    story: str


@dataclass(frozen=True)
class Comparison:
    """Scores of both models on the test rows, and the fitted pipeline and test rows ``(X, y)`` for the picture."""

    example: Example
    melc_accuracy: float
    logistic_accuracy: float
    melc_seconds: float
    logistic_seconds: float
    pipeline: Pipeline
    held_out: tuple[Any, Any]

    @property
    def thresholds(self) -> list[float]:
        """The thresholds of MELC along its line, in the units of the columns, as in the picture."""
        return [float(t) for t in fitted_model(self.pipeline).thresholds_]


def breast_cancer() -> Example:
    """Return scikit-learn's breast cancer data: 569 tumours, 30 features. There a linear model is as good."""
    data = load_breast_cancer(as_frame=True)
    labels = data.target_names[data.target]
    return Example("breast cancer", data.data, labels, "one threshold does the work, and a linear model is as good")


def healthy_range(n_rows: int = 2000, n_features: int = 8, seed: int = 0) -> Example:
    """Return generated rows that are "well" if a hidden linear combination of the features is neither low nor high.

    A single threshold cannot separate the two classes, so a linear model does little better than guessing.
    """
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(n_features, n_features))
    X = rng.normal(size=(n_rows, n_features)) @ mixing
    hidden = X @ rng.normal(size=n_features)
    level = hidden / hidden.std() + 0.1 * rng.normal(size=n_rows)
    y = np.where(np.abs(level) < 0.7, "well", "ill")
    return Example("healthy range", X, y, "well in the middle, ill at both ends")


def write_tables(folder: Path) -> list[Path]:
    """Write the tables of the user guide to a folder: patients, a few new ones, and more to test a model with.

    They are well if a combination of two values is neither low nor high.
    """
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, n in {"patients.csv": 300, "new.csv": 5, "test.csv": 100}.items():
        iron, sugar = rng.normal(100, 20, n).round(1), rng.normal(5, 1, n).round(2)
        well = np.abs((iron - 100) / 20 + (sugar - 5) + rng.normal(0, 0.2, n)) < 0.9
        columns = (range(n), iron, sugar, rng.choice(list("ABC"), n), np.where(well, "well", "ill"))
        rows = ["id,iron,sugar,ward,outcome", *(",".join(map(str, row)) for row in zip(*columns, strict=True))]
        with replacing(folder / name) as draft:
            draft.write_text("\n".join(rows) + "\n", encoding="utf-8")
        paths.append(folder / name)
    return paths


def compare(example: Example, seed: int = 0) -> Comparison:
    """Fit MELC and logistic regression on half of the rows and score them on the other half."""
    X_train, X_test, y_train, y_test = train_test_split(
        example.X, example.y, test_size=0.5, stratify=example.y, random_state=seed
    )
    melc = make_pipeline(StandardScaler(), MELC(random_state=seed))
    logistic = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
    times = [_timed_fit(model, X_train, y_train) for model in (melc, logistic)]
    scores = [balanced_accuracy_score(y_test, model.predict(X_test)) for model in (melc, logistic)]
    return Comparison(example, scores[0], scores[1], times[0], times[1], melc, (X_test, y_test))


def _timed_fit(model: BaseEstimator, X: Any, y: Any) -> float:
    """Fit the model and return the time in seconds."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        # With thirty correlated features the last digits of D take many iterations and do not matter here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return time.perf_counter() - start


def table(outcomes: list[Comparison]) -> str:
    """Return the comparison as a plain-text table."""
    lines = [
        f"{'':<16}{'balanced accuracy':>26}{'fit time':>22}",
        f"{'':<16}{'MELC':>12}{'logistic':>14}{'MELC':>12}{'logistic':>10}   thresholds of MELC",
    ]
    for outcome in outcomes:
        shown = ", ".join(f"{t:.3g}" for t in outcome.thresholds)
        lines.append(
            f"{outcome.example.name:<16}{outcome.melc_accuracy:>12.3f}{outcome.logistic_accuracy:>14.3f}"
            f"{outcome.melc_seconds:>10.2f} s{outcome.logistic_seconds:>8.2f} s   {shown}"
        )
    return "\n".join(lines)


def save_picture(outcomes: list[Comparison], path: Path) -> None:
    """Save one panel per data set: the class densities of MELC along its line, with the test rows."""
    figure = new_figure(7, 4 * len(outcomes))
    for ax, outcome in zip(figure.subplots(len(outcomes), squeeze=False)[:, 0], outcomes, strict=True):
        title = f"{outcome.example.name}: {outcome.example.story}"
        ProjectionDisplay.from_estimator(outcome.pipeline, *outcome.held_out, title=title, ax=ax)
    with replacing(path) as draft:
        figure.savefig(draft, dpi=150)


def run_demo(output: Path, say: Callable[[str], Any] = print) -> list[Comparison]:
    """Run the demonstration: fit, print the table with ``say``, save the picture in the folder ``output``."""
    output.mkdir(parents=True, exist_ok=True)
    say("Compiling, then fitting two data sets: training on half of the rows, testing on the other half.")
    examples = (healthy_range(), breast_cancer())
    for example in examples:  # so that the times shown do not include compilation
        compare(example)
    outcomes = [compare(example) for example in examples]
    say("\n" + table(outcomes) + "\n")
    save_picture(outcomes, output / PICTURE)
    say(f"Picture written to {output / PICTURE}")
    return outcomes
