"""An additive model as text: what each line adds to the log-odds, in which interval and for which class."""

from melc.additive import AdditiveMELC
from melc.export.wording import counts_of, intervals_of, number, quoted
from melc.model.line import Line
from melc.model.names import by_contribution, column_width, terms_of

# Features that are named in the sum of a line; of further ones their number is given.
_MOST_NAMED = 4
_FEW_DIGITS = 3

_CURVE = "points of the curve: z, and what the line adds there; straight between points, constant beyond the outermost:"


def export_text(model: AdditiveMELC, names: list[str], digits: int | None, odds: bool) -> str:
    """Return a fitted model as text, with all weights and curves if ``odds``."""
    if digits is None and not odds:
        digits = _FEW_DIGITS
    labels = [quoted(str(label)) for label in model.classes_]
    if len(labels) == 2:
        decided = f"Where the log-odds are above 0, {labels[1]} is predicted, elsewhere {labels[0]}."
        return "\n\n".join([*_class_parts(model, 1, names, labels, digits, odds), decided])
    parts = []
    for k, label in enumerate(labels):
        sides = ["rest", '"rest"' if label == "rest" else label]
        parts += _class_parts(model, k, names, sides, digits, odds)
    return "\n\n".join([*parts, "The class with the largest log-odds is predicted, the first of equals."])


def _class_parts(
    model: AdditiveMELC, class_index: int, names: list[str], sides: list[str], digits: int | None, odds: bool
) -> list[str]:
    """Return a heading and one block of text per line of a class, by descending importance.

    ``sides`` are the names of the others and of the class.
    """
    lines = [(k, line) for k, line in enumerate(model.lines_) if line.class_index == class_index]
    lines.sort(key=lambda numbered: -numbered[1].importance)
    against = "the rest" if len(model.classes_) > 2 else sides[0]
    intercept = number(model.intercept_[0 if len(model.classes_) == 2 else class_index], digits)
    counted = f"{len(lines)} line{'s' if len(lines) > 1 else ''}"
    heading = f"Log-odds of {sides[1]} against {against}: {intercept} + what {counted} add{'s' * (len(lines) == 1)}"
    return [heading, *("\n".join(_line_block(k, line, names, sides, digits, odds)) for k, line in lines)]


def _line_block(
    index: int, line: Line, names: list[str], sides: list[str], digits: int | None, odds: bool
) -> list[str]:
    """Return the text of a line: what z is, and what is added in each of its intervals."""
    heading = f"Line {index}, importance {number(line.importance, digits or _FEW_DIGITS)}: "
    if not odds:
        named = {j: quoted(names[j]) for j in by_contribution(line)[: _MOST_NAMED + 1]}
        terms = terms_of(line, named, _MOST_NAMED, digits)
        return [f"{heading}z = {' '.join(terms)}", *_interval_lines(line, sides, digits)]
    weights = [f"    {number(line.coef[j], digits)}  {quoted(names[j])}" for j in by_contribution(line)]
    points = [
        f"    {number(z, digits)}  {number(value, digits)}" for z, value in zip(line.knots, line.log_odds, strict=True)
    ]
    return [
        f"{heading}z is the sum of weight × feature:",
        *weights,
        *_interval_lines(line, sides, digits),
        f"  {_CURVE}",
        *points,
    ]


def _interval_lines(line: Line, sides: list[str], digits: int | None) -> list[str]:
    """Return one line of text per interval: its limits, what is added for which class, and the training rows in it."""
    ranges = [f"{number(least, digits)} to {number(most, digits)}" for least, most in ranges_of(line)]
    classes = [sides[int(favoured)] for favoured in line.favours]
    counts = [counts_of(row, sides) for row in line.counts]
    columns = [intervals_of([number(t, digits) for t in line.thresholds]), ranges, classes]
    widths = [column_width(column) for column in columns]
    return [
        f"  {interval:<{widths[0]}}   adds {added:<{widths[1]}}   for {label:<{widths[2]}}  ({count})"
        for interval, added, label, count in zip(*columns, counts, strict=True)
    ]


def ranges_of(line: Line) -> list[tuple[float, float]]:
    """Return the least and the most that the line adds in each interval.

    At a threshold it adds nothing, so zero belongs to the range of every interval that ends at one.
    """
    if not len(line.thresholds):
        return line.adds()
    return [(min(least, 0.0), max(most, 0.0)) for least, most in line.adds()]
