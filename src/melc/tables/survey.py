"""What a column holds: numbers, dates, truth values or texts. Learned block by block, for files of any size.

Columns whose values are most likely misread have a fault: numbers with a few texts among them, numbers or dates that
can be read in two ways, and texts that differ in nearly every row.
"""

import shlex
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.tables.csv_files import Kind
from melc.tables.frames import Content, is_truth, moments_of
from melc.tables.notation import (
    NOTATIONS,
    date_formats,
    dates_in,
    measure_of,
    plain_number,
    units_in,
    with_measure,
    without_measure,
    written_number,
)
from melc.tables.source import NO_FILE, Notation, Source, arrow

# A text column with more different values is refused. Of numbers, fewer different ones are remembered.
MOST_CATEGORIES, MOST_NUMBERS = 100_000, 1000
# A text column with more different values than this, and than half of its rows, is refused as an identifier.
_FEW_CATEGORIES = 20
# Share of the values of a text column from which on it is taken for a column of numbers with some odd values.
_NEARLY_ALL = 0.9
_MOST_NAMED = 5
# Rows from which on numbers that count them are no accident.
_FEWEST_COUNTED = 10
# A date with a year of four digits at the beginning or end, and perhaps a time.
_DATE = r"^\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([ T].*)?$"
_ANY_NUMBER = "|".join(map(written_number, NOTATIONS))
_IN_ONE_WAY = "write all of them in one way, or leave the column out"


@dataclass(frozen=True)
class Fault:
    """Why a column cannot be used as it is, in sentences, and options of the command line with which it can."""

    column: str
    text: str
    remedy: tuple[str, ...]


class Survey:
    """What is known of a column after some of its rows.

    If ``written``, the values are texts as they are written in a file, and a column of numbers may be among them;
    otherwise texts that could all be read as numbers are meant as texts. ``source`` tells what is known of the file.
    After all rows, :func:`settle` has to decide how numbers are written.
    """

    def __init__(self, name: str, source: Source = NO_FILE, *, written: bool = False) -> None:
        self.name, self.source, self.written = name, source, written
        self.n_rows = self.n_missing = 0
        self.low, self.high = np.inf, -np.inf  # of numbers that Arrow has read
        self.notation: Notation | None = None  # of numbers that are not written as usual
        self.counts_rows = True  # whether the numbers are 0, 1, 2, ... or 1, 2, 3, ...
        self.broken_number = np.nan  # an example of one with decimals
        self._some_numbers: set[float] = set()
        self._n_plain = self._n_dates = self._n_unmarked = self._n_in_any = 0
        self._marks: set[str] = set()  # "." and ",", if they occur
        self._n_numbers = Counter(dict.fromkeys([*NOTATIONS, *_notations(source)], 0))
        self._units: set[str] = set()
        self._measure: str | None = None  # behind all numbers so far, as in 12 kg; "" if there is none
        self._n_measures = 0
        self._odd: list[str] = []  # some texts that are not written like most numbers, and some that are no numbers
        self._no_numbers: list[str] = []
        self._is_text = False
        self._is_iso = True
        self._formats: list[str] | None = None  # in which all texts so far are dates; None before the first
        self._counts: dict[str, int] | None = {}  # None if there are too many different texts

    # Adding rows

    def add(self, values: Any) -> None:
        """Add the values of some rows, an Arrow array of doubles or strings."""
        begin = self.n_rows
        self.n_rows += len(values)
        self.n_missing += values.null_count
        values = values.drop_null()
        if not len(values):
            return
        if arrow().types.is_floating(values.type):
            self._add_numbers(np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64), begin)
            return
        self._is_text |= not self.written
        different, counts = self._counted(values)
        different = self._without_measure(different, counts)
        self._is_text |= bool(self._measure)
        self._look_for_numbers(different, counts)
        if self._is_text:
            self._look_for_dates(different, counts)

    def _counted(self, values: Any) -> tuple[Any, NDArray[np.int64]]:
        """Return the different texts, and how often each occurs; all of them if there are very many."""
        if self._counts is None:
            return values, np.ones(len(values), dtype=np.int64)
        found = arrow().compute.value_counts(values)
        different, counts = found.field("values"), found.field("counts").to_numpy()
        known = self._counts
        for text, count in zip(different.to_pylist(), counts.tolist(), strict=True):
            known[text] = known.get(text, 0) + count
        self._counts = known if len(known) <= (MOST_NUMBERS if self.kind == "number" else MOST_CATEGORIES) else None
        return different, counts

    def _without_measure(self, values: Any, counts: NDArray[np.int64]) -> Any:
        """Return texts without the unit of measure that all of them have."""
        if self._measure is None:
            self._measure = measure_of(values[0].as_py())
        if self._measure and not arrow().compute.all(with_measure(values, self._measure)).as_py():
            self._measure = ""
        self._n_measures += _total(with_measure(values), counts)
        if not self._measure:
            return values
        _note_some(self._odd, values)
        return without_measure(values, self._measure)

    def _add_numbers(self, numbers: Floats, begin: int) -> None:
        self.n_missing += int(np.isnan(numbers).sum())
        numbers = numbers[~np.isnan(numbers)]
        if not len(numbers):
            return
        self.low, self.high = min(self.low, numbers.min()), max(self.high, numbers.max())
        first = float(numbers[0]) - begin
        self.counts_rows &= first in (0, 1) and bool((np.diff(numbers) == 1).all())
        for part in (numbers[: 10 * MOST_NUMBERS], numbers[10 * MOST_NUMBERS :]):
            if len(self._some_numbers) <= MOST_NUMBERS:
                self._some_numbers |= set(arrow().compute.unique(arrow().array(part)).to_pylist())
        broken = np.abs(numbers[np.isfinite(numbers) & (numbers != np.round(numbers))])
        in_thousands = (broken >= 1) & (np.round(broken, 3) == broken)
        in_hundreds = np.round(broken, 2) == broken  # 1.84 can be 1.840, but few numbers end with a zero
        self._n_plain += len(numbers)
        self._n_unmarked += len(numbers) - len(broken)
        if len(broken):
            self._marks.add(".")
            self.broken_number = float(broken[0])
        grouped = (np.abs(numbers) < 1000).all() and in_thousands.all() and in_hundreds.sum() <= len(broken) / 2
        others = len(numbers) if grouped else 0
        self._n_numbers.update({n: others if n.decimal == "," else len(numbers) for n in self._n_numbers})

    def _look_for_numbers(self, values: Any, counts: NDArray[np.int64]) -> None:
        """Count the texts that are numbers in each notation, and keep a few of those that are not written as usual."""
        pc, usual = arrow().compute, self.source.decimal or "."
        plain = pc.match_substring_regex(values, plain_number(usual))
        marked = {mark: pc.match_substring(values, mark) for mark in ".,"}
        marks = {mark for mark, found in marked.items() if pc.any(found).as_py()}
        n_before, n_values, n_plain = self._n_plain, int(counts.sum()), _total(plain, counts)
        all_plain = n_plain == n_values
        for notation, count in self._n_numbers.items():
            if all_plain and (notation.decimal == usual or not marks):
                self._n_numbers[notation] += n_values
            elif not all_plain or count == n_before:  # else it is no longer possible
                self._n_numbers[notation] += _total(_matches(values, written_number(notation)), counts)
        self._marks |= marks
        self._n_plain += n_plain
        self._n_unmarked += n_values - _total(pc.or_(*marked.values()), counts)
        if all_plain:
            self._n_in_any += n_values
            return
        is_number = _matches(values, _ANY_NUMBER)
        self._n_in_any += _total(is_number, counts)
        self._is_text = True
        best = max(self._n_numbers, key=lambda notation: self._n_numbers[notation])
        self._units |= units_in(values.filter(pc.match_substring_regex(values, written_number(best))))
        _note_some(self._odd, values.filter(pc.invert(plain)))
        _note_some(self._no_numbers, values.filter(pc.invert(is_number)))

    def _look_for_dates(self, values: Any, counts: NDArray[np.int64]) -> None:
        self._is_iso = self._is_iso and moments_of(values) is not None
        self._n_dates += _total(_matches(values, _DATE), counts)
        if self._formats is None:
            self._formats = date_formats(values[0].as_py())
            if self.source.date_format:
                self._formats.insert(0, self.source.date_format)
        self._formats = [format for format in self._formats if dates_in(values, format) is not None]
        if self.source.date_format in self._formats:
            self._formats = [self.source.date_format]

    # What the column holds

    @property
    def n_values(self) -> int:
        """The number of rows in which the column is not missing."""
        return self.n_rows - self.n_missing

    @property
    def n_different(self) -> int | None:
        """The number of different values, if they are not too many to be remembered."""
        if self._some_numbers:
            return len(self._some_numbers) if len(self._some_numbers) <= MOST_NUMBERS else None
        return None if self._counts is None else len(self._counts)

    @property
    def example(self) -> str:
        """A value of the column, one that is not written as usual if there is one."""
        if self._odd:
            return max(self._odd, key=len) if self.notation else self._odd[0]
        return f"{self.broken_number:.3f}" if self._some_numbers else next(iter(self._counts or {}), "")

    @property
    def example_shown(self) -> str:
        """The range of numbers that were read as such, or a value."""
        is_range = self._some_numbers and not self.notation
        return f"{self.low:.6g} to {self.high:.6g}" if is_range else self.example or "-"

    @property
    def kind(self) -> Kind:
        """Whether the column is read as numbers or text."""
        return "text" if self._is_text else "number"

    @property
    def content(self) -> Content:
        """What the column holds."""
        if not self._is_text or self.notation:
            return "number"
        if self._is_iso or self.date_format:
            return "date"
        return "truth" if self._counts and all(map(is_truth, self._counts)) else "text"

    @property
    def date_format(self) -> str | None:
        """The only format in which all values are dates, if they are not written as usual."""
        is_date = self._is_text and not self._is_iso and self._formats is not None
        return self._formats[0] if is_date and self._formats and len(self._formats) == 1 else None

    @property
    def decimals(self) -> set[str]:
        """The decimal marks with which all values are numbers; empty if they are not."""
        return {notation.decimal for notation in self._possible}

    @property
    def proves(self) -> str | None:
        """The decimal mark that only one reading of the numbers has."""
        return next(iter(self.decimals)) if self._marks and len(self.decimals) == 1 else None

    @property
    def _possible(self) -> list[Notation]:
        """The notations in which all values are numbers, as far as they agree with what the user says."""
        return [notation for notation in _notations(self.source) if self._n_numbers[notation] == self.n_values]

    def settle(self, decimal: str | None) -> None:
        """Decide how the numbers are written, if the rest of the table has this decimal mark, or None."""
        possible = self._possible
        if not self.n_values or not possible or self._has_mixed_units or (self._is_text and not self._odd):
            return
        preferred = self.proves or decimal
        if preferred is None and len(self.decimals) == 2 and self._is_text and self._marks:
            if not self._n_unmarked:  # 1,234 in every row: either way
                return
            preferred = "." if self._marks == {","} else ","  # three digits after every mark, and numbers without
        chosen = next((notation for notation in possible if notation.decimal == (preferred or ".")), possible[0])
        if self._is_text or chosen.decimal != (self.source.decimal or "."):
            self.notation = replace(chosen, unit=self._measure or None)

    @property
    def is_suspicious(self) -> bool:
        """Whether points in numbers that were read as decimal points may be thousands: 1.844 beside 818."""
        marked = self.n_values - self._n_unmarked
        is_open = not self._is_text and not self.notation and self.decimals == {".", ","}
        return is_open and self._n_unmarked > 0.05 * self.n_values and marked >= _MOST_NAMED

    @property
    def numbers_rows(self) -> bool:
        """Whether the column counts the rows, from 0 or 1 on, and so many of them that it is no accident."""
        return self.counts_rows and self.low < self.high and self.n_rows >= _FEWEST_COUNTED

    @property
    def is_unusual(self) -> bool:
        """Whether numbers are not written with digits and decimal points alone."""
        return self._is_text or bool(self._marks)

    @property
    def unit(self) -> str:
        """The percent or currency sign of the numbers, or their unit of measure."""
        return self._measure or next(iter(self._units - {""}), "")

    @property
    def _has_mixed_units(self) -> bool:
        return len(self._units - {""}) > 1 or bool(self._units >= {"", "%"})

    # What is wrong with it

    def fault(self) -> Fault | None:
        """Return why the column cannot be used as it is, or None."""
        if not self.n_values:
            return self._fault(f"The column {self.name!r} has no values.")
        infinite = [x for x in (self.low, self.high) if self._some_numbers and np.isinf(x)]
        if infinite:
            remedy = ("--na-values", str(infinite[0]))
            advice = f"correct it, or take it as missing with {shlex.join(remedy)}"
            return self._fault(f"The column {self.name!r} contains {infinite[0]}.", advice, remedy)
        return self._fault_of_texts() if self.content == "text" else None

    def _fault_of_texts(self) -> Fault | None:
        """Return the fault of texts that are most likely numbers, dates, or identifiers."""
        n_numbers, n_dates = max(self._n_plain, self._n_in_any), self._n_dates
        if self._odd and n_dates < _NEARLY_ALL * self.n_values <= n_numbers:
            return self._fault_of_numbers(n_numbers)
        if n_dates >= _NEARLY_ALL * self.n_values or self._formats:
            return self._fault_of_dates()
        n_texts = None if self._counts is None else len(self._counts)
        if n_texts is not None and n_texts <= max(_FEW_CATEGORIES, self.n_values / 2):
            return None
        if self._odd and n_numbers >= self.n_values / 2:
            return self._mixed_with_texts(n_numbers)
        if self._n_measures >= _NEARLY_ALL * self.n_values:
            return self._fault(
                f"The column {self.name!r} has numbers with units, but not all with one: {self._some_odd()}.",
                f"say what stands for missing values with --na-values, {_IN_ONE_WAY}",
            )
        many = f"more than {MOST_CATEGORIES}" if n_texts is None else str(n_texts)
        return self._fault(
            f"The column {self.name!r} has {many} different texts in {self.n_values} rows, such as "
            f"{self.example[:40]!r}: an identifier or free text, from which no rule can be learned."
        )

    def _fault_of_numbers(self, n_numbers: int) -> Fault:
        if n_numbers < self.n_values:
            return self._mixed_with_texts(n_numbers)
        what = f"The column {self.name!r} has numbers such as {self._some_odd()}"
        if self._has_mixed_units:
            units = ", ".join(repr(unit) if unit else "none" for unit in sorted(self._units))
            return self._fault(f"{what} with different units ({units}).", _IN_ONE_WAY)
        if self.decimals:
            mark = next(iter(self._marks))
            return self._fault(
                f"{what}: {mark!r} may stand before decimals or between thousands.",
                f"say which with --decimal {mark} or --thousands {mark}",
                ("--thousands", mark),
            )
        if any(count == self.n_values for count in self._n_numbers.values()):
            given = Notation(self.source.decimal or ".", self.source.thousands)
            return self._fault(f"{what}, but numbers with {given} were asked for.", _IN_ONE_WAY)
        return self._fault(f"{what}, not all of them written in one way.", _IN_ONE_WAY)

    def _fault_of_dates(self) -> Fault:
        what = f"The column {self.name!r} has dates"
        if self._formats:
            first, second = self._formats[:2]
            return self._fault(
                f"{what} such as {self._some_odd()} that can be read in two ways.",
                f"say which with --date-format {first} or --date-format {second}",
                ("--date-format", first),
            )
        return self._fault(
            f"{what} that cannot all be read, such as {self._some_odd()}.",
            "write them as 2024-12-31, say how they are written with --date-format, for example %d.%m.%Y, or what "
            "stands for missing values with --na-values, or leave the column out",
        )

    def _mixed_with_texts(self, n_numbers: int) -> Fault:
        """Return the fault of numbers with some texts among them."""
        n_odd = self.n_values - n_numbers
        odd = self._no_numbers
        in_one_way = any(self._n_numbers[n] == n_numbers for n in _notations(self.source)) and not self._has_mixed_units
        remedy = (
            [word for text in odd for word in ("--na-values", text)] if in_one_way and len(odd) < _MOST_NAMED else ()
        )
        shown = ", ".join(repr(text[:40]) for text in odd)
        return self._fault(
            f"The column {self.name!r} has {n_numbers} numbers and {n_odd} text value{'s' * (n_odd > 1)}: "
            f"{shown}{' ...' * (n_odd > len(odd) == _MOST_NAMED)}.",
            f"if they stand for missing values, say so with --na-values {shlex.quote(odd[0][:40])}; otherwise correct "
            f"them, or leave the column out with --drop {shlex.quote(self.name)}",
            tuple(remedy),
        )

    def _fault(self, what: str, advice: str = "leave it out", remedy: tuple[str, ...] = ()) -> Fault:
        """Return a fault, with the remedy to leave the column out if there is no better one."""
        drop = ("--drop", self.name)
        tail = f" with {shlex.join(drop)}" if advice.endswith("out") else ""
        return Fault(self.name, f"{what} {advice[0].upper()}{advice[1:]}{tail}.", remedy or drop)

    def _some_odd(self) -> str:
        """Return a few texts that are not written as usual."""
        return ", ".join(repr(text[:40]) for text in self._odd)


def settle(surveys: Collection[Survey]) -> None:
    """Decide how the numbers of all columns are written; one column that proves it decides for the others."""
    proven = {survey.proves for survey in surveys} - {None}
    decimal = proven.pop() if len(proven) == 1 else None
    for survey in surveys:
        survey.settle(decimal)


def _notations(source: Source) -> list[Notation]:
    """Return the notations that agree with what is known of a file."""
    decimal, thousands = source.decimal, source.thousands
    usual = [n for n in NOTATIONS if decimal in (None, n.decimal) and thousands in (None, n.thousands)]
    return usual or [Notation(decimal or ".", thousands)]


def _note_some(found: list[str], values: Any) -> None:
    """Add a few of the values to those found, if there are not enough yet."""
    if len(found) < _MOST_NAMED:
        more = arrow().compute.unique(values).slice(0, _MOST_NAMED).to_pylist()
        found[:] = list(dict.fromkeys([*found, *more]))[:_MOST_NAMED]


def _matches(values: Any, pattern: str) -> Any:
    return arrow().compute.match_substring_regex(values, pattern)


def _total(mask: Any, counts: NDArray[np.int64]) -> int:
    """Return how many rows have the texts that a mask selects."""
    return int(counts[mask.to_numpy(zero_copy_only=False)].sum())
