"""Slow and obvious twins of the fast paths, written straight from the formulas.

Everything works on all pairs at once, in extended precision where the platform has it, and in logarithms,
so that nothing underflows. No name is imported from melc.
"""

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np

VARIANCE_FLOOR = 1e-18  # least variance of a class along v, as a fraction of the variance of all points


def _wide(values):
    return np.asarray(values, dtype=np.longdouble)


def _ones(values):
    return np.ones(len(values), dtype=np.longdouble)


# ----------------------------------------------------------------------------------------- the double sum


def log_sum(x, y, variance, a=None, b=None, kept=None):
    """log Σ a_i b_j exp(−(x_i − y_j)²/2V), over the pairs marked in ``kept`` (all by default)."""
    x, y = _wide(x), _wide(y)
    a, b = _wide(_ones(x) if a is None else a), _wide(_ones(y) if b is None else b)
    exponents = -((x[:, None] - y[None, :]) ** 2) / (2 * np.longdouble(variance))
    weights = a[:, None] * b[None, :]
    if kept is not None:
        exponents, weights = exponents[kept], weights[kept]
    largest = exponents.max()
    return largest + np.log(np.sum(weights * np.exp(exponents - largest)))


def log_ip(x, y, variance, a=None, b=None, kept=None):
    """log of Σ a_i b_j exp(−(x_i − y_j)²/2V) / (√(2πV) Σa Σb)."""
    total = (len(x) if a is None else np.sum(_wide(a))) * (len(y) if b is None else np.sum(_wide(b)))
    norm = np.log(2 * np.longdouble(np.pi) * variance) / 2 + np.log(np.longdouble(total))
    return log_sum(x, y, variance, a, b, kept) - norm


def ip(x, y, variance, a=None, b=None):
    return float(np.exp(log_ip(x, y, variance, a, b)))


def discarding_threshold(variance, eps, p=1.0):
    inside = 2 * (eps / p) ** 2 * math.pi * variance
    return math.sqrt(max(0.0, -variance * math.log(inside)))


def bin_width(variance, eps):
    inside = max(0.0, 1 - eps * math.sqrt(2 * math.pi * variance))
    return math.inf if inside == 0 else math.sqrt(-2 * variance * math.log(inside))


def window(x, y, variance, eps):
    """The pairs that Theorem 1 keeps."""
    return np.abs(np.subtract.outer(x, y)) <= discarding_threshold(variance, eps)


def discard_ip(x, y, variance, eps):
    """ip over the pairs in the window; zero where the window is empty."""
    kept = window(x, y, variance, eps)
    return float(np.exp(log_ip(x, y, variance, kept=kept))) if kept.any() else 0.0


def bin_matrix(x, origin, width, a=None):
    """One row an occupied bin: a point's share in the mean of the bin. Also the bins' weights."""
    a = np.ones(len(x)) if a is None else np.asarray(a)
    keys = np.zeros(len(x)) if math.isinf(width) else np.floor((np.asarray(x) - origin) / width)
    member = (np.unique(keys)[:, None] == keys[None, :]) * a
    weights = member.sum(axis=1)
    return member / weights[:, None], weights


def binned_ip(x, y, variance, eps):
    """ip of the bins' means, bins anchored at the smallest point."""
    width, origin = bin_width(variance, eps), min(np.min(x), np.min(y))
    (share_x, a), (share_y, b) = bin_matrix(x, origin, width), bin_matrix(y, origin, width)
    return ip(share_x @ x, share_y @ y, variance, a, b)


def centred_bin_ip(x, y, variance, width, origin):
    """ip of bins' *centres*, for which the theorem does not hold."""
    centres = [origin + (np.floor((np.asarray(p) - origin) / width) + 0.5) * width for p in (x, y)]
    return ip(*centres, variance)


# ------------------------------------------------------------------------------------------- moment bins


def chebyshev_nodes(order):
    return np.cos((2 * np.arange(order) + 1) * np.pi / (2 * order))


def lagrange(nodes, u):
    """The polynomials that are one at a node and zero at the others, at every u: shape (nodes, points)."""
    return np.array([np.prod([(u - o) / (a - o) for o in nodes if o != a], axis=0) for a in nodes])


def interpolated_kernel(u, t, offset, width, variance, order):
    """g(x − y) interpolated in both arguments: x at u in one bin, y at t in the bin ``offset`` bins below."""
    nodes = chebyshev_nodes(order)
    distance = (offset + np.subtract.outer(nodes, nodes) / 2) * width
    return lagrange(nodes, u).T @ np.exp(-(distance**2) / (2 * variance)) @ lagrange(nodes, t)


def bin_moments(z, weights, width, order):
    """Bins as a dictionary: the number of a bin, and Σ w u^j of its points."""
    keys = np.floor(z / width)
    u = 2 * (z / width - keys) - 1
    return {
        int(k): np.array([np.sum(weights[keys == k] * u[keys == k] ** j) for j in range(order)])
        for k in np.unique(keys)
    }


def feature_moments(X, z, weights, width, order):
    """Bins as a dictionary: the number of a bin, and Σ w u^j x of its rows, for every feature x and j < order − 1."""
    moments = [bin_moments(z, weights * x, width, order) for x in X.T]
    return {k: np.array([of_feature[k][:-1] for of_feature in moments]) for k in moments[0]}


def rim_bins(z, weights, width, level, depth, order):
    """bin_moments of narrow bins, 2**level to an ordinary one; without those more than ``depth`` behind the first and
    the last of the same ordinary bin."""
    narrow = bin_moments(z, weights, width, order)
    kept = {}
    for k, moments in narrow.items():
        mates = [other for other in narrow if other >> level == k >> level]
        if k - min(mates) <= depth or max(mates) - k <= depth:
            kept[k] = moments
    return kept


def interval_distances(low, widths, other_low, other_widths):
    """For every interval the least distance to any of the others."""
    gaps = [
        max(0.0, min(max(b - (a + w), a - (b + u)) for b, u in zip(other_low, other_widths, strict=True)))
        for a, w in zip(low, widths, strict=True)
    ]
    return np.array(gaps)


def moment_sum(x, a, y, b, width, variance, order):
    """Σ a_i b_j ĝ(x_i, y_j) over all pairs of points, ĝ the kernel interpolated in the bins of both."""
    total = 0.0
    for x_i, a_i in zip(x, a, strict=True):
        for y_j, b_j in zip(y, b, strict=True):
            k, l = math.floor(x_i / width), math.floor(y_j / width)  # noqa: E741
            u, t = 2 * (x_i / width - k) - 1, 2 * (y_j / width - l) - 1
            total += a_i * b_j * interpolated_kernel(np.array([u]), np.array([t]), k - l, width, variance, order)[0, 0]
    return total


@functools.cache
def node_tables(order):
    """Of P Chebyshev nodes: the coefficients of the Lagrange polynomials, half the differences, He⁺_P from the constant
    up, twice one plus the Lebesgue constant, and log P!."""
    nodes = chebyshev_nodes(order)
    basis = [np.polynomial.Polynomial.fromroots([o for o in nodes if o != a]) for a in nodes]
    coefficients = np.array([(p / p(a)).coef for p, a in zip(basis, nodes, strict=True)])
    lebesgue = np.abs(lagrange(nodes, np.linspace(-1, 1, 2001))).sum(axis=0).max()
    hermite = np.abs(np.polynomial.hermite_e.herme2poly([0] * order + [1]))  # all signs made positive
    return coefficients, np.subtract.outer(nodes, nodes) / 2, hermite, 2 * (1 + lebesgue), math.lgamma(order + 1)


def pair_error(offset, width, variance, order):
    """The bound on the error of one pair of points in bins ``offset`` apart: see melc.sums.bounds.moment_bin_error."""
    s = math.sqrt(variance)
    near, far = max(offset - 1, 0) * width, (offset + 1) * width
    _, _, hermite, factor, _ = node_tables(order)
    cramer = math.sqrt(math.factorial(order)) * np.exp(-(_wide(near) ** 2) / (4 * variance))
    direct = np.polynomial.polynomial.polyval(far / s, hermite) * np.exp(-(_wide(near) ** 2) / (2 * variance))
    return factor * (width / (4 * s)) ** order / math.factorial(order) * min(cramer, direct)


@dataclass
class BinSum:
    """A sum over pairs of bins with its derivative by V and its error, and the polynomials of ∂ log S/∂z."""

    value: np.longdouble
    slope: np.longdouble
    error: np.longdouble
    polynomials: list


def sum_bins(x, y, width, variance, order):
    """Σ over all pairs of bins of two dictionaries as bin_moments gives them; within a class both are the same one.

    The kernel is interpolated at the nodes of both bins: the points of a bin are charges at its nodes. The derivative
    by the place of a point at u in a bin is that of the potential, a polynomial through the potential at the nodes.
    """
    nodes, V = _wide(chebyshev_nodes(order)), np.longdouble(variance)
    coefficients = node_tables(order)[0]
    charges = [{k: _wide(coefficients @ m) for k, m in side.items()} for side in (x, y)]
    value = slope = error = np.longdouble(0)
    potentials = [{k: np.zeros(order, dtype=np.longdouble) for k in side} for side in (x, y)]
    for k, q in charges[0].items():
        for l, r in charges[1].items():  # noqa: E741
            t = (k - l + np.subtract.outer(nodes, nodes) / 2) * width
            g = np.exp(-(t**2) / (2 * V))
            value += q @ g @ r
            slope += q @ (g * t**2 / (2 * V**2)) @ r
            error += x[k][0] * y[l][0] * pair_error(abs(k - l), width, variance, order)
            potentials[0][k] += g @ r
            potentials[1][l] += q @ g
    polynomials = []
    for side in potentials:
        table = np.zeros((len(side), order))
        for row, k in enumerate(sorted(side)):
            potential = np.polynomial.Polynomial((side[k] / value).astype(float) @ coefficients)
            table[row, : order - 1] = potential.deriv().coef * 2 / width
        polynomials.append(table)
    if x is y:  # a point is on both sides
        polynomials = [polynomials[0] + polynomials[1]]
    return BinSum(value, slope, error, polynomials)


# --------------------------------------------------------------------------------------------- divergence


def kernel_variances(z, codes, gamma, weights=None, keep=(1, 1), add=(0, 0)):
    """(γ (4/3n)^(1/5))² σ² of both classes, σ² at least the floor's fraction of the total variance.

    With shrinkage, σ² is ``keep`` times the variance, plus ``add``.
    """
    z = _wide(z)
    w = _ones(z) if weights is None else _wide(weights)

    def variance(members):
        mean = np.sum(w[members] * z[members]) / np.sum(w[members])
        return np.sum(w[members] * (z[members] - mean) ** 2) / np.sum(w[members])

    floor = VARIANCE_FLOOR * variance(np.ones(len(z), dtype=bool))
    found = []
    for c in (0, 1):
        n = np.sum(w[codes == c])
        silverman = gamma * (4 / (3 * n)) ** (np.longdouble(1) / 5)
        found.append(silverman**2 * max(keep[c] * variance(codes == c) + add[c], floor))
    return found


@dataclass
class FrozenDivergence:
    """D along any v with the windows or bins that a method has at one direction v₀.

    This is the smooth function that the method's gradient at v₀ belongs to.
    """

    X: np.ndarray
    codes: np.ndarray
    v0: np.ndarray
    gamma: float = 1.0
    method: str = "exact"
    eps: float | None = None
    weights: np.ndarray | None = None
    shrinkage: tuple | None = None  # intensities and targets of both classes, and the scales of the features

    def __post_init__(self):
        self.X = _wide(self.X)
        self.members = [self.codes == c for c in (0, 1)]
        self.w = np.ones(len(self.codes)) if self.weights is None else np.asarray(self.weights)
        z = (self.X @ _wide(self.v0)).astype(float)
        variances = [float(V) for V in self._variances(z, self.v0)]
        self.frozen = {
            (a, b): self._freeze(z[self.members[a]], z[self.members[b]], variances[a] + variances[b], a, b)
            for a, b in ((0, 0), (1, 1), (0, 1))
        }

    def _variances(self, z, v):
        if self.shrinkage is None:
            return kernel_variances(z, self.codes, self.gamma, self.weights)
        intensities, targets, scale = self.shrinkage
        keep = [1 - intensity for intensity in intensities]
        add = [i * t * np.sum((_wide(scale) * v) ** 2) for i, t in zip(intensities, targets, strict=True)]
        return kernel_variances(z, self.codes, self.gamma, self.weights, keep, add)

    def _freeze(self, x, y, variance, a, b):
        if self.method == "discard":
            return window(x, y, variance, self.eps)
        if self.method == "bin":
            width, origin = bin_width(variance, self.eps), min(x.min(), y.min())
            w_x, w_y = self.w[self.members[a]], self.w[self.members[b]]
            return bin_matrix(x, origin, width, w_x), bin_matrix(y, origin, width, w_y)
        return None

    def __call__(self, v):
        z = self.X @ _wide(v)
        variances = self._variances(z, v)
        terms = {(a, b): self._log_ip(z, a, b, variances[a] + variances[b]) for a, b in ((0, 0), (1, 1), (0, 1))}
        return terms[0, 0] + terms[1, 1] - 2 * terms[0, 1]

    def _log_ip(self, z, a, b, variance):
        x, y = z[self.members[a]], z[self.members[b]]
        w_x, w_y = self.w[self.members[a]], self.w[self.members[b]]
        frozen = self.frozen[a, b]
        if self.method == "bin":
            (share_x, bins_x), (share_y, bins_y) = frozen
            return log_ip(share_x @ x, share_y @ y, variance, bins_x, bins_y)
        return log_ip(x, y, variance, w_x, w_y, frozen)

    def gradient(self, step=2e-4):
        """Central differences of fourth order."""
        h = step * np.linalg.norm(self.v0)
        slopes = []
        for e in np.eye(len(self.v0)):
            one = self(self.v0 + h * _wide(e)) - self(self.v0 - h * _wide(e))
            two = self(self.v0 + 2 * h * _wide(e)) - self(self.v0 - 2 * h * _wide(e))
            slopes.append((8 * one - two) / (12 * h))
        return np.array(slopes, dtype=float)


def divergence(X, codes, v, gamma=1.0, weights=None):
    return float(FrozenDivergence(X, codes, v, gamma, weights=weights)(v))


def penalised(X, codes, v, gamma=1.0):
    """D(v) − (‖v‖² − 1)², what an optimiser out of the sphere maximises."""
    return divergence(X, codes, v, gamma) - (float(np.dot(v, v)) - 1) ** 2


# ------------------------------------------------------------------------------- densities and thresholds


def log_density(t, points, variance, weights=None, rows_at_once=1000):
    """log of the kernel density at every t."""
    points, w = _wide(points), _ones(points) if weights is None else _wide(weights)
    out = np.empty(len(t), dtype=np.longdouble)
    for i in range(0, len(t), rows_at_once):
        exponents = -((_wide(t[i : i + rows_at_once])[:, None] - points) ** 2) / (2 * variance)
        largest = exponents.max(axis=1)
        total = np.sum(w * np.exp(exponents - largest[:, None]), axis=1)
        out[i : i + rows_at_once] = largest + np.log(total)
    return out - np.log(np.sum(w)) - np.log(2 * np.longdouble(np.pi) * variance) / 2


def log_ratio(t, classes, variances, log_prior_ratio=0.0):
    """log f₊ − log f₋ at every t, ``classes`` the projections of both."""
    return log_density(t, classes[1], variances[1]) - log_density(t, classes[0], variances[0]) + log_prior_ratio


def thresholds_on_grid(grid, classes, variances, log_prior_ratio=0.0):
    """Pairs of neighbours on the grid between which the sign of f₊ − f₋ changes."""
    positive = log_ratio(grid, classes, variances, log_prior_ratio) > 0
    changes = np.flatnonzero(positive[1:] != positive[:-1])
    return [(grid[i], grid[i + 1]) for i in changes]


def classify(z, classes, variances, log_prior_ratio=0.0):
    """The class of the larger density, 0 or 1."""
    return (log_ratio(z, classes, variances, log_prior_ratio) > 0).astype(int)


def log_odds(t, classes, variances):
    """log (f₊ + b) − log (f₋ + b), b a Cauchy density three times as wide as the classes, of five rows of each."""
    t, (low, high) = _wide(t), [_wide(points) for points in classes]
    f = [np.exp(log_density(t, points, V)) for points, V in zip((low, high), variances, strict=True)]
    b = background(t, classes, variances)
    return np.log(f[1] + b) - np.log(f[0] + b)


def background(t, classes, variances):
    """The density of the pseudo-rows of both classes, as parts of their rows."""
    low, high = (_wide(points) for points in classes)
    centre = (low.mean() + high.mean()) / 2
    squares = [np.mean((points - centre) ** 2) + V for points, V in zip((low, high), variances, strict=True)]
    scale = 3 * np.sqrt((squares[0] + squares[1]) / 2)
    weight = 2 * min(1, 5 / len(low) / 2 + 5 / len(high) / 2, 40 / (len(low) + len(high)))
    return weight / (np.longdouble(np.pi) * scale * (1 + ((t - centre) / scale) ** 2))


def interval_gains(classes, variances, thresholds, n_intervals, log_prior_ratio=0.0):
    """What each interval between thresholds earns, in rows, every row left out of its own density."""
    priors = 1 / (1 + np.exp(log_prior_ratio)), 1 / (1 + np.exp(-log_prior_ratio))
    n_effective = 1 / sum(prior**2 / len(points) for prior, points in zip(priors, classes, strict=True))
    gains = np.zeros(n_intervals)
    for c, points in enumerate(classes):
        for i, z in enumerate(points):
            at = np.array([z])
            others = np.delete(points, i)
            mine = np.exp(log_density(at, others, variances[c]))[0] if len(others) else 0.0
            other = np.exp(log_density(at, classes[1 - c], variances[1 - c]))[0]
            b = background(_wide(at), classes, variances)[0]
            odds = (mine + b) / (other + b) * (priors[c] / priors[1 - c])
            gains[sum(t <= z for t in thresholds)] += (
                n_effective * priors[c] / len(points) * float(np.log(odds / (1 + odds)) + np.log(2))
            )
    return gains


def earned(thresholds, codes, gains, has_own_rows, log_height):
    """Thresholds left after intervals that earn less than one row were joined, one by one, the least first.

    Of equals the one between lower densities is the first; ``log_height`` is that of the higher density at a point. One
    without rows of its own class always goes; others only as long as both classes keep an interval.
    """
    intervals = [
        {"code": code, "gain": gain if own else -np.inf}
        for code, gain, own in zip(codes, gains, has_own_rows, strict=True)
    ]
    thresholds = list(thresholds)

    def may_go(j):
        left = intervals[:j] + intervals[j + 1 :]
        both = len({each["code"] for each in left}) == 2
        return len(intervals) > 1 and intervals[j]["gain"] < 1 and (both or intervals[j]["gain"] == -np.inf)

    while able := [j for j in range(len(intervals)) if may_go(j)]:
        ends = [thresholds[max(j - 1, 0) : j + 1] for j in range(len(intervals))]
        heights = [np.logaddexp.reduce([log_height(t) for t in each]) for each in ends]
        j = min(able, key=lambda j: (intervals[j]["gain"], heights[j]))
        around = [intervals[k] for k in (j - 1, j + 1) if 0 <= k < len(intervals)]
        gains = [each["gain"] for each in around if each["gain"] > -np.inf]
        joined = {"code": around[0]["code"], "gain": sum(gains) if gains else -np.inf}
        intervals[max(j - 1, 0) : j + 2] = [joined]
        thresholds[max(j - 1, 0) : j + 1] = []
    return thresholds, [each["code"] for each in intervals]


def dot(a, b):
    """Σ a_i b_i, one by one."""
    return sum(x * y for x, y in zip(a, b, strict=True))


# ---------------------------------------------------------------------------------------- the grid of the search


def spline_charges(z, weights, origin, width, n_nodes):
    """Points to charges at nodes: a point at u in cell k gives its weight to k … k + 3 by the cubic B-spline."""
    cells = np.floor((z - origin) / width).astype(int)
    u = (z - origin) / width - cells
    shares = (1 - u) ** 3, 4 - 6 * u**2 + 3 * u**3, 1 + 3 * u + 3 * u**2 - 3 * u**3, u**3
    charges = np.zeros(n_nodes)
    for j, share in enumerate(shares):
        np.add.at(charges, cells + j, weights * share / 6)
    return charges


def node_kernel(t, variance, width):
    """K(t) with spline ∗ K ∗ spline = exp(−t²/2V) + O(h⁶)."""
    inner = variance - 2 * width**2 / 3
    x = t / math.sqrt(inner)
    hermite = x**4 - 6 * x**2 + 3
    return math.sqrt(variance / inner) * np.exp(-(x**2) / 2) * (1 + width**4 / (360 * inner**2) * hermite)


def pair_sum(charges, others, variance, width):
    """Σ q_k q′_l K((k − l) h) over all pairs of nodes that have charges."""
    k, l = np.flatnonzero(charges), np.flatnonzero(others)  # noqa: E741
    return float(charges[k] @ node_kernel(width * np.subtract.outer(k, l), variance, width) @ others[l])


@dataclass
class GridDivergence:
    """D on a uniform grid, over all pairs of nodes. The grid stays that of the points it is made for."""

    z: np.ndarray
    codes: np.ndarray
    gamma: float = 1.0
    weights: np.ndarray | None = None

    def __post_init__(self):
        """The width of the cells: by how much the classes overlap. No width where a grid does not do."""
        self.w = np.ones(len(self.z)) if self.weights is None else np.asarray(self.weights, dtype=float)
        least = float(min(self._variances(self.z)))
        self.width = None
        for cells, overlap in ((0.5, 2e-2), (0.3, 1e-3), (0.2, 1e-4), (0.1, 0.0)):
            width = cells * math.sqrt(2 * least)
            if not (least > 0 and np.ptp(self.z) / width + 3 < 2048):
                break
            self.origin, self.n_nodes = self.z.min() - width / 2, int(np.ptp(self.z) / width) + 6
            found = self._sums(self.z, width)[1] / (self.w[self.codes == 0].sum() * self.w[self.codes == 1].sum())
            if not found > 1e-7:
                break
            if found >= overlap:
                self.width = width
                break

    def _variances(self, z):
        found = []
        for c in (0, 1):
            w, mine = self.w[self.codes == c], z[self.codes == c]
            variance = np.sum(w * (mine - np.sum(w * mine) / w.sum()) ** 2) / w.sum()
            found.append((self.gamma * (4 / (3 * w.sum())) ** 0.2) ** 2 * variance)
        return found

    def _sums(self, z, width):
        """log S_xx + log S_yy − 2 log S_xy, S_xy, and the three variances."""
        vx, vy = self._variances(z)
        q, r = (
            spline_charges(z[self.codes == c], self.w[self.codes == c], self.origin, width, self.n_nodes)
            for c in (0, 1)
        )
        xx, yy, xy = (pair_sum(a, b, V, width) for a, b, V in ((q, q, 2 * vx), (r, r, 2 * vy), (q, r, vx + vy)))
        logs = math.log(xx) + math.log(yy) - 2 * math.log(xy) if min(xx, yy, xy) > 0 else math.nan
        return logs, xy, (2 * vx, 2 * vy, vx + vy)

    def __call__(self, z):
        if self.width is None:
            return math.nan
        logs, _, (xx, yy, xy) = self._sums(z, self.width)
        return logs + math.log(xy) - (math.log(xx) + math.log(yy)) / 2

    def slope(self, i, step=1e-3):
        """∂D/∂z_i on this grid, by central differences of fourth order; the step is in cells."""
        h, e = step * self.width, np.eye(len(self.z))[i]
        one, two = (self(self.z + k * h * e) - self(self.z - k * h * e) for k in (1, 2))
        return (8 * one - two) / (12 * h)


# --------------------------------------------------------------------------------------------- along the sphere


def _two_loops(gradient, pairs):
    """L-BFGS: the direction of ascent by the last steps s and changes y of the negative gradient, the newest last."""
    direction, alphas = gradient.copy(), []
    for s, y in pairs[::-1]:
        alphas.append(s @ direction / (s @ y))
        direction -= alphas[-1] * y
    if pairs:
        s, y = pairs[-1]
        direction *= s @ y / (y @ y)
    else:
        direction *= 0.2 / np.linalg.norm(gradient)
    for (s, y), alpha in zip(pairs, alphas[::-1], strict=True):
        direction += (alpha - y @ direction / (s @ y)) * s
    return direction


def sphere_ascent(f, start, tol, progress, max_iter, pairs=()):
    """Maximise f, which gives value and gradient, along the unit sphere; the accepted points, their values, how it
    ended, and the steps and changes that it remembers."""
    p, pairs, idle = start / np.linalg.norm(start), list(pairs), 0
    value, gradient = f(p)
    gradient = gradient - gradient @ p * p
    path, values = [p], [value]
    while True:
        if np.abs(gradient).max() <= tol:
            return path, values, "converged", pairs
        if idle == 2:
            return path, values, "settled", pairs
        if len(path) > max_iter:
            return path, values, "limited", pairs
        direction = _two_loops(gradient, pairs)
        direction -= direction @ p * p
        if not direction @ gradient > 0:
            pairs, direction = [], gradient
        slope, step = direction @ gradient, min(1.0, 0.5 / np.linalg.norm(direction))
        for _ in range(13):
            q = (p + step * direction) / np.linalg.norm(p + step * direction)
            new, new_gradient = f(q)
            if new >= value + 1e-4 * step * slope:
                break
            missing = 2 * (slope * step - (new - value))
            best = slope * step**2 / missing if missing > 0 else step / 2
            step = min(max(best, step / 10), step / 2)
        else:
            return path, values, "stalled", pairs
        new_gradient = new_gradient - new_gradient @ q * q
        s, y = q - p, gradient - new_gradient
        if s @ y > 1e-10 * (y @ y):
            pairs = [*pairs, (s, y)][-10:]
        idle = idle + 1 if new - value <= progress * max(abs(new), 1) else 0
        p, value, gradient = q, new, new_gradient
        path.append(p)
        values.append(value)


# ------------------------------------------------------------------------------------------- one after the other


def thinned(points, step):
    """The first point, then every one that is a step or more above the last one taken; and the last."""
    kept = [points[0]]
    for point in points[1:]:
        if point >= kept[-1] + step:
            kept.append(point)
    return np.array([*kept, points[-1]])


def search_grid(supports, bandwidth):
    """Where sign changes are looked for: steps of an eighth of a bandwidth, at most 64 in a gap."""
    step = bandwidth / 8
    support = np.unique(np.concatenate(supports))
    anchors = thinned(support, step)
    counts = np.clip(np.ceil(np.diff(anchors) / step), 1, 64).astype(int)
    inside = [np.linspace(a, b, n, endpoint=False) for a, b, n in zip(anchors[:-1], anchors[1:], counts, strict=True)]
    return np.unique(np.concatenate([*inside, [support[-1]]]))


def canonical(X, index, weights):
    """Rows sorted by class and features, equal ones merged with the sum of their weights, one by one.

    Of two classes the first is the one whose sorted rows, in memory, come first as text.
    The features are compared in the order of ``Σ (s + s²)`` over the classes, where s is the mean over all rows of the
    feature times the sum of the third powers of the row, with rows of other classes taken as zero. Features with a
    negative skewness count with the other sign.
    """
    total = {}
    for row, c, weight in zip(X.tolist(), index.tolist(), weights.tolist(), strict=True):
        total.setdefault((c, *row), []).append(weight)
    copies = [(key, sum(total[key]) / weights.sum()) for key in sorted(total)]
    rows, shares = np.array([key[1:] for key, _ in copies]), np.array([share for _, share in copies])
    mean = np.average(rows, axis=0, weights=shares)
    with np.errstate(all="ignore"):
        standard = np.nan_to_num((rows - mean) / np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=shares)))
    signs = [-1 if shares @ standard[:, j] ** 3 < -1e-9 else 1 for j in range(rows.shape[1])]
    standard *= signs
    products = np.zeros(rows.shape[1])
    for c in np.unique(index):
        for j in range(rows.shape[1]):
            s = sum(
                share * (standard[i] ** 3).sum() * standard[i, j]
                for i, (key, share) in enumerate(copies)
                if key[0] == c
            )
            products[j] += s + s**2
    columns = sorted(range(rows.shape[1]), key=products.__getitem__)

    def content(key):
        return [signs[j] * key[1 + j] + 0.0 for j in columns]  # no negative zeros

    def contents(c):
        return np.array([[*content(key), sum(sorted(total[key]))] for key in ordered if key[0] == c]).tobytes()

    ordered = sorted(total, key=content)
    keys = [key for c in sorted(np.unique(index).tolist(), key=contents) for key in ordered if key[0] == c]
    rows, classes = np.array([key[1:] for key in keys]), np.array([key[0] for key in keys])
    return rows, classes, np.array([sum(sorted(total[key])) for key in keys])


# ------------------------------------------------------------------------------------ lines of the additive model


@dataclass
class LineGuide:
    """The bandwidth of a line, the background of its densities, and the deviation within the classes."""

    bandwidth: float
    background: float
    deviation: float
    limits: tuple[float, float]  # rows beyond them count there


def line_guide(z, codes, masses, factor, pseudo_mass):
    """Outliers are left out as long as what is left varies, less than before, and is half of either class or more."""
    z, masses = _wide(z), _wide(masses)
    total = [masses[codes == c].sum() for c in (0, 1)]
    kept, deviation = np.ones(len(z), dtype=bool), np.inf
    for _ in range(21):
        means, variances = [], []
        for c in (0, 1):
            x, m = z[kept & (codes == c)], masses[kept & (codes == c)]
            means.append(np.sum(m * x) / m.sum())
            variances.append(np.sum(m * (x - means[c]) ** 2) / m.sum())
        trimmed = np.sqrt((variances[0] + variances[1]) / 2)
        if np.isfinite(deviation) and not 1e-9 * deviation < trimmed < 0.99 * deviation:
            break
        deviation, last = trimmed, means
        reach = 8 * np.sqrt(deviation**2 + (means[1] - means[0]) ** 2 / 4)
        kept = np.abs(z - (means[0] + means[1]) / 2) <= reach
        if kept.all() or any(masses[kept & (codes == c)].sum() < 0.5 * total[c] for c in (0, 1)):
            break
    middle = (last[0] + last[1]) / 2
    reach = 8 * np.sqrt(deviation**2 + (last[1] - last[0]) ** 2 / 4)
    return LineGuide(factor * deviation, pseudo_mass / (6 * deviation), deviation, (middle - reach, middle + reach))


def line_densities(points, z, codes, masses, factor):
    """f_c(t) = Σ_{i in c} mass_i N(t; z_i, h²) of both classes at every t: shape (2, points)."""
    guide = line_guide(z, codes, masses, factor, 0.0)
    h = guide.bandwidth
    z, points, masses = np.clip(_wide(z), *guide.limits), _wide(points), _wide(masses)
    kernels = np.exp(-(((points[:, None] - z[None, :]) / h) ** 2) / 2) / (np.sqrt(2 * np.longdouble(np.pi)) * h)
    return np.array([np.sum(kernels[:, codes == c] * masses[codes == c], axis=1) for c in (0, 1)], dtype=float)


def line_gains(z, codes, masses, own, factor, pseudo_mass, ends):
    """What a line adds to the log-odds of each row, if the row itself is left out of the density of its class.

    Beyond the ``ends`` the curve is constant. A row of several copies leaves out one of them.
    """
    guide = line_guide(z, codes, masses, factor, pseudo_mass)
    z = np.clip(z, *(float(limit) for limit in guide.limits))
    gains = []
    for i, c in enumerate(codes):
        at = np.clip(z[i], *ends)
        left = np.array(masses, dtype=float)
        left[i] -= own[i]
        kernels = np.exp(-(((at - z) / guide.bandwidth) ** 2) / 2) / (math.sqrt(2 * math.pi) * guide.bandwidth)
        density = [np.sum((left * kernels)[codes == k]) for k in (0, 1)]
        total = np.sum(masses[codes == c])
        if total > 1.0000001 * own[i]:
            density[c] *= total / (total - own[i])
        gains.append(np.log((density[1] + guide.background) / (density[0] + guide.background)))
    return np.array(gains, dtype=float)


def likelihood(codes, targets, log_odds):
    """Σ target log P(class)."""
    return float(
        np.sum([-t * np.logaddexp(0, -o if c else o) for c, t, o in zip(codes, targets, log_odds, strict=True)])
    )


def angles(n_angles, n_halvings, value):
    """The best of n angles over half a turn, then of its two neighbours at half the distance, and so on."""
    step = math.pi / n_angles
    best = max((value(k * step), -k) for k in range(n_angles))
    best, at = best[0], -best[1] * step
    for _ in range(n_halvings):
        step /= 2
        middle = at
        for angle in (middle - step, middle + step):
            if value(angle) > best:
                best, at = value(angle), angle
    return best, at


def plane_weights(angle, correlation):
    """Weights of two features of variance one: an angle among directions that are round in their covariance."""
    height = math.sqrt(max(1 - correlation**2, 1e-3))
    return np.array([math.cos(angle) - correlation * math.sin(angle) / height, math.sin(angle) / height])


def pair_gain(x, y, residuals, curvatures, ridge):
    """Σ_bins (Σ residuals)² / (ridge + Σ curvatures), of 24 bins over five deviations, along x + y or x − y."""
    found = []
    for z in (x + y, x - y):
        bins = np.clip(np.floor(24 / 5 * z / math.sqrt(2) + 12), 0, 23)
        found.append(sum(residuals[bins == k].sum() ** 2 / (ridge + curvatures[bins == k].sum()) for k in range(24)))
    return max(found)


def between_knots(knots, values, z):
    """A piecewise linear curve at one point, constant outside its knots."""
    if z <= knots[0]:
        return values[0]
    if z >= knots[-1]:
        return values[-1]
    k = max(i for i in range(len(knots)) if knots[i] <= z)
    share = (z - knots[k]) / (knots[k + 1] - knots[k])
    return values[k] + share * (values[k + 1] - values[k])


def sign_changes(knots, values):
    """Zeros between neighbouring knots of different sign, which has none of value zero."""
    told = list(zip(knots, values, strict=True))
    return [
        k + (m - k) * abs(v) / (abs(v) + abs(w)) for (k, v), (m, w) in itertools.pairwise(told) if (v > 0) != (w > 0)
    ]


def simplified(knots, values, tolerance):
    """Douglas and Peucker, as everybody knows it: the corner farthest from the chord splits the curve in two."""
    if len(knots) < 3:
        return list(knots), list(values)
    distances = [
        abs(values[i] - between_knots([knots[0], knots[-1]], [values[0], values[-1]], knots[i]))
        for i in range(1, len(knots) - 1)
    ]
    if max(distances) <= tolerance:
        return [knots[0], knots[-1]], [values[0], values[-1]]
    corner = 1 + int(np.argmax(distances))
    first = simplified(knots[: corner + 1], values[: corner + 1], tolerance)
    second = simplified(knots[corner:], values[corner:], tolerance)
    return first[0] + second[0][1:], first[1] + second[1][1:]


def penalised_likelihood(X, codes, v, penalty=0.7, largest_ratio=3, pseudo_rows=5):
    """The likelihood by which a direction is chosen: every row left out, less 0.7 (d / n) min(‖u‖² / uᵀΣu, 3)."""
    totals = np.bincount(codes)
    targets = 0.5 / totals[codes]
    n = 4 / np.sum(1 / totals)
    masses = targets / 2  # half of every target is unexplained by even odds
    factor = (4 / (3 * 2 / np.sum(1 / totals))) ** 0.2
    z = X @ v
    ends = np.sort(z)[[pseudo_rows - 1, -pseudo_rows]]
    gains = line_gains(z, codes, masses, masses, factor, pseudo_rows * masses.sum() / n, ends)
    means = [z[codes == c].mean() for c in (0, 1)]
    variance = np.mean([np.mean((z[codes == c] - np.mean(means)) ** 2) for c in (0, 1)])
    size = np.sum((v * X.std(axis=0)) ** 2)
    return likelihood(codes, targets, gains) - penalty * len(v) / n * min(size / variance, largest_ratio)


def leading(curves):
    """Where another curve becomes the highest, and the highest in each interval: all pairs of curves are crossed."""
    places = {float(knot) for knots, _ in curves for knot in knots}
    for low, high in itertools.pairwise(sorted(places)):
        ends = [(between_knots(*curve, low), between_knots(*curve, high)) for curve in curves]
        for (a, b), (c, d) in itertools.combinations(ends, 2):
            if (a - c) * (b - d) < 0:
                places.add(low + (a - c) / ((a - c) - (b - d)) * (high - low))
    places = sorted(places)
    middles = [places[0] - 1, *((low + high) / 2 for low, high in itertools.pairwise(places)), places[-1] + 1]
    highest = [int(np.argmax([between_knots(*curve, middle) for curve in curves])) for middle in middles]
    changes = [k for k in range(len(places)) if highest[k] != highest[k + 1]]
    return [places[k] for k in changes], [highest[0], *(highest[k + 1] for k in changes)]


# ----------------------------------------------------------------------------------------- curves fitted together

LEAST_CURVATURE = 1e-6


def hats(z, knots):
    """Every hat function at every point: one at its knot, zero at the others, linear between; shape (n, n_knots)."""
    return np.array([[between_knots(knots, each, at) for each in np.eye(len(knots))] for at in z])


def curve_basis(z, knots):
    """A column of ones, and the hats of each line: rows of projections z, shape (n_lines, n)."""
    return np.hstack([np.ones((len(z[0]), 1)), *(hats(along, each) for along, each in zip(z, knots, strict=True))])


def block_probabilities(basis, beta):
    """The probability of the second of two classes, from one block, or of each class; shape (n, n_blocks)."""
    odds = basis @ np.transpose(beta)
    if len(beta) == 1:
        return 1 / (1 + np.exp(-odds))
    terms = np.exp(odds - odds.max(axis=1, keepdims=True))
    return terms / terms.sum(axis=1, keepdims=True)


def block_members(codes, n_blocks):
    """Whether a row is of the class of a block; shape (n, n_blocks)."""
    return codes[:, None] == (np.array([1]) if n_blocks == 1 else np.arange(n_blocks))


def curve_likelihood(basis, codes, weights, beta):
    """Σ w log P(class)."""
    p = block_probabilities(basis, beta)
    own = np.where(codes == 1, p[:, 0], 1 - p[:, 0]) if len(beta) == 1 else p[np.arange(len(p)), codes]
    return float(np.sum(weights * np.log(own)))


def curve_gradient(basis, codes, weights, beta):
    """The derivatives of the likelihood by all coefficients, shape (n_blocks, p)."""
    residuals = block_members(codes, len(beta)) - block_probabilities(basis, beta)
    return (weights[:, None] * residuals).T @ basis


def curve_hessian(basis, weights, beta, block):
    """Negative second derivatives by the coefficients of a block, shape (p, p), with the least curvature of a row."""
    p = block_probabilities(basis, beta)[:, block]
    return (basis.T * weights * np.maximum(p * (1 - p), LEAST_CURVATURE)) @ basis


def whole_hessian(basis, weights, beta):
    """Negative second derivatives by all coefficients, one block after the other."""
    p = block_probabilities(basis, beta)
    n = range(len(beta))
    return np.block([[(basis.T * weights * p[:, a] * ((a == b) - p[:, b])) @ basis for b in n] for a in n])


def fitted_curves(basis, codes, weights, penalties):
    """The coefficients of the largest penalised likelihood, by Newton's method with halved steps."""
    beta, whole = np.zeros((len(penalties), basis.shape[1])), np.zeros(2 * [basis.shape[1] * len(penalties)])
    for b, penalty in enumerate(penalties):
        part = slice(b * len(penalty), (b + 1) * len(penalty))
        whole[part, part] = penalty

    def value(beta):
        return curve_likelihood(basis, codes, weights, beta) - 0.5 * beta.ravel() @ whole @ beta.ravel()

    for _ in range(100):
        slope = curve_gradient(basis, codes, weights, beta).ravel() - whole @ beta.ravel()
        hessian = whole_hessian(basis, weights, beta) + whole
        # The constants of several blocks may all be moved by the same number: the shortest step.
        step = np.linalg.lstsq(hessian, slope, rcond=1e-13)[0].reshape(beta.shape)
        while value(beta + step) < value(beta) - 1e-12 and np.abs(step).max() > 1e-9:
            step /= 2
        beta = beta + step
        if np.abs(step).max() < 1e-10:
            break
    return beta


def roughness(n_knots, information):
    """Σ (β_{j−1} − 2 β_j + β_{j+1})² as a matrix, scaled so that its trace is a quarter of the information."""
    matrix = np.zeros((n_knots, n_knots))
    for j in range(1, n_knots - 1):
        difference = np.zeros(n_knots)
        difference[j - 1 : j + 2] = 1, -2, 1
        matrix += np.outer(difference, difference)
    return matrix * (information / 4 / np.trace(matrix)) if n_knots > 2 else matrix


# ----------------------------------------------------------------------------------------- explanations and resamples


def integrated_gradients(function, x, reference, n=2000):
    """The mean of the gradient of a function of rows along the straight path from the reference to x, times x − r.

    Midpoints of n pieces, central differences.
    """
    path = reference + (np.arange(n)[:, None] + 0.5) / n * (x - reference)
    parts = np.empty(len(x))
    for j in range(len(x)):
        step = np.zeros(len(x))
        step[j] = 1e-6 * max(1.0, abs(x[j] - reference[j]))
        parts[j] = np.mean((function(path + step) - function(path - step)) / (2 * step[j])) * (x[j] - reference[j])
    return parts


def nearest_change_in_a_plane(predict, x, spread, wanted, farthest, n_angles=720, n_radii=800):
    """The least radius, in units of the spreads, at which rows around x in all directions of a plane are as wanted."""
    angles = np.linspace(0, 2 * np.pi, n_angles, endpoint=False)
    circle = np.column_stack([np.cos(angles), np.sin(angles)]) * spread
    for radius in np.linspace(0, farthest, n_radii + 1)[1:]:
        if np.any(wanted(predict(x + radius * circle))):
            return radius
    return math.inf


def repeated(X, y, counts):
    """Rows as often as they are drawn."""
    index = np.repeat(np.arange(len(y)), counts.astype(int))
    return X[index], y[index]


# ------------------------------------------------------------------------------------------------------------ tables


def level_scores(labels, index, weights, n_classes, pseudo=10):
    """The score of each level: shrunk shares of the classes, on the axis along which those of levels differ most."""
    totals = [sum(w for w, c in zip(weights, index, strict=True) if c == k) for k in range(n_classes)]
    balanced = [w * sum(totals) / n_classes / totals[c] for w, c in zip(weights, index, strict=True)]
    shares, masses = {}, {}
    for level in set(labels):
        rows = [i for i, label in enumerate(labels) if label == level]
        own = np.array([sum(balanced[i] for i in rows if index[i] == k) for k in range(n_classes)])
        masses[level] = own.sum()
        shares[level] = (own + pseudo / n_classes) / (own.sum() + pseudo) - 1 / n_classes
    if n_classes == 2:
        return {level: share[1] for level, share in shares.items()}
    scatter = sum(masses[level] * np.outer(share, share) for level, share in shares.items())
    axis = np.linalg.eigh(scatter)[1][:, -1]
    axis = axis * np.sign(axis @ np.arange(n_classes))
    return {level: share @ axis for level, share in shares.items()}


def table_log_odds(model, frame):
    """The log-odds of the rows of a table, one row and one line at a time; shape (n_rows, n_odds)."""
    columns, found = model.columns_, []
    for _, row in frame.iterrows():
        odds = np.array(model.intercepts_, dtype=float)
        for line in model.lines_:
            places = [_table_place(columns, model, j, row.iloc[j], line.reads_codes) for j in line.features]
            for c, curve in enumerate(line.curves):
                z = places[0] if line.reads_codes else line.direction[line.features] @ places
                odds[c] += curve.missing if np.isnan(z) else np.interp(z, curve.knots, curve.log_odds)
        found.append(odds)
    return np.array(found)


def _table_place(columns, model, j, value, reads_codes):
    """What a line reads of a column: a code, or a quantity."""
    gone = value is None or value != value
    if j in columns.categories:
        category = columns.categories[j]
        levels, value = list(category.levels), None if gone else value
        code = levels.index(value) if value in levels else len(levels) if category.others else None
        if reads_codes:
            return np.nan if code is None else code
        return 0.0 if code is None else category.scores[code]
    if j in columns.ranks and not gone:
        value = columns.ranks[j].index(value)
    if j in columns.dates and not gone:
        value = (value - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
    if gone:
        return np.nan if reads_codes else columns.places.get(j, model.feature_mean_[j])
    return float(value)


def best_exchange(score, weights, columns, codes):
    """The best score of all directions with one feature exchanged for another, at the angles that a search tries."""
    # Scalar products of these rows are covariances within the classes.
    parts = [columns[:, codes == c] for c in (0, 1)]
    centred = np.hstack([(x - x.mean(axis=1, keepdims=True)) / np.sqrt(2 * x.shape[1]) for x in parts])
    best = -np.inf
    for dropped in np.flatnonzero(weights):
        rest = np.where(np.arange(len(weights)) == dropped, 0.0, weights)
        rest = rest / np.linalg.norm(rest @ centred)
        for j in np.flatnonzero(weights == 0):
            across = np.eye(len(weights))[j] - (rest @ centred) @ centred[j] * rest
            across /= np.linalg.norm(across @ centred)
            best = max(best, angles(8, 5, lambda a, u=rest, v=across: score(np.cos(a) * u + np.sin(a) * v))[0])
    return best


def distance_of_means(columns, codes, used, ridge):
    """The squared distance between the class means of some features, in units of the variance within the classes."""
    first, second = (columns[np.ix_(used, np.flatnonzero(codes == c))] for c in (0, 1))
    within = 0.5 * (np.cov(first, ddof=0) + np.cov(second, ddof=0)) + ridge * np.eye(len(used))
    apart = second.mean(axis=1) - first.mean(axis=1)
    return apart @ np.linalg.solve(within, apart)


def best_whole_weights(score, n, largest):
    """The best score of all whole-number weights of n features."""
    everything = itertools.product(range(-largest, largest + 1), repeat=n)
    return max(score(np.array(weights, dtype=float)) for weights in everything if any(weights))
