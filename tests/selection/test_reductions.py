"""Cost-sensitive reductions, and the registry of them."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skbandit import SetSelectClassifier
from skbandit.selection import PopularitySetSelector, logged_costs
from skbandit.selection.reductions._all_pairs import AllPairs, learn_all_pairs
from skbandit.selection.reductions._filter_tree import FilterTree, learn_filter_tree
from skbandit.selection.reductions._pairwise import PlayedPairs, crossed, learn_pairwise
from skbandit.selection.reductions._registry import bind_learner
from skbandit.selection.reductions._rule import NO_AD, Examples
from tests.tiers import examples, first
from tests.worlds import LEARNER, lowest, masks, population, refuses

# === Registered reductions: requirements on learners ============================================


@pytest.mark.parametrize(
    ("name", "learner", "message"),
    [
        ("regression", LogisticRegression(), None),
        ("one_vs_rest", LinearSVC(), "LinearSVC has no predict_proba.*CalibratedClassifierCV"),
        ("one_vs_rest", Ridge(), 'Ridge is a regressor, but the reduction "one_vs_rest" needs'),
        ("filter_tree", LinearSVC(), None),
        ("filter_tree", Ridge(), 'Ridge is a regressor, but the reduction "filter_tree" needs'),
        ("weighted_all_pairs", Ridge(), "Ridge is a regressor"),
    ],
)
def test_learners_of_the_wrong_kind_are_refused(name, learner, message):
    seen = Examples(np.eye(2), np.eye(2), np.ones((2, 2), bool), np.ones(2))
    call = partial(bind_learner, name, learner, seen, np.random.RandomState(0))
    call() if message is None else refuses(message, call)


# === All pairs ==================================================================================


@pytest.mark.parametrize("n_ads", [1, 2, 5, 8])
def test_the_best_classifiers_order_all_ads(n_ads):
    rng = np.random.default_rng(n_ads)
    X, costs, f = population(rng, 40, n_ads)
    everything = np.ones((40, n_ads), dtype=bool)
    rule = learn_all_pairs(
        Examples(X, costs, np.ones(costs.shape, bool), np.ones(len(X))), learner=LEARNER
    )
    answers, left = rule.respond(np.arange(40.0)[:, None]), everything.copy()
    for expected in lowest(f, everything, n_ads).T:
        chosen = rule.choose(answers, left)
        assert (chosen == expected).all()
        left[np.arange(40), chosen] = False
    assert (rule.choose(answers, left) == NO_AD).all()


def test_wins_are_counted_among_the_ads_allowed():
    # 0 beats 1, 1 beats 2, 2 beats 0, and all of them beat 3
    answers = np.array([[True, False, True, True, True, True]])
    rule = AllPairs((None,) * 6)
    chosen = [
        rule.choose(answers, np.array([allowed], dtype=bool))[0]
        for allowed in ([1, 1, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1], [0, 0, 0, 1])
    ]
    assert chosen == [0, 0, 1, 2, 3]


# === Filter tree ================================================================================


def tournament(field, matches):
    """The winner, and the matches not played, by recursion over rounds: a second implementation.

    `field` is a list of ads, None for who is absent; `matches` the answers still to be used.
    """
    if len(field) == 1:
        return field[0], matches
    survivors = []
    for left, right in zip(field[::2], field[1::2], strict=False):
        left_wins, *matches = matches
        if left is None or right is None:
            survivors.append(right if left is None else left)
        else:
            survivors.append(left if left_wins else right)
    return tournament(survivors + field[-1:] * (len(field) % 2), matches)


@given(st.integers(1, 9), st.integers(0, 10**6))
def test_the_winner_is_who_wins_the_tournament_among_those_present(n_ads, seed):
    rng = np.random.default_rng(seed)
    answers, allowed = rng.random((1, n_ads - 1)) < 0.5, rng.random((1, n_ads)) < 0.6
    field = [ad if here else None for ad, here in enumerate(allowed[0])]
    expected, _ = tournament(field, answers[0].tolist())
    tree = FilterTree(tuple(answers[0]), np.arange(n_ads))  # its matches are not asked
    assert tree.choose(answers, allowed).tolist() == [NO_AD if expected is None else expected]


class Spy(ClassifierMixin, BaseEstimator):
    """Keeps what it was given; answers 1."""

    seen = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        Spy.seen.append((X[:, 0].tolist(), y.tolist(), sample_weight))
        return self

    def predict(self, X):
        return np.ones(len(X))


@pytest.fixture
def seen():
    """What learners were given, one (rows, labels, weights) a fit."""
    Spy.seen = []
    return Spy.seen


def test_matches_are_trained_on_the_ads_that_reach_them(seen):
    """The classifiers always say left: 0 and 2 meet, although 1 and 3 are sometimes cheaper."""
    costs = np.array([[1.0, 4.0, 2.0, 0.0], [4.0, 3.0, 5.0, 5.0], [3.0, 2.5, 0.0, 5.5]])
    weight = np.array([1.0, 1.0, 2.0])
    every = np.ones((3, 4), bool)
    learn_filter_tree(Examples(np.arange(3.0)[:, None], costs, every, weight), learner=Spy())
    first, second, root = seen
    assert first[:2] == ([0, 1, 2], [1, 0, 0])
    assert second[:2] == ([0, 2], [0, 1])  # no difference in row 1
    assert root[:2] == ([0, 1, 2], [1, 1, 0])
    for match, stake in ((first, np.array([3.0, 1.0, 0.5])), (root, np.array([1.0, 1.0, 3.0]))):
        np.testing.assert_allclose(match[2], weight * stake / np.average(stake, weights=weight))


def test_absent_and_unobserved_ads_teach_nothing(seen):
    costs = np.array([[1.0, 2.0], [1.0, 3.0], [2.0, np.nan], [5.0, 4.0]])
    allowed = np.array([[True, True], [False, True], [True, True], [True, True]])
    events = Examples(np.arange(4.0)[:, None], costs, allowed, np.ones(4))
    learn_filter_tree(events, learner=Spy())
    assert seen == [([0, 3], [1, 0], None)]  # equal stakes need no weights


@examples(30)
@given(st.integers(0, 10**6), st.floats(0.01, 100))
def test_filter_trees_do_not_depend_on_the_unit_of_costs(seed, unit):
    rng = np.random.default_rng(seed)
    X, costs = rng.normal(size=(30, 2)), rng.normal(size=(30, 5))
    tree = SetSelectClassifier(reduction="filter_tree", random_state=0)
    one = tree.fit(X, costs).predict(X)
    assert (tree.fit(X, costs * unit + 7).predict(X) == one).all()


# === One vs rest ================================================================================


def one_vs_rest(learner=LEARNER):
    return SetSelectClassifier(learner, reduction="one_vs_rest")


def test_probabilities_are_read_back_as_expected_costs():
    X, costs, f = population(np.random.default_rng(0), 20, 5)
    model = one_vs_rest().fit(X, costs)
    contexts = np.arange(20.0)[:, None]
    np.testing.assert_allclose(model.predict_costs(contexts), f, atol=1e-12)
    np.testing.assert_allclose(model.decision_function(contexts), -f, atol=1e-12)
    assert (model.predict(contexts)[:, 0] == f.argmin(axis=1)).all()


def test_each_ad_learns_from_rows_where_it_was_available_and_observed():
    rng = np.random.default_rng(1)
    X, costs, _ = population(rng, 15, 4, each=6)
    available = masks(rng, len(X), 4, at_least=3)
    seen = np.where(available, costs, np.nan)
    model = one_vs_rest().fit(X, costs, available=available)
    expected = np.nanmean(seen.reshape(15, 6, 4), axis=1)
    np.testing.assert_allclose(model.predict_costs(np.arange(15.0)[:, None]), expected, atol=1e-12)


def test_weights_count_as_repetitions():
    rng = np.random.default_rng(2)
    X, costs, _ = population(rng, 10, 3)
    costs[:, 1] = -3.0  # one label only
    times = rng.integers(1, 4, size=len(X))
    weighted = one_vs_rest().fit(X, costs, sample_weight=times)
    repeated = one_vs_rest().fit(X.repeat(times, 0), costs.repeat(times, 0))
    np.testing.assert_allclose(weighted.predict_costs(X), repeated.predict_costs(X))
    assert (weighted.predict_costs(X)[:, 1] == -3.0).all()


# === One classifier for all pairs of described ads: regret, transitivity, ads unseen in training

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
ADS = pd.DataFrame(RNG.normal(size=(12, 3)), index=[f"ad {a}" for a in range(12)]).add_prefix("z")
EXPECTED = -(X @ RNG.normal(size=(4, 3)) + RNG.normal(size=3)) @ ADS.to_numpy().T
COSTS = pd.DataFrame(EXPECTED + RNG.normal(size=EXPECTED.shape), columns=ADS.index)
OLD = slice(0, 200)


class Answers:
    """Decides matches as told: `better[i, j]` for ads found by their features."""

    def __init__(self, better):
        self.better = better

    def predict(self, pairs):
        difference = pairs[:, 1:]
        return self.better[difference.argmax(axis=1), difference.argmin(axis=1)].astype(int)


class Probabilities(Answers):
    """Says how likely the first ad is better, which need not fit the other order."""

    def predict_proba(self, pairs):
        difference = pairs[:, 1:]
        first_wins = self.better[difference.argmax(axis=1), difference.argmin(axis=1)]
        return np.stack([1 - first_wins, first_wins], axis=1)


@pytest.mark.parametrize("seed", first(8, range(30)))
def test_regret_of_the_tournament_is_at_most_that_of_its_costliest_matches(seed):
    """At most the regrets of two matches, and the sum of all; sets m times that."""
    rng = np.random.default_rng(seed)
    n_ads = rng.integers(2, 7)
    better = np.triu(rng.random((n_ads, n_ads)) < 0.5, 1)
    better = better | (~better.T & np.tri(n_ads, k=-1, dtype=bool))
    f, allowed = rng.normal(size=n_ads), rng.random((1, n_ads)) < 0.8
    responses = PlayedPairs((), Answers(better), np.eye(n_ads)).respond(np.zeros((1, 1)))
    i, j = np.triu_indices(n_ads, 1)
    wrong = allowed[0, i] & allowed[0, j] & (better[i, j] != (f[i] < f[j]))
    regrets = np.sort(np.abs(f[i] - f[j])[wrong])[::-1]
    total = 0.0
    for k in range(allowed.sum()):
        winner = PlayedPairs((), Answers(better), np.eye(n_ads)).choose(responses, allowed)[0]
        regret = f[winner] - f[allowed[0]].min()
        assert regret <= regrets[:2].sum() + 1e-12
        total += regret
        assert total <= (k + 1) * regrets.sum() + 1e-12
        allowed[0, winner] = False


def test_the_likelier_order_of_a_pair_decides():
    """Where a classifier contradicts itself, beyond 1/2 or not."""
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
        rows = Examples(X, COSTS.to_numpy(), np.ones(COSTS.shape, bool), np.ones(300))
        return learn_pairwise(rows, Z, None, alpha, random).args[0]

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


def test_crossed_features_are_all_products():
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


def test_choices_depend_neither_on_the_order_of_ads_nor_on_the_form_of_rows():
    selector = SetSelectClassifier(n_select=3).fit(X, COSTS, ad_features=ADS)
    back = SetSelectClassifier(n_select=3).fit(X, COSTS.iloc[:, ::-1], ad_features=ADS)
    assert (selector.predict(X) == back.predict(X)).mean() > 0.99
    sparse = SetSelectClassifier(n_select=3).fit(sp.csr_array(X), COSTS, ad_features=ADS)
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(X)), selector.predict(X))


@pytest.mark.parametrize("seed", first(1, range(2)))
def test_the_default_penalty_is_close_to_the_best(seed):
    rng = np.random.default_rng(seed)
    noisy = EXPECTED + rng.normal(0, 6, size=EXPECTED.shape)
    rest = slice(60, None)

    def gain(learner):
        selector = SetSelectClassifier(learner).fit(X[:60], noisy[:60], ad_features=ADS.to_numpy())
        return selector.score(X[rest], EXPECTED[rest])

    best = max(gain(LogisticRegression(C=C, fit_intercept=False)) for C in np.logspace(-6, 2, 9))
    assert gain(None) > 0.95 * best


def test_drawn_pairs_choose_nearly_as_all_pairs(monkeypatch):
    holes = COSTS.where(RNG.random(COSTS.shape) < 0.5)
    weight = RNG.integers(0, 3, 300)
    whole = SetSelectClassifier().fit(X, holes, ad_features=ADS, sample_weight=weight)
    monkeypatch.setattr("skbandit.selection.reductions._pairwise.MAX_PAIRS", 1500)
    drawn, again = (
        SetSelectClassifier(random_state=0).fit(X, holes, ad_features=ADS) for _ in range(2)
    )
    assert (drawn.predict(X) == again.predict(X)).all()
    assert (drawn.predict(X) == whole.predict(X)).mean() > 0.6


def test_ads_of_equal_costs_are_chosen_in_order():
    equal = SetSelectClassifier().fit(X, np.ones((300, 12)), ad_features=ADS.to_numpy())
    assert (equal.predict(X) == 0).all()


@pytest.mark.parametrize(
    ("options", "n_described", "message"),
    [
        ({}, 11, "no row for ad 'ad 11'"),
        ({"reduction": "filter_tree"}, 12, "masked rounds over all pairs"),
        ({"method": "published"}, 12, "masked rounds over all pairs"),
        ({"estimator": Ridge()}, 12, "Ridge is a regressor, but ads are compared"),
    ],
)
def test_described_ads_are_refused(options, n_described, message):
    selector = SetSelectClassifier(**options)
    refuses(message, selector.fit, X, COSTS, ad_features=ADS.iloc[:n_described])


# === The filter tree on offset costs against the offset tree as published =======================


def offset_tree(X, action, reward, p, n_ads, contexts):
    """Beygelzimer & Langford (2009), for rewards in [0, 1]: the choice in each context.

    At a node, events that show one of the two ads are examples with importance |r - 1/2| / p for
    the ad shown, if r > 1/2, and else for the other.
    """
    seen = [np.full(len(X), a) for a in range(n_ads)]
    wanted = [np.full(len(contexts), a) for a in range(n_ads)]
    importance = np.abs(reward - 0.5) / p
    while len(seen) > 1:
        above_seen, above_wanted = [], []
        for k in range(0, len(seen) - 1, 2):
            shown = ((action == seen[k]) | (action == seen[k + 1])) & (reward != 0.5)
            left_better = ((action == seen[k]) == (reward > 0.5))[shown].astype(int)
            node = clone(LEARNER).fit(X[shown], left_better, sample_weight=importance[shown])
            above_seen.append(np.where(node.predict(X) == 1, *seen[k : k + 2]))
            above_wanted.append(np.where(node.predict(contexts) == 1, *wanted[k : k + 2]))
        odd = len(seen) % 2
        seen, wanted = above_seen + seen[-1:] * odd, above_wanted + wanted[-1:] * odd
    return wanted[0]


@pytest.mark.parametrize("n_ads", [2, 3, 5, 8])
def test_a_filter_tree_of_offset_costs_is_the_offset_tree(n_ads):
    rng = np.random.default_rng(n_ads)
    n, contexts = 4000, np.arange(10.0)[:, None]
    X = rng.integers(10, size=(n, 1)).astype(float)
    policy = rng.dirichlet(np.ones(n_ads), size=10) * 0.5 + 0.5 / n_ads
    of_row = policy[X[:, 0].astype(int)]
    action = (of_row.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    p = of_row[np.arange(n), action]
    reward = rng.random(n)
    reward[:2] = 0.0, 1.0  # so that the midrange is 1/2
    expected = offset_tree(X, action, reward, p, n_ads, contexts)
    costs = logged_costs(action, -reward, p, method="offset")
    found = SetSelectClassifier(LEARNER, reduction="filter_tree").fit(X, costs).predict(contexts)
    assert (found[:, 0] == expected).all()
