"""Several classes of large data, solved side by side: one pass over the rows serves all."""

import threading

import numpy as np
import pytest

from melc import MELC
from melc.data.passes import Passes, Together, solve_together
from melc.fit import projection


def make(n, d=7):
    """Three classes that overlap."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, size=n)
    return rng.normal(size=(n, d)) + 2.0 * np.eye(3, d)[y], y


@pytest.fixture
def passes(monkeypatch):
    """How many passes over all rows were made, however many problems shared each."""
    made = []
    make_passes = Passes._make

    def counted(self, wanted):
        if self.n_rows > projection._WORTH_TOGETHER:
            made.append(len(wanted))
        make_passes(self, wanted)

    monkeypatch.setattr(Passes, "_make", counted)
    monkeypatch.setattr(projection, "_WORTH_TOGETHER", 30_000)
    return made


def both_ways(X, y, passes, monkeypatch, **options):
    """Fitted side by side and one after the other, and how many times each read X."""
    together = MELC(n_init=1, random_state=0, **options).fit(X, y)
    shared = list(passes)
    passes.clear()
    monkeypatch.setattr(projection, "Together", lambda n: None)
    monkeypatch.setattr(projection, "solve_together", lambda problems, _: [problem() for problem in problems])
    return together, MELC(n_init=1, random_state=0, **options).fit(X, y), shared, list(passes)


@pytest.mark.slow
def test_classes_solved_together_read_the_rows_once_a_round(passes, monkeypatch):
    X, y = make(40_000)
    together, alone, shared, single = both_ways(X, y, passes, monkeypatch)
    np.testing.assert_allclose(together.coef_, alone.coef_, atol=1e-12)
    assert set(single) == {1}
    assert sum(shared) == len(single)  # nobody asked for more
    assert shared[0] == 3
    # In every round all problems that still run take part: as many rounds as the longest of them needs.
    assert shared == sorted(shared, reverse=True)
    assert len(shared) < 0.6 * len(single)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("layout", ["rows", "columns", "float32"])
def test_classes_solved_together_are_the_same_to_the_last_bit(layout, n_jobs, passes, monkeypatch):
    X, y = make(140_001)
    X = {"rows": X, "columns": np.asfortranarray(X), "float32": X.astype(np.float32)}[layout]
    together, alone, *_ = both_ways(X, y, passes, monkeypatch, n_jobs=n_jobs, max_iter=20)
    np.testing.assert_array_equal(together.coef_, alone.coef_)
    np.testing.assert_array_equal(together.divergence_, alone.divergence_)
    for one, other in zip(together.thresholds_, alone.thresholds_, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("fails", ["in a pass", "between passes"])
def test_an_error_in_one_of_several_problems_ends_them_all(fails):
    together, n_threads = Together(3), threading.active_count()
    rounds = []

    def problem(k):
        for i in range(1000):
            if fails == "between passes" and (k, i) == (1, 5):
                raise ZeroDivisionError("problem 1")
            together.run(type("Wish", (), {"results": None})(), make)

    def make(wishes):
        rounds.append(len(wishes))
        if fails == "in a pass" and len(rounds) == 6:
            raise ZeroDivisionError("pass 6")
        for wish in wishes:
            wish.results = []

    with pytest.raises(ZeroDivisionError, match=r"problem 1|pass 6"):
        solve_together([lambda k=k: problem(k) for k in range(3)], together)
    assert len(rounds) <= 6
    assert threading.active_count() == n_threads
