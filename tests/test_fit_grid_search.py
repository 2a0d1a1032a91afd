"""The fast search by whole fits: the general way's optimum, the same bits on any threads, every kind of data."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

import test_interrupts
from melc import MELC
from melc.arrays import unit
from melc.data.memory import MemoryRows
from melc.fit import grid_search, projection, search
from melc.fit.coordinates import Coordinates
from melc.fit.search import Problem, Settings
from melc.fit.solvers import Result
from test_ecosystem import Recorder

pytestmark = pytest.mark.slow

# Every way through the search: all starts on all rows, a sample first, many rows, many features, and both.
SIZES = {
    "few rows": (300, 10),
    "all rows": (3_000, 20),
    "a sample first": (9_000, 20),
    "many rows": (30_000, 10),
    "many features": (3_000, 100),
    "many of both": (22_000, 80),
}


def two_classes(size, seed=0):
    n, d = SIZES[size]
    informative = min(10, d // 2 + 1)
    return make_classification(
        n, d, n_informative=informative, n_clusters_per_class=3, class_sep=0.7, random_state=seed
    )


def learn(X, y, weights=None, **options):
    return MELC(selection="divergence", random_state=0, **options).fit(X, y, sample_weight=weights)


def learn_generally(X, y, weights=None, **options):
    """As without a grid."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "has_grid", False)
        patch.setattr(projection, "search_on_grid", None)
        return learn(X, y, weights, **options)


def one_optimum(n=2_000, d=6, seed=0, apart=0.7):
    """Classes that differ by their means alone, and rows whose numbers survive an offset to the last bit."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, d)) + apart * np.outer(y, np.linspace(0, 1, d))
    return np.round(X * 2**20) / 2**20, y


def assert_close(found, expected, tolerance=1e-8):
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=tolerance)
    np.testing.assert_allclose(found.divergence_, expected.divergence_, rtol=1e-9)


# -------------------------------------------------------------------------------------------------- what it finds


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("size", [size for size in SIZES if size != "many features"])
def test_it_finds_no_less_than_the_general_way(size, seed):
    X, y = two_classes(size, seed)
    found, general = learn(X, y), learn_generally(X, y)
    assert found.divergence_ >= general.divergence_ * (1 - 1e-6)


@pytest.mark.slow
def test_with_many_features_it_finds_no_less_than_the_general_way_on_the_whole():
    """There are more optima than starts: either way misses the best on some data."""
    problems = [two_classes("many features", seed) for seed in range(4)]
    found, general = (np.array([fit(*each).divergence_ for each in problems]) for fit in (learn, learn_generally))
    assert found.sum() >= 0.99 * general.sum()
    assert np.all(found >= 0.9 * general)


@pytest.mark.parametrize("size", SIZES)
def test_the_result_is_an_optimum_and_its_divergence_certified(size):
    X, y = two_classes(size)
    model = learn(X, y)
    rows = MemoryRows(X, y.astype(np.int8))
    objective = Problem(Settings(eps=1e-9), Coordinates(rows)).objective(rows)
    there = objective.evaluate(objective.coordinates_of(model.coef_[0]))
    assert model.divergence_ == pytest.approx(there.divergence, abs=2e-6)
    assert np.abs(there.gradient).max() < 1e-3
    assert model.result_.converged
    assert np.linalg.norm(model.coef_) == pytest.approx(1)


@pytest.mark.parametrize("size", SIZES)
def test_every_start_has_its_run(size):
    X, y = two_classes(size)
    model = learn(X, y, n_init=7)
    assert len(model.results_) == 7
    assert all(isinstance(run, Result) for run in model.results_)
    for run in (*model.results_, model.result_):
        assert np.linalg.norm(run.direction) == pytest.approx(1)
        assert len(run.history) == run.n_iter
        assert run.n_evaluations > run.n_iter
        assert np.isfinite(run.divergence)
    if size in ("few rows", "all rows"):  # else the runs are those on samples
        assert any(run is model.result_ for run in model.results_)
        assert model.result_.divergence >= max(run.divergence for run in model.results_) - 1e-3
        assert np.all(np.diff(model.result_.history) >= -1e-3)  # from the grid to the certified value
    assert model.n_iter_ == model.result_.n_iter


# ------------------------------------------------------------------------------------------------- the same result


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [size for size in SIZES if size != "few rows"])
def test_any_number_of_threads_gives_the_same_bits(size, weighted):
    X, y = two_classes(size)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y)) if weighted else None
    one, two, again = (learn(X, y, weights, n_jobs=n_jobs, n_init=4) for n_jobs in (1, 2, 2))
    for other in (two, again):
        assert other.coef_.tobytes() == one.coef_.tobytes()
        assert other.thresholds_.tobytes() == one.thresholds_.tobytes()
        assert [run.divergence for run in other.results_] == [run.divergence for run in one.results_]


@pytest.mark.parametrize(("n", "d"), [(600, 5), (7_000, 20), (3_000, 70), (12_000, 20)])
def test_weights_count_as_repeated_rows_to_the_last_bit(n, d):
    """Also where only the repeated rows, or both, are more than 200,000 numbers, or more than 20,000 rows."""
    X, y = one_optimum(n, d)
    copies = np.random.default_rng(1).integers(1, 4, n)
    weighted = learn(X, y, copies.astype(float))
    repeated = learn(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    order = np.random.default_rng(2).permutation(n)
    shuffled = learn(X[order], y[order], copies[order].astype(float))
    for other in (repeated, shuffled):
        assert other.coef_.tobytes() == weighted.coef_.tobytes()
        assert other.thresholds_.tobytes() == weighted.thresholds_.tobytes()


@pytest.mark.parametrize(("n", "d"), [(600, 5), (7_000, 10), (25_000, 5), (2_000, 70)])
def test_single_precision_is_the_same_numbers(n, d):
    X, y = one_optimum(n, d)
    narrow = X.astype(np.float32)
    assert_close(learn(narrow, y), learn(narrow.astype(float), y))


@pytest.mark.parametrize(("n", "d"), [(600, 5), (7_000, 10), (25_000, 5), (2_000, 70)])
def test_an_offset_changes_nothing(n, d):
    X, y = one_optimum(n, d)
    assert_close(learn(X + 2.0**20, y), learn(X, y), 1e-6)  # centred rows are rounded elsewhere in single precision


@pytest.mark.parametrize("order", [np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2]])
@pytest.mark.parametrize(("n", "d"), [(7_000, 10), (25_000, 5), (3_000, 70)])
def test_the_layout_of_memory_changes_nothing(n, d, order):
    X, y = one_optimum(n, d)
    assert_close(learn(order(X), y), learn(X, y))


# ------------------------------------------------------------------------------------------------- kinds of data


@pytest.mark.parametrize(("n", "d"), [(600, 5), (7_000, 10), (25_000, 5), (2_000, 70)])
def test_features_that_are_copies_or_constant(n, d):
    X, y = one_optimum(n, d)
    more = np.column_stack([X, X[:, d - 1], np.full(n, 7.0)])
    found, plain = learn(more, y), learn(X, y)
    v = found.coef_[0]
    assert abs(v[-1]) <= (0 if n <= 10_000 else 1e-10)  # a sample does not show that no row differs
    assert v[d - 1] == pytest.approx(v[d], abs=1e-7)
    assert found.divergence_ == pytest.approx(plain.divergence_, rel=1e-7)


@pytest.mark.parametrize(("n", "d"), [(400, 3), (2_000, 5), (8_000, 5), (25_000, 5), (1_500, 70)])
def test_classes_apart_go_the_general_way(n, d):
    """The grid hands over inside of the search."""
    X, y = one_optimum(n, d, apart=12.0)
    found, general = (fit(X, y, n_init=3) for fit in (learn, learn_generally))
    assert found.divergence_ >= general.divergence_ * (1 - 1e-7)
    assert found.score(X, y) == 1
    assert len(found.results_) == 3


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize("d", [3, 70])
def test_a_class_that_does_not_vary_along_a_feature(d):
    X, y = one_optimum(400, d)
    X[y == 0, 0] = 0.5
    found, general = (fit(X, y, n_init=2) for fit in (learn, learn_generally))
    assert found.divergence_ >= general.divergence_ * (1 - 1e-6)
    if d == 3:
        assert abs(found.coef_[0, 0]) == pytest.approx(1)


@pytest.mark.parametrize(("n", "d"), [(3_000, 5), (9_000, 4), (25_000, 3)])
def test_heavy_tails(n, d):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    X = rng.standard_t(1.5, size=(n, d)) + y[:, None]
    found, general = (fit(X, y, n_init=2) for fit in (learn, learn_generally))
    assert found.divergence_ >= general.divergence_ * (1 - 1e-3)


@pytest.mark.parametrize(("n", "d"), [(200, 3), (4_000, 3), (400, 70), (12_000, 3)])
def test_classes_of_the_same_points_have_no_divergence(n, d):
    """Values on the grid may then be a little below zero."""
    X = np.random.default_rng(0).normal(size=(n, d))
    model = learn(np.vstack([X, X]), np.repeat([0, 1], n), n_init=3)
    assert model.divergence_ == pytest.approx(0, abs=1e-9)
    assert np.all(np.isfinite(model.coef_))


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_sums_beyond_single_precision():
    """Classes that are points are very far apart in white coordinates; with weights, too far for the grid's sums."""
    y = np.arange(1_000) % 2
    model = learn(np.outer(y, np.linspace(1, 2, 70)), y, np.full(1_000, 1e6), n_init=2)
    assert np.all(np.isfinite(model.coef_))
    assert model.score(np.outer(y, np.linspace(1, 2, 70)), y) == 1


def test_classes_of_the_same_points_in_another_order():
    """Of which rounding makes a divergence a little below zero, and none of the runs worth polishing."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(2_600, 40))  # too many to be sorted before
    model = learn(np.vstack([X, X[rng.permutation(2_600)]]), np.repeat([0, 1], 2_600), n_init=1)
    assert model.divergence_ == pytest.approx(0, abs=1e-9)


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = rng.normal(size=(300, 400)) + 0.2 * y[:, None]
    model = learn(X, y, n_init=2)
    assert model.score(X, y) == 1
    shrunk = learn(X, y, n_init=2, shrinkage="auto")
    assert np.isfinite(shrunk.divergence_)


@pytest.mark.parametrize(("n", "d"), [(900, 6), (9_000, 6), (3_000, 70)])
def test_several_classes(n, d):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, d)) + 2 * np.eye(3, d)[y]
    found, general = (fit(X, y, n_init=3) for fit in (learn, learn_generally))
    assert np.all(found.divergence_ >= general.divergence_ - 1e-6)
    assert [len(runs) for runs in found.results_] == [3, 3, 3]
    assert found.score(X, y) > 0.7


# ------------------------------------------------------------------------------------------------ other ways to go


def test_a_warm_start_goes_the_general_way_and_converges(monkeypatch):
    X, y = two_classes("all rows")
    model = learn(X, y, warm_start=True)
    before = model.coef_.copy()
    monkeypatch.setattr(projection, "search_on_grid", None)
    model.fit(X, y)
    assert model.result_.converged
    assert len(model.results_) == 1
    np.testing.assert_allclose(model.coef_, before, rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "options", [{"solver": "sphere"}, {"method": "exact"}, {"shrinkage": "auto"}, {"method": "bin", "eps": 1e-3}]
)
def test_methods_and_solvers_are_used_exactly_as_requested(options, monkeypatch):
    monkeypatch.setattr(projection, "search_on_grid", None)
    X, y = two_classes("few rows")
    assert np.isfinite(learn(X, y, n_init=1, max_iter=20, **options).divergence_)


@pytest.mark.parametrize("size", SIZES)
def test_a_callback_may_ask_to_stop(size):
    pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")
    X, y = two_classes(size)
    recorder = Recorder(stop_after=2)
    model = MELC(selection="divergence", random_state=0, n_init=8).set_callbacks(recorder).fit(X, y)
    assert len(model.results_) == 2
    assert recorder.heard.count("end run") == 2
    assert recorder.heard[-2:] == ["end fit", "teardown"]
    assert model.result_.converged


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [1, 3])
@pytest.mark.parametrize("size", ["few rows", "all rows", "a sample first", "many features"])
def test_a_limit_of_iterations_is_kept(size, max_iter):
    X, y = two_classes(size)
    model = learn(X, y, n_init=3, max_iter=max_iter)
    assert all(run.n_iter <= max_iter for run in model.results_ if run is not model.result_)
    assert np.isfinite(model.divergence_)


def heavy_tails(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [15, 60])
    return rng.standard_t(1.5, size=(75, 2)) + 0.2 * y[:, None], y


def starting_from(monkeypatch, *directions):
    monkeypatch.setattr(
        grid_search, "_starts", lambda c, white, *_: [white.inverse @ (v * c.finite_scale) for v in directions]
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", [10, 11])
def test_a_run_that_is_stopped_early_does_not_end_below_its_start(seed, monkeypatch):
    """The start is the optimum, and one step follows the grid away from it, by the grid's error."""
    X, y = heavy_tails(seed)
    top = learn(X, y, gamma=0.3, tol=1e-9, n_init=5)
    starting_from(monkeypatch, top.coef_[0])
    stopped = learn(X, y, gamma=0.3, max_iter=1, n_init=1)
    assert stopped.divergence_ >= top.divergence_ - 1e-12
    assert stopped.result_.history[-1] == stopped.divergence_ == stopped.results_[0].divergence
    assert len(stopped.result_.history) == stopped.result_.n_iter


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_starts_that_a_callback_left_out_are_not_compared(monkeypatch):
    pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")
    X, y = heavy_tails(10)
    there = learn(X, y, gamma=0.3, n_init=5).coef_[0]
    starting_from(monkeypatch, np.array([-there[1], there[0]]), there)
    model = MELC(selection="divergence", gamma=0.3, max_iter=1, n_init=2).set_callbacks(Recorder(stop_after=1))
    assert abs(model.fit(X, y).coef_[0] @ there) < 0.9


def test_a_start_in_place_of_a_run_without_steps_has_no_history():
    X, y = one_optimum(n=300, d=2)
    rows = MemoryRows(X, y.astype(np.int8))
    coordinates = Coordinates(rows, True)
    problem = Problem(Settings(), coordinates)
    searcher = grid_search.GridSearcher(rows, problem, coordinates.white)
    stalled = Result(np.eye(2)[0], -1.0, 1.0, 0, 1, 0, False, "", ())
    start = np.ones(2)
    found = search.no_lower_than([start], stalled, problem.objective(rows), searcher)
    assert (found.history, found.n_iter) == ((), 0)
    np.testing.assert_allclose(found.direction, searcher.direction(unit(start)))
    assert found.divergence > 0


@pytest.mark.parametrize("size", SIZES)
def test_the_history_ends_with_the_certified_divergence(size):
    result = learn(*two_classes(size), n_init=2).result_
    assert len(result.history) == result.n_iter
    assert result.history[-1] == result.divergence


def test_runs_that_are_alike_are_taken_once():
    def found(point, divergence):
        result = Result(np.zeros(2), divergence, 1.0, 0, 0, 0, True, "", ())
        return search.EndedRun(unit(np.array(point, dtype=float)), result)

    runs = [found([1, 0], 1.0), found([0, 2], 3.0), found([0.01, -1], 2.9), found([1, 1], 2.0), found([1, -1], 1.7)]
    assert [run.divergence for run in search.distinct_best(runs, 0.6)] == [3.0, 2.0]
    assert [run.divergence for run in search.distinct_best(runs, 0.0)] == [3.0, 2.0, 1.7, 1.0]


@pytest.mark.parametrize("best", [0.0, -1e-7])
def test_the_best_run_is_kept_though_its_divergence_is_not_above_zero(best):
    result = Result(np.zeros(2), best, 1.0, 0, 0, 0, True, "", ())
    runs = [search.EndedRun(np.array([1.0, 0.0]), result)]
    assert search.distinct_best(runs, 0.97) == runs


def test_starts_are_handed_to_threads_a_few_at_a_time():
    """All at once they would keep an interrupt waiting for seconds, and be cancelled in vain when a callback ends."""
    asked = []
    with grid_search.threads(2) as mapped:
        results = mapped(lambda k: k, (asked.append(k) or k for k in range(1_000)))
        assert next(iter(results)) == 0
        assert len(asked) < 10
        assert list(results) == list(range(1, 1_000))


SCENES = {
    "all rows": (
        "MELC(n_init=2, n_jobs=2).fit(*data(3_000, 40)); X, y = data(6_000, 60); X -= 0.97 * y[:, None]",
        "MELC(n_jobs=2, n_init=30_000, random_state=0).fit(X, y)",
    ),
    "many features": (
        "MELC(n_init=2, n_jobs=2).fit(*data(3_000, 100)); X, y = data(100_000, 300); X -= 0.97 * y[:, None]",
        "MELC(n_jobs=2, n_init=30_000, random_state=0).fit(X, y)",
    ),
}


@pytest.mark.slow
def test_an_interrupt_is_heard():
    test_interrupts.test_an_interrupt_is_heard(SCENES)


@pytest.mark.dask
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", ["many rows", "many of both"])
def test_dask_finds_what_memory_finds(size, weighted):
    da = pytest.importorskip("dask.array", reason="Dask is not installed: pip install 'melc[dask]'")
    X, y = two_classes(size)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y)) if weighted else None
    expected = learn(X, y, weights, n_init=4)
    lazy = [None if a is None else da.from_array(a, chunks=(7_000, *a.shape[1:])) for a in (X, y, weights)]
    found = learn(*lazy, n_init=4)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.thresholds_, expected.thresholds_, rtol=0, atol=1e-8)
