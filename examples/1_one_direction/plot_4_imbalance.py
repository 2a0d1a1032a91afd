"""
A rare class
============

Five rows in a hundred are "faulty". A model that maximises accuracy may call nearly everything "fine" and be right
in 95 of 100 cases, but it finds few faults. ``MELC`` gives both classes the same weight, however many rows they
have. So it finds more faults, at the price of more false alarms. With ``priors`` you can set other class frequencies.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split

from melc import MELC
from melc.plotting import ProjectionDisplay

rng = np.random.default_rng(0)
y = np.where(rng.uniform(size=4000) < 0.05, "faulty", "fine")
X = rng.normal(size=(4000, 5))
X[y == "faulty", :2] += [1.6, -1.2]
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

models = {
    "MELC, equal priors": MELC(random_state=0),
    "MELC, priors='empirical'": MELC(priors="empirical", random_state=0),
    "logistic regression": LogisticRegression(),
}
for name, model in models.items():
    predicted = model.fit(X_train, y_train).predict(X_test)
    found, cleared = (recall_score(y_test, predicted, pos_label=label) for label in ("faulty", "fine"))
    print(f"{name:<26} finds {found:.0%} of the faulty, clears {cleared:.0%} of the fine")

# %%
# Priors do not change the direction. They scale the two curves, and so move the point where they cross.

for name in list(models)[:2]:
    ProjectionDisplay.from_estimator(models[name], X_test, y_test, title=name)
