"""
How sure is the rule? Intervals
===============================

Another sample of the same flowers would give other weights and other thresholds. The bootstrap draws such samples from
the data and fits again. A threshold that hardly any resample has, or a weight whose interval contains zero, should not
be made much of.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from melc import MELC
from melc.inference import bootstrap, permutation_test
from melc.plotting import IntervalsDisplay

X, species = load_iris(return_X_y=True, as_frame=True)
y = (species == 1).map({True: "versicolor", False: "other"})
model = MELC(random_state=0).fit(X, y)
found = bootstrap(model, X, y, n=100, random_state=0)
print(found.summary())

# %%
# Is there anything at all? The permutation test shuffles the labels, so that any structure that a fit still finds is
# chance, and counts how often chance does as well.

test = permutation_test(model, X, y, n=50, random_state=0)
print(test.summary())

# %%
# The contributions of the features with their intervals:

IntervalsDisplay.from_bootstrap(found, title="weights that can be trusted, and others")

# %%
# The divergence of shuffled labels beside that of the real ones:

figure, ax = plt.subplots(layout="constrained")
ax.hist(test.null, bins=15, color="grey", label="shuffled labels")
ax.axvline(test.divergence, color="tab:orange", label="real labels")
ax.set(xlabel="divergence", title=f"p = {test.p_value:.2f}")
ax.legend()
