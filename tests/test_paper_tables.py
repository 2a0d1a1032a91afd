"""Tables, the numbers of figures, and verdicts, from artificial records with known answers."""

import dataclasses

import pytest

from melc.paper import protocol, tables, verdicts
from melc.paper.protocol import BaselineCell, MelcCell
from melc.paper.results import accuracy_losses, iterations, paper_table, ratios, results_of
from melc.paper.tables import MeanAndSpread, ReportTable, format_value
from paper_cases import made_record, made_run, tiny_with

PROFILE = tiny_with(data_sets=("sonar", "heart"), gammas=(0.1, 1.0), norm_gammas=(0.1, 1.0))


def made_results(record_of=made_record, profile=PROFILE, missing=None):
    """Return results with the record `record_of(cell)` for every cell."""
    missing = missing or {}
    cells = [cell for cell in protocol.cells(profile) if cell.data_set not in missing]
    return results_of(profile, [record_of(cell) for cell in cells], missing)


def with_paper_ratios(cell):
    """Return a record with the ratios and iterations of the paper."""
    if isinstance(cell, BaselineCell) or cell.solver == "sphere" or cell.method not in ("bin", "discard"):
        return made_record(cell, 0.8, made_run(n_iter=40))
    place = (cell.data_set, cell.solver, cell.method)
    ratio, n_iter = paper_table("exp_call_ratio")[place], paper_table("iterations")[place]
    return made_record(cell, 0.81, made_run(ratio, n_iter=int(n_iter)))


def column(table: ReportTable, title: str) -> dict[object, object]:
    index = table.header.index(title)
    return {row[0]: row[index] for row in table.rows}


def test_table_1_shows_measured_beside_paper():
    table = tables.exp_call_ratios(made_results(with_paper_ratios))
    assert column(table, "CG bin") == pytest.approx({"sonar": 0.32, "heart": 0.29})
    assert column(table, "CG bin paper") == {"sonar": 0.32, "heart": 0.29}
    assert "CG bin 0.000" in table.note


def test_ratios_and_iterations_are_means_over_runs_of_the_grid_alone():
    def record_of(cell):
        if isinstance(cell, MelcCell) and (not cell.penalty or cell.solver == "sphere"):
            return made_record(cell, 0.8, made_run(0.9, n_iter=1000))  # not part of the grid, must not count
        return made_record(cell, 0.8, made_run(0.2, n_iter=10), made_run(0.4, n_iter=40))

    results = made_results(record_of)
    assert ratios(results)["sonar", "cg", "bin"] == pytest.approx(0.3)
    assert iterations(results)["sonar", "lbfgs", "exact"] == pytest.approx(25)


def test_endings_are_shares_of_runs_and_set_against_the_exact_run_of_the_same_start():
    def record_of(cell):
        if getattr(cell, "method", None) != "bin":
            return made_record(cell, 0.8, made_run(), made_run(exact_divergence=3.0))
        stalled = made_run(converged=False, reason="stalled: no better point", exact_divergence=1.0)
        return made_record(cell, 0.8, stalled, made_run(exact_divergence=3.25))

    table = tables.endings_table(made_results(record_of))
    by_place = {row[:2]: row[2:] for row in table.rows}
    assert by_place["CG", "exact"] == pytest.approx((100, 0, 0, 10, 20, 0))
    assert by_place["CG", "bin"] == pytest.approx((50, 50, 0, 10, 20, (0.5 - 0.25) / 2))


def test_a_missing_data_set_keeps_its_row_without_numbers():
    results = made_results(missing={"heart": "not here"})
    assert results.data_sets == ["sonar"]
    row = tables.exp_call_ratios(results).rows[1]
    assert row[0] == "heart"
    assert row[1] is None
    assert row[2] == 0.29
    assert "| heart | — | 0.29 |" in tables.exp_call_ratios(results).markdown()


def test_a_single_fold_has_no_spread():
    results = made_results(profile=tiny_with(data_sets=("sonar", "heart"), folds=(0,)))
    table = tables.balanced_accuracies(results)
    values = [value for row in table.rows for value in row if isinstance(value, MeanAndSpread)]
    assert values
    assert {value.spread for value in values} == {None}
    assert "0.800 ± –" in table.markdown()
    assert "0.8 ± –" in table.csv()


def test_accuracy_table_has_mean_and_spread_over_folds():
    def record_of(cell):
        return made_record(cell, 0.7 if cell.fold == 0 else 0.9)

    table = tables.balanced_accuracies(made_results(record_of))
    value = column(table, "MELC exact")["sonar"]
    assert value == MeanAndSpread(pytest.approx(0.8), pytest.approx(0.1))
    assert column(table, "LDA")["heart"] == MeanAndSpread(pytest.approx(0.8), pytest.approx(0.1))


def test_the_best_gamma_is_chosen_per_data_set():
    def record_of(cell):
        good = getattr(cell, "gamma", None) == (0.1 if cell.data_set == "sonar" else 1.0)
        return made_record(cell, 0.9 if good else 0.6)

    best = column(tables.balanced_accuracies(made_results(record_of)), "MELC exact, best γ")
    assert best["sonar"].mean == pytest.approx(0.9)
    assert best["heart"].mean == pytest.approx(0.9)


def test_losses_are_exact_less_approximation():
    def record_of(cell):
        is_bin = isinstance(cell, MelcCell) and cell.method == "bin" and cell.data_set == "sonar"
        return made_record(cell, 0.75 if is_bin else 0.8)

    losses = accuracy_losses(made_results(record_of)).set_index(["method", "data_set"])["loss"]
    assert losses["bin", "sonar"].tolist() == pytest.approx([0.05] * 4)
    assert losses["discard", "sonar"].tolist() == pytest.approx([0] * 4)


def test_norm_table_pairs_runs_with_and_without_penalty():
    def record_of(cell):
        if isinstance(cell, MelcCell) and not cell.penalty:
            return made_record(cell, 0.8, made_run(norm=2000.0, n_evaluations=5000))
        return made_record(cell)

    table = tables.norms(made_results(record_of))
    assert [row[:5] for row in table.rows] == [
        ("sonar", method, solver, *outcome)
        for method in ("bin", "dist", "exact")
        for solver in ("CG", "L-BFGS-B")
        for outcome in (("without", 2000.0), ("with", 1.0))
    ]


def test_entries_far_from_the_paper_are_listed():
    assert tables.off_sets(made_results(with_paper_ratios)).rows == ()
    everything_off = tables.off_sets(made_results())
    assert len(everything_off.rows) == 8  # two data sets, two solvers, two methods, all with ratio 1


def test_other_numbers_of_folds_are_kept_apart():
    def record_of(cell):
        return made_record(cell, 0.8, made_run(0.25 if cell.n_folds == 2 else 0.5))

    results = made_results(record_of)
    assert ratios(results)["sonar", "lbfgs", "bin"] == pytest.approx(0.5)
    table = tables.ratios_by_number_of_folds(results)
    assert column(table, "bin, 2 folds") == pytest.approx({"sonar": 0.25, "heart": 0.25})
    assert column(table, "bin, 5 folds") == pytest.approx({"sonar": 0.5, "heart": 0.5})
    assert column(table, "dist paper") == {"sonar": 0.5, "heart": 0.47}


def test_values_are_printed_for_people_and_written_in_full():
    table = ReportTable("t", "T", "", ("a", "b"), (("x", 1 / 3), ("y", MeanAndSpread(0.5, 0.25))), (0, 2))
    assert table.markdown() == "| a | b |\n|---|---:|\n| x | 0.33 |\n| y | 0.50 ± 0.25 |\n"
    assert table.csv() == "a,b\nx,0.3333333333333333\ny,0.5 ± 0.25\n"
    assert format_value(None, 2) == "—"


# Verdicts: each is tested with records for which it holds and for which it does not.


def melc_records(**by_method):
    """Return results whose runs differ by method; `by_method` gives (accuracy, run) for each."""

    def record_of(cell):
        if isinstance(cell, BaselineCell):
            return made_record(cell)
        accuracy, run = by_method.get(cell.method, (0.8, made_run()))
        return made_record(cell, accuracy, run)

    return made_results(record_of)


def test_table_1_verdict():
    assert verdicts.table1_agrees(made_results(with_paper_ratios)).verdict == verdicts.HOLDS
    assert verdicts.table1_agrees(made_results()).verdict == verdicts.FAILS


@pytest.mark.parametrize(("ratio", "expected"), [(0.5, "holds"), (0.9, "does not hold"), (0.1, "does not hold")])
def test_discard_verdict(ratio, expected):
    results = melc_records(discard=(0.8, made_run(ratio)))
    assert verdicts.discard_halves_pairs(results).verdict == expected


@pytest.mark.parametrize(("ratio", "expected"), [(0.2, "holds"), (0.5, "does not hold"), (0.01, "does not hold")])
def test_bin_verdict(ratio, expected):
    assert verdicts.bin_reduces_pairs(melc_records(bin=(0.8, made_run(ratio)))).verdict == expected


def test_solver_verdict():
    def by(solver_matters):
        def record_of(cell):
            ratio = 0.2 if cell.data_set == "sonar" else 0.6
            if solver_matters:
                ratio = 0.2 if getattr(cell, "solver", "") == "cg" else 0.6
            return made_record(cell, 0.8, made_run(ratio))

        return verdicts.ratio_depends_on_data_not_solver(made_results(record_of)).verdict

    assert by(solver_matters=False) == verdicts.HOLDS
    assert by(solver_matters=True) == verdicts.FAILS


def test_gamma_and_eps_verdict():
    def by(sign):
        def record_of(cell):
            gamma, eps = getattr(cell, "gamma", 1), getattr(cell, "eps", None) or 0
            return made_record(cell, 0.8, made_run(0.5 + sign * (0.1 * gamma - 0.2 * eps)))

        return verdicts.ratio_depends_on_gamma_and_eps(made_results(record_of)).verdict

    assert by(+1) == verdicts.HOLDS
    assert by(-1) == verdicts.FAILS


@pytest.mark.parametrize(("accuracy", "expected"), [(0.79, "holds"), (0.6, "does not hold")])
def test_accuracy_verdict(accuracy, expected):
    results = melc_records(bin=(accuracy, made_run()), discard=(accuracy, made_run()))
    assert verdicts.accuracy_changes_little(results).verdict == expected


def test_small_gamma_verdict():
    def by(worst_gamma, lost):
        def record_of(cell):
            is_worst = getattr(cell, "gamma", None) == worst_gamma and cell.method != "exact"
            return made_record(cell, 0.8 - lost if is_worst else 0.8)

        return verdicts.small_gamma_is_worst(made_results(record_of)).verdict

    assert by(worst_gamma=0.1, lost=0.1) == verdicts.HOLDS
    assert by(worst_gamma=0.1, lost=0.05) == verdicts.PARTLY
    assert by(worst_gamma=1.0, lost=0.1) == verdicts.FAILS


@pytest.mark.parametrize(("accuracy", "expected"), [(0.85, "holds"), (0.75, "does not hold")])
def test_increase_verdict(accuracy, expected):
    assert verdicts.accuracy_often_increases(melc_records(bin=(accuracy, made_run()))).verdict == expected


@pytest.mark.parametrize(("n_iter", "expected"), [(5, "holds"), (20, "does not hold")])
def test_iterations_verdict(n_iter, expected):
    run = made_run(n_iter=n_iter)
    results = melc_records(bin=(0.8, run), discard=(0.8, run))
    assert verdicts.approximation_needs_fewer_iterations(results).verdict == expected


@pytest.mark.parametrize(
    ("held", "free", "expected"),
    [(1.0, 2000.0, "holds"), (1.0, 5.0, "partly"), (3.0, 2000.0, "does not hold")],
)
def test_norm_verdict(held, free, expected):
    def record_of(cell):
        return made_record(cell, 0.8, made_run(norm=held if getattr(cell, "penalty", True) else free))

    assert verdicts.penalty_keeps_norm(made_results(record_of)).verdict == expected


@pytest.mark.parametrize(("evaluations", "expected"), [(2000, "holds"), (40, "partly"), (20, "does not hold")])
def test_evaluations_verdict(evaluations, expected):
    def record_of(cell):
        n = 20 if getattr(cell, "penalty", True) else evaluations
        return made_record(cell, 0.8, made_run(n_evaluations=n))

    assert verdicts.penalty_saves_evaluations(made_results(record_of)).verdict == expected


def test_norm_verdicts_say_so_when_nothing_was_run():
    results = made_results(profile=dataclasses.replace(PROFILE, data_sets=("heart",)))
    assert verdicts.penalty_keeps_norm(results).verdict == verdicts.NOT_RUN
    assert verdicts.penalty_saves_evaluations(results).verdict == verdicts.NOT_RUN


def test_no_verdict_on_what_one_gamma_or_one_data_set_cannot_tell():
    results = made_results(with_paper_ratios, tiny_with(data_sets=("heart",), gammas=(1.0,), norm_gammas=()))
    made = verdicts.all_verdicts(results)
    assert not any("nan" in each.measured for each in made)
    assert sum("only one" in each.measured and each.verdict == verdicts.NOT_RUN for each in made) == 3
