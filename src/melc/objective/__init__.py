"""The divergence D of a direction: one module for each way to compute it, and the penalised objective."""

from melc.objective.penalised import METHODS, Objective

__all__ = ["METHODS", "Objective"]
