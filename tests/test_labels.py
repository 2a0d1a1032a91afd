"""Labels in stretches are those of all rows at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from melc.fit import labels


def accept(number):
    pass


@given(
    y=st.lists(st.integers(-3, 3), min_size=1, max_size=60),
    kind=st.sampled_from([np.int64, np.float64, str, object, bool]),
    at_once=st.integers(1, 70),
)
def test_stretches_find_what_numpy_finds(y, kind, at_once):
    y = np.array([str(label) for label in y], dtype=object) if kind is object else np.array(y).astype(kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labels, "_AT_ONCE", at_once)
        found = labels.labels_in(y, accept)
        numbers = labels.numbers_of(y, found)
    expected, index = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(numbers, index)
    assert numbers.dtype == (np.int8 if len(expected) <= 2 else np.intp)


def test_a_quantity_is_refused_by_its_first_stretch(monkeypatch):
    monkeypatch.setattr(labels, "_AT_ONCE", 10)
    seen = []
    with pytest.raises(ValueError, match="continuous"):
        labels.labels_in(np.linspace(0, 1, 100), seen.append)
    assert not seen


def test_too_many_labels_end_the_search(monkeypatch):
    monkeypatch.setattr(labels, "_AT_ONCE", 10)
    seen = []

    def refuse(number):
        seen.append(number)
        if number > 5:
            raise ValueError("too many")

    with pytest.raises(ValueError, match="too many"):
        labels.labels_in(np.arange(100), refuse)
    assert seen == [10]
