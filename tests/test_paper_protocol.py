"""Cells, folds and starts are fixed and shared; every setting changes the key of a cell."""

import dataclasses

import numpy as np
import pytest

from melc.paper import datasets, protocol
from melc.paper.protocol import FULL, QUICK, BaselineCell, MelcCell, cells
from melc.paper.records import key
from melc.paper.solve import split, starts
from paper_cases import TINY


def test_full_profile_covers_the_papers_grid():
    fits = [c for c in cells(FULL) if isinstance(c, MelcCell) and c.n_folds == FULL.n_folds]
    grid = [c for c in fits if c.penalty and c.solver != "sphere"]
    settings = {(c.data_set, c.solver, c.method, c.gamma, c.eps) for c in grid}
    for method in ("bin", "discard"):
        assert sum(s[2] == method for s in settings) == 10 * 2 * 5 * 7
    assert sum(s[2] == "exact" for s in settings) == 10 * 2 * 5
    assert {c.fold for c in grid} == {0, 1, 2, 3, 4}


def test_table_1_is_measured_again_with_other_numbers_of_folds():
    again = [c for c in cells(FULL) if c.n_folds != FULL.n_folds]
    assert {(c.n_folds, c.fold, c.n_starts, c.solver) for c in again} == {(2, 0, 1, "lbfgs"), (10, 0, 1, "lbfgs")}
    assert len(again) == 2 * 10 * 5 * 7 * 2


def test_runs_without_penalty_are_for_the_two_sets_that_the_paper_names():
    free = [c for c in cells(FULL) if isinstance(c, MelcCell) and not c.penalty]
    assert {c.data_set for c in free} == {"sonar", "german.numer"}
    assert {(c.method, c.eps) for c in free} == {("exact", None), ("bin", 0.05), ("discard", 0.05)}


@pytest.mark.parametrize("profile", [FULL, QUICK, TINY], ids=lambda p: p.name)
def test_cells_come_in_one_order_and_have_keys_of_their_own(profile):
    first, second = cells(profile), cells(profile)
    assert first == second
    assert len({key(cell) for cell in first}) == len(first)


def test_every_setting_changes_the_key():
    cell = MelcCell("heart", 0, 5, 0, "cg", "bin", 1.0, 0.1, 3, 100, 1e-5)
    changed = {
        "data_set": "sonar",
        "fold": 1,
        "n_folds": 4,
        "seed": 1,
        "solver": "lbfgs",
        "method": "discard",
        "gamma": 0.5,
        "eps": 0.2,
        "n_starts": 4,
        "max_iter": 101,
        "tol": 1e-6,
        "penalty": False,
    }
    assert set(changed) == {field.name for field in dataclasses.fields(cell)}
    keys = {key(dataclasses.replace(cell, **{name: value})) for name, value in changed.items()}
    assert len(keys | {key(cell)}) == len(changed) + 1


def test_folds_are_disjoint_complete_and_stratified():
    data = datasets.load("german.numer")
    parts = [split("german.numer", fold, 5, 0) for fold in range(5)]
    tested = np.concatenate([part.X_test for part in parts])
    assert sorted(map(tuple, tested)) == sorted(map(tuple, data.X))
    for part in parts:
        assert part.y_test.mean() == pytest.approx(0.3)
        assert len(part.X_train) + len(part.X_test) == len(data.X)


def test_starts_are_unit_vectors_that_do_not_depend_on_how_many_are_asked_for():
    few, many = starts("sonar", 2, 0, 2, 60), starts("sonar", 2, 0, 5, 60)
    np.testing.assert_array_equal(few, many[:2])
    np.testing.assert_allclose(np.linalg.norm(many, axis=1), 1)


def test_starts_differ_between_folds_sets_and_seeds():
    drawn = [starts("sonar", 0, 0, 1, 60), starts("sonar", 1, 0, 1, 60), starts("sonar", 0, 1, 1, 60)]
    drawn.append(starts("splice", 0, 0, 1, 60))
    assert len({tuple(v.ravel()) for v in drawn}) == 4


def test_the_data_sets_are_the_papers_ten_in_its_order():
    first = ("australian", "breast-cancer", "diabetes", "fourclass", "german.numer")
    assert (*first, "heart", "ionosphere", "liver-disorders", "sonar", "splice") == protocol.DATA_SETS


def test_a_baseline_is_not_mistaken_for_a_fit():
    assert key(BaselineCell("heart", 0, 5, 0, "LDA")).startswith("heart-fold0-LDA-")
