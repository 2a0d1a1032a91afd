"""From options to an unfitted model, and cross-validation with a progress bar."""

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import typer

from melc.cli.console import Reporter
from melc.cli.options import ModelOptions

# Folds of the cross-validation after a fit, and the rows of a large file that it uses, a random sample.
_FOLDS_AFTER_FIT, _MAX_ROWS_CROSS_VALIDATED = 5, 100_000
# Rows on which the other kind of model is validated, a random sample of more.
_MAX_ROWS_COMPARED = 5_000

# Parameters of `melc evaluate` that have no effect on a model that is fitted already.
_FOR_FITTING = {"cv", "compare", "drop", "keep_only", "positive", "categorical"} | {
    f.name for f in fields(ModelOptions)
}

# Options that take a word or a number: the words, a description of the numbers, and their test, which NaN must fail.
_NUMBERS: dict[str, tuple[tuple[str, ...], str, Callable[[float], bool]]] = {
    "lines": (("auto",), "a whole number from 1 to 10000", lambda x: 1 <= x <= 10_000 and x.is_integer()),
    "gamma": (("auto",), "a number from 1e-15 to 1e15", lambda x: 1e-15 <= x <= 1e15),
    "bandwidth": (("robust", "silverman", "pooled"), "a positive number", lambda x: 0 < x < math.inf),
    "shrinkage": (("auto",), "a number from 0 to 1", lambda x: 0 <= x <= 1),
}


def unfitted_model(lines: str | None, seed: int, categorical_features: list[str] | None = None, **options: Any) -> Any:
    """Return an unfitted ``MELC``, or with ``lines`` an ``AdditiveMELC``, with the options that are not None.

    Options that it would refuse, or does not have, are refused here, before any work.
    """
    from melc.additive import AdditiveMELC
    from melc.classifier import MELC

    given = {name: _value(name, text) for name, text in options.items() if text is not None}
    always: dict[str, Any] = {"categorical_features": categorical_features or None, "random_state": seed}
    if lines is None:
        return MELC(**always, **given)
    known = AdditiveMELC().get_params()
    without_effect = ["--" + name.replace("_", "-") for name in given if name not in known]
    if without_effect:
        raise ValueError(f"{without_effect[0]} has no effect with --lines; leave out one of them.")
    if given.get("gamma") == "auto":
        raise ValueError("--gamma auto does not work with --lines; give a number, or leave out one of them.")
    n_lines = _number_or_word("lines", lines)
    if n_lines != "auto":
        given["max_lines"] = int(n_lines)
    return AdditiveMELC(**always, **given)


def check_no_fitting_options(context: typer.Context) -> None:
    """Refuse options of a fit that would be ignored, because a fitted model is scored."""
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "")
        if parameter.name in _FOR_FITTING and given is not None and given.name == "COMMANDLINE":
            raise typer.BadParameter(
                f"{parameter.opts[0]} belongs to a fit, and --model scores a model that is fitted already."
            )


def two_kinds(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the given model by name, and the other kind of model by name."""
    from melc.additive import AdditiveMELC
    from melc.classifier import MELC

    names = {MELC: "MELC", AdditiveMELC: "additive MELC"}
    (other,) = set(names) - {type(model)}
    shared = {name: getattr(model, name) for name in ("priors", "random_state", "categorical_features")}
    return {names[type(model)]: model}, {names[other]: other(**shared)}


def compared_models(model: Any, compare: bool) -> dict[str, Any]:
    """Return the models to evaluate, by name: the given one and, to ``compare``, the other kind and common ones."""
    from melc.tables.assess import competitors

    own, other = two_kinds(model)
    return own | other | competitors(model.categorical_features or ()) if compare else own


def n_steps(model: Any, n_classes: int) -> int:
    """Return the number of runs of a fit, or the most lines: what its progress counts."""
    each = model.max_lines if hasattr(model, "max_lines") else model.n_init
    return int(each * (n_classes if n_classes > 2 else 1))


def _value(name: str, given: Any) -> Any:
    """Return the value of an option as the models take it."""
    from melc.objective import METHODS

    if name == "method" and given not in METHODS:
        raise typer.BadParameter(f"{given!r} is not one of {', '.join(METHODS)}.", param_hint="--method")
    if name == "priors":
        return _parsed_priors(given)
    if name == "selection":
        return str(given)
    return _number_or_word(name, given) if name in _NUMBERS else given


def _number_or_word(option: str, given: str) -> float | str:
    """Return the value of an option that is a number or one of a few words."""
    words, what, is_right = _NUMBERS[option]
    if given in words:
        return given
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not is_right(number):
        raise typer.BadParameter(f"{given!r} is not {', '.join(words)} or {what}.", param_hint=f"--{option}")
    return number


def _parsed_priors(given: str) -> str | list[float] | dict[str, float]:
    """Return the value of ``--priors`` as ``MELC`` takes it, but that labels are texts."""
    if given in ("empirical", "balanced"):
        return given
    pairs = [part.rpartition("=") for part in given.split(",")]
    try:
        numbers = [float(number) for _, _, number in pairs]
    except ValueError:
        numbers = []
    labels = {label.strip() for label, mark, _ in pairs if mark}
    if not numbers or len(labels) not in (0, len(pairs)):
        raise ValueError(
            "--priors must be empirical, balanced, or a number for each class, as no=0.9,yes=0.1 or in their order "
            f"0.9,0.1; got {given}."
        )
    return {label.strip(): x for (label, _, _), x in zip(pairs, numbers, strict=True)} if labels else numbers


def order_priors(model: Any, classes: Any) -> None:
    """Put priors that were given by label into the order of the classes."""
    labels = [str(label) for label in classes]
    if not isinstance(model.priors, dict):
        return
    if set(model.priors) != set(labels):
        raise ValueError(
            f"--priors needs a number for each of the classes {', '.join(labels[:10])}{', …' * (len(labels) > 10)}, "
            f"and has {', '.join(model.priors)}."
        )
    model.priors = [model.priors[label] for label in labels]


def verdict_on(rows: Any, model: Any, seed: int, report: Reporter) -> Any | None:
    """Return the :class:`melc.tables.summary.Verdict` of cross-validation; None if a class has too few rows.

    The other kind of model is validated as well, on at most ``_MAX_ROWS_COMPARED`` rows, to compare the two.
    """
    from melc.tables.assess import possible_folds, said_of_few_rows, summarise
    from melc.tables.summary import Verdict

    n_folds = possible_folds(rows, _FOLDS_AFTER_FIT)
    if not n_folds:
        report.note(f"no cross-validation: {said_of_few_rows(rows)}")
        return None
    own, other = two_kinds(model)
    scores = summarise(fold_scores(rows, own, n_folds, seed, report))[0]
    some = rows.sample(_MAX_ROWS_COMPARED, seed) if len(rows.codes) > _MAX_ROWS_COMPARED else rows
    quietly = Reporter(report.quiet, noting=False)
    beside = summarise(fold_scores(some, other, n_folds, seed, quietly, "to compare with"))[0]
    return Verdict([str(label) for label in rows.classes], scores, n_folds, beside)


def fold_scores(
    rows: Any, models: dict[str, Any], n_folds: int, seed: int, report: Reporter, why: str = ""
) -> list[Any]:
    """Return the scores of every model on every fold of :class:`melc.tables.Training` rows, with a progress bar."""
    from melc.tables.assess import cross_validate

    n_rows = len(rows.codes)
    if rows.is_large and n_rows > _MAX_ROWS_CROSS_VALIDATED:
        report.note(f"cross-validation uses a random sample of {_MAX_ROWS_CROSS_VALIDATED:,} of the {n_rows:,} rows")
        rows = rows.sample(_MAX_ROWS_CROSS_VALIDATED, seed)
    scores = []
    doing = f"cross-validation ({why} {', '.join(models)})" if why else "cross-validation"
    with report.progress(doing, n_folds * len(models)) as step:
        for score in cross_validate(rows, models, n_folds=n_folds, seed=seed):
            scores.append(score)
            step()
    return scores
