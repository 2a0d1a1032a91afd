"""The columns of a table in JSON documents: levels and their scores, ranks, dates, places of missing numbers."""

from collections.abc import Sequence
from typing import Any

from melc.data.frames import Label
from melc.export.reading import Reader
from melc.model.columns import Category, Columns

_KINDS = "categories", "ranks", "dates", "numbers"


def columns_out(columns: Columns) -> list[dict[str, Any]]:
    """Return the columns that are not plain numbers, in their order, as JSON values."""
    features = sorted({*columns.categories, *columns.ranks, *columns.dates, *columns.places})
    return [{"feature": j, **_column_out(columns, j)} for j in features]


def _column_out(columns: Columns, j: int) -> dict[str, Any]:
    if j in columns.categories:
        category = columns.categories[j]
        scores, levels = category.scores.tolist(), _labels_out(category.levels)
        return {"holds": "categories", "levels": levels, "scores": scores, "others": category.others}
    place = columns.places.get(j)
    if j in columns.ranks:
        return {"holds": "ranks", "levels": _labels_out(columns.ranks[j]), "place": place}
    return {"holds": "dates" if j in columns.dates else "numbers", "place": place}


def _labels_out(labels: Sequence[Label | None]) -> list[Any]:
    """Return levels as JSON values; raise ``ValueError`` if a number among them is not finite."""
    for label in labels:
        Reader(label, "A level of a category cannot be written as JSON").label()
    return list(labels)


def columns_in(reader: Reader, n_features: int) -> Columns:
    """Return the columns in a document."""
    categories: dict[int, Category] = {}
    ranks: dict[int, tuple[Label, ...]] = {}
    dates, places, last = set(), {}, -1
    for item in reader.items():
        kind = item.fields(["holds"], item.value)["holds"].choice(*_KINDS)
        fields = item.fields(["feature", "holds", *_fields_of(kind)])
        last = fields["feature"].integer(last + 1, n_features - 1)
        if kind == "categories":
            categories[last] = _category_in(fields)
            continue
        if kind == "ranks":
            ranks[last] = tuple(label for label in _labels_in(fields["levels"]) if label is not None)
            if len(ranks[last]) < len(fields["levels"].items()):
                fields["levels"].fail("levels without null")
        elif kind == "dates":
            dates.add(last)
        place = fields["place"] if kind == "numbers" else fields["place"].optional()
        if place is not None:
            places[last] = place.number()
    return Columns(categories, ranks, tuple(dates), places)


def _fields_of(kind: str) -> list[str]:
    """Return the names of the fields that a column of a kind has besides its number and its kind."""
    if kind == "categories":
        return ["levels", "scores", "others"]
    return ["levels", "place"] if kind == "ranks" else ["place"]


def _category_in(fields: dict[str, Reader]) -> Category:
    levels, others = _labels_in(fields["levels"]), fields["others"].boolean()
    if not levels and not others:
        fields["levels"].fail("one or more levels")
    return Category(levels, fields["scores"].numbers(len(levels) + others), others)


def _labels_in(reader: Reader) -> tuple[Label | None, ...]:
    """Return levels that all differ."""
    labels = tuple(item.label() for item in reader.items())
    if len(set(labels)) < len(labels):
        reader.fail("different levels")
    return labels
