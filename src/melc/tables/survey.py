"""What a column holds: numbers, dates, truth values or texts. Learned block by block, for files of any size.

Columns whose values are most likely misread are refused: numbers with a few texts among them, numbers with decimal
commas, and texts that differ in nearly every row.
"""

from typing import Any

import numpy as np

from melc.tables.csv_files import Kind
from melc.tables.frames import Content, is_truth, moments_of, refuse_infinity
from melc.tables.source import TableError, arrow

# A text column with more different values is refused. In a column of numbers, fewer of them are remembered.
MOST_CATEGORIES, _MOST_NUMBERS = 100_000, 1000
# A text column with more different values than this, and than half of its rows, is refused as an identifier.
_FEW_CATEGORIES = 20
# Share of the values of a text column from which on it is taken for a column of numbers with some odd values.
_NEARLY_ALL = 0.9
_MOST_NAMED = 5

_NUMBER = r"^\s*[-+]?(\d+[.]?\d*|[.]\d+)([eE][-+]?\d+)?\s*$"
_COMMA_NUMBER = _NUMBER.replace("[.]", "[.,]")
_POINT_NUMBER = r"^\s*[-+]?\d*[.]\d*([eE][-+]?\d+)?\s*$"
# A date with a year of four digits at the beginning or end, and perhaps a time.
_DATE = r"^\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([ T].*)?$"


class Survey:
    """What is known of a column after some of its rows.

    If ``written``, the values are texts as they are written in a file, and a column of numbers may be among them;
    with this ``decimal`` point; otherwise texts are meant as texts.
    """

    def __init__(self, name: str, *, written: bool = False, decimal: str = ".") -> None:
        self.name, self.written = name, written
        self._number = _NUMBER.replace("[.]", f"[{decimal}]")
        self.n_rows = self.n_missing = 0
        self._n_numbers = self._n_comma_numbers = self._n_point_numbers = self._n_dates = 0
        self._odd: list[str] = []
        self._is_text = False
        self._dates = True
        self._counts: dict[str, int] | None = {}  # None if there are too many different texts

    def add(self, values: Any) -> None:
        """Add the values of some rows, an Arrow array of doubles or strings."""
        self.n_rows += len(values)
        self.n_missing += values.null_count
        values = values.drop_null()
        if not len(values):
            return
        if arrow().types.is_floating(values.type):
            self.n_missing += int(np.isnan(refuse_infinity(values, self.name)).sum())
            return
        self._is_text |= not self.written
        self._look_for_numbers(values)
        self._dates = self._dates and moments_of(values) is not None
        if self._counts is not None:
            self._count(values)

    def _look_for_numbers(self, values: Any) -> None:
        """Count the texts that are numbers, with a decimal point or a comma, and keep a few of the others."""
        pc = arrow().compute
        plain = pc.match_substring_regex(values, self._number)
        n_plain = pc.sum(plain).as_py()
        self._n_numbers += n_plain
        if n_plain == len(values):
            self._n_comma_numbers += n_plain
            return
        self._is_text = True
        self._n_comma_numbers += _n_matches(values, _COMMA_NUMBER)
        self._n_point_numbers += _n_matches(values, _POINT_NUMBER)
        self._n_dates += _n_matches(values, _DATE)
        if len(self._odd) < _MOST_NAMED:
            odd = pc.unique(values.filter(pc.invert(plain))).slice(0, _MOST_NAMED).to_pylist()
            self._odd = list(dict.fromkeys([*self._odd, *odd]))[:_MOST_NAMED]

    def _count(self, values: Any) -> None:
        counts = self._counts or {}
        for entry in arrow().compute.value_counts(values).to_pylist():
            counts[entry["values"]] = counts.get(entry["values"], 0) + entry["counts"]
        self._counts = counts if len(counts) <= (_MOST_NUMBERS if self.holds_numbers else MOST_CATEGORIES) else None

    @property
    def holds_numbers(self) -> bool:
        """Whether all values so far are numbers."""
        return not self._is_text

    @property
    def kind(self) -> Kind:
        """Whether the column is read as numbers or text."""
        return "number" if self.holds_numbers else "text"

    @property
    def content(self) -> Content:
        """What the column holds."""
        if self.holds_numbers:
            return "number"
        if self._dates:
            return "date"
        return "truth" if self._counts and all(map(is_truth, self._counts)) else "text"

    def refuse_misread_texts(self) -> None:
        """Raise ``TableError`` if the texts are most likely numbers, dates, or identifiers."""
        self._refuse_misread_numbers()
        counts = self._counts
        n_values = self.n_rows - self.n_missing
        if self._n_dates >= _NEARLY_ALL * n_values:
            raise TableError(
                f"The column {self.name!r} has dates that cannot all be read, such as {self._some_odd()}. Write them "
                f"as 2024-12-31, say what stands for missing values with --na-values, or leave the column out with "
                f"--drop {self.name!r}."
            )
        if counts is None:
            if self._odd and self._n_numbers >= n_values / 2:
                raise self._mixed_with_texts()
            raise TableError(
                f"The column {self.name!r} has more than {MOST_CATEGORIES} different texts: an identifier or free "
                f"text. Leave it out with --drop {self.name!r}."
            )
        if len(counts) > max(_FEW_CATEGORIES, n_values / 2):
            if self._odd and self._n_numbers >= n_values / 2:
                raise self._mixed_with_texts()
            raise TableError(
                f"The column {self.name!r} has {len(counts)} different texts in {n_values} rows, such as "
                f"{next(iter(counts))!r}: an identifier or free text, from which no rule can be learned. Leave it out "
                f"with --drop {self.name!r}. (Dates are recognised if written as 2024-12-31.)"
            )

    def _refuse_misread_numbers(self) -> None:
        n_values = self.n_rows - self.n_missing
        if not self._odd:  # texts that are meant as texts, all of which could be read as numbers
            return
        if self._n_numbers >= _NEARLY_ALL * n_values:
            raise self._mixed_with_texts()
        if self._n_comma_numbers >= _NEARLY_ALL * n_values:
            mixed = ", and others with decimal points; write all of them in one way."
            raise TableError(
                f"The column {self.name!r} has numbers with decimal commas, such as {self._some_odd()}"
                f"{mixed if self._n_point_numbers else '; read them with --decimal ,'}"
            )

    def _mixed_with_texts(self) -> TableError:
        """Return the error for numbers with some texts among them."""
        n_odd = self.n_rows - self.n_missing - self._n_numbers
        return TableError(
            f"The column {self.name!r} has {self._n_numbers} numbers and {n_odd} text value{'s' * (n_odd > 1)}: "
            f"{self._some_odd()}{' ...' * (n_odd > len(self._odd))}. If they stand for missing values, say so with "
            f"--na-values {self._odd[0][:40]!r}; otherwise correct them, or leave the column out with --drop "
            f"{self.name!r}."
        )

    def _some_odd(self) -> str:
        """Return a few texts that are no numbers."""
        return ", ".join(repr(text[:40]) for text in self._odd)


def _n_matches(values: Any, pattern: str) -> int:
    return int(arrow().compute.sum(arrow().compute.match_substring_regex(values, pattern)).as_py())
