"""
The penalty and the norm
========================

The divergence does not depend on the length of the direction: a direction twice as long doubles the projections and the
bandwidths. An unconstrained optimiser would drift along this ridge. So the penalty ``(|v|² − 1)²`` is subtracted, which
does not change the best directions, and makes 1 the best length.
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
# In the first plot the divergence is constant along every ray. In the second plot the maxima lie on the dotted circle
# of length one: a direction and its opposite, which give the same projection with another sign.
#
# ``solver="sphere"`` needs no penalty, because it moves along the circle. With all solvers ``coef_`` has length one.
