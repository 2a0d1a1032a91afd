"""Exact, discard, bin and moments against each other, from a hundred rows to ten million, with a picture."""

import functools
import importlib.util
import math
from collections.abc import Iterator

import numpy as np

from benchmarks.measure import ROOT, Profile, Row, benchmark, one_thread, race, seconds, two_classes
from melc.data.memory import MemoryRows
from melc.export.files import replacing
from melc.objective import Objective

# For the paper's two methods an error on each information potential, for moment bins one on D.
EPS = {"exact": None, "discard": 1e-3, "bin": 1e-3, "moments": 1e-6}
LABELS = {
    "exact": "all pairs",
    "discard": "sort and discard (ε = 10⁻³)",
    "bin": "bins of means (ε = 10⁻³)",
    "moments": "moment bins (certified 10⁻⁶)",
}
COLOURS = {"exact": "#4c566a", "discard": "#d08770", "bin": "#b48ead", "moments": "#2e7d5b"}
PICTURE = ROOT / "docs" / "images" / "methods.svg"
_LIMIT_SECONDS = 5.0
_MOST_EXACT = 30_000
_N_FEATURES = 10


def _sizes(profile: Profile) -> list[int]:
    most = 5 if profile.quick else 7
    return [round(10 ** (k / 2)) for k in range(4, 2 * most + 1)]


def _affordable(method: str, n: int, before: list[tuple[int, float]]) -> bool:
    """Whether the next size stays within the limit, judged by the growth between the last two."""
    if method == "exact" and n > 1.1 * _MOST_EXACT:
        return False
    if len(before) < 2:
        return True
    (n0, t0), (n1, t1) = before[-2:]
    exponent = max(1.0, math.log(t1 / t0) / math.log(n1 / n0))
    return t1 * (n / n1) ** exponent < _LIMIT_SECONDS


def measure(profile: Profile) -> Iterator[tuple[int, dict[str, float], dict[str, float]]]:
    """For every size the seconds of an evaluation, and the error of D, by method."""
    times: dict[str, list[tuple[int, float]]] = {method: [] for method in EPS}
    for n in _sizes(profile):
        X, codes, v = two_classes(n, _N_FEATURES)
        rows = MemoryRows(X, codes)
        chosen = [method for method in EPS if _affordable(method, n, times[method])]
        objectives = {method: Objective(rows, method=method, eps=EPS[method]) for method in chosen}
        sides = {method: functools.partial(objective.evaluate, v) for method, objective in objectives.items()}
        with one_thread():
            slowest = max(seconds(side) for side in sides.values())
            best = race(sides, profile.rounds(1 if slowest > 2 else 5), least_seconds=1e-3)
        for method, taken in best.items():
            times[method].append((n, taken))
        reference = objectives.get("exact") or Objective(rows, method="moments", eps=1e-9)
        truth = reference.evaluate(v).divergence
        errors = {method: abs(o.evaluate(v).divergence - truth) for method, o in objectives.items()}
        yield n, best, errors


@benchmark("methods")
def methods(profile: Profile) -> Iterator[Row]:
    """Milliseconds of an evaluation by every method, over those of moment bins."""
    found = []
    for n, best, errors in measure(profile):
        found.append((n, best))
        others = ", ".join(f"{method} {best[method] / best['moments']:.3g}×" for method in best if method != "moments")
        note = "; ".join(filter(None, [others, "error of D " + ", ".join(f"{m} {e:.0e}" for m, e in errors.items())]))
        details = {"seconds": best, "errors": errors}
        what = f"moment bins, one evaluation at {n:,} × {_N_FEATURES}"
        yield Row(f"methods-{n}", what, 1e3 * best["moments"], "ms", note=note, details=details)
    if profile.quick:
        return
    if importlib.util.find_spec("matplotlib") is None:
        yield Row("methods-picture", "picture", skipped="matplotlib is not installed: pip install 'melc[plot]'")
        return
    draw(found)


def draw(found: list[tuple[int, dict[str, float]]]) -> None:
    """Time against rows, both in powers of ten; every line carries its name."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    for method in EPS:
        points = np.array([(n, times[method]) for n, times in found if method in times])
        axes.loglog(*points.T, "o-", color=COLOURS[method], markersize=3.5, linewidth=1.6, label=LABELS[method])
    axes.set_xlabel("rows")
    axes.set_ylabel("seconds per evaluation, one thread")
    axes.set_title("Value and gradient of the divergence, 10 features", loc="left", fontsize=11)
    axes.grid(True, which="major", color="#e5e9f0", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    with replacing(PICTURE) as draft:
        figure.savefig(draft, metadata={"Date": None})
