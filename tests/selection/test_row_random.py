"""Random numbers of rows depend on their content only."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kstest

from skbandit.selection._row_random import uniform_by_row

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 4)) * (RNG.random((3000, 4)) < 0.7)


def test_a_batch_equals_its_rows_one_by_one():
    batch = uniform_by_row(X, 5, 7)
    alone = np.vstack([uniform_by_row(X[k : k + 1], 5, 7) for k in range(50)])
    np.testing.assert_array_equal(batch[:50], alone)
    order = np.random.default_rng(2).permutation(len(X))
    np.testing.assert_array_equal(uniform_by_row(X[order], 5, 7), batch[order])


@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sp.coo_array, np.float32])
def test_the_form_of_the_rows_does_not_matter(form):
    rows = X.astype(np.float32)
    np.testing.assert_array_equal(
        uniform_by_row(form(rows), 3, 0), uniform_by_row(rows * 1.0, 3, 0)
    )


def test_zeros_have_no_sign_and_nan_no_bits():
    assert (
        uniform_by_row(np.array([[0.0, 1.0]]), 3, 0)
        == uniform_by_row([[-0.0, 1.0]] * np.ones((1, 2)), 3, 0)
    ).all()
    other = np.array([0x7FF8000000000123], dtype=np.uint64).view(np.float64)
    np.testing.assert_array_equal(
        uniform_by_row(np.array([[np.nan]]), 3, 0), uniform_by_row(other[None], 3, 0)
    )


def test_numbers_are_uniform_and_unrelated():
    found = uniform_by_row(X, 6, 3)
    assert len(np.unique(found)) == len(np.unique(X, axis=0)) * 6
    assert found.min() >= 0
    assert found.max() < 1
    rows = uniform_by_row(np.unique(X, axis=0), 6, 3)
    # false alarms with probability 1e-6 each
    assert all(kstest(column, "uniform").pvalue > 1e-6 for column in rows.T)
    correlation = np.corrcoef(np.hstack([rows, uniform_by_row(np.unique(X, axis=0), 6, 4)]).T)
    bound = 5.5 / np.sqrt(len(rows))  # of 66 correlations; exceeded with probability 3e-6
    assert abs(correlation - np.eye(12)).max() < bound


def test_columns_of_a_row_are_told_apart():
    one = uniform_by_row(np.array([[1.0, 2.0]]), 1, 0)
    other = uniform_by_row(np.array([[2.0, 1.0]]), 1, 0)
    assert one != other
