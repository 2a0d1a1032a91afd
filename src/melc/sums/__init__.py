"""The Gaussian double sum: one module for each method, all with the interface of :class:`melc.sums.base.Method`."""

from melc.sums.base import DoubleSum, Method, Side
from melc.sums.bin import Bin
from melc.sums.discard import Discard
from melc.sums.exact import Exact
from melc.sums.moments import Moments

# Every method by its name, which ``MELC(method=...)`` and the public functions take.
SUMS: dict[str, type[Method]] = {
    "exact": Exact,
    "discard": Discard,
    "bin": Bin,
    "moments": Moments,
}

__all__ = ["SUMS", "Bin", "Discard", "DoubleSum", "Exact", "Method", "Moments", "Side"]
