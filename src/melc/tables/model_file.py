"""Model files of the command line: the JSON document of the model, its target, and how its table was read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from melc.base import LineClassifier
from melc.export.document import MOST_BYTES, from_document, to_document
from melc.export.reading import Reader, parse
from melc.tables.source import NO_FILE, Notation, Source, TableError

# What a model file keeps of the source of its rows: what the user may say, and what was found.
_TEXTS = ("delimiter", "encoding", "decimal", "thousands", "date_format")
_GIVEN, _FOUND = (*_TEXTS, "na_values", "skip_rows"), ("numbers", "dates")
_MOST_LINES_SKIPPED = 10**9


@dataclass(frozen=True)
class StoredModel:
    """A fitted model, the name of the column that it predicts, None if that is not known, and how its table was read.

    ``reading`` are fields of a :class:`melc.tables.Source`.
    """

    model: LineClassifier
    target: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)

    @property
    def classes(self) -> Any:
        """The labels, shape (n_classes,)."""
        return self.model.classes_

    def target_or(self, given: str | None) -> str:
        """Return the column ``given``, or that of the model if it is None."""
        if given is None and self.target is None:
            raise TableError("The model does not tell which column it predicts; name it with --target.")
        return given or self.target or ""

    def reads(self, source: Source) -> Source:
        """Return a source that is read like the table of the model, but for what the source says itself."""
        given = _unusual(source, _GIVEN).keys()
        source = replace(source, **{name: value for name, value in self.reading.items() if name not in given})
        if not given & {"decimal", "thousands"}:
            return source
        # The user says how all numbers are written.
        numbers = {
            name: Notation(source.decimal or given.decimal, source.thousands or _other(source, given), given.unit)
            for name, given in source.numbers.items()
        }
        return replace(source, numbers=numbers)


def _other(source: Source, notation: Notation) -> str | None:
    """Return the mark between thousands that a column had, unless it is now the decimal mark."""
    return None if notation.thousands == source.decimal else notation.thousands


def reading_of(source: Source) -> dict[str, Any]:
    """Return how a table was read, as far as it is not as usual."""
    return _unusual(source, (*_GIVEN, *_FOUND))


def _unusual(source: Source, names: tuple[str, ...]) -> dict[str, Any]:
    """Return those of the fields of a source that are not as usual."""
    return {name: getattr(source, name) for name in names if getattr(source, name) != getattr(NO_FILE, name)}


def model_text(stored: StoredModel, *, indent: int | None = None) -> str:
    """Return the content of a model file, which :func:`melc.export.from_json` reads as well."""
    document = to_document(stored.model) | {"target": stored.target}
    if stored.reading:
        numbers = {name: _as_list(notation) for name, notation in stored.reading.get("numbers", {}).items()}
        document["reading"] = dict(stored.reading) | ({"numbers": numbers} if numbers else {})
    return json.dumps(document, indent=indent, allow_nan=False, ensure_ascii=False)


def read_model(text: str | bytes) -> StoredModel:
    """Return the model in a file that ``melc fit`` or :func:`melc.export.to_json` wrote.

    Anything else raises a ``ValueError`` that says what is wrong and where.
    """
    reader = parse(text, "melc model", max_bytes=MOST_BYTES)
    model = from_document(reader)
    entries = reader.entries()
    named = entries["target"].optional() if "target" in entries else None
    reading = _reading(entries["reading"]) if "reading" in entries else {}
    return StoredModel(model, None if named is None else named.text(), reading)


def _reading(reader: Reader) -> dict[str, Any]:
    """Return how the table of a model was read."""
    found: dict[str, Any] = {}
    for name, value in reader.fields([], [*_GIVEN, *_FOUND]).items():
        if name in _TEXTS:
            found[name] = value.text()
        elif name == "na_values":
            found[name] = tuple(item.text() for item in value.items())
        elif name == "skip_rows":
            found[name] = value.integer(0, _MOST_LINES_SKIPPED)
        elif name == "dates":
            found[name] = {column: format.text() for column, format in value.entries().items()}
        else:
            found[name] = {column: _notation(marks) for column, marks in value.entries().items()}
    return found


def _as_list(notation: Notation) -> list[str | None]:
    """Return the marks of numbers, and their unit if they have one."""
    return [notation.decimal, notation.thousands, *([] if notation.unit is None else [notation.unit])]


def _notation(reader: Reader) -> Notation:
    has_unit = isinstance(reader.value, list) and len(reader.value) == 3
    decimal, thousands, *unit = reader.items(3 if has_unit else 2)
    optional = thousands.optional()
    return Notation(_mark(decimal), None if optional is None else _mark(optional), unit[0].text() if unit else None)


def _mark(reader: Reader) -> str:
    """Return a single character."""
    if len(reader.text()) != 1:
        reader.fail("a single character")
    return reader.text()
