"""Data, fits and comparisons that the tests of Dask share."""

import dask.array as da
import numpy as np

from melc import MELC
from melc.data.dask.rows import collect_partitions

N, D = 30_000, 8
CHUNKS = {
    "one": (N,),
    "uneven": (1, 9_999, 12_345, 0, 5_000, 2_655),
    "many": (1_000,) * 30,
}


def two_thresholds():
    """Features, labels and weights of two classes; the first 1,000 rows all belong to one of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    y = np.where(np.abs(X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=N)) > 1, "outside", "inside")
    y[:1_000] = "inside"
    return X, y, rng.uniform(0.5, 2.0, size=N)


def two_classes(kind):
    """Two classes that overlap, or that some direction tells apart."""
    rng = np.random.default_rng(7)
    y = rng.integers(2, size=40_000)
    X = {
        "overlapping": lambda: rng.normal(size=(40_000, 8)) + y[:, None] / 2,
        "wide": lambda: rng.normal(size=(40_000, 100)) + 2 * y[:, None],
        "sharp edges": lambda: rng.random(size=(40_000, 8)) + y[:, None],
        "crowds": lambda: rng.integers(2, size=(40_000, 60)) + y[:, None],
        "clusters": lambda: rng.normal(size=(40_000, 8)) + np.where(y, rng.choice([-9, 9], 40_000), 0)[:, None],
        "the class itself": lambda: np.column_stack([rng.normal(size=(40_000, 7)), y]),
        "heavy tails": lambda: rng.standard_cauchy((40_000, 8)) + 30 * y[:, None],
        "words": lambda: rng.poisson(np.where(y[:, None], *rng.exponential(size=(2, 300)) / 20)),
    }[kind]()
    return X.astype(float), y


def in_chunks(chunks, *arrays):
    return [da.from_array(a, chunks=(chunks, *a.shape[1:])) for a in arrays]


def rows_of(X, y, weights=None):
    """The rows of collections, however few they are."""
    return collect_partitions(X, y, weights, few=lambda *_: False).rows


def learn(*data, **options):
    return MELC(random_state=0, n_init=2, **options).fit(*data)


def assert_same(found, expected, bits=False):
    if bits:
        np.testing.assert_array_equal(found.coef_, expected.coef_)
        np.testing.assert_array_equal(found.divergence_, expected.divergence_)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    for mine, theirs in zip(found.lines_, expected.lines_, strict=True):
        np.testing.assert_allclose(mine.thresholds, theirs.thresholds, rtol=0, atol=1e-8)
        np.testing.assert_array_equal(mine.codes, theirs.codes)
        np.testing.assert_allclose(mine.counts, theirs.counts, rtol=1e-12)
