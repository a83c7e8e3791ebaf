"""Recalibrated probabilities: known temperatures and constants, and what must not change."""

import numpy as np
import pytest
from scipy.optimize import minimize

from skbandit.constrained.rules._recalibrate import RIDGE, Recalibration, recalibrate


def sample(seed, n=20_000, n_classes=3):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n_classes), n)
    label = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return p, label, rng


def normalized(p):
    return p / p.sum(axis=1, keepdims=True)


def test_constants_by_class_and_group_are_found():
    p, label, rng = sample(1)
    group = rng.integers(0, 2, len(p))
    shift = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, -1.0]])
    wrong = normalized(p * np.exp(-shift[group]))
    rule = Recalibration.fit(wrong, label, np.ones(len(p)), group, 2)
    found = rule.constants[:2] - rule.constants[:2].mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found, shift - shift.mean(axis=1, keepdims=True), atol=0.2)
    np.testing.assert_allclose(rule(wrong, group), p, atol=0.06)


def test_it_is_the_minimum_of_the_penalized_loss():
    """By another method, without gradients."""
    p, label, rng = sample(2, n=300)
    w = rng.random(300) + 0.5
    rule = Recalibration.fit(p, label, w, None, 1)
    w = w / w.mean()

    def loss(x):
        odds = np.exp(x[0] * np.log(p) + x[1:])
        share = normalized(odds)[np.arange(300), label]
        return -(w @ np.log(share)) + 0.5 * RIDGE * (x[1:] @ x[1:])

    best = minimize(loss, np.r_[1.0, np.zeros(3)], method="Nelder-Mead",
                    options={"xatol": 1e-7, "fatol": 1e-9, "maxiter": 4000}).x  # fmt: skip
    assert 1 / rule.temperature == pytest.approx(best[0], abs=1e-3)
    np.testing.assert_allclose(rule.constants[-1], best[1:], atol=1e-3)


def test_decisions_that_are_no_labels_stay_impossible_and_unseen_labels_possible():
    p, label, _ = sample(3, n=500)
    wide = np.column_stack([p, np.zeros(500)])
    rule = Recalibration.fit(wide, np.where(label == 2, -1, label), np.ones(500), None, 1)
    after = rule(wide)
    assert (after[:, 3] == 0).all()
    assert rule.constants[-1, 2] == 0
    assert (after[:, 2] > 0).all()
    np.testing.assert_allclose(after.sum(axis=1), 1)
    np.testing.assert_array_equal(rule(wide[:1]), after[:1])  # whatever the batch
    assert np.isnan(rule(np.full((1, 4), np.nan))).all()


def test_rows_are_recalibrated_by_other_folds():
    """Labels of a fold do not move its own probabilities."""
    p, label, rng = sample(4, n=400)
    fold, weight = np.arange(400) % 4, np.ones(400)
    before, _ = recalibrate(p, label, weight, None, 1, fold)
    changed = np.where(fold == 2, rng.integers(0, 3, 400), label)
    after, _ = recalibrate(p, changed, weight, None, 1, fold)
    np.testing.assert_array_equal(after[fold == 2], before[fold == 2])
    assert (after[fold == 1] != before[fold == 1]).any()
