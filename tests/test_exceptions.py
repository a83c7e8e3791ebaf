"""Errors survive the trip between processes."""

import pickle

from skbandit.exceptions import InfeasibleConstraintsError


def test_the_closest_model_is_pickled_along():
    error = InfeasibleConstraintsError("missed by 0.1", closest={"model": 1})
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == "missed by 0.1"
    assert again.closest_ == {"model": 1}
    assert isinstance(again, ValueError)
