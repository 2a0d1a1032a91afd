"""The predicted class among more than two, as an SQL expression.

A row that lies in an interval of exactly one class is given that class. Otherwise the class with the largest log odds
(:meth:`melc.model.decision.Decision.log_odds`) is predicted.

Only ``ln``, ``exp``, ``abs`` and ``CASE`` are used, which SQLite, DuckDB and PostgreSQL have in common. Expressions
that are used several times are named in a subquery without FROM and with ``LIMIT 1``, which is evaluated once.
Otherwise SQLite or PostgreSQL would copy the expression to every place where the name is used.
"""

import math

from melc.classifier import MELC
from melc.export.quoting import literal
from melc.model.decision import SMALLEST_DECISION, Decision
from melc.model.density import Density


def support_tables(model: MELC, prefix: str) -> str:
    """Return a ``WITH`` clause with one table per density: its support points ``place`` and their ``weight``."""
    tables = [
        f"{prefix}{k}_{code}(place, weight) AS MATERIALIZED (VALUES {_pairs(density)})"
        for k, decision in enumerate(model.decisions_)
        for code, density in enumerate(decision.densities)
    ]
    return "WITH " + ",\n".join(tables)


def _pairs(density: Density) -> str:
    """Return the rows of such a table. The first one makes its columns floats, for all rows."""
    both = list(zip(density.support.tolist(), density.weights.tolist(), strict=True))
    first = ", ".join(f"CAST({literal(number)} AS DOUBLE PRECISION)" for number in both[0])
    return ", ".join([f"({first})", *(f"({literal(place)}, {literal(weight)})" for place, weight in both[1:])])


def class_by_odds(model: MELC, projections: list[str], prefix: str) -> str:
    """Return the expression of the predicted label.

    In it ``z0``, ``z1``, ... are the projections, and ``c0``, ``c1``, ... are 1 if the row lies in an interval of that
    class and 0 otherwise.
    """
    numbers = range(len(model.decisions_))
    labels = [literal(label) for label in model.classes_.tolist()]
    alone = " ".join(f"WHEN c{k} = 1 THEN {labels[k]}" for k in numbers)
    odds = [_odds(k, labels[k], decision, f"{prefix}{k}") for k, decision in enumerate(model.decisions_)]
    claims = ", ".join(f"{_claim(f'z{k}', decision)} AS c{k}" for k, decision in enumerate(model.decisions_))
    named = ", ".join(f"{z} AS z{k}" for k, z in enumerate(projections))
    return "\n".join(
        [
            "(SELECT CASE",
            f"    WHEN {' OR '.join(f'z{k} IS NULL' for k in numbers)} THEN NULL",
            f"    WHEN {' + '.join(f'c{k}' for k in numbers)} = 1 THEN CASE {alone} END",
            "    ELSE (SELECT label FROM (",
            "\n      UNION ALL\n".join(odds),
            "    ) AS ranked ORDER BY odds DESC, number LIMIT 1)",
            f"  END FROM (SELECT *, {claims} FROM (SELECT {named} LIMIT 1) AS named LIMIT 1) AS claimed)",
        ]
    )


def _claim(z: str, decision: Decision) -> str:
    """Return an expression that is 1 in the intervals of the class and 0 in those of the rest."""
    *below, last = decision.codes.tolist()
    if not below:
        return str(last)
    cases = [
        f"WHEN {z} < {literal(t)} THEN {code}" for t, code in zip(decision.thresholds.tolist(), below, strict=True)
    ]
    return f"CASE {' '.join(cases)} ELSE {last} END"


def _odds(k: int, label: str, decision: Decision, support: str) -> str:
    """Return a query for one row: number, label and log odds of a class against the rest.

    In it ``own`` and ``other`` are log(prior · density / background) of the class and of the rest.
    """
    low, high = (literal(edge) for edge in decision.reach)
    near = f"CASE WHEN z{k} < {low} THEN {low} WHEN z{k} > {high} THEN {high} ELSE z{k} END"
    other, own = (
        f"{_log_density(near, density, f'{support}_{code}')} + {literal(log_prior)} - {_log_background(near, decision)}"
        for code, (density, log_prior) in enumerate(zip(decision.densities, decision.log_priors, strict=True))
    )
    sign = f"(2 * c{k} - 1)"
    ahead = f"{sign} * (own - other)"
    least = f"{literal(SMALLEST_DECISION)} * (1 + ln(1 + CASE WHEN {ahead} > 0 THEN {ahead} ELSE 0 END))"
    return "\n".join(
        [
            f"      SELECT {k} AS number, {label} AS label,",
            f"        {sign} * CASE WHEN towards > least THEN towards ELSE least END AS odds",
            f"      FROM (SELECT {sign} * ({_softplus('own')} - {_softplus('other')}) AS towards, {least} AS least",
            f"      FROM (SELECT {own} AS own,",
            f"        {other} AS other LIMIT 1) AS compared LIMIT 1) AS signed",
        ]
    )


def _log_density(z: str, density: Density, support: str) -> str:
    """Return log f(z) = log Σ_k weight_k exp(−(z − place_k)² / (2V)) − log(2πV) / 2.

    The smallest (z − place_k)² is factored out, so that the sum does not underflow.
    """
    factor = literal(0.5 / density.variance)
    constant = literal(0.5 * math.log(2 * math.pi * density.variance))
    square = "(z - place) * (z - place)"
    nearest = f"SELECT min(z) AS z, min({square}) AS least FROM (SELECT {z} AS z) AS point CROSS JOIN {support}"
    return (
        f"(SELECT ln(sum(weight * {_exp(f'(least - {square}) * {factor}')})) - min(least) * {factor} - {constant} "
        f"FROM ({nearest}) AS nearest CROSS JOIN {support})"
    )


def _log_background(z: str, decision: Decision) -> str:
    """Return log_height − log(1 + ((z − centre) / scale)²)."""
    background = decision.background()
    u = f"(({z} - {literal(background.centre)}) / {literal(background.scale)})"
    return f"({literal(background.log_height)} - ln(1 + {u} * {u}))"


def _softplus(x: str) -> str:
    """Return log(1 + exp(x)), accurate also where it is tiny: max(x, 0) + log(1 + t) with t = exp(−|x|).

    In floating point u = 1 + t is rounded, but log(u) and u − 1 then have the same relative error, so
    log(1 + t) = log(u) t / (u − 1) (Kahan); it is t where u = 1.
    """
    t = _exp(f"-abs({x})")
    small = f"CASE WHEN 1 + {t} = 1 THEN {t} ELSE ln(1 + {t}) * {t} / ((1 + {t}) - 1) END"
    return f"(CASE WHEN {x} > 0 THEN {x} ELSE 0 END + {small})"


def _exp(x: str) -> str:
    """Return exp(x) for negative x, and zero where PostgreSQL would report an underflow."""
    return f"CASE WHEN {x} > -700 THEN exp({x}) ELSE 0 END"
