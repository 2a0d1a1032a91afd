"""The ten data sets of the paper's evaluation, with features scaled to [-1, 1] and libSVM's labels.

Eight are embedded in this package. They were taken from other packages and scaled as libSVM does
(``tools/embed_datasets.py`` creates them and names the source of each). ``australian`` and ``fourclass`` are in no
package; they are downloaded once from the libSVM collection into the user's cache folder. If the environment variable
``MELC_DATA=<folder>`` is set, they are read from ``<folder>/<name>.libsvm`` instead.

Every data set is checked when it is loaded: its shape, labels and the SHA-256 of its numbers must equal the recorded
ones.
"""

import gzip
import hashlib
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

LIBSVM_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
FOLDER_VARIABLE = "MELC_DATA"
TIMEOUT_SECONDS = 30


class DataSetError(RuntimeError):
    """A data set is missing or has unexpected content. The message says what to do.

    Examples
    --------
    >>> from melc.paper import DataSetError, load
    >>> try:
    ...     load("hearts")
    ... except DataSetError as error:
    ...     print(error)
    unknown data set 'hearts'; choose one of australian, ...
    """


@dataclass(frozen=True)
class DataSet:
    """A data set of the paper.

    Attributes
    ----------
    name : str
        Name of the data set.
    X : ndarray of shape (n_samples, n_features)
        Features, in [-1, 1].
    y : ndarray of shape (n_samples,)
        Labels, as libSVM has them.
    source : str
        Where the numbers come from.

    Examples
    --------
    >>> from melc.paper import load
    >>> data = load("sonar")
    >>> data.name, data.X.shape, data.source
    ('sonar', (208, 60), 'the copy embedded in melc')
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    source: str


@dataclass(frozen=True)
class Entry:
    """The recorded description of a data set."""

    name: str
    shape: tuple[int, int]
    class_counts: dict[int, int]
    sha256: str
    source: str
    embedded: bool
    remark: str


@dataclass(frozen=True)
class Listing:
    """An `Entry`, whether the data set is available without network access, and where it is."""

    entry: Entry
    at_hand: bool
    where: str


@lru_cache
def registry() -> dict[str, Entry]:
    """Return the ten entries by name, in the paper's order.

    >>> list(registry())[:3]
    ['australian', 'breast-cancer', 'diabetes']
    """
    table = json.loads(files("melc.paper").joinpath("data/registry.json").read_text("utf-8"))
    for fields in table.values():
        fields["shape"] = tuple(fields["shape"])
        fields["class_counts"] = {int(label): count for label, count in fields["class_counts"].items()}
    return {name: Entry(name, **fields) for name, fields in table.items()}


def load(name: str, *, base_url: str = LIBSVM_URL, cache: str | os.PathLike[str] | None = None) -> DataSet:
    """Return one of the ten data sets, after checking its content.

    Parameters
    ----------
    name : str
        A key of `registry`.
    base_url : str
        Address of the folder from which ``<name>_scale`` is downloaded if it is neither embedded nor in ``MELC_DATA``.
    cache : path, default=None
        Folder for downloaded files. By default the user's cache folder.

    Returns
    -------
    data : DataSet

    Examples
    --------
    >>> from melc.paper import load
    >>> heart = load("heart")
    >>> heart.X.shape, float(heart.X.min()), float(heart.X.max())
    ((270, 13), -1.0, 1.0)
    """
    if name not in registry():
        raise DataSetError(f"unknown data set {name!r}; choose one of {', '.join(registry())}")
    entry = registry()[name]
    if entry.embedded:
        packed = files("melc.paper").joinpath(f"data/{name}.csv.gz").read_bytes()
        table = np.loadtxt(gzip.decompress(packed).decode().splitlines(), delimiter=",")
        X, y = table[:, 1:], table[:, 0].astype(np.int64)
        return _verified(entry, X, y, "the copy embedded in melc", "reinstall melc")
    path = _path_of(entry, cache)
    if not os.environ.get(FOLDER_VARIABLE):
        return _fetch(entry, f"{base_url}/{name}_scale", path)
    if not path.is_file():
        raise DataSetError(
            f"{name}: {FOLDER_VARIABLE} is {str(path.parent)!r}, but there is no file {path.name} in it. "
            f"Put libSVM's {name}_scale there under that name, or unset {FOLDER_VARIABLE} to download it."
        )
    X, y = parse_libsvm(path, entry.shape[1])
    return _verified(entry, X, y, str(path), f"put libSVM's {name}_scale there as {name}.libsvm")


def list_datasets(cache: str | os.PathLike[str] | None = None) -> list[Listing]:
    """Return the descriptions of all ten data sets, and whether each is available without network access.

    Examples
    --------
    >>> from melc.paper import list_datasets
    >>> [listing.entry.name for listing in list_datasets() if listing.entry.embedded][-1]
    'splice'
    """
    listings = []
    for entry in registry().values():
        path = None if entry.embedded else _path_of(entry, cache)
        if path is None:
            where = "embedded in melc"
        elif path.is_file():
            where = str(path)
        elif os.environ.get(FOLDER_VARIABLE):
            where = f"missing file {path}"
        else:
            where = f"will be downloaded from {LIBSVM_URL}"
        listings.append(Listing(entry, path is None or path.is_file(), where))
    return listings


def content_hash(X: np.ndarray, y: np.ndarray) -> str:
    """Return the SHA-256 of the numbers, independent of the file format.

    The digest is over the shape, the labels ``y`` as 64-bit integers and the features ``X`` as 64-bit floats, in
    little-endian and row-major order, with −0 replaced by 0.
    """
    digest = hashlib.sha256(f"{X.shape[0]} x {X.shape[1]}".encode())
    digest.update(np.ascontiguousarray(y, dtype="<i8").tobytes())
    digest.update(np.ascontiguousarray(np.asarray(X) + 0.0, dtype="<f8").tobytes())
    return digest.hexdigest()


def parse_libsvm(path: Path, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the dense features, shape (n_samples, n_features), and integer labels, (n_samples,), of a libSVM file."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(path, n_features=n_features)
    except ValueError as error:
        raise DataSetError(f"{path} is not a libSVM file with {n_features} features: {error}") from error
    return X.toarray(), y.astype(np.int64)


def _verified(entry: Entry, X: np.ndarray, y: np.ndarray, where: str, remedy: str) -> DataSet:
    """Return the data set if its content equals the recorded one, else raise ``DataSetError`` with the remedy."""
    labels, counts = np.unique(y, return_counts=True)
    found_counts = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    found = (X.shape, found_counts, content_hash(X, y))
    if found != (entry.shape, entry.class_counts, entry.sha256):
        raise DataSetError(
            f"{entry.name}: the content of {where} is not libSVM's {entry.name}_scale. Found shape "
            f"{found[0]}, classes {found[1]}, SHA-256 {found[2][:12]}…; expected {entry.shape}, classes "
            f"{entry.class_counts}, SHA-256 {entry.sha256[:12]}…. To fix it, {remedy}."
        )
    return DataSet(entry.name, X, y, where)


def _path_of(entry: Entry, cache: str | os.PathLike[str] | None) -> Path:
    """Return the file of a data set that is not embedded: in the folder MELC_DATA if that is set, else in the cache."""
    if folder := os.environ.get(FOLDER_VARIABLE):
        return Path(folder) / f"{entry.name}.libsvm"
    return Path(cache if cache is not None else _pooch().os_cache("melc")) / f"{entry.name}_scale"


def _fetch(entry: Entry, url: str, path: Path) -> DataSet:
    """Return a data set from the cache, or download it. A file with wrong content is removed from the cache."""
    name = entry.name
    by_hand = f"save libSVM's {name}_scale as <folder>/{name}.libsvm and set {FOLDER_VARIABLE}=<folder>"
    pooch = _pooch()
    downloader = pooch.HTTPDownloader(timeout=TIMEOUT_SECONDS)
    pooch.get_logger().setLevel("WARNING")
    try:  # pooch writes to a temporary file and moves it into place when it is complete
        pooch.retrieve(url, known_hash=None, fname=path.name, path=path.parent, downloader=downloader)
    except OSError as error:  # the errors of requests: no network, connection refused or lost, HTTP errors
        raise DataSetError(
            f"{name} could not be downloaded from {url} ({type(error).__name__}: {error}). "
            f"Check the network and run again, or {by_hand}."
        ) from error
    try:
        X, y = parse_libsvm(path, entry.shape[1])
        return _verified(entry, X, y, url, f"try again later, or {by_hand}")
    except DataSetError:
        path.unlink()
        raise


def _pooch() -> Any:
    try:
        import pooch
    except ImportError as error:
        raise ImportError("Downloading data sets needs pooch: pip install 'melc[paper]'") from error
    return pooch
