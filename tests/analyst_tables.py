"""Tables as analysts have them: numbers, dates and encodings in many ways."""

import numpy as np


def customers(n=300, seed=0):
    """Return plain columns of customers who stay if a combination of income and age is neither low nor high."""
    rng = np.random.default_rng(seed)
    income, age = rng.normal(45_000, 9_000, n).clip(1_000).round(2), rng.integers(20, 70, n)
    level = (income - 45_000) / 9_000 + (age - 45) / 15 + rng.normal(0, 0.2, n)
    days = np.datetime64("2020-01-01") + rng.integers(0, 1500, n)
    columns = {"income": income, "age": age, "share": rng.uniform(0, 100, n).round(1), "joined": days}
    town, stays = rng.choice(["Köln", "Łódź", "Zürich"], n), np.where(abs(level) < 0.9, "yes", "no")
    return columns | {"town": town, "stays": stays}


def text_of(columns, mark=","):
    """Return columns as CSV text; cells with the delimiter or a line break are quoted."""
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    return "".join(mark.join(_cell(str(cell), mark) for cell in row) + "\n" for row in rows)


def _cell(text, mark):
    return f'"{text}"' if mark in text or "\n" in text else text


def german(number, digits):
    """Return a number with decimal commas and points between thousands."""
    return f"{number:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def _with(**changes):
    """Return the table with some columns replaced or added, each computed from the plain columns."""
    plain = customers()
    return plain | {name: [change(value) for value in plain[of]] for name, (of, change) in changes.items()}


# Tables that can be fitted as they are: their bytes, and what a note says of them.
READABLE = {
    "semicolons and decimal commas": (
        text_of(_with(income=("income", lambda x: german(x, 2)), share=("share", lambda x: german(x, 1))), ";"),
        "decimal commas and thousands points",
    ),
    "thousands": (text_of(_with(income=("income", lambda x: f"{x:,.0f}"))), "thousands commas"),
    "few thousands": (text_of(_with(income=("income", lambda x: f"{x / 40:,.0f}"))), "thousands commas"),
    "percent": (text_of(_with(share=("share", "{}%".format))), "%' is read as"),
    "percent with a space and a comma": (
        text_of(_with(share=("share", lambda x: german(x, 1) + " %"))),
        " %' is read as",
    ),
    "currency": (text_of(_with(income=("income", lambda x: f"${x:,.0f}"))), "'$"),
    "currency behind": (text_of(_with(income=("income", lambda x: german(x, 2) + " €"))), " €' is read as"),
    "a unit of measure": (text_of(_with(share=("share", "{} km/h".format))), " km/h' is read as"),
    "spaces between thousands": (text_of(_with(income=("income", lambda x: f"{x:,.0f}".replace(",", " ")))), "spaces"),
    "dates with points": (text_of(_with(joined=("joined", lambda d: f"{d.item():%d.%m.%Y}"))), "is read as the date"),
    "dates with slashes": (text_of(_with(joined=("joined", lambda d: f"{d.item():%m/%d/%Y}"))), "is read as the date"),
    "a byte order mark": ("\ufeff" + text_of(customers()), ""),
    "line breaks in cells": (text_of(_with(town=("town", "{}\n(city)".format))), ""),
    "rows without a class": (text_of(_with(stays=("stays", str))) + "1,2,3,2020-01-01,Köln,\n", "1 row has no value"),
}
