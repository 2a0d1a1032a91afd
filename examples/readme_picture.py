"""Draw the picture at the top of the README: ``python examples/readme_picture.py [FILE]``."""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from melc import MELC
from melc.export.files import replacing
from melc.plotting import ProjectionDisplay
from melc.plotting.common import BLACK, CLASS_COLOURS

DEFAULT = Path(__file__).parents[1] / "docs" / "images" / "melc.png"


def alternating_bands(n_rows=900, seed=1):
    """Two classes that take turns along a slanted direction."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2)) * [1.5, 1.1]
    position = X @ [0.8, 0.6] + 0.15 * rng.normal(size=n_rows)
    y = np.where((position < -0.9) | ((position > 0.25) & (position < 1.5)), "fails", "works")
    kept = rng.uniform(size=n_rows) < 0.55 + 0.45 * np.abs(np.sin(2.2 * position))
    return X[kept], y[kept]


def draw_plane(ax, model, X, y):
    """The rows in the plane, the direction v, and the thresholds as parallel lines across it."""
    for label, colour, marker in zip(model.classes_, CLASS_COLOURS, "o^", strict=True):
        ax.scatter(*X[y == label].T, s=11, c=colour, marker=marker, alpha=0.65, linewidths=0, label=label)
    v = model.coef_[0]
    across = np.array([-v[1], v[0]])
    for threshold in model.thresholds_:
        start, end = threshold * v - 9 * across, threshold * v + 9 * across
        ax.plot([start[0], end[0]], [start[1], end[1]], color=BLACK, linewidth=1, linestyle=":")
    ax.annotate("", 2.4 * v, -2.4 * v, arrowprops={"arrowstyle": "-|>", "color": BLACK, "linewidth": 1.6})
    ax.annotate("v", 2.4 * v, (4, 4), textcoords="offset points", fontsize=12, fontstyle="italic")
    ax.set(xlim=(-4.3, 4.3), ylim=(-3.4, 3.4), aspect="equal", xlabel="feature 1", ylabel="feature 2")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="upper left", fontsize=8, framealpha=0.9, markerscale=1.6)
    ax.set_title("the data: one direction, parallel cuts", fontsize=11)


def main(path=DEFAULT):
    X, y = alternating_bands()
    model = MELC(random_state=0).fit(X, y)
    figure = Figure(figsize=(11, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_plane(left, model, X, y)
    ProjectionDisplay.from_estimator(model, X, y, ax=right)
    right.set_title("along v: two densities, thresholds where they cross", fontsize=11, pad=22)
    with replacing(path) as draft:
        figure.savefig(draft, dpi=130)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
