"""What the records say about the aims that were set, as rows of ``python -m benchmarks --only quality``."""

from collections.abc import Iterator

import numpy as np

from benchmarks.measure import Profile, Row, benchmark
from benchmarks.quality import records, run
from benchmarks.quality.models import MODELS
from benchmarks.quality.sets import HEAVY_TAILED, PAPER, SETS
from benchmarks.quality.summary import ACCURACY, LOSS, SECONDS, Summary, summarise

N_REPEATS = 2
QUICK_SETS = ("liver-disorders", "iris", "linear", "outliers")
NEEDED = ("MELC", "AdditiveMELC", "AdditiveMELC-4", "logistic", "boosting")


@benchmark("quality")
def quality(profile: Profile) -> Iterator[Row]:
    """Measure what is missing of the models that the aims are about, and judge."""
    names, _ = run.at_hand(list(QUICK_SETS if profile.quick else SETS))
    cells = records.cells_of(
        [SETS[name] for name in names], [MODELS[name] for name in NEEDED], profile.rounds(N_REPEATS)
    )
    failed = run.run(cells, records.RECORDS, tell=lambda line: None)
    found = records.read(records.RECORDS)
    yield from judge(summarise(found[cell.key] for cell in cells if cell.key in found))
    yield from (Row("quality", "quality", broken=reason) for reason in failed)


def judge(summary: Summary) -> Iterator[Row]:
    """Return a row for every aim that the data sets at hand allow to judge."""
    yield from _over_the_ten(summary)
    yield from _against_logistic_regression(summary)
    yield from _heavy_tails(summary)
    yield from _several_classes(summary)


def _row(what: str, value: float, bar: float, goal: float | None = None, *, more: bool = True, unit: str = "") -> Row:
    return Row("quality", what, float(value), unit, bar=bar, goal=goal, more_is_better=more)


def _over_the_ten(summary: Summary) -> Iterator[Row]:
    if not summary.of_group(PAPER):
        return
    accuracy, loss = summary.over_sets(ACCURACY, PAPER), summary.over_sets(LOSS, PAPER)
    seconds = summary.over_sets(SECONDS, PAPER)
    n = f"mean over {len(summary.of_group(PAPER))} of the ten"
    yield _row(f"AdditiveMELC, balanced accuracy, {n}", accuracy["AdditiveMELC"], 0.838, 0.848)
    yield _row(f"AdditiveMELC, balanced log loss, {n}", loss["AdditiveMELC"], 0.36, 0.345, more=False)
    yield _row(f"AdditiveMELC with four lines, {n}", accuracy["AdditiveMELC-4"], 0.825)
    yield _row(f"MELC, balanced log loss, {n}", loss["MELC"], 0.48, more=False)
    ratio = seconds["AdditiveMELC"] / seconds["boosting"]
    yield _row(f"seconds of AdditiveMELC / boosting, {n}", ratio, 3, more=False, unit="×")


def _against_logistic_regression(summary: Summary) -> Iterator[Row]:
    found = summary.difference("MELC", "logistic").by_set
    of_paper = np.array([SETS[name].group == PAPER for name in found.index], dtype=bool)
    for what, chosen in (("the ten", of_paper), ("the others", ~of_paper)):
        if chosen.any():
            yield _row(f"MELC − logistic regression, mean over {what}", found[chosen].mean(), 0.0)
    if len(found):
        yield _row(f"MELC − logistic regression, the lowest: {found.index[0]}", found.iloc[0], -0.03)


def _heavy_tails(summary: Summary) -> Iterator[Row]:
    means = summary.means(ACCURACY)
    for name in HEAVY_TAILED:
        if name in means.index and "linear" in means.index:
            loss = means.loc["linear", "MELC"] - means.loc[name, "MELC"]
            yield _row(f"MELC, linear − {name}", loss, 0.01, more=False)


def _several_classes(summary: Summary) -> Iterator[Row]:
    means = summary.means(ACCURACY)
    for name, bar in (("digits", 0.97), ("wine", 0.98), ("iris", 0.95)):
        if name in means.index:
            yield _row(f"AdditiveMELC, balanced accuracy on {name}", means.loc[name, "AdditiveMELC"], bar)
