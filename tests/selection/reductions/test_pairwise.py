"""One classifier for all pairs of described ads: regret, transitivity, ads unseen in training."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skbandit import SetSelectClassifier
from skbandit.selection import PopularitySetSelector
from skbandit.selection.reductions._pairwise import PlayedPairs, crossed, learn_pairwise
from tests.tiers import first

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
ADS = pd.DataFrame(RNG.normal(size=(12, 3)), index=[f"ad {a}" for a in range(12)]).add_prefix("z")
EXPECTED = -(X @ RNG.normal(size=(4, 3)) + RNG.normal(size=3)) @ ADS.to_numpy().T
COSTS = pd.DataFrame(EXPECTED + RNG.normal(size=EXPECTED.shape), columns=ADS.index)
OLD = slice(0, 200)


class Answers:
    """Decides matches as told: `better[x]` is a matrix of ads, found by their features."""

    def __init__(self, better):
        self.better = better

    def predict(self, pairs):
        n_ads = len(self.better)
        difference = pairs[:, 1:]
        i, j = difference.argmax(axis=1), difference.argmin(axis=1)
        assert n_ads == difference.shape[1]
        return self.better[i, j].astype(int)


@pytest.mark.parametrize("seed", first(20, range(300)))
def test_regret_of_the_tournament(seed):
    """At most the regrets of the two costliest matches, and the sum of all; sets m times that."""
    rng = np.random.default_rng(seed)
    n_ads = rng.integers(2, 7)
    better = np.triu(rng.random((n_ads, n_ads)) < 0.5, 1)
    better = better | (~better.T & np.tri(n_ads, k=-1, dtype=bool))
    f = rng.normal(size=n_ads)
    rule = PlayedPairs((), Answers(better), np.eye(n_ads))
    responses, allowed = rule.respond(np.zeros((1, 1))), rng.random((1, n_ads)) < 0.8
    regrets = sorted(
        (abs(f[i] - f[j]) for i, j in combinations(range(n_ads), 2)
         if allowed[0, [i, j]].all() and better[i, j] != (f[i] < f[j])),
        reverse=True,
    )  # fmt: skip
    total = 0.0
    for k in range(allowed.sum()):
        winner = rule.choose(responses, allowed)[0]
        regret = f[winner] - f[allowed[0]].min()
        assert regret <= sum(regrets[:2]) + 1e-12
        total += regret
        assert total <= (k + 1) * sum(regrets) + 1e-12
        allowed[0, winner] = False


class Probabilities(Answers):
    """Says how likely the first ad is better, `better`, which need not fit the other order."""

    def predict_proba(self, pairs):
        difference = pairs[:, 1:]
        first_wins = self.better[difference.argmax(axis=1), difference.argmin(axis=1)]
        return np.stack([1 - first_wins, first_wins], axis=1)


def test_a_classifier_that_contradicts_itself():
    """The order in which an ad is the likelier winner decides, beyond 1/2 or not."""
    likely = np.random.default_rng(0).random((8, 8))
    wins = PlayedPairs((), Probabilities(likely), np.eye(8)).respond(np.zeros((2, 1)))
    i, j = np.triu_indices(8, 1)
    assert (likely[i, j] > 0.5).tolist() != (likely[i, j] > likely[j, i]).tolist()
    np.testing.assert_array_equal(wins, np.tile(likely[i, j] > likely[j, i], (2, 1)))


def test_the_penalty_does_not_depend_on_how_many_pairs_are_drawn(monkeypatch):
    """A tenth of the pairs has a tenth of the loss, and needs a tenth of the penalty."""
    Z, alpha = ADS.to_numpy(), 1000.0

    def weights():
        random = np.random.RandomState(0)
        return learn_pairwise(X, COSTS.to_numpy(), np.ones(300), Z, None, alpha, random).W

    every = weights()
    monkeypatch.setattr("skbandit.selection.reductions._pairwise.MAX_PAIRS", 1980)  # of 19800
    assert np.linalg.norm(weights()) == pytest.approx(np.linalg.norm(every), rel=0.1)
    # the objective by hand: C sum(loss) + w'w / 2, in both orders
    size = alpha * Z.var(axis=0).sum() * 12 / 2
    i, j = np.triu_indices(12, 1)
    gain = (COSTS.to_numpy()[:, j] - COSTS.to_numpy()[:, i]).ravel()
    rows = np.repeat(X, len(i), axis=0)
    by_hand = LogisticRegression(C=1 / size, fit_intercept=False, max_iter=1000)
    stake = np.abs(gain) / np.abs(gain).mean()
    differences = crossed(rows, np.tile(Z[i] - Z[j], (300, 1)))
    by_hand.fit(
        np.concatenate([differences, -differences]),
        np.concatenate([gain > 0, gain < 0]),
        np.tile(stake, 2),
    )
    np.testing.assert_allclose(every.ravel(), by_hand.coef_.ravel(), rtol=1e-3, atol=1e-4)


def test_products_of_features():
    Z = RNG.normal(size=(300, 3))
    dense = crossed(X, Z)
    expected = np.einsum("ij,ik->ijk", np.hstack([X, np.ones((300, 1))]), Z).reshape(300, -1)
    np.testing.assert_allclose(dense, expected)
    np.testing.assert_allclose(crossed(sp.csr_array(X), Z).toarray(), expected)


@pytest.mark.parametrize(
    "learner",
    [
        None,
        LogisticRegression(),
        LinearSVC(),
        HistGradientBoostingClassifier(max_iter=30, random_state=0),
        DecisionTreeClassifier(max_depth=6, random_state=0),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_ads_never_seen_are_chosen_well(learner):
    known = ADS.iloc[:8]
    selector = SetSelectClassifier(learner, n_select=2, random_state=0)
    selector.fit(X[OLD], COSTS.iloc[OLD, :8], ad_features=known)
    rest = slice(200, None)
    chosen = selector.predict_indicator(X[rest], ad_features=ADS)
    best = np.sort(EXPECTED[rest], axis=1)[:, :2].sum(axis=1).mean()
    found = (EXPECTED[rest] * chosen).sum(axis=1).mean()
    popular = PopularitySetSelector(2).fit(X[OLD], COSTS[OLD])
    fixed = -popular.score(X[rest], pd.DataFrame(EXPECTED[rest], columns=ADS.index))
    assert chosen[:, 8:].any()
    share = 0.95 if learner is None or "Li" in repr(learner) or "Log" in repr(learner) else 0.3
    assert fixed - found > share * (fixed - best)
    # by labels, in the order of training
    assert set(selector.predict(X[rest]).ravel()) <= set(known.index)
    assert selector.predict(X[rest], ad_features=ADS, n_select=12).shape == (100, 12)


def test_linear_choices_are_transitive():
    """Whichever ads are left out, the others keep their order."""
    selector = SetSelectClassifier(n_select=12).fit(X, COSTS, ad_features=ADS)
    order = selector.predict(X)
    mask = pd.DataFrame(RNG.random(COSTS.shape) < 0.6, columns=ADS.index)
    some = selector.predict(X, available=mask, fill="none")
    for row, left, there in zip(order, some, mask.to_numpy(), strict=True):
        assert [a for a in row if there[int(a[3:])]] == [a for a in left if a != "none"]


def test_the_order_and_number_of_ads_do_not_matter():
    selector = SetSelectClassifier(n_select=3).fit(X, COSTS, ad_features=ADS)
    back = SetSelectClassifier(n_select=3).fit(X, COSTS.iloc[:, ::-1], ad_features=ADS)
    assert (selector.predict(X) == back.predict(X)).mean() > 0.99
    sparse = SetSelectClassifier(n_select=3).fit(sp.csr_array(X), COSTS, ad_features=ADS)
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(X)), selector.predict(X))


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_the_default_penalty_is_close_to_the_best(seed):
    rng = np.random.default_rng(seed)
    noisy = EXPECTED + rng.normal(0, 6, size=EXPECTED.shape)
    rest = slice(60, None)

    def gain(learner):
        selector = SetSelectClassifier(learner).fit(X[:60], noisy[:60], ad_features=ADS.to_numpy())
        return selector.score(X[rest], EXPECTED[rest])

    best = max(gain(LogisticRegression(C=C, fit_intercept=False)) for C in np.logspace(-6, 2, 9))
    assert gain(None) > 0.95 * best


def test_missing_costs_weights_and_drawn_pairs(monkeypatch):
    from skbandit.selection.reductions import _pairwise

    holes = COSTS.where(RNG.random(COSTS.shape) < 0.5)
    weight = RNG.integers(0, 3, 300)
    whole = SetSelectClassifier().fit(X, holes, ad_features=ADS, sample_weight=weight)
    monkeypatch.setattr(_pairwise, "MAX_PAIRS", 1500)
    drawn = SetSelectClassifier(random_state=0).fit(X, holes, ad_features=ADS)
    again = SetSelectClassifier(random_state=0).fit(X, holes, ad_features=ADS)
    assert (drawn.predict(X) == again.predict(X)).all()
    assert (drawn.predict(X) == whole.predict(X)).mean() > 0.6


def test_searches_and_what_is_refused():
    grid = {"estimator": [LogisticRegression()], "estimator__C": [1e-9, 1.0]}
    search = GridSearchCV(SetSelectClassifier(n_select=2), grid, cv=2)
    search.fit(X, COSTS, ad_features=(ADS,))
    assert np.isfinite(search.best_score_)
    selector = SetSelectClassifier().fit(X, COSTS, ad_features=ADS)
    assert selector.reduction_ == "weighted_all_pairs"
    with pytest.raises(ValueError, match="ad_features has 2 columns, but 3 in fit"):
        selector.predict(X, ad_features=ADS.iloc[:, :2])
    with pytest.raises(ValueError, match="no row for ad 'ad 11'"):
        SetSelectClassifier().fit(X, COSTS, ad_features=ADS.iloc[:11])
    for options in ({"reduction": "filter_tree"}, {"method": "published"}):
        with pytest.raises(ValueError, match="masked rounds over all pairs"):
            SetSelectClassifier(**options).fit(X, COSTS, ad_features=ADS)
    with pytest.raises(ValueError, match="Ridge is a regressor, but ads are compared"):
        SetSelectClassifier(Ridge()).fit(X, COSTS, ad_features=ADS)
    with pytest.raises(ValueError, match="takes no ad_features"):
        SetSelectClassifier().fit(X, COSTS).predict(X, ad_features=ADS)
    equal = SetSelectClassifier().fit(X, np.ones((300, 12)), ad_features=ADS.to_numpy())
    assert (equal.predict(X) == 0).all()
