"""The protocol: all cells of the evaluation in a fixed order, with all their settings.

A *cell* is one fit of MELC, or of a baseline, on one training fold. It contains all its settings, so that its record is
self-explanatory. The paper specifies the ten data sets, γ, ε, the two solvers and the two approximations. The settings
that it does not specify are fields of `Profile`, whose docstring gives the reasons for their values.
"""

import itertools
from dataclasses import dataclass, replace

from melc.paper.datasets import registry

PAPER_GAMMAS = (0.1, 0.5, 1.0, 1.5, 2.0)  # the paper's five
EPSILONS = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5)  # the paper's seven
PAPER_SOLVERS = ("cg", "lbfgs")
BASELINES = ("linear SVM", "RBF SVM", "logistic regression", "LDA")
NORM_DATA_SETS = ("sonar", "german.numer")  # the two named in the paper's norm experiment
DATA_SETS = tuple(registry())  # all ten


@dataclass(frozen=True)
class MelcCell:
    """Fits of MELC from several starts on one training fold. The best start is scored on the test fold."""

    data_set: str
    fold: int
    n_folds: int
    seed: int
    solver: str
    method: str
    gamma: float
    eps: float | None
    n_starts: int
    max_iter: int
    tol: float
    penalty: bool = True

    @property
    def label(self) -> str:
        """Short readable name, part of the file name of the record."""
        parts = [self.data_set, f"fold{self.fold}", self.solver, self.method, f"gamma{self.gamma:g}"]
        parts += [f"eps{self.eps:g}"] if self.eps is not None else []
        parts += [] if self.penalty else ["nopenalty"]
        return "-".join(parts)


@dataclass(frozen=True)
class BaselineCell:
    """Another classifier, fitted and scored on the same fold."""

    data_set: str
    fold: int
    n_folds: int
    seed: int
    model: str

    @property
    def label(self) -> str:
        """Short readable name, part of the file name of the record."""
        return f"{self.data_set}-fold{self.fold}-{self.model.replace(' ', '_')}"


Cell = MelcCell | BaselineCell


@dataclass(frozen=True)
class Profile:
    """The settings of one reproduction. The defaults are those of the full profile.

    Attributes
    ----------
    data_sets : the paper's ten.
    gammas, epsilons, solvers : the paper's.
    n_folds : number of stratified folds. The paper only says "cross validation"; 5 is common, and leaves at least 41
        test rows in the smallest data set (sonar, 208 rows).
    folds : which of the folds are run: all, or fewer in the quick profile.
    n_starts : number of random starting directions per fold. The paper says "multiple". As in the paper, they are the
        same for every method, solver, γ and ε of a fold. Ratios and iterations are means over all starts; the balanced
        accuracy (BAC) is that of the start with the largest training divergence.
    seed : random seed of folds and starts.
    max_iter : limit of iterations, meant to stop only runs that do not converge. The largest entry of the paper's
        Table 2 is a mean of 600 iterations, so the paper's limit must have been far above that; SciPy's defaults are
        200·d (CG) and 15000 (L-BFGS-B).
    tol : a solver stops when no gradient component is larger; SciPy's default for both solvers.
    moments_eps : bound on the error of D of method "moments". One value is enough, because a small bound costs little.
        Up to 700 rows that method computes the exact sum, so its results differ only for german.numer and splice.
    sphere_gammas : γ for gradient ascent on the sphere, the method of the original MELC paper. It converges slowly, so
        only the middle γ is run.
    norm_gammas, norm_eps : γ of the runs without the penalty, and ε of the approximate ones among them. The paper does
        not say which it used, nor whether its runs were exact.
    baselines : classifiers that are run on the same folds.
    other_n_folds : other numbers of folds for which Table 1 is measured (L-BFGS-B, one fold, one start), to see how
        much it depends on the number that the paper does not give.
    """

    name: str = "full"
    data_sets: tuple[str, ...] = DATA_SETS
    gammas: tuple[float, ...] = PAPER_GAMMAS
    epsilons: tuple[float, ...] = EPSILONS
    solvers: tuple[str, ...] = PAPER_SOLVERS
    n_folds: int = 5
    folds: tuple[int, ...] = (0, 1, 2, 3, 4)
    n_starts: int = 3
    seed: int = 0
    max_iter: int = 2000
    tol: float = 1e-5
    moments_eps: float = 1e-6
    sphere_gammas: tuple[float, ...] = (1.0,)
    norm_gammas: tuple[float, ...] = PAPER_GAMMAS
    norm_eps: float = 0.05
    baselines: tuple[str, ...] = BASELINES
    other_n_folds: tuple[int, ...] = (2, 10)


FULL = Profile()
QUICK = replace(
    FULL,
    name="quick",
    epsilons=(0.01, 0.05, 0.5),
    folds=(0,),
    n_starts=1,
    norm_gammas=(1.0,),
    other_n_folds=(),
)
PROFILES = {profile.name: profile for profile in (FULL, QUICK)}


def methods(profile: Profile) -> list[tuple[str, float | None]]:
    """Return every (method, ε) of the grid.

    >>> methods(QUICK)[:3]
    [('exact', None), ('moments', 1e-06), ('bin', 0.01)]
    """
    approximations = itertools.product(("bin", "discard"), profile.epsilons)
    return [("exact", None), ("moments", profile.moments_eps), *approximations]


def cells(profile: Profile) -> list[Cell]:
    """Return all cells in their fixed order.

    Data sets vary fastest, so that an interrupted run has results for all of them and the estimate of the remaining
    time is good from the start.

    >>> len(cells(FULL))
    9950
    """
    penalised = [(*setting, True) for setting in itertools.product(profile.gammas, methods(profile), profile.solvers)]
    sphere = [(gamma, ("exact", None), "sphere", True) for gamma in profile.sphere_gammas]
    of_norms = [("exact", None), ("bin", profile.norm_eps), ("discard", profile.norm_eps)]
    free = [(*setting, False) for setting in itertools.product(profile.norm_gammas, of_norms, profile.solvers)]
    settings: list[Cell] = [_cell(profile, *setting) for setting in (*penalised, *sphere, *free)]
    settings += [BaselineCell("", 0, profile.n_folds, profile.seed, model) for model in profile.baselines]
    approximations = methods(profile)[2:]
    other_folds = [
        replace(_cell(profile, gamma, method, "lbfgs", True), n_folds=n_folds, n_starts=1)
        for n_folds, gamma, method in itertools.product(profile.other_n_folds, profile.gammas, approximations)
    ]
    return [
        replace(cell, fold=fold, data_set=data_set)
        for folds, group in (((0,), other_folds), (profile.folds, settings))
        for fold, cell, data_set in itertools.product(folds, group, profile.data_sets)
        if getattr(cell, "penalty", True) or data_set in NORM_DATA_SETS
    ]


def _cell(profile: Profile, gamma: float, method: tuple[str, float | None], solver: str, penalty: bool) -> MelcCell:
    """Return a cell whose data set and fold are not yet set. ``method`` is the name of a method and its ε."""
    name, eps = method
    limits = (profile.n_starts, profile.max_iter, profile.tol)
    return MelcCell("", 0, profile.n_folds, profile.seed, solver, name, gamma, eps, *limits, penalty)
