"""Multithreshold Entropy Linear Classifier.

One readable projection, as many thresholds as the data ask for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from melc._version import __version__

if TYPE_CHECKING:
    from melc.additive import AdditiveMELC
    from melc.classifier import MELC
    from melc.divergence import cauchy_schwarz_divergence, information_potential
    from melc.sums import bounds

__all__ = ["MELC", "AdditiveMELC", "__version__", "bounds", "cauchy_schwarz_divergence", "information_potential"]

# Imported when they are first used: the command line begins at once, and Ctrl-C is answered while it imports the rest.
_MODULES = {
    "AdditiveMELC": "melc.additive",
    "MELC": "melc.classifier",
    "bounds": "melc.sums",
    "cauchy_schwarz_divergence": "melc.divergence",
    "information_potential": "melc.divergence",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'melc' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
