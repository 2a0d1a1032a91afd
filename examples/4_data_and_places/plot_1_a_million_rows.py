"""
A million rows
==============

A fit passes over the rows a few dozen times and adds up moments, so its time is proportional to the number of rows, not
to the number of pairs. The search runs on samples first; only the best directions are refined on all rows.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from melc import MELC
from melc.export import to_json
from melc.plotting import ProjectionDisplay

rng = np.random.default_rng(0)
X = rng.normal(size=(1_000_000, 10)).astype(np.float32)
level = X[:, :3] @ [0.8, 0.5, -0.3] + 0.3 * rng.normal(size=len(X))
y = np.abs(level) < 0.6

sizes = [10_000, 100_000, 1_000_000]
MELC(n_init=2, random_state=0).fit(X[:5000], y[:5000])  # compiles
seconds = []
for n in sizes:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        model = MELC(random_state=0).fit(X[:n], y[:n])
        times.append(time.perf_counter() - start)
    seconds.append(min(times))

# %%
# The model is small: it keeps only a summary of the projections.

print(f"{len(X):,} rows became a model of {len(to_json(model)) / 1000:.0f} kB; thresholds {model.thresholds_.round(3)}")

# %%
# The times, the shortest of three fits each, were measured while this page was built:

figure, ax = plt.subplots(layout="constrained")
ax.loglog(sizes, seconds, marker="o")
ax.set(xlabel="rows", ylabel="seconds per fit", title="time of a fit by number of rows")

# %%
# The model fitted to all rows, with a histogram of some of them:

ProjectionDisplay.from_estimator(model, X[:20_000], y[:20_000], title="the fit on a million rows")
