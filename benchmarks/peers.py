"""The same divergence by other libraries: how long they take, and how close they come.

All are given the projections of both classes and the kernels' widths. Unless a row says "value alone", they give the
derivative at every point too, as moment bins do.
"""

import functools
import importlib.util
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.measure import Profile, Row, benchmark, one_thread, race, seconds
from melc.data.memory import MemoryRows
from melc.objective import Objective
from melc.objective.base import NO_SHRINKAGE, kernel_variances, spread_of
from melc.objective.moments import MomentsDivergence

Floats = np.ndarray
_GRID = 1 << 15


@dataclass(frozen=True)
class Line:
    """Two classes on a line and their kernels' variances."""

    x: Floats
    y: Floats
    vx: float
    vy: float

    @property
    def rows(self) -> MemoryRows:
        codes = np.repeat(np.array([0, 1], dtype=np.int8), [len(self.x), len(self.y)])
        return MemoryRows(np.concatenate([self.x, self.y])[:, None], codes)

    def divergence(self, xx: float, yy: float, xy: float) -> float:
        """D of the three information potentials."""
        return math.log(xx) + math.log(yy) - 2 * math.log(xy)


def line(n: int) -> Line:
    rng = np.random.default_rng(0)
    x = rng.normal(size=n // 2)
    y = np.where(rng.random(n - n // 2) < 0.5, -1.5, 2.0) + 0.7 * rng.normal(size=n - n // 2)
    spread = spread_of([x, y], [np.ones(len(x)), np.ones(len(y))])
    return Line(x, y, *kernel_variances(spread, NO_SHRINKAGE, 1.0))


def by_finufft(data: Line, eps: float) -> tuple[float, list[Floats]]:
    """D and its derivative at every point (the kernels' widths held), from nonuniform Fourier transforms.

    Poisson's summation formula: the sums are trapezoidal rules in frequency, exact up to the ends, where the kernels'
    transforms are below ``eps``.
    """
    import finufft

    variances = {"xx": 2 * data.vx, "yy": 2 * data.vy, "xy": data.vx + data.vy}
    low, high = min(data.x.min(), data.y.min()), max(data.x.max(), data.y.max())
    tail = math.sqrt(2 * math.log(1 / eps)) + 1
    step = 2 * math.pi / (high - low + tail * math.sqrt(max(variances.values())))
    n_modes = 2 * math.ceil(tail / (math.sqrt(min(variances.values())) * step)) + 1
    frequency = step * (np.arange(n_modes) - n_modes // 2)
    points = [(z - (low + high) / 2) * step for z in (data.x, data.y)]
    options = {"eps": eps, "nthreads": 1}
    fx, fy = (finufft.nufft1d1(p, np.ones(len(p), dtype=complex), n_modes, isign=-1, **options) for p in points)
    g = {k: step * math.sqrt(V / (2 * math.pi)) * np.exp(-V * frequency**2 / 2) for k, V in variances.items()}
    sums = {
        "xx": float(g["xx"] @ np.abs(fx) ** 2),
        "yy": float(g["yy"] @ np.abs(fy) ** 2),
        "xy": float(g["xy"] @ (fx * fy.conj()).real),
    }
    # Σ_j g'(x_i − y_j) is the inverse transform of ik ĝ(k) F(k).
    along = [
        1j * frequency * (2 * g["xx"] * fx / sums["xx"] - 2 * g["xy"] * fy / sums["xy"]),
        1j * frequency * (2 * g["yy"] * fy / sums["yy"] - 2 * g["xy"] * fx / sums["xy"]),
    ]
    slopes = [finufft.nufft1d2(p, modes, isign=1, **options).real for p, modes in zip(points, along, strict=True)]
    n, m = len(data.x), len(data.y)
    scale = {"xx": n * n, "yy": m * m, "xy": n * m}
    potentials = {k: sums[k] / (math.sqrt(2 * math.pi * variances[k]) * scale[k]) for k in sums}
    return data.divergence(**potentials), slopes


# Densities on a grid by FFT: (points, variance, grid) to values.
Density = Callable[[Floats, float, Floats], Floats]


def _kdepy(z: Floats, variance: float, grid: Floats) -> Floats:
    from KDEpy import FFTKDE

    return FFTKDE(bw=math.sqrt(variance)).fit(z).evaluate(grid)


def _statsmodels(z: Floats, variance: float, grid: Floats) -> Floats:
    """Its grid is its own, so the density is interpolated on ours."""
    from statsmodels.nonparametric.kde import kdensityfft

    density, own, _ = kdensityfft(z, kernel="gau", bw=math.sqrt(variance), gridsize=len(grid), cut=8)
    return np.interp(grid, own, density, left=0, right=0)


def _grid(data: Line) -> Floats:
    """Equidistant points, wide enough for every density."""
    margin = 12 * math.sqrt(max(data.vx, data.vy))
    low, high = min(data.x.min(), data.y.min()), max(data.x.max(), data.y.max())
    return np.linspace(low - margin, high + margin, _GRID)


def value_on_grid(density: Density, data: Line) -> float:
    """D alone: potentials as integrals of products, for which the trapezoidal rule is as good as exact."""
    grid = _grid(data)
    f, g = density(data.x, data.vx, grid), density(data.y, data.vy, grid)
    step = grid[1] - grid[0]
    return data.divergence(float(f @ f) * step, float(g @ g) * step, float(f @ g) * step)


def slopes_on_grid(density: Density, data: Line) -> tuple[float, list[Floats]]:
    """D and its derivative at every point: smoothed densities of either class, interpolated at the points."""
    grid, across = _grid(data), data.vx + data.vy
    own = [density(data.x, 2 * data.vx, grid), density(data.y, 2 * data.vy, grid)]
    other = [density(data.y, across, grid), density(data.x, across, grid)]
    xx, yy = (float(np.interp(z, grid, phi).mean()) for z, phi in zip((data.x, data.y), own, strict=True))
    xy = float(np.interp(data.x, grid, other[0]).mean())
    slopes = [
        np.interp(z, grid, np.gradient(2 * mine / ip - 2 * theirs / xy, grid)) / len(z)
        for z, mine, theirs, ip in zip((data.x, data.y), own, other, (xx, yy), strict=True)
    ]
    return data.divergence(xx, yy, xy), slopes


def by_scipy(data: Line) -> float:
    """All pairs, in NumPy: for few points only."""
    from scipy.stats import gaussian_kde

    f, g = (gaussian_kde(z, math.sqrt(V) / z.std(ddof=1)) for z, V in ((data.x, data.vx), (data.y, data.vy)))
    return data.divergence(float(f.integrate_kde(f)), float(g.integrate_kde(g)), float(f.integrate_kde(g)))


PEERS: dict[str, tuple[str, Callable[[Line], float], int]] = {
    "finufft, 1e-6": ("finufft", lambda data: by_finufft(data, 1e-6)[0], 10**6),
    "finufft, 1e-12": ("finufft", lambda data: by_finufft(data, 1e-12)[0], 10**6),
    "KDEpy": ("KDEpy", lambda data: slopes_on_grid(_kdepy, data)[0], 10**6),
    "KDEpy, value alone": ("KDEpy", lambda data: value_on_grid(_kdepy, data), 10**6),
    "statsmodels": ("statsmodels", lambda data: slopes_on_grid(_statsmodels, data)[0], 10**6),
    "statsmodels, value alone": ("statsmodels", lambda data: value_on_grid(_statsmodels, data), 10**6),
    "scipy, value alone": ("scipy", by_scipy, 5_000),
}


@benchmark("peers")
def peers(profile: Profile) -> Iterator[Row]:
    """Time over that of moment bins with value, gradient and certificate to 1e-6; and the error of D."""
    for name, (package, divergence, most) in PEERS.items():
        n = min(profile.rows(10**6), most)
        what = f"{name}: D of {n:,} points / by moment bins"
        if importlib.util.find_spec(package) is None:
            yield Row(
                f"peer-{name.replace(', ', '-').replace(' ', '-')}",
                what,
                skipped=f"{package} is not installed: pip install 'melc[bench]'",
            )
            continue
        data = line(n)
        reference = _reference(data)
        ours = functools.partial(Objective(data.rows, method="moments", eps=1e-6).evaluate, np.ones(1))
        with one_thread():
            best = race({"peer": functools.partial(divergence, data), "melc": ours}, profile.rounds(5))
        error, own = abs(divergence(data) - reference), abs(ours().divergence - reference)
        note = f"error of D {error:.0e}, ours {own:.0e}"
        details = {"seconds": best, "error": error, "melc_error": own}
        yield Row(
            f"peer-{name.replace(', ', '-').replace(' ', '-')}",
            what,
            best["peer"] / best["melc"],
            note=note,
            more_is_better=True,
            details=details,
        )


def _reference(data: Line) -> float:
    """All pairs where they are few, moment bins as fine as rounding allows elsewhere."""
    if len(data.x) + len(data.y) <= 20_000:
        return Objective(data.rows).evaluate(np.ones(1)).divergence
    return MomentsDivergence(data.rows, 1.0, 1e-12).evaluate(np.ones(1)).divergence


@benchmark("agreement")
def agreement(profile: Profile) -> Iterator[Row]:
    """Moment bins and finufft, which have nothing in common, on a million points."""
    n = profile.rows(10**6)
    what = f"|D by moment bins − D by finufft|, {n:,} points"
    if importlib.util.find_spec("finufft") is None:
        yield Row("agreement", what, skipped="finufft is not installed: pip install 'melc[bench]'")
        return
    data = line(n)
    found = MomentsDivergence(data.rows, 1.0, 1e-12).evaluate(np.ones(1))
    taken = seconds(lambda: by_finufft(data, 1e-14))
    difference = abs(found.divergence - by_finufft(data, 1e-14)[0])
    yield Row("agreement", what, difference, "", bar=1e-12, note=f"certified {found.error:.0e}", details={"s": taken})
