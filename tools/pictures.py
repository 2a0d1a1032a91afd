"""Draw the pictures of the README, the home page, the command line and the theory: ``python tools/pictures.py``.

Those below the code of a page are drawn by that code: ``python tools/pages.py``.
"""

import contextlib
import shutil
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from typer.testing import CliRunner

from melc import MELC, AdditiveMELC
from melc.cli.commands import app
from melc.export.files import replacing
from melc.plotting import LinesDisplay, PlaneDisplay, ProjectionDisplay
from melc.plotting.common import BLACK, CLASS_COLOURS

IMAGES = Path(__file__).parents[1] / "docs" / "images"


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
    for label, colour, marker in zip(model.classes_, CLASS_COLOURS, "o^", strict=False):
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


def draw_bands(path):
    """The rows and both densities, side by side, and each by itself for narrow screens."""
    X, y = alternating_bands()
    model = MELC(random_state=0).fit(X, y)

    def draw_densities(ax):
        ProjectionDisplay.from_estimator(model, X, y, ax=ax)
        ax.set_title("along v: two densities, thresholds where they cross", fontsize=11, pad=22)

    figure = Figure(figsize=(11, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_plane(left, model, X, y)
    draw_densities(right)
    save(figure, path)
    for name, draw in (("plane", lambda ax: draw_plane(ax, model, X, y)), ("densities", draw_densities)):
        figure = Figure(figsize=(5.5, 4.3), layout="constrained")
        draw(figure.subplots())
        save(figure, path.with_stem(f"{path.stem}-{name}"))


def draw_additive(lines_path, plane_path):
    """The two pictures of the additive model in the theory."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    y = y.map({0: "malignant", 1: "benign"})
    model = AdditiveMELC(max_lines=3, full_lines="never", random_state=0).fit(X, y)
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    LinesDisplay.from_estimator(model, ax=figure)
    save(figure, lines_path)
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    PlaneDisplay.from_estimator(model, X, y, line=1, ax=figure.subplots())
    save(figure, plane_path)


def draw_command_line(path):
    """What ``melc plot`` draws of the tables that come with the package."""
    write = ["demo", "--tables", "-o", "."]
    fit = ["fit", "patients.csv", "--target", "outcome", "--drop", "id", "--no-cv", "-o", "model.json"]
    plot = ["plot", "model.json", "patients.csv", "-o", "picture.png"]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for arguments in (write, fit, plot):
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, done.output
        with replacing(path) as draft:
            shutil.copyfile("picture.png", draft)


def save(figure, path):
    with replacing(path) as draft:
        figure.savefig(draft, dpi=130)


if __name__ == "__main__":
    draw_bands(IMAGES / "melc.png")
    draw_additive(IMAGES / "lines.png", IMAGES / "plane.png")
    draw_command_line(IMAGES / "command-line-plot.png")
