"""
A table with texts and missing values
=====================================

Texts, categories, dates and gaps need no preparation: the frame goes into ``fit`` as it is. Each column is one thing
to read: a curve of a number, with a value for rows in which it is missing, or bars for the levels of a category.
"""

import numpy as np
import pandas as pd

from melc import AdditiveMELC
from melc.plotting import LinesDisplay, ProjectionDisplay

# %%
# Customers of a bank. Those who pay no debts back often do not state their income.
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
# One line for each column that tells something. ``features_per_line=1`` keeps columns apart; by default a line may
# combine them.
model = AdditiveMELC(features_per_line=1, full_lines="never", random_state=0).fit(table, y)
LinesDisplay.from_estimator(model)

# %%
# One of them alone: how often each job occurs in either class.
# sphinx_gallery_thumbnail_number = 2
ProjectionDisplay.from_estimator(model, table, y, line=2)

# %%
# A level that was never seen, and a missing value where there was none, are no obstacle.
new = pd.DataFrame({"age": [30.0, np.nan], "income": [25_000, 61_000], "job": ["student", "astronaut"], "member": True})
print(model.predict_proba(new).round(2))
