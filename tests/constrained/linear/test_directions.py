"""Standardized directions of folds: scales, pooling, mixtures, units of columns."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from skbandit.constrained.linear._directions import Directions, Mixture, column_scales, standardize

RNG = np.random.default_rng(6)
N = 90
X = RNG.normal([0.0, 5.0, -1.0], size=(N, 3))
FOLD = np.arange(N) % 3
USED = np.ones(N)
FOUND = [{"plain": RNG.normal(size=3), "other": RNG.normal(size=3)} for _ in range(3)]


def made(found=FOUND, centered=True):
    return Directions.standardized(X, USED, FOLD, found, centered=centered)


MIXTURES = [Mixture("plain", "plain"), Mixture("plain", "other"), Mixture("plain", "other", 0.25)]
MIXTURES += [Mixture("plain", "other", 1.5)]


@pytest.mark.parametrize("mixture", MIXTURES, ids=str)
def test_every_score_is_by_the_model_of_its_fold(mixture):
    scores = made().out_of_fold(mixture)
    for k in range(3):
        parts = [X @ FOUND[k][name] for name in ("plain", "other")]
        plain, other = ((one - one.mean()) / one.std() for one in parts)
        if mixture.other == "plain":
            other = plain
        mixed = (1 - mixture.share) * plain + mixture.share * other
        np.testing.assert_allclose(scores[FOLD == k], (mixed / mixed.std())[FOLD == k])


@pytest.mark.parametrize("mixture", MIXTURES, ids=str)
def test_the_mean_direction_scores_the_mean_of_the_folds_scores(mixture):
    directions = made()
    coef, mean = standardize(X, USED, directions.mean_direction(mixture), centered=True)
    scores = X @ coef - mean
    assert scores.mean() == pytest.approx(0.0, abs=1e-9)
    assert scores.std() == pytest.approx(1.0)
    of_folds = []
    for found in FOUND:
        alone = Directions.standardized(X, USED, np.zeros(N, int), [found], centered=True)
        of_folds.append(alone.out_of_fold(mixture))
    mean_score = np.mean(of_folds, axis=0)
    np.testing.assert_allclose(scores, mean_score / mean_score.std(), atol=1e-9)


def test_scales_of_the_models_do_not_matter():
    scaled = [
        {name: (k + 1.0) * (10.0 if name == "other" else 1.0) * coef for name, coef in one.items()}
        for k, one in enumerate(FOUND)
    ]
    for mixture in MIXTURES:
        one, other = made().out_of_fold(mixture), made(scaled).out_of_fold(mixture)
        np.testing.assert_allclose(one, other)


def test_a_missing_or_empty_direction_is_the_plain_one():
    holes = [{"plain": FOUND[0]["plain"]}, {**FOUND[1], "other": np.zeros(3)}, FOUND[2]]
    directions = made(holes)
    plain, other = (directions.out_of_fold(Mixture("plain", one)) for one in ("plain", "other"))
    np.testing.assert_allclose(plain[FOLD < 2], other[FOLD < 2])
    assert not np.allclose(plain[FOLD == 2], other[FOLD == 2])


def test_without_an_intercept_scores_keep_their_zero():
    directions = made(centered=False)
    scores = directions.out_of_fold(MIXTURES[0])
    for k in range(3):
        raw = X @ FOUND[k]["plain"]
        np.testing.assert_allclose(np.sign(scores[FOLD == k]), np.sign(raw[FOLD == k]))


def test_rows_of_no_weight_do_not_scale():
    weight = USED.copy()
    weight[:30] = 0.0
    far = X.copy()
    far[:30] *= 100.0
    one = Directions.standardized(X, weight, FOLD, FOUND, centered=True)
    other = Directions.standardized(far, weight, FOLD, FOUND, centered=True)
    np.testing.assert_allclose(one.scores[30:], other.scores[30:])


@pytest.mark.parametrize("centered", [True, False])
def test_scales_follow_the_units_of_columns(centered):
    sparse = X * (RNG.random((N, 3)) < 0.4)
    units = np.array([1e-6, 1.0, 1e5])
    for data in (X, sparse):
        scales = column_scales(data, USED, centered=centered)
        np.testing.assert_allclose(
            column_scales(data * units, USED, centered=centered), scales * units
        )
        np.testing.assert_allclose(column_scales(csr_array(data), USED, centered=centered), scales)


def test_scales_of_numbers_indicators_and_constants():
    rare = (np.arange(N) < 3).astype(float)
    data = np.column_stack([X[:, 1], rare, np.full(N, 7.0), np.zeros(N)])
    scales = column_scales(data, USED, centered=True)
    assert scales[0] == pytest.approx(X[:, 1].std())
    assert scales[1] == pytest.approx(np.sqrt(1 - 3 / N))
    assert scales[2:] == pytest.approx([7.0, 1.0])
