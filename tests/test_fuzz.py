"""The harness finds what is broken and makes it small; and a short run of it finds nothing."""

from dataclasses import replace

import numpy as np
import pytest
from fuzz import __main__ as command
from fuzz.cases import Case, draw
from fuzz.invariants import INVARIANTS, _unsteadiness, check, fitted
from fuzz.lines import _faults_of_monotone, faults_of_line
from fuzz.shrink import shrink

from melc import MELC, AdditiveMELC
from melc.export import to_sql

PLAIN = {"method": "moments", "gamma": 1.0, "n_init": 1, "max_iter": 100, "random_state": 0, "n_jobs": 1}


def plain_case(n=40, d=3, **settings):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return Case(rng.normal(size=(n, d)) + y[:, None], y, None, "rows", {**PLAIN, **settings}, ())


@pytest.mark.slow
def test_no_case_of_a_short_run_fails(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert command.main(["--cases", "30", "--seed", "8", "--jobs", "1"]) == 0


def test_the_same_number_draws_the_same_case():
    assert draw(3, 17).to_json() == draw(3, 17).to_json() != draw(3, 18).to_json()


def test_a_case_survives_json_and_its_snippet_runs():
    case = draw(0, 2)
    again = Case.from_json(case.to_json())
    np.testing.assert_array_equal(case.X, again.X)
    assert again.to_json() == case.to_json()
    space: dict = {}
    exec(plain_case(gamma=0.5).snippet(), space)
    assert space["model"].gamma == 0.5


def test_what_cannot_be_fitted_is_no_failure():
    case = plain_case()
    case.X[:] = 1.0
    assert check(case) is None


def broken_transform(self, X):
    return np.full((len(X), 1), np.nan)


def broken_proba(self, X):
    return np.tile([0.4, 0.6], (len(X), 1))


def undocumented_warning(self, X):
    np.log(np.zeros(1))
    return np.zeros(1)


@pytest.mark.parametrize(
    ("method", "broken", "invariant"),
    [
        ("transform", broken_transform, "predictions agree"),
        ("predict_proba", broken_proba, "predictions agree"),
        ("predict_proba", undocumented_warning, "predictions agree: RuntimeWarning"),
    ],
)
def test_a_broken_method_is_found(method, broken, invariant, monkeypatch):
    assert check(plain_case()) is None
    monkeypatch.setattr(MELC, method, broken)
    failure = check(plain_case())
    assert failure is not None
    assert failure.invariant.startswith(invariant)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_broken_line_is_found(n_classes, monkeypatch):
    case = replace(plain_case(), y=np.arange(40) % n_classes, checks=("lines",))
    assert check(case) is None
    added = AdditiveMELC.line_log_odds
    monkeypatch.setattr(AdditiveMELC, "line_log_odds", lambda self, X: added(self, X) + 1)
    failure = check(case)
    assert failure is not None
    assert failure.invariant == "lines"


def test_curves_that_are_not_those_of_all_classes_are_found():
    case = plain_case()
    model = AdditiveMELC(random_state=0).fit(case.X, np.arange(40) % 4)
    line = model.lines_[0]
    assert not list(faults_of_line(line))
    shifted = (line.curves[0].plus(1.0), *line.curves[1:])
    fewer = replace(line, curves=line.curves[:2], offsets=line.offsets[:2])
    for broken in (replace(line, curves=shifted), fewer):
        assert list(faults_of_line(broken))


def test_a_curve_that_is_not_monotone_is_found():
    case = plain_case()
    (line, *_) = AdditiveMELC(features_per_line=1, full_lines="never", random_state=0).fit(case.X, case.y).lines_
    wishes = ["increasing"] * 3  # each feature is larger in the second class
    assert not list(_faults_of_monotone(line, wishes))
    falling = replace(line, curves=(replace(line.curves[0], log_odds=-line.curves[0].log_odds),))
    assert list(_faults_of_monotone(falling, wishes))
    assert list(_faults_of_monotone(replace(line, direction=np.full(3, 3**-0.5)), wishes))


@pytest.mark.parametrize("broken", ["from_json", "to_sql"])
def test_a_broken_export_of_lines_is_found(broken, monkeypatch):
    case = replace(plain_case(), checks=("lines",))
    other = AdditiveMELC(random_state=0).fit(case.X, 1 - case.y)
    wrong = {"from_json": lambda text: other, "to_sql": lambda model: to_sql(other)}
    monkeypatch.setattr(f"fuzz.lines.{broken}", wrong[broken])
    failure = check(case)
    assert failure is not None
    assert failure.invariant == "lines"


def test_lines_where_few_floats_lie_between_the_knots_survive_json():
    """The directions of this case have projections of a few floats near 5e8, with which densities were drawn twice."""
    assert check(draw(31, 2947)) is None


@pytest.mark.filterwarnings("ignore")
def test_a_search_may_end_below_a_start_by_the_last_digit_of_its_direction_only():
    """Rows at 10⁹ of which some are 10⁻¹ wide: one unit in the last place of a direction changes D by 10⁻⁷."""
    case = draw(21, 3730)
    assert check(case) is None
    assert largest_unsteadiness(case) > 1e-8
    ordinary = replace(case, X=np.random.default_rng(0).normal(size=case.X.shape))
    assert largest_unsteadiness(ordinary) < 1e-11


def largest_unsteadiness(case):
    fit = fitted(case)
    searched = zip(fit.searches, fit.model.coef_, strict=True)
    return max(_unsteadiness(problem.objective(rows), v) for (rows, problem, *_), v in searched)


def test_a_failing_case_is_made_small_and_replayed(monkeypatch, tmp_path, capsys):
    """A bug that shows where some number is above a thousand: one such number is left, and as little else as can be."""

    def large_numbers(case, fit):
        if np.abs(case.X).max() > 1000:
            raise AssertionError("large")

    monkeypatch.setitem(INVARIANTS, "finite model", large_numbers)
    monkeypatch.chdir(tmp_path)
    case = plain_case(n=60, d=4, gamma=0.3, solver="cg")
    case.X[17, 2] = 12345.678
    (tmp_path / "case.json").write_text(case.to_json())
    assert command.main(["--replay", "case.json"]) == 1
    small = Case.from_json((tmp_path / "fuzz-failure.json").read_text())
    assert small.X.shape == (4, 1)  # two rows a class
    assert np.abs(small.X).max() == 10000
    assert (small.settings["gamma"], small.settings["solver"], small.settings["max_iter"]) == (1.0, "lbfgs", 1)
    assert "MELC(" in capsys.readouterr().out
    monkeypatch.undo()
    assert command.main(["--replay", str(tmp_path / "case.json")]) == 0


def test_shrinking_ends_in_time():
    case = plain_case()
    assert shrink(case, lambda other: True, seconds=0.0) is case
