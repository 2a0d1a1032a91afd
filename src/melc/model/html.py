"""A fitted model as a few lines of HTML for notebooks: its rule, a picture of the line, and the weights."""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.model.decision import Decision
from melc.model.line import Line
from melc.model.names import contributions_of, feature_names_of, terms_of
from melc.model.units import is_additive

_BLUE, _ORANGE = "#0072B2", "#E69F00"
_COLOURS = (_BLUE, _ORANGE)
# Lines and features that are shown, and letters of a name.
_MOST_LINES, _MOST_FEATURES, _MOST_LETTERS = 6, 8, 40
_WIDE, _HIGH, _N_PLACES = 320, 90, 160


def fitted_html(model: Any) -> str:
    """Return a fitted model as HTML: of each line its picture, intervals and strongest features."""
    names = feature_names_of(model)
    order = list(range(len(model.coef_)))
    if is_additive(model):
        order = sorted(order, key=lambda k: -model.lines_[k].importance)
    parts = [_line(model, k, names) for k in order[:_MOST_LINES]]
    hidden = len(model.coef_) - len(parts)
    more = f'<p style="margin:0">and {hidden} more lines</p>' if hidden else ""
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1em 2em;font:13px system-ui,sans-serif;margin-bottom:.6em">'
        f"{''.join(parts)}{more}</div>"
    )


def _line(model: Any, k: int, names: Sequence[str]) -> str:
    """Return one line: a heading, a picture, the intervals, and the features."""
    line: Decision | Line = model.lines_[k] if is_additive(model) else model.decisions_[k]
    sides = _sides(model, line.class_index if isinstance(line, Line) else k)
    heading = f"{_text(sides[1])} against {_text(sides[0])}"
    picture = _curve(line) if isinstance(line, Line) else _densities(line)
    rows = _intervals(line, sides)
    return f'<div><div style="font-weight:600">{heading}</div>{picture}{rows}{_features(model, k, names)}</div>'


def _sides(model: Any, k: int) -> tuple[str, str]:
    """Return the names of the two sides of a line: both classes, or the rest and a class."""
    labels = [str(label) for label in model.classes_]
    return (labels[0], labels[1]) if len(labels) == 2 else ("the rest", labels[k])


def _text(name: str) -> str:
    """Return a name as HTML, shortened, and isolated from the direction of the text around it."""
    short = name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"
    return f"<bdi>{html.escape(short)}</bdi>"


def _densities(decision: Decision) -> str:
    """Return a picture of both densities above the intervals."""
    low, high = (float(edge([d.support[end] for d in decision.densities])) for edge, end in ((min, 0), (max, -1)))
    places = np.linspace(low, high, _N_PLACES)
    heights = [np.exp(density.log(places)) for density in decision.densities]
    top = max(float(height.max()) for height in heights)
    x = (places - low) / (high - low or 1) * _WIDE
    areas = [
        f'<path d="{_path(x, _HIGH * (1 - height / top))}" fill="{colour}" fill-opacity=".18" stroke="{colour}" '
        f'stroke-width="2"{dash}/>'
        for height, colour, dash in zip(heights, _COLOURS, ("", ' stroke-dasharray="6 3"'), strict=True)
    ]
    ends = np.clip(np.concatenate([[low], decision.thresholds, [high]]), low, high)
    ends = (ends - low) / (high - low or 1) * _WIDE
    bands = [
        f'<rect x="{a:.1f}" y="{_HIGH}" width="{max(0.0, b - a):.1f}" height="8" fill="{_COLOURS[code]}"/>'
        for a, b, code in zip(ends[:-1], ends[1:], decision.codes, strict=True)
    ]
    return _svg("Densities of both sides along the line", areas + bands)


def _curve(line: Line) -> str:
    """Return a picture of the curve of a line."""
    low, high = line.places[0], line.places[-1]
    places = np.linspace(low, high, _N_PLACES)
    values = line.at(places)
    most = max(float(np.abs(values).max()), 1e-9)
    x, y = (places - low) / (high - low or 1) * _WIDE, _HIGH / 2 * (1 - values / most)
    zero = f'<path d="M0 {_HIGH / 2}H{_WIDE}" stroke="currentColor" stroke-dasharray="3 3" opacity=".5"/>'
    curve = f'<path d="{_path(x, y)}" fill="none" stroke="{_BLUE}" stroke-width="2"/>'
    return _svg("What the line adds to the log-odds", [zero, curve])


def _svg(title: str, parts: list[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDE} {_HIGH + 8}" width="{_WIDE}" height="{_HIGH + 8}" role="img" '
        f'aria-label="{title}" style="max-width:100%">{"".join(parts)}</svg>'
    )


def _path(x: Floats, y: Floats) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))


def _intervals(line: Decision | Line, sides: tuple[str, str]) -> str:
    """Return the intervals between thresholds, each with its side, in ascending order."""
    favoured = line.favours if isinstance(line, Line) else line.codes
    parts = [
        f'<span style="border-bottom:3px solid {_COLOURS[int(code)]}">{_text(sides[int(code)])}</span>'
        for code in favoured
    ]
    joined = parts[0]
    for threshold, part in zip(line.thresholds, parts[1:], strict=True):
        joined += f" <small>{threshold:.4g}</small> {part}"
    return f'<div style="max-width:{_WIDE}px">z: {joined}</div>'


def _features(model: Any, k: int, names: Sequence[str]) -> str:
    """Return the features of a line that contribute most, with their weights."""
    if is_additive(model):
        line = model.lines_[k]
        terms = terms_of(line, dict(enumerate(names)), 3, 3)
        return f'<div style="max-width:{_WIDE}px">z = {" ".join(_text(term) for term in terms)}</div>'
    sizes = contributions_of(model, k)
    order = np.argsort(-np.abs(sizes), kind="stable")[:_MOST_FEATURES]
    largest = max(float(np.abs(sizes[order]).max()), 1e-300)
    rows = [
        f'<tr><td style="text-align:left">{_text(names[j])}</td><td>{model.coef_[k, j]:.4g}</td>'
        f'<td style="text-align:left">{_bar(80 * sizes[j] / largest)}</td></tr>'
        for j in order
    ]
    more = f"<tr><td colspan=3>and {len(sizes) - len(order)} more features</td></tr>" if len(sizes) > len(order) else ""
    head = '<tr><td style="text-align:left">feature</td><td>weight</td><td style="text-align:left">× spread</td></tr>'
    return f"<table>{head}{''.join(rows)}{more}</table>"


def _bar(length: float) -> str:
    """Return a bar of so many pixels, in the colour of its sign."""
    style = f"display:inline-block;height:.7em;width:{abs(length):.0f}px;background:{_COLOURS[int(length > 0)]}"
    return f'<span style="{style}"></span>'
