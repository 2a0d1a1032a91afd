"""From options to an unfitted model, and cross-validation with a progress bar."""

from typing import Any

import typer

from melc.cli.console import Reporter

# Large files are cross-validated on a sample of this many rows.
_MOST_CROSS_VALIDATED = 100_000


def unfitted_model(*, method: str, shrinkage: str | None, priors: str | None, seed: int, **parameters: Any) -> Any:
    """Return an unfitted model; options that it would refuse are refused here, before any work."""
    from melc.classifier import MELC
    from melc.objective import METHODS

    if method not in METHODS:
        raise typer.BadParameter(f"{method!r} is not one of {', '.join(METHODS)}.", param_hint="--method")
    given: dict[str, Any] = {"shrinkage": _shrinkage(shrinkage), "priors": _priors(priors), "random_state": seed}
    return MELC(method=method, **given, **parameters)


def _shrinkage(given: str | None) -> float | str | None:
    """Return the value of ``--shrinkage`` as ``MELC`` takes it."""
    if given is None or given == "auto":
        return given
    try:
        number = float(given)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ValueError(f"--shrinkage must be auto or a number from 0 to 1; got {given}.")
    return number


def _priors(given: str | None) -> str | list[float] | None:
    """Return the value of ``--priors`` as ``MELC`` takes it."""
    if given is None or given == "empirical":
        return given
    try:
        return [float(number) for number in given.split(",")]
    except ValueError:
        raise ValueError(
            f"--priors must be empirical, or numbers in the order of the classes such as 0.9,0.1; got {given}."
        ) from None


def cross_validated_accuracy(problem: Any, model: Any, seed: int, report: Reporter) -> tuple[float, float, int] | None:
    """Return (mean, standard deviation, number of folds) of the balanced accuracy; None if a class has one row."""
    from melc.tables.assess import possible_folds, summarise

    n_folds = possible_folds(problem, 5)
    if n_folds < 2:
        report.note("no cross-validation: a class has only one row")
        return None
    summary = summarise(fold_scores(problem, {"MELC": model}, n_folds, seed, report))[0]
    return summary.means[0], summary.spreads[0], n_folds


def fold_scores(problem: Any, models: dict[str, Any], n_folds: int, seed: int, report: Reporter) -> list[Any]:
    """Return the scores of every model on every fold, with a progress bar."""
    from melc.tables.assess import cross_validate

    problem = _sampled(problem, seed, report)
    scores = []
    with report.progress("cross-validation", n_folds * len(models)) as step, report.warnings_as_notes():
        for score in cross_validate(problem, models, n_folds=n_folds, seed=seed):
            scores.append(score)
            step()
    return scores


def _sampled(problem: Any, seed: int, report: Reporter) -> Any:
    """Return a sample of a problem in a mapped file, and other problems as they are."""
    from melc.tables.problem import StoredProblem

    n_rows = sum(problem.class_counts.values())
    if not isinstance(problem, StoredProblem) or n_rows <= _MOST_CROSS_VALIDATED:
        return problem
    report.note(f"cross-validation uses a random sample of {_MOST_CROSS_VALIDATED:,} of the {n_rows:,} rows")
    return problem.sample(_MOST_CROSS_VALIDATED, seed)
