"""A model as an index card, in characters."""

from typing import Any

from melc.export.text_parts import aligned, level_text, quoted
from melc.model.index_card import IndexCard, index_card_of


def card_text(model: Any, names: list[str]) -> str:
    """Return the card of a fitted model; ``names`` are those of the features as they are written."""
    card = index_card_of(model, names, quoted, level_text)
    notes = [f"  {note}" for term in card.terms for note in term.notes]
    return "\n".join([card.formula, *_interval_rows(card), *_points_rows(card), *notes])


def _interval_rows(card: IndexCard) -> list[str]:
    cells = [[each.name for each in card.intervals], [each.label for each in card.intervals]]
    return [f"  {'   '.join(row)}   {each.counts}" for row, each in zip(aligned(cells), card.intervals, strict=True)]


def _points_rows(card: IndexCard) -> list[str]:
    rows = []
    for term in card.terms:
        if term.points:
            points = "; ".join(f"{text} for {', '.join(levels)}" for text, levels in term.points)
            rows.append(f"  {term.name}: {points}")
    return rows
