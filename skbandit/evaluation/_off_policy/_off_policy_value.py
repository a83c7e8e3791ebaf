"""The mean reward of a fixed policy, from a log in memory or, in one pass, in blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd

from skbandit import logs
from skbandit.evaluation._difference import EventParts
from skbandit.evaluation._guaranteed import Range, read_range
from skbandit.evaluation._off_policy._estimate import LogSums, OffPolicyEstimate, check_predictable
from skbandit.evaluation._off_policy._sums import METHODS, Estimator
from skbandit.evaluation._off_policy._target_policy import (
    ArmUse,
    EvaluatedLog,
    are_floats,
    read_evaluated,
)
from skbandit.evaluation._policy_protocol import name_block_columns
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.utils._folds import behind_transformers
from skbandit.utils._trials import labels_of_groups, read_groups, warn_of_few_groups
from skbandit.utils._validation import as_labels, warn

SHOWS_RANGE = 100
"""Events of a block from which on its rewards show their range."""


def off_policy_value(
    policy: Any,
    X: Any,
    y: Any,
    *,
    method: str = "snips",
    rule: str = "select",
    available: Any = None,
    attributes: Any = None,
    reward: Any = None,
    propensity: Any = None,
    groups: Any = None,
    columns: Mapping[str, Any] | None = None,
    reward_model: Any = None,
    cv: Any = 5,
    threshold: float | Literal["slope"] = "slope",
    shrinkage: float | Literal["slope"] = "slope",
    reward_range: tuple[float, float] | None = None,
    random_state: Any = None,
) -> OffPolicyEstimate:
    """Estimate the mean reward of a fixed policy from another policy's log.

    Parameters
    ----------
    policy : policy or array-like
        A fitted policy, or a Pipeline or fitted search that ends in one: see `replay`. It does
        not learn and is not changed.

        Or the probabilities of its choices, of shape (n_events, n_arms), with rows that sum to 1.
        The columns of a DataFrame name the arms, and arms without a column are never chosen; the
        columns of an array are the log's arms, sorted.

        Or one value per event: the labels of the chosen arms (integers, strings, booleans or a
        pandas Categorical), or as floats the probabilities of the logged actions.
    X : array-like of shape (n_events, n_features) or None
        Contexts, not transformed by a policy's Pipeline; required for a policy and for reward
        models.
    y : DataFrame or structured array with columns action and reward, or array of actions
        The log. Columns propensity and available are read if present.
    method : {"snips", "ips", "dr", "sndr", "switch_dr", "dr_shrinkage"}, default="snips"
        The estimator; see Notes. "snips" suits most logs; "dr" has less variance if rewards are
        predictable; "switch_dr" and "dr_shrinkage" are for logs with a few large weights.
    rule : {"select", "predict"}, default="select"
        The evaluated choice of a policy. "select": the exploring one, by `select_proba` if present,
        else by the arms that `select` returns. "predict": the greedy one. If a row of
        `select_proba` sums to less than 1, available arms that are new to the policy share the
        rest.
    available : sequence of tuples of labels, or boolean array, default=None
        Arms available to each event, if not a column of `y`; None makes all arms of the log
        available. The columns of a boolean array are those of the probabilities, or the policy's
        `arms_`.
    attributes : DataFrame or dict of arrays, default=None
        Columns that a `ConstrainedPolicy` needs for its choices, unless X has them.
    reward, propensity : array-like of shape (n_events,), default=None
        Rewards, and probabilities with which the actions were chosen, if not columns of `y`.
        Without propensities, actions count as chosen uniformly among the available arms. `reward`
        may also be the name of a column of `y`.
    groups : array-like of shape (n_events,), default=None
        Events of one value, such as a person or a day, are dependent: the standard error and
        intervals count groups, and folds keep them together. A Series is put in the order of X by
        its index. None makes each event independent.
    columns : dict, default=None
        Names of the columns of `y`, if different, as in
        ``columns={"action": "arm_id", "propensity": "pscore"}``; None uses the policy's `columns`.
    reward_model : regressor or classifier with predict_proba, default=None
        Model of rewards for all methods but "snips" and "ips", fitted to the events of each arm;
        None uses ``Ridge()``. A regressor, if not linear, learns what all arms have in common once,
        from all events, and then what is left per arm, if this predicts clearly better. The
        prediction for an arm without events is the mean over all arms. Pass a Pipeline if contexts
        are not numeric.
    cv : int, cross-validation generator or iterable of splits, default=5
        Each event is predicted by models fitted without it: it must be tested exactly once.
    threshold : float or "slope", default="slope"
        τ of "switch_dr", from 0, which uses predictions only, to infinity, which is "dr". "slope"
        chooses a power of 2 by SLOPE: the smallest threshold whose estimate agrees, within
        confidence widths, with those of all larger ones.
    shrinkage : float or "slope", default="slope"
        λ of "dr_shrinkage", in units of the squared weight; "slope" chooses a power of 4.
    reward_range : (float, float), default=None
        Smallest and largest possible reward, which intervals of kind "sequence" require.
    random_state : int, RandomState instance or None, default=None
        Shuffles the events into folds for reward models if `cv` is an integer.

    Returns
    -------
    OffPolicyEstimate
        With `mean_reward`, `standard_error`, `interval` and `effective_sample_size`.

    Raises
    ------
    ValueError
        If a parameter is given that `method` does not use.

    Warns
    -----
    ReplayCoverageWarning
        If the effective sample size is too small for a reliable estimate, or the mean weight is far
        from its expectation 1, because the propensities are wrong, or at least 1% of the policy's
        choices are arms that the log never has, or an estimate with predictions is outside of the
        range of rewards.
    UserWarning
        If there are no propensities and the logged actions are not uniform, or fewer than 20
        groups; of one group there is no interval. If a prediction is five times as far from the
        range of rewards as this is wide, and is clipped to it, or an `id` occurs twice in the log.
        If the log has no `available`, and the policy was fitted to rows that lacked some arms.

    See Also
    --------
    off_policy_blocks : All methods at once, for a log larger than memory.
    OffPolicyScorer : The same as a scorer, for model selection.
    replay : Evaluates policies that learn.

    Notes
    -----
    An event with context x, logged action a and reward r has the weight w = π(a|x)/p, the
    probability of its action under the policy over its propensity. With predicted rewards q and
    Q = Σ_a π(a|x) q(x,a), the estimates are these means over events:

    - "ips": mean of w r. Unbiased if the propensities are right and every arm that the policy may
      choose had a positive one; its variance grows with the difference between the two policies.
    - "snips": Σ w r / Σ w. It stays within the range of the rewards, and mostly has less variance,
      with a bias of order 1/n.
    - "dr": mean of Q + w (r - q). Unbiased like "ips" for any predictions; good predictions reduce
      the variance.
    - "sndr": mean of Q, plus Σ w (r - q) / Σ w: "dr" with normalized weights, as in "snips".
    - "switch_dr": as "dr", with weights above τ set to 0.
    - "dr_shrinkage": as "dr", with the weights λ w/(w² + λ); those above √λ are more than halved.

    The last two are biased by errors of the predictions where weights are changed. With "slope",
    they are within one standard error of "dr", which is theirs, too; with a number, their standard
    error does not include the bias. Their interval is that of "dr", extended to the estimate.

    The estimates assume that events, or `groups` of them, are independent, and that the policy was
    not trained on them: estimates on training data are optimistic.

    References
    ----------
    "ips": Horvitz and Thompson (1952), A generalization of sampling without replacement from a
    finite universe. "snips": Swaminathan and Joachims (2015), The self-normalized estimator for
    counterfactual learning. "dr": Dudík, Langford and Li (2011), Doubly robust policy evaluation
    and learning. "sndr": Thomas and Brunskill (2016), Data-efficient off-policy policy evaluation
    for reinforcement learning. "switch_dr": Wang, Agarwal and Dudík (2017), Optimal and adaptive
    off-policy evaluation in contextual bandits. "dr_shrinkage": Su, Dimakopoulou, Krishnamurthy
    and Dudík (2020), Doubly robust off-policy evaluation with shrinkage. SLOPE: Su, Srinath and
    Krishnamurthy (2020), Adaptive estimator selection for off-policy evaluation.

    Examples
    --------
    Fit a policy to the first half of a log and evaluate it on the second:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import off_policy_value
    >>> log = make_bandit_log(20_000, n_arms=4, random_state=0)
    >>> policy = GLMUCBPolicy().fit(log.X[:10_000], log.y[:10_000])
    >>> off_policy_value(policy, log.X[10_000:], log.y[10_000:], rule="predict")
    <snips: mean reward 0.1387 ± 0.007, 2.65 x the log's; 10,000 events count as 2,458>

    Probabilities in place of a policy; here rewards are predictable:

    >>> rng = np.random.default_rng(2)
    >>> X = rng.normal(size=(1000, 3))
    >>> log = pd.DataFrame({"action": rng.choice(["a", "b"], 1000)})
    >>> log["reward"] = X[:, 0] + (log["action"] == "b") + 0.1 * rng.normal(size=1000)
    >>> mostly_b = pd.DataFrame({"a": 0.2, "b": 0.8}, index=log.index)
    >>> for method in ("ips", "dr"):
    ...     print(off_policy_value(mostly_b, X, log, method=method, random_state=0))
    <ips: mean reward 0.7837 ± 0.045, 1.60 x the log's; 1,000 events count as 729>
    <dr: mean reward 0.8045 ± 0.032, 1.64 x the log's; 1,000 events count as 729>
    """
    estimator = _configure(method, reward_model, cv, threshold=threshold, shrinkage=shrinkage)
    bounds = read_range(reward_range)
    evaluated = read_evaluated(
        policy,
        X,
        y,
        rule=rule,
        columns=columns,
        reward=reward,
        propensity=propensity,
        available=available,
        attributes=attributes,
    )
    n_events, logged = len(evaluated.log), evaluated.log.propensity
    if n_events and logged is not None and np.ptp(logged) == 0:
        logs.check_propensities(evaluated.log, X)  # equal ones may be guessed
    group = read_groups(groups, n_events, X, y)
    q = None
    if estimator.needs_predictions:
        check_predictable(X, evaluated)
        log, n_arms = evaluated.log, len(evaluated.arms)
        folds = {"cv": cv, "random_state": random_state, "group": group}
        q = logs.cross_fitted_rewards(reward_model, X, log.action, log.reward, n_arms, **folds)
    return _estimate(evaluated, q, group, method, estimator, bounds)


def value_of_evaluated(
    evaluated: EvaluatedLog, certain: np.ndarray | None, group: np.ndarray | None
) -> OffPolicyEstimate:
    """Return the "snips" estimate; of rewards with a part certain of each arm, only the rest is.

    `certain` has shape (n_events, n_arms), None if nothing is.
    """
    method = "snips" if certain is None else "sndr"
    return _estimate(evaluated, certain, group, method, METHODS[method], None)


def _estimate(
    evaluated: EvaluatedLog,
    q: np.ndarray | None,
    group: np.ndarray | None,
    method: str,
    estimator: Estimator,
    bounds: Range | None,
) -> OffPolicyEstimate:
    """Return the estimate by a method, given the predicted rewards of arms that it needs."""
    events = evaluated.events(q)
    sums = LogSums.of(events, bounds, {method: estimator}, group)
    if message := sums.first.shortcoming or ArmUse.of(evaluated).unlogged or sums.outside:
        warn(f"off_policy_value: {message}", ReplayCoverageWarning)
    estimate = sums.estimates()[method]
    if not np.isfinite(estimate.mean_reward):
        return estimate
    log = evaluated.log
    parts = EventParts(
        estimator.influence(events),
        estimator.factor(events),
        sums.evidence.clipping,
        sums.evidence.variance(of_errors=estimator.needs_predictions),
        EventParts.of_log(log, log.reward, log.propensity, group),
    )
    return replace(estimate, parts=parts)


def _configure(method: Any, reward_model: Any, cv: Any, **settings: Any) -> Estimator:
    """Return the estimator of a method, after refusing parameters that it does not use."""
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"method must be in {tuple(METHODS)}, got {method!r}.")
    estimator = METHODS[method]
    unused = [
        name for name in settings if name != estimator.parameter and str(settings[name]) != "slope"
    ]
    if not estimator.needs_predictions:
        unused += ["reward_model"] * (reward_model is not None)
        unused += ["cv"] * (not isinstance(cv, int) or cv != 5)
    if unused:
        raise ValueError(f"method={method!r} does not use {unused[0]}: leave it out.")
    return estimator if estimator.parameter is None else estimator.at(settings[estimator.parameter])


def off_policy_blocks(
    policy: Any,
    blocks: Any,
    *,
    features: Sequence[str] | None = None,
    arms: Sequence[Any] | None = None,
    reward_model: Any = None,
    rule: str = "select",
    reward: str | None = None,
    groups: str | None = None,
    columns: Mapping[str, Any] | None = None,
    reward_range: tuple[float, float] | None = None,
) -> dict[str, OffPolicyEstimate]:
    """Estimate a fixed policy's mean reward from a log larger than memory, in one pass.

    The estimates of `off_policy_value` by all methods, accumulated over blocks. They and their
    intervals equal those of the whole log in memory up to rounding, however the log is divided.

    Parameters
    ----------
    policy : policy or str
        A fitted policy, or a Pipeline or fitted search that ends in one, as in `off_policy_value`.
        Or the name of a column of the log with the probabilities of the logged actions under the
        evaluated policy.
    blocks : iterable of blocks, or Dask DataFrame
        A block is a table (of pandas, as yielded by ``read_csv(..., chunksize=...)``, polars or
        pyarrow), a pair (X, y), or an object with X and y, as yielded by `read_parquet_log`. The
        log needs a column propensity.

        The partitions of a Dask DataFrame are blocks. Dask's scheduler processes them, on a
        cluster if one is connected, and returns a few sums per partition.
    features : sequence of str, default=None
        For blocks that are tables: the columns that are contexts; all others are the log.
    arms : sequence of labels, default=None
        All arms of the log; required for a policy without a column available.
    reward_model : dict of fitted models, or policy with predict_reward, default=None
        For the doubly robust methods: a regressor (or a classifier with predict_proba) per arm
        label, or one object with ``predict_reward(X)`` and `arms_`, such as a `GLMUCBPolicy`. It
        must be fitted in advance, to events outside this log: cross-fitting would take a second
        pass. "dr" is unbiased whatever the model predicts; predictions far outside of the range of
        the block's rewards are clipped to it, with a warning. None omits these methods.
    rule : {"select", "predict"}, default="select"
        The evaluated choice of a policy: the exploring one or the greedy one.
    reward : str, default=None
        Column of the rewards, if not "reward".
    groups : str, default=None
        Column of the log whose values tell which events are dependent, in the same or in different
        blocks, as `groups` of `off_policy_value`. A few sums per group are kept in memory. None
        makes each event independent.
    columns : dict, default=None
        Names of the log's columns, if different, as in ``columns={"action": "arm_id"}``; None uses
        the policy's `columns`.
    reward_range : (float, float), default=None
        Smallest and largest possible reward, which intervals of kind "sequence" require.

    Returns
    -------
    dict of OffPolicyEstimate
        By method: "snips", "ips" and, with a reward model, "dr", "sndr", "switch_dr" and
        "dr_shrinkage".

    Raises
    ------
    ValueError
        As in `off_policy_value`; a note names the block, and row numbers count within it.

    Warns
    -----
    ReplayCoverageWarning
        As in `off_policy_value`.
    UserWarning
        If `groups` are few, as in `off_policy_value`, or ids of a column ``id`` occur in several
        blocks, of which 65,536 are compared.

    See Also
    --------
    skbandit.datasets.read_parquet_log : Reads blocks from Parquet files.
    replay_blocks : Evaluates policies that learn.
    off_policy_value : The same for a log in memory, with formulas.

    Notes
    -----
    Every block is evaluated with the policy in its present state. A random policy without
    `select_proba` draws the same numbers in every block.

    When Dask converts a pandas DataFrame, it turns columns of Python objects into strings: for a
    column available of tuples, set its option ``dataframe.convert-string`` to False. Lists read
    from Parquet are left unchanged.

    Examples
    --------
    Fit a policy to the first part of a log and evaluate it on the others:

    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import off_policy_blocks
    >>> log = make_bandit_log(20_000, n_arms=4, random_state=0)
    >>> parts = [(log.X[k : k + 5000], log.y[k : k + 5000]) for k in range(0, 20_000, 5000)]
    >>> policy = GLMUCBPolicy().fit(*parts[0])
    >>> found = off_policy_blocks(
    ...     policy, parts[1:], arms=range(4), reward_model=policy, rule="predict"
    ... )
    >>> for name in ("ips", "snips", "dr"):
    ...     print(found[name])
    <ips: mean reward 0.1371 ± 0.0059, 2.64 x the log's; 15,000 events count as 3,720>
    <snips: mean reward 0.1382 ± 0.0057, 2.66 x the log's; 15,000 events count as 3,720>
    <dr: mean reward 0.1368 ± 0.0052, 2.63 x the log's; 15,000 events count as 3,720>
    """
    features = None if features is None else as_labels(features, "features")
    arms = None if arms is None else as_labels(arms, "arms")
    columns = name_block_columns(policy, columns, reward)
    bounds = read_range(reward_range)
    parameters = policy, features, arms, reward_model, rule, columns, bounds, groups
    task = partial(_of_block, *parameters)
    of_blocks = logs.sum_over_blocks(task, blocks, "off_policy_blocks")
    if of_blocks is None:
        raise ValueError("blocks contains no event.")
    of_blocks.ids.warn("off_policy_blocks")
    total = of_blocks.sums
    if total.first.by_group is not None:
        warn_of_few_groups(len(total.first.by_group))
    if message := total.first.shortcoming or of_blocks.arms.unlogged or total.outside:
        warn(f"off_policy_blocks: {message}", ReplayCoverageWarning)
    return total.estimates()


@dataclass(frozen=True)
class _OfBlocks:
    """Sums, arms in use and ids of selected blocks."""

    sums: LogSums
    arms: ArmUse
    ids: logs.SeenIds

    def __add__(self, other: _OfBlocks) -> _OfBlocks:
        return _OfBlocks(self.sums + other.sums, self.arms + other.arms, self.ids + other.ids)


def _of_block(
    policy: Any,
    features: Sequence[str] | None,
    arms: list[Any] | None,
    reward_model: Any,
    rule: str,
    columns: Mapping[str, Any] | None,
    bounds: Range | None,
    groups: str | None,
    block: Any,
) -> _OfBlocks | None:
    """Return sums over the events of a block, and their ids; None if it has none."""
    X, y = logs.read_block(block, features, columns)
    if not len(y):
        return None
    given, named = policy, isinstance(policy, str)
    names, group = logs.column_names(y) or [], None
    if groups is not None:
        if groups not in names:
            raise ValueError(f"groups={groups!r} is not a column of the log, {names}.")
        group = labels_of_groups(pd.Series(y[groups]), len(y))
    if named:
        if given not in names:
            raise ValueError(
                f"policy={given!r} is not a column of the log, {names}: name the column with "
                "the probabilities of the logged actions, or pass a fitted policy."
            )
        values = pd.Series(y[given])
        if not are_floats(values):
            raise ValueError(
                f"column {given!r} holds {values.dtype} values such as {values.iloc[0]!r}, "
                "which look like labels of chosen arms: pass a column with the probabilities "
                "of the logged actions, as floats."
            )
        given = values
    evaluated = read_evaluated(
        given, X, y, rule=rule, columns=columns, arms=arms or (), of_logged=named
    )
    if evaluated.of_arms is not None:
        logs.check_block_arms(evaluated.log, arms)
    q = None if reward_model is None else _predict_rewards(reward_model, X, evaluated)
    if q is not None and (bounds is not None or len(y) >= SHOWS_RANGE):
        low, high = bounds or logs.range_of(evaluated.log.reward)
        q = logs.within_range(q, (low, high), np.arange(len(q))) if low < high else q
    sums = LogSums.of(evaluated.events(q), bounds, group=group)
    return _OfBlocks(sums, ArmUse.of(evaluated), logs.SeenIds.of(y))


def _predict_rewards(model: Any, X: Any, evaluated: EvaluatedLog) -> np.ndarray:
    """Predicted rewards, of shape (n_events, n_arms)."""
    check_predictable(X, evaluated)
    if not isinstance(model, Mapping):
        model, X = behind_transformers(model, X)
        if not hasattr(model, "predict_reward"):
            raise TypeError(
                "reward_model must be a dict of fitted models, one per arm, or have "
                f"predict_reward, got {type(model).__name__}."
            )
    arms = list(model) if isinstance(model, Mapping) else model.arms_.tolist()
    unknown = [arm for arm in evaluated.arms if arm not in arms]
    if unknown:
        raise ValueError(f"reward_model has no model of arm {unknown[0]!r}, only of {arms}.")
    if isinstance(model, Mapping):
        return np.column_stack([logs.expected_reward(model[arm], X) for arm in evaluated.arms])
    return model.predict_reward(X)[:, [arms.index(arm) for arm in evaluated.arms]]
