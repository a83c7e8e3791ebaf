import numpy as np
import pytest

from skbandit import SetSelectClassifier
from skbandit.selection.reductions._all_pairs import AllPairs, learn_all_pairs
from skbandit.selection.reductions._rule import NO_AD
from tests.selection.tabular import LEARNER, lowest, masks, population


@pytest.mark.parametrize("n_ads", [1, 2, 5, 8])
def test_the_best_classifiers_order_all_ads(n_ads):
    rng = np.random.default_rng(n_ads)
    X, costs, f = population(rng, 40, n_ads)
    everything = np.ones((40, n_ads), dtype=bool)
    rule = learn_all_pairs(X, costs, np.ones(costs.shape, bool), np.ones(len(X)), learner=LEARNER)
    answers, left = rule.respond(np.arange(40.0)[:, None]), everything.copy()
    for expected in lowest(f, everything, n_ads).T:
        chosen = rule.choose(answers, left)
        assert (chosen == expected).all()
        left[np.arange(40), chosen] = False
    assert (rule.choose(answers, left) == NO_AD).all()


def test_optimal_among_the_ads_available():
    rng = np.random.default_rng(0)
    X, costs, f = population(rng, 60, 6)
    of_context = masks(rng, 60, 6, at_least=1)
    model = SetSelectClassifier(LEARNER, reduction="weighted_all_pairs")
    model.fit(X, costs, available=of_context[X[:, 0].astype(int)])
    predicted = model.predict(np.arange(60.0)[:, None], available=of_context)
    assert (predicted == lowest(f, of_context, 1)).all()


def test_wins_are_counted_among_the_ads_allowed():
    # 0 beats 1, 1 beats 2, 2 beats 0, and all of them beat 3
    answers = np.array([[True, False, True, True, True, True]])
    rule = AllPairs((None,) * 6)
    chosen = [
        rule.choose(answers, np.array([allowed], dtype=bool))[0]
        for allowed in ([1, 1, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1], [0, 0, 0, 1])
    ]
    assert chosen == [0, 0, 1, 2, 3]
