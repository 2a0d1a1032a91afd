"""
The approximations: discard, bin and moments
============================================

The divergence consists of sums over all pairs of rows. The paper has two fast approximations: "discard" leaves out
pairs that are far apart, and "bin" replaces the points of each bin by their mean. The default of melc is "moments",
which keeps eight moments of every bin. How far is the computed divergence from the exact one, for a given ``eps``?
"""

import matplotlib.pyplot as plt
import numpy as np

from melc import cauchy_schwarz_divergence

rng = np.random.default_rng(0)
y = np.arange(2000) % 2
X = rng.normal(size=(2000, 3))
X[y == 1] += [1.0, 0.5, 0.0]
directions = rng.normal(size=(20, 3))
directions /= np.linalg.norm(directions, axis=1, keepdims=True)

exact = np.array([cauchy_schwarz_divergence(X, y, v) for v in directions])
accepted = np.logspace(-6, -1, 11)
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for method, marker in {"discard": "s", "bin": "^", "moments": "o"}.items():
    found = np.array([[cauchy_schwarz_divergence(X, y, v, method=method, eps=e) for v in directions] for e in accepted])
    ax.loglog(accepted, np.abs(found - exact).max(axis=1) + 1e-16, marker=marker, label=method)
ax.loglog(accepted, accepted, color="grey", linestyle=":", label="error = eps")
ax.set(xlabel="eps: the allowed error", ylabel="largest error of the divergence")
ax.legend()

# %%
# For "moments", ``eps`` bounds the error of the divergence itself, so its curve stays below the dotted line. For
# "discard" and "bin" it bounds the error of each of the three sums, as in the paper, and not that of the divergence,
# which consists of their logarithms.
#
# There is a second difference. When the direction rotates, a point moves to another bin, or a pair leaves the window,
# and the value jumps. Such jumps mislead a gradient-based search. With "moments" they are too small to matter.

v, w = np.eye(3)[:2]
angles = np.linspace(0.60, 0.61, 400)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained", sharey=True)
for ax, (method, eps) in zip(axes, {"discard": 0.05, "bin": 0.05, "moments": 1e-6}.items(), strict=True):
    turned = [np.cos(a) * v + np.sin(a) * w for a in angles]
    ax.plot(angles, [cauchy_schwarz_divergence(X, y, u, method=method, eps=eps) for u in turned], linewidth=1)
    ax.set(title=f"{method}, eps={eps:g}", xlabel="angle of the direction")
axes[0].set_ylabel("divergence")
