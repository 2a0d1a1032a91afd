"""What is checked before a fit: labels in stretches are those of all rows at once, too many classes are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from melc import MELC, AdditiveMELC
from melc.fit import validation

PLENTY = 1 << 30


@given(
    y=st.lists(st.integers(-3, 3), min_size=1, max_size=60),
    kind=st.sampled_from([np.int64, np.float64, str, object, bool]),
    at_once=st.integers(1, 70),
)
def test_stretches_find_what_numpy_finds(y, kind, at_once):
    y = np.array([str(label) for label in y], dtype=object) if kind is object else np.array(y).astype(kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "_LABELS_AT_ONCE", at_once)
        found = validation.labels_in(y, PLENTY)
        numbers = validation.class_numbers(y, found)
    expected, index = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(numbers, index)
    assert numbers.dtype == (np.int8 if len(expected) <= 2 else np.intp)


@pytest.fixture
def checked(monkeypatch):
    """Numbers of classes that were checked, in stretches of ten labels."""
    monkeypatch.setattr(validation, "_LABELS_AT_ONCE", 10)
    seen, check = [], validation.check_number_of_classes
    monkeypatch.setattr(validation, "check_number_of_classes", lambda n, *given: seen.append(n) or check(n, *given))
    return seen


def test_a_quantity_is_refused_by_its_first_stretch(checked):
    with pytest.raises(ValueError, match="continuous"):
        validation.labels_in(np.linspace(0, 1, 100), PLENTY)
    assert not checked


def test_too_many_labels_end_the_search(checked, monkeypatch):
    monkeypatch.setattr(validation, "_MANY_CLASSES", 5)
    monkeypatch.setattr(validation, "_ROWS_PER_CLASS", 20)
    with pytest.raises(ValueError, match=r"10 classes in 100 rows.*join the rare ones"):
        validation.labels_in(np.arange(100), PLENTY)
    assert checked == [10]


def test_as_many_classes_as_the_data_can_bear():
    validation.check_number_of_classes(50, 100, 100)
    validation.check_number_of_classes(60, 240, 100)
    with pytest.raises(ValueError, match="60 classes in 239 rows"):
        validation.check_number_of_classes(60, 239, 100)
    validation.check_number_of_classes(1000, 2**24, 2**30)
    with pytest.raises(ValueError, match=r"takes 16000.0 MiB, while the features take 512.0 MiB"):
        validation.check_number_of_classes(1000, 2**24, 2**29)


@pytest.mark.parametrize(("labels", "types"), [((1, "a"), "int, str"), ((1.5, "a"), "float, str")])
def test_labels_without_an_order_are_refused(labels, types):
    y = np.array(labels * 10, dtype=object)
    for kind in (MELC(), AdditiveMELC()):
        with pytest.raises(ValueError, match=f"The labels are of different types, which have no order: {types}"):
            kind.fit(np.arange(20.0)[:, None], y)
