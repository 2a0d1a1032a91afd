"""Tables with columns of every kind, made up; shared by the tests of models of tables."""

import numpy as np
import pandas as pd

# Names of levels that are easily mistaken for something else.
JOBS = ["farmer", "it's", 'a "b"', "", "7", "日本\nx", "'; DROP TABLE data; --", "NULL"]
SIZES = ["small", "medium", "large"]


def mixed_frame(n=600, seed=0, n_classes=2):
    """Return a frame with columns of every kind, some with missing values, and two or three labels that depend on them.

    Numbers: age (missing values) and income; texts: job (missing values, awkward names); an ordered category: size
    (missing values); truth values: ok; dates: day (missing values); whole numbers that are codes: code.
    """
    rng = np.random.default_rng(seed)
    size, ok = rng.integers(0, 3, n), rng.random(n) < 0.5
    job, code, days = rng.integers(0, len(JOBS), n), rng.integers(0, 4, n), rng.integers(0, 300, n)
    frame = pd.DataFrame(
        {
            "age": np.round(rng.normal(50, 10, n), 1),
            "income": rng.normal(40, 8, n),
            "job": pd.Series([JOBS[k] for k in job], dtype=object),
            "size": pd.Categorical.from_codes(size, SIZES, ordered=True),
            "ok": ok,
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D"),
            "code": code,
        }
    )
    score = np.abs(frame["age"] - 50) / 8 + (frame["income"] - 40) / 8 + np.array([1, -1, 0, 2, -2, 1, 0, -1])[job]
    score += 0.8 * size + 1.2 * ok + 0.01 * days + np.array([1, -1, 1, -1])[code] + rng.normal(0, 0.7, n)
    y = np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]))
    for name, share in (("age", 0.1), ("job", 0.08), ("size", 0.05), ("day", 0.05)):
        frame.loc[rng.random(n) < share, name] = None
    return frame, np.array(["low", "high"] if n_classes == 2 else ["low", "mid", "high"])[y]


def awkward_rows(frame, seed=0):
    """Return rows that a model of the frame may meet: unknown levels, numbers far away, and missing values anywhere."""
    rng = np.random.default_rng(seed)
    rows = frame.copy()
    rows["ok"] = rows["ok"].astype(object)
    rows["code"] = rows["code"].astype(float)
    for name in rows:
        rows.loc[rng.random(len(rows)) < 0.15, name] = None
    rows.loc[rng.random(len(rows)) < 0.1, "job"] = "unheard of"
    rows.loc[rng.random(len(rows)) < 0.1, "code"] = 17.0
    far = rng.random(len(rows)) < 0.05
    rows.loc[far, "age"] = rng.choice([-1e8, 1e8, 0.5], far.sum())
    return rows


# The types that the columns have in a database.
SQL_TYPES = {
    "age": "double precision",
    "income": "double precision",
    "job": "text",
    "size": "text",
    "ok": "boolean",
    "day": "date",
    "code": "double precision",
}


def stored(rows):
    """Return rows with the dates and categories as texts, as they are put into a database."""
    texts = {"day": lambda column: column.dt.strftime("%Y-%m-%d"), "size": lambda column: column.astype(object)}
    return rows.assign(**{name: make(rows[name]) for name, make in texts.items() if name in rows})
