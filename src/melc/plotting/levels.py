"""The levels of a category in a plot, and axes of dates, ranks and scores."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.model.columns import Category
from melc.model.line import Line
from melc.model.places import Scale, date_text, level_text, missing_code
from melc.plotting import common
from melc.plotting.common import AS_WRITTEN, BLACK, GREY, class_style

# Levels in a plot: of more, those with the most rows; and characters of their names.
MOST_LEVELS, _NAME_LENGTH = 25, 18
# Ranks that are named on an axis, and ticks of dates.
_MOST_RANKS, _DATE_TICKS = 12, 4
# The least distance of the names of levels at their scores, as a part of the axis.
_SCORES_APART = 0.035
# The part of the distance of two levels that the marks of all classes take together.
_GROUP = 0.8
# The part of a panel that the band with the leading classes takes.
_TOP = 0.03


@dataclass(frozen=True)
class Levels:
    """The levels of a category as they are drawn, in the order of the line: that of their scores.

    ``values`` and ``errors``, of shape (n_curves, n_levels), are what each level adds to the log-odds, and the standard
    errors, if they are known. ``shares``, of shape (n_classes, n_levels), or (1, n_levels) for rows without labels, are
    the shares of the levels in the rows of each class. ``codes`` are the numbers of the classes that they favour,
    and ``n_wrong`` is the number of rows of another class, at all levels.
    """

    names: list[str]
    values: Floats = field(repr=False)
    errors: Floats | None = field(repr=False)
    shares: Floats = field(repr=False)
    counts: Floats = field(repr=False)
    codes: NDArray[np.int64] = field(repr=False)
    n_wrong: int = 0
    n_hidden: int = 0
    n_hidden_rows: float = 0.0

    @property
    def note(self) -> str:
        """What is not shown."""
        if not self.n_hidden:
            return ""
        s = "s" if self.n_hidden > 1 else ""
        return f"{self.n_hidden} rarer level{s} with {self.n_hidden_rows:,.0f} rows not shown"


def levels_of(line: Line, z: Floats | None, targets: NDArray[np.int64] | None) -> Levels:
    """Return the levels of a line of a category, counted in the training rows, or in rows with level numbers z.

    Rows with a level that the model does not know are at a further one.
    """
    names, values = [*map(level_text, line.levels)], np.stack([curve.log_odds for curve in line.decisive])
    counts, codes, errors = line.counts, line.level_codes, line.errors
    if z is not None:
        if np.isnan(z).any():
            names.append("(unknown)")
            unknown = np.array([curve.missing for curve in line.decisive])
            values, errors = np.column_stack([values, unknown]), tuple(np.append(each, 0.0) for each in errors)
            codes = np.append(codes, missing_code(line) or 0)
        counts = _counts(np.where(np.isnan(z), len(line.levels), z), targets, len(names), line.counts.shape[1])
    totals = counts.sum(axis=1)
    shown = np.sort(np.argsort(-totals, kind="stable")[:MOST_LEVELS])
    return Levels(
        [names[k] for k in shown],
        values[:, shown],
        np.stack(errors)[:, shown] if len(errors) else None,
        (counts / np.maximum(counts.sum(axis=0), 1e-300)).T[:, shown],
        totals[shown],
        codes[shown],
        int(totals.sum() - counts[np.arange(len(codes)), codes].sum()) if counts.shape[1] > 1 else 0,
        len(names) - len(shown),
        float(totals.sum() - totals[shown].sum()),
    )


def _counts(z: Floats, targets: NDArray[np.int64] | None, n_levels: int, n_classes: int) -> Floats:
    """Return the rows of each class at each level, shape (n_levels, n_classes); one column if there are no labels."""
    if targets is None:
        targets, n_classes = np.zeros(len(z), dtype=np.int64), 1
    cells = z.astype(np.int64) * n_classes + targets
    return np.bincount(cells, minlength=n_levels * n_classes).reshape(n_levels, n_classes).astype(np.float64)


def offsets_of(n: int) -> tuple[Floats, float]:
    """Return how far the marks of n classes are from the place of their level, shape (n,), and their width."""
    width = _GROUP / n
    return np.asarray((np.arange(n) - (n - 1) / 2) * width, dtype=np.float64), width


def draw_bars(ax: Any, levels: Levels) -> list[Any]:
    """Draw what the levels add to the log-odds of the second of two classes, in the colours of the classes."""
    styles = [class_style(int(code)) for code in levels.codes]
    look = {"color": [style.colour for style in styles], "hatch": [style.hatch for style in styles]}
    return [ax.bar(range(len(styles)), levels.values[0], _GROUP, edgecolor="white", alpha=0.45, **look)]


def draw_points(ax: Any, levels: Levels, codes: Sequence[int]) -> list[Any]:
    """Draw what the levels add to the log-odds of some of several classes, and which class each level favours."""
    places, drawn = np.arange(len(levels.names)), []
    for offset, code in zip(offsets_of(len(codes))[0], codes, strict=True):
        style = class_style(code)
        look = {"color": style.colour, "marker": style.marker, "markersize": 4, "linestyle": "none"}
        drawn += ax.plot(places + offset, levels.values[code], **look)
    draw_leading(ax, np.linspace(-0.5, len(places) - 0.5, len(places) + 1), levels.codes)
    return drawn


def draw_errors(ax: Any, levels: Levels, half: Floats, codes: Sequence[int], limits: tuple[float, float]) -> list[Any]:
    """Draw error bars of half lengths (n_curves, n_levels) around bars or points; they end at the limits."""
    places, drawn = np.arange(len(levels.names)), []
    for offset, code in zip(offsets_of(len(codes))[0], codes, strict=True):
        ends = [np.clip(levels.values[code] + sign * half[code], *limits) for sign in (-1, 1)]
        colour = BLACK if len(half) == 1 else class_style(code).colour
        drawn.append(ax.vlines(places + offset, *ends, color=colour, linewidth=1))
    return drawn


def draw_shares(ax: Any, levels: Levels, labelled: bool) -> list[Any]:
    """Draw the shares of the levels in the classes, or in all rows, as bars beside each other; return these."""
    offsets, width = offsets_of(len(levels.shares))
    colours = [class_style(code).colour if labelled else GREY for code in range(len(offsets))]
    places = np.arange(len(levels.names))
    return [
        ax.bar(places + offset, heights, width, facecolor=colour, edgecolor="white", linewidth=0.3, alpha=0.6)
        for offset, heights, colour in zip(offsets, levels.shares, colours, strict=True)
    ]


def draw_leading(ax: Any, ends: Floats, codes: NDArray[np.int64]) -> None:
    """Draw a band along the top in the colours of the classes that levels or intervals favour.

    ``codes`` are those of n classes, and ``ends``, of shape (n + 1,), where their parts begin and end.
    """
    for start, end, code in zip(ends[:-1], ends[1:], codes, strict=True):
        if end > start:
            ax.axvspan(start, end, ymin=1 - _TOP, linewidth=0, zorder=3).set(**class_style(int(code)).area)


def name_levels(ax: Any, levels: Levels, size: float, room: int) -> None:
    """Write the names of levels below an axis, each with its number of rows, and how many are not shown.

    They are upright if they have more characters than there is ``room`` for.
    """
    short = common.shortened(levels.names, _NAME_LENGTH)
    texts = [f"{name} ({count:,.0f})" for name, count in zip(short, levels.counts, strict=True)]
    upright = max(map(len, texts)) * len(texts) > room
    size = size - 1 if len(texts) > _MOST_RANKS else size
    ax.set_xticks(range(len(texts)), texts, rotation=90 if upright else 0, fontsize=size, **AS_WRITTEN)
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(-0.6, len(texts) - 0.4)
    if levels.note:
        ax.set_xlabel(levels.note, fontsize=size, color=GREY)


# -------------------------------------------------------------------------------------- axes of dates, ranks and scores


def show_scale(axis: Any, scale: Scale) -> None:
    """Write dates or the names of ranks at the ticks of an axis; other axes keep their numbers."""
    from matplotlib import dates, ticker

    if scale.kind == "date" and scale.sign > 0:
        locator = dates.AutoDateLocator(maxticks=_DATE_TICKS + 2, minticks=2)
        axis.set_major_locator(locator)
        axis.set_major_formatter(dates.ConciseDateFormatter(locator))
    elif scale.kind == "date":
        axis.set_major_locator(ticker.MaxNLocator(_DATE_TICKS))
        axis.set_major_formatter(ticker.FuncFormatter(lambda z, _: date_text(-z)))
    elif scale.kind == "rank":
        step = -(-len(scale.labels) // _MOST_RANKS)
        ranks = np.arange(0, len(scale.labels), step)
        names = common.shortened(list(scale.labels), _NAME_LENGTH)
        axis.set_ticks(ranks * scale.sign, [names[rank] for rank in ranks], **AS_WRITTEN)


def show_scores(axis: Any, category: Category, limits: tuple[float, float]) -> None:
    """Write the names of levels at their scores on an axis; of levels that are nearly equal, the first."""
    low, high = limits
    names, ticks = common.shortened([*map(level_text, category.names)], _NAME_LENGTH), list[int]()
    for k in np.argsort(category.scores, kind="stable").tolist():
        score = category.scores[k]
        if low <= score <= high and (not ticks or score - category.scores[ticks[-1]] >= _SCORES_APART * (high - low)):
            ticks.append(k)
    axis.set_ticks(category.scores[ticks], [names[k] for k in ticks], fontsize=7, **AS_WRITTEN)
