"""How lines are found: what leads to them, what they must add, and what no data may break."""

import threading
import warnings
from contextlib import closing

import numpy as np
import pytest

import naive
from melc.data.memory import MemoryRows
from melc.fit import candidates
from melc.fit.candidates import Candidates
from melc.fit.columns import Design
from melc.fit.evidence import Standing
from melc.fit.intake import Labelled
from melc.fit.joint_fit import JointFit
from melc.fit.pursuit import Plan, Proposal, _is_new, _worthwhile, pursue
from melc.model.columns import Columns


def rows_of(X, codes, weights=None, n_threads=1):
    return MemoryRows(np.asarray(X, dtype=float), np.asarray(codes, dtype=np.int8), weights, n_threads)


def noisy(n=200, d=4, seed=0):
    rng = np.random.default_rng(seed)
    codes = (np.arange(n) % 2).astype(np.int8)
    X = rng.normal(size=(n, d))
    X[:, 0] += 1.5 * codes
    return X, codes


def plan(n_features, max_lines=16, features_per_line=2, full_lines="auto", gamma=1.0, other_features=False, signs=None):
    signs = np.zeros(n_features) if signs is None else np.array(signs)
    return Plan(max_lines, features_per_line, full_lines, gamma, other_features, signs)


def found_in(X, codes, weights=None, n_threads=1, heard=lambda n_features, loss: False, **settings):
    rows, n_classes = rows_of(X, codes, weights, n_threads), len(np.unique(codes))
    log_priors = np.zeros(1 if n_classes == 2 else n_classes)
    settings = plan(rows.n_features, **settings)
    return pursue(labelled(rows, n_classes), settings, log_priors, np.random.RandomState(0), heard)


def labelled(rows, n_classes):
    totals = np.array(rows.total_weights)
    return Labelled(rows, np.arange(n_classes), totals, Columns(), Design(rows.n_features))


def lines_of(*given, **settings):
    return found_in(*given, **settings).lines


def searched(X, codes, single=None):
    """Candidates, and what they are judged by before the first line."""
    rows = rows_of(X, codes)
    single = np.zeros(rows.n_features, dtype=bool) if single is None else np.array(single)
    return Candidates(rows, map, single), Standing(rows.codes, None, 1.0).prospect()


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


def circle(n=600, n_features=4, n_classes=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    radius = X[:, 0] ** 2 + X[:, 1] ** 2
    return X, np.digitize(radius, [1.4] if n_classes == 2 else [0.8, 2.2]).astype(np.int8)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["plain", "weights"])
def test_each_line_adds_a_row_of_likelihood(kind, n_classes, monkeypatch):
    """With every row left out of its curves; of several classes, the lines of a round together."""
    X, codes = circle(n_classes=n_classes)
    weights = np.random.default_rng(5).integers(1, 4, 600).astype(float) if kind == "weights" else None
    reached, fitted = [], []
    left_out = JointFit.left_out

    def recorded(self, found):
        scores = left_out(self, found)
        reached.append(self.likelihood(scores))
        fitted.append((self, len(found)))
        return scores

    monkeypatch.setattr(JointFit, "left_out", recorded)
    heard = []
    found = found_in(X, codes, weights, heard=lambda n_features, loss: heard.append((n_features, loss)))
    together, kept = fitted[0][0], [n for _, n in fitted[: len(heard)]]
    assert len(heard) > 1
    assert len(found.lines) == kept[-1]
    gains, added = np.diff(reached[: len(heard)]), np.diff(kept)
    assert np.all(gains >= added)
    total = together.balanced_weights.sum()
    np.testing.assert_allclose([loss for _, loss in heard], [-each / total for each in reached[: len(heard)]])
    for line in found.lines:
        assert line.counts.sum() == pytest.approx(together.weights.sum())


def test_the_likelihood_is_that_of_the_rows_with_all_classes_counting_equally():
    for n_classes in (2, 3):
        X, codes = circle(n_classes=n_classes)
        together = JointFit(rows_of(X, codes), rows_of(X, codes), n_classes, 1.0)
        np.testing.assert_allclose(
            np.bincount(codes, together.balanced_weights), together.balanced_weights.sum() / n_classes
        )
        scores = np.random.default_rng(0).normal(size=(together.n_blocks, 600))
        expected = naive.curve_likelihood(scores.T, codes, together.balanced_weights, np.eye(together.n_blocks))
        assert together.likelihood(scores) == pytest.approx(expected, rel=1e-12)


def test_of_pure_noise_there_is_a_line_all_the_same():
    """All directions seem to lose: the best is taken, and what it adds is small."""
    rng = np.random.default_rng(0)
    for n_classes in (2, 4):
        (line, *_) = lines_of(rng.normal(size=(300, 3)), np.arange(300) % n_classes, max_lines=2)
        assert line.importance < 0.5


def proposal(gain, direction=(1.0, 0.0), shares=None):
    return Proposal(np.array(direction), np.abs(direction) if shares is None else np.array(shares), gain)


def test_proposals_that_are_worth_a_line():
    gains = [0.1, 3.0, 0.7, 0.5]
    assert [each.gain for each in _worthwhile([proposal(gain) for gain in gains])] == [3.0, 0.7]
    assert [each.gain for each in _worthwhile([proposal(gain) for gain in (-2.0, -1.0)])] == [-1.0]


def test_the_same_direction_is_no_new_one_whatever_the_units():
    """In units in which one weight is next to nothing, all directions would look the same."""
    X, codes = noisy(d=2)
    together = JointFit(rows_of(X, codes), rows_of(X, codes), 2, 1.0)
    found = together.with_line(together.without_lines(), np.array([1.0, 1e-150]), np.array([0.5, 0.5]))
    assert not _is_new(proposal(1.0, [1.0, 1e-150], [0.5, 0.5]), found)
    assert not _is_new(proposal(1.0, [-1.0, -1e-150], [0.5, 0.5]), found)
    assert _is_new(proposal(1.0, [1.0, -1e-150], [0.5, 0.5]), found)
    assert _is_new(proposal(1.0, [1.0, 1e-150], [0.9, 0.1]), found)
    assert _is_new(proposal(1.0, [1.0, 0.0]), found)


def test_minor_lines_of_the_other_features():
    X, codes = circle()
    constant = np.column_stack([X, np.ones(600)])
    found = found_in(constant, codes, other_features=True, features_per_line=1, full_lines="never", max_lines=2)
    major, minor = ([line for line in found.lines if line.minor == kind] for kind in (False, True))
    assert len(major) <= 2
    assert all(len(line.features) == 1 for line in minor)
    features = [int(line.features[0]) for line in found.lines]
    assert sorted(features) == [0, 1, 2, 3]  # each once, and none for the constant feature
    assert found.lines[: len(major)] == major


# -------------------------------------------------------------------------------------------------------- candidates


def test_the_best_single_feature_is_that_of_the_largest_likelihood():
    X, codes = noisy()
    found, prospect = searched(X, codes)
    singles = [prospect.likelihood(column) for column in found.columns]
    chosen = found.single(prospect)
    assert np.flatnonzero(chosen.direction).tolist() == [int(np.argmax(singles))]
    assert chosen.likelihood == pytest.approx(max(singles) - 2 / 200)


def test_features_that_may_not_be_combined():
    X, codes = noisy()
    found, prospect = searched(X, codes, single=[True, False, False, True])
    assert sorted(found.chosen[found.combined].tolist()) == [1, 2]
    assert features(found, found.pair(prospect)) == [0]  # the best alone, and better than a pair
    assert set(features(found, found.full(prospect))) <= {1, 2}


def features(found, candidate):
    """The numbers of the features of a candidate; the search has them in another order."""
    return np.flatnonzero(found.in_units(candidate.direction)[0]).tolist()


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
    assert features(found, found.pair(prospect)) == [7, 21]


def test_a_direction_is_described_in_the_units_of_the_features():
    X, codes = noisy()
    found, _ = searched(X * [1.0, 10.0, 1.0, 1e-3], codes)
    scaled = np.array([-2.0, 1.0, 0.0, 0.0])[found.chosen]
    coef, shares = found.in_units(scaled)
    assert np.linalg.norm(coef) == pytest.approx(1)
    assert coef[0] > 0 > coef[1]
    assert coef[2] == coef[3] == 0
    np.testing.assert_allclose(shares, [2 / 3, 1 / 3, 0, 0])
    np.testing.assert_allclose(found.in_units(-scaled)[0], coef)


def test_no_feature_is_its_own_partner():
    """Where nothing is to be gained, all pairs look the same."""
    x = np.repeat([0.0, 1.0, 2.0, 5.0], 2)
    X, codes = np.column_stack([x, x]), np.arange(8) % 2
    found, prospect = searched(X, codes)
    pairs = list(found._promising_pairs(prospect, found._single_likelihoods(prospect)))
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
    chosen = candidates._features_to_search(rows_of(X, codes))
    assert len(chosen) == candidates.MOST_FEATURES
    assert np.all(np.diff(chosen) > 0)
    assert X.shape[1] - 1 in chosen
    assert 100 not in chosen


def test_of_many_features_those_of_extreme_units_are_looked_at_without_a_warning():
    X = np.random.default_rng(0).normal(size=(20, candidates.MOST_FEATURES + 1))
    X[:, 3] *= 1e300
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(candidates._features_to_search(rows_of(X, np.arange(20) % 2))) == candidates.MOST_FEATURES


# ----------------------------------------------------------------------------------------------------------- threads


def test_no_thread_is_left_behind():
    X, codes = noisy(140_000, d=2)
    rows, before = rows_of(X, codes, n_threads=2), threading.active_count()
    during = []

    def heard(n_features, loss):
        during.append(threading.active_count())
        return True

    settings = plan(2, features_per_line=1, full_lines="never")
    with closing(rows):
        pursue(labelled(rows, 2), settings, np.zeros(1), np.random.RandomState(0), heard)
    assert during[0] > before
    assert threading.active_count() == before


@pytest.mark.parametrize("stop_after", [1, 2])
def test_a_listener_may_ask_to_stop(stop_after):
    X, codes = circle()
    heard = []

    def listen(n_features, loss):
        heard.append((n_features, loss))
        return len(heard) == stop_after

    lines = lines_of(X, codes, heard=listen)
    assert len(lines) == len(heard) == stop_after
    assert [n_features for n_features, _ in heard] == [len(line.features) for line in lines]


def test_few_rows_decide_the_directions_of_many(monkeypatch):
    """Directions from a sample; curves and counts from all rows."""
    X, codes = noisy(6_000)
    samples = []
    begin = JointFit.__init__

    def recorded(self, rows, sample, *more):
        samples.append(sample)
        begin(self, rows, sample, *more)

    monkeypatch.setattr(JointFit, "__init__", recorded)
    exact = lines_of(X, codes, max_lines=1, features_per_line=1, full_lines="never")
    monkeypatch.setattr("melc.fit.pursuit._SEARCHED_ROWS", 300)
    monkeypatch.setattr("melc.fit.pursuit._JUDGED_ROWS", 1_000)
    (line,) = lines_of(X, codes, max_lines=1, features_per_line=1, full_lines="never")
    assert samples[0].n_rows == 6_000
    assert samples[1].n_rows <= 1_010
    assert line.counts.sum() == 6_000
    np.testing.assert_array_equal(line.direction, exact[0].direction)
    z = X @ line.direction
    # λ and knots come from the sample, all else from all rows: the curve on the sample alone would be farther away.
    monkeypatch.setattr(JointFit, "fitted_to_all_rows", JointFit.fitted)
    (rough,) = lines_of(X, codes, max_lines=1, features_per_line=1, full_lines="never")
    best = exact[0].curves[0].at(z) + exact[0].offsets
    far, near = (np.mean(np.abs(each.curves[0].at(z) + each.offsets - best)) for each in (rough, line))
    assert near < 0.08
    assert near < 0.7 * far
