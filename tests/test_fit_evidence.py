"""The choice of the direction by its likelihood, and of gamma by folds."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score

import naive
from melc import MELC, cauchy_schwarz_divergence
from melc.data.memory import MemoryRows
from melc.export import from_json, to_json
from melc.fit.coordinates import Coordinates
from melc.fit.evidence import Judge, _systematic
from melc.fit.projection import TRIED_GAMMAS
from test_fit_density_widths import fitted_with_variances


def normal(n=300, d=4, seed=0, shift=1.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, d)) + shift * y[:, None] * np.arange(d) / d, y


def judge_of(X, y, weights=None, gamma=1.0):
    return Judge(Coordinates(MemoryRows(X, y.astype(np.int8), weights)), gamma)


def test_the_likelihood_is_that_of_its_formula():
    X, y = normal()
    judge = judge_of(X, y)
    rng = np.random.default_rng(1)
    for _ in range(3):
        v = rng.normal(size=4)
        v /= np.linalg.norm(v)
        expected = naive.penalised_likelihood(X, y, v)
        # The densities on a grid are accurate to some thousandths.
        assert judge.likelihood(v) == pytest.approx(expected, abs=5e-3)


def test_the_penalty_is_bounded():
    """Along a direction in which two features cancel nearly, the likelihood is that of the formula as well."""
    X, y = normal()
    X[:, 1] = X[:, 0] + 0.01 * X[:, 1]
    v = np.array([1.0, -1.0, 0.0, 0.0]) / np.sqrt(2)
    assert np.sum((v * X.std(axis=0)) ** 2) / np.var(X @ v) > 100
    assert judge_of(X, y).likelihood(v) == pytest.approx(naive.penalised_likelihood(X, y, v), abs=5e-3)


def ends_of_tic_tac_toe():
    """All boards at which a game may end, with three indicators a cell, and whether the first player has won."""
    wins = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    ends = {}

    def play(board, player):
        winners = {board[i] for i, j, k in wins if board[i] and board[i] == board[j] == board[k]}
        if winners or 0 not in board:
            ends[board] = 1 in winners
            return
        for i in range(9):
            if not board[i]:
                play((*board[:i], player, *board[i + 1 :]), 3 - player)

    play((0,) * 9, 1)
    boards = np.array(sorted(ends))
    y = np.array([ends[tuple(board)] for board in boards.tolist()]).astype(int)
    return (boards[:, :, None] == np.arange(3)).reshape(len(boards), -1).astype(float), y


def test_indicators_do_not_hide_the_right_direction():
    """The classes hardly vary along the direction that separates them, and the sum of their indicators not at all."""
    X, y = ends_of_tic_tac_toe()
    assert X.shape == (958, 27)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(MELC(random_state=0), X, y, cv=folds, scoring="balanced_accuracy")
    assert scores.mean() > 0.96


def test_a_class_with_outliers_no_longer_decides():
    """Outliers in one class make its kernels wide along a feature without information, and D there is the highest."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 300)
    X = np.column_stack([rng.normal(size=600) + 1.5 * y, rng.standard_t(1.2, size=600) ** 3 * y + rng.normal(size=600)])
    by_divergence = MELC(random_state=0, selection="divergence").fit(X, y)
    by_likelihood = MELC(random_state=0).fit(X, y)
    assert by_divergence.divergence_ >= by_likelihood.divergence_
    new_y = np.repeat([0, 1], 2000)
    new = np.column_stack(
        [rng.normal(size=4000) + 1.5 * new_y, rng.standard_t(1.2, size=4000) ** 3 * new_y + rng.normal(size=4000)]
    )
    assert by_likelihood.score(new, new_y) > by_divergence.score(new, new_y) + 0.05


def test_the_divergence_is_that_of_the_direction_chosen():
    X, y = normal()
    for selection in ("likelihood", "divergence"):
        model = MELC(random_state=0, selection=selection).fit(X, y)
        expected = cauchy_schwarz_divergence(X, y, model.coef_[0], method="exact")
        assert model.divergence_ == pytest.approx(expected, abs=2e-6)


def test_several_thresholds_are_kept():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(800, 3))
    y = (np.abs(X @ [0.6, -0.8, 0.0]) > 0.7).astype(int)
    model = MELC(random_state=0).fit(X, y)
    assert len(model.thresholds_) == 2
    assert model.score(X, y) > 0.95


def test_linear_directions_are_those_of_logistic_regression():
    X, y = normal(n=800)
    judge = judge_of(X, y)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    n_effective = 4 / np.sum(1 / np.bincount(y))
    for ridge, direction in zip((1.0, 0.03), judge.linear_directions(), strict=True):
        # scikit-learn divides the penalty by 2 C and sums the losses, whose weights add up to the number of rows.
        C = n_effective / (ridge * 4) / len(y)
        weights = LogisticRegression(C=C, class_weight="balanced", tol=1e-10).fit(scaled, y).coef_[0] / X.std(axis=0)
        np.testing.assert_allclose(direction, weights / np.linalg.norm(weights), atol=1e-4)


@pytest.mark.parametrize("n", [50, 9000])
def test_rows_are_drawn_by_weight(n):
    rng = np.random.default_rng(3)
    codes = rng.integers(2, size=n).astype(np.int8)
    copies = rng.integers(1, 4, size=n)
    numbers, drawn = _systematic(codes, copies.astype(float))
    repeated, times = _systematic(np.repeat(codes, copies), np.ones(copies.sum()))
    total = np.zeros(n)
    np.add.at(total, np.repeat(np.arange(n), copies)[repeated], times)
    np.testing.assert_array_equal(np.flatnonzero(total), np.sort(numbers))
    np.testing.assert_array_equal(total[numbers], drawn)


def test_weights_are_copies():
    X, y = normal(n=200)
    copies = np.random.default_rng(4).integers(1, 4, size=len(y))
    weighted = MELC(random_state=0).fit(X, y, sample_weight=copies)
    repeated = MELC(random_state=0).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-9)


def test_bandwidths_of_the_densities():
    X, y = normal(n=400)
    (silverman, silverman_variances), (pooled, pooled_variances), (_, fixed_variances) = (
        fitted_with_variances(X, y, bandwidth=bandwidth) for bandwidth in ("silverman", "pooled", 0.25)
    )
    z = X @ silverman.coef_[0]
    counts, variances = np.bincount(y), [np.var(z[y == c]) for c in (0, 1)]
    for c, variance in enumerate(silverman_variances):
        assert variance == pytest.approx((4 / (3 * counts[c])) ** 0.4 * variances[c], rel=1e-6)
    number = 2 / np.sum(1 / counts)
    for variance in pooled_variances:
        assert variance == pytest.approx((4 / (3 * number)) ** 0.4 * np.mean(variances), rel=1e-6)
    assert fixed_variances == [0.0625, 0.0625]
    np.testing.assert_array_equal(silverman.coef_, pooled.coef_)
    for bad in (0.0, -1.0, "wide"):
        with pytest.raises(ValueError, match="bandwidth"):
            MELC(bandwidth=bad).fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_gamma_is_chosen_by_held_out_rows(n_classes):
    rng = np.random.default_rng(5)
    z = rng.uniform(-4, 4, size=900)
    y = np.floor(z * 1.2).astype(int) % n_classes  # many thresholds ask for narrow kernels
    X = np.column_stack([z, rng.normal(size=900)])
    narrow = MELC(gamma="auto", random_state=0).fit(X, y)
    assert narrow.gamma_ < 1
    assert narrow.get_params()["gamma"] == "auto"
    assert narrow.gamma_ in TRIED_GAMMAS
    again = MELC(gamma="auto", random_state=0).fit(X, y)
    np.testing.assert_array_equal(narrow.coef_, again.coef_)


def test_gamma_of_too_few_rows_is_one():
    X, y = normal(n=9)
    y[:] = 0
    y[:4] = 1
    assert MELC(gamma="auto", random_state=0).fit(X, y).gamma_ == 1.0
    assert MELC(gamma=0.7, random_state=0).fit(X, y).gamma_ == 0.7


def test_the_gamma_chosen_is_in_the_document():
    X, y = normal()
    model = MELC(gamma="auto", random_state=0).fit(X, y)
    assert from_json(to_json(model)).gamma_ == model.gamma_


def test_shrinkage_helps_where_features_are_many():
    """Chosen by the likelihood, which does not know the kernels' widths, such fits were hardly better than a guess."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 60)), np.arange(80) % 2
    X[y == 1, :6] += 1
    shrunk = MELC(random_state=0, shrinkage="auto")
    by_divergence = MELC(random_state=0, shrinkage="auto", selection="divergence")
    np.testing.assert_array_equal(shrunk.fit(X, y).coef_, by_divergence.fit(X, y).coef_)
    assert cross_val_score(shrunk, X, y, cv=5).mean() > 0.8


def test_the_gamma_chosen_does_not_depend_on_which_class_is_the_first():
    chosen = []
    for seed in range(6):
        X, y = normal(n=90, seed=seed, shift=0.8)
        chosen.append([MELC(gamma="auto", random_state=0).fit(X, each).gamma_ for each in (y, 1 - y)])
    assert len(np.unique(chosen)) > 1
    np.testing.assert_array_equal([first for first, _ in chosen], [second for _, second in chosen])
