"""The report: a self-contained HTML page, the same as Markdown, the tables as CSV, and the paper's two figures.

The page is plain HTML with inline SVG and a few lines of JavaScript, about 200 kB, and works offline. It shows only
tables and coloured squares, for which a plotting library of several megabytes is not worthwhile.
"""

import io
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd

from melc.export.files import replacing
from melc.paper import protocol
from melc.paper import results as means
from melc.paper.results import APPROXIMATIONS, Results
from melc.paper.tables import MeanAndSpread, ReportTable, Value, all_tables
from melc.paper.verdicts import FAILS, HOLDS, NOT_RUN, PARTLY, TestedClaim, all_verdicts
from melc.plotting.common import new_figure, pyplot
from melc.sums import bounds

BADGES = {HOLDS: "holds", PARTLY: "partly", FAILS: "fails", NOT_RUN: "notrun"}
VARIANCES = (0.01, 0.03, 0.1, 0.3)  # the range of V for projections of data in [-1, 1] with γ near 1
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # safe for colour-blind readers, on light and dark backgrounds
COLOUR_LIMIT = 0.05  # a change of 5 % has the full colour; few entries exceed it
TITLES = {"discard": "sort and discard", "bin": "binning"}
_INK = "#123456"  # placeholder for the text colour of the page, see `as_inline_svg`
CELL = 15  # height of a square of the heat maps, in SVG units


def write_files(results: Results, folder: Path, command: str) -> list[TestedClaim]:
    """Write tables, figures and both versions of the report to `folder`, and return the verdicts.

    `command` is shown in the report as the way to make it again.
    """
    tables, verdicts = all_tables(results), all_verdicts(results)
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    for table in tables:
        _write(folder / "tables" / f"{table.name}.csv", table.csv())
    _save_figures(results, folder / "figures")
    _write(folder / "report.md", as_markdown(results, tables, verdicts, command))
    _write(folder / "report.html", as_html(results, tables, verdicts, command))
    return verdicts


def _write(path: Path, text: str) -> None:
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def summary(results: Results) -> list[str]:
    """Return a few sentences on how the numbers were obtained."""
    profile = results.profile
    n_cells = len(results.cells) + len(results.baselines)
    expected = len(protocol.cells(profile))
    lines = [
        f"Profile “{profile.name}”: {n_cells:,} of {expected:,} cells, {len(results.runs):,} solver runs on "
        f"{len(results.data_sets)} data sets; {len(profile.folds)} of {profile.n_folds} stratified folds, "
        f"{profile.n_starts} random start(s) per fold, the same for every method; solvers stop at a gradient "
        f"of {profile.tol:g} or after {profile.max_iter} iterations; seed {profile.seed}.",
        *(f"Versions: {versions}." for versions in results.versions),
    ]
    lines += [f"Missing data set — {name}: {why}" for name, why in results.missing.items()]
    return lines


def as_markdown(results: Results, tables: list[ReportTable], verdicts: list[TestedClaim], command: str) -> str:
    """Return the report as Markdown."""
    parts = ["# The paper's evaluation, reproduced", *summary(results), f"Made with `{command}`.", "## Verdicts"]
    rows = [f"| {v.claim} | **{v.verdict}** | {v.measured} |" for v in verdicts]
    parts.append("\n".join(["| claim | verdict | measured |", "|---|---|---|", *rows]))
    for table in tables:
        parts += [f"## {table.title}", table.note, table.markdown().rstrip()]
    parts += ["## Figure 1: the two bounds against ε", "![Figure 1](figures/figure1.svg)"]
    parts += ["## Figure 2: change of balanced accuracy", FIGURE2_NOTE, "![Figure 2](figures/figure2.svg)"]
    return "\n\n".join(parts) + "\n"


FIGURE2_NOTE = (
    "BAC of the exact method less that of the approximation, means over folds and both solvers: red is a "
    f"loss, blue a gain, full colour at {COLOUR_LIMIT:.0%}."
)


def as_html(results: Results, tables: list[ReportTable], verdicts: list[TestedClaim], command: str) -> str:
    """Return the report as a self-contained HTML page."""
    template = Template(files("melc.paper").joinpath("report_template.html").read_text("utf-8"))
    return template.substitute(
        summary="\n".join(_paragraph(line) for line in summary(results)),
        command=escape(command),
        navigation="".join(f'<a href="#{table.name}">{escape(table.title)}</a>' for table in tables),
        verdicts="\n".join(_verdict_row(verdict) for verdict in verdicts),
        tables="\n".join(_table_section(table) for table in tables),
        figure1=as_inline_svg(),
        figure2_note=escape(FIGURE2_NOTE),
        figure2=_heat_maps(results),
    )


def _paragraph(line: str) -> str:
    """Return a line of the summary; those that name a missing data set are highlighted."""
    return ('<p class="missing">' if line.startswith("Missing") else "<p>") + f"{escape(line)}</p>"


def _verdict_row(verdict: TestedClaim) -> str:
    badge = f'<span class="badge {BADGES[verdict.verdict]}">{escape(verdict.verdict)}</span>'
    return f"<tr><td>{escape(verdict.claim)}</td><td>{badge}</td><td>{escape(verdict.measured)}</td></tr>"


def _table_section(table: ReportTable) -> str:
    header = "".join(_table_head(table, i) for i in range(len(table.header)))
    body = "\n".join(
        "<tr>" + "".join(_table_cell(table, value, i) for i, value in enumerate(row)) + "</tr>" for row in table.rows
    )
    return (
        f'<section id="{table.name}"><h2>{escape(table.title)}</h2><p>{escape(table.note)}</p>'
        f'<div class="scroll"><table class="sortable"><thead><tr>{header}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></section>"
    )


def _table_head(table: ReportTable, column: int) -> str:
    title = escape(table.header[column]).replace("-", "\N{NON-BREAKING HYPHEN}")
    kind = "text" if any(isinstance(row[column], str) for row in table.rows) else "number"
    return f'<th scope="col" class="{kind}"><button>{title}</button></th>'


def _table_cell(table: ReportTable, value: Value, column: int) -> str:
    text = escape(table.text(value, column))
    kind = "paper" if table.header[column].endswith("paper") else "number"
    if isinstance(value, str):
        return f"<td>{text}</td>"
    number = value.mean if isinstance(value, MeanAndSpread) else value
    sort = "" if number is None else f' data-value="{number:.9g}"'
    return f'<td class="{kind}"{sort}>{text}</td>'


def _heat_maps(results: Results) -> str:
    """Return the heat maps of Figure 2, grouped by approximation; each square has its numbers as a text to show."""
    losses = means.accuracy_losses(results).set_index(["method", "data_set", "gamma", "eps"]).sort_index()
    groups = []
    for method in APPROXIMATIONS:
        panels = "".join(_heat_map(results, losses, method, name) for name in results.profile.data_sets)
        groups.append(f'<h3>{TITLES[method].capitalize()}</h3><div class="panels">{panels}</div>')
    return "\n".join(groups)


def _heat_map(results: Results, losses: pd.DataFrame, method: str, data_set: str) -> str:
    """Return the heat map of one approximation and data set as a ``figure`` element."""
    gammas, epsilons = results.profile.gammas, results.profile.epsilons
    left, top = 34, 4
    width, height = left + CELL * 2 * len(gammas) + 4, top + CELL * len(epsilons) + 30
    squares = [
        _square(losses, (method, data_set, gamma, eps), left + 2 * CELL * column, top + CELL * row)
        for column, gamma in enumerate(gammas)
        for row, eps in enumerate(reversed(epsilons))
    ]
    labels = [
        f'<text x="{left + CELL * (2 * i + 1)}" y="{top + CELL * len(epsilons) + 12}">{gamma:g}</text>'
        for i, gamma in enumerate(gammas)
    ]
    labels += [
        f'<text class="side" x="{left - 4}" y="{top + CELL * i + 11}">{eps:g}</text>'
        for i, eps in enumerate(reversed(epsilons))
    ]
    labels.append(f'<text x="{(left + width) // 2}" y="{height - 5}">γ</text><text x="7" y="{top + 10}">ε</text>')
    return (
        f'<figure class="panel"><figcaption>{escape(data_set)}</figcaption>'
        f'<svg viewBox="0 0 {width} {height}" role="group" aria-label="{escape(data_set)}, {TITLES[method]}" '
        f'data-rows="{len(epsilons)}">'
        f"{''.join(squares)}{''.join(labels)}</svg></figure>"
    )


def _square(losses: pd.DataFrame, place: tuple[str, str, float, float], x: int, y: int) -> str:
    box = f'x="{x}" y="{y}" width="{2 * CELL - 1}" height="{CELL - 1}"'
    if place not in losses.index:
        return f'<rect class="empty" {box}/>'
    loss, bac = losses.at[place, "loss"], losses.at[place, "bac"]
    _, data_set, gamma, eps = place
    change = round(-loss, 3) + 0.0  # zero is added because -0.0 would be shown with its sign
    words = f"{data_set}, γ = {gamma:g}, ε = {eps:g}: BAC {bac:.3f} (exact {bac + loss:.3f}), {change:+.1%}"
    opacity = min(1.0, abs(loss) / COLOUR_LIMIT)
    kind = "loss" if loss > 0 else "gain"
    said = f'role="img" aria-label="{escape(words)}" tabindex="-1" data-words="{escape(words)}"'
    return f'<rect class="{kind}" {box} fill-opacity="{opacity:.2f}" {said}/>'


# ---------------------------------------------------------------------------------------------------------- the figures


def draw_bounds(ink: str = "black") -> Any:
    """Return Figure 1: discarding threshold and bin width against ε. ``ink`` is the colour of text and axes."""
    epsilons = np.linspace(0.001, 0.5, 400)
    with pyplot().rc_context(_ink_style(ink)):
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
    with pyplot().rc_context(_ink_style("black")):
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


def _save_figures(results: Results, folder: Path) -> None:
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


def _ink_style(ink: str) -> dict[str, Any]:
    names = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    return {**dict.fromkeys(names, ink), "font.size": 10}


def _save(figure: Any, target: Any, suffix: str, transparent: bool = False) -> None:
    """Save without a date and with fixed ids, so that the same records give the same bytes; text is kept as text."""
    metadata = {"Date": None} if suffix == "svg" else None
    with pyplot().rc_context({"svg.hashsalt": "melc", "svg.fonttype": "none"}):
        figure.savefig(target, format=suffix, dpi=130, metadata=metadata, transparent=transparent)
