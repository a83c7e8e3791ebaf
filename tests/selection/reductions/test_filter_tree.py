import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin

from skbandit import SetSelectClassifier
from skbandit.selection.reductions._filter_tree import FilterTree, learn_filter_tree
from skbandit.selection.reductions._rule import NO_AD
from tests.selection.tabular import LEARNER, lowest, masks, population
from tests.tiers import examples


def tournament(field, matches):
    """Winner, and the pairs that met, by recursion over rounds: a second implementation.

    `field` is a list of ads, None for who is absent; `matches` the answers still to be used.
    """
    if len(field) == 1:
        return field[0], []
    survivors, met, matches = [], [], list(matches)
    for k in range(0, len(field) - 1, 2):
        left, right, left_wins = field[k], field[k + 1], matches.pop(0)
        if left is None or right is None:
            survivors.append(right if left is None else left)
            continue
        winner = left if left_wins else right
        met.append((winner, right if left_wins else left))
        survivors.append(winner)
    if len(field) % 2:
        survivors.append(field[-1])
    winner, later = tournament(survivors, matches)
    return winner, met + later


answers_and_masks = st.integers(1, 9).flatmap(
    lambda n: st.tuples(
        st.lists(st.booleans(), min_size=n - 1, max_size=n - 1),
        st.lists(st.booleans(), min_size=n, max_size=n),
        st.lists(st.floats(-1, 1), min_size=n, max_size=n),
    )
)


@given(answers_and_masks)
def test_the_winner_is_who_wins_the_tournament_among_those_present(drawn):
    answers, allowed, _ = drawn
    field = [a if here else None for a, here in enumerate(allowed)]
    expected, _ = tournament(field, answers)
    tree = FilterTree(tuple(answers), np.arange(len(field)))  # its matches are not asked
    chosen = tree.choose(np.array([answers], dtype=bool), np.array([allowed]))
    assert chosen.tolist() == [NO_AD if expected is None else expected]


@given(answers_and_masks)
def test_regret_is_at_most_the_sum_of_the_regrets_of_matches(drawn):
    answers, allowed, f = drawn
    present = [a for a, here in enumerate(allowed) if here]
    if not present:
        return
    winner, met = tournament([a if a in present else None for a in range(len(f))], answers)
    regrets = [max(0.0, f[wins] - f[loses]) for wins, loses in met]
    assert f[winner] - min(f[a] for a in present) <= sum(regrets) + 1e-12


@pytest.mark.parametrize("n_ads", range(1, 10))
def test_optimal_where_its_classifiers_are(n_ads):
    rng = np.random.default_rng(n_ads)
    X, costs, f = population(rng, 30, n_ads)
    predicted = (
        SetSelectClassifier(LEARNER, reduction="filter_tree")
        .fit(X, costs)
        .predict(np.arange(30.0)[:, None])
    )
    assert (predicted[:, 0] == f.argmin(axis=1)).all()


def test_optimal_among_the_ads_available():
    rng = np.random.default_rng(0)
    X, costs, f = population(rng, 60, 7)
    of_context = masks(rng, 60, 7, at_least=1)
    tree = SetSelectClassifier(LEARNER, reduction="filter_tree")
    tree.fit(X, costs, available=of_context[X[:, 0].astype(int)])
    predicted = tree.predict(np.arange(60.0)[:, None], available=of_context)
    assert (predicted == lowest(f, of_context, 1)).all()


class Spy(ClassifierMixin, BaseEstimator):
    """Keeps what it was given; answers a constant."""

    seen = []  # noqa: RUF012

    def __init__(self, answer=1):
        self.answer = answer

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        Spy.seen.append((X[:, 0].tolist(), y.tolist(), sample_weight))
        return self

    def predict(self, X):
        return np.full(len(X), self.answer)


def test_matches_are_trained_on_the_ads_that_reach_them():
    Spy.seen = []
    rows = np.arange(3.0)[:, None]
    costs = np.array([[1.0, 4.0, 2.0, 0.0], [4.0, 3.0, 5.0, 5.0], [3.0, 2.5, 0.0, 5.5]])
    # the classifiers always say left: 0 and 2 meet, although 1 and 3 are sometimes cheaper
    learn_filter_tree(rows, costs, np.ones((3, 4), bool), np.array([1.0, 1, 2]), learner=Spy())
    (one, two, root) = Spy.seen
    assert one[:2] == ([0, 1, 2], [1, 0, 0])
    stake = np.array([3.0, 1.0, 0.5])
    np.testing.assert_allclose(one[2], stake / np.average(stake, weights=[1, 1, 2]) * [1, 1, 2])
    assert two[:2] == ([0, 2], [0, 1])  # no difference in row 1
    assert root[:2] == ([0, 1, 2], [1, 1, 0])
    stake = np.array([1.0, 1.0, 3.0])
    np.testing.assert_allclose(root[2], stake / np.average(stake, weights=[1, 1, 2]) * [1, 1, 2])


def test_absent_and_unobserved_ads_teach_nothing():
    Spy.seen = []
    rows = np.arange(4.0)[:, None]
    costs = np.array([[1.0, 2.0], [1.0, 3.0], [2.0, np.nan], [5.0, 4.0]])
    allowed = np.array([[True, True], [False, True], [True, True], [True, True]])
    learn_filter_tree(rows, costs, allowed, np.ones(4), learner=Spy())
    assert [seen[:2] for seen in Spy.seen] == [([0, 3], [1, 0])]
    assert Spy.seen[0][2] is None  # equal stakes need no weights


@examples(30)
@given(st.integers(0, 10**6), st.floats(0.01, 100))
def test_the_unit_of_costs_does_not_matter(seed, unit):
    rng = np.random.default_rng(seed)
    X, costs = rng.normal(size=(30, 2)), rng.normal(size=(30, 5))
    tree = SetSelectClassifier(reduction="filter_tree", random_state=0)
    one = tree.fit(X, costs).predict(X)
    assert (tree.fit(X, costs * unit + 7).predict(X) == one).all()
