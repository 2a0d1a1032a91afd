"""The divergence D of a direction: one file for every way to compute it, and the penalised objective."""

from melc.objective.penalised import METHODS, Objective

__all__ = ["METHODS", "Objective"]
