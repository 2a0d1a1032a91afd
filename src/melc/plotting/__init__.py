"""Pictures of a fitted model, in the manner of scikit-learn's displays.

``from_estimator`` computes what is to be drawn, ``plot`` draws it and returns the display; the artists are its
attributes that end in an underscore. Colours are Okabe and Ito's, which the colour-blind can tell apart; line styles
and hatching carry the same information for a print in grey.
"""

from melc.plotting.convergence import ConvergenceDisplay
from melc.plotting.projection import ProjectionDisplay
from melc.plotting.weights import WeightsDisplay

__all__ = ["ConvergenceDisplay", "ProjectionDisplay", "WeightsDisplay"]
