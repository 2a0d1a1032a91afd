"""Shrinkage of the class variances, for data in which a class hardly varies in some direction.

Formula. With the features' scales s and an intensity λ_c in [0, 1],

    σ_c²(v)  ←  (1 − λ_c) σ_c²(v) + λ_c t_c ‖s∘v‖²

where t_c is the mean variance of the scaled features within the class. This shrinks the covariance of the standardised
features of the class towards a multiple of the identity. The bandwidth along a direction in which a class does not vary
is then not zero, and D stays moderate. λ and t are estimated in :mod:`melc.fit.shrinkage`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from melc.arrays import Floats
from melc.objective.base import Shrunk


@dataclass(frozen=True)
class Shrinkage:
    """Intensity λ and target t of each class, and the scales s of shape (n_features,); zero for ignored features."""

    intensities: tuple[float, float]
    targets: tuple[float, float]
    scale: Floats

    def along(self, v: Floats) -> Shrunk:
        """Return the factor and the summand of the shrunk variance of each class along v."""
        length = float(np.sum((self.scale * v) ** 2))
        added = [intensity * target * length for intensity, target in zip(self.intensities, self.targets, strict=True)]
        return Shrunk(1 - self.intensities[0], 1 - self.intensities[1], added[0], added[1])

    def pull(self, v: Floats, by_added: Sequence[float]) -> Floats:
        """Return the part of ∇D, shape (n_features,), that comes from the summands λ_c t_c ‖s∘v‖².

        ``by_added`` holds the derivatives of D by these summands.
        """
        factors = zip(by_added, self.intensities, self.targets, strict=True)
        return 2 * sum(by * intensity * target for by, intensity, target in factors) * self.scale * (self.scale * v)
