"""A survey of a table before a fit: what every column holds, what is wrong with it, and the options to fit with."""

import shlex
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.tables.inspection import described, merged_remedy, surveys_of_file, surveys_of_table
from melc.tables.read import LIBSVM_TARGET, read_table
from melc.tables.roles import Roles, check_roles
from melc.tables.source import Source, listed
from melc.tables.summary import aligned
from melc.tables.survey import Fault, Survey
from melc.tables.training import MAX_BYTES_IN_MEMORY, size_of

# A target has at most so many classes, if it is not named.
_MOST_CLASSES = 20
# Columns about which there is nothing to say that are shown.
_MOST_SHOWN = 40
_LONGEST_EXAMPLE = 30
# Fewer rows do not prove that a column tells the class.
_FEWEST_ROWS, _FEWEST_OF_A_CLASS = 20, 5
# Rows that a column is tried on before all are.
_ROWS_TO_TRY = 10_000
# Such columns in a warning.
_MOST_NAMED = 3


@dataclass(frozen=True)
class Check:
    """The rows and columns of a table, the column of the classes, and what is wrong with the others.

    ``remarks`` has a sentence for some columns. ``remedy`` are options of ``melc fit`` with which a fit works.
    """

    n_rows: int
    surveys: dict[str, Survey]
    target: str | None
    remarks: dict[str, str]
    remedy: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return the survey as plain data."""
        columns = [self._column(survey) for survey in self.surveys.values()]
        return {"rows": self.n_rows, "target": self.target, "columns": columns, "options": self.remedy}

    def _column(self, survey: Survey) -> dict[str, Any]:
        return {
            "name": survey.name,
            "holds": _holds(survey),
            "missing": survey.n_missing,
            "different": survey.n_different,
            "example": survey.example_shown,
            "remark": self.remarks.get(survey.name),
        }

    def text(self) -> str:
        """Return a table with a row for each column, and the remarks; of very many, those without are left out."""
        plain = [name for name in self.surveys if name not in self.remarks][_MOST_SHOWN:]
        shown = [self._column(survey) for name, survey in self.surveys.items() if name not in plain]
        rows = [("column", "holds", "missing", "different", "values")]
        for column in shown:
            example = column["example"][:_LONGEST_EXAMPLE]
            different = "many" if column["different"] is None else str(column["different"])
            rows.append((column["name"], column["holds"], str(column["missing"]), different, example))
        more = [f"  and {len(plain)} more columns about which there is nothing to remark"] if plain else []
        remarks = [f"- {text}" for text in self.remarks.values()]
        return "\n".join([f"{self.n_rows} rows, {len(self.surveys)} columns", aligned(rows), *more, *remarks])


def check_table(source: Source, roles: Roles) -> Check:
    """Return what the columns of a file hold, and what is wrong with them."""
    table = read_table(source) if size_of(source) <= MAX_BYTES_IN_MEMORY else None
    surveys = surveys_of_file(source) if table is None else surveys_of_table(table, source)
    target = roles.target or _likely_target(surveys)
    if target is not None:
        check_roles(list(surveys), Roles(target, roles.drop, roles.weights, keep_only=roles.keep_only))
    described(source, {name: survey for name, survey in surveys.items() if name != target})
    faults = {name: fault for name, survey in surveys.items() if name != target and (fault := _fault(survey))}
    if table is not None and target is not None:
        others = [name for name in surveys if name not in faults and name != target]
        faults |= {
            name: Fault(name, said_of_deciding([name]), ("--drop", name))
            for name in _deciding(table.select([*others, target]), target)
        }
    remarks = {name: fault.text for name, fault in faults.items()}
    if target is not None:
        chosen = "is" if roles.target else "is taken for"
        remarks[target] = f"The column {target!r} {chosen} the target; --target names another one."
    n_rows = next(iter(surveys.values())).n_rows
    named = [] if target in (None, roles.target, LIBSVM_TARGET) else ["--target", str(target)]
    return Check(n_rows, surveys, target, remarks, [*named, *merged_remedy(list(faults.values()), surveys)])


def _likely_target(surveys: dict[str, Survey]) -> str | None:
    """Return the last column with few different values, which is most often that of the classes."""
    if LIBSVM_TARGET in surveys:
        return LIBSVM_TARGET
    few = [name for name, survey in surveys.items() if 2 <= (survey.n_different or 0) <= _MOST_CLASSES]
    return few[-1] if few else None


def _fault(survey: Survey) -> Fault | None:
    """Return why a column does not belong in a model, or None."""
    drop = ("--drop", survey.name)
    fault = survey.fault()
    if fault is None and survey.numbers_rows:
        return Fault(survey.name, f"The column {survey.name!r} counts the rows. Leave it out.", drop)
    if fault is None and survey.n_different == 1 and not survey.n_missing:
        return Fault(survey.name, f"The column {survey.name!r} is the same in all rows. Leave it out.", drop)
    return fault


def _deciding(table: Any, target: str) -> list[str]:
    """Return the columns of a table that alone tell the class of every row that has one."""
    import pandas as pd

    frame = table.to_pandas()
    frame = frame[frame[target].notna()]
    return deciding_columns(frame.drop(columns=target), pd.factorize(frame[target])[0])


def _holds(survey: Survey) -> str:
    """Return what a column holds in words."""
    words = {"number": "numbers", "date": "dates", "truth": "true/false", "text": "texts"}
    return "nothing" if not survey.n_values else words[survey.content]


# Columns that alone tell the class


def deciding_columns(X: Any, codes: NDArray[Any]) -> list[str]:
    """Return the columns of a frame each of which alone tells the class of every row, as a copy of the target does.

    Either every value occurs in one class only, or one cut for each further class divides the sorted values.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> codes = np.arange(40) % 2
    >>> deciding_columns(pd.DataFrame({"x": np.arange(40) % 7, "copy": np.where(codes, "yes", "no")}), codes)
    ['copy']
    """
    sizes = np.bincount(codes)
    if len(codes) < _FEWEST_ROWS or sizes[sizes > 0].min() < _FEWEST_OF_A_CLASS:
        return []
    some = slice(None, None, max(1, len(codes) // _ROWS_TO_TRY))
    return [name for name in X if _decides(X[name].iloc[some], codes[some]) and _decides(X[name], codes)]


def said_of_deciding(names: list[str]) -> str:
    """Return a warning about columns that alone tell the class of every row."""
    shown = listed(names, _MOST_NAMED)
    columns = f"The column {shown} alone tells" if len(names) == 1 else f"Each of the columns {shown} alone tells"
    return (
        f"{columns} the class of every row. If it is not known when a class is to be predicted, leave it out with "
        f"{shlex.join(['--drop', names[0]])}."
    )


def _decides(column: Any, codes: NDArray[Any]) -> bool:
    """Whether a column tells the class of the rows in which it is there, if it is in most."""
    import pandas as pd

    levels, different = pd.factorize(column, sort=column.dtype != "category")
    there = levels >= 0
    levels, codes = levels[there], codes[there]
    if len(levels) < len(there) / 2 or len(different) < 2:
        return False
    order = np.argsort(levels, kind="stable")
    by_value = codes[order]
    changes = np.flatnonzero(np.diff(by_value))
    at_ties = np.diff(levels[order])[changes] == 0
    if at_ties.any():  # a value that occurs in two classes
        return False
    return len(different) <= len(levels) / 10 or len(changes) == len(np.unique(codes)) - 1
