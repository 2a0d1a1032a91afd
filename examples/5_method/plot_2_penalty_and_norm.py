"""
The penalty and the norm
========================

The divergence does not depend on the length of the direction: twice the direction gives twice the projections and
twice the width of the kernels. An optimiser without constraints would wander along such a ridge. So ``(|v|² − 1)²`` is
subtracted, which leaves the maxima where they are and makes length one the best length.
"""

import matplotlib.pyplot as plt
import numpy as np

from melc import cauchy_schwarz_divergence

rng = np.random.default_rng(1)
y = np.arange(400) % 2
X = rng.normal(size=(400, 2))
X[y == 1] += [1.6, 0.8]

axis = np.linspace(-1.6, 1.6, 60)
plane = np.array([[cauchy_schwarz_divergence(X, y, [a, b]) for a in axis] for b in axis])
a, b = np.meshgrid(axis, axis)
penalised = plane - (a**2 + b**2 - 1) ** 2

# sphinx_gallery_thumbnail_number = 2
for values, title in ((plane, "D: rays"), (penalised, "D − penalty: two peaks")):
    figure, ax = plt.subplots(figsize=(5.6, 4.6), layout="constrained")
    picture = ax.contourf(a, b, np.maximum(values, plane.min() - 1), levels=20, cmap="viridis")
    ax.add_patch(plt.Circle((0, 0), 1, fill=False, color="white", linestyle=":"))
    ax.set(title=title, xlabel="first component of v", ylabel="second component", aspect="equal")
    figure.colorbar(picture, ax=ax, shrink=0.8)

# %%
# In the first picture every ray has one value, the same at all lengths. In the second the highest points lie on the
# dotted circle of length one: a direction and its opposite, which is the same line read from the other end.
#
# ``solver="sphere"`` needs no penalty, because it moves along the circle. All solvers report ``coef_`` with length
# one.
