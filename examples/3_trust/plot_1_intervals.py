"""
Intervals for weights and thresholds
====================================

Another sample of flowers would give other weights and thresholds. The bootstrap draws samples from the data and refits
the model to each. Do not rely on a threshold that few resamples have, or on a weight whose interval contains zero.
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
# The permutation test shows whether the classes differ at all. It permutes the labels, so that any difference found is
# due to chance, and counts how often the divergence is as large as with the real labels.

test = permutation_test(model, X, y, n=50, random_state=0)
print(test.summary())

# %%
# The contributions of the features with their intervals:

IntervalsDisplay.from_bootstrap(found, title="weights with 90 % intervals")

# %%
# The divergences with permuted labels, and the divergence with the real labels:

figure, ax = plt.subplots(layout="constrained")
ax.hist(test.null, bins=15, color="grey", label="permuted labels")
ax.axvline(test.divergence, color="tab:orange", label="real labels")
ax.set(xlabel="divergence", title=f"p = {test.p_value:.2f}")
ax.legend()
