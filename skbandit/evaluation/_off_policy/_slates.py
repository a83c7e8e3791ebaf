"""Off-policy estimates from logged slates, and replay of policies that learn from them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from skbandit import logs
from skbandit.evaluation._difference import EventParts
from skbandit.evaluation._guaranteed import RewardEvidence
from skbandit.evaluation._off_policy._estimate import OffPolicyEstimate, make_estimate
from skbandit.evaluation._off_policy._sums import METHODS, EventSums, WeightedEvents
from skbandit.evaluation._off_policy._target_policy import by_number, check_available, policy_of
from skbandit.evaluation._policy_protocol import check_rule, name_columns
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.utils._fitting import seed_for
from skbandit.utils._folds import behind_transformers
from skbandit.utils._sklearn_compat import count_rows, rows_of
from skbandit.utils._trials import read_groups
from skbandit.utils._validation import as_contexts, at_most_1, refuse_lazy, warn, warn_if_reordered

# Weights of logged slates, whose product with their rewards estimates another policy's value.
#
# Let q_ja be the probability that the evaluated policy shows arm a at place j of m, and π_a = Σ_j
# q_ja its inclusion probability. With the indicator vectors 1_s of logged slates over pairs of a
# place and an arm, and Γ = E 1_s 1_sᵀ, the pseudo-inverse estimator is the mean of w(s) r with
#
#     w(s) = qᵀ Γ⁺ 1_s
#
# (Swaminathan et al., 2017, "Off-policy evaluation for slate recommendation"). It is unbiased if
# the expected reward of a slate is a sum over its pairs, whatever the terms, and the logging
# policy shows every pair that the evaluated one does. Of uniform logs, of ordered slates without
# repetition, of K arms, Γ⁺ is known in closed form. On vectors that sum to 0 over the arms of each
# place, Γ = (K I - J) ⊗ I / (K (K - 1)), with I and J (all ones) over places, so that for m < K
#
#     w(s) = 1 + (K - 1) [Σ_j (q_{j,s_j} - 1/K) + (Σ_{a in s} π_a - m²/K) / (K - m)],
#
# and for m = K the second term is 0.


def weights_of_uniform(
    at_place: np.ndarray, included: np.ndarray, n_arms: np.ndarray
) -> np.ndarray:
    """Weights of slates that were logged uniformly, (n_events,).

    Parameters
    ----------
    at_place : ndarray of shape (n_events, m)
        q_{j,s_j}: probability of each shown arm at its own place.
    included : ndarray of shape (n_events, m)
        π_a of each shown arm: its probability at any place.
    n_arms : ndarray of shape (n_events,)
        Number K of arms that were available.
    """
    m = at_place.shape[1]
    same_place = at_place.sum(axis=1) - m / n_arms
    spare = n_arms - m
    any_place = (included.sum(axis=1) - m * m / n_arms) / np.maximum(spare, 1)
    return 1.0 + (n_arms - 1) * (same_place + np.where(spare > 0, any_place, 0.0))


def shown_slates(given: Any, X: Any, log: logs.Log, rule: str) -> np.ndarray:
    """Return indices of the arms that a policy shows, or that are given, (n_events, m).

    -1 is an empty place; arms that the log lacks follow its own ones.
    """
    name, slates = "the evaluated policy", given
    if policy_of(given) is not None:
        policy, X = behind_transformers(given, as_contexts(X))
        name = f"{type(policy).__name__}.{rule}"
        if not hasattr(policy, rule):
            raise ValueError(f"{type(policy).__name__} has no {rule}.")
        slates = getattr(policy, rule)(X, available=log.available_labels())
    labels = log.arms.tolist()
    listed = logs.slate_labels(slates, name, len(log))
    numbers = logs.code_slates(listed, {label: k for k, label in enumerate(labels)})
    if log.pools is not None:
        logs.check_shown(log.pools, np.where(numbers < len(labels), numbers, -1), labels)
    return numbers


def place_matches(numbers: np.ndarray, log: logs.Log) -> tuple[np.ndarray, np.ndarray]:
    """Tell whether each shown arm of the log has its own place in a slate, and whether any place.

    Returns
    -------
    at_place, included : ndarray of bool, shape (n_events, n_places)
    """
    equal = log.action[:, :, None] == np.where(numbers < 0, -2, numbers)[:, None, :]
    places = min(equal.shape[1:])
    at_place = np.zeros(log.action.shape, dtype=bool)
    diagonal = np.arange(places)
    at_place[:, :places] = equal[:, diagonal, diagonal]
    return at_place, equal.any(axis=2)


def inclusion_of_shown(given: Any, X: Any, log: logs.Log, rule: str) -> tuple[np.ndarray, float]:
    """Inclusion probabilities of the shown arms, and the evaluated slates' mean number of arms.

    Parameters
    ----------
    given : policy, slates, or DataFrame of inclusion probabilities
    X, log, rule : object
        As the estimators read them.

    Returns
    -------
    included : ndarray of shape (n_events, n_places)
        nan in empty places.
    size : float
    """
    check_rule(rule)
    if isinstance(given, pd.DataFrame) and all(map(pd.api.types.is_float_dtype, given.dtypes)):
        if len(given) != len(log):
            raise ValueError(f"there are {len(given)} rows of probabilities for {len(log)} slates.")
        return _inclusion_of_table(given.to_numpy(np.float64), given.columns.tolist(), log)
    given = copy.deepcopy(given)
    if rule == "select" and X is not None and policy_of(given) is not None:
        policy, rows = behind_transformers(given, X)
        if hasattr(policy, "select_proba"):
            inclusion = policy.select_proba(rows, available=log.available_labels())
            return _inclusion_of_table(
                np.asarray(inclusion, dtype=np.float64), policy.arms_.tolist(), log
            )
    slates = shown_slates(given, X, log, rule)
    _, included = place_matches(slates, log)
    return np.where(log.shown, included, np.nan), float((slates >= 0).sum(axis=1).mean())


def _inclusion_of_table(
    table: np.ndarray, arms: list[Any], log: logs.Log
) -> tuple[np.ndarray, float]:
    """Inclusion probabilities of shown arms, from those of the arms of the columns."""
    codes = {label: k for k, label in enumerate(log.arms.tolist())}
    of_arms = by_number(table, arms, codes)
    check_available(of_arms, log, list(codes))
    included = of_arms[np.arange(len(log))[:, None], log.action]
    return np.where(log.shown, included, np.nan), float(table.sum(axis=1).mean())


def slate_ips(
    policy_or_slates: Any,
    X: Any,
    y: Any,
    *,
    available: Any = None,
    reward: Any = None,
    propensity: Any = None,
    columns: Mapping[str, Any] | None = None,
    rule: str = "select",
) -> OffPolicyEstimate:
    """Estimate the mean reward of a fixed policy's slates from the rewards of single arms.

    The mean over logged slates of Σ r_a π_a/p_a, where r_a is the reward of a shown arm and π_a and
    p_a are the probabilities that the evaluated and the logging policy include it in the slate: the
    independent estimator. Unbiased if an arm's reward depends neither on its place nor on the
    arms shown with it, and every arm that the policy may show had a positive probability.

    Parameters
    ----------
    policy_or_slates : policy or array-like
        A fitted `SlatePolicy` or set selector, or a Pipeline that ends in one; or the slates that
        it shows, labels of shape (n_events, n_select); or a DataFrame of inclusion probabilities
        with one column of floats per arm.
    X : array-like of shape (n_events, n_features) or None
        Contexts; required for a policy.
    y : DataFrame or structured array with columns action and reward, or slates
        The log. An entry of action is a tuple of labels, best place first, one of reward has the
        reward of each, and one of propensity the probability of each to be in the slate.
    available : array-like, default=None
        Arms available to each event, if not a column of `y`; None means all arms of the log.
    reward, propensity : array-like, default=None
        Values that are not columns of `y`. Without propensities, slates count as uniform
        among the available arms: m/K each.
    columns : dict, default=None
        Names of the columns of `y`, if different, as in ``columns={"action": "shown"}``; None uses
        the policy's `columns`.
    rule : {"select", "predict"}, default="select"
        The evaluated choice of a policy: the exploring one, by `select_proba`; or the greedy one.

    Returns
    -------
    OffPolicyEstimate
        Of the sum of the rewards of a slate. `logged_mean` is that of the log.

    Warns
    -----
    ReplayCoverageWarning
        As in `off_policy_value`.

    See Also
    --------
    slate_pseudo_inverse : From one reward per slate.
    replay_slates : For policies that learn.

    References
    ----------
    S. Li, Y. Abbasi-Yadkori, B. Kveton, S. Muthukrishnan, V. Vinay, Z. Wen (2018). Offline
    evaluation of ranking policies with click models. KDD, 1685-1694.

    Examples
    --------
    Slates of two of three arms, of which "c" earns nothing; always showing the others:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from skbandit.evaluation import slate_ips
    >>> rng = np.random.default_rng(0)
    >>> slates = [tuple(rng.permutation(["a", "b", "c"])[:2].tolist()) for _ in range(1000)]
    >>> rewards = [tuple(float(arm != "c") for arm in slate) for slate in slates]
    >>> log = pd.DataFrame({"action": slates, "reward": rewards})
    >>> slate_ips([["a", "b"]] * 1000, None, log)
    <slate_ips: mean reward 1.977 ± 0.022, 1.50 x the log's; 1,000 events count as 889>
    """
    log = _read_slate_log(policy_or_slates, X, y, available, reward, propensity, columns)
    rewards, p = _known(log), _inclusion_propensity(log, X)
    included, size = inclusion_of_shown(policy_or_slates, X, log, rule)
    weight = np.nan_to_num(included / p)  # 0 in empty places
    earned = (weight * rewards).sum(axis=1)
    return _estimate("slate_ips", earned, weight.sum(axis=1) / size, rewards, p, log)


def slate_pseudo_inverse(
    policy_or_slates: Any,
    X: Any,
    y: Any,
    *,
    available: Any = None,
    reward: Any = None,
    propensity: Any = None,
    columns: Mapping[str, Any] | None = None,
    rule: str = "select",
    logging: str = "uniform",
    n_draws: int = 20,
) -> OffPolicyEstimate:
    """Estimate the mean reward of a fixed policy's slates from one reward per slate.

    The pseudo-inverse estimator of Swaminathan et al. (2017). Unbiased if the expected reward of a
    slate is a sum over its pairs of a place and an arm, whatever their terms, and the log shows
    every such pair that the policy does. Its variance grows with K m, where plain inverse
    propensity weights of whole slates grow with K to the power of m.

    Parameters
    ----------
    policy_or_slates : policy or array-like
        A fitted `SlatePolicy` or set selector, or a Pipeline that ends in one; or the slates that
        it shows, labels of shape (n_events, n_select), best place first.
    X : array-like of shape (n_events, n_features) or None
        Contexts; required for a policy.
    y : DataFrame or structured array with columns action and reward, or slates
        The log. An entry of action is a tuple of labels, best place first, one of reward a number.
    available : array-like, default=None
        Arms available to each event, if not a column of `y`; None means all arms of the log.
    reward, propensity : array-like, default=None
        Values that are not columns of `y`. Propensities are not used.
    columns : dict, default=None
        Names of the columns of `y`, if different, as in ``columns={"action": "shown"}``; None uses
        the policy's `columns`.
    rule : {"select", "predict"}, default="select"
        The evaluated choice of a policy: the exploring one or the greedy one.
    logging : {"uniform"}, default="uniform"
        How the log chose: uniformly among all orders of m available arms.
    n_draws : int, default=20
        Number of slates drawn per event from an exploring policy. The estimate is unbiased with
        one; more of them reduce its variance.

    Returns
    -------
    OffPolicyEstimate
        Its weights may be negative.

    Warns
    -----
    ReplayCoverageWarning
        As in `off_policy_value`.

    See Also
    --------
    slate_ips : From a reward per shown arm; less variance.

    References
    ----------
    A. Swaminathan, A. Krishnamurthy, A. Agarwal, M. Dudík, J. Langford, D. Jose, I. Zitouni (2017).
    Off-policy evaluation for slate recommendation. NeurIPS 30.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skbandit.evaluation import slate_pseudo_inverse
    >>> rng = np.random.default_rng(0)
    >>> slates = [tuple(rng.permutation(["a", "b", "c"])[:2].tolist()) for _ in range(1000)]
    >>> total = [float("a" in slate) + float("b" in slate) for slate in slates]
    >>> log = pd.DataFrame({"action": slates, "reward": total})
    >>> estimate = slate_pseudo_inverse([["a", "b"]] * 1000, None, log)
    >>> abs(estimate.mean_reward - 2) < 5 * estimate.standard_error
    True
    """
    check_rule(rule)
    if logging != "uniform":
        raise ValueError(
            f"logging={logging!r}, but only uniform logs are read: use slate_ips, with a reward of "
            "each arm and its probability to be in the slate."
        )
    if isinstance(n_draws, bool) or not isinstance(n_draws, int) or n_draws < 1:
        raise ValueError(f"n_draws must be an integer of at least 1, got {n_draws!r}.")
    log = _read_slate_log(policy_or_slates, X, y, available, reward, propensity, columns)
    rewards = log.of_slates(log.reward, "reward")
    m = log.action.shape[1]
    if not log.shown.all():
        row = int(np.flatnonzero(~log.shown.all(axis=1))[0])
        raise ValueError(
            f"row {row} shows {log.sizes[row]} arms, others {m}: estimate each size apart."
        )
    at_place, included = _place_probabilities(policy_or_slates, X, log, rule, n_draws)
    for place in range(m):
        at_place_only = replace(log, action=log.action[:, [place]])
        if logs.check_uniform(at_place_only, X, n_checks=m):
            break
    weight = weights_of_uniform(at_place, included, log.sets.sizes)
    return _estimate("slate_pseudo_inverse", weight * rewards, weight, rewards, None, log)


def replay_slates(
    policy: Any,
    X: Any,
    y: Any,
    *,
    available: Any = None,
    reward: Any = None,
    propensity: Any = None,
    columns: Mapping[str, Any] | None = None,
    rule: str = "select",
    learn: bool = True,
    groups: Any = None,
    random_state: Any = None,
) -> OffPolicyEstimate:
    """Estimate the mean reward of a learning slate policy from a log of slates.

    The policy chooses a slate for every event in turn, and observes the rewards of those of its
    arms that the log also showed. Each of these rewards has the weight 1/p, where p is the
    probability that the logged slate includes the arm.

    Parameters
    ----------
    policy : SlatePolicy, or Pipeline that ends in one
        Works on a copy, which starts from the state the policy is in.
    X : array-like of shape (n_events, n_features)
        Contexts.
    y : DataFrame or structured array with columns action and reward, or slates
        The log, as in `slate_ips`, in order of time.
    available : array-like, default=None
        Arms available to each event, if not a column of `y`; None means all arms of the log.
    reward, propensity : array-like, default=None
        Values that are not columns of `y`, as in `slate_ips`.
    columns : dict, default=None
        Names of the columns of `y`, if different, as in ``columns={"action": "shown"}``; None uses
        the policy's `columns`.
    rule : {"select", "predict"}, default="select"
        The choice that is played: the exploring one or the greedy one.
    learn : bool, default=True
        Whether the policy learns from event to event.
    groups : array-like of shape (n_events,), default=None
        Events of one value, such as a person or a day, are dependent: the standard error and
        intervals count groups. A Series is put in the order of X by its index. None makes each
        event independent.
    random_state : int, RandomState instance or None, default=None
        Seed of the copy's choices, if it has a `random_state`.

    Returns
    -------
    OffPolicyEstimate
        Of the mean sum of rewards per slate.

    Warns
    -----
    ReplayCoverageWarning
        As in `off_policy_value`.
    UserWarning
        If `groups` are few, as in `off_policy_value`.

    See Also
    --------
    replay : For policies that choose one arm.
    slate_ips : For fixed policies.

    Notes
    -----
    Under the conditions of `slate_ips`, the estimate is unbiased for a policy that observes the
    reward of each of its arms with probability p only. A policy that observes all rewards learns
    faster, so for it the estimate is mostly too low.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skbandit.bandit import SlatePolicy
    >>> from skbandit.evaluation import replay_slates
    >>> rng = np.random.default_rng(0)
    >>> slates = [tuple(rng.permutation(["a", "b", "c"])[:2].tolist()) for _ in range(300)]
    >>> rewards = [tuple(float(arm != "c") for arm in slate) for slate in slates]
    >>> log = pd.DataFrame({"action": slates, "reward": rewards})
    >>> X = np.zeros((300, 1))
    >>> estimate = replay_slates(SlatePolicy(n_select=2), X, log, random_state=0)
    >>> estimate.mean_reward > 1.5  # random slates have 4/3
    True
    """
    check_rule(rule)
    log = _read_slate_log(policy, X, y, available, reward, propensity, columns)
    rewards, p = _known(log), _inclusion_propensity(log, X)
    group = read_groups(groups, len(log), X, y)
    player, rows = behind_transformers(copy.deepcopy(policy), X)
    if random_state is not None and hasattr(player, "random_state"):
        player.random_state = seed_for("replay", random_state) % 2**31
    if isinstance(getattr(player, "columns", None), Mapping):
        player.columns = None
    if log.timestamp is not None:
        logs.check_in_order(log.timestamp, "replay_slates")
    sets = log.available_labels()
    weight = np.zeros(log.action.shape)
    sizes = np.zeros(len(log))
    feedback = getattr(player, "feedback", "semi_bandit")
    if learn and feedback != "semi_bandit":
        raise ValueError(
            f"the policy has feedback={feedback!r}, but a replay knows the rewards of single arms: "
            "use feedback='semi_bandit', or learn=False."
        )
    with logs.times_already_read():
        for k in range(len(log)):
            x = rows_of(rows, [k])
            if log.timestamp is not None and hasattr(player, "advance"):
                player.advance(log.timestamp[k])
            slate = logs.slate_labels(getattr(player, rule)(x, available=[sets[k]]), rule, 1)[0]
            if outside := set(slate) - set(sets[k]):
                raise ValueError(f"row {k}: {outside.pop()!r} is shown, but was not available.")
            logged = log.action[k][log.shown[k]]
            place = {label: j for j, label in enumerate(log.arms[logged].tolist())}
            both = [place[label] for label in slate if label in place]
            weight[k, both] = 1 / p[k, both]
            sizes[k] = len(slate)
            if learn and both:
                seen = [rewards[k, place[label]] if label in place else np.nan for label in slate]
                event: dict[str, Any] = {"action": [tuple(slate)], "reward": [tuple(seen)]}
                if log.timestamp is not None:
                    event["timestamp"] = [log.timestamp[k]]
                player.partial_fit(x, pd.DataFrame(event))
    earned = (weight * rewards).sum(axis=1)
    return _estimate("replay_slates", earned, weight.sum(axis=1) / sizes, rewards, p, log, group)


def _read_slate_log(
    policy: Any, X: Any, y: Any, available: Any, reward: Any, propensity: Any, columns: Any
) -> logs.Log:
    """Read a log of slates."""
    given = policy if policy_of(policy) is None else None
    refuse_lazy({"policy": policy, "X": X, "y": y, "reward": reward, "available": available})
    warn_if_reordered({"X": X, "policy": given, "y": y})
    return logs.read_slates(
        y,
        None if X is None else count_rows(X),
        reward=reward,
        propensity=propensity,
        available=logs.align_rows(available, X),
        columns=name_columns(policy, columns, named=not logs.are_slates(y))[0],
    )


def _known(log: logs.Log) -> np.ndarray:
    """Rewards of shown arms, 0 in empty places."""
    rewards = log.of_arms(log.reward, "reward")
    unknown = np.argwhere(log.shown & np.isnan(rewards))
    if len(unknown):
        row, place = unknown[0]
        raise ValueError(
            f"the reward of row {row} at place {place} is missing: pass 0 for an arm that earned "
            "nothing as it was not looked at, or drop the row."
        )
    return np.nan_to_num(rewards)


def _inclusion_propensity(log: logs.Log, X: Any) -> np.ndarray:
    """Probabilities that a logged slate includes its arms, 1 in empty places: see `slate_ips`."""
    if log.propensity is None:
        logs.check_uniform(log, X)
        return np.broadcast_to((log.sizes / log.sets.sizes)[:, None], log.action.shape)
    p = np.where(log.shown, at_most_1(log.of_arms(log.propensity, "propensity")), 1.0)
    wrong = np.argwhere(~((p > 1e-100) & (p <= 1)))
    if len(wrong):
        row, place = wrong[0]
        raise ValueError(
            f"propensity must be in (0, 1], and not below 1e-100: row {row} has "
            f"{p[row, place]:g} at place {place}."
        )
    return p


def _place_probabilities(
    given: Any, X: Any, log: logs.Log, rule: str, n_draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of shown arms at their own and at any place, as shares of slates drawn."""
    m = log.action.shape[1]
    times = n_draws if rule == "select" and policy_of(given) is not None else 1
    given = copy.deepcopy(given)
    draws = [shown_slates(given, X, log, rule) for _ in range(times)]
    for slates in draws:
        if slates.shape[1] != m:
            raise ValueError(
                f"the policy shows {slates.shape[1]} arms, the log {m}: one reward per slate "
                "evaluates slates of its own size only."
            )
    matches = [place_matches(slates, log) for slates in draws]
    at_place = np.mean([same_place for same_place, _ in matches], axis=0)
    return at_place, np.mean([anywhere for _, anywhere in matches], axis=0)


def _estimate(
    name: str,
    earned: np.ndarray,
    weight: np.ndarray,
    rewards: np.ndarray,
    p: Any,
    log: logs.Log,
    group: np.ndarray | None = None,
) -> OffPolicyEstimate:
    """Return the mean of what events earned, after a warning if they are few."""
    zeros, ones = np.zeros(len(earned)), np.ones(len(earned))
    logged = rewards.reshape(len(log), -1).sum(axis=1)
    sums = EventSums.of((zeros, earned, ones), WeightedEvents(logged, weight), group)
    if sums.shortcoming:
        warn(f"{name}: {sums.shortcoming}", ReplayCoverageWarning)
    evidence = RewardEvidence.of(logged, weight, None, 1.0)
    estimate = make_estimate(name, (sums,), METHODS["ips"], evidence)
    parts = EventParts(
        earned - earned.mean(),
        weight / len(log),
        evidence.clipping,
        evidence.variance(of_errors=False),
        EventParts.of_log(log, rewards, p, group),
    )
    # which serves no confidence sequence of slates
    return replace(estimate, parts=parts, evidence=None)
