"""Small evaluations shared by the tests of melc.paper."""

from dataclasses import replace

from melc.paper.protocol import FULL, Cell, MelcCell, Profile
from melc.paper.records import Record, Run

# Two embedded data sets; takes a second or two.
TINY = replace(
    FULL,
    name="tiny",
    data_sets=("liver-disorders", "heart"),
    gammas=(0.5, 1.0),
    epsilons=(0.05, 0.5),
    folds=(0, 1),
    n_starts=2,
    max_iter=40,
    norm_gammas=(1.0,),
    baselines=("LDA",),
    other_n_folds=(2,),
)


def made_run(ratio: float = 1.0, **changes: object) -> Run:
    """Return an artificial run with the given ratio of exponentials."""
    run = Run(
        n_iter=10,
        n_evaluations=20,
        n_exponentials=round(ratio * 100_000),
        n_pairs=100_000,
        divergence=1.5,
        exact_divergence=1.5,
        norm=1.0,
        converged=True,
        reason="converged: the gradient is below tol",
        seconds=0.25,
        processor_seconds=0.2,
    )
    return replace(run, **changes)


def made_record(cell: Cell, accuracy: float = 0.8, *runs: Run) -> Record:
    """Return an artificial record of a cell."""
    is_melc = isinstance(cell, MelcCell)
    return Record(
        cell, accuracy, (runs or (made_run(),)) if is_melc else (), 0 if is_melc else None, 0.5, {"melc": "0"}
    )


def tiny_with(**changes: object) -> Profile:
    return replace(TINY, **changes)
