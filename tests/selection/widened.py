"""Set selectors for scikit-learn's checks, which know of one ad only."""

import numpy as np
from sklearn.linear_model import Ridge

from skbandit import RegressionSetSelector, SetSelectClassifier
from skbandit.selection import PopularitySetSelector


def widened(y):
    """Costs of four ads, whose order changes with that of a single one."""
    if y is None:
        return y
    cost = np.asarray(y)
    if np.iscomplexobj(cost):
        return cost
    cost = cost.astype(float).reshape(len(cost), -1)[:, :1]
    return np.hstack([cost, 1.5 - cost, 0.3 * cost**2, 0.5 + 0.1 * cost])


class Widened:
    """Takes a single cost for those of four ads; comes before a selector's class."""

    def fit(self, X, y=None, *, available=None, sample_weight=None):
        return super().fit(X, widened(y), available=available, sample_weight=sample_weight)

    def score(self, X, y, *, available=None, sample_weight=None):
        return super().score(X, widened(y), available=available, sample_weight=sample_weight)


class WidenedRegression(Widened, RegressionSetSelector):
    pass


class WidenedPopularity(Widened, PopularitySetSelector):
    pass


class WidenedSetSelect(Widened, SetSelectClassifier):
    pass


class OneOutputRidge(Ridge):
    """Stands for regressors of which each ad needs its own."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags
