"""
A table with text and missing values
====================================

Text columns, categories, dates and missing values need no preparation: pass the data frame to ``fit``. For each column
there is one thing to read: a curve for a number, with a value for rows in which it is missing, or bars for the levels
of a category.
"""

import numpy as np
import pandas as pd

from melc import AdditiveMELC
from melc.plotting import LinesDisplay, ProjectionDisplay

# %%
# Customers of a bank. The income of those who default is missing more often.
rng = np.random.default_rng(0)
n = 1_500
table = pd.DataFrame(
    {
        "age": rng.normal(45, 12, n).round(),
        "income": rng.lognormal(10.3, 0.5, n).round(-2),
        "job": rng.choice(["clerk", "engineer", "farmer", "manager", "student"], n, p=[0.3, 0.25, 0.2, 0.2, 0.05]),
        "member": rng.random(n) < 0.4,
    }
)
jobs = {"clerk": 0.0, "engineer": -1.0, "farmer": 0.5, "manager": -0.5, "student": 2.0}
odds = ((table["age"] - 45) / 12) ** 2 - 1 + table["job"].map(jobs) - 1.2 * table["member"]
y = np.where(rng.random(n) < 1 / (1 + np.exp(-2 * odds)), "default", "paid")
table.loc[rng.random(n) < np.where(y == "default", 0.3, 0.1), "income"] = np.nan

# %%
# One line for each informative column. With ``features_per_line=1`` and ``full_lines="never"``, lines do not combine
# columns.
model = AdditiveMELC(features_per_line=1, full_lines="never", random_state=0).fit(table, y)
LinesDisplay.from_estimator(model)

# %%
# One of the lines: how often each job occurs in either class.
# sphinx_gallery_thumbnail_number = 2
ProjectionDisplay.from_estimator(model, table, y, line=2)

# %%
# New rows may contain unknown levels, and missing values in columns that had none.
new = pd.DataFrame({"age": [30.0, np.nan], "income": [25_000, 61_000], "job": ["student", "astronaut"], "member": True})
print(model.predict_proba(new).round(2))
