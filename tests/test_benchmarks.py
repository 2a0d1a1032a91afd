"""The benchmarks measure what they say: turns are taken, limits judged the right way round, peers compute the same."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from benchmarks import __main__ as command
from benchmarks import excerpts, measure, peers, report, speed
from benchmarks.measure import Profile, Row

from melc.data.memory import MemoryRows
from melc.objective import Objective

pytestmark = pytest.mark.slow


def test_sides_take_turns_after_a_warm_up():
    seen = []
    best = measure.race({"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}, rounds=3)
    assert "".join(seen) == "aabb" + 3 * "ab"
    assert all(0 <= taken < 1 for taken in best.values())


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (Row("r", "r", 1.3, bar=1.4, goal=1.15), "yes"),
        (Row("r", "r", 1.1, bar=1.4, goal=1.15), "goal"),
        (Row("r", "r", 1.5, bar=1.4), "NO"),
        (Row("r", "r", 60, bar=50, goal=200, more_is_better=True), "yes"),
        (Row("r", "r", 40, bar=50, more_is_better=True), "NO"),
        (Row("r", "r", skipped="no such library"), "skipped: no such library"),
        (Row("r", "r", broken="ValueError"), "BROKEN: ValueError"),
    ],
)
def test_limits_are_judged(row, word):
    assert report.line(row).endswith(word)


def test_a_broken_benchmark_is_told_and_the_others_go_on(tmp_path, monkeypatch, capsys):
    def breaks(profile):
        yield Row("half", "half done", 1.0)
        raise ValueError("no rows")

    monkeypatch.setattr(
        command, "BENCHMARKS", {"breaks": breaks, "works": lambda profile: [Row("fine", "fine", 2.0, bar=3)]}
    )
    assert command.main(["--output", str(tmp_path)]) == 1
    assert "BROKEN: ValueError: no rows" in capsys.readouterr().out
    (path,) = tmp_path.iterdir()
    written = json.loads(path.read_text())["rows"]
    assert [row["name"] for row in written] == ["half", "breaks", "fine"]
    assert [row["holds"] for row in written] == [None, None, True]


def test_a_task_in_a_new_process_comes_back():
    assert measure.in_new_process("import_time")["melc"] > 0
    with pytest.raises(RuntimeError, match="KeyError: 'nothing'"):
        measure.in_new_process("nothing")


def test_rows_for_measuring_overlap():
    X, codes, v = measure.two_classes(2000, 3)
    assert 0.1 < Objective(MemoryRows(X, codes)).evaluate(v).divergence < 5
    assert math.isclose(np.linalg.norm(v), 1)


def test_peers_compute_the_same_divergence_and_slopes():
    pytest.importorskip("finufft", reason="finufft is not installed: pip install 'melc[bench]'")
    data = peers.line(3000)
    exact = Objective(data.rows).evaluate(np.ones(1)).divergence
    found, slopes = peers.by_finufft(data, 1e-12)
    assert found == pytest.approx(exact, abs=1e-12)
    few = peers.line(600)
    with measure.one_thread():  # it solves one small system after another: threads would only be in the way
        value = peers.by_scipy(few)
    assert value == pytest.approx(Objective(few.rows).evaluate(np.ones(1)).divergence, abs=1e-12)
    h = 1e-5
    for side, name in enumerate("xy"):
        for i in (0, 17):
            moved = []
            for sign in (1, -1):
                points = getattr(data, name).copy()
                points[i] += sign * h
                moved.append(peers.by_finufft(replace(data, **{name: points}), 1e-12)[0])
            assert (moved[0] - moved[1]) / (2 * h) == pytest.approx(slopes[side][i], abs=1e-9)


@pytest.mark.parametrize(("package", "density"), [("KDEpy", peers._kdepy), ("statsmodels", peers._statsmodels)])
def test_densities_on_a_grid_come_close(package, density):
    pytest.importorskip(package, reason=f"{package} is not installed: pip install 'melc[bench]'")
    data = peers.line(3000)
    exact = Objective(data.rows).evaluate(np.ones(1)).divergence
    assert peers.value_on_grid(density, data) == pytest.approx(exact, abs=1e-4)
    found, slopes = peers.slopes_on_grid(density, data)
    assert found == pytest.approx(exact, abs=1e-4)
    expected = peers.by_finufft(data, 1e-9)[1]
    for mine, theirs in zip(expected, slopes, strict=True):
        np.testing.assert_allclose(theirs, mine, atol=1e-2 * np.abs(mine).max())


def test_quick_profile_measures_less():
    assert (Profile(True).rows(10**6), Profile().rows(10**6)) == (10**5, 10**6)


def test_every_file_of_benchmarks_can_be_reached():
    registered = {".".join(each.__module__.split(".")[:2]) for each in measure.BENCHMARKS.values()}
    folder = measure.ROOT / "benchmarks"
    packages = {f"benchmarks.{path.parent.name}" for path in folder.glob("*/__init__.py")}
    files = {f"benchmarks.{path.stem}" for path in folder.glob("*.py")} | packages
    apparatus = {
        f"benchmarks.{name}"
        for name in ("__init__", "__main__", "bands", "coverage", "excerpts", "measure", "report", "speed", "tasks")
    }
    assert files == registered | apparatus


def test_the_page_of_speed_shows_the_middle_data_set():
    machine = {"python": "3.12", "numpy": "2", "scikit-learn": "1.9", "numba": "1", "cores": 2, "cpu": "a processor"}
    draws = [[0.020, 0.010, 1.0], [0.090, 0.010, 1.0], [0.030, 0.010, 1.0]]
    row = {"name": "size-1000x20", "value": 3.0, "details": {"draws": draws}, "machine": machine, "time": "2026-01-02T"}
    page = speed.text([row], None)
    assert "| 1,000 × 20 | 30 | 10 | 3.0 |" in page
    assert "not measured" in page


def test_excerpts_replace_what_stands_between_their_marks():
    page = "before\n<!-- speed: begin; by hand -->\nold\n<!-- speed: end -->\nafter\n"
    updated = excerpts.updated(page)
    assert "old" not in updated
    assert "| ratio |" in updated
    assert updated.startswith("before\n<!-- speed: begin; by hand -->\n")
    assert updated.endswith("<!-- speed: end -->\nafter\n")
    assert excerpts.updated(updated) == updated
