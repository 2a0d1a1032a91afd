"""The demonstration runs, prints the scores measured, and reports an error in one line."""

import os
import subprocess

import pytest

from cli_cases import PROGRAM, call
from melc.cli import demo

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outcome():
    return demo.compare(demo.healthy_range(n_rows=600))


def test_a_linear_model_cannot_do_what_two_thresholds_can(outcome):
    assert outcome.melc_accuracy > 0.85
    assert outcome.logistic_accuracy < 0.65
    assert len(outcome.thresholds) >= 2


def test_the_table_shows_the_figures_measured(outcome):
    last = demo.table([outcome]).splitlines()[-1]
    assert f"{outcome.melc_accuracy:.3f}" in last
    assert f"{outcome.logistic_accuracy:.3f}" in last
    assert all(f"{t:.3g}" in last for t in outcome.thresholds)


def test_thresholds_are_in_the_units_of_the_picture(outcome):
    figure = demo.new_figure(4, 3)
    display = demo.ProjectionDisplay.from_estimator(outcome.pipeline, ax=figure)
    assert outcome.thresholds == pytest.approx(display.thresholds)
    assert outcome.thresholds != pytest.approx(outcome.pipeline[-1].thresholds_.tolist())


def test_tables_to_try(tmp_path):
    done = call("demo", "--tables", "-o", tmp_path / "t")
    assert [line.rpartition("/")[2] for line in done.stderr.splitlines()] == ["patients.csv", "new.csv", "test.csv"]
    assert len((tmp_path / "t" / "patients.csv").read_text().splitlines()) == 301


def test_the_picture_is_a_png_with_one_panel_a_data_set(outcome, tmp_path):
    demo.save_picture([outcome, outcome], tmp_path / "picture.png")
    content = (tmp_path / "picture.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 20_000


def test_the_whole_as_a_user_runs_it(tmp_path):
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    command = [*PROGRAM, "demo", "--output", str(tmp_path / "new" / "folder")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "breast cancer" in done.stdout
    assert "healthy range" in done.stdout
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["densities.png"]


def test_a_file_in_the_way_is_one_line(tmp_path):
    (tmp_path / "taken").touch()
    done = call("demo", "--output", tmp_path / "taken")
    assert done.exit_code == 1
    assert len(done.stderr.strip().splitlines()) == 1
