"""Errors are pickled whole, and are the kinds of error that callers expect."""

import pickle

import numpy as np
import pytest

from skbandit import ConstrainedRampClassifier
from skbandit.exceptions import EmptyRateError, InfeasibleConstraintsError
from skbandit.rates import recall


def test_the_closest_model_is_pickled_along():
    error = InfeasibleConstraintsError("missed by 0.1", closest={"model": 1})
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == "missed by 0.1"
    assert again.closest_ == {"model": 1}
    assert isinstance(again, ValueError)


@pytest.mark.parametrize("where", ["age > 90", "age < 45"])
def test_an_empty_rate_is_a_value_error_that_names_the_rate(where):
    X, y = np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1]
    clf = ConstrainedRampClassifier(constraints=recall(where) >= 0.9)
    with pytest.raises(EmptyRateError, match=where) as caught:
        clf.fit(X, y, attributes={"age": [20, 30, 40, 50, 60, 70]})
    assert isinstance(caught.value, ValueError)
