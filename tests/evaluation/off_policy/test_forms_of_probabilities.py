"""Probabilities in sparse matrices and as objects, and labels in a column."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skbandit.evaluation import off_policy_value

N = 400
RNG = np.random.default_rng(0)
Y = pd.DataFrame({"action": RNG.integers(3, size=N), "reward": RNG.random(N)})
P = RNG.dirichlet([1, 1, 1], size=N)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.coo_matrix, lambda p: p.astype(object)])
def test_forms_of_probabilities(form):
    assert off_policy_value(form(P), None, Y) == off_policy_value(P, None, Y)


@pytest.mark.parametrize("dtype", [int, object, str])
def test_labels_in_a_column(dtype):
    labels = np.array([[1]] * N, dtype=dtype)
    labels[0] = 2
    y = Y.assign(action=Y["action"].astype(dtype))
    with pytest.raises(ValueError, match=r"got \(400, 1\): pass labels\.ravel\(\)"):
        off_policy_value(labels, None, y)
    off_policy_value(labels.ravel(), None, y)
