"""Solving one cell: counts, accuracy and norm compared with slow code written from the formulas."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from melc.paper.protocol import BASELINES, BaselineCell, MelcCell
from melc.paper.solve import solve, split

CELL = MelcCell("heart", 1, 5, 0, "lbfgs", "exact", 1.0, None, 2, 200, 1e-5)


def timeless(record):
    """Return the record with all times set to zero."""
    content = asdict(record) | {"seconds": 0}
    content["runs"] = [run | {"seconds": 0, "processor_seconds": 0} for run in content["runs"]]
    return content


def naive_divergence(X, y, v, gamma):
    z = X @ v
    groups = [z[y == code] for code in (0, 1)]
    kernel = [(gamma * (4 / (3 * len(g))) ** 0.2) ** 2 * g.var() for g in groups]

    def log_ip(a, b):
        total = kernel[a] + kernel[b]
        difference = groups[a][:, None] - groups[b][None, :]
        return np.log(np.mean(np.exp(-(difference**2) / (2 * total))) / np.sqrt(2 * np.pi * total))

    return log_ip(0, 0) + log_ip(1, 1) - 2 * log_ip(0, 1)


def test_the_exact_method_has_ratio_one_and_d_by_the_formula(monkeypatch):
    from melc.paper import solve as module

    directions = []
    original = module._run

    def spy(cell, rows, start):
        run, direction = original(cell, rows, start)
        directions.append(direction)
        return run, direction

    monkeypatch.setattr(module, "_run", spy)
    record = solve(CELL)
    fold = split("heart", 1, 5, 0)
    for run, direction in zip(record.runs, directions, strict=True):
        assert run.n_exponentials == run.n_pairs
        expected = naive_divergence(fold.X_train, fold.y_train, direction, 1.0)
        assert run.exact_divergence == pytest.approx(expected, rel=1e-9)
        assert run.divergence == pytest.approx(expected, rel=1e-9)


def test_accuracy_is_that_of_the_higher_density(monkeypatch):
    from melc.paper import solve as module

    seen = {}
    original = module._accuracy
    monkeypatch.setattr(
        module, "_accuracy", lambda fold, rows, v, gamma: seen.update(v=v) or original(fold, rows, v, gamma)
    )
    record = solve(CELL)
    fold = split("heart", 1, 5, 0)
    z_train, z_test = fold.X_train @ seen["v"], fold.X_test @ seen["v"]
    densities = []
    for code in (0, 1):
        points = z_train[fold.y_train == code]
        variance = (4 / (3 * len(points))) ** 0.4 * points.var()
        kernels = np.exp(-((z_test[:, None] - points) ** 2) / (2 * variance))
        densities.append(kernels.mean(axis=1) / np.sqrt(variance))
    correct = (densities[1] > densities[0]) == fold.y_test
    expected = np.mean([correct[fold.y_test == code].mean() for code in (0, 1)])
    assert record.balanced_accuracy == pytest.approx(expected)


def test_the_best_start_is_the_one_scored():
    record = solve(CELL)
    assert record.best == int(np.argmax([run.divergence for run in record.runs]))


@pytest.mark.parametrize(("method", "eps"), [("bin", 0.05), ("discard", 0.05)])
def test_approximations_save_exponentials(method, eps):
    record = solve(replace(CELL, method=method, eps=eps, n_starts=1))
    (run,) = record.runs
    assert 0 < run.n_exponentials < run.n_pairs
    assert run.n_pairs % run.n_evaluations == 0


def test_a_cell_gives_the_same_record_twice():
    cell = replace(CELL, method="bin", eps=0.1, solver="cg")
    assert timeless(solve(cell)) == timeless(solve(cell))


def test_the_penalty_holds_the_norm_and_without_it_the_norm_only_grows():
    held = solve(replace(CELL, n_starts=1)).runs[0].norm
    free = solve(replace(CELL, n_starts=1, penalty=False)).runs[0].norm
    assert held == pytest.approx(1, abs=1e-3)
    assert free > 1.01


def test_the_sphere_solver_stays_on_the_sphere():
    (run,) = solve(replace(CELL, solver="sphere", n_starts=1, max_iter=30)).runs
    assert run.norm == pytest.approx(1, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("model", BASELINES)
def test_baselines_do_better_than_chance(model):
    record = solve(BaselineCell("heart", 1, 5, 0, model))
    assert record.balanced_accuracy > 0.7
    assert record.runs == ()
    assert record.best is None
