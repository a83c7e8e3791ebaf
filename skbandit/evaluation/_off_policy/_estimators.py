"""Off-policy estimates that need weights only: inverse propensity scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skbandit.evaluation._off_policy._estimate import OffPolicyEstimate
from skbandit.evaluation._off_policy._log_sums import estimates
from skbandit.evaluation._off_policy._target_policy import read_evaluated


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
    reward_range: tuple[float, float] | None = None,
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
        For `reward`, also the name of a column of `y`, or a list of names: several rewards, each
        with its own estimate.
    columns : dict, default=None
        Names of the columns of `y`, if different, as in
        ``columns={"action": "arm_id", "propensity": "pscore"}``; None is the policy's `columns`.
    rule : {"select", "predict"}, default="select"
        The evaluated choice of a policy: the exploring one, by `select_proba` if present, else by
        the arms that `select` returns; or the greedy one. If a row of `select_proba` sums to less
        than 1, the available arms that are new to the policy share the rest.
    reward_range : (float, float), default=None
        Smallest and largest possible reward, which intervals of kind "sequence" require.

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
    return estimates("ips", evaluated, reward_range)


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
    reward_range: tuple[float, float] | None = None,
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
        For `reward`, also the name of a column of `y`, or a list of names: several rewards, each
        with its own estimate.
    columns : dict, default=None
        Names of the columns of `y`, if different, as in
        ``columns={"action": "arm_id", "propensity": "pscore"}``; None is the policy's `columns`.
    rule : {"select", "predict"}, default="select"
        The evaluated choice of a policy: the exploring one or the greedy one.
    reward_range : (float, float), default=None
        Smallest and largest possible reward, which intervals of kind "sequence" require.

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
    return estimates("snips", evaluated, reward_range)
