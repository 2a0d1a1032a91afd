"""Plots of a fitted model, with the interface of scikit-learn's displays.

``from_estimator`` computes the data of the plot, ``plot`` draws it and returns the display. Attributes that end in an
underscore are matplotlib artists. The colours are from the Okabe-Ito palette, which is safe for colour-blind readers;
line styles and hatching carry the same information in black and white.
"""

from melc.plotting.card import CardDisplay, FeaturePathDisplay
from melc.plotting.common import LinePanels
from melc.plotting.convergence import ConvergenceDisplay
from melc.plotting.lines import LinesDisplay
from melc.plotting.plane import PlaneDisplay
from melc.plotting.projection import ProjectionDisplay
from melc.plotting.rows import ChangeDisplay, ExplanationDisplay
from melc.plotting.weights import IntervalsDisplay, WeightsDisplay

__all__ = [
    "CardDisplay",
    "ChangeDisplay",
    "ConvergenceDisplay",
    "ExplanationDisplay",
    "FeaturePathDisplay",
    "IntervalsDisplay",
    "LinePanels",
    "LinesDisplay",
    "PlaneDisplay",
    "ProjectionDisplay",
    "WeightsDisplay",
]
