"""
Rows on a cluster: Dask
=======================

This example needs Dask: ``pip install '.[dask]'`` from a checkout. Rows that are distributed over several machines stay
there: every worker adds up the moments of its rows, and sends only these few numbers. The same code runs on one machine
with Dask's threads, as here.
"""

import dask.array as da
import numpy as np

from melc import MELC
from melc.plotting import ProjectionDisplay

rng = np.random.default_rng(0)
rows = rng.normal(size=(200_000, 6)).astype(np.float32)
labels = np.where(np.abs(rows[:, 0] - rows[:, 1] + 0.4 * rng.normal(size=len(rows))) < 0.9, "inside", "outside")

X = da.from_array(rows, chunks=(25_000, 6))  # or dask.dataframe.read_parquet(...), read on the workers
y = da.from_array(labels, chunks=25_000)

model = MELC(n_init=3, random_state=0).fit(X, y)
in_memory = MELC(n_init=3, random_state=0).fit(rows, labels)
print("largest difference of the weights from a fit in memory:", f"{np.abs(model.coef_ - in_memory.coef_).max():.0e}")

# %%
# Predictions are lazy: the result is a Dask array, whose chunks are computed when they are needed.

predicted = model.predict(X)
print(predicted)
print("accuracy:", round(float((predicted == y).mean().compute()), 3))

# %%
# The fitted model is an ordinary one, without a connection to the cluster.

ProjectionDisplay.from_estimator(model, rows[:5000], labels[:5000], title="fitted on eight chunks")
