"""
Several classes
===============

With more than two classes, each class gets a direction of its own, along which it is separated from all others
together. A row is assigned to the class with the best odds. So there are as many pictures to read as there are
classes.
"""

from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score

from melc import MELC
from melc.plotting import ProjectionDisplay

X, y = load_wine(return_X_y=True, as_frame=True)
y = "grower " + (y + 1).astype(str)
scores = cross_val_score(MELC(random_state=0), X, y, cv=5, scoring="balanced_accuracy")
print(f"balanced accuracy {scores.mean():.3f}")

# %%
# One plot for each class against the rest. The densities of the rest may have several humps: it consists of two
# growers.

model = MELC(random_state=0).fit(X, y)
ProjectionDisplay.from_estimator(model, X, y)
