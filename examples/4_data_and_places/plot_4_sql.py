"""
Predict in a database: SQL
==========================

If the data are in a database, predictions can be made there. ``to_sql`` writes a query that gives the same predictions
as ``predict``. The database here is SQLite, which comes with Python.
"""

import sqlite3

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from melc import MELC
from melc.export import to_sql

X, species = load_iris(return_X_y=True, as_frame=True)
X.columns = [name.removesuffix(" (cm)").replace(" ", "_") for name in X.columns]
y = (species == 1).map({True: "versicolor", False: "other"})
model = MELC(random_state=0).fit(X, y)

query = to_sql(model, "flowers")
print(query)

# %%
# Run the query in the database:

with sqlite3.connect(":memory:") as database:
    X.to_sql("flowers", database, index=False)
    rows = database.execute(query).fetchall()
in_database = [row[-1] for row in rows]
print("equal to predict:", in_database == model.predict(X).tolist())

# %%
# The predictions of the database, in the plane of two columns:

colours = ["tab:blue" if label == "versicolor" else "tab:orange" for label in in_database]
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.scatter(X["petal_width"], X["sepal_width"], c=colours, s=18)
ax.set(xlabel="petal width, cm", ylabel="sepal width, cm", title="versicolor (blue), as predicted by SQLite")
