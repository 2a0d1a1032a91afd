"""
A rule on an index card
=======================

Thirty measurements of a tumour, and a rule that needs three of them, a pencil and no computer. ``max_features`` limits
the number of features, ``whole_weights`` makes the weights small whole numbers.
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
# The same as a card to print. With the rows it says how often the rule is right on rows that it was not fitted to.

CardDisplay.from_estimator(model, X, y)

# %%
# What would a further feature buy? Cross-validation with one feature, two, three and four, and with all of them.

FeaturePathDisplay.from_estimator(MELC(whole_weights=5), X, y, max_features=4, cv=3)
