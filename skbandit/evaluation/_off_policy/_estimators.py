"""Off-policy estimates of a fixed policy's mean reward, from another policy's log."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from skbandit.evaluation._off_policy._sums import ESTIMATORS, EventSums, WeightedEvents
from skbandit.evaluation._off_policy._target_policy import read_evaluated
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.logs import cross_fitted_rewards
from skbandit.utils._validation import check_level

# Effective sample size below which the normal approximation is unreliable, and a warning raised.
_FEW = 30

# Warn if the mean weight is more than this many standard errors from 1.
_FAR = 5


@dataclass(frozen=True, repr=False)
class OffPolicyEstimate:
    """An estimate of a policy's mean reward from another policy's log.

    Parameters
    ----------
    estimator : str
        Name of the function that returned it.
    mean_reward : float
        Estimated mean reward per event; nan if the policy could not have chosen any of the
        logged actions.
    standard_error : float
        Standard error of `mean_reward`, from the spread over events.
    effective_sample_size : float
        (Σw)²/Σw² of the weights w = π/p: about this many events logged by the policy itself
        would be as informative.
    n_events : int
        Number of events in the log.
    logged_mean : float
        Mean reward of the log.

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
        """`mean_reward` divided by `logged_mean`; nan if the latter is not positive."""
        return self.mean_reward / self.logged_mean if self.logged_mean > 0 else np.nan

    def interval(self, confidence_level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the mean reward, by the normal approximation.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Nominal coverage, in (0, 1).

        Returns
        -------
        low, high : float
            Not clipped to the range of rewards.
        """
        check_level(confidence_level)
        half = float(norm.ppf((1 + confidence_level) / 2)) * self.standard_error
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
    columns: Mapping[str, Any] | None = None,
    rule: str = "select",
) -> OffPolicyEstimate:
    """Estimate a fixed policy's mean reward by inverse propensity scores.

    The mean of w r over all logged events, where r is the reward and w = π(a|x)/p the probability
    of the logged action under the policy divided by its propensity. Unbiased if the propensities
    are right and every arm that the policy may choose had a positive one. The variance grows with
    the difference between the two policies.

    Parameters
    ----------
    policy_or_probabilities : policy or array-like
        A fitted policy, or a Pipeline or fitted search that ends in one: see `replay`. It does
        not learn and is not changed.

        Or the probabilities of its choices, of shape (n_events, n_arms), with rows that sum to 1.
        The columns of a DataFrame name the arms, and arms without a column are never chosen; the
        columns of an array are the log's arms, sorted. Or the probabilities of the logged
        actions, floats of shape (n_events,).

        Or the labels of the chosen arms, one per event: integers, strings, booleans or a pandas
        Categorical. Floats that could be either labels or probabilities are an error.
    X : array-like of shape (n_events, n_features) or None
        Contexts; required for a policy.
    y : DataFrame or structured array with columns action and reward, or array of actions
        The log. Columns propensity and available are read if present.
    available : sequence of tuples of labels, or boolean array, default=None
        Arms available to each event, if not a column of `y`; None is all arms of the log. The
        columns of an unnamed boolean array are those of the probabilities, or the policy's
        `arms_`.
    reward, propensity : array-like of shape (n_events,), default=None
        Rewards, and probabilities with which the actions were chosen, if not columns of `y`.
        Without propensities, actions are taken as chosen uniformly among the available arms.
    columns : dict, default=None
        Names of the columns of `y`, if different, as in
        ``columns={"action": "arm_id", "propensity": "pscore"}``.
    rule : {"select", "predict"}, default="select"
        The evaluated choice of a policy: the exploring one, by `select_proba` if present, else by
        the arms that `select` returns; or the greedy one. If a row of `select_proba` sums to less
        than 1, the available arms that are new to the policy share the rest.

    Returns
    -------
    OffPolicyEstimate

    Warns
    -----
    ReplayCoverageWarning
        If the effective sample size is too small for a reliable estimate or standard error; or
        if the mean weight is far from its expectation 1: then the propensities are wrong, or the
        policy chooses arms that the log never does.
    UserWarning
        If there are no propensities and the logged actions are not uniform.

    See Also
    --------
    snips : Has less variance and a small bias.
    doubly_robust : Has less variance if rewards are predictable.
    replay : Evaluates policies that learn.

    Notes
    -----
    Events are assumed independent, and the policy not trained on them: every policy looks better
    than it is on its own training data.

    References
    ----------
    Horvitz and Thompson (1952), A generalization of sampling without replacement from a finite
    universe.

    Examples
    --------
    Uniformly logged actions, evaluated as if arm "b" had been chosen four times out of five:

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
    evaluated = read_evaluated(
        policy_or_probabilities, X, y, available, reward, propensity, rule, columns=columns
    )
    return _estimate("ips", evaluated.events())


def snips(
    policy_or_probabilities: Any,
    X: Any,
    y: Any,
    *,
    available: Any = None,
    reward: Any = None,
    propensity: Any = None,
    columns: Mapping[str, Any] | None = None,
    rule: str = "select",
) -> OffPolicyEstimate:
    """Estimate a fixed policy's mean reward by self-normalised inverse propensity scores.

    The mean of the logged rewards weighted by w = π(a|x)/p: Σw r/Σw. It stays within the range of
    the rewards, is equivariant to shifts of all rewards, and mostly has less variance than `ips`,
    with a bias of order 1/n. Its standard error is by the delta method.

    Parameters
    ----------
    policy_or_probabilities : policy or array-like
        A fitted policy, or a Pipeline that ends in one; or the probabilities or the labels of
        its choices: see `ips`.
    X : array-like of shape (n_events, n_features) or None
        Contexts; needed for a policy.
    y : DataFrame or structured array with columns action and reward, or array of actions
        The log. Columns propensity and available are read if present.
    available : sequence of tuples of labels, or boolean array, default=None
        Arms available to each event, if not a column of `y`.
    reward, propensity : array-like of shape (n_events,), default=None
        Rewards, and probabilities with which the actions were chosen, if not columns of `y`.
        Without propensities, actions are taken as chosen uniformly among the available arms.
    columns : dict, default=None
        Names of the columns of `y`, if different, as in
        ``columns={"action": "arm_id", "propensity": "pscore"}``.
    rule : {"select", "predict"}, default="select"
        The evaluated choice of a policy: the exploring one or the greedy one.

    Returns
    -------
    OffPolicyEstimate

    Warns
    -----
    ReplayCoverageWarning
        As in `ips`.

    See Also
    --------
    ips : Is unbiased.
    doubly_robust : Has less variance if rewards are predictable.
    replay : Evaluates policies that learn.

    References
    ----------
    Swaminathan and Joachims (2015), The self-normalized estimator for counterfactual learning.

    Examples
    --------
    Fit a policy to the first half of a log and evaluate it on the second:

    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import snips
    >>> log = make_bandit_log(20_000, n_arms=4, random_state=0)
    >>> policy = GLMUCBPolicy().fit(log.X[:10_000], log.y[:10_000])
    >>> snips(policy, log.X[10_000:], log.y[10_000:], rule="predict")
    <snips: mean reward 0.1387 ± 0.007, 2.65 x the log's; 10,000 events count as 2,458>
    """
    evaluated = read_evaluated(
        policy_or_probabilities, X, y, available, reward, propensity, rule, columns=columns
    )
    return _estimate("snips", evaluated.events())


def doubly_robust(
    policy_or_probabilities: Any,
    X: Any,
    y: Any,
    *,
    available: Any = None,
    reward: Any = None,
    propensity: Any = None,
    columns: Mapping[str, Any] | None = None,
    rule: str = "select",
    reward_model: Any = None,
    cv: Any = 5,
    random_state: Any = None,
) -> OffPolicyEstimate:
    """Estimate a fixed policy's mean reward by predicted rewards, corrected by logged rewards.

    The mean over events of Σ_a π(a|x) q(x,a) + w (r - q(x,a_logged)), where q(x,a) is the
    predicted reward of arm a and w = π(a|x)/p. Unbiased for any predictions if the propensities
    are right; the better the predictions, the smaller the variance.

    Parameters
    ----------
    policy_or_probabilities : policy or array-like
        A fitted policy, or a Pipeline that ends in one; or the probabilities of its choices, of
        shape (n_events, n_arms), or their labels: see `ips`. The probabilities of the logged
        actions alone do not suffice.
    X : array-like of shape (n_events, n_features)
        Contexts, not transformed by a policy's Pipeline; also passed to the reward model.
    y : DataFrame or structured array with columns action and reward, or array of actions
        The log. Columns propensity and available are read if present.
    available : sequence of tuples of labels, or boolean array, default=None
        Arms available to each event, if not a column of `y`.
    reward, propensity : array-like of shape (n_events,), default=None
        Rewards, and probabilities with which the actions were chosen, if not columns of `y`.
        Without propensities, actions are taken as chosen uniformly among the available arms.
    columns : dict, default=None
        Names of the columns of `y`, if different, as in
        ``columns={"action": "arm_id", "propensity": "pscore"}``.
    rule : {"select", "predict"}, default="select"
        The evaluated choice of a policy: the exploring one or the greedy one.
    reward_model : regressor or classifier with predict_proba, default=None
        Fitted per arm to the arm's events; None is ``Ridge()``. The prediction for an arm without
        events is the mean over all arms. Contexts that are not numeric need a Pipeline.
    cv : int, cross-validation generator or iterable of splits, default=5
        Each event is predicted by models fitted without it: it must be tested exactly once.
    random_state : int, RandomState instance or None, default=None
        Shuffles the events into folds if `cv` is an integer.

    Returns
    -------
    OffPolicyEstimate

    Warns
    -----
    ReplayCoverageWarning
        As in `ips`.

    See Also
    --------
    ips : Needs no contexts.
    snips : Needs no contexts, and has less variance than `ips`.
    replay : Evaluates policies that learn.

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
    evaluated = read_evaluated(
        policy_or_probabilities, X, y, available, reward, propensity, rule, columns=columns
    )
    log, of_arms = evaluated.log, evaluated.of_arms
    if X is None:
        raise ValueError("X is None: the reward model needs contexts.")
    if of_arms is None:
        raise ValueError(
            "doubly_robust needs the probabilities of all arms, of shape (n_events, n_arms), got "
            "only those of the logged actions: use ips or snips."
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
    return _estimate("doubly_robust", evaluated.events(q))


def _estimate(estimator: str, events: WeightedEvents) -> OffPolicyEstimate:
    """The estimate, after a warning if the log is insufficient."""
    sums = ESTIMATORS[estimator].sums(events)
    problem = shortcoming(sums)
    if problem:
        warnings.warn(f"{estimator}: {problem}", ReplayCoverageWarning, stacklevel=3)
    return estimate_of(estimator, sums)


def estimate_of(estimator: str, sums: EventSums) -> OffPolicyEstimate:
    """The estimate given the sums over all events."""
    size = sums.effective_sample_size
    undefined = size == 0
    return OffPolicyEstimate(
        estimator=estimator,
        mean_reward=np.nan if undefined else sums.value,
        standard_error=np.nan if undefined else sums.standard_error,
        effective_sample_size=size,
        n_events=sums.n,
        logged_mean=sums.reward / sums.n,
    )


def shortcoming(sums: EventSums) -> str:
    """Why the events are insufficient for an estimate; empty if they suffice."""
    size = sums.effective_sample_size
    if size == 0:
        return "the policy never chooses a logged action, so the log has no information about it."
    if size < _FEW:
        return (
            f"the {sums.n:,} events count as {size:.1f} only, as the policy rarely chooses the "
            "logged action or the weights are very unequal: rely neither on the estimate nor on "
            "its standard error."
        )
    if abs(sums.mean_weight - 1) > _FAR * sums.mean_weight_error:
        return (
            f"the mean weight is {sums.mean_weight:.3f} ± {sums.mean_weight_error:.3f}, expected "
            "1: the propensities are wrong, or the policy chooses arms that were never logged."
        )
    return ""
