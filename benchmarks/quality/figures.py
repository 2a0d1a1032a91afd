"""The pictures of the page."""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.sets import BUNDLED, GENERATED, PAPER, SETS
from benchmarks.quality.summary import ACCURACY, LINES, LOSS, Summary
from melc.export.files import replacing
from melc.plotting.common import new_figure

STYLES = {
    "MELC": ("#0072b2", "o"),
    "MELC-paper": ("#56b4e9", "o"),
    "AdditiveMELC": ("#d55e00", "D"),
    "AdditiveMELC-4": ("#e69f00", "D"),
    "logistic": ("#000000", "|"),
    "LDA": ("#8a8a8a", "|"),
    "boosting": ("#009e73", "^"),
    "SVM": ("#cc79a7", "s"),
    "EBM": ("#6a4c93", "v"),
}
# The models of melc whose wins and losses are drawn, and those that they are compared with.
COMPARED, RIVALS = ("MELC", "AdditiveMELC"), ("logistic", "boosting", "EBM")
_HEIGHT_OF_A_SET = 0.36  # inches
_STEP = 0.09  # from model to model, in heights of a set


def draw(summary: Summary, folder: Path) -> dict[str, str]:
    """Draw all pictures into a folder and return their file names with what they show."""
    from matplotlib import rc_context

    pictures = {
        "quality-differences.svg": ("Balanced accuracy of melc less that of other models", differences(summary)),
        "quality-accuracy.svg": ("Balanced accuracy by data set and model", accuracies(summary)),
        "quality-loss.svg": ("Balanced log loss by data set and model", losses(summary)),
        "quality-lines.svg": ("Number of lines by data set", lines(summary)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, (_, figure) in pictures.items():
        with (
            replacing(folder / name) as draft,
            rc_context({"svg.hashsalt": "melc"}),
        ):  # the same file from the same records
            figure.savefig(draft, metadata={"Date": None})
    return {name: title for name, (title, _) in pictures.items()}


def differences(summary: Summary) -> Any:
    """A panel for each model of melc: a row for each data set, and a dot for its gain against each rival."""
    models = [model for model in COMPARED if model in summary.models]
    figure = new_figure(8.0, 0.24 * len(summary.sets) + 1.2)
    panels = figure.subplots(1, len(models), sharex=True, sharey=True, squeeze=False)[0]
    places = np.arange(len(summary.sets))
    for axes, model in zip(panels, models, strict=True):
        for rival in (name for name in RIVALS if name in summary.models):
            colour, marker = STYLES[rival]
            gains = (summary.means(ACCURACY)[model] - summary.means(ACCURACY)[rival]).loc[summary.sets]
            axes.plot(gains, places, marker if marker != "|" else "o", color=colour, markersize=4.5, label=rival)
        axes.axvline(0, color="#000000", linewidth=0.8)
        axes.set_title(f"{model} ← worse · better →", fontsize=10)
        axes.set_xlabel("difference in balanced accuracy", fontsize=9)
        axes.grid(True, axis="both", color="#e5e9f0", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
    panels[0].set_yticks(places, summary.sets, fontsize=9)
    panels[0].set_ylim(len(places) - 0.5, -0.5)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, [f"against {name}" for name in names], loc="outside upper center", ncols=5, frameon=False)
    return figure


def accuracies(summary: Summary) -> Any:
    return _dots(summary, ACCURACY, summary.models, "balanced accuracy; bars: standard deviation over repeats")


def losses(summary: Summary) -> Any:
    return _dots(summary, LOSS, summary.models, "balanced log loss, less is better", logarithmic=True)


def lines(summary: Summary) -> Any:
    """Lines of the additive models; of one direction there is one, or with several classes one for each."""
    shown = [name for name in summary.models if name.startswith("AdditiveMELC")]
    return _dots(summary, LINES, shown, "lines, with several classes of all of them together", logarithmic=True)


def _dots(summary: Summary, measure: str, models: list[str], label: str, logarithmic: bool = False) -> Any:
    """A row for each data set, one panel for each group, and a dot for each model, a little below the one before."""
    groups = [group for group in (PAPER, BUNDLED, GENERATED) if any(SETS[name].group == group for name in summary.sets)]
    sizes = [sum(SETS[name].group == group for name in summary.sets) for group in groups]
    figure = new_figure(8.0, _HEIGHT_OF_A_SET * sum(sizes) + 1.2 + 0.3 * len(groups))
    panels = figure.subplots(len(groups), 1, sharex=True, squeeze=False, height_ratios=sizes)[:, 0]
    for axes, group in zip(panels, groups, strict=True):
        _panel(axes, summary, measure, models, group)
    if logarithmic:
        _scale_logarithmically(panels[-1])
    panels[-1].set_xlabel(label)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=5, frameon=False, fontsize=9)
    return figure


def _scale_logarithmically(axes: Any) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def _panel(axes: Any, summary: Summary, measure: str, models: list[str], group: str) -> None:
    names = [name for name in summary.sets if SETS[name].group == group]
    places = np.arange(len(names))
    for k, model in enumerate(models):
        means = summary.means(measure).loc[names, model]
        spreads = summary.spreads(measure).loc[names, model].fillna(0)
        colour, marker = STYLES[model]
        offset = _STEP * (k - (len(models) - 1) / 2)
        style = {"color": colour, "marker": marker, "markersize": 4.5, "linewidth": 0, "elinewidth": 1.1}
        axes.errorbar(means, places + offset, xerr=spreads, label=model, **style)
    axes.set_yticks(places, names, fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_title(group, loc="left", fontsize=10)
    axes.hlines(places[1:] - 0.5, 0, 1, transform=axes.get_yaxis_transform(), color="#e5e9f0", linewidth=0.8)
    axes.grid(True, axis="x", color="#e5e9f0", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
