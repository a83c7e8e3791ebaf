"""Off-policy estimates that need weights only: inverse propensity scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from skbandit.evaluation._off_policy._estimate import (
    OffPolicyEstimate,
    RewardModels,
    estimates,
    read_setting,
)
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
    reward_range: tuple[float, float] | None = None,
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
        For `reward`, also the name of a column of `y`, or a list of names: several rewards, each
        with its own estimate.
    columns : dict, default=None
        Names of the columns of `y`, if different, as in
        ``columns={"action": "arm_id", "propensity": "pscore"}``; None is the policy's `columns`.
    rule : {"select", "predict"}, default="select"
        The evaluated choice of a policy: the exploring one or the greedy one.
    reward_model : regressor or classifier with predict_proba, default=None
        Fitted per arm to the arm's events; None is ``Ridge()``. The prediction for an arm without
        events is the mean over all arms. Contexts that are not numeric need a Pipeline.
    cv : int, cross-validation generator or iterable of splits, default=5
        Each event is predicted by models fitted without it: it must be tested exactly once.
    random_state : int, RandomState instance or None, default=None
        Shuffles the events into folds if `cv` is an integer.
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
    models = RewardModels(reward_model, X, cv, random_state)
    return estimates("doubly_robust", evaluated, reward_range, models)


def self_normalized_dr(
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
    reward_range: tuple[float, float] | None = None,
) -> OffPolicyEstimate:
    """Estimate a fixed policy's mean reward by doubly robust terms with self-normalised weights.

    The mean of Σ_a π(a|x) q(x,a), plus the mean of r - q(x,a_logged) weighted by w = π(a|x)/p: as
    `doubly_robust`, with corrections that stay within the range of the residuals however large the
    weights. Its bias is of order 1/n.


    Parameters
    ----------
    policy_or_probabilities : policy or array-like
        A fitted policy, probabilities of its choices, or their labels, as in `doubly_robust`.
    X : array-like of shape (n_events, n_features)
        Contexts, not transformed by a policy's Pipeline; also passed to the reward model.
    y : DataFrame or structured array with columns action and reward, or array of actions
        The log. Columns propensity and available are read if present.
    available : sequence of tuples of labels, or boolean array, default=None
        Arms available to each event, if not a column of `y`.
    reward, propensity : array-like of shape (n_events,), default=None
        As in `doubly_robust`.
    columns : dict, default=None
        Names of the columns of `y`, if different, as in
        ``columns={"action": "arm_id", "propensity": "pscore"}``; None is the policy's `columns`.
    rule : {"select", "predict"}, default="select"
        The evaluated choice of a policy: the exploring one or the greedy one.
    reward_model : regressor or classifier with predict_proba, default=None
        Fitted per arm to the arm's events, as in `doubly_robust`.
    cv : int, cross-validation generator or iterable of splits, default=5
        Each event is predicted by models fitted without it: it must be tested exactly once.
    random_state : int, RandomState instance or None, default=None
        Shuffles the events into folds if `cv` is an integer.
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
    doubly_robust : Is unbiased.
    snips : The same without predictions.

    References
    ----------
    Thomas and Brunskill (2016), Data-efficient off-policy policy evaluation for reinforcement
    learning (there, the weighted doubly robust estimator).

    Examples
    --------
    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import self_normalized_dr
    >>> log = make_bandit_log(4000, n_arms=4, base_rate=0.2, random_state=0)
    >>> policy = GLMUCBPolicy().fit(log.X[:2000], log.y[:2000])
    >>> self_normalized_dr(policy, log.X[2000:], log.y[2000:], rule="predict", random_state=0)
    <self_normalized_dr: mean reward 0.4176 ± 0.02, 2.02 x the log's; 2,000 events count as 510>
    """
    evaluated = read_evaluated(
        policy_or_probabilities, X, y, available, reward, propensity, rule, columns=columns
    )
    models = RewardModels(reward_model, X, cv, random_state)
    return estimates("self_normalized_dr", evaluated, reward_range, models)


def switch_dr(
    policy_or_probabilities: Any,
    X: Any,
    y: Any,
    *,
    available: Any = None,
    reward: Any = None,
    propensity: Any = None,
    columns: Mapping[str, Any] | None = None,
    rule: str = "select",
    threshold: float | Literal["slope"] = "slope",
    reward_model: Any = None,
    cv: Any = 5,
    random_state: Any = None,
    reward_range: tuple[float, float] | None = None,
) -> OffPolicyEstimate:
    """Estimate a fixed policy's mean reward, correcting predictions where weights are small only.

    As `doubly_robust`, but events with weights w = π(a|x)/p above a threshold do not correct the
    predictions: there the variance of a correction outweighs its use.

    The estimate is biased by what the predictions get wrong where weights are above the
    threshold, and its standard error does not include that: its interval is that of
    `doubly_robust`, extended to the estimate. It is for logs whose few large weights make the
    unbiased estimators useless.

    Parameters
    ----------
    policy_or_probabilities : policy or array-like
        A fitted policy, probabilities of its choices, or their labels, as in `doubly_robust`.
    X : array-like of shape (n_events, n_features)
        Contexts, not transformed by a policy's Pipeline; also passed to the reward model.
    y : DataFrame or structured array with columns action and reward, or array of actions
        The log. Columns propensity and available are read if present.
    available : sequence of tuples of labels, or boolean array, default=None
        Arms available to each event, if not a column of `y`.
    reward, propensity : array-like of shape (n_events,), default=None
        As in `doubly_robust`.
    columns : dict, default=None
        Names of the columns of `y`, if different, as in
        ``columns={"action": "arm_id", "propensity": "pscore"}``; None is the policy's `columns`.
    rule : {"select", "predict"}, default="select"
        The evaluated choice of a policy: the exploring one or the greedy one.
    threshold : float or "slope", default="slope"
        Largest weight that corrects, from 0, none, to infinity, all as in `doubly_robust`. "slope"
        chooses among powers of 2 by SLOPE: the smallest threshold whose estimate agrees, within
        confidence widths, with those of all larger ones.
    reward_model : regressor or classifier with predict_proba, default=None
        Fitted per arm to the arm's events, as in `doubly_robust`.
    cv : int, cross-validation generator or iterable of splits, default=5
        Each event is predicted by models fitted without it: it must be tested exactly once.
    random_state : int, RandomState instance or None, default=None
        Shuffles the events into folds if `cv` is an integer.
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
    dr_shrinkage : Reduces large weights instead of dropping them.
    doubly_robust : Is unbiased.

    References
    ----------
    Wang, Agarwal and Dudík (2017), Optimal and adaptive off-policy evaluation in contextual
    bandits.

    Su, Srinath and Krishnamurthy (2020), Adaptive estimator selection for off-policy evaluation.

    Examples
    --------
    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import switch_dr
    >>> log = make_bandit_log(4000, n_arms=4, base_rate=0.2, random_state=0)
    >>> policy = GLMUCBPolicy().fit(log.X[:2000], log.y[:2000])
    >>> switch_dr(policy, log.X[2000:], log.y[2000:], rule="predict", random_state=0)
    <switch_dr(0): mean reward 0.4157 ± 0.0053, 2.01 x the log's; 2,000 events count as 510>
    """
    evaluated = read_evaluated(
        policy_or_probabilities, X, y, available, reward, propensity, rule, columns=columns
    )
    models = RewardModels(reward_model, X, cv, random_state)
    settings = read_setting(threshold, "threshold")
    return estimates("switch_dr", evaluated, reward_range, models, settings)


def dr_shrinkage(
    policy_or_probabilities: Any,
    X: Any,
    y: Any,
    *,
    available: Any = None,
    reward: Any = None,
    propensity: Any = None,
    columns: Mapping[str, Any] | None = None,
    rule: str = "select",
    shrinkage: float | Literal["slope"] = "slope",
    reward_model: Any = None,
    cv: Any = 5,
    random_state: Any = None,
    reward_range: tuple[float, float] | None = None,
) -> OffPolicyEstimate:
    """Estimate a fixed policy's mean reward by doubly robust terms with shrunk weights.

    As `doubly_robust`, with weights λ w/(w² + λ) in place of w = π(a|x)/p: small ones stay as they
    are, and those above √λ are more than halved (optimistic shrinkage).

    The estimate is biased by what the predictions get wrong where weights are shrunk, and its
    standard error does not include that: its interval is that of `doubly_robust`, extended to the
    estimate. It is for logs whose few large weights make the unbiased estimators useless.

    Parameters
    ----------
    policy_or_probabilities : policy or array-like
        A fitted policy, probabilities of its choices, or their labels, as in `doubly_robust`.
    X : array-like of shape (n_events, n_features)
        Contexts, not transformed by a policy's Pipeline; also passed to the reward model.
    y : DataFrame or structured array with columns action and reward, or array of actions
        The log. Columns propensity and available are read if present.
    available : sequence of tuples of labels, or boolean array, default=None
        Arms available to each event, if not a column of `y`.
    reward, propensity : array-like of shape (n_events,), default=None
        As in `doubly_robust`.
    columns : dict, default=None
        Names of the columns of `y`, if different, as in
        ``columns={"action": "arm_id", "propensity": "pscore"}``; None is the policy's `columns`.
    rule : {"select", "predict"}, default="select"
        The evaluated choice of a policy: the exploring one or the greedy one.
    shrinkage : float or "slope", default="slope"
        λ, in units of the squared weight, from 0, no correction, to infinity, `doubly_robust`.
        "slope" chooses among powers of 4 by SLOPE: the smallest λ whose estimate agrees, within
        confidence widths, with those of all larger ones.
    reward_model : regressor or classifier with predict_proba, default=None
        Fitted per arm to the arm's events, as in `doubly_robust`.
    cv : int, cross-validation generator or iterable of splits, default=5
        Each event is predicted by models fitted without it: it must be tested exactly once.
    random_state : int, RandomState instance or None, default=None
        Shuffles the events into folds if `cv` is an integer.
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
    switch_dr : Drops large weights.
    doubly_robust : Is unbiased.

    References
    ----------
    Su, Dimakopoulou, Krishnamurthy and Dudík (2020), Doubly robust off-policy evaluation with
    shrinkage.

    Su, Srinath and Krishnamurthy (2020), Adaptive estimator selection for off-policy evaluation.

    Examples
    --------
    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import dr_shrinkage
    >>> log = make_bandit_log(4000, n_arms=4, base_rate=0.2, random_state=0)
    >>> policy = GLMUCBPolicy().fit(log.X[:2000], log.y[:2000])
    >>> dr_shrinkage(policy, log.X[2000:], log.y[2000:], rule="predict", random_state=0)
    <dr_shrinkage(0): mean reward 0.4157 ± 0.0053, 2.01 x the log's; 2,000 events count as 510>
    """
    evaluated = read_evaluated(
        policy_or_probabilities, X, y, available, reward, propensity, rule, columns=columns
    )
    models = RewardModels(reward_model, X, cv, random_state)
    settings = read_setting(shrinkage, "shrinkage")
    return estimates("dr_shrinkage", evaluated, reward_range, models, settings)
