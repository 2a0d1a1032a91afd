"""Rows in a mapped file: the pages that a pass has read are given back, and nothing is lost by it."""

import re
from collections import deque
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import check_array

from melc import MELC
from melc.data.contents import hashes_of
from melc.data.mapped import keep_rows, mapped_rows, release_of, take_rows
from melc.data.memory import MemoryRows
from melc.data.sample import draw_sample
from melc.report.subject import subject_of
from melc.tables.problem import StoredProblem, mean_and_spread

SMAPS = Path("/proc/self/smaps")
needs_smaps = pytest.mark.skipif(not SMAPS.exists(), reason="what is resident of a map is read from /proc")

N, D = 400_000, 5


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(N, D))


def stored(X, path):
    X.tofile(path)
    return mapped_rows(path, X.shape)


def resident(path):
    """Bytes of a mapped file that count as memory of this process."""
    parts = re.findall(
        rf"{re.escape(str(path))}\n(?:Size|KernelPageSize|MMUPageSize).*?Rss: +(\d+)", SMAPS.read_text(), re.S
    )
    assert parts, "the file is not mapped"
    return 1024 * sum(map(int, parts))


def fold_of(X):
    problem = StoredProblem(None, X, np.array(["a", "b"]), codes_of(X))
    return np.concatenate(problem.fold(np.arange(N // 2), np.arange(N // 2, N))[1:])


def report_of(X):
    """Read rows as a report does: some of them, and all in blocks."""
    y = codes_of(X)
    subject = subject_of(MELC(n_init=1, random_state=0).fit(X[:2_000], y[:2_000]), X, y, max_rows=5_000, seed=0)
    deque(subject.blocks(), maxlen=0)
    return subject.sampled()[0]


def codes_of(X):
    return (X[:, 0] > 0).astype(np.int8)


USES = {
    "pass": lambda X: MemoryRows(X, codes_of(X)).project(np.ones(D)),
    "hashes": hashes_of,
    "sample": lambda X: draw_sample(MemoryRows(X, codes_of(X)), 5_000, np.random.RandomState(0)).X,
    "some rows": lambda X: take_rows(X, np.random.default_rng(0).integers(N, size=30_000)),
    "scaling of a table": mean_and_spread,
    "fold": fold_of,
    "report": report_of,
}


@needs_smaps
@pytest.mark.parametrize("use", USES)
def test_what_was_read_is_given_back(use, rows, tmp_path):
    X = stored(rows, tmp_path / "X")
    assert float(X.sum()) == pytest.approx(rows.sum(), abs=1e-6)
    assert resident(tmp_path / "X") >= X.nbytes
    found, expected = USES[use](X), USES[use](rows)
    assert resident(tmp_path / "X") < X.nbytes / 10
    np.testing.assert_array_equal(found, expected)


@needs_smaps
def test_a_fit_gives_back_what_it_read_and_finds_the_same(rows, tmp_path):
    y = np.abs(rows[:, 0]) > 1
    X = stored(rows, tmp_path / "X")
    frame = pd.DataFrame(X, columns=list("abcde"), copy=False)
    model = MELC(n_init=2, random_state=0).fit(frame, y)
    assert resident(tmp_path / "X") < X.nbytes / 10
    np.testing.assert_array_equal(model.coef_, MELC(n_init=2, random_state=0).fit(rows, y).coef_)


@needs_smaps
@pytest.mark.parametrize("view", [lambda X: X[100_001:-77], np.asarray, check_array, lambda X: np.asarray(X)[3:]])
def test_parts_of_a_map(view, rows, tmp_path):
    X = stored(rows, tmp_path / "X")
    part, expected = view(X), view(rows)
    X.sum()
    release_of(part)(0, len(part))
    assert resident(tmp_path / "X") <= (len(X) - len(part)) * X.strides[0]
    np.testing.assert_array_equal(part, expected)


@needs_smaps
def test_few_rows_of_many_features_are_given_back(rows, tmp_path):
    wide = rows.reshape(1_000, -1)
    X = stored(wide, tmp_path / "X")
    z = MemoryRows(X, codes_of(wide)).project(np.ones(wide.shape[1]))
    assert resident(tmp_path / "X") < X.nbytes / 10
    np.testing.assert_allclose(z, wide.sum(axis=1))


def test_what_is_computed_from_mapped_rows_is_plain(rows, tmp_path):
    X = stored(rows, tmp_path / "X")
    assert {type(X[[3, 1]]), type(X - 1), type(X.mean(axis=0)), type(take_rows(X, np.arange(3)))} == {np.ndarray}
    assert type(X.sum()) is np.float64


OTHERS = {
    "an array": lambda X, mapped: X,
    "columns": lambda X, mapped: mapped.T,
    "every other column": lambda X, mapped: mapped[:, ::2],
    "a result": lambda X, mapped: mapped + 1,
    "rows taken": lambda X, mapped: mapped[[3, 1, 2]],
    "a map of a user": lambda X, mapped: np.memmap(mapped.filename, mode="r", shape=X.shape),
    "a map that a user may have changed": lambda X, mapped: np.memmap(mapped.filename, mode="c", shape=X.shape),
}


@pytest.mark.parametrize("other", OTHERS)
def test_other_arrays_stay_where_they_are(other, rows, tmp_path):
    assert release_of(OTHERS[other](rows, stored(rows, tmp_path / "X"))) is keep_rows


def test_rows_are_taken_in_the_order_asked_for(rows, tmp_path):
    numbers = np.random.default_rng(1).integers(N, size=9_000)
    np.testing.assert_array_equal(take_rows(stored(rows, tmp_path / "X"), numbers), rows[numbers])
    assert take_rows(stored(rows, tmp_path / "X"), numbers[:0]).shape == (0, D)
