"""The ten data sets of the paper's evaluation, each feature in [-1, 1] and labelled as libSVM labels it.

Eight are embedded in the package: they were read from packages that carry them faithfully and scaled as
libSVM scales (``tools/embed_datasets.py`` makes them again and tells where each comes from). ``australian``
and ``fourclass`` are in no package; they are fetched once from the libSVM collection into the user's cache.
With the environment variable ``MELC_DATA=<folder>`` they are read from ``<folder>/<name>.libsvm`` instead.

Nothing is taken on trust: whatever its way in, a data set counts only if shape, labels and the SHA-256 of
its numbers are those on record here.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np

LIBSVM_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
FOLDER_VARIABLE = "MELC_DATA"
TIMEOUT_SECONDS = 30


class DataSetError(RuntimeError):
    """A data set is not at hand, or is not what it claims to be; the message says what to do."""


@dataclass(frozen=True)
class DataSet:
    """One data set: ``X`` (n_samples × n_features) in [-1, 1] and ``y`` with libSVM's two labels."""

    name: str
    X: np.ndarray
    y: np.ndarray
    source: str


@dataclass(frozen=True)
class Entry:
    """What is known of a data set before its numbers are read."""

    name: str
    shape: tuple[int, int]
    class_counts: dict[int, int]
    sha256: str
    source: str
    embedded: bool
    remark: str


@dataclass(frozen=True)
class Listing:
    """An `Entry` and whether its numbers can be had without a network, now."""

    entry: Entry
    at_hand: bool
    where: str


@lru_cache
def registry() -> dict[str, Entry]:
    """The ten entries by name, in the paper's order.

    >>> list(registry())[:3]
    ['australian', 'breast-cancer', 'diabetes']
    """
    table = json.loads(files("melc.paper").joinpath("data/registry.json").read_text("utf-8"))
    return {name: _entry(name, **fields) for name, fields in table.items()}


def _entry(name: str, *, shape: list[int], class_counts: dict[str, int], **fields: object) -> Entry:
    counts = {int(label): count for label, count in class_counts.items()}
    return Entry(name, (shape[0], shape[1]), counts, **fields)  # type: ignore[arg-type]


def load(name: str, *, base_url: str = LIBSVM_URL, cache: str | os.PathLike[str] | None = None) -> DataSet:
    """One of the ten data sets, checked against its recorded content.

    Parameters
    ----------
    name : a name of `registry`.
    base_url : where ``<name>_scale`` is fetched from if it is neither embedded nor in ``MELC_DATA``.
    cache : folder for fetched files; the user's cache folder by default.

    >>> heart = load("heart")
    >>> heart.X.shape, float(heart.X.min()), float(heart.X.max())
    ((270, 13), -1.0, 1.0)
    """
    entry = _find(name)
    if entry.embedded:
        X, y = _read_embedded(name)
        return _checked(entry, X, y, "the copy embedded in melc", "reinstall melc")
    if os.environ.get(FOLDER_VARIABLE):
        path = _path_in_folder(entry)
        X, y = parse_libsvm(path, entry.shape[1])
        return _checked(entry, X, y, str(path), f"put libSVM's {name}_scale there as {name}.libsvm")
    return _fetch(entry, base_url, _cache_folder(cache))


def list_datasets(cache: str | os.PathLike[str] | None = None) -> list[Listing]:
    """All ten data sets with what is known of them, and whether they are at hand without a network.

    >>> [listing.entry.name for listing in list_datasets() if listing.entry.embedded][-1]
    'splice'
    """
    return [_listing(entry, _cache_folder(cache)) for entry in registry().values()]


def content_hash(X: np.ndarray, y: np.ndarray) -> str:
    """SHA-256 of the numbers alone, whatever the file around them looks like.

    Shape, labels as 64-bit integers, features as 64-bit floats; little-endian, row after row; −0 is 0.
    """
    digest = hashlib.sha256(f"{X.shape[0]} x {X.shape[1]}".encode())
    digest.update(np.ascontiguousarray(y, dtype="<i8").tobytes())
    digest.update(np.ascontiguousarray(np.asarray(X) + 0.0, dtype="<f8").tobytes())
    return digest.hexdigest()


def parse_libsvm(path: Path, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Dense features and integer labels of a libSVM text file."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(path, n_features=n_features)
    except ValueError as error:
        raise DataSetError(f"{path} is not a libSVM file of {n_features} features: {error}") from error
    return X.toarray(), y.astype(np.int64)


def _find(name: str) -> Entry:
    if name not in registry():
        raise DataSetError(f"no data set is called {name!r}; there are: {', '.join(registry())}")
    return registry()[name]


def _read_embedded(name: str) -> tuple[np.ndarray, np.ndarray]:
    packed = files("melc.paper").joinpath(f"data/{name}.csv.gz").read_bytes()
    table = np.loadtxt(gzip.decompress(packed).decode().splitlines(), delimiter=",")
    return table[:, 1:], table[:, 0].astype(np.int64)


def _checked(entry: Entry, X: np.ndarray, y: np.ndarray, where: str, remedy: str) -> DataSet:
    """The data set, if its content is the recorded one."""
    labels, counts = np.unique(y, return_counts=True)
    found_counts = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    found = (X.shape, found_counts, content_hash(X, y))
    if found != (entry.shape, entry.class_counts, entry.sha256):
        raise DataSetError(
            f"{entry.name}: the content of {where} is not libSVM's {entry.name}_scale. Found shape "
            f"{found[0]}, classes {found[1]}, SHA-256 {found[2][:12]}…; expected {entry.shape}, classes "
            f"{entry.class_counts}, SHA-256 {entry.sha256[:12]}…. Remedy: {remedy}."
        )
    return DataSet(entry.name, X, y, where)


def _path_in_folder(entry: Entry) -> Path:
    folder = Path(os.environ[FOLDER_VARIABLE])
    path = folder / f"{entry.name}.libsvm"
    if not path.is_file():
        raise DataSetError(
            f"{entry.name}: {FOLDER_VARIABLE} is {str(folder)!r}, but there is no file {path.name} in it. "
            f"Put libSVM's {entry.name}_scale there under that name, or unset {FOLDER_VARIABLE} to fetch it."
        )
    return path


def _cache_folder(cache: str | os.PathLike[str] | None) -> Path:
    return Path(cache) if cache is not None else Path(_pooch().os_cache("melc"))


def _cached_path(entry: Entry, cache: Path) -> Path:
    return cache / f"{entry.name}_scale"


def _fetch(entry: Entry, base_url: str, cache: Path) -> DataSet:
    """From the cache, or else from the network; a file with wrong content does not stay in the cache."""
    path = _cached_path(entry, cache)
    url = f"{base_url}/{entry.name}_scale"
    if not path.is_file():
        _download(entry, url, path)
    try:
        X, y = parse_libsvm(path, entry.shape[1])
        return _checked(entry, X, y, url, f"try again later, or {_take_from_disk(entry)}")
    except DataSetError:
        path.unlink()
        raise


def _download(entry: Entry, url: str, path: Path) -> None:
    """Download with pooch, which writes to a temporary file and moves it when it is whole."""
    pooch = _pooch()
    downloader = pooch.HTTPDownloader(timeout=TIMEOUT_SECONDS)
    pooch.get_logger().setLevel("WARNING")
    try:
        pooch.retrieve(url, known_hash=None, fname=path.name, path=path.parent, downloader=downloader)
    except OSError as error:  # requests' errors are OSErrors: no network, refused, cut, 404
        raise DataSetError(
            f"{entry.name} could not be fetched from {url} ({type(error).__name__}: {error}). "
            f"Remedy: check the network and run again, or {_take_from_disk(entry)}."
        ) from error


def _take_from_disk(entry: Entry) -> str:
    return f"save libSVM's {entry.name}_scale as <folder>/{entry.name}.libsvm and set {FOLDER_VARIABLE}=<folder>"


def _listing(entry: Entry, cache: Path) -> Listing:
    if entry.embedded:
        return Listing(entry, True, "embedded in melc")
    if folder := os.environ.get(FOLDER_VARIABLE):
        path = Path(folder) / f"{entry.name}.libsvm"
    else:
        path = _cached_path(entry, cache)
    if path.is_file():
        return Listing(entry, True, str(path))
    return Listing(entry, False, f"to be fetched from {LIBSVM_URL}" if not folder else f"no file {path}")


def _pooch():  # type: ignore[no-untyped-def]
    try:
        import pooch
    except ImportError as error:
        raise ImportError("fetching data sets needs pooch: pip install 'melc[paper]'") from error
    return pooch
