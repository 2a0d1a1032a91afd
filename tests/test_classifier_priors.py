"""Empirical priors of a rare class: probabilities that are calibrated, and an order of the rows that stays."""

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from melc import MELC

N_TEST = 50_000


def rare(rate, n, rng):
    """Two normal classes of which the second is rare, two deviations apart along one of four features."""
    y = (rng.random(n) < rate).astype(int)
    return rng.normal(size=(n, 4)) + 2.0 * y[:, None] * [1.0, 0.5, 0.0, 0.0], y


def entropy(rate):
    """The log loss of always naming the rate."""
    return -rate * np.log(rate) - (1 - rate) * np.log(1 - rate)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1 / 100, 1 / 200])
def test_a_rare_class_has_calibrated_probabilities(rate):
    means, losses, areas = [], [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rare(rate, 20_000, rng)
        X_new, y_new = rare(rate, N_TEST, rng)
        empirical, even = (MELC(priors=priors, random_state=0).fit(X, y) for priors in ("empirical", None))
        proba = empirical.predict_proba(X_new)[:, 1]
        means.append(proba.mean() / y.mean())
        losses.append(log_loss(y_new, proba) / entropy(rate))
        areas.append([roc_auc_score(y_new, model.decision_function(X_new)) for model in (empirical, even)])
    assert np.mean(means) == pytest.approx(1, abs=0.15)
    assert np.mean(losses) < 0.9
    assert max(losses) < 1
    empirical, even = np.array(areas).T
    assert np.abs(empirical - even).max() < 0.002
    assert even.min() > 0.9


def test_a_row_far_on_the_side_of_the_frequent_class_is_not_in_doubt():
    """The pull to one half, whatever the priors, once gave such a row 0.499."""
    X, y = rare(0.0045, 20_000, np.random.default_rng(0))
    model = MELC(priors="empirical", random_state=0).fit(X, y)
    assert model.predict_proba(np.full((1, 4), -50.0))[0, 1] < 0.01


def test_the_order_of_rows_does_not_depend_on_the_priors():
    X, y = rare(0.01, 5_000, np.random.default_rng(1))
    even = MELC(random_state=0).fit(X, y)
    for priors in ("empirical", [0.999, 0.001], [0.3, 0.7]):
        model = MELC(random_state=0, priors=priors).fit(X, y)
        np.testing.assert_array_equal(model.coef_, even.coef_)
        moved = even.decision_function(X) + model.intercepts_
        joined = (moved > 0) != (model.decision_function(X) > 0)  # intervals that do not earn their place
        np.testing.assert_allclose(model.decision_function(X)[~joined], moved[~joined], atol=0.004)
        assert joined.mean() < 0.003
