"""The Gaussian double sum, one file a method, behind one small interface."""

from melc.sums.base import DoubleSum, Method, Side
from melc.sums.bin import Bin
from melc.sums.discard import Discard
from melc.sums.exact import Exact

__all__ = ["Bin", "Discard", "DoubleSum", "Exact", "Method", "Side"]
