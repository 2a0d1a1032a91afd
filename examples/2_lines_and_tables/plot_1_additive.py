"""
Several lines instead of one
============================

Here one class forms islands in the plane, as in the data set "fourclass" of the paper. No single direction separates
them: the classes overlap in every projection. ``AdditiveMELC`` adds up the evidence of several directions, and each of
them can still be plotted.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.model_selection import train_test_split

from melc import MELC, AdditiveMELC
from melc.plotting import LinesDisplay

rng = np.random.default_rng(2)
X = rng.uniform(-1, 1, size=(900, 2))
islands = [(-0.55, -0.5, 0.38), (0.15, 0.6, 0.36), (0.75, -0.25, 0.3), (-0.7, 0.55, 0.22)]
inside = [np.hypot(X[:, 0] - a, X[:, 1] - b) < radius for a, b, radius in islands]
y = np.where(np.any(inside, axis=0), "island", "sea")
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

models = {"MELC": MELC(random_state=0), "AdditiveMELC": AdditiveMELC(random_state=0)}
# sphinx_gallery_thumbnail_number = 2
for name, model in models.items():
    figure, ax = plt.subplots(figsize=(5, 4.6), layout="constrained")
    score = model.fit(X_train, y_train).score(X_test, y_test)
    DecisionBoundaryDisplay.from_estimator(model, X, response_method="predict_proba", cmap="PuOr", alpha=0.7, ax=ax)
    ax.scatter(*X_test.T, c=np.where(y_test == "island", "tab:orange", "indigo"), s=8)
    ax.set(title=f"{name}: accuracy {score:.2f} on new rows", xticks=[], yticks=[])

# %%
# The six most important lines. Each curve shows how much its line adds to the log-odds: above zero it is evidence for
# one class, below zero for the other.

LinesDisplay.from_estimator(models["AdditiveMELC"], max_lines=6)
