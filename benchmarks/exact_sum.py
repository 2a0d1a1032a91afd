"""The compiled exact sum with its gradient beside NumPy broadcasting, side by side.

    python benchmarks/exact_sum.py [--points 2000]

Neither side starts threads: NumPy's element-wise functions and the kernels of the exact sum run on one.
"""

import argparse
import sys
import timeit
from collections.abc import Callable

import numpy as np

from melc.sums import Exact

AT_LEAST = 5.0
VARIANCE = 0.1
Points = np.ndarray


def broadcast(x: Points, y: Points) -> tuple[float, Points, Points]:
    """log S and its derivatives with tables of all pairs, as one would write it in NumPy."""
    difference = x[:, None] - y[None, :]
    terms = np.exp(difference**2 * (-0.5 / VARIANCE))
    total = terms.sum()
    terms *= difference
    return (
        float(np.log(total)),
        -terms.sum(axis=1) / (VARIANCE * total),
        terms.sum(axis=0) / (VARIANCE * total),
    )


def compiled(x: Points, y: Points) -> tuple[float, Points, Points | None]:
    method = Exact()
    sides = [method.prepare(z, np.ones(len(z)), label) for label, z in enumerate((x, y))]
    result = method.across(sides[0], sides[1], VARIANCE)
    return result.log_value, result.dx, result.dy


def compiled_within(x: Points) -> float:
    method = Exact()
    return method.within(method.prepare(x, np.ones(len(x)), 0), VARIANCE).log_value


def three_broadcast(x: Points, y: Points) -> list[float]:
    """What one evaluation of the divergence asks for."""
    return [broadcast(a, b)[0] for a, b in ((x, x), (y, y), (x, y))]


def three_compiled(x: Points, y: Points) -> list[float]:
    return [compiled_within(x), compiled_within(y), compiled(x, y)[0]]


def best_time(function: Callable[..., object], x: Points, y: Points, repeats: int) -> float:
    function(x, y)  # compile, fill caches
    return min(timeit.repeat(lambda: function(x, y), number=1, repeat=repeats))


def compare(
    what: str, slow: Callable[..., object], fast: Callable[..., object], x: Points, y: Points, repeats: int
) -> float:
    """Print both times; how many times faster the compiled sum is."""
    times = [best_time(function, x, y, repeats) for function in (slow, fast)]
    ratio = times[0] / times[1]
    print(f"{what:48} NumPy {times[0] * 1e3:7.2f} ms   compiled {times[1] * 1e3:6.2f} ms   {ratio:5.1f} times")
    return ratio


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    n, rng = options.points, np.random.default_rng(0)
    x, y = rng.normal(size=n), rng.normal(size=n) + 1
    for by_numpy, by_melc in zip(broadcast(x, y), compiled(x, y), strict=True):
        np.testing.assert_allclose(by_melc, by_numpy, rtol=1e-9, atol=1e-14)
    ratios = [
        compare(f"one sum, {n} by {n} points", broadcast, compiled, x, y, options.repeats),
        compare(
            f"the three sums of D, {n} points in two classes",
            three_broadcast,
            three_compiled,
            x[: n // 2],
            y[: n - n // 2],
            options.repeats,
        ),
    ]
    print(f"at least {AT_LEAST:g} times faster is asked for")
    return 0 if min(ratios) >= AT_LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
