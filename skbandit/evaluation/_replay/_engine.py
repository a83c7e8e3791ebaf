"""Replay: a policy that may learn, judged on a log of another one's decisions."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state, indexable
from sklearn.utils.parallel import Parallel, delayed

from skbandit.evaluation._policy_protocol import behind_transformers, check_rule, known_arms
from skbandit.evaluation._replay._pass import Chance, Draws, draw, walk_log
from skbandit.evaluation._replay._result import FEW, ReplayResult, Terms, Walk, too_few
from skbandit.evaluation._replay._warnings import check_clipped, check_kept, check_uniform
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.logs._log import Log, read_log
from skbandit.logs._replay_request import ReplayRequest
from skbandit.utils._sklearn_compat import count_rows


@dataclass(frozen=True)
class Plan:
    """How a log is to be walked: the options of `replay`, checked."""

    learn: bool = True
    rule: str = "select"
    deployment_share: float = 0.0
    acceptance: float | None = None
    max_accepted: int | None = None
    n_repeats: int = 1
    shuffle: bool = False
    subsample: float | None = None
    verbose: int = 0

    def __post_init__(self) -> None:
        check_rule(self.rule)
        if not (isinstance(self.deployment_share, Real) and 0 <= self.deployment_share < 1):
            raise ValueError(
                f"deployment_share must be in [0, 1), got {self.deployment_share!r}: without a "
                "learning bucket, use learn=False and rule='predict'."
            )
        for name in ("acceptance", "subsample"):
            share = getattr(self, name)
            if share is not None and not (isinstance(share, Real) and 0 < share <= 1):
                raise ValueError(f"{name} must be None or in (0, 1], got {share!r}.")
        for name in ("n_repeats", "max_accepted"):
            number = getattr(self, name)
            if name == "max_accepted" and number is None:
                continue
            if not (isinstance(number, Integral) and number >= 1):
                raise ValueError(f"{name} must be a positive integer, got {number!r}.")


def replay(
    policy: Any,
    X: Any,
    y: Any,
    *,
    learn: bool = True,
    rule: Literal["select", "predict"] = "select",
    deployment_share: float = 0.0,
    available: Any = None,
    reward: Any = None,
    propensity: Any = None,
    timestamp: Any = None,
    acceptance: float | None = None,
    max_accepted: int | None = None,
    n_repeats: int = 1,
    shuffle: bool = False,
    subsample: float | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
) -> ReplayResult:
    """Estimate what a policy would have earned, and learned from, by replaying a log.

    The events are walked in order. Where the policy's own choice is the one that was logged,
    the event is kept: its reward counts, and the policy learns from it. All others are skipped,
    and the policy is as if they had never been (Li et al., 2012, Algorithms 1 and 2). The kept
    events are then distributed as if the policy had been at work itself, so that the mean of
    their rewards is an unbiased estimate for policies that learn as for those that do not.

    Parameters
    ----------
    policy : object with select or predict, Pipeline that ends in one, or fitted search
        What is judged, from the state in which it is: unfitted, it starts cold (the
        transformers of a Pipeline have to be fitted). Works on a copy; `policy` itself is never
        changed. See Notes for the methods of a policy.
    X : {array-like, sparse matrix, DataFrame} of shape (n_events, n_features)
        Contexts, in order of time.
    y : DataFrame or structured array with columns action and reward, or array of actions
        The log. Columns propensity, available and timestamp are read where they are there.
    learn : bool, default=True
        Whether a policy with `partial_fit` learns from the kept events.
    rule : {"select", "predict"}, default="select"
        The choice that is played: the exploring or the greedy one.
    deployment_share : float in [0, 1), default=0.0
        Share of the events, drawn at random, on which the greedy choice is played and nothing
        is learned (the deployment bucket, Li et al., section 5.1): what users would get from
        what the learning bucket has taught so far. The result's `deployment` has its figures.
    available : array-like, default=None
        Arms that each event could choose from: a tuple of labels a row, or a boolean array with
        one column an arm. None is all arms of the log, in every event.
    reward, propensity, timestamp : array-like of shape (n_events,), default=None
        What is no column of `y`. `propensity` is the probability with which the action was
        chosen; without it, actions count as chosen uniformly among those available.
    acceptance : float, default=None
        c: an event on which the policy agrees, logged with probability p, is kept with
        probability min(1, c/p). None is the smallest p of the log: then every event is kept
        with probability c, whatever its context and the policy's choice. A larger c keeps more,
        and biases the estimate by the events with p < c; a warning says how many these are.
    max_accepted : int, default=None
        Stop when so many events have been kept in the learning bucket, T of Algorithm 1. None
        walks the whole log, Algorithm 2.
    n_repeats : int, default=1
        Number of runs, each with its own copy of the policy and its own draws. They run in
        parallel within ``joblib.parallel_config(n_jobs=...)``, with the same results.
    shuffle : bool, default=False
        Whether each run walks the events in an order of its own. This takes the world to be
        stationary; timestamps keep their place, so that time still runs forward.
    subsample : float in (0, 1], default=None
        Each run walks a random part of the log, of this share, in the log's order.
    random_state : int, RandomState instance or None, default=None
        Draws order, parts, buckets and what is kept, before the walk begins: with an integer,
        they are the same for every policy. A `random_state` of the policy is used in the first
        run as it is, unless it is None, and drawn from this one in all others.
    verbose : int, default=0
        Whether to print a line after each run, and every ten seconds of a long one, unless it
        is compiled. In parallel, it is the workers that print.

    Returns
    -------
    ReplayResult
        With `mean_reward`, `lift`, `n_accepted`, `standard_error`, `interval` and `history`.

    Warns
    -----
    ReplayCoverageWarning
        If fewer than 10 events a run are kept, or fewer than `max_accepted`; or if their number
        is far from the c n_events that it must be about for any policy: then propensities are
        wrong, the log was not uniform, or the policy chooses what was not available.
    UserWarning
        If there are no propensities and the log's actions are not uniform; if `acceptance` is
        larger than some propensity; if the policy chooses what was not available; if all runs
        are one and the same.

    See Also
    --------
    replay_blocks : The same for a log larger than memory.
    ReplayScorer : The same as a scorer, to choose among policies by a search.
    snips : Uses every event, for policies that do not learn.

    Notes
    -----
    *What is estimated* is the mean reward over the policy's first T = `n_accepted` events, as
    for learning policies it depends on T. A finite log of K equally likely arms gives a horizon
    T of about n_events / K. Compare policies at equal T: on the same log they nearly have it, and
    `ReplayResult.at` cuts results to it.

    *What it rests on*: contexts and rewards that do not depend on earlier choices; propensities
    that are known and positive for whatever the policy may choose.

    *A policy* is any object with ``select(X, *, available=None)``, its exploring choice, or
    ``predict(X, *, available=None)``, its greedy one: both return an array of arm labels. It is
    told the labels available to each row, as tuples, unless its method has no such parameter. If
    it learns, by ``partial_fit(X, y)``, `y` is a DataFrame of columns action and reward (and
    timestamp, where the log has it). If it has ``advance(timestamp)`` and the log has times,
    this is called before each choice. A policy that cannot change is asked in batches, any other
    event by event; `GLMUCBPolicy` walks the log in compiled code, and decides the same.

    References
    ----------
    Li, Chu, Langford, Moon and Wang (2012), An unbiased offline evaluation of contextual bandit
    algorithms with generalized linear models.

    Examples
    --------
    >>> from skbandit import GLMUCBPolicy
    >>> from skbandit.datasets import make_bandit_log
    >>> from skbandit.evaluation import replay
    >>> log = make_bandit_log(50_000, n_arms=5, base_rate=0.1, random_state=0)
    >>> policy = GLMUCBPolicy(alpha=0.3, random_state=0)
    >>> result = replay(policy, log.X, log.y, subsample=0.5, n_repeats=5, random_state=0)
    >>> result
    <ReplayResult: 5 runs, mean reward 0.200... ± 0.004..., 2.0... x the log's, at horizon 5,015;
    kept 25,075 of 125,000 events, c = 0.2>
    >>> low, high = result.interval(0.95)
    >>> low < result.mean_reward < high
    True

    Had it stopped after 500 events, it would have earned less:

    >>> result.at(500).mean_reward < result.mean_reward
    True
    """
    plan = Plan(
        learn=learn,
        rule=rule,
        deployment_share=deployment_share,
        acceptance=acceptance,
        max_accepted=max_accepted,
        n_repeats=n_repeats,
        shuffle=shuffle,
        subsample=subsample,
        verbose=verbose,
    )
    policy, X = behind_transformers(policy, X)
    check_plays(policy, plan)
    X, log = read_replayed(
        policy, X, y, available=available, reward=reward, propensity=propensity, timestamp=timestamp
    )
    result = replay_log(policy, X, log, plan, random_state)
    if result.n_accepted < FEW * n_repeats:
        warnings.warn(f"replay: {too_few(result)}.", ReplayCoverageWarning, stacklevel=2)
    return result


def read_replayed(policy: Any, X: Any, y: Any, **parts: Any) -> tuple[Any, Log]:
    """Contexts whose rows can be taken, and the log of as many events, its arms sorted."""
    (X,) = indexable(X)
    log = read_log(y, count_rows(X), columns=known_arms(policy), **parts)
    return X, _with_sorted_arms(log)


def _with_sorted_arms(log: Log) -> Log:
    """The log with arms in an order that tells a policy nothing of when they were logged."""
    labels = log.arms.tolist()
    try:
        order = sorted(range(len(labels)), key=labels.__getitem__)
    except TypeError:  # of several kinds
        order = sorted(
            range(len(labels)), key=lambda k: (type(labels[k]).__name__, repr(labels[k]))
        )
    number = np.empty(len(order), dtype=log.action.dtype)
    number[order] = np.arange(len(order))
    pools = log.pools
    if pools is not None:
        arms = number[pools.arms]
        pools = replace(pools, arms=arms[np.lexsort((arms, pools.set_of_arm))])
    return replace(log, arms=log.arms[order], action=number[log.action], pools=pools)


def replay_log(policy: Any, X: Any, log: Log, plan: Plan, random_state: Any) -> ReplayResult:
    """Walk a log as often as planned, and gather what was kept."""
    if log.propensity is None:
        check_uniform(log)
    probability = log.probability
    c = float(probability.min()) if plan.acceptance is None else float(plan.acceptance)
    clipped = float(np.mean(probability < c))
    check_clipped(c, clipped, float(probability.min()))
    seeds = seeds_of_runs(random_state, plan.n_repeats)
    walks = Parallel()(
        delayed(_run)(policy, X, log, probability, c, plan, number, seed)
        for number, seed in enumerate(seeds)
    )
    terms = Terms(
        arms=log.arms,
        n_events=len(log),
        logged_mean=float(log.reward.mean()),
        logged_variance=float(log.reward.var()),
        c=c,
        clipped=clipped,
        learns=plan.learn and hasattr(policy, "partial_fit"),
        deployment_share=plan.deployment_share,
        shuffle=plan.shuffle,
        subsample=plan.subsample,
    )
    result = ReplayResult(tuple(walks), terms)
    check_kept(result, plan.max_accepted)
    return result


def check_plays(policy: Any, plan: Plan) -> None:
    """Require a policy that makes the choices of a plan."""
    if isinstance(policy, type):
        raise TypeError(f"{policy.__name__} is a class: pass {policy.__name__}(...).")
    if not hasattr(policy, plan.rule):
        other = "predict" if plan.rule == "select" else "select"
        raise TypeError(f"{type(policy).__name__} has no {plan.rule}: choose rule={other!r}.")
    if plan.deployment_share and not hasattr(policy, "predict"):
        raise TypeError(f"{type(policy).__name__} has no predict for the deployment bucket.")


def seeds_of_runs(random_state: Any, n_repeats: int) -> list[np.random.SeedSequence]:
    """A seed for each run."""
    entropy = check_random_state(random_state).randint(2**31, size=4).tolist()
    return np.random.SeedSequence(entropy).spawn(n_repeats)


def _run(
    policy: Any,
    X: Any,
    log: Log,
    probability: np.ndarray,
    c: float,
    plan: Plan,
    number: int,
    seed: np.random.SeedSequence,
) -> Walk:
    """One run: a copy of the policy, draws of its own, and what they kept."""
    began = time.perf_counter()
    chance = Chance.of(seed)
    draws = draw(
        probability,
        c,
        chance,
        deployment_share=plan.deployment_share,
        shuffle=plan.shuffle,
        subsample=plan.subsample,
    )
    if plan.shuffle and log.timestamp is not None:
        timestamp = log.timestamp.copy()
        timestamp[draws.rows] = log.timestamp[np.sort(draws.rows)]
        log = replace(log, timestamp=timestamp)
    policy = started(policy, chance, keep_seed=number == 0)

    def tell(what: str) -> None:
        if plan.verbose:
            run = f"run {number + 1} of {plan.n_repeats}"
            print(f"[replay] {run}: {what}, {time.perf_counter() - began:.1f} s", flush=True)

    def tell_share(share: float) -> None:
        tell(f"{share:.0%} of the log")

    walk = walk_part(policy, X, log, draws, plan, plan.max_accepted, tell_share)
    tell(f"kept {len(walk.event):,} of {walk.n_events:,} events")
    return walk


def started(policy: Any, chance: Chance, keep_seed: bool) -> Any:
    """A copy of a policy to be replayed, with a seed."""
    policy = copy.deepcopy(policy)
    if hasattr(policy, "random_state") and not (keep_seed and policy.random_state is not None):
        policy.random_state = chance.seed
    return policy


def walk_part(
    policy: Any,
    X: Any,
    log: Log,
    draws: Draws,
    plan: Plan,
    max_accepted: int | None,
    tell: Callable[[float], None] = lambda share: None,
) -> Walk:
    """What a policy keeps of a log, or of a part of it; the policy changes as it learns."""
    if max_accepted is not None:
        max_accepted = min(max_accepted, len(draws.rows))  # numbers of any size mean all
    arguments = (X, log, draws.rows, draws.keep, draws.deployment)
    options: dict[str, Any]
    options = {"rule": plan.rule, "learn": plan.learn, "max_accepted": max_accepted}
    own_replay = getattr(policy, "_replay_log", lambda request: None)
    walked = own_replay(ReplayRequest(*arguments, **options))
    accepted, n_seen = walked or walk_log(policy, *arguments, **options, tell=tell)
    event = draws.rows[accepted]
    return Walk(
        event,
        log.action[event],
        log.reward[event],
        draws.deployment[accepted],
        accepted + 1,
        n_seen,
    )
