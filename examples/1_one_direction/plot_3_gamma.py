"""
The width of the kernels: gamma
===============================

``gamma`` multiplies the width of the kernels. If it is too small, the densities, and so the direction and the
thresholds, follow random details of the training rows. If it is too large, real thresholds disappear. The data here
have three thresholds.
"""

import numpy as np

from melc import MELC
from melc.plotting import ProjectionDisplay

rng = np.random.default_rng(3)
X = rng.normal(size=(600, 4))
level = X @ [0.7, 0.5, -0.4, 0.3] + 0.15 * rng.normal(size=600)
y = np.where((level < -0.8) | ((level > 0) & (level < 0.9)), "off", "on")
new = rng.normal(size=(4000, 4))
new_level = new @ [0.7, 0.5, -0.4, 0.3]
truth = np.where((new_level < -0.8) | ((new_level > 0) & (new_level < 0.9)), "off", "on")

# %%
# ``gamma="auto"`` compares five values by cross-validation. It takes two to five times as long as one fit, and is not
# always better: with few rows the comparison is noisy.

model = MELC(gamma="auto", random_state=0).fit(X, y)
print("chosen:", model.gamma_, "thresholds:", model.thresholds_.round(2))

# %%
# Too narrow, about right, too wide:

# sphinx_gallery_thumbnail_number = 1
for gamma in (0.05, 1.0, 4.0):
    model = MELC(gamma=gamma, random_state=0).fit(X, y)
    title = f"gamma={gamma:g}, thresholds: {len(model.thresholds_)}, accuracy {model.score(new, truth):.2f}"
    ProjectionDisplay.from_estimator(model, X, y, title=title)
