"""What the columns of a file hold, how its numbers and dates are written, and which columns cannot be used."""

import shlex
import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from melc.tables.frames import Content
from melc.tables.notation import dates_in, numbers_in
from melc.tables.read import plain_columns, written_blocks
from melc.tables.source import Notation, Source, TableError, arrow, listed
from melc.tables.survey import Fault, Survey, settle

# Columns and values named in a note.
_MOST_NAMED = 3


def surveys_of_table(table: Any, source: Source, drop: Collection[str] = ()) -> dict[str, Survey]:
    """Return what the columns of a table in memory hold, except for those to drop."""
    surveys = {name: Survey(name, source) for name in table.column_names if name not in drop}
    for name, survey in surveys.items():
        survey.add(table.column(name))
    return surveys


def surveys_of_file(source: Source, drop: Collection[str] = ()) -> dict[str, Survey]:
    """Read a file once, block by block, and return what its columns hold, except for those to drop."""
    surveys: dict[str, Survey] = {}
    for block, written in written_blocks(source, drop):
        if not surveys:
            surveys = {name: Survey(name, source, written=written) for name in block.schema.names}
        for name, values in plain_columns(block).items():
            surveys[name].add(values)
    if not surveys or not next(iter(surveys.values())).n_rows:
        raise TableError(f"{source.name}: the file has a header but no rows.")
    return surveys


def described(source: Source, features: Mapping[str, Survey]) -> Source:
    """Decide how the numbers and dates of the features are written, and return the source with what was found.

    A note tells of each way to write that is not the usual one.
    """
    settle(features.values())
    numbers = {name: survey.notation for name, survey in features.items() if survey.notation}
    dates = {name: survey.date_format for name, survey in features.items() if survey.date_format}
    if source.decimal is None and source.thousands is None:
        _note_numbers([survey for survey in features.values() if survey.notation and survey.is_unusual])
    _note_dates([features[name] for name in dates])
    for survey in features.values():
        if survey.is_suspicious:
            warnings.warn(
                f"the points in column {survey.name!r} are read as decimal points, as in {survey.broken_number:g}; if "
                "they stand between thousands, say so with --thousands .",
                stacklevel=2,
            )
    return replace(source, numbers=numbers, dates=dates)


def _note_numbers(surveys: list[Survey]) -> None:
    """Warn of numbers with thousands, units or decimal commas, with an example of what they are read as."""
    alike: dict[tuple[Notation | None, str], list[Survey]] = {}
    for survey in surveys:
        alike.setdefault((survey.notation, survey.unit), []).append(survey)
    for (notation, unit), columns in alike.items():
        example = columns[0].example
        has_marks = any(mark in example.replace(unit, "").strip() for mark in ", '")
        how = f" ({notation}); --decimal and --thousands say otherwise" if has_marks else ""
        read = numbers_in(arrow().array([example]), notation or Notation(), columns[0].name)[0].as_py()
        warnings.warn(f"{_names(columns)}: {example.strip()!r} is read as {read:.15g}{how}", stacklevel=3)


def _note_dates(surveys: list[Survey]) -> None:
    alike: dict[str | None, list[Survey]] = {}
    for survey in surveys:
        alike.setdefault(survey.date_format, []).append(survey)
    for format, columns in alike.items():
        example = columns[0].example
        read = dates_in(arrow().array([example]), format or "")[0].as_py()  # type: ignore[index]
        warnings.warn(
            f"{_names(columns)}: {example.strip()!r} is read as the date {read:%Y-%m-%d}; --date-format says otherwise",
            stacklevel=3,
        )


def _names(surveys: list[Survey]) -> str:
    """Return the names of columns for a note."""
    return f"column{'s' * (len(surveys) > 1)} {listed([survey.name for survey in surveys], _MOST_NAMED)}"


def contents_to_fit(features: Mapping[str, Survey]) -> dict[str, Content]:
    """Return what the features hold; raise an error that lists all faults, if there are any."""
    if not features:
        raise TableError("No columns are left to use as features; leave out fewer with --drop.")
    faults = [fault for survey in features.values() if (fault := survey.fault())]
    if faults:
        raise as_error(faults, features)
    for name, survey in features.items():
        if survey.numbers_rows and not name.startswith("column "):  # of columns without a name it was said already
            drop = shlex.join(["--drop", name])
            warnings.warn(
                f"column {name!r} counts the rows; if it means nothing else, leave it out with {drop}", stacklevel=2
            )
    return {name: survey.content for name, survey in features.items()}


def as_error(faults: list[Fault], surveys: Mapping[str, Survey]) -> TableError:
    """Return one error for all faults."""
    remedy = merged_remedy(faults, surveys)
    if len(faults) == 1:
        return TableError(faults[0].text, remedy)
    listed = "".join(f"\n- {fault.text}" for fault in faults)
    return TableError(f"{len(faults)} columns cannot be used as they are.{listed}", remedy)


def merged_remedy(faults: list[Fault], surveys: Mapping[str, Survey]) -> list[str]:
    """Return the options that mend all faults, each once.

    An option for the whole table that other columns contradict is none: those columns are left out.
    """
    found = {survey.notation.thousands for survey in surveys.values() if survey.notation and survey.is_unusual}
    given: dict[str, str] = {}
    pairs: dict[tuple[str, str], None] = {}
    for fault in faults:
        option, value = fault.remedy[:2]
        if option in ("--thousands", "--date-format"):
            if given.setdefault(option, value) != value or (option == "--thousands" and found - {value}):
                pairs["--drop", fault.column] = None
            continue
        pairs |= dict.fromkeys(zip(fault.remedy[::2], fault.remedy[1::2], strict=True))
    kept = {option: value for option, value in given.items() if option != "--thousands" or not found - {value}}
    return [word for pair in (*kept.items(), *pairs) for word in pair]
