"""Whole fits, prediction, and what it takes to get there: memory, imports, compilation."""

import functools
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from benchmarks.measure import Profile, Row, benchmark, in_new_process, one_thread, race
from melc import MELC
from melc.paper import datasets


def million_rows(profile: Profile) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        profile.rows(10**6), 20, n_informative=10, n_clusters_per_class=3, class_sep=0.7, random_state=0
    )


@benchmark("fit")
def fit(profile: Profile) -> Iterator[Row]:
    """A fit with ten starts against LogisticRegression, both with the threads that they take by themselves."""
    X, y = million_rows(profile)
    model = MELC(random_state=0)
    sides = {"logistic": lambda: LogisticRegression().fit(X, y), "melc": lambda: model.fit(X, y)}
    best = race(sides, profile.rounds(4))
    ratio = best["melc"] / best["logistic"]
    note = f"{best['melc']:.2f} s against {best['logistic']:.2f} s"
    what = f"fit with 10 starts at {len(y):,} × 20 / LogisticRegression().fit"
    yield Row("fit", what, ratio, bar=2.0, goal=1.0, note=note, details={"seconds": best})
    evaluations = model.result_.n_evaluations
    yield Row(
        *("fit-divergence", "divergence that this fit reaches", model.divergence_, ""),
        bar=None if profile.quick else 0.796,
        more_is_better=True,
        note=f"{evaluations} evaluations on all rows",
    )


@benchmark("predict")
def predict(profile: Profile) -> Iterator[Row]:
    """Labels of 10⁶ rows, validation included, against X @ v; one thread each."""
    X, y = million_rows(profile)
    model = MELC(random_state=0, n_init=2, n_jobs=1).fit(X[:20_000], y[:20_000])
    v = model.coef_[0].copy()
    with one_thread():
        best = race({"product": lambda: X @ v, "predict": lambda: model.predict(X)}, profile.rounds(15))
    what = f"predict at {len(X):,} × 20 / X @ v"
    yield Row("predict", what, best["predict"] / best["product"], bar=2.5, goal=1.5, details={"seconds": best})


@benchmark("memory")
def memory(profile: Profile) -> Iterator[Row]:
    """Peak memory of the large fit beyond X."""
    what = "peak memory of the large fit beyond X / X"
    if not Path("/proc/self/clear_refs").exists():
        yield Row("memory", what, skipped="the high-water mark of memory is read from /proc, which Linux alone has")
        return
    X, y = million_rows(profile)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, X=X, y=y)
        del X, y
        found = in_new_process("fit_memory", str(path))
    note = f"{found['beyond'] / 1e6:.0f} MB beside {found['X'] / 1e6:.0f} MB"
    yield Row("memory", what, found["ratio"], bar=0.5, goal=0.2, note=note, details=found)


@benchmark("import")
def import_time(profile: Profile) -> Iterator[Row]:
    """What ``import melc`` adds to ``import sklearn``."""
    found = min((in_new_process("import_time") for _ in range(profile.rounds(7))), key=lambda times: times["melc"])
    note = f"import sklearn alone: {found['sklearn']:.2f} s"
    yield Row("import", "import melc after import sklearn", found["melc"], "s", bar=0.5, note=note)


@benchmark("first-fit")
def first_fit(profile: Profile) -> Iterator[Row]:
    """The first fit after an install, when nothing is compiled yet, and the first one in a later process."""
    n = profile.rows(200_000)
    with tempfile.TemporaryDirectory() as folder:
        first = in_new_process("first_fit", str(n), NUMBA_CACHE_DIR=folder)
        later = [in_new_process("first_fit", str(n), NUMBA_CACHE_DIR=folder) for _ in range(profile.rounds(3))]
    best = min(later, key=lambda times: times["fit"])
    yield Row("first-fit", f"first fit ever, {n:,} × 10", first["fit"], "s", bar=20, details=first)
    yield Row("later-fit", f"first fit in a later process, {n:,} × 10", best["fit"], "s", bar=2, details=best)


@benchmark("compilation")
def compilation(profile: Profile) -> Iterator[Row]:
    """Processor time of compiling, from an empty cache: a small fit, then what a larger and an additive one add."""
    with tempfile.TemporaryDirectory() as folder:
        found = in_new_process("compilation", NUMBA_CACHE_DIR=folder)
    yield Row("compile-small", "compiling for MELC, 500 × 5", found["small"], "s", bar=16, goal=7)
    yield Row("compile-large", "and then for 30,000 × 20", found["large"], "s", bar=6, goal=3)
    yield Row("compile-additive", "and then for AdditiveMELC", found["additive"], "s", bar=3, goal=2)


@benchmark("small-fits")
def small_fits(profile: Profile) -> Iterator[Row]:
    """Ten starts on each of the paper's data sets, warm."""
    for listing in datasets.list_datasets():
        entry = listing.entry
        what = f"fit with 10 starts on {entry.name}, {entry.shape[0]} × {entry.shape[1]}"
        if not listing.at_hand:
            reason = f"{listing.where}; set {datasets.FOLDER_VARIABLE} to a folder with {entry.name}.libsvm"
            yield Row(f"small-fit-{entry.name}", what, skipped=reason)
            continue
        data = datasets.load(entry.name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whether it converged is not what is measured
            best = race({"fit": functools.partial(MELC(random_state=0).fit, data.X, data.y)}, profile.rounds(3))
        yield Row(f"small-fit-{entry.name}", what, best["fit"], "s", bar=0.5)
