"""Index cards: the text, the picture, the command, and accuracy against the number of features."""

import re
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cli_cases import call
from melc import MELC, AdditiveMELC
from melc.export import export_text, from_json
from melc.model.index_card import ScoreInterval, _simplest, index_card_of
from melc.model.units import weights_of_fit
from melc.plotting import CardDisplay, FeaturePathDisplay
from melc.plotting.card import held_out_shares
from melc.report import report_html


def patients(n=600, seed=0):
    """Return a frame with a number, a whole number with missing values, a category and ranks, and labels."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 14, n),
            "visits": rng.poisson(3, n).astype(float),
            "smoker": rng.choice(["yes", "no"], n, p=[0.3, 0.7]),
            "region": rng.choice(["north", "south", "east"], n),
            "stage": pd.Categorical.from_codes(rng.integers(0, 3, n), ["I", "II", "III"], ordered=True),
        }
    )
    score = frame["age"] / 14 + 0.5 * frame["visits"] + 2 * (frame["smoker"] == "yes") + frame["stage"].cat.codes
    score += 1.5 * (frame["region"] == "south") + rng.normal(0, 0.6, n)
    frame.loc[rng.random(n) < 0.05, "visits"] = np.nan
    return frame, np.where(np.abs(score - score.median()) < score.std(), "well", "ill")


@pytest.fixture(scope="module")
def fitted():
    frame, y = patients()
    return MELC(max_features=5, whole_weights=5, random_state=0).fit(frame, y), frame, y


def by_hand(text, row):
    """The class that a reader of the card finds for a row, with nothing but the text."""
    lines = text.replace("−", "-").splitlines()
    points = {}
    for line in lines:
        if match := re.match(r"  points of (\w+): (.*)", line):
            groups = (group.split(" for ") for group in match[2].split("; "))
            points[match[1]] = {level: float(number) for number, levels in groups for level in levels.split(", ")}
    instead = dict(re.findall(r"  (\w+) missing: take (\S+)", "\n".join(lines)))
    total = 0.0
    for sign, term in re.findall(r"([+-]?) ?((?:points of \w+)|(?:\d+ × \S+))", lines[0].removeprefix("score = ")):
        if term.startswith("points of "):
            name = term.removeprefix("points of ")
            total += points[name].get(row[name], points[name].get("(any other)"))
        else:
            times, value = term.split(" × ")
            name, _, unit = value.partition("/")
            number = float(instead[name]) if pd.isna(row[name]) else row[name]
            total += (-1 if sign == "-" else 1) * int(times) * number / float(unit or 1)
    for line in lines[1:]:
        if match := re.match(r"  (?:below (\S+)|(\S+) to (\S+)|(\S+) or more)\s+(\w+)", line):
            below, low, high, above, label = match.groups()
            if (below and total < float(below)) or (low and float(low) <= total < float(high)) or above:
                return label
    raise AssertionError(text)


def test_a_reader_with_a_pencil_finds_what_the_model_predicts(fitted):
    model, frame, _ = fitted
    text = export_text(model, style="card")
    assert "points of smoker" in text
    found = [by_hand(text, row) for row in frame.head(300).to_dict("records")]
    assert np.mean(np.array(found) == model.predict(frame.head(300))) > 0.99  # thresholds are rounded


def test_points_are_whole_and_never_negative(fitted):
    model, frame, _ = fitted
    card = index_card_of(model, list(frame.columns))
    points = [float(text) for term in card.terms for text, _ in term.points]
    assert points
    assert all(each >= 0 and each == round(each) for each in points)
    assert sum(each.total for each in card.intervals) == len(frame)


def test_everything_on_the_card_can_be_read():
    # Large numbers with missing values, more levels than fit on a row, levels that look like words of the card.
    frame, y = patients(1_000)
    rng = np.random.default_rng(3)
    missing = rng.random(len(frame)) < 0.2
    names = ["(missing)", "(any other)", "x; 3 for y", *(f"level {k}" for k in range(17))]
    groups = 4 * np.digitize(frame["age"], [35, 45, 55, 65]) + np.arange(len(frame)) % 4
    levels = pd.Series(np.array(names)[groups]).mask(missing)
    frame = pd.DataFrame({"cost": (1_234_567.8 + frame["age"]).mask(missing[::-1]), "group": levels})
    model = MELC(whole_weights=5, random_state=0).fit(frame, y)
    text = export_text(model, style="card")
    assert all(f'"{name}"' in text for name in names[:3])
    assert all(name in text for name in names)
    assert re.search(r"[ ,]\(missing\)", text)  # of rows without a value, besides the level of this name
    (place,) = re.findall(r"cost missing: take (\S+)", text)
    assert float(place) == pytest.approx(model.columns_.places[0], abs=1)
    assert ScoreInterval("", "", 0, "ill", 1_234_567.0, 2e6).counts == "(1234567 of 2000000)"


def test_a_level_of_ranks_is_written_on_one_line():
    frame, y = patients(200)
    stage = frame["stage"].cat.rename_categories(["I\n", "II\n", "III\n"]).where(np.arange(200) % 5 > 0)
    text = export_text(MELC(whole_weights=5, random_state=0).fit(stage.to_frame(), y), style="card")
    assert 'stage missing: take "I' in text
    assert re.search(r"take \S+$", text)


def test_models_without_a_card_are_refused():
    X = np.random.default_rng(0).normal(size=(90, 3))
    y = X[:, 0] > 0
    for model in (MELC(), AdditiveMELC()):
        with pytest.raises(ValueError, match="whole_weights=5"):
            export_text(model.fit(X, y), style="card")
    several = MELC(whole_weights=3, random_state=0).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    with pytest.raises(ValueError, match="two classes, and the model has 3"):
        export_text(several, style="card")
    with pytest.raises(ValueError, match='choose "rule" or "card"'):
        export_text(several, style="postcard")


def assert_texts_on_card(display):
    card = display.figure_.bbox
    for text in display.texts_:
        box = text.get_window_extent()
        assert card.contains(*box.min), text.get_text()
        assert card.contains(*box.max), text.get_text()


def test_wide_letters_and_long_labels_stay_on_the_card():
    frame, y = patients(200)
    frame = frame[["age"]].rename(columns={"age": "MW" * 500})
    model = MELC(whole_weights=5, random_state=0).fit(frame, np.where(y == "ill", "W" * 100, "the other class " * 10))
    assert_texts_on_card(CardDisplay.from_estimator(model))


def test_units_of_scaled_columns_have_the_digits_that_large_numbers_need():
    frame, y = patients(300)
    frame = frame[["age"]] + 1e6
    model = make_pipeline(StandardScaler(), MELC(whole_weights=5, random_state=0)).fit(frame, y)
    text = export_text(model, style="card")
    found = [by_hand(text, row) for row in frame.to_dict("records")]
    assert np.mean(np.array(found) == model.predict(frame)) > 0.99


def test_the_picture_has_the_size_of_a_card_and_room_for_all_texts(fitted):
    model, frame, y = fitted
    display = CardDisplay.from_estimator(model, frame, y, cv=2, title="Is the patient ill?")
    assert tuple(display.figure_.get_size_inches()) == (5, 3)
    assert display.figure_.number in plt.get_fignums()  # so notebooks and the gallery show it
    display.figure_.canvas.draw()
    assert_texts_on_card(display)
    shown = " ".join(text.get_text() for text in display.texts_)
    assert "Is the patient ill?" in shown
    assert "2 folds" in shown
    # Sorted rows are shuffled, so that every fold has all kinds of them.
    order = np.argsort(frame["age"].to_numpy())
    assert np.mean(CardDisplay.from_estimator(model, frame.iloc[order], y[order]).held_out.shares) > 0.7


def test_held_out_shares_count_rows_by_their_weights():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(120, 2))
    y = (X[:, 0] + 0.8 * rng.normal(size=120) > 0).astype(int)
    weights = np.where(np.arange(120) % 4 == 0, 5.0, 0.5)
    for model in (MELC(whole_weights=3, random_state=0), make_pipeline(StandardScaler(), MELC(random_state=0))):
        found = held_out_shares(model.fit(X, y), X, y, 3, weights).shares
        right = np.zeros(120, dtype=bool)
        for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
            refit = clone(model).fit(X[train], y[train], **weights_of_fit(model, weights[train]))
            right[test] = refit.predict(X[test]) == y[test]
        expected = [weights[right & (y == c)].sum() / weights[y == c].sum() for c in (0, 1)]
        np.testing.assert_allclose(found, expected)


def test_a_card_with_long_texts_gets_higher():
    rng = np.random.default_rng(1)
    levels = np.array([f"a level with quite a long name, number {k}" for k in range(40)])
    names = [f"a column with a name that is long {k}" for k in range(6)]
    frame = pd.DataFrame({name: rng.choice(levels, 2000) for name in names})
    y = sum(frame[name].str.len() % 2 + frame[name].str[-1].isin(list("135")) for name in names) > 6
    model = MELC(max_features=5, whole_weights=5, random_state=0).fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = CardDisplay.from_estimator(model)
    assert display.figure_.get_size_inches()[1] > 3


def test_the_path_ends_where_the_features_end():
    frame, y = patients(200)
    display = FeaturePathDisplay.from_estimator(MELC(random_state=0), frame, y, max_features=9, cv=2)
    assert display.scores.shape == (5, 2)
    np.testing.assert_allclose(display.scores[-1], display.all_scores)  # five of five features


def test_the_report_shows_the_card_and_what_another_feature_buys():
    frame, y = patients(200)
    for limit, columns in [(2, frame.columns), (4, ["age", "smoker"])]:  # of two columns there are at most two
        model = MELC(max_features=limit, whole_weights=3, random_state=0).fit(frame[columns], y)
        page = report_html(model, frame[columns], y, n_resamples=0, cv=2)
        assert "score = " in page
        assert "With at most 2 features the balanced accuracy is" in page


def test_the_command_writes_card_and_model(tmp_path):
    frame, y = patients(300)
    frame.assign(outcome=y).to_csv(tmp_path / "patients.csv", index=False)
    files = ["-o", tmp_path / "card.svg", "--save-model", tmp_path / "model.json"]
    result = call("card", tmp_path / "patients.csv", "--target", "outcome", "--max-features", 3, "--cv", 2, *files)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("score = ")
    assert "2 folds" in result.stdout
    assert (tmp_path / "card.svg").read_text().startswith("<?xml")
    assert len(from_json((tmp_path / "model.json").read_text()).lines_[0].features) <= 3


def test_the_command_counts_held_out_rows_by_their_weights(tmp_path):
    frame, y = patients(200)
    weights = np.where(np.arange(200) % 4 == 0, 5.0, 0.5)
    frame.assign(outcome=y, w=weights).to_csv(tmp_path / "patients.csv", index=False)
    result = call("card", tmp_path / "patients.csv", "--target", "outcome", "--weights", "w", "--cv", 2)
    model = MELC(max_features=5, whole_weights=5, random_state=0).fit(frame, y, sample_weight=weights)
    expected = held_out_shares(model, pd.read_csv(tmp_path / "patients.csv")[frame.columns], y, 2, weights)
    assert expected.sentence in result.stdout


def test_a_card_of_five_rows_says_that_it_was_not_validated(tmp_path):
    frame = pd.DataFrame({"age": [20, 31, 45, 52, 60], "outcome": ["a", "a", "b", "b", "b"]})
    frame.to_csv(tmp_path / "few.csv", index=False)
    result = call("card", tmp_path / "few.csv", "--target", "outcome", "-o", tmp_path / "card.svg")
    assert result.exit_code == 0, result.output
    assert "no cross-validation: class a has 2 rows; cross-validation needs at least 3 of every class" in result.stderr


def test_the_command_refuses_three_classes_and_unknown_pictures(tmp_path):
    frame, _ = patients(90)
    frame.assign(outcome=np.arange(90) % 3).to_csv(tmp_path / "patients.csv", index=False)
    three = call("card", tmp_path / "patients.csv", "--target", "outcome")
    assert three.exit_code == 1
    assert "--positive" in three.stderr
    picture = call("card", tmp_path / "patients.csv", "--target", "outcome", "-o", tmp_path / "card.gif")
    assert "choose one of .png, .svg, .pdf" in picture.stderr


def test_terms_are_as_simple_as_can_be():
    ratios = {(2, 20.0): (1, 10.0), (-5, 10.0): (-1, 2.0), (3, 0.2): (15, 1.0), (4, 10.0): (4, 10.0)}
    for (weight, unit), simplest in ratios.items():
        assert _simplest(weight, unit) == pytest.approx(simplest)
    assert _simplest(7, 13.37) == (7, 13.37)
