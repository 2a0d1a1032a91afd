"""Records are written atomically, and a run can be continued after it was killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from melc.paper import protocol, records, solve
from melc.paper.pipeline import reproduce
from melc.paper.protocol import BaselineCell, MelcCell
from melc.paper.results import results_of
from melc.paper.tables import all_tables
from paper_cases import TINY, made_record, made_run, tiny_with

pytestmark = pytest.mark.slow

MELC_CELL = MelcCell("heart", 0, 5, 0, "cg", "bin", 1.0, 0.1, 1, 100, 1e-5)
TIMED = ("seconds", "milliseconds")
PROFILE = tiny_with(gammas=(1.0,), folds=(0,), n_starts=4)


def tables(folder: Path) -> dict[str, str]:
    """Return the tables that do not contain times, as CSV."""
    gathered = results_of(PROFILE, records.read_all(protocol.cells(PROFILE), folder), {})
    return {table.name: table.csv() for table in all_tables(gathered) if table.name not in TIMED}


def run_here(folder: Path) -> int:
    return solve.run_cells(protocol.cells(PROFILE), folder, n_jobs=1, show_progress=False)


def run_elsewhere(folder: Path) -> subprocess.Popen:
    """Start the same run in another process, with two workers."""
    code = (
        "from pathlib import Path\n"
        "from melc.paper import protocol, solve\n"
        "from test_paper_runner import PROFILE\n"
        f"solve.run_cells(protocol.cells(PROFILE), Path({str(folder)!r}), n_jobs=2, show_progress=False)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE)


def wait_for_records(process: subprocess.Popen, folder: Path, n: int) -> None:
    deadline = time.monotonic() + 120
    while len(list(folder.glob("*.json"))) < n:
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < deadline, "the run wrote no records"
        time.sleep(0.02)


def children_of(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 20
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in pids if is_running(pid)]


@pytest.mark.parametrize(
    "record",
    [
        made_record(MELC_CELL, 0.75, made_run(0.3), made_run(norm=1.25)),
        made_record(BaselineCell("heart", 0, 5, 0, "LDA")),
    ],
    ids=["melc", "baseline"],
)
def test_a_record_is_read_as_it_was_written(record, tmp_path):
    path = records.write_record(record, tmp_path)
    assert records.read(path) == record
    assert list(tmp_path.iterdir()) == [path]


def test_a_damaged_record_is_an_error_that_names_the_file(tmp_path):
    path = records.write_record(made_record(MELC_CELL), tmp_path)
    path.write_text(path.read_text()[:-40])
    with pytest.raises(ValueError, match=rf"{path.name} is not a valid record.*delete it and run again"):
        records.read(path)


def test_a_failed_write_leaves_no_record(tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        records.write_record(made_record(MELC_CELL), tmp_path)
    assert records.pending([MELC_CELL], tmp_path) == [MELC_CELL]
    assert list(tmp_path.iterdir()) == []


def test_drafts_of_a_killed_run_are_removed(tmp_path):
    (tmp_path / ".melc-abc.json").write_text("{")
    solve.run_cells([], tmp_path, show_progress=False)
    assert list(tmp_path.iterdir()) == []


def test_only_cells_without_a_record_are_solved(tmp_path, monkeypatch):
    cells = protocol.cells(TINY)
    solved = []

    def noted(cell):
        solved.append(cell)
        return made_record(cell)

    monkeypatch.setattr(solve, "solve", noted)
    assert solve.run_cells(cells[:5], tmp_path, show_progress=False) == 5
    assert solve.run_cells(cells, tmp_path, show_progress=False) == len(cells) - 5
    assert solved == cells
    assert solve.run_cells(cells, tmp_path, show_progress=False) == 0


def test_an_error_in_one_cell_keeps_the_finished_ones(tmp_path, monkeypatch):
    cells = protocol.cells(TINY)

    def failing(cell):
        if cell == cells[3]:
            raise RuntimeError("this cell fails")
        return made_record(cell)

    monkeypatch.setattr(solve, "solve", failing)
    with pytest.raises(RuntimeError, match="this cell fails"):
        solve.run_cells(cells, tmp_path, show_progress=False)
    assert set(cells[:3]).isdisjoint(records.pending(cells, tmp_path))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    run_here(folder)
    return folder


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to watch the workers")
def test_a_killed_run_goes_on_and_gives_identical_tables(uninterrupted, tmp_path):
    process = run_elsewhere(tmp_path)
    wait_for_records(process, tmp_path, 3)
    workers = children_of(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert workers
    wait_until_gone(workers)
    n_cells = len(protocol.cells(PROFILE))
    n_finished = n_cells - len(records.pending(protocol.cells(PROFILE), tmp_path))
    assert 3 <= n_finished < n_cells
    assert run_here(tmp_path) == n_cells - n_finished
    assert not list(tmp_path.glob(".melc-*"))
    assert tables(tmp_path) == tables(uninterrupted)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to watch the workers")
def test_control_c_stops_the_command_with_words_and_leaves_no_process(tmp_path):
    command = [sys.executable, "-m", "melc.cli", "reproduce", "--quick", "--output", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "MELC_DATA": str(tmp_path)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for_records(process, tmp_path / "records", 2)
    workers = children_of(process.pid)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"run the same command again to continue" in b" ".join(errors.split())
    wait_until_gone(workers)


def test_deleting_one_record_recomputes_exactly_that_cell(uninterrupted):
    before = tables(uninterrupted)
    paths = sorted(uninterrupted.glob("*.json"))
    times = {path: path.stat().st_mtime_ns for path in paths}
    paths[7].unlink()
    assert run_here(uninterrupted) == 1
    assert [path for path in paths if path.stat().st_mtime_ns != times[path]] == [paths[7]]
    assert tables(uninterrupted) == before


def test_a_run_without_records_is_an_error_that_says_so(tmp_path):
    with pytest.raises(ValueError, match="no records"):
        reproduce(tmp_path, TINY, report_only=True)


def test_an_unknown_profile_is_an_error_that_lists_them(tmp_path):
    with pytest.raises(ValueError, match="profile must be one of 'full', 'quick'; got 'fast'"):
        reproduce(tmp_path, "fast")


def test_reproduce_is_a_function_of_the_package_whatever_was_imported_before():
    import melc.paper

    assert melc.paper.reproduce is reproduce
    assert melc.paper.reproduce is reproduce  # importing a submodule must not take the name's place
