"""The paper's two figures, drawn with matplotlib: the bounds against ε, and the changes in accuracy from records."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from melc.export.files import replacing
from melc.paper import results as means
from melc.paper.results import APPROXIMATIONS, Results
from melc.plotting.common import new_figure, pyplot
from melc.sums import bounds

VARIANCES = (0.01, 0.03, 0.1, 0.3)  # the range of V for projections of data in [-1, 1] with γ near 1
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # safe for colour-blind readers, on light and dark backgrounds
COLOUR_LIMIT = 0.05  # a change of 5 % has the full colour; few entries exceed it
TITLES = {"discard": "sort and discard", "bin": "binning"}
_INK = "#123456"  # placeholder for the text colour of the page, see `as_inline_svg`


def draw_bounds(ink: str = "black") -> Any:
    """Return Figure 1: discarding threshold and bin width against ε. ``ink`` is the colour of text and axes."""
    epsilons = np.linspace(0.001, 0.5, 400)
    with pyplot().rc_context(_style(ink)):
        figure = new_figure(9, 3.4)
        axes = figure.subplots(1, 2)
        panels = ((bounds.discarding_threshold, "discarding threshold T"), (bounds.bin_width, "bin width B"))
        for axis, (bound, title) in zip(axes, panels, strict=True):
            for colour, variance in zip(COLOURS, VARIANCES, strict=True):
                values = np.array([bound(variance, eps) for eps in epsilons])
                finite = np.isfinite(values)
                axis.plot(epsilons[finite], values[finite], color=colour, label=f"V = {variance:g}")
            axis.set(xlabel="accepted error ε", title=title, xlim=(0, 0.5), ylim=(0, None))
            axis.grid(alpha=0.25)
        axes[1].legend(frameon=False)
    return figure


def draw_losses(results: Results) -> Any:
    """Return Figure 2: the change in balanced accuracy (BAC), one panel per approximation and data set."""
    losses = means.accuracy_losses(results)
    n_columns = 5
    rows_each = -(-len(results.profile.data_sets) // n_columns)
    with pyplot().rc_context(_style("black")):
        figure = new_figure(11, 4.6 * rows_each)
        axes = figure.subplots(2 * rows_each, n_columns, squeeze=False)
        for axis in axes.flat:
            axis.set_axis_off()
        for block, method in enumerate(APPROXIMATIONS):
            for index, data_set in enumerate(results.profile.data_sets):
                axis = axes[block * rows_each + index // n_columns, index % n_columns]
                image = _heat_map_panel(axis, results, losses, method, data_set)
        bar = figure.colorbar(image, ax=axes, shrink=0.4, extend="both", format=lambda x, _: f"{x:+.0%}")
        bar.set_label("BAC of the exact method less that of the approximation")
    return figure


def _heat_map_panel(axis: Any, results: Results, losses: Any, method: str, data_set: str) -> Any:
    """Draw the heat map of one approximation and data set, γ against ε."""
    own = losses[(losses["method"] == method) & (losses["data_set"] == data_set)]
    table = own.pivot_table(index="eps", columns="gamma", values="loss", dropna=False)
    gammas, epsilons = results.profile.gammas, results.profile.epsilons
    grid = table.reindex(index=epsilons, columns=gammas).to_numpy(dtype=float)
    axis.set_axis_on()
    limit = COLOUR_LIMIT
    image = axis.imshow(grid, cmap="RdBu_r", vmin=-limit, vmax=limit, origin="lower", aspect="auto")
    axis.set_title(f"{data_set}\n{TITLES[method]}", fontsize=9)
    axis.set_xticks(range(len(gammas)), [f"{gamma:g}" for gamma in gammas], fontsize=7)
    axis.set_yticks(range(len(epsilons)), [f"{eps:g}" for eps in epsilons], fontsize=7)
    axis.set_xlabel("γ", fontsize=8)
    axis.set_ylabel("ε", fontsize=8)
    return image


def save_all(results: Results, folder: Path) -> None:
    """Save both figures as SVG and PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in {"figure1": draw_bounds(), "figure2": draw_losses(results)}.items():
        for suffix in ("svg", "png"):
            with replacing(folder / f"{name}.{suffix}") as draft:
                _save(figure, draft, suffix)


def as_inline_svg() -> str:
    """Return Figure 1 as an SVG element for the HTML page, in the text colour of the page (light or dark)."""
    stream = io.StringIO()
    _save(draw_bounds(ink=_INK), stream, "svg", transparent=True)
    svg = stream.getvalue()
    said = '<svg role="img" aria-label="The two bounds against ε, one curve for each variance V"'
    return said + svg[svg.index("<svg") + 4 :].replace(_INK, "currentColor")


def _style(ink: str) -> dict[str, Any]:
    names = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    return {**dict.fromkeys(names, ink), "font.size": 10}


def _save(figure: Any, target: Any, suffix: str, transparent: bool = False) -> None:
    """Save without a date and with fixed ids, so that the same records give the same bytes; text is kept as text."""
    metadata = {"Date": None} if suffix == "svg" else None
    with pyplot().rc_context({"svg.hashsalt": "melc", "svg.fonttype": "none"}):
        figure.savefig(target, format=suffix, dpi=130, metadata=metadata, transparent=transparent)
