"""
Several classes
===============

With more than two classes, ``MELC`` finds a direction for each class, which separates it from all other classes
together. Along each direction every class has a curve, and the curves of a class add up to its log-odds. The class with
the largest log-odds is predicted.
"""

from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score

from melc import MELC
from melc.plotting import LinesDisplay, ProjectionDisplay

X, y = load_wine(return_X_y=True, as_frame=True)
y = "grower " + (y + 1).astype(str)
scores = cross_val_score(MELC(random_state=0), X, y, cv=5, scoring="balanced_accuracy")
print(f"balanced accuracy {scores.mean():.3f}")

# %%
# The densities of the classes along the direction found for the first grower. The two others overlap there.

model = MELC(random_state=0).fit(X, y)
ProjectionDisplay.from_estimator(model, X, y, line=1)

# %%
# Along the direction found for the second, they do not.

ProjectionDisplay.from_estimator(model, X, y, line=2)

# %%
# What each line adds to the log-odds of each class. The band along the top has the colour of the highest curve.

LinesDisplay.from_estimator(model)
