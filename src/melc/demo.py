"""A first look: two data sets, a table beside logistic regression, and a picture of what was learned.

Run it with ``python -m melc.demo --output DIR``.
"""

import argparse
import sys
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
from melc.files import replacing
from melc.plotting import ProjectionDisplay

PICTURE = "densities.png"


@dataclass(frozen=True)
class Example:
    """A data set: rows, labels, and what it shows."""

    name: str
    X: Any
    y: Any
    story: str


@dataclass(frozen=True)
class Outcome:
    """How both models did on the rows held out, and the fitted pipeline for the picture."""

    example: Example
    melc_accuracy: float
    logistic_accuracy: float
    thresholds: tuple[float, ...]
    melc_seconds: float
    logistic_seconds: float
    pipeline: Pipeline
    held_out: tuple[Any, Any]


def breast_cancer() -> Example:
    """569 tumours with 30 measurements each, as scikit-learn has them."""
    data = load_breast_cancer(as_frame=True)
    labels = data.target_names[data.target]
    return Example("breast cancer", data.data, labels, "one cut does most of the work")


def healthy_range(n_rows: int = 2000, n_features: int = 8, seed: int = 0) -> Example:
    """Generated rows that are well only while a hidden combination of the features is neither low nor high.

    No single threshold tells the two classes apart, so a linear model can do no better than guess.
    """
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(n_features, n_features))
    X = rng.normal(size=(n_rows, n_features)) @ mixing
    hidden = X @ rng.normal(size=n_features)
    level = hidden / hidden.std() + 0.1 * rng.normal(size=n_rows)
    y = np.where(np.abs(level) < 0.7, "well", "ill")
    return Example("healthy range", X, y, "well in the middle, ill at both ends")


def compare(example: Example, seed: int = 0) -> Outcome:
    """Fit MELC and logistic regression on one half of the rows and score them on the other."""
    X_train, X_test, y_train, y_test = train_test_split(
        example.X, example.y, test_size=0.5, stratify=example.y, random_state=seed
    )
    melc = make_pipeline(StandardScaler(), MELC(random_state=seed))
    logistic = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
    seconds = [_timed_fit(model, X_train, y_train) for model in (melc, logistic)]
    scores = [balanced_accuracy_score(y_test, model.predict(X_test)) for model in (melc, logistic)]
    return Outcome(
        example=example,
        melc_accuracy=scores[0],
        logistic_accuracy=scores[1],
        thresholds=tuple(float(t) for t in melc[-1].thresholds_),
        melc_seconds=seconds[0],
        logistic_seconds=seconds[1],
        pipeline=melc,
        held_out=(X_test, y_test),
    )


def _timed_fit(model: BaseEstimator, X: Any, y: Any) -> float:
    start = time.perf_counter()
    with warnings.catch_warnings():
        # The last digits of D take long among thirty entangled features, and matter little here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return time.perf_counter() - start


def table(outcomes: list[Outcome]) -> str:
    """The comparison as plain text."""
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


def draw(outcomes: list[Outcome], path: Path) -> None:
    """The densities of both models with the rows held out, one above the other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4 * len(outcomes)), layout="constrained")
    for ax, outcome in zip(figure.subplots(len(outcomes), squeeze=False)[:, 0], outcomes, strict=True):
        title = f"{outcome.example.name}: {outcome.example.story}"
        ProjectionDisplay.from_estimator(outcome.pipeline, *outcome.held_out, title=title, ax=ax)
    with replacing(path) as draft:
        figure.savefig(draft, dpi=150)


def run(output: Path, say: Callable[[str], Any] = print) -> list[Outcome]:
    """The whole demonstration: fit, print the table, save the picture in ``output``."""
    output.mkdir(parents=True, exist_ok=True)
    say("Compiling, then fitting two data sets; each is trained on half of its rows, scored on the other.")
    _compile()
    outcomes = [compare(example) for example in (breast_cancer(), healthy_range())]
    say("\n" + table(outcomes) + "\n")
    draw(outcomes, output / PICTURE)
    say(f"The picture of both is in {output / PICTURE}")
    return outcomes


def _compile() -> None:
    """Fit something tiny, so that the times shown are those of fitting, not of compiling."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 2)) + 2 * y[:, None]
    model = MELC(n_init=1, random_state=0).fit(X, y)
    model.predict(X)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m melc.demo", description=__doc__)
    parser.add_argument(
        "--output", type=Path, default=Path("demo-output"), metavar="DIR", help="where the picture goes"
    )
    options = parser.parse_args(arguments)
    try:
        run(options.output)
    except (OSError, ImportError) as error:
        print(f"melc demo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
