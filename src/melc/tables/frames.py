"""Rows of files as pandas frames with a type for each column, as ``fit`` and ``predict`` take them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from melc.arrays import Floats
from melc.data.frames import Label
from melc.model.names import feature_names_of
from melc.tables.csv_files import Kind
from melc.tables.notation import dates_in, numbers_in
from melc.tables.source import Source, TableError, arrow, writing_temporary_file

# What a column of a file holds. Texts are categories.
Content = Literal["number", "date", "truth", "text"]

_TRUTH = {"true": True, "1": True, "false": False, "0": False}


def kinds_of(contents: Mapping[str, Content], source: Source) -> dict[str, Kind]:
    """Return whether each column is read as numbers or text; so are numbers that are not written as usual."""
    written = contents if source.thousands else source.numbers
    return {
        name: "number" if content == "number" and name not in written else "text" for name, content in contents.items()
    }


def contents_of(model: Any) -> dict[str, Content]:
    """Return the columns that a fitted model needs, in their order, and what they hold."""
    columns = model.columns_
    found: dict[str, Content] = {}
    for j, name in enumerate(feature_names_of(model)):
        if j in columns.categories:
            found[name] = _content_of_levels(columns.categories[j].levels)
        elif j in columns.ranks:
            found[name] = _content_of_levels(columns.ranks[j])
        else:
            found[name] = "date" if j in columns.dates else "number"
    return found


def _content_of_levels(levels: Iterable[Label | None]) -> Content:
    kinds = {type(level) for level in levels if level is not None}
    if kinds == {bool}:
        return "truth"
    return "number" if kinds and kinds <= {int, float} else "text"


def kinds_for(model: Any, source: Source) -> dict[str, Kind]:
    """Return whether each column that a fitted model needs is read as numbers or text."""
    return kinds_of(contents_of(model), source)


def rows_for(model: Any, block: Any, source: Source) -> Any:
    """Return the rows of a block, read as ``kinds_for`` says, as a frame that the model takes."""
    return named_for(model, frame_of([typed(block, contents_of(model), source)]))


def named_for(model: Any, frame: Any) -> Any:
    """Return a frame with names of columns as the model has seen them; one that was fitted without wants none."""
    return frame if hasattr(model, "feature_names_in_") else frame.set_axis(range(frame.shape[1]), axis=1)


def unknown_levels(model: Any, frame: Any) -> dict[str, int]:
    """Return how many values of each category the model does not know; missing ones are not counted."""
    columns = model.columns_
    known = {j: set(category.levels) for j, category in columns.categories.items() if not category.others}
    known |= {j: set(levels) for j, levels in columns.ranks.items()}
    names = feature_names_of(model)
    counts = {names[j]: int((~frame.iloc[:, j].dropna().isin(levels)).sum()) for j, levels in known.items()}
    return {name: count for name, count in counts.items() if count}


def frame_of(tables: list[Any]) -> Any:
    """Return typed tables, one below the other, as a frame. Texts become categories, which take little memory."""
    whole = arrow().concat_tables(tables).unify_dictionaries()
    tables.clear()  # so that a column can be released as soon as it is converted
    return whole.to_pandas(split_blocks=True, self_destruct=True)


def typed(block: Any, contents: Mapping[str, Content], source: Source) -> Any:
    """Return the named columns of a block of doubles and strings as a ``pyarrow.Table`` of their types."""
    return arrow().table({name: _typed(one_piece(block.column(name)), name, c, source) for name, c in contents.items()})


def _typed(values: Any, name: str, content: Content, source: Source) -> Any:
    if content == "number":
        return numbers_of(values, name, source)
    if content == "date":
        return _dates(values, name, source.dates.get(name) or source.date_format)
    return _truths(values, name) if content == "truth" else values.dictionary_encode()


def numbers_of(values: Any, name: str, source: Source) -> Any:
    """Return a column of numbers, or of texts as they are written in a file, as doubles; infinity is refused."""
    column = values if arrow().types.is_floating(values.type) else numbers_in(values, source.notation(name), name)
    numbers = column.to_numpy(zero_copy_only=False)
    if np.isinf(numbers).any():
        found = numbers[np.isinf(numbers)][0]
        raise TableError(
            f"The column {name!r} contains {found}. Correct it, or take it as missing with --na-values {found}.",
            ["--na-values", str(found)],
        )
    return column


def one_piece(values: Any) -> Any:
    """Return a column as an Arrow array in one piece."""
    return values.combine_chunks() if hasattr(values, "combine_chunks") else values


def _matrix_of(block: Any, names: Iterable[str], source: Source) -> Floats:
    """Return columns of numbers as a matrix, shape (n_rows, n_columns), NaN where they are missing."""
    columns = [numbers_of(one_piece(block.column(name)), name, source) for name in names]
    return np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])


def is_truth(text: str) -> bool:
    """Whether a text is "true" or "false", in small or capital letters."""
    return text.lower() in ("true", "false")


def _truths(texts: Any, name: str) -> Any:
    """Return texts as an Arrow array of truth values."""
    different = texts.dictionary_encode()
    words = [text.strip().lower() for text in different.dictionary.to_pylist()]
    wrong = next((word for word in words if word not in _TRUTH), None)
    if wrong is not None:
        raise TableError(f"The column {name!r} contains {wrong!r}; it held only true and false in the fit.")
    return arrow().array([_TRUTH[word] for word in words], arrow().bool_()).take(different.indices)


def moments_of(texts: Any) -> Any:
    """Return dates and times written as in ISO 8601 as an Arrow array of timestamps in UTC; None if one cannot be read.

    A time without a zone is taken as it is.
    """
    pa = arrow()
    for zone in (None, "UTC"):  # without a time zone, and with one
        try:
            return texts.cast(pa.timestamp("us", zone)).cast(pa.timestamp("us"))
        except pa.ArrowInvalid:
            continue
    return None


def _dates(texts: Any, name: str, format: str | None) -> Any:
    moments = None if format is None else dates_in(texts, format)
    moments = moments_of(texts) if moments is None else moments
    if moments is None:
        known = texts.drop_null().to_pylist()
        wrong = next(text for text in known if _date(text, format) is None)
        form = "2024-12-31" if format is None else f"{format}, or as 2024-12-31"
        raise TableError(f"The column {name!r} contains {wrong!r}; dates must be written as {form}.")
    return moments


def _date(text: str, format: str | None) -> Any | None:
    """Return a date, or None if it cannot be read."""
    one = arrow().array([text])
    return moments_of(one) if format is None else dates_in(one, format)


class FrameRows:
    """Collects the features of blocks of rows as a frame in memory."""

    def __init__(self, contents: Mapping[str, Content], source: Source) -> None:
        self._contents, self._source = contents, source
        self._tables: list[Any] = []

    def add(self, block: Any) -> None:
        """Add the rows of a block."""
        self._tables.append(typed(block, self._contents, self._source))

    def frame(self) -> Any:
        """Return all rows."""
        return frame_of(self._tables)


class MappedRows:
    """Writes the features of blocks of rows, all numbers, to a file in a folder, and maps it as a frame."""

    def __init__(self, names: list[str], folder: Path, source: Source) -> None:
        self._names, self._path, self._source = names, folder / "rows", source
        self._path.touch()

    def add(self, block: Any) -> None:
        """Add the rows of a block."""
        with writing_temporary_file(), open(self._path, "ab") as stream:
            stream.write(_matrix_of(block, self._names, self._source).data)

    def frame(self) -> Any:
        """Return all rows."""
        import pandas as pd

        arrow().default_memory_pool().release_unused()
        rows = np.memmap(self._path, dtype=np.float64, mode="r").reshape(-1, len(self._names))
        return pd.DataFrame(rows, columns=self._names, copy=False)
