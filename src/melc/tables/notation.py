"""Numbers and dates as people write them: decimal commas, thousands, percent and currency signs, days before months."""

import re
from itertools import product
from typing import Any

from melc.tables.source import Notation, TableError, arrow

# Ways to write numbers, in the order in which they are preferred. A space stands for all kinds of spaces.
NOTATIONS = tuple(
    Notation(*marks) for marks in ((".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"))
)

_SPACES = r"\s\x{00a0}\x{202f}\x{2009}"
_UNIT = r"[$€£¥₹₽%‰]|EUR|USD|GBP|CHF|JPY"
# A unit of measure behind a number, such as kg, km/h, °C or m².
_MEASURE = r"°?[A-Za-zµμΩ]{1,12}[²³]?(?:/[A-Za-zµμΩ]{1,12}[²³]?)?"
_EXPONENT = r"(?:[eE][-+]?\d+)?"
# A date, and perhaps a time, with how the parts of such a date may be ordered.
_DAYS = (
    (r"\d{4}([-/.])\d{1,2}[-/.]\d{1,2}", ("%Y{0}%m{0}%d",)),
    (r"\d{1,2}(\.)\d{1,2}\.\d{4}", ("%d{0}%m{0}%Y",)),
    (r"\d{1,2}([-/])\d{1,2}[-/]\d{4}", ("%d{0}%m{0}%Y", "%m{0}%d{0}%Y")),
    (r"\d{1,2}(\.)\d{1,2}\.\d{2}", ("%d{0}%m{0}%y",)),
)
_TIMES = ((r"", ""), (r" \d{1,2}:\d{2}", " %H:%M"), (r" \d{1,2}:\d{2}:\d{2}", " %H:%M:%S"))


def plain_number(decimal: str = ".") -> str:
    """Return a pattern of the numbers that Arrow reads: digits, a decimal point and an exponent."""
    mark = re.escape(decimal)
    return rf"^\s*[-+]?(?:\d+(?:{mark}\d*)?|{mark}\d+){_EXPONENT}\s*$"


def written_number(notation: Notation) -> str:
    """Return a pattern of the numbers in a notation, which may have a percent or currency sign."""
    mark = re.escape(notation.decimal)
    between = rf"[{_SPACES}]" if notation.thousands == " " else re.escape(notation.thousands or "")
    grouped = rf"|[1-9]\d{{0,2}}(?:{between}\d{{3}})+(?:{mark}\d+)?" if notation.thousands else ""
    number = rf"(?:\d+(?:{mark}\d*)?|{mark}\d+){_EXPONENT}{grouped}"
    gap, sign = rf"[{_SPACES}]*", r"[-+−]?"
    unit = _UNIT if notation.unit is None else f"{_UNIT}|{re.escape(notation.unit)}"
    return rf"^{gap}{sign}{gap}(?:(?:{unit}){gap})?{sign}(?:{number}){gap}(?:{unit})?{gap}$"


def measure_of(text: str) -> str:
    """Return the unit of measure behind a number, or "" if the text is none with such a unit.

    Examples
    --------
    >>> measure_of("12 kg"), measure_of("1.98m"), measure_of("1e5"), measure_of("c17"), measure_of("12 EUR")
    ('kg', 'm', '', '', '')
    """
    found = re.fullmatch(rf"\s*[-+−]?\d[\d.,' ]*\s*({_MEASURE})\s*", text)
    return found[1] if found and not re.fullmatch(_UNIT, found[1]) else ""


def with_measure(texts: Any, measure: str = "") -> Any:
    """Return which texts are numbers with a unit of measure, or with this one."""
    unit = re.escape(measure) if measure else _MEASURE
    return arrow().compute.match_substring_regex(texts, rf"^\s*[-+−]?\d[\d.,'{_SPACES}]*(?:{unit})\s*$")


def without_measure(texts: Any, measure: str) -> Any:
    """Return texts without the unit of measure behind them."""
    return arrow().compute.replace_substring_regex(texts, rf"[{_SPACES}]*{re.escape(measure)}\s*$", "")


def units_in(texts: Any) -> set[str]:
    """Return the percent and currency signs of texts that are numbers, and "" if there are numbers without."""
    pc = arrow().compute
    signs = pc.replace_substring_regex(texts, rf"[-+−\d.,'{_SPACES}]|[eE][-+]?\d+", "")
    return set(pc.unique(signs).to_pylist())


def numbers_in(texts: Any, notation: Notation, name: str) -> Any:
    """Return the numbers in the texts of a column as an Arrow array of doubles; raise ``TableError`` if one is none."""
    pa, pc = arrow(), arrow().compute
    fits = pc.match_substring_regex(texts, written_number(notation))
    if pc.any(pc.invert(fits)).as_py():
        wrong = texts.filter(pc.invert(fits))[0].as_py()
        unit = f", in {notation.unit} or without a unit" if notation.unit else ""
        raise TableError(
            f"The column {name!r} contains {wrong[:40]!r}; expected a number with {notation}{unit}. If numbers of this "
            "file are written in another way, say so with --decimal and --thousands; if it stands for a missing value, "
            "with --na-values."
        )
    bare = without_measure(texts, notation.unit) if notation.unit else texts
    bare = pc.replace_substring_regex(bare, rf"[{_SPACES}]|{_UNIT}", "")
    if notation.thousands:
        bare = pc.replace_substring(bare, notation.thousands, "")
    for written, read in ((notation.decimal, "."), ("−", "-")):
        bare = pc.replace_substring(bare, written, read)
    return bare.cast(pa.float64())


def date_formats(text: str) -> list[str]:
    """Return the formats that a text may be a date in.

    Examples
    --------
    >>> date_formats("05.10.2020"), date_formats("5/10/2020"), date_formats("17")
    (['%d.%m.%Y'], ['%d/%m/%Y', '%m/%d/%Y'], [])
    """
    found = []
    for (day, orders), (time, clock) in product(_DAYS, _TIMES):
        match = re.fullmatch(day + time, text.strip())
        found += [order.format(match[1]) + clock for order in orders] if match else []
    return found


def dates_in(texts: Any, format: str) -> Any | None:
    """Return dates in a format of ``strptime`` as an Arrow array of timestamps; None if one cannot be read."""
    pa, pc = arrow(), arrow().compute
    trimmed = pc.utf8_trim_whitespace(texts)
    moments = pc.strptime(trimmed, format=format, unit="s", error_is_null=True)
    if moments.null_count > texts.null_count:
        return None
    # "%Y" also takes the year 20, and "%y" stops after two digits of more.
    years = pc.year(moments.drop_null())
    return moments.cast(pa.timestamp("us")) if not len(years) or pc.min(years).as_py() >= 1000 else None
