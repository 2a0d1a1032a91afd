"""
Several thresholds beat one
===========================

Of the three species of iris, *versicolor* lies in the middle: its flowers are larger than those of *setosa* and
smaller than those of *virginica*. A linear model divides the flowers by one cut. Wherever that cut is, one of the other
species is on the same side as *versicolor*. ``MELC`` also projects the data onto one direction, but may cut it in
several places.
"""

from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from melc import MELC
from melc.plotting import ProjectionDisplay

X, species = load_iris(return_X_y=True, as_frame=True)
y = (species == 1).map({True: "versicolor", False: "other"})

for model in (MELC(random_state=0), LogisticRegression(class_weight="balanced")):
    scores = cross_val_score(model, X, y, cv=5, scoring="balanced_accuracy")
    print(f"{type(model).__name__:<20} balanced accuracy {scores.mean():.3f}")

# %%
# There are two thresholds, with *versicolor* between them. The curves are the densities of both classes along the
# direction; the thresholds are where they cross. Each tick below the axis is a flower.

model = MELC(random_state=0).fit(X, y)
ProjectionDisplay.from_estimator(model, X, y, title="versicolor is in the middle")
