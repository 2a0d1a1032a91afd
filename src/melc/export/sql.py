"""Export of a fitted model as an SQL query: projections as arithmetic, curves as a table, decisions as ``CASE WHEN``.

Every added column is a subquery that returns one value. All names in it belong to its own tables, so that they cannot
be confused with columns of the table of the user, which are not known here.
"""

from collections.abc import Callable
from typing import Any

from melc.export.files import label_error
from melc.export.sql_columns import code, quantity
from melc.export.sql_parts import (
    check_added,
    check_no_clash,
    column,
    first_that_holds,
    identifier,
    literal,
    piece_number,
    table_name,
    table_of_pieces,
    weighted_sum,
)
from melc.model.line import Line, decides_alone, log_odds_of
from melc.model.names import feature_names_of
from melc.model.places import missing_code
from melc.model.units import fitted_model

# Most points of all curves together. SQLite takes about twenty seconds to plan a query of so many, DuckDB ten; default
# models of 200,000 rows with long tails have up to 38,000.
MOST_POINTS = 50_000


def to_sql(
    model: Any,
    table: str | tuple[str, str] = "data",
    *,
    feature_names: Any = None,
    odds: bool = False,
    prediction: str = "prediction",
    projection: str = "projection",
    log_odds: str = "log_odds",
) -> str:
    """Return an SQL query that adds the predicted class to the rows of a table.

    The query runs on SQLite, DuckDB and PostgreSQL. If the model has a single line, it also adds the projection; if it
    has two classes and several lines, or a line of a single category, the log-odds of the second class. The table needs
    only the columns that the lines use, with the types of the data frame: text, BOOLEAN (in SQLite 0 and 1), DATE or
    TIMESTAMP (in SQLite text such as '2020-02-29'). NULL, NaN and infinite numbers are treated like missing values in
    ``predict``. Names and labels are quoted, so they may contain any character except NUL.

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline or fitted search
        A fitted model. Scalers before it in a pipeline become part of the weights; for a search, the best estimator is
        used.
    table : str or pair of str, default="data"
        Name of the table, or the names of its schema and of the table.
    feature_names : list of str, default=None
        Columns of the table in the order of the features. By default the names seen in ``fit``, or "x0", "x1", ...
    odds : bool, default=False
        Whether to always add the log-odds: those of the second class, or with more than two classes those of each
        class, whose softmax gives the probabilities. Each of them takes the database about as long as the prediction.
    prediction : str, default="prediction"
        Name of the column with the predicted class, the last of the result. If the table has a column of this name
        already, the result has two.
    projection : str, default="projection"
        Name of the column with the projection.
    log_odds : str, default="log_odds"
        Name of the column with the log-odds, after the projection. With more than two classes there is one per class,
        in the order of ``classes_``: ``log_odds0``, ``log_odds1``, ...

    Returns
    -------
    query : str

    Examples
    --------
    >>> import numpy as np
    >>> from melc import MELC
    >>> from melc.export import to_sql
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> model = MELC(n_init=1, random_state=0).fit(X, ["low", "low", "high", "high"])
    >>> query = to_sql(model, "scans", feature_names=["dose"])
    >>> next(line.strip() for line in query.splitlines() if line.endswith("'low'"))
    "WHEN z < 2.5e0 THEN 'low'"
    >>> query.splitlines()[-1]
    'FROM "scans" AS r'
    """
    check_added({"prediction": prediction, "projection": projection, "log_odds": log_odds})
    model = fitted_model(model)
    names = feature_names_of(model, feature_names)
    if model.classes_.dtype.kind not in "UTOiufb":
        raise label_error(model.classes_, "SQL")
    # A line of a category has levels instead of intervals.
    alone, two = decides_alone(model) and not model.lines_[0].levels, len(model.classes_) == 2
    row = _Row(model, [column(name) for name in names])
    z = [row.projection(line) for line in model.lines_]
    sums = _Sums(model, z, row, table) if odds or not alone else None
    only = f"(SELECT {z[0]} FROM {row.read()} AS c)"
    shown = [(projection, only)] if alone else []
    if sums and (odds or two):
        shown += _numbered(log_odds, [f"(SELECT {total} {sums.source})" for total in sums.totals])
    # Numbers are computed again where they decide: a name could be that of a column of the table.
    decided = _class_by_interval(model, only) if alone or sums is None else _class_by_odds(model, sums)
    shown.append((prediction, decided))
    check_no_clash(names, [name for name, _ in shown])
    written = ",\n".join(f"  {value} AS {identifier(name)}" for name, value in shown)
    return f"{sums.tables if sums else ''}SELECT r.*,\n{written}\nFROM {table_name(table)} AS r"


class _Row:
    """What the lines read of a row, each column once, as a table ``c`` of one row."""

    def __init__(self, model: Any, columns: list[str]) -> None:
        """Take a model, and the columns of the table as expressions."""
        self.model, self.columns = model, columns
        self.values: dict[str, str] = {}  # the columns of c, by their names

    def projection(self, line: Line) -> str:
        """Return a line's sum, or the code of its only column, NULL if that is missing, by names in ``c``."""
        features = line.features.tolist()
        if line.reads_codes:
            return self._named("k", features[0], code)
        return weighted_sum([self._named("x", j, quantity) for j in features], line.direction[features])

    def _named(self, kind: str, j: int, written: Callable[[Any, int, str], str]) -> str:
        if f"{kind}{j}" not in self.values:
            self.values[f"{kind}{j}"] = written(self.model, j, self.columns[j])
        return f"c.{kind}{j}"

    def read(self) -> str:
        """Return the table ``c``. Without LIMIT, SQLite would copy its expressions to where their names are used."""
        values = ",\n    ".join(f"{value} AS {name}" for name, value in self.values.items())
        return f"(SELECT\n    {values}\n  LIMIT 1)"


class _Sums:
    """The log-odds of a row, as sums over the lines.

    ``tables`` is the clause that defines two tables: the numbers of the lines, and the pieces of their curves.
    ``source`` is the FROM clause with a row for each line: the projection on it, and the piece that it lies in. So the
    piece is searched for once a line, however many classes there are. ``totals`` are the log-odds of each class, or of
    the second of two.
    """

    def __init__(self, model: Any, z: list[str], row: _Row, table: str | tuple[str, str]) -> None:
        """Write the sums of a model with projections ``z`` of a row, for rows of the given table."""
        formulas = log_odds_of(model)
        lines = [[formula.curves[k] for formula in formulas] for k in range(len(z))]
        _check_size(model, sum(len(curves) * len(curves[0].knots) for curves in lines))
        numbers = ", ".join(f"v{k}, s{k}" for k in range(len(formulas)))
        line_table, piece_table = _other_name("lines", table), _other_name("pieces", table)
        numbered = ", ".join(f"({k})" for k in range(len(z)))
        self.tables = (
            f"WITH {line_table} (line) AS (VALUES {numbered}),\n"
            f"{piece_table} (piece, a, {numbers}) AS (\n{table_of_pieces(lines)}\n)\n"
        )
        piece = piece_number([curves[0] for curves in lines], "u.line", "u.z")
        found = f"SELECT u.z AS z, {piece} AS piece FROM {_projections(z, row, line_table)} AS u"
        # SQLite looks at the tables of a CROSS JOIN in their order, and so computes the projections once.
        self.source = f"FROM ({found}) AS q CROSS JOIN {piece_table} AS t WHERE t.piece = q.piece"
        self.totals = [_total(k, formula.constant, len(z)) for k, formula in enumerate(formulas)]


def _total(k: int, constant: float, n_lines: int) -> str:
    """Return the sum of the k-th curve over all lines, NULL if not all are there: no piece belongs to NULL."""
    added = f"SUM(t.v{k} + t.s{k} * COALESCE(q.z - t.a, 0e0))"
    # The constant is added to the sum, as in decision_function.
    return f"CASE WHEN COUNT(*) = {n_lines} THEN {added}{f' + {literal(constant)}' if constant else ''} END"


def _projections(z: list[str], row: _Row, lines: str) -> str:
    """Return the table of the numbers of the lines and the projections on them.

    The second part of the union is empty. But SQLite computes a union once, and would copy a plain expression to every
    place where its name is used.
    """
    of_line = first_that_holds([f"l.line < {k}" for k in range(1, len(z))], z)
    read = f"{row.read()} AS c CROSS JOIN {lines} AS l"
    return f"(SELECT l.line AS line, {of_line} AS z FROM {read} UNION ALL SELECT 0, NULL WHERE FALSE)"


def _check_size(model: Any, n_points: int) -> None:
    if n_points > MOST_POINTS:
        fewer = f"lower max_lines (now {model.max_lines}), " if hasattr(model, "max_lines") else ""
        raise ValueError(
            f"The curves of the model have {n_points} points together, and a query can have at most {MOST_POINTS}; "
            f"raise gamma (now {model.gamma}), {fewer}or export to ONNX."
        )


def _other_name(name: str, taken: str | tuple[str, str]) -> str:
    """Return the name, or a longer one if it is taken. A table that is named with its schema takes none."""
    return f"{name}_" if isinstance(taken, str) and name == taken.casefold() else name


def _numbered(name: str, values: list[str]) -> list[tuple[str, str]]:
    """Return names and values of columns; if there are several, a number follows the name."""
    return [(name, values[0])] if len(values) == 1 else [(f"{name}{k}", value) for k, value in enumerate(values)]


def _class_by_interval(model: Any, z: str) -> str:
    """Return the label of the interval that the projection on the only line lies in.

    The projection is named in a subquery, and cannot be confused with a column of the table. Without LIMIT, SQLite
    would copy its sum to every place where the name is used.
    """
    (line,) = model.lines_
    missing = missing_code(line)
    of_missing = "NULL" if missing is None else literal(model.classes_[missing])
    *labels, last = [literal(label) for label in model.classes_[line.codes].tolist()]
    below = [f"    WHEN z < {literal(t)} THEN {label}" for t, label in zip(line.thresholds, labels, strict=True)]
    cases = ["(SELECT CASE", f"    WHEN z IS NULL THEN {of_missing}", *below, f"    ELSE {last}"]
    return "\n".join([*cases, f"  END FROM (SELECT {z} AS z LIMIT 1) AS p)"])


def _class_by_odds(model: Any, sums: _Sums) -> str:
    """Return the label of the class that the log-odds decide for.

    With more than two classes it is the first class whose log-odds are at least those of all classes after it, which is
    the largest, and the first of equals.
    """
    labels = [literal(label) for label in model.classes_.tolist()]
    if len(labels) == 2:
        decided = f"CASE WHEN o.o0 > 0 THEN {labels[1]} WHEN o.o0 <= 0 THEN {labels[0]} END"
    else:
        numbers = range(len(labels))
        cases = [
            f"WHEN {' AND '.join(f'o.o{k} >= o.o{other}' for other in numbers[k + 1 :])} THEN {labels[k]}"
            for k in numbers[:-1]
        ]
        decided = " ".join(["CASE WHEN o.o0 IS NULL THEN NULL", *cases, f"ELSE {labels[-1]} END"])
    odds = ", ".join(f"{total} AS o{k}" for k, total in enumerate(sums.totals))
    return f"(SELECT {decided} FROM (SELECT {odds} {sums.source}) AS o)"
