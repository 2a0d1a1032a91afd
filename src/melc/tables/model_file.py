"""Model files of the command line: the JSON document of the model, with the column that it predicts."""

import json
from dataclasses import dataclass
from typing import Any

from melc.base import LineClassifier
from melc.export.document import MOST_BYTES, from_document, to_document
from melc.export.reading import parse
from melc.tables.source import TableError


@dataclass(frozen=True)
class StoredModel:
    """A fitted model and the name of the column that it predicts, None if that is not known."""

    model: LineClassifier
    target: str | None = None

    @property
    def classes(self) -> Any:
        """The labels, shape (n_classes,)."""
        return self.model.classes_

    def target_or(self, given: str | None) -> str:
        """Return the column ``given``, or that of the model if it is None."""
        if given is None and self.target is None:
            raise TableError("The model does not tell which column it predicts; name it with --target.")
        return given or self.target or ""


def model_text(stored: StoredModel, *, indent: int | None = None) -> str:
    """Return the content of a model file, which :func:`melc.export.from_json` reads as well."""
    document = to_document(stored.model) | {"target": stored.target}
    return json.dumps(document, indent=indent, allow_nan=False, ensure_ascii=False)


def read_model(text: str | bytes) -> StoredModel:
    """Return the model in a file that ``melc fit`` or :func:`melc.export.to_json` wrote.

    Anything else raises a ``ValueError`` that says what is wrong and where.
    """
    reader = parse(text, "melc model", max_bytes=MOST_BYTES)
    model = from_document(reader)
    target = reader.entries().get("target")
    named = None if target is None else target.optional()
    return StoredModel(model, None if named is None else named.text())
