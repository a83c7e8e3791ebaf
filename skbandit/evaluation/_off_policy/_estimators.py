"""What a fixed policy would have earned, from a log of another one's decisions."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from skbandit.evaluation._off_policy._sums import (
    EventSums,
    doubly_robust_sums,
    ips_sums,
    snips_sums,
)
from skbandit.evaluation._off_policy._target_policy import read_judged_log
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.logs._reward_models import cross_fitted_rewards

# So few events, in effect, are too few for a normal approximation.
_FEW = 30

# A mean weight as many standard errors from 1 is no accident.
_FAR = 5


@dataclass(frozen=True, repr=False)
class OffPolicyEstimate:
    """An estimate of a policy's mean reward, from a log of another policy.

    Parameters
    ----------
    estimator : str
        The function that made it.
    mean_reward : float
        What the policy would have earned an event; nan where no logged action is one that it
        could have chosen.
    standard_error : float
        Its standard error, by the events' spread.
    effective_sample_size : float
        (Σw)²/Σw² of the events' weights w = π/p: as many events logged by the policy itself
        would say about as much.
    n_events : int
        Events in the log.
    logged_mean : float
        The log's own mean reward.

    See Also
    --------
    ips, snips, doubly_robust : The estimators.

    Examples
    --------
    >>> from skbandit.evaluation import OffPolicyEstimate
    >>> estimate = OffPolicyEstimate("snips", 0.06, 0.005, 950.0, 10_000, 0.05)
    >>> estimate
    <snips: mean reward 0.06 ± 0.005, 1.20 x the log's; 10,000 events count as 950>
    >>> print("{:.4f} to {:.4f}".format(*estimate.interval(0.95)))
    0.0502 to 0.0698
    """

    estimator: str
    mean_reward: float
    standard_error: float
    effective_sample_size: float
    n_events: int
    logged_mean: float

    @property
    def lift(self) -> float:
        """`mean_reward` over the log's own mean; nan where that is not positive."""
        return self.mean_reward / self.logged_mean if self.logged_mean > 0 else np.nan

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the mean reward, by the normal approximation.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level.

        Returns
        -------
        low, high : float
            Its ends; they are not clipped to the range of rewards.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level!r}.")
        half = float(norm.ppf((1 + level) / 2)) * self.standard_error
        return self.mean_reward - half, self.mean_reward + half

    def __repr__(self) -> str:
        lift = "" if np.isnan(self.lift) else f", {self.lift:.2f} x the log's"
        return (
            f"<{self.estimator}: mean reward {self.mean_reward:.4g} ± {self.standard_error:.2g}"
            f"{lift}; {self.n_events:,} events count as {self.effective_sample_size:,.0f}>"
        )


def ips(
    policy_or_probabilities: Any,
    X: Any,
    y: Any,
    *,
    available: Any = None,
    reward: Any = None,
    propensity: Any = None,
    rule: str = "select",
) -> OffPolicyEstimate:
    """Estimate a fixed policy's mean reward by inverse propensity scores.

    The mean over all logged events of w r, with r the reward and w = π(a|x)/p the probability
    of the logged action under the policy over its propensity. Unbiased if the propensities are
    right and the policy chooses nothing that could not have been logged, and the more variable
    the less alike both policies are.

    Parameters
    ----------
    policy_or_probabilities : policy or array-like
        A fitted policy, or a Pipeline or fitted search that ends in one: see `replay`. It does
        not learn here, and is not changed.

        Or the probabilities of its choices: of shape (n_events, n_arms), each row with sum 1.
        The columns of a DataFrame name the arms, those without a column are never chosen;
        columns of an array stand for the log's arms, sorted. Or of shape (n_events,),
        probabilities of the logged actions.
    X : array-like of shape (n_events, n_features) or None
        Contexts; needed for a policy.
    y : DataFrame or structured array with columns action and reward, or array of actions
        The log. Columns propensity and available are read where they are there.
    available : sequence of tuples of labels, or boolean array, default=None
        Arms that each event could choose from, where this is no column of `y`; by default
        every arm of the log. Columns of a boolean array without names are as those of the
        probabilities, or of the policy's `arms_`.
    reward, propensity : array-like of shape (n_events,), default=None
        Rewards and probabilities with which the actions were chosen, where they are no column
        of `y`. Without propensities actions count as chosen uniformly among those available.
    rule : {"select", "predict"}, default="select"
        The choice of a policy that is judged: the exploring one, by `select_proba` where it
        has this, else by what `select` chooses; or the greedy one. What rows of `select_proba`
        lack to 1 is shared by the available arms that are new to the policy.

    Returns
    -------
    OffPolicyEstimate

    Warns
    -----
    ReplayCoverageWarning
        If so few events speak for the policy that neither estimate nor standard error can be
        relied upon; or if the weights' mean, which estimates 1, is far from it: then
        propensities are wrong, or the policy chooses what the log never does.
    UserWarning
        If there are no propensities and the log's actions are not uniform.

    See Also
    --------
    snips : Less variable, for a small bias.
    doubly_robust : Less variable where rewards can be predicted.
    replay : For policies that learn.

    Notes
    -----
    Events are taken as independent, and the policy as one that was not trained on them: on its
    own training data every policy looks better than it is.

    References
    ----------
    Horvitz and Thompson (1952), A generalization of sampling without replacement from a finite
    universe.

    Examples
    --------
    Actions logged at random, judged as if arm "b" had been chosen four times out of five:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from skbandit.evaluation import ips
    >>> rng = np.random.default_rng(1)
    >>> log = pd.DataFrame({"action": rng.choice(["a", "b"], 1000)})
    >>> log["reward"] = rng.random(1000) < log["action"].map({"a": 0.1, "b": 0.3})
    >>> wanted = pd.DataFrame({"a": 0.2, "b": 0.8}, index=log.index)
    >>> ips(wanted, None, log)
    <ips: mean reward 0.2528 ± 0.018, 1.34 x the log's; 1,000 events count as 731>
    """
    judged = read_judged_log(policy_or_probabilities, X, y, available, reward, propensity, rule)
    return _estimate("ips", ips_sums(judged.log.reward, judged.weight))


def snips(
    policy_or_probabilities: Any,
    X: Any,
    y: Any,
    *,
    available: Any = None,
    reward: Any = None,
    propensity: Any = None,
    rule: str = "select",
) -> OffPolicyEstimate:
    """Estimate a fixed policy's mean reward by self-normalised inverse propensity scores.

    The mean of the logged rewards, weighted by w = π(a|x)/p: Σw r/Σw. Always within the range
    of the rewards, moves with them when all are shifted, and is mostly less variable than
    `ips`, for a bias that falls as 1/n. Its standard error is that of the delta method.

    Parameters
    ----------
    policy_or_probabilities : policy or array-like
        A fitted policy, or a Pipeline that ends in one; or probabilities of its choices: see
        `ips`.
    X : array-like of shape (n_events, n_features) or None
        Contexts; needed for a policy.
    y : DataFrame or structured array with columns action and reward, or array of actions
        The log. Columns propensity and available are read where they are there.
    available : sequence of tuples of labels, or boolean array, default=None
        Arms that each event could choose from, where this is no column of `y`.
    reward, propensity : array-like of shape (n_events,), default=None
        Rewards and probabilities with which the actions were chosen, where they are no column
        of `y`. Without propensities actions count as chosen uniformly among those available.
    rule : {"select", "predict"}, default="select"
        The choice of a policy that is judged: the exploring one or the greedy one.

    Returns
    -------
    OffPolicyEstimate

    Warns
    -----
    ReplayCoverageWarning
        As `ips` does.

    See Also
    --------
    ips : Unbiased.
    doubly_robust : Less variable where rewards can be predicted.
    replay : For policies that learn.

    References
    ----------
    Swaminathan and Joachims (2015), The self-normalized estimator for counterfactual learning.

    Examples
    --------
    A policy fitted to the first half of a log, judged on the second:

    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import snips
    >>> log = make_bandit_log(20_000, n_arms=4, random_state=0)
    >>> policy = GLMUCBPolicy().fit(log.X[:10_000], log.y[:10_000])
    >>> snips(policy, log.X[10_000:], log.y[10_000:], rule="predict")
    <snips: mean reward 0.1391 ± 0.007, 2.66 x the log's; 10,000 events count as 2,466>
    """
    judged = read_judged_log(policy_or_probabilities, X, y, available, reward, propensity, rule)
    return _estimate("snips", snips_sums(judged.log.reward, judged.weight))


def doubly_robust(
    policy_or_probabilities: Any,
    X: Any,
    y: Any,
    *,
    available: Any = None,
    reward: Any = None,
    propensity: Any = None,
    rule: str = "select",
    reward_model: Any = None,
    cv: Any = 5,
    random_state: Any = None,
) -> OffPolicyEstimate:
    """Estimate a fixed policy's mean reward by predicted rewards, corrected by logged ones.

    The mean over events of Σ_a π(a|x) q(x,a) + w (r - q(x,a_logged)), with q(x,a) the
    predicted reward of arm a and w = π(a|x)/p. Unbiased whatever the model predicts if the
    propensities are right; the better it predicts, the less variable.

    Parameters
    ----------
    policy_or_probabilities : policy or array-like
        A fitted policy, or a Pipeline that ends in one; or probabilities of its choices of
        shape (n_events, n_arms): see `ips`. Those of the logged actions alone do not do.
    X : array-like of shape (n_events, n_features)
        Contexts, also for the reward model, before the steps of a policy's Pipeline.
    y : DataFrame or structured array with columns action and reward, or array of actions
        The log. Columns propensity and available are read where they are there.
    available : sequence of tuples of labels, or boolean array, default=None
        Arms that each event could choose from, where this is no column of `y`.
    reward, propensity : array-like of shape (n_events,), default=None
        Rewards and probabilities with which the actions were chosen, where they are no column
        of `y`. Without propensities actions count as chosen uniformly among those available.
    rule : {"select", "predict"}, default="select"
        The choice of a policy that is judged: the exploring one or the greedy one.
    reward_model : regressor or classifier with predict_proba, default=None
        Fitted for each arm to its own events; None is ``Ridge()``. An arm without events is
        predicted by the mean of all. Contexts that are no numbers need a Pipeline here.
    cv : int, cross-validation generator or iterable of splits, default=5
        Each event is predicted by models fitted without it: it must be tested once.
    random_state : int, RandomState instance or None, default=None
        Shuffles the events into folds, if `cv` is a number.

    Returns
    -------
    OffPolicyEstimate

    Warns
    -----
    ReplayCoverageWarning
        As `ips` does.

    See Also
    --------
    ips : Needs no contexts.
    snips : Needs no contexts, and is less variable than `ips`.
    replay : For policies that learn.

    References
    ----------
    Dudík, Langford and Li (2011), Doubly robust policy evaluation and learning.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skbandit.evaluation import doubly_robust, ips
    >>> rng = np.random.default_rng(2)
    >>> X = rng.normal(size=(1000, 3))
    >>> log = pd.DataFrame({"action": rng.integers(2, size=1000)})
    >>> log["reward"] = X[:, 0] + log["action"] + 0.1 * rng.normal(size=1000)
    >>> always_1 = np.tile([0.0, 1.0], (1000, 1))
    >>> ips(always_1, X, log)
    <ips: mean reward 0.9786 ± 0.056, 1.99 x the log's; 1,000 events count as 486>
    >>> doubly_robust(always_1, X, log, random_state=0)
    <doubly_robust: mean reward 1.004 ± 0.032, 2.04 x the log's; 1,000 events count as 486>
    """
    judged = read_judged_log(policy_or_probabilities, X, y, available, reward, propensity, rule)
    log, of_arms = judged.log, judged.of_arms
    if X is None:
        raise ValueError("X is None: the reward model needs contexts.")
    if of_arms is None:
        raise ValueError(
            "doubly_robust needs the probabilities of all arms, of shape (n_events, n_arms), got "
            "those of the logged actions alone: use ips or snips."
        )
    q = cross_fitted_rewards(
        reward_model,
        X,
        log.action,
        log.reward,
        of_arms.shape[1],
        cv=cv,
        random_state=random_state,
    )
    sums = doubly_robust_sums(log.reward, judged.weight, *judged.predicted(q))
    return _estimate("doubly_robust", sums)


def _estimate(estimator: str, sums: EventSums) -> OffPolicyEstimate:
    """The estimate, with a warning where the log has too little to say."""
    said = shortcoming(sums)
    if said:
        warnings.warn(f"{estimator}: {said}", ReplayCoverageWarning, stacklevel=3)
    return estimate_of(estimator, sums)


def estimate_of(estimator: str, sums: EventSums) -> OffPolicyEstimate:
    """The estimate that sums over events amount to."""
    size = sums.effective_sample_size
    none = size == 0
    return OffPolicyEstimate(
        estimator=estimator,
        mean_reward=np.nan if none else sums.value,
        standard_error=np.nan if none else sums.standard_error,
        effective_sample_size=size,
        n_events=sums.n,
        logged_mean=sums.reward / sums.n,
    )


def shortcoming(sums: EventSums) -> str:
    """Why the events say too little for an estimate; nothing if they say enough."""
    size = sums.effective_sample_size
    if size == 0:
        return "the policy never chooses what was logged, so that nothing is known of its reward."
    if size < _FEW:
        return (
            f"the {sums.n:,} events count as {size:.1f} only, as the policy rarely chooses what "
            "was logged, or weights are very unequal: rely neither on the estimate nor on its "
            "standard error."
        )
    if abs(sums.mean_weight - 1) > _FAR * sums.mean_weight_error:
        return (
            f"the weights average {sums.mean_weight:.3f} ± {sums.mean_weight_error:.3f} where 1 "
            "is expected: propensities are wrong, or the policy chooses what was never logged."
        )
    return ""
