"""How sure the numbers of a fitted model are: intervals by the bootstrap, and a permutation test of its divergence."""

from melc.inference.bootstrap import Bootstrap, bootstrap
from melc.inference.intervals import Interval, ThresholdInterval
from melc.inference.permutation import PermutationTest, permutation_test

__all__ = ["Bootstrap", "Interval", "PermutationTest", "ThresholdInterval", "bootstrap", "permutation_test"]
