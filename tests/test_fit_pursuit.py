"""How lines are found: what leads to them, what they must add, and what no data may break."""

import threading
import warnings

import numpy as np
import pytest

import naive
from melc.data.memory import MemoryRows
from melc.fit import candidates
from melc.fit.candidates import Candidates
from melc.fit.evidence import Standing
from melc.fit.pursuit import Plan, Pursuit, pursue


def rows_of(X, codes, weights=None, n_threads=1):
    return MemoryRows(np.asarray(X, dtype=float), np.asarray(codes, dtype=np.int8), weights, n_threads)


def noisy(n=200, d=4, seed=0):
    rng = np.random.default_rng(seed)
    codes = (np.arange(n) % 2).astype(np.int8)
    X = rng.normal(size=(n, d))
    X[:, 0] += 1.5 * codes
    return X, codes


def plan(max_lines=16, features_per_line=2, full_lines="auto", gamma=1.0):
    return Plan(max_lines, features_per_line, full_lines, gamma)


def lines_of(X, codes, weights=None, n_threads=1, **settings):
    found = pursue(
        [(1, rows_of(X, codes, weights, n_threads))],
        plan(**settings),
        np.zeros(1),
        np.random.RandomState(0),
        lambda line: False,
    )
    return found.lines[0]


def searched(X, codes):
    """Candidates, and what they are judged by before the first line."""
    rows = rows_of(X, codes)
    return Candidates(rows, map), Standing(rows.codes, None, 1.0).prospect()


# ---------------------------------------------------------------------------------------------------------- evidence


def test_both_classes_count_equally():
    codes = (np.arange(100) % 10 == 0).astype(np.int8)
    standing = Standing(codes, np.random.default_rng(0).uniform(0.5, 2, 100), 1.0)
    assert standing.targets[codes == 0].sum() == pytest.approx(0.5)
    assert standing.targets[codes == 1].sum() == pytest.approx(0.5)
    standing.log_odds = np.random.default_rng(1).normal(size=100)
    assert standing.likelihood == pytest.approx(naive.likelihood(codes, standing.targets, standing.log_odds), rel=1e-12)
    assert Standing(codes, None, 1.0).n_effective == pytest.approx(4 / (1 / 10 + 1 / 90))
    assert Standing(np.arange(100).astype(np.int8) % 2, None, 1.0).n_effective == 100


def test_the_likelihood_of_a_line_is_that_of_its_gains():
    X, codes = noisy()
    standing = Standing(codes, None, 1.0)
    gains = np.empty(len(codes))
    found = standing.prospect().likelihood(X[:, 0].copy(), gains)
    standing.log_odds += gains
    assert standing.likelihood == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("kind", ["plain", "weights"])
def test_each_line_after_the_first_adds_a_row_in_the_number_of_rows(kind):
    X, codes = noisy(300)
    rng = np.random.default_rng(5)
    weights = rng.integers(1, 4, 300).astype(float) if kind == "weights" else None
    pursuit = Pursuit(rows_of(X, codes, weights), plan(), 1, np.random.RandomState(0), map)
    before = None
    for line in pursuit.lines():
        if before is not None:
            assert pursuit.all.likelihood - before >= 1 / pursuit.all.n_effective
        before = pursuit.all.likelihood
        assert line.counts.sum() == pytest.approx(pursuit.all.weights.sum())


# -------------------------------------------------------------------------------------------------------- candidates


def test_the_best_single_feature_is_that_of_the_largest_likelihood():
    X, codes = noisy()
    found, prospect = searched(X, codes)
    singles = [prospect.likelihood(column) for column in found.columns]
    chosen = found.single(prospect)
    assert np.flatnonzero(chosen.direction).tolist() == [int(np.argmax(singles))]
    assert chosen.likelihood == pytest.approx(max(singles) - 2 / 200)


def test_a_pair_is_no_worse_than_the_best_feature():
    X, codes = noisy()
    found, prospect = searched(X, codes)
    pair, single = found.pair(prospect), found.single(prospect)
    assert np.count_nonzero(pair.direction) <= 2
    assert prospect.likelihood(pair.direction @ found.columns) >= single.likelihood
    assert pair.likelihood == pytest.approx(prospect.likelihood(pair.direction @ found.columns) - 4 / 200, abs=1e-9)


def test_the_pair_of_an_exclusive_or_is_tried():
    """Neither feature says anything alone."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 30))
    codes = (X[:, 7] * X[:, 21] > 0).astype(np.int8)
    found, prospect = searched(X, codes)
    assert np.flatnonzero(found.pair(prospect).direction).tolist() == [7, 21]


def test_a_direction_is_described_in_the_units_of_the_features():
    X, codes = noisy()
    found, _ = searched(X * [1.0, 10.0, 1.0, 1e-3], codes)
    coef, shares = found.described(np.array([-2.0, 1.0, 0.0, 0.0]))
    assert np.linalg.norm(coef) == pytest.approx(1)
    assert coef[0] > 0 > coef[1]
    assert coef[2] == coef[3] == 0
    np.testing.assert_allclose(shares, [2 / 3, 1 / 3, 0, 0])
    np.testing.assert_allclose(found.described(np.array([2.0, -1.0, 0.0, 0.0]))[0], coef)


def test_no_feature_is_its_own_partner():
    """Where nothing is to be gained, all pairs look the same."""
    x = np.repeat([0.0, 1.0, 2.0, 5.0], 2)
    X, codes = np.column_stack([x, x]), np.arange(8) % 2
    found, prospect = searched(X, codes)
    pairs = list(found._promising_pairs(prospect, found._singles(prospect)))
    assert pairs == [(0, 1)]
    assert np.any(found.pair(prospect).direction)


@pytest.mark.parametrize("weights", [None, np.full(200, 5e12)])
def test_features_that_are_the_same_and_weights_without_end(weights):
    X, codes = noisy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of ill-conditioned matrices, too
        lines = lines_of(np.column_stack([X, X]), codes, weights, features_per_line=None)
    assert all(np.isfinite(line.direction).all() for line in lines)


@pytest.mark.parametrize("features_per_line", [1, 2, None])
@pytest.mark.parametrize("full_lines", ["auto", "first", "never"])
def test_classes_whose_means_agree_in_every_feature(features_per_line, full_lines):
    """No linear direction says anything: those of length zero must not be taken."""
    X = np.array([[0, 0], [1, 1], [0, 1], [1, 0.0]] * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lines = lines_of(X, [0, 0, 1, 1] * 3, features_per_line=features_per_line, full_lines=full_lines)
    for line in lines:
        assert np.linalg.norm(line.direction) == pytest.approx(1)
        assert np.isfinite(line.feature_importances).all()


def test_a_feature_that_varies_only_between_the_classes_tells_most():
    rng = np.random.default_rng(0)
    codes = (np.arange(60) % 2).astype(np.int8)
    X = rng.normal(size=(60, candidates.MOST_FEATURES + 200))
    X[:, 100] = 0.1
    X[:, -1] = codes
    chosen = candidates._telling_features(rows_of(X, codes))
    assert len(chosen) == candidates.MOST_FEATURES
    assert np.all(np.diff(chosen) > 0)
    assert X.shape[1] - 1 in chosen
    assert 100 not in chosen


def test_of_many_features_those_of_extreme_units_are_looked_at_without_a_warning():
    X = np.random.default_rng(0).normal(size=(20, candidates.MOST_FEATURES + 1))
    X[:, 3] *= 1e300
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(candidates._telling_features(rows_of(X, np.arange(20) % 2))) == candidates.MOST_FEATURES


# ----------------------------------------------------------------------------------------------------------- threads


def test_no_thread_is_left_behind():
    X, codes = noisy(140_000, d=2)
    rows, before = rows_of(X, codes, n_threads=2), threading.active_count()
    during = []

    def heard(line):
        during.append(threading.active_count())
        return True

    pursue([(1, rows)], plan(features_per_line=1, full_lines="never"), np.zeros(1), np.random.RandomState(0), heard)
    assert during[0] > before
    assert threading.active_count() == before


@pytest.mark.parametrize("stop_after", [1, 2])
def test_a_listener_may_ask_to_stop(stop_after):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    codes = (X[:, 0] ** 2 + X[:, 1] ** 2 > 1.4).astype(np.int8)
    heard = []

    def listen(line):
        heard.append(line)
        return len(heard) == stop_after

    (lines,) = pursue([(1, rows_of(X, codes))], plan(), np.zeros(1), np.random.RandomState(0), listen).lines
    assert len(lines) == len(heard) == stop_after


def test_few_rows_decide_the_directions_of_many(monkeypatch):
    """Directions from a sample; curves, likelihood and counts from all rows."""
    monkeypatch.setattr("melc.fit.pursuit._SEARCHED_ROWS", 300)
    X, codes = noisy(3_000)
    pursuit = Pursuit(rows_of(X, codes), plan(max_lines=2), 1, np.random.RandomState(0), map)
    assert pursuit.sample.n_rows <= 310
    assert pursuit.sampled is not pursuit.all
    lines = list(pursuit.lines())
    assert lines[0].counts.sum() == 3_000
    direct = sum(line.curve.at(pursuit.sample.project(line.direction)) for line in lines)
    np.testing.assert_allclose(pursuit.sampled.log_odds, direct, atol=1e-12)
