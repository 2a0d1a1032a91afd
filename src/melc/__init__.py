"""Multithreshold Entropy Linear Classifier."""

from melc._version import __version__

__all__ = ["__version__"]
