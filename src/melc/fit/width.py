"""``gamma="auto"``: the factor on the bandwidth that predicts held-out rows best."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from melc._sklearn import one_blas_thread
from melc.arrays import Floats
from melc.data.memory import MemoryRows
from melc.data.sample import draw_sample
from melc.data.source import Rows
from melc.fit.projection import density_ratio, learn_projection
from melc.fit.search import Settings
from melc.objective.base import NO_SHRINKAGE

TRIED_GAMMAS = (0.4, 0.65, 1.0, 1.5, 2.5)
# The number of folds, and the fraction of the starts that the search of a fold makes.
_N_FOLDS, _STARTS_PER_FOLD = 3, 1 / 3
# The most rows that are divided into folds, and the fewest rows of a class that can be divided.
_MOST_ROWS_DIVIDED, _FEWEST_DIVIDED = 20_000, 6


@one_blas_thread
def choose_gamma(parts: list[Rows], settings: Settings, rng: np.random.RandomState) -> float:
    """Return the gamma of the lowest log loss over three folds of the rows of each part, or 1 if rows are too few.

    The direction of a fold is searched once, with gamma one and fewer starts, and serves all widths.
    """
    losses = np.zeros(len(TRIED_GAMMAS))
    searched = replace(settings, gamma=1.0, n_init=max(1, round(_STARTS_PER_FOLD * settings.n_init)))
    for rows in parts:
        sample = draw_sample(rows, _MOST_ROWS_DIVIDED, rng)
        if min(sample.counts) < _FEWEST_DIVIDED:
            return 1.0
        for kept, held in _folds(sample, rng):
            direction = learn_projection(kept, searched, rng).direction
            losses += [_log_loss(kept, held, replace(settings, gamma=gamma), direction) for gamma in TRIED_GAMMAS]
    return TRIED_GAMMAS[int(np.argmin(losses))]


def _folds(rows: MemoryRows, rng: np.random.RandomState) -> Iterator[tuple[MemoryRows, MemoryRows]]:
    """Yield the rows outside and inside each fold. The folds divide the rows of both classes.

    Both classes are divided with the same seed, so that nothing depends on which of them is the first.
    """
    seed = rng.randint(2**31)
    fold_of = [np.random.RandomState(seed).permutation(np.arange(count) % _N_FOLDS) for count in rows.counts]
    for fold in range(_N_FOLDS):
        first, second = (np.flatnonzero(each != fold) for each in fold_of)
        held_first, held_second = (np.flatnonzero(each == fold) for each in fold_of)
        yield rows.take((first, second)), rows.take((held_first, held_second))


def _log_loss(kept: MemoryRows, held: MemoryRows, settings: Settings, direction: Floats) -> float:
    """Return the log loss, on held-out rows, of densities estimated from ``kept`` rows; both classes count equally."""
    formula = density_ratio(kept, settings, NO_SHRINKAGE, kept.summarise(direction), direction, kept)
    log_odds = formula.log_odds(held.project(direction))
    losses = np.logaddexp(0, np.where(held.codes == 1, -log_odds, log_odds))
    weights = held.all_weights()
    return float(sum(np.average(losses[held.codes == c], weights=weights[held.codes == c]) for c in (0, 1)))
