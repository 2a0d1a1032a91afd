"""
Why this prediction, and what would change it?
==============================================

A flower near a threshold is predicted as *versicolor*. Which features are evidence for this class, and which against
it? And what would have to change for another prediction?
"""

import numpy as np
from sklearn.datasets import load_iris

from melc import MELC
from melc.explain import nearest_change
from melc.plotting import ChangeDisplay, ExplanationDisplay

X, species = load_iris(return_X_y=True, as_frame=True)
y = (species == 1).map({True: "versicolor", False: "other"})
model = MELC(random_state=0).fit(X, y)
flower = int(np.argmin(np.abs(model.decision_function(X) - 1.5)))  # an uncertain prediction
print(X.iloc[flower].to_dict(), "→", model.predict(X.iloc[[flower]])[0])

# %%
# The smallest change of the measurements that gives the other class:

change = nearest_change(model, X.iloc[[flower]])
print(change.summary())

# %%
# A plot of this change, and of one in which the petals may not change:

ChangeDisplay.from_estimator(model, X, row=flower)
ChangeDisplay.from_estimator(model, X, row=flower, fixed=["petal length (cm)", "petal width (cm)"])

# %%
# The parts of the features add up to the log-odds.

# sphinx_gallery_thumbnail_number = 3
ExplanationDisplay.from_estimator(model, X, row=flower)
