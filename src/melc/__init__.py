"""Multithreshold Entropy Linear Classifier.

One readable projection, as many thresholds as the data ask for.
"""

from melc._version import __version__
from melc.additive import AdditiveMELC
from melc.classifier import MELC
from melc.divergence import cauchy_schwarz_divergence, information_potential
from melc.sums import bounds

__all__ = ["MELC", "AdditiveMELC", "__version__", "bounds", "cauchy_schwarz_divergence", "information_potential"]
