"""A fitted model as a few lines of HTML for notebooks: of each line a picture, its intervals, and the weights."""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.model.line import Line, sides_of
from melc.model.names import contributions_of, feature_names_of

_COLOURS = ("#0072B2", "#E69F00")
# Lines and features that are shown, and letters of a name.
_MOST_LINES, _MOST_FEATURES, _MOST_LETTERS = 6, 8, 40
_WIDE, _HIGH, _N_PLACES = 320, 90, 160


def fitted_html(model: Any) -> str:
    """Return a fitted model as HTML: its lines, the most important first. All curves have the same scale."""
    names, lines = feature_names_of(model), list(enumerate(model.lines_, start=1))
    lines.sort(key=lambda numbered: -numbered[1].importance)
    most = max(float(np.abs(line.decisive.log_odds).max()) for line in model.lines_)
    parts = [_line(model, line, number, names, most) for number, line in lines[:_MOST_LINES]]
    hidden = len(lines) - len(parts)
    more = f'<p style="margin:0">and {hidden} more lines</p>' if hidden else ""
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1em 2em;font:13px system-ui,sans-serif;margin-bottom:.6em">'
        f"{''.join(parts)}{more}</div>"
    )


def _line(model: Any, line: Line, number: int, names: Sequence[str], most: float) -> str:
    """Return one line: a heading, a picture, the intervals, and the features."""
    sides = sides_of(model, line)
    heading = f"{_text(sides[1])} against {_text(sides[0]) if len(model.classes_) == 2 else 'the rest'}"
    if len(model.lines_) > 1:
        heading = f"Line {number}: {heading}"
    parts = _picture(line, most), _intervals(line, sides), _features(model, line, names)
    return f'<div><div style="font-weight:600">{heading}</div>{"".join(parts)}</div>'


def _text(name: str) -> str:
    """Return a name as HTML, shortened, and isolated from the direction of the text around it."""
    short = name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"
    return f"<bdi>{html.escape(short)}</bdi>"


def _picture(line: Line, most: float) -> str:
    """Return a picture of both densities, the curve in front of them, and the intervals below."""
    low, high = float(line.places[0]), float(line.places[-1])
    wide = (high - low) or 1.0
    top = float(line.densities.max()) or 1.0
    x = (line.places - low) / wide * _WIDE
    around = np.concatenate([x[:1], x, x[-1:]])  # from the bottom, and back to it
    outlines = [_path(around, _HIGH * (1 - np.pad(heights, 1) / top)) for heights in line.densities]
    areas = [
        f'<path d="{outline}" fill="{colour}" fill-opacity=".18" stroke="{colour}"{dash}/>'
        for outline, colour, dash in zip(outlines, _COLOURS, ("", ' stroke-dasharray="6 3"'), strict=True)
    ]
    places = np.linspace(low, high, _N_PLACES)
    y = _HIGH / 2 * (1 - line.decisive.at(places) / (most or 1.0))
    zero = f'<path d="M0 {_HIGH / 2}H{_WIDE}" stroke="currentColor" stroke-dasharray="3 3" opacity=".5"/>'
    curve = f'<path d="{_path((places - low) / wide * _WIDE, y)}" fill="none" stroke="currentColor" stroke-width="2"/>'
    ends = (np.clip(np.concatenate([[low], line.thresholds, [high]]), low, high) - low) / wide * _WIDE
    bands = [
        f'<rect x="{a:.1f}" y="{_HIGH}" width="{max(0.0, b - a):.1f}" height="8" fill="{_COLOURS[code]}"/>'
        for a, b, code in zip(ends[:-1], ends[1:], line.codes, strict=True)
    ]
    return (
        f'<svg viewBox="0 0 {_WIDE} {_HIGH + 8}" width="{_WIDE}" height="{_HIGH + 8}" role="img" '
        'aria-label="Densities of both sides along the line, and what it adds to the log-odds" '
        f'style="max-width:100%">{"".join([*areas, zero, curve, *bands])}</svg>'
    )


def _path(x: Floats, y: Floats) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))


def _intervals(line: Line, sides: tuple[str, str]) -> str:
    """Return the intervals between thresholds, each with its side, in ascending order."""
    parts = [
        f'<span style="border-bottom:3px solid {_COLOURS[code]}">{_text(sides[code])}</span>' for code in line.codes
    ]
    joined = parts[0]
    for threshold, part in zip(line.thresholds, parts[1:], strict=True):
        joined += f" <small>{threshold:.4g}</small> {part}"
    return f'<div style="max-width:{_WIDE}px">z: {joined}</div>'


def _features(model: Any, line: Line, names: Sequence[str]) -> str:
    """Return the features of a line that contribute most, with their weights."""
    sizes = contributions_of(model, line)
    order = line.features[np.argsort(-np.abs(sizes[line.features]), kind="stable")][:_MOST_FEATURES]
    largest = max(float(np.abs(sizes[order]).max()), 1e-300)
    rows = [
        f'<tr><td style="text-align:left">{_text(names[j])}</td><td>{line.direction[j]:.4g}</td>'
        f'<td style="text-align:left">{_bar(80 * sizes[j] / largest)}</td></tr>'
        for j in order
    ]
    hidden = len(line.features) - len(order)
    more = f"<tr><td colspan=3>and {hidden} more features</td></tr>" if hidden else ""
    head = '<tr><td style="text-align:left">feature</td><td>weight</td><td style="text-align:left">× spread</td></tr>'
    return f"<table>{head}{''.join(rows)}{more}</table>"


def _bar(length: float) -> str:
    """Return a bar of so many pixels, hollow if the weight is negative."""
    fill = "currentColor" if length > 0 else "none"
    style = f"display:inline-block;height:.7em;width:{abs(length):.0f}px;background:{fill};border:1px solid"
    return f'<span style="{style}"></span>'
