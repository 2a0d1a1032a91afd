"""Class variances pulled towards those of a round cloud, for data in which a class varies too little somewhere.

Formula. With the features' scales s and an intensity λ_c in [0, 1],

    σ_c²(v)  ←  (1 − λ_c) σ_c²(v) + λ_c t_c ‖s∘v‖²

where t_c is the mean variance of the scaled features within the class: the class covariance, shrunk towards a multiple
of the identity in the coordinates of the standardised features. A direction along which a class does not vary at all
keeps a kernel of some width then, and D stays moderate. How λ and t are estimated: :mod:`melc.fit.shrinkage`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from melc import kernels
from melc.arrays import Floats


@dataclass(frozen=True)
class Shrinkage:
    """Intensity λ and target t of either class; ``scale`` s is zero for features that do not count."""

    intensities: tuple[float, float]
    targets: tuple[float, float]
    scale: Floats

    def along(self, v: Floats) -> kernels.Shrunk:
        """Return what becomes of the class variances along v."""
        length = float(np.sum((self.scale * v) ** 2))
        added = [intensity * target * length for intensity, target in zip(self.intensities, self.targets, strict=True)]
        return kernels.Shrunk(1 - self.intensities[0], 1 - self.intensities[1], added[0], added[1])

    def pull(self, v: Floats, by_added: Sequence[float]) -> Floats:
        """Return the part of ∇D that comes from what is added, given ∂D by that."""
        factors = zip(by_added, self.intensities, self.targets, strict=True)
        return 2 * sum(by * intensity * target for by, intensity, target in factors) * self.scale * (self.scale * v)
