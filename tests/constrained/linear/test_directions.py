"""Standardized directions of folds: scales, mixtures, units of columns."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from skbandit.constrained.linear._directions import column_scales
from skbandit.constrained.linear._folds import LinearFolds
from skbandit.constrained.paper._problem import Point, RowSpan

RNG = np.random.default_rng(6)
N = 90
X = RNG.normal([0.0, 5.0, -1.0], size=(N, 3))
FOLD = np.arange(N) % 3
USED = np.ones(N)
COEF = {name: RNG.normal(size=(3, 3)) for name in ("plain", "other")}


def made(coef=COEF, rows=X, weight=USED, centered=True):
    folds = LinearFolds(
        RowSpan(rows, rows), None, np.ones(3), weight / weight.sum(), FOLD, centered
    )
    fits = {name: [Point(one, 0.0) for one in of_folds] for name, of_folds in coef.items()}
    return folds.standardized(fits)


def test_every_score_is_by_the_model_of_its_fold():
    scores = made().scores
    for k in range(3):
        for j, of_folds in enumerate(COEF.values()):
            raw = X @ of_folds[k]
            standard = (raw - raw.mean()) / raw.std()
            np.testing.assert_allclose(scores[FOLD == k, j], standard[FOLD == k])


def test_mixtures_are_of_deviation_one_and_named_by_their_shares():
    same = {name: np.repeat(of_folds[:1], 3, axis=0) for name, of_folds in COEF.items()}
    directions = made(same)
    mixtures = directions.mixtures()
    shares = [0.25, 0.5, 0.75, 1.25, 1.5]
    names = [f"{1 - t:g} plain + {t:g} other" for t in shares]
    assert list(mixtures) == ["plain", *names[:3], "other", *names[3:]]
    plain, other = directions.scores.T
    for t, name in zip(shares, names, strict=True):
        mixed = (1 - t) * plain + t * other
        np.testing.assert_allclose(directions.scores @ mixtures[name], mixed / mixed.std())
    opposite = made({"plain": same["plain"], "other": -same["plain"]})
    assert np.abs(opposite.scores @ opposite.mixtures()[names[1]]).max() < 1e-9


def test_the_mean_direction_scores_the_mean_of_the_folds_scores():
    directions = made()
    for j, of_folds in enumerate(COEF.values()):
        standard = [one / (X @ one).std() for one in of_folds]
        np.testing.assert_allclose(directions.coef[:, j], np.mean(standard, axis=0))


def test_scales_of_the_models_do_not_matter():
    factor = np.array([[1.0], [20.0], [0.3]])
    scaled = {name: factor * of_folds for name, of_folds in COEF.items()}
    np.testing.assert_allclose(made(scaled).scores, made().scores)


def test_an_empty_direction_is_the_plain_one():
    other = COEF["other"].copy()
    other[:2] = 0.0
    plain, replaced = made({"plain": COEF["plain"], "other": other}).scores.T
    np.testing.assert_allclose(plain[FOLD < 2], replaced[FOLD < 2])
    assert not np.allclose(plain[FOLD == 2], replaced[FOLD == 2])
    empty = made({"plain": np.zeros((3, 3)), "other": COEF["other"]})
    assert not empty.scores[:, 0].any() and not empty.coef[:, 0].any()


def test_without_an_intercept_scores_keep_their_zero():
    scores = made(centered=False).scores[:, 0]
    for k in range(3):
        raw = X @ COEF["plain"][k]
        np.testing.assert_allclose(scores[FOLD == k], (raw / np.sqrt(np.mean(raw**2)))[FOLD == k])


def test_rows_of_no_weight_do_not_scale():
    weight, far = np.where(np.arange(N) < 30, 0.0, 1.0), X.copy()
    far[:30] *= 100.0
    one, other = made(weight=weight), made(rows=far, weight=weight)
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
