"""
A rule on an index card
=======================

The breast cancer data have thirty measurements of each tumour. This rule uses three of them, and can be applied with
pencil and paper. ``max_features`` limits the number of features, and ``whole_weights`` makes the weights small whole
numbers.
"""

from sklearn.datasets import load_breast_cancer

from melc import MELC
from melc.export import export_text
from melc.plotting import CardDisplay, FeaturePathDisplay

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target.map({0: "malignant", 1: "benign"})
model = MELC(max_features=3, whole_weights=5).fit(X, y)
print(export_text(model, style="card"))

# %%
# The same rule as a card to print. If you pass rows and labels, it shows the accuracy in cross-validation.

CardDisplay.from_estimator(model, X, y)

# %%
# The cross-validated accuracy with one to four features, and with all of them:

FeaturePathDisplay.from_estimator(MELC(whole_weights=5), X, y, max_features=4, cv=3)
