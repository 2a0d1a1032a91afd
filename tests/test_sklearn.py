"""What melc takes from scikit-learn: private names in one file only, and what it has in place of others."""

import ast
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info

import melc
from melc._sklearn import check_weights, n_threads_for, one_blas_thread

PACKAGE = Path(melc.__file__).parent


# --------------------------------------------------------------------------------------------------- private names


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def private_names(code):
    """The private names of scikit-learn that a file imports, or reaches for in its modules."""
    found = []
    for node in ast.walk(ast.parse(code)) if "sklearn" in code else ():
        if isinstance(node, ast.ImportFrom) and not node.level and node.module.split(".")[0] == "sklearn":
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "sklearn"]
        elif isinstance(node, ast.Attribute) and ast.unparse(node).startswith("sklearn."):
            names = [ast.unparse(node)]
        else:
            continue
        found += [name for name in names if any(map(is_private, name.split(".")))]
    return found


@pytest.mark.parametrize(
    "line",
    [
        "from sklearn.base import BaseEstimator, _fit_context",
        "from sklearn.utils._param_validation import Interval",
        "from sklearn import _loss",
        "import sklearn.utils._mask as mask",
        "import sklearn\nsklearn.utils._mask.f()",
        "def later():\n    from sklearn.utils import _mask",
    ],
)
def test_private_names_are_seen(line):
    assert private_names(line)
    assert not private_names(
        "from sklearn.base import clone\nimport sklearn\nfrom melc import _version\nsklearn.__file__"
    )


def test_private_names_stand_in_one_file_only():
    users = {path.relative_to(PACKAGE).as_posix(): private_names(path.read_text()) for path in PACKAGE.rglob("*.py")}
    assert len(users) > 50
    assert {path: names for path, names in users.items() if names and path != "_sklearn.py"} == {}
    assert users["_sklearn.py"]


# --------------------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize(
    "given",
    [
        [1, 0, 2.5],
        (1, 0, 2.5),
        np.array([1, 0, 2.5]),
        np.array([1, 0, 2.5], dtype=np.float32),
        np.array([1, 9, 0, 9, 2.5])[::2],
    ],
)
def test_weights_become_an_array_of_floats(given):
    found = check_weights(given, 3)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [1, 0, 2.5])


def test_a_single_number_serves_all_rows():
    for number in (2, 2.0, np.float32(2), np.int64(2)):
        np.testing.assert_array_equal(check_weights(number, 4), [2, 2, 2, 2])


def test_weights_of_a_frame():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([1, 2, 3], index=[7, 8, 9])
    np.testing.assert_array_equal(check_weights(series, 3), [1, 2, 3])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 2], r"sample_weight has shape \(2,\), but X has 3 rows: pass one weight for each row"),
        ([[1], [2], [3]], r"sample_weight has shape \(3, 1\), but X has 3 rows"),
        ([1, -2, 3], r"sample_weight holds -2\. A weight counts as that many rows"),
        (-1.0, r"sample_weight holds -1\."),
        ([0, 0, 0], r"sample_weight is zero for every row"),
        (0, r"sample_weight is zero for every row"),
        ([1, np.nan, 3], r"sample_weight contains NaN"),
        ([1, np.inf, 3], r"sample_weight contains infinity"),
        (np.nan, r"sample_weight contains NaN"),
        (["a", "b", "c"], r"could not convert"),
        ([], r"0 sample"),
    ],
)
def test_bad_weights_are_refused_with_the_remedy(given, message):
    with pytest.raises(ValueError, match=message):
        check_weights(given, 3)


@pytest.mark.parametrize("given", [sparse.csr_array([[1.0, 2, 3]]), np.array([1, 2j, 3])])
def test_weights_of_a_kind_that_makes_no_sense(given):
    with pytest.raises((TypeError, ValueError), match=r"[Ss]parse|[Cc]omplex"):
        check_weights(given, 3)


# --------------------------------------------------------------------------------------------------------- threads


def test_a_function_with_one_thread_of_blas():
    def threads(*arguments, more=0):
        """A docstring."""
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"], arguments, more

    before = threads()[0]
    limited = one_blas_thread(threads)
    assert limited(1, more=2) == ([1] * len(before), (1,), 2)
    assert limited.__doc__ == "A docstring."
    assert threads()[0] == before


def test_the_threads_that_n_jobs_stands_for():
    assert n_threads_for(3) == 3
    assert n_threads_for(None) >= 1
    assert n_threads_for(-1) >= 1
    with pytest.raises(ValueError, match="n_threads = 0"):
        n_threads_for(0)
