"""Dask collections on worker processes, which die, join and are interrupted: the fit is the same.

All tests but one share a cluster on loopback, which is gone afterwards.
"""

import _thread
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from scipy import sparse

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'melc[dask]'")
import dask.array as da  # noqa: E402
from distributed import Client, LocalCluster, wait  # noqa: E402

from dask_cases import assert_same, in_chunks, learn, rows_of, two_classes, two_thresholds  # noqa: E402
from melc import MELC  # noqa: E402
from melc.data.dask.partitions import Partitions, side_by_side  # noqa: E402

pytestmark = [pytest.mark.dask, pytest.mark.slow]


@pytest.fixture(scope="module")
def data():
    return two_thresholds()


@pytest.fixture(scope="module")
def expected(data):
    return learn(*data)


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        processes = list(client.run(os.getpid).values())
        yield client
        processes += client.run(os.getpid).values()
    deadline = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{pid}") for pid in processes) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in processes if os.path.exists(f"/proc/{pid}")], "a worker was left behind"


def at_round(monkeypatch, number, action):
    """Do something when a fit comes to its n-th round."""
    rounds = []
    original = Partitions.round

    def round_(self, *arguments):
        rounds.append(1)
        if len(rounds) == number:
            action(self)
        return original(self, *arguments)

    monkeypatch.setattr(Partitions, "round", round_)
    return rounds


def test_workers_give_the_bits_of_threads_and_a_plain_model(client, data, expected):
    chunks = (2_000,) * 15
    found = learn(*in_chunks(chunks, *data))
    assert_same(found, expected)
    with dask.config.set(scheduler="threads"):
        X = in_chunks(chunks, data[0])[0]
        np.testing.assert_array_equal(found.predict(X).compute(), found.predict(data[0]))
    stored = pickle.dumps(found)
    assert b"distributed" not in stored
    assert b"dask" not in stored
    code = "import pickle, sys; m = pickle.load(sys.stdin.buffer); print(m.coef_.shape, 'dask' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], input=stored, capture_output=True, check=True).stdout
    assert printed.decode().split() == ["(1,", "8)", "False"]
    assert_same(learn(*in_chunks(chunks, *data)), found, bits=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["wide", "words"])
def test_workers_on_rows_of_many_features(client, kind):
    X, y = (each[:24_000] for each in two_classes(kind))
    lazy, labels = in_chunks((4_000,) * 6, X, y)
    if kind == "words":
        X, lazy = sparse.csr_array(X), lazy.map_blocks(sparse.csr_array)
    found, again = (learn(lazy, labels, max_iter=5) for _ in range(2))
    np.testing.assert_allclose(found.coef_, learn(X, y, max_iter=5).coef_, rtol=0, atol=1e-8)
    assert_same(again, found, bits=True)


@pytest.mark.parametrize("little", [False, True])
def test_neighbours_are_brought_together_where_there_is_little_to_move(client, data, little, monkeypatch):
    X, y = in_chunks((2_000,) * 15, *data[:2])
    first, second = list(client.nthreads())[:2]
    by_turns = [client.persist(X.blocks[i], workers=[(first, second)[i % 2]]) for i in range(15)]
    wait(by_turns)
    wished = []
    monkeypatch.setattr("melc.data.dask.rows.side_by_side", lambda *given: wished.append(1) or side_by_side(*given))
    if not little:
        monkeypatch.setattr("melc.data.dask.rows._LITTLE_TO_MOVE", 0)
    owner = {i: worker for worker, mine in rows_of(da.concatenate(by_turns), y)._partitions._grouped() for i in mine}
    assert len(wished) == little
    if little:  # all but one pair, but Dask may choose otherwise for some
        assert sum(owner[i] == owner[i + 1] for i in range(14)) >= 8


def test_a_worker_that_is_killed_is_survived(client, data, expected, monkeypatch):
    chunks = (2_000,) * 15
    before = client.run(os.getpid)
    rounds = at_round(monkeypatch, 8, lambda _: os.kill(next(iter(before.values())), signal.SIGKILL))
    found = learn(*in_chunks(chunks, *data))
    assert len(rounds) > 8  # it was in mid-fit
    assert set(client.run(os.getpid).values()) != set(before.values())
    assert_same(found, expected)
    client.wait_for_workers(2, timeout=30)
    assert_same(learn(*in_chunks(chunks, *data)), found, bits=True)


def test_a_worker_that_joins_is_used(client, data, expected, monkeypatch):
    monkeypatch.setattr("melc.data.dask.partitions._KNOWN_FOR", 0.0)
    seen = []

    def join(partitions):
        client.cluster.scale(3)
        client.wait_for_workers(3, timeout=30)

    at_round(monkeypatch, 5, join)
    grouped = Partitions._grouped
    monkeypatch.setattr(Partitions, "_grouped", lambda self: seen.append(grouped(self)) or seen[-1])
    try:
        assert_same(learn(*in_chunks((2_000,) * 15, *data)), expected)
    finally:
        client.cluster.scale(2)
    assert [len(groups) for groups in (seen[0], seen[-1])] == [2, 3]
    assert all(len(mine) == 5 for _, mine in seen[-1])


def test_workers_may_come_when_there_is_work(data, expected):
    options = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=0, **options) as cluster, Client(cluster) as late:
        soon = threading.Timer(0.5, cluster.scale, [1])
        soon.start()
        assert_same(learn(*in_chunks((2_000,) * 15, *data)), expected)
        soon.join()
        assert len(late.nthreads()) == 1


def test_an_interrupt_cancels_what_is_running(client, data, monkeypatch):
    X, y, weights = in_chunks((2_000,) * 15, *data)
    slow = X.map_blocks(lambda block: time.sleep(0.01) or block, dtype=X.dtype, meta=np.empty((0, 0)))
    model = MELC(random_state=0)
    at_round(monkeypatch, 4, lambda _: threading.Timer(0.0, _thread.interrupt_main).start())
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.fit(slow, y, weights)
    assert time.monotonic() - begin < 20
    assert not hasattr(model, "coef_")
    deadline = time.monotonic() + 10
    while any(client.processing().values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(client.processing().values())
