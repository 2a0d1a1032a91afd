"""A fitted model as HTML for notebooks: for each line a picture, its intervals, and its weights."""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.model.line import Line
from melc.model.names import contributions_of, feature_names_of, minor_lines_sentence, n_named, numbers_by_importance
from melc.model.places import Scale, level_text, missing_code, name_in_sum, scale_along

# The colours of the classes, in their order; further classes begin again with the first.
CLASS_COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00"),
    *("#56B4E9", "#7F3C8D", "#8A6D3B", "#C2B200", "#6E6E6E"),
)
# Lines, classes, features and levels of a category that are shown, and letters of a name.
_LINES_SHOWN, _CLASSES_SHOWN, _FEATURES_LISTED, _LEVELS_LISTED, _LETTERS_SHOWN = 6, len(CLASS_COLOURS), 8, 8, 40
_WIDE, _HIGH, _PLACES_DRAWN = 320, 90, 160


def fitted_html(model: Any) -> str:
    """Return a fitted model as HTML: its lines, the most important first. All curves have the same scale."""
    names, labels = feature_names_of(model), [str(label) for label in model.classes_]
    numbers = [k for k in numbers_by_importance(model) if not model.lines_[k - 1].minor]
    most = max(float(np.abs(curve.log_odds).max()) for line in model.lines_ for curve in line.decisive)
    parts = [_line_html(model, number, names, labels, most) for number in numbers[:_LINES_SHOWN]]
    hidden = len(numbers) - len(parts)
    notes = [f"and {hidden} more line{'s'[: hidden > 1]}"] if hidden else []
    if any(not model.lines_[k - 1].levels for k in numbers[:_LINES_SHOWN]):
        notes.append(f"Curves are log-odds, in every picture from −{most:.3g} at the bottom to {most:.3g} at the top.")
    minor = minor_lines_sentence(model, [_text(name) for name in names])
    notes += [minor] if minor else []
    more = "".join(f'<p style="margin:0;flex-basis:100%">{note}</p>' for note in notes)
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1em 2em;font:13px system-ui,sans-serif;margin-bottom:.6em">'
        f"{_legend(labels)}{''.join(parts)}{more}</div>"
    )


def _legend(labels: list[str]) -> str:
    """Return the classes with their colours if there are more than two; a heading names both of two classes."""
    if len(labels) == 2:
        return ""
    shown = " ".join(_class_html(labels, k) for k in range(min(len(labels), _CLASSES_SHOWN)))
    hidden = len(labels) - _CLASSES_SHOWN
    more = f" and {hidden} more classes" if hidden > 0 else ""
    return f'<div style="flex-basis:100%">Classes: {shown}{more}</div>'


def _class_html(labels: list[str], code: int) -> str:
    return f'<span style="border-bottom:3px solid {_colour(code)}">{_text(labels[code])}</span>'


def _colour(code: int) -> str:
    return CLASS_COLOURS[code % len(CLASS_COLOURS)]


def _line_html(model: Any, number: int, names: Sequence[str], labels: list[str], most: float) -> str:
    """Return one line: a heading, and a picture with the intervals and features, or the levels of a category."""
    line = model.lines_[number - 1]
    parts = [f"Line {number}"] if len(model.lines_) > 1 else []
    parts += [f"{_text(labels[1])} against {_text(labels[0])}"] if len(labels) == 2 else []
    scale = scale_along(model, line, names)
    if line.levels:
        body = [_levels_html(line, scale, labels, most)]
    else:
        body = [_picture(line, most), _intervals_html(line, scale, labels)]
        # A weight says nothing of a column that is alone, unless it is a plain number.
        body += [_features(model, line, names)] if scale.kind in ("sum", "number") and not line.reads_codes else []
    return f'<div><div style="font-weight:600">{": ".join(parts)}</div>{"".join(body)}</div>'


def _levels_html(line: Line, scale: Scale, labels: list[str], most: float) -> str:
    """Return the levels of a category with the most rows: the class that each favours, log-odds and rows."""
    totals = line.counts.sum(axis=1)
    shown = np.sort(np.argsort(-totals, kind="stable")[: n_named(len(totals), _LEVELS_LISTED)])
    rows = [
        f'<tr><td style="text-align:left">{_text(level_text(line.levels[k]))}</td>'
        f'<td style="text-align:left">{_class_html(labels, int(line.level_codes[k]))}</td>'
        f"{_log_odds_html(line, k, most)}<td>{totals[k]:,.0f}</td></tr>"
        for k in shown.tolist()
    ]
    n_hidden, of = len(totals) - len(shown), "log-odds" if len(labels) == 2 else ""
    more = f"<tr><td colspan=5>and {n_hidden} rarer levels</td></tr>" if n_hidden else ""
    left = 'style="text-align:left"'
    head = f"<tr><td {left}>{_text(scale.name)}</td><td {left}>favours</td><td>{of}</td><td></td><td>rows</td></tr>"
    return f"<table>{head}{''.join(rows)}{more}</table>"


def _log_odds_html(line: Line, level: int, most: float) -> str:
    """Return what a level adds to the log-odds of the second of two classes, with a bar; empty for more classes."""
    if len(line.curves) > 1:
        return "<td></td><td></td>"
    value = float(line.decisive[0].log_odds[level])
    return f'<td>{value:+.2f}</td><td style="text-align:left">{_bar(60 * value / (most or 1.0))}</td>'


def _text(name: str) -> str:
    """Return a name as HTML, shortened, and isolated from the direction of the text around it."""
    short = name if len(name) <= _LETTERS_SHOWN else f"{name[: _LETTERS_SHOWN - 1]}…"
    return f"<bdi>{html.escape(short)}</bdi>"


def _picture(line: Line, most: float) -> str:
    """Return a picture of the class densities, the curves in front of them, and the intervals below."""
    low, high = float(line.places[0]), float(line.places[-1])
    wide = (high - low) or 1.0
    places = np.linspace(low, high, _PLACES_DRAWN)
    zero = f'<path d="M0 {_HIGH / 2}H{_WIDE}" stroke="currentColor" stroke-dasharray="3 3" opacity=".5"/>'
    curves = [
        f'<path d="{_path((places - low) / wide * _WIDE, _HIGH / 2 * (1 - curve.at(places) / (most or 1.0)))}" '
        f'fill="none" stroke="{_colour(k) if len(line.curves) > 1 else "currentColor"}" stroke-width="2"/>'
        for k, curve in enumerate(line.decisive[:_CLASSES_SHOWN])
    ]
    ends = (np.clip(np.concatenate([[low], line.thresholds, [high]]), low, high) - low) / wide * _WIDE
    bands = [
        f'<rect x="{a:.1f}" y="{_HIGH}" width="{max(0.0, b - a):.1f}" height="8" fill="{_colour(code)}"/>'
        for a, b, code in zip(ends[:-1], ends[1:], line.codes, strict=True)
    ]
    return (
        f'<svg viewBox="0 0 {_WIDE} {_HIGH + 8}" width="{_WIDE}" height="{_HIGH + 8}" role="img" '
        'aria-label="Densities of the classes along the line, and what it adds to the log-odds" '
        f'style="max-width:100%">{"".join([*_areas(line, low, wide), zero, *curves, *bands])}</svg>'
    )


def _areas(line: Line, low: float, wide: float) -> list[str]:
    """Return the densities of the classes as areas, every second one with a broken outline."""
    top = float(line.densities.max()) or 1.0
    x = (line.places - low) / wide * _WIDE
    around = np.concatenate([x[:1], x, x[-1:]])  # from the bottom, and back to it
    areas = []
    for k, heights in enumerate(line.densities[:_CLASSES_SHOWN]):
        outline, dash = _path(around, _HIGH * (1 - np.pad(heights, 1) / top)), ' stroke-dasharray="6 3"' * (k % 2)
        areas.append(f'<path d="{outline}" fill="{_colour(k)}" fill-opacity=".18" stroke="{_colour(k)}"{dash}/>')
    return areas


def _path(x: Floats, y: Floats) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))


def _intervals_html(line: Line, scale: Scale, labels: list[str]) -> str:
    """Return the intervals between thresholds, each with the class that the line favours, in ascending order."""
    parts = [_class_html(labels, code) for code in line.codes]
    joined = parts[0]
    for threshold, part in zip(line.thresholds, parts[1:], strict=True):
        joined += f" <small>{html.escape(scale.text(threshold))}</small> {part}"
    code = missing_code(line)
    if code is not None:
        joined += f"; missing: {_class_html(labels, code)}"
    plain = scale.kind in ("sum", "number") and not line.reads_codes
    return f'<div style="max-width:{_WIDE}px">{"z" if plain else _text(scale.name)}: {joined}</div>'


def _features(model: Any, line: Line, names: Sequence[str]) -> str:
    """Return the features of a line that contribute most, with their weights."""
    sizes = contributions_of(model, line)
    order = line.features[np.argsort(-np.abs(sizes[line.features]), kind="stable")][:_FEATURES_LISTED]
    largest = max(float(np.abs(sizes[order]).max()), 1e-300)
    rows = [
        f'<tr><td style="text-align:left">{_text(name_in_sum(model.columns_, int(j), names[j]))}</td>'
        f"<td>{line.direction[j]:.4g}</td>"
        f'<td style="text-align:left">{_bar(80 * sizes[j] / largest)}</td></tr>'
        for j in order
    ]
    hidden = len(line.features) - len(order)
    more = f"<tr><td colspan=3>and {hidden} more features</td></tr>" if hidden else ""
    left = 'style="text-align:left"'
    head = f"<tr><td {left}>feature</td><td>weight</td><td {left}>× standard deviation</td></tr>"
    return f"<table>{head}{''.join(rows)}{more}</table>"


def _bar(length: float) -> str:
    """Return a bar of ``length`` pixels, hollow if it is negative."""
    fill = "currentColor" if length > 0 else "none"
    style = f"display:inline-block;height:.7em;width:{abs(length):.0f}px;background:{fill};border:1px solid"
    return f'<span style="{style}"></span>'
