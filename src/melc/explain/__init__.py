"""Why a row is predicted as it is, and what would have to change for another class.

:func:`explain` divides the projection and the log-odds of each row among its features. :func:`nearest_change` finds the
smallest change of a row that changes its class.
"""

from melc.explain.change import Change, nearest_change
from melc.explain.parts import Explanation, explain

__all__ = ["Change", "Explanation", "explain", "nearest_change"]
