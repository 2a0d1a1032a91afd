"""``gamma="auto"``: the factor on the bandwidth that predicts held-out rows best."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from melc.arrays import Floats
from melc.data.memory import MemoryRows
from melc.data.sample import draw_sample
from melc.data.source import Rows
from melc.fit.projection import Settings, describe, learn_projection

GAMMAS = (0.4, 0.6, 0.8, 1.0, 1.3, 1.7, 2.2, 3.0)
_FOLDS = 3
# Rows that are divided into folds, and the fewest of a class that can be.
_MOST_ROWS, _FEWEST = 20_000, 6


def choose_gamma(parts: list[Rows], settings: Settings, rng: np.random.RandomState) -> float:
    """Return the gamma of the lowest log loss, over three folds of the rows of each part; one if rows are too few.

    The direction of a fold is searched once, with gamma one, and serves all widths.
    """
    losses = np.zeros(len(GAMMAS))
    for rows in parts:
        sample = draw_sample(rows, _MOST_ROWS, rng)
        if min(sample.counts) < _FEWEST:
            return 1.0
        for kept, held in _folds(sample, rng):
            direction = learn_projection(kept, replace(settings, gamma=1.0), 0.0, rng).direction
            for k, gamma in enumerate(GAMMAS):
                line = describe(kept, replace(settings, gamma=gamma), None, 0.0, direction)
                losses[k] += _log_loss(held, line.decision.log_odds(held.project(line.direction)))
    return GAMMAS[int(np.argmin(losses))]


def _folds(rows: MemoryRows, rng: np.random.RandomState) -> Iterator[tuple[MemoryRows, MemoryRows]]:
    """Yield the rows outside and inside each fold. The folds divide the rows of both classes."""
    fold_of = [rng.permutation(np.arange(count) % _FOLDS) for count in rows.counts]
    for fold in range(_FOLDS):
        first, second = (np.flatnonzero(each != fold) for each in fold_of)
        held_first, held_second = (np.flatnonzero(each == fold) for each in fold_of)
        yield rows.take((first, second)), rows.take((held_first, held_second))


def _log_loss(rows: MemoryRows, log_odds: Floats) -> float:
    """The log loss of some log-odds of the second class, both classes counting equally."""
    losses = np.logaddexp(0, np.where(rows.codes == 1, -log_odds, log_odds))
    weights = rows.all_weights()
    return float(sum(np.average(losses[rows.codes == c], weights=weights[rows.codes == c]) for c in (0, 1)))
