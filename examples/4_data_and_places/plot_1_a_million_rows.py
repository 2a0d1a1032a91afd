"""
A million rows
==============

A fit reads the rows a few dozen times and adds up moments, so its time grows with the number of rows and not with
the number of pairs. The starts are searched on samples; only the best directions see all rows.
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
    start = time.perf_counter()
    model = MELC(random_state=0).fit(X[:n], y[:n])
    seconds.append(time.perf_counter() - start)

# %%
# The model is small: of its rows only a summary of their projections is kept.

print(f"{len(X):,} rows became a model of {len(to_json(model)) / 1000:.0f} kB; thresholds {model.thresholds_.round(3)}")

# %%
# The times were measured while this page was made, so they are those of a busy machine.

figure, ax = plt.subplots(layout="constrained")
ax.loglog(sizes, seconds, marker="o")
ax.set(xlabel="rows", ylabel="seconds of a fit", title="time grows with the rows, not with their pairs")

# %%
# The fit on all rows, with some of them as ticks:

ProjectionDisplay.from_estimator(model, X[:20_000], y[:20_000], title="the fit on a million rows")
