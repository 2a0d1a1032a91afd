"""The benchmark of rules of few features: its models, what they read, and the page that follows from the records."""

import numpy as np
import pandas as pd
import pytest
from benchmarks.quality import cards, fasterrisk_fits
from sklearn.tree import DecisionTreeClassifier


@pytest.fixture
def table():
    """A frame of which a number and a text tell the class, with missing values, and labels."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3 // 2
    frame = pd.DataFrame({"noise": rng.normal(size=120), "size": rng.normal(size=120) + 2 * y, "none": 1.0})
    frame["kind"] = np.where(rng.random(120) < 0.8, y, 1 - y).astype(str)
    frame.loc[::10, ["noise", "kind"]] = None
    return frame, y


def test_indicators_are_columns_of_zeros_and_ones_that_know_their_origin(table):
    made = cards.Indicators().fit(table[0])
    found = made.transform(table[0])
    assert set(np.unique(found)) == {0.0, 1.0}
    assert np.bincount(made.origins_, minlength=4).tolist() == [1 + 9, 9, 0, 1 + 2]  # nothing to ask of a constant
    assert found[:, 0].tolist() == table[0]["noise"].isna().astype(float).tolist()
    assert (found.mean(axis=0) > 0).all()
    assert (found.mean(axis=0) < 1).all()


def test_the_l1_path_ends_before_there_are_too_many_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    y = (X @ [3, 2, 1, 0.5, 0.3, 0] + rng.normal(size=200) > 0).astype(int)
    assert cards.FewLogistic(2).fit(X, y).chosen_.tolist() == [0, 1]


def test_a_risk_score_counts_classes_equally(monkeypatch):
    monkeypatch.setattr(fasterrisk_fits, "fit", lambda X, y, n_features: (np.log(0.25), np.array([0.0, 1.0]), 7.0))
    y = np.repeat([0, 1], [80, 20])
    model = cards.RiskScore(1).fit(np.zeros((100, 2)), y)
    assert model.predict_proba(np.zeros((1, 2)))[0] == pytest.approx([0.5, 0.5])  # 0.2 before, the share of its rows


def test_a_model_is_measured_on_a_table(table, monkeypatch):
    monkeypatch.setattr(cards, "load", lambda _: table)
    accuracy, loss, auc, used, seconds = cards.measure("any", "tree of 5 leaves")
    assert accuracy > 0.75
    assert 0 < loss < 3
    assert auc > 0.8
    assert 1 <= used <= 3
    assert seconds > 0


def test_features_of_indicators_are_columns_of_the_table(table, monkeypatch):
    def three(X, y, n_features):
        return 0.0, np.eye(X.shape[1])[[0, 3, -1]].sum(axis=0), 0.0  # two of the first column, one of the last

    monkeypatch.setattr(fasterrisk_fits, "fit", three)
    model = cards.MODELS["FasterRisk, 5 indicators"]().fit(*table)
    assert cards.features_used(model) == 2
    tree = DecisionTreeClassifier(max_leaf_nodes=2).fit(table[0][["noise", "size"]], table[1])
    assert cards.features_used(tree) == 1


def test_the_page_says_where_a_card_is_worse():
    found = {name: {model: [0.8, 0.4, 0.9, 5, 0.1] for model in cards.MODELS} for name in cards.TEN[:3]}
    for figures in found.values():
        figures["FasterRisk, 5 features"] = [0.8, 0.4, 0.85, 5, 2.0]
    found[cards.TEN[0]]["FasterRisk, 5 features"][2] = 0.95
    found[cards.TEN[3]] = {"tree of 5 leaves": [0.7, 0.5, 0.8, 2, 0.1]}
    text = cards.page(found)
    assert "Means: 3 of the ten sets" in text
    assert f"on 2 of these 3 data sets; it is lower on {cards.TEN[0]}. A fit takes 0.05 times as long." in text
    assert "Over all 3 on which `MELC` was measured, the mean balanced accuracy is 0.800" in text
