"""The benchmark of decisions: scores as defined, what is measured is kept, and the page follows from the records."""

import json
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.quality import __main__ as command
from benchmarks.quality import bars, page, records, run, sets
from benchmarks.quality.models import MODELS, TunedSVC
from benchmarks.quality.records import Record
from benchmarks.quality.sets import PAPER, SETS, DataSet
from benchmarks.quality.summary import ACCURACY, LINES, SECONDS, summarise
from sklearn.metrics import balanced_accuracy_score
from sklearn.utils.class_weight import compute_sample_weight

from melc.paper.datasets import DataSetError

pytestmark = pytest.mark.slow


def tiny(seed, n_classes=2):
    rng = np.random.default_rng(seed)
    y = np.arange(60) % n_classes
    return rng.normal(size=(60, 3)) + 1.5 * y[:, None], y


def unavailable():
    raise DataSetError("no network")


@pytest.fixture
def tiny_sets(monkeypatch):
    """Two data sets of the table are tiny, and a third cannot be loaded."""
    monkeypatch.setitem(SETS, "heart", DataSet("heart", PAPER, "tiny", lambda: tiny(0), n_folds=3))
    monkeypatch.setitem(SETS, "iris", replace(SETS["iris"], load=lambda: tiny(1, 3)))
    monkeypatch.setitem(SETS, "australian", replace(SETS["australian"], load=unavailable))
    run._load.cache_clear()
    yield
    run._load.cache_clear()


def cells(models=("logistic", "LDA"), names=("heart", "iris"), n_repeats=2):
    return records.cells_of([SETS[name] for name in names], [MODELS[name] for name in models], n_repeats)


def record(data_set="heart", model="logistic", accuracy=0.8, repeat=0, lines=1, loss=0.5, seconds=0.1):
    """A record of today's settings with made-up figures."""
    (cell,) = [each for each in cells([model], [data_set], repeat + 1) if each.repeat == repeat]
    n = cell.n_folds
    return Record(cell, [accuracy] * n, [loss] * n, [seconds] * n, None if lines is None else [lines] * n)


# ------------------------------------------------------------------------------------------------------------ measuring


def test_balanced_log_loss_is_the_mean_within_each_class_averaged():
    y = np.array(["a", "a", "a", "b"])
    proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.5, 0.5], [0.2, 0.8]])
    expected = (-np.mean(np.log([0.9, 0.6, 0.5])) - np.log(0.8)) / 2
    assert run.balanced_log_loss(y, proba, np.array(["a", "b"])) == pytest.approx(expected)


def test_a_cell_is_measured_fold_by_fold(tiny_sets):
    for cell in cells(["MELC", "boosting"], n_repeats=1):
        found = run.measure(cell)
        assert len(found.balanced_accuracy) == len(found.log_loss) == len(found.seconds) == cell.n_folds == 3
        assert min(found.balanced_accuracy) > 0.6
        assert max(found.log_loss) < 3
        assert found.lines == {"MELC": {"heart": [1] * 3, "iris": [3] * 3}, "boosting": {}}[cell.model].get(
            cell.data_set
        )
    assert found == replace(run.measure(cell), seconds=found.seconds)


def test_the_tuned_machine_weighs_the_classes():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [150, 15])
    X = rng.normal(size=(165, 2)) + y[:, None]
    model = TunedSVC(costs=(1,), widths=(0.1,), random_state=0)
    assert model.fit(X, y).predict_proba(X)[:, 1].mean() < 0.15
    model.fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    assert 0.3 < model.predict_proba(X)[:, 1].mean() < 0.6
    assert balanced_accuracy_score(y, model.predict(X)) > 0.7


def test_only_what_is_missing_is_computed(tiny_sets, tmp_path):
    path, told = tmp_path / "quality.jsonl", []
    assert run.run(cells(n_repeats=1), path, n_jobs=1, tell=told.append) == []
    first = path.read_text()
    assert len(told) == len(first.splitlines()) == 4
    run.run(cells(n_repeats=2), path, n_jobs=1, tell=told.append)
    assert path.read_text().startswith(first)
    assert len(told) == len(records.read(path)) == 8
    run.run(cells(n_repeats=2), path, n_jobs=1, tell=told.append)
    assert len(told) == 8


def test_a_model_that_fails_is_reported_and_the_others_go_on(tiny_sets, tmp_path, monkeypatch):
    def make(n_classes, seed):
        raise ValueError("no such model")

    todo = cells(n_repeats=1)
    monkeypatch.setitem(MODELS, "LDA", replace(MODELS["LDA"], make=make))
    failed = run.run(todo, tmp_path / "quality.jsonl", n_jobs=1, tell=lambda line: None)
    assert failed == [f"LDA on {name}, repeat 0: ValueError: no such model" for name in ("heart", "iris")]
    assert {each.cell.model for each in records.read(tmp_path / "quality.jsonl").values()} == {"logistic"}


def test_data_sets_that_cannot_be_loaded_are_named(tiny_sets):
    assert run.at_hand(["heart", "australian"]) == (["heart"], {"australian": "no network"})


# -------------------------------------------------------------------------------------------------------------- records


def test_records_come_back(tmp_path):
    path = tmp_path / "folder" / "quality.jsonl"
    written = [record(), record(model="boosting", lines=None, repeat=1)]
    for each in written:
        records.append(each, path)
    assert list(records.read(path).values()) == written
    assert records.current(records.read(path)) == written


def test_a_line_that_was_cut_off_is_dropped(tmp_path):
    path = tmp_path / "quality.jsonl"
    records.append(record(), path)
    with open(path, "a", encoding="utf-8") as stream:
        stream.write('{"cell": {"data_')
    assert list(records.read(path).values()) == [record()]
    records.append(record(repeat=1), path)
    assert list(records.read(path).values()) == [record(), record(repeat=1)]


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"cell": {}}', json.dumps({"cell": {"data_set": 1}})])
def test_a_line_that_is_no_record_is_named(tmp_path, line):
    path = tmp_path / "quality.jsonl"
    records.append(record(), path)
    with open(path, "a", encoding="utf-8") as stream:
        stream.write(line + "\n")
    with pytest.raises(ValueError, match=r"line 2 of .*quality\.jsonl is not a record .* delete the line"):
        records.read(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"versions": {"scikit-learn": "0.1"}},
        {"settings": "LogisticRegression(C=2)"},
        {"n_folds": 7},
        {"data_set": "no longer there"},
        {"schema": 0},
    ],
)
def test_records_of_other_settings_are_left_aside(changes):
    other = replace(record(), cell=replace(record().cell, **changes))
    assert records.current({"a": record(), "b": other}) == [record()]


def test_cells_of_melc_change_with_its_code_and_those_of_others_do_not(monkeypatch):
    before = cells(["MELC", "logistic"], ["heart"], 1)
    monkeypatch.setattr(records, "melc_digest", lambda: "changed")
    after = cells(["MELC", "logistic"], ["heart"], 1)
    assert [a == b for a, b in zip(after, before, strict=True)] == [False, True]


# ------------------------------------------------------------------------------------------------------------ data sets


def test_the_true_hyperplane_is_as_good_in_every_shape():
    v = sets._direction(6)
    shares = []
    for shape in ("normal", "Student t", "lognormal"):
        X, y = sets.linear(shape)
        shares.append(np.mean((X @ v > np.median(X @ v)) == y))
    assert shares[0] == shares[1] == shares[2] < 0.95
    X, y = sets.linear("outliers")
    assert np.mean((X @ v > 0) == y) == np.mean((sets.linear()[0] @ v > 0) == y)
    assert 30 < np.sum(np.abs(X @ v) > 4) < 80


def test_generated_data_sets_are_what_they_say():
    X, y = SETS["wide"].load()
    assert X.shape[1] > X.shape[0]
    assert np.bincount(SETS["imbalanced"].load()[1]).tolist() == [2000, 40]
    X, y = SETS["xor"].load()
    assert np.abs(np.corrcoef(X.T, y)[-1, :-1]).max() < 0.1
    for name in ("xor", "rings", "additive", "thresholds"):
        assert 0.4 < SETS[name].load()[1].mean() < 0.6
        assert all(np.array_equal(*each) for each in zip(SETS[name].load(), SETS[name].load(), strict=True))


# ----------------------------------------------------------------------------------------------------- summary and page


@pytest.fixture
def summary():
    accuracies = {
        "MELC": {"heart": (0.69, 0.71), "iris": (0.9, 0.9), "linear": (0.88, 0.88), "outliers": (0.84, 0.84)},
        "logistic": {"heart": (0.80, 0.80), "iris": (0.8, 0.8), "linear": (0.88, 0.88), "outliers": (0.88, 0.88)},
        "boosting": {"heart": (0.90, 0.90), "iris": (0.8, 0.8), "linear": (0.84, 0.84)},
    }
    lines = {"MELC": 1, "logistic": 1, "boosting": None}
    return summarise(
        record(name, model, accuracy, repeat, lines[model])
        for model, by_set in accuracies.items()
        for name, both in by_set.items()
        for repeat, accuracy in enumerate(both)
    )


def test_means_spreads_and_ranks(summary):
    assert summary.models == ["MELC", "logistic", "boosting"]
    assert summary.sets == ["heart", "iris", "linear", "outliers"]
    assert summary.means(ACCURACY).loc["heart", "MELC"] == pytest.approx(0.70)
    assert summary.spreads(ACCURACY).loc["heart", "MELC"] == pytest.approx(0.01 * np.sqrt(2))
    assert summary.over_sets(ACCURACY, PAPER).round(3).to_dict() == {"MELC": 0.7, "logistic": 0.8, "boosting": 0.9}
    assert np.isnan(summary.over_sets(ACCURACY)["boosting"])  # it has no record of the fourth
    assert summary.over_sets(ACCURACY)["MELC"] == pytest.approx((0.7 + 0.9 + 0.88 + 0.84) / 4)
    expected = {"MELC": (2 + 1 + 1.5 + 2) / 4, "logistic": (1 + 2 + 1.5 + 1) / 4, "boosting": np.nan}
    assert summary.ranks().to_dict() == pytest.approx(expected, nan_ok=True)
    assert np.isnan(summary.over_sets(LINES)["boosting"])
    assert summary.over_sets(SECONDS)["MELC"] == pytest.approx(0.1)


def test_the_page_says_where_melc_loses(summary, tmp_path):
    target = tmp_path / "docs" / "quality.md"
    page.write(summary, target, target.parent / "images")
    text = target.read_text(encoding="utf-8")
    sentences = " ".join(text.split())
    assert "against logistic regression: −.010 ± .042 on average over 4 data sets;" in sentences
    assert "better by more than 0.01 on 1, worse on 2." in sentences
    assert "boosting was not measured on outliers." in sentences
    assert "Not measured: australian," in sentences
    assert "| heart | .700 ± .014 | .800 ± .000 | **.900** ± .000 |" in text
    assert "| outliers | .840 ± .000 | **.880** ± .000 |  |" in text
    for name in ("differences", "accuracy", "loss", "lines"):
        assert f"(images/quality-{name}.svg)" in text
        assert (target.parent / "images" / f"quality-{name}.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_one_command_measures_and_writes_the_page(tiny_sets, tmp_path, capsys):
    options = ["--models", "logistic", "AdditiveMELC", "--repeats", "1", "--jobs", "1"]
    files = ["--records", str(tmp_path / "quality.jsonl"), "--page", str(tmp_path / "quality.md")]
    assert command.main(["--sets", "australian", "heart", *options, *files]) == 0
    printed = capsys.readouterr().out
    assert "Left out: australian (no network)" in printed
    assert "2 records, of which 0 of other settings" in printed
    written = [tmp_path / "quality.md", *sorted((tmp_path / "images").iterdir())]
    contents = [path.read_bytes() for path in written]
    assert command.main(["--page-only", *files]) == 0
    assert [path.read_bytes() for path in written] == contents
    assert "AdditiveMELC on heart" not in capsys.readouterr().out


def test_without_records_there_is_no_page(tmp_path, capsys):
    files = ["--records", str(tmp_path / "quality.jsonl"), "--page", str(tmp_path / "quality.md")]
    assert command.main(["--page-only", *files]) == 0
    assert "No page is written" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_without_an_additive_model_there_is_no_page(tiny_sets, tmp_path, capsys):
    files = ["--records", str(tmp_path / "quality.jsonl"), "--page", str(tmp_path / "quality.md")]
    assert command.main(["--sets", "heart", "--models", "logistic", "--repeats", "1", "--jobs", "1", *files]) == 0
    assert "No page is written, for there is no record of an additive model" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["quality.jsonl"]


@pytest.mark.parametrize(
    "options", [["--sets", "nothing"], ["--models", "nothing"], ["--repeats", "0"], ["--jobs", "x"]]
)
def test_bad_options_are_refused(options, capsys):
    with pytest.raises(SystemExit):
        command.main(options)
    assert options[0] in capsys.readouterr().err


def test_aims_are_judged(summary):
    found = [
        record(name, model, accuracy, lines=None, loss=loss, seconds=seconds)
        for name, model, accuracy, loss, seconds in (
            ("heart", "MELC", 0.76, 0.5, 1),
            ("heart", "logistic", 0.80, 0.5, 1),
            ("heart", "AdditiveMELC", 0.84, 0.34, 2),
            ("heart", "AdditiveMELC-4", 0.82, 0.4, 1),
            ("heart", "boosting", 0.85, 0.4, 1),
        )
    ]
    rows = list(bars.judge(summarise(found)))
    assert [row.reaches(row.bar) for row in rows] == [True, True, False, False, True, False, False]
    assert [round(row.value, 3) for row in rows] == [0.84, 0.34, 0.82, 0.5, 2, -0.04, -0.04]
    names = ("linear", "outliers", "iris")
    others = [record(name, model, 0.9, lines=None) for name in names for model in bars.NEEDED]
    others[5] = record("outliers", "MELC", 0.88)
    judged = {row.what: row.reaches(row.bar) for row in bars.judge(summarise(others))}
    assert judged["MELC, linear − outliers"] is False
    assert judged["AdditiveMELC, balanced accuracy on iris"] is False
    assert judged["MELC − logistic regression, the lowest: outliers"] is True
