"""The page docs/quality.md, made from the records: what is said about the figures follows from them."""

import os
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.quality import figures
from benchmarks.quality.models import MODELS
from benchmarks.quality.sets import BUNDLED, GENERATED, HEAVY_TAILED, PAPER, SETS
from benchmarks.quality.summary import ACCURACY, LINES, LOSS, SECONDS, Summary
from melc.export.files import replacing

NOTABLE = 0.01  # smaller differences of accuracy are not listed

_INTRODUCTION = """# Accuracy and log loss

melc is compared with other classifiers on {n_sets} data sets: {groups}. The models and the data sets
are listed at the end of this page. Each model is evaluated by stratified cross-validation, repeated {n_repeats} times,
with 5 folds, or 3 folds if there are more than two classes. Features are standardised inside each fold. All models
weight the classes equally, and so do the scores:

- **balanced accuracy**: the share of rows classified correctly within each class, averaged over the classes;
- **balanced log loss**: the mean of −log p of the true class within each class, averaged over the classes. It punishes
  confident errors most; guessing between two classes gives log 2 = 0.69;
- **rank**: 1 for the highest balanced accuracy on a data set;
- **seconds**: processor time of a fit on one thread, the median over folds. For the support vector machine it includes
  the choice of its cost and kernel width;
- **lines**: the number of projections to read. Linear models and `MELC` have one, or one for each class if there are
  more than two.

The whole page is written by `python -m benchmarks.quality`; after an interruption, the same command continues.
Differences of less than 0.01 on a data set mean little: other folds change the scores by as much. Each generated data
set has one particular shape, and some of these shapes are those that melc is made for. So their mean says little; look
at each of them.
"""

_MODELS = """## The models

{rows}

All models have their default settings, with three exceptions: they weight the classes equally, the support vector
machine is tuned by inner cross-validation, and the explainable boosting machine has no pairs of features, with which it
takes three to ten times as long. Versions: {versions}.
"""


def write(summary: Summary, page: Path, images: Path) -> None:
    """Write the page, and its pictures into the folder ``images``."""
    pictures = figures.draw(summary, images)
    page.parent.mkdir(parents=True, exist_ok=True)
    shown = {name: _picture(name, title, page, images) for name, title in pictures.items()}
    with replacing(page) as draft:
        draft.write_text(text(summary, shown), encoding="utf-8")


def _picture(name: str, title: str, page: Path, images: Path) -> str:
    return f"![{title}]({Path(os.path.relpath(images / name, page.parent)).as_posix()})"


def text(summary: Summary, pictures: dict[str, str]) -> str:
    """Return the page. ``pictures`` has the Markdown of each picture by its file name."""
    parts = [
        _introduction(summary),
        _gaps(summary),
        "## In short\n",
        _overview(summary),
        "## Wins and losses\n\nA dot for each data set; to the right of zero, melc is better.\n",
        f"{pictures['quality-differences.svg']}\n",
        *(_comparison(summary, name) for name in summary.models if MODELS[name].package == "melc"),
        _heavy_tails(summary),
        f"## Balanced accuracy\n\n{pictures['quality-accuracy.svg']}\n",
        _by_set(summary, ACCURACY, _fraction, spreads=True),
        f"## Balanced log loss\n\n{pictures['quality-loss.svg']}\n",
        _by_set(summary, LOSS, _fraction, best=min),
        f"## Lines\n\n{pictures['quality-lines.svg']}\n",
        _by_set(summary, LINES, _count, best=None, models=[m for m in summary.models if m.startswith("Additive")]),
        "## Seconds per fit\n",
        _by_set(summary, SECONDS, _seconds, best=None),
        _descriptions(summary),
    ]
    return "\n".join(part for part in parts if part)


def _introduction(summary: Summary) -> str:
    counts = Counter(SETS[name].group for name in summary.sets)
    groups = ", ".join(f"{count} {group}" for group, count in counts.items())
    return _INTRODUCTION.format(n_repeats=summary.n_repeats, n_sets=len(summary.sets), groups=groups)


def _gaps(summary: Summary) -> str:
    """Name the data sets and models that were not measured, or not together."""
    absent = [name for name in SETS if name not in summary.sets] + [
        name for name in MODELS if name not in summary.models
    ]
    sentences = [f"Not measured: {', '.join(absent)}."] if absent else []
    for model, column in summary.means(ACCURACY).items():
        if column.isna().any():
            sentences.append(f"{model} was not measured on {', '.join(column.index[column.isna()])}.")
    fewest = summary.table.groupby(["model", "data_set"]).size().groupby("model").min()
    sentences += [f"{model} was not measured in all repeats." for model in fewest.index[fewest < summary.n_repeats]]
    return _filled(" ".join(sentences)) + "\n" if sentences else ""


def _overview(summary: Summary) -> str:
    """Means over data sets by group, empty for a model that was not measured on all of them."""
    groups = {f"{group} ({n})": group for group in (PAPER, BUNDLED, GENERATED) if (n := len(summary.of_group(group)))}
    groups |= {"all": None}
    accuracy = {title: summary.over_sets(ACCURACY, group) for title, group in groups.items()}
    loss = {title: summary.over_sets(LOSS, group) for title, group in groups.items()}
    shown = [
        "Mean balanced accuracy by group of data sets, and mean rank over all data sets:\n",
        _table(
            {name: (column, _fraction, max) for name, column in accuracy.items()}
            | {"mean rank": (summary.ranks(), lambda value: f"{value:.1f}", min)}
        ),
        "Mean balanced log loss, and mean seconds per fit and number of lines over all data sets:\n",
        _table(
            {name: (column, _fraction, min) for name, column in loss.items()}
            | {
                "seconds": (summary.over_sets(SECONDS), _seconds, None),
                "lines": (summary.over_sets(LINES), _count, None),
            }
        ),
    ]
    return "\n".join(shown)


def _comparison(summary: Summary, model: str) -> str:
    sentences = [_against(summary, model, rival) for rival in figures.RIVALS if rival in summary.models]
    return "\n".join([f"**{model}**\n", *sentences, ""])


def _against(summary: Summary, model: str, rival: str) -> str:
    """One item of a list: on how many data sets it is better and worse."""
    found = summary.difference(model, rival)
    lower, higher = (found.by_set < -NOTABLE).sum(), (found.by_set > NOTABLE).sum()
    error = "" if np.isnan(found.error) else f" ± {_fraction(found.error)}"
    return _filled(
        f"- against {MODELS[rival].what}: {_signed(found.mean)}{error} on average over {len(found.by_set)} data sets; "
        f"better by more than {NOTABLE:g} on {higher}, worse on {lower}."
    )


def _heavy_tails(summary: Summary) -> str:
    shown = [name for name in ("linear", *HEAVY_TAILED) if name in summary.sets]
    if "linear" not in shown or len(shown) == 1:
        return ""
    introduction = (
        "## Long tails and outliers\n\n"
        "Four variants of the same data. The true hyperplane has the same accuracy in all of them, so a linear model\n"
        "that is robust against long tails and outliers has about the same balanced accuracy in all columns.\n"
    )
    means = summary.means(ACCURACY)
    return f"{introduction}\n{_table({name: (means.loc[name], _fraction, max) for name in shown})}"


def _by_set(
    summary: Summary,
    measure: str,
    form: Callable[[float], str],
    best: Callable[[Iterable[float]], float] | None = max,
    spreads: bool = False,
    models: list[str] | None = None,
) -> str:
    """A row for each data set and a column for each model, the best of a row in bold."""
    columns = summary.models if models is None else models
    if not columns:
        return ""
    means, deviations = summary.means(measure)[columns], summary.spreads(measure)[columns]
    rows = []
    for name in summary.sets:
        cells = _emphasised(means.loc[name], form, best)
        if spreads:
            known = zip(cells, deviations.loc[name], strict=True)
            cells = [cell if np.isnan(spread) else f"{cell} ± {_fraction(spread)}" for cell, spread in known]
        rows.append([name, *cells])
    return _markdown(["data set", *columns], rows)


def _table(
    columns: dict[str, tuple[pd.Series, Callable[[float], str], Callable[[Iterable[float]], float] | None]],
) -> str:
    """A row for each model and a column for each figure, the best of a column in bold."""
    models = next(iter(columns.values()))[0].index
    cells = [_emphasised(values, form, best) for values, form, best in columns.values()]
    return _markdown(
        ["", *columns], [[model, *row] for model, row in zip(models, zip(*cells, strict=True), strict=True)]
    )


def _emphasised(
    values: pd.Series, form: Callable[[float], str], best: Callable[[Iterable[float]], float] | None
) -> list[str]:
    """The values as text, empty for NaN; those that look like the best one in bold."""
    shown = ["" if np.isnan(value) else form(value) for value in values]
    if best is None or values.isna().all():
        return shown
    winner = form(best(values.dropna()))
    return [f"**{each}**" if each == winner else each for each in shown]


def _markdown(head: list[str], rows: Iterable[Iterable[str]], alignment: str = "--:") -> str:
    lines = [head, ["---"] + [alignment] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _descriptions(summary: Summary) -> str:
    models = "\n".join(f"- {name}: {MODELS[name].what}, `{MODELS[name].settings()}`" for name in summary.models)
    rows = [[name, SETS[name].group, SETS[name].what] for name in summary.sets]
    sets = _markdown(["data set", "origin", "what"], rows, alignment="---")
    versions = ", ".join(f"{name} {version(name)}" for name in ("melc", "scikit-learn", "numpy", "scipy"))
    return _MODELS.format(rows=models, versions=versions) + f"\n## The data sets\n\n{sets}"


def _filled(text: str) -> str:
    return textwrap.fill(text, 120, subsequent_indent="  " if text.startswith("- ") else "", break_on_hyphens=False)


def _signed(value: float) -> str:
    """
    >>> _signed(-0.012), _signed(0.1)
    ('−.012', '+.100')
    """
    return f"{value:+.3f}".replace("0.", ".", 1).replace("-", "−")


def _fraction(value: float) -> str:
    """
    >>> _fraction(0.8451), _fraction(1.0)
    ('.845', '1.000')
    """
    return f"{value:.3f}".removeprefix("0")


def _count(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _seconds(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"
