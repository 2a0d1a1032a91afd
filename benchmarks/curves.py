"""How long a whole fit takes, by rows and by where they are: in memory, in a mapped file, with worker processes."""

import importlib.util
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measure import ROOT, Profile, Row, benchmark
from benchmarks.scaling import N_PARTITIONS, cluster, lazily, rows_in_file
from melc import MELC
from melc.export.files import replacing

PICTURE = ROOT / "docs" / "images" / "scaling.svg"
SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000)
STYLES = {
    "in memory, one thread": ("#0072b2", "o-"),
    "in memory, two threads": ("#56b4e9", "s-"),
    "memory-mapped file, two threads": ("#009e73", "^--"),
    "Dask, one worker process": ("#d55e00", "D-"),
    "Dask, two worker processes": ("#e69f00", "v-"),
}


def _seconds(X: object, y: object, n_jobs: int) -> float:
    start = time.perf_counter()
    MELC(random_state=0, n_init=3, n_jobs=n_jobs).fit(X, y)
    return time.perf_counter() - start


def measure(n: int) -> dict[str, float]:
    """Seconds of a fit with three starts; one fit on fewer rows compiles before."""
    names = list(STYLES)
    with tempfile.TemporaryDirectory() as folder:
        files = rows_in_file(Path(folder), n)
        mapped = [np.load(path, mmap_mode="r") for path in files]
        held = [np.array(each) for each in mapped]
        _seconds(held[0][:50_000], held[1][:50_000], 1)
        found = {names[0]: _seconds(*held, 1), names[1]: _seconds(*held, 2), names[2]: _seconds(*mapped, 2)}
        for n_workers, name in ((1, names[3]), (2, names[4])):
            with cluster(n_workers):
                X, y = (each.persist() for each in lazily(*files, N_PARTITIONS))
                first = X.chunks[0][0]
                _seconds(X[: 4 * first], y[: 4 * first], 1)
                found[name] = _seconds(X, y, 1)
    return found


@benchmark("curves")
def curves(profile: Profile) -> Iterator[Row]:
    found = {}
    for n in SIZES[:2] if profile.quick else SIZES:
        found[n] = measure(n)
        note = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in found[n].items())
        value = min(found[n].values())
        yield Row(f"curves-{n}", f"fit at {n:,} × 10 float32, the fastest way", value, "s", note=note, details=found[n])
    if profile.quick:
        return
    if importlib.util.find_spec("matplotlib") is None:
        yield Row("curves-picture", "picture", skipped="matplotlib is not installed: pip install 'melc[plot]'")
        return
    draw(found)


def draw(found: dict[int, dict[str, float]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    for name, (colour, form) in STYLES.items():
        times = [seconds[name] for seconds in found.values()]
        axes.loglog(list(found), times, form, color=colour, markersize=4, linewidth=1.5, label=name)
    axes.set_xlabel("rows")
    axes.set_ylabel("seconds")
    axes.set_title("A whole fit, 10 features as float32, three starts", loc="left", fontsize=11)
    axes.grid(True, which="major", color="#e5e9f0", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    with replacing(PICTURE) as draft:
        figure.savefig(draft, metadata={"Date": None})
