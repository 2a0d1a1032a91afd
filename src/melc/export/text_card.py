"""A model as an index card, in characters."""

from typing import Any

from melc.export.text_parts import aligned, quoted
from melc.model.index_card import IndexCard, index_card_of

# Levels with the same points that are named; of further ones the number is given.
_MOST_LEVELS = 6


def card_text(model: Any, names: list[str]) -> str:
    """Return the card of a fitted model; ``names`` are those of the features as they are written."""
    card = index_card_of(model, names, quoted, level_in_card)
    notes = [f"  {note}" for term in card.terms for note in term.notes]
    return "\n".join([card.formula, *_interval_rows(card), *_points_rows(card), *notes])


def level_in_card(name: str) -> str:
    """Return a level; names in brackets are those of missing and other values."""
    return name if name in ("(missing)", "(others)") else quoted(name)


def _interval_rows(card: IndexCard) -> list[str]:
    cells = [[each.name for each in card.intervals], [each.label for each in card.intervals]]
    counts = [f"({each.right:.6g} of {each.total:.6g})" for each in card.intervals]
    return [f"  {'   '.join(row)}   {count}" for row, count in zip(aligned(cells), counts, strict=True)]


def _points_rows(card: IndexCard) -> list[str]:
    rows = []
    for term in card.terms:
        if term.points:
            points = "; ".join(f"{text} for {_listed(levels)}" for text, levels in term.points)
            rows.append(f"  {term.name}: {points}")
    return rows


def _listed(levels: list[str]) -> str:
    """Return names of levels; of many, some and the number of the others."""
    if len(levels) <= _MOST_LEVELS + 1:
        return ", ".join(levels)
    return f"{', '.join(levels[:_MOST_LEVELS])} and {len(levels) - _MOST_LEVELS} more"
