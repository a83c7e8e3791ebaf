"""One small adapter a rival.

An adapter takes X, y (0 and 1), who is a man, and its own setting, and returns the fitted rule: a
function from X and who is a man to answers. The demand is

    positive rate of men <= positive rate of women / kappa.

Methods that know no kappa take what they know instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from skbandit import ConstrainedRampClassifier
from skbandit.constrained import ConstrainedThreshold
from skbandit.rates import Constraint, positive_rate

Rule = Callable[[Any, np.ndarray], np.ndarray]

KAPPAS = (1.0, 0.8, 0.6, 0.4)
ALPHAS = (1e-3, 1 / 32_561)
"""The default, and the paper's 1/n."""


@dataclass(frozen=True)
class Rival:
    """An adapter, the settings to try it with, and what must be installed for it.

    Parameters
    ----------
    fit : callable
        The adapter: ``fit(X, y, men, **setting)``.
    grid : mapping
        Values of each setting.
    module, package : str
        What it imports, and what to install for that.
    """

    fit: Callable[..., Rule]
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    module: str = "sklearn"
    package: str = "scikit-learn"

    @property
    def cure(self) -> str:
        """What to do before it can run; empty if nothing."""
        return "" if find_spec(self.module) else f"not installed: pip install {self.package}"


def parity(kappa: float) -> Constraint:
    """The constraint, over attribute column `men`."""
    return positive_rate({"men": True}) <= positive_rate({"men": False}) / kappa


def linear_svc(X: Any, y: np.ndarray, men: np.ndarray) -> Rule:
    """Unconstrained: the unit of all ratios."""
    return _blind(LinearSVC(loss="hinge", C=1, max_iter=20_000, random_state=0).fit(X, y))


def linear_svc_same_alpha(X: Any, y: np.ndarray, men: np.ndarray, *, alpha: float) -> Rule:
    """Unconstrained, as regularized as ours: its all-hinge problem with margin 1 for 1/2."""
    C = 2 / (alpha * len(y))
    return _blind(LinearSVC(loss="hinge", C=C, max_iter=20_000, random_state=0).fit(X, y))


def logistic_regression(X: Any, y: np.ndarray, men: np.ndarray) -> Rule:
    """Unconstrained."""
    return _blind(LogisticRegression(max_iter=1000).fit(X, y))


def constrained_threshold(X: Any, y: np.ndarray, men: np.ndarray, *, kappa: float) -> Rule:
    """Ours: one threshold, over cross-validated scores."""
    clf = ConstrainedThreshold(
        LogisticRegression(max_iter=1000), constraints=parity(kappa), confidence_level=0.5
    )
    return _blind(clf.fit(X, y, attributes=pd.DataFrame({"men": men})))


def skbandit(solver: str) -> Callable[..., Rule]:
    """Ours, with default settings but for the solver."""

    def fit(X: Any, y: np.ndarray, men: np.ndarray, *, kappa: float, alpha: float) -> Rule:
        clf = ConstrainedRampClassifier(constraints=parity(kappa), alpha=alpha, solver=solver)
        return _blind(clf.fit(X, y, attributes=pd.DataFrame({"men": men})))

    return fit


def exponentiated_gradient(X: Any, y: np.ndarray, men: np.ndarray, *, kappa: float) -> Rule:
    """fairlearn's reduction (Agarwal et al. 2018); its answers are drawn at random.

    It bounds the ratio of a group's rate to that of all. With p the share of men, women at r
    times the rate of all are at kappa times that of men for r = kappa / (p + (1 - p) kappa),
    and then, if p >= 1/2, men are within r too.
    """
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    share = men.mean()
    bound = DemographicParity(ratio_bound=kappa / (share + (1 - share) * kappa))
    clf = ExponentiatedGradient(LogisticRegression(max_iter=1000), bound)
    clf.fit(_dense(X), y, sensitive_features=men)
    return lambda X, men: clf.predict(_dense(X), random_state=0) > 0


def threshold_optimizer(X: Any, y: np.ndarray, men: np.ndarray) -> Rule:
    """fairlearn's thresholds by group (Hardt et al. 2016): equal rates only, by asking the sex."""
    from fairlearn.postprocessing import ThresholdOptimizer

    clf = ThresholdOptimizer(
        estimator=LogisticRegression(max_iter=1000),
        constraints="demographic_parity",
        predict_method="predict_proba",
    )
    clf.fit(_dense(X), y, sensitive_features=men)
    return lambda X, men: clf.predict(_dense(X), sensitive_features=men, random_state=0) > 0


def scikit_lego(X: Any, y: np.ndarray, men: np.ndarray, *, covariance: float) -> Rule:
    """scikit-lego's DemographicParityClassifier, which bounds the covariance of score and sex."""
    from sklego.linear_model import DemographicParityClassifier

    def with_sex(X: Any, men: np.ndarray) -> np.ndarray:
        return np.column_stack([_dense(X), men])

    clf = DemographicParityClassifier(covariance_threshold=covariance, sensitive_cols=[X.shape[1]])
    clf.fit(with_sex(X, men), y)
    return lambda X, men: clf.predict(with_sex(X, men)) > 0


def zafar(X: Any, y: np.ndarray, men: np.ndarray, *, c: float) -> Rule:
    """The baseline of Goh et al. (2016), eq. 8: an SVM whose mean scores differ by c at most."""
    import cvxpy as cp

    w, b = cp.Variable(X.shape[1]), cp.Variable()
    difference = np.asarray(X[men].mean(axis=0) - X[~men].mean(axis=0)).ravel()
    hinge = cp.sum(cp.pos(1 - cp.multiply(2.0 * y - 1, X @ w + b)))
    problem = cp.Problem(cp.Minimize(hinge + cp.sum_squares(w) / 2), [difference @ w <= c])
    problem.solve(solver="CLARABEL")
    return lambda X, men: X @ w.value + b.value > 0


def _blind(clf: Any) -> Rule:
    """The rule of a classifier that does not ask who is a man."""
    return lambda X, men: clf.predict(X) > 0


def _dense(X: Any) -> np.ndarray:
    """What libraries that refuse sparse rows need."""
    return X.toarray()


_OURS = {"kappa": KAPPAS, "alpha": ALPHAS}

RIVALS = {
    "LinearSVC C=1": Rival(linear_svc),
    "LinearSVC C=2/(n alpha)": Rival(linear_svc_same_alpha, {"alpha": ALPHAS}),
    "LogisticRegression": Rival(logistic_regression),
    "skbandit default": Rival(skbandit("auto"), _OURS),
    "skbandit newton": Rival(skbandit("newton"), _OURS),
    "skbandit cutting_plane": Rival(skbandit("cutting_plane"), _OURS),
    "skbandit cvxpy": Rival(skbandit("cvxpy"), _OURS),
    "skbandit ConstrainedThreshold": Rival(constrained_threshold, {"kappa": KAPPAS}),
    "fairlearn ExponentiatedGradient": Rival(
        exponentiated_gradient, {"kappa": KAPPAS}, "fairlearn", "fairlearn"
    ),
    "fairlearn ThresholdOptimizer": Rival(threshold_optimizer, {}, "fairlearn", "fairlearn"),
    "scikit-lego DemographicParity": Rival(
        scikit_lego, {"covariance": (0.0, 0.05)}, "sklego", "scikit-lego"
    ),
    "Zafar et al. in cvxpy": Rival(zafar, {"c": (0.0, 0.4, -20.0, -40.0)}, "cvxpy", "cvxpy"),
}
"""The unit first; then in the order of the table."""
