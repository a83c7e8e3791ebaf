"""Replay: evaluate a policy, which may learn, on a log of another policy's decisions."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state, indexable

from skbandit import logs
from skbandit.evaluation._guaranteed import Range, check_range, read_range
from skbandit.evaluation._off_policy._target_policy import as_table, number_of_choice, policy_of
from skbandit.evaluation._policy_protocol import checked_choices, known_arms, name_columns
from skbandit.evaluation._replay import _result
from skbandit.evaluation._replay._result import ReplayOptions
from skbandit.exceptions import ReplayCoverageWarning
from skbandit.utils._fitting import in_parallel, iter_with_progress, report_progress, seed_for
from skbandit.utils._folds import behind_transformers
from skbandit.utils._sklearn_compat import count_rows, rows_of
from skbandit.utils._trials import of_several_rows, read_groups
from skbandit.utils._validation import as_contexts, first_few, refuse_lazy, warn, warn_if_reordered

# Events per call of a policy whose choices cannot change during the replay.
_BATCH_SIZE = 8192


@dataclass(frozen=True)
class Streams:
    """Independent random streams of one run, so that a log can be replayed in blocks."""

    events: np.random.Generator  # order, subsample and which matches are kept
    buckets: np.random.Generator
    seed: int  # for a policy without a `random_state` of its own

    @classmethod
    def of(cls, seed: np.random.SeedSequence) -> Streams:
        """Return all streams, spawned from one seed."""
        events, buckets, policy = (
            np.random.default_rng(sequence) for sequence in (seed, *seed.spawn(2))
        )
        return cls(events, buckets, int(policy.integers(2**31)))


def draw_request(
    X: Any,
    log: logs.Log,
    c: float,
    streams: Streams,
    options: ReplayOptions,
    most: int | None,
) -> logs.ReplayRequest:
    """Draw the order, subsample and buckets of the events, and which matches are kept.

    A match logged with probability p is kept with probability min(1, c/p): if c is at most every
    p, matches are kept with probability c whatever their context and arm.

    Without `shuffle` and `subsample`, the requests of consecutive blocks are that of the whole log.
    At most `most` events are kept for learning.
    """
    rng, probability, n_events = streams.events, log.probability, len(log)
    rows = np.arange(n_events)
    if options.subsample is not None:
        chosen = np.zeros(n_events, dtype=bool)
        size = max(1, round(options.subsample * n_events))
        chosen[rng.choice(n_events, size, replace=False, shuffle=False)] = True
        rows = np.flatnonzero(chosen)
    if options.shuffle:
        rows = rng.permutation(rows)
    unchanged = options.subsample is None and not options.shuffle
    keep = rng.random(len(rows)) < c / (probability if unchanged else probability[rows])
    deployment = np.zeros(len(rows), dtype=bool)
    if options.deployment_share:
        deployment = streams.buckets.random(len(rows)) < options.deployment_share
    if options.shuffle and log.timestamp is not None:  # time runs forward in any order of events
        timestamp = log.timestamp.copy()
        timestamp[rows] = log.timestamp[np.sort(rows)]
        log = replace(log, timestamp=timestamp)
    most = None if most is None else min(most, len(rows))  # compiled code has fixed-width integers
    return logs.ReplayRequest(
        X, log, rows, keep, deployment, rule=options.rule, learn=options.learn, max_accepted=most
    )


@dataclass(frozen=True)
class FixedActions:
    """A rule that has chosen an arm for each event of a log, as a policy that does not learn.

    Parameters
    ----------
    labels : Series or ndarray of shape (n_events,)
        Labels of the chosen arms.
    """

    labels: Any

    @classmethod
    def of(cls, given: Any) -> FixedActions:
        """Read one label per event."""
        if isinstance(given, list | tuple) and len(given) and isinstance(given[0], tuple):
            given = pd.Series(logs.label_array(given))
        labels = as_table(given)
        if labels.ndim == 2:
            raise TypeError(
                f"replay takes a policy, or one label of the chosen arm per event, got a table of "
                f"shape {labels.shape}: pass probabilities to off_policy_value."
            )
        return cls(labels)

    def on(self, log: logs.Log) -> FixedActions:
        """Return the choices with the labels of the log's arms."""
        arms = log.arms.tolist()
        codes = {label: k for k, label in enumerate(arms)}
        number = number_of_choice(self.labels, len(log), codes)
        unknown = np.flatnonzero(number >= len(arms))
        if len(unknown):
            raise ValueError(
                f"the label {list(codes)[number[unknown[0]]]!r}, chosen on row {unknown[0]}, is no "
                f"arm of the log, {first_few(arms)}, so its reward is unknown: write labels as the "
                "log does, or leave out such events from X, y and the labels."
            )
        return FixedActions(log.arms[number])

    def select(self, X: np.ndarray) -> np.ndarray:
        """Return the labels on the events of these numbers."""
        return self.labels[X]

    predict = select

    def _replay_log(self, request: logs.ReplayRequest) -> tuple[np.ndarray, int]:
        return replay_pass(self, replace(request, X=np.arange(len(request.log))))


def replay_pass(
    policy: Any, request: logs.ReplayRequest, report: Callable[[float], None] = lambda share: None
) -> tuple[np.ndarray, int]:
    """Show a policy one event after the other, and keep those whose action it chooses.

    This is the reference for `_replay_log` of a policy, which must return the same.

    Parameters
    ----------
    policy : object
        Modified as it learns.
    request : ReplayRequest
        The log, the events to replay, and the choice to play. With `max_accepted`, the pass is
        Algorithm 1, else Algorithm 2.
    report : callable
        Called every few seconds with the share of the events replayed.

    Returns
    -------
    accepted : ndarray of shape (n_accepted,)
        Positions in ``request.rows`` of the matches in either bucket, ascending.
    n_seen : int
        Number of rows consumed.
    """
    replayed = _ReplayedPolicy(policy, request)
    accepted, n_valid = [np.empty(0, dtype=np.int64)], 0  # n_valid is T in the paper
    n_seen, horizon = len(request.rows), request.max_accepted
    for events in replayed.batches(report):  # line 5: get the next event
        kept = events[replayed.chooses_logged_action(events)]  # line 6
        valid = kept[~request.deployment[kept]]
        if horizon is not None and n_valid + len(valid) >= horizon:  # Algorithm 1 ends
            last = valid[horizon - n_valid - 1]
            accepted.append(kept[kept <= last])
            n_seen = int(last) + 1
            break
        accepted.append(kept)
        replayed.learn(valid)  # line 7
        n_valid += len(valid)  # line 9
    if replayed.n_unavailable:
        warn(
            f"{type(policy).__name__} chose arms that were not available on "
            f"{replayed.n_unavailable:,} events, first {replayed.first_unavailable}. Such events "
            "can never be kept, so the estimate is for the other contexts only: let the policy "
            "choose among `available`.",
            UserWarning,
        )
    return np.concatenate(accepted), n_seen


class _ReplayedPolicy:
    """A policy before the events of a request; events are positions in ``request.rows``."""

    def __init__(self, policy: Any, request: logs.ReplayRequest) -> None:
        self.policy = policy
        self.request = request
        log, X = request.log, request.X
        # rows_of takes any container, but is slow
        self.contexts = X.__getitem__ if isinstance(X, np.ndarray) else partial(rows_of, X)
        self.sets, self.set_of_event = log.available_sets()
        self.choosers = {
            name: checked_choices(policy, name)
            for name in {request.rule, "predict"}
            if hasattr(policy, name)
        }
        learns = request.learn and hasattr(policy, "partial_fit")
        self.feedback: pd.DataFrame | None = None  # the log as the `y` of `partial_fit`
        if learns:
            self.feedback = pd.DataFrame({"action": log.arms[log.action], "reward": log.reward})
            if log.timestamp is not None:
                self.feedback["timestamp"] = log.timestamp
        self.times = log.timestamp if hasattr(policy, "advance") else None
        self.n_unavailable = 0
        self.first_unavailable = ""

    def batches(self, report: Callable[[float], None]) -> Iterator[np.ndarray]:
        """Return events to show at once: single ones if the policy changes from event to event."""
        changes = self.feedback is not None or self.times is not None
        size = 1 if changes else _BATCH_SIZE
        shown = np.flatnonzero(self.request.keep)  # the others could not be kept anyway
        for start in iter_with_progress(range(0, len(shown), size), report):
            yield shown[start : start + size]

    def chooses_logged_action(self, events: np.ndarray) -> np.ndarray:
        """Mask of the events on which the policy's choice is the logged action."""
        rows = self.request.rows[events]
        if self.times is not None:
            self.policy.advance(self.times[rows[0]])
        matches, log = np.empty(len(events), dtype=bool), self.request.log
        deployment = self.request.deployment[events]
        for rule, bucket in (("predict", deployment), (self.request.rule, ~deployment)):
            if not bucket.any():
                continue
            available = [self.sets[k] for k in self.set_of_event[rows[bucket]].tolist()]
            choices = self.choosers[rule](self.contexts(rows[bucket]), available)
            for row, choice, arms in zip(rows[bucket], choices, available, strict=True):
                if choice not in arms:
                    self.n_unavailable += 1
                    self.first_unavailable = self.first_unavailable or f"{choice!r} on row {row}"
            logged = log.arms[log.action[rows[bucket]]].tolist()
            matches[bucket] = [a == b for a, b in zip(choices, logged, strict=True)]
        return matches

    def learn(self, events: np.ndarray) -> None:
        """Pass events to `partial_fit`, if the policy learns."""
        if self.feedback is not None and len(events):
            rows = self.request.rows[events]
            self.policy.partial_fit(self.contexts(rows), self.feedback.iloc[rows])


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
    groups: Any = None,
    columns: Mapping[str, Any] | None = None,
    arm_features: Any = None,
    acceptance: float | None = None,
    max_accepted: int | None = None,
    n_repeats: int = 1,
    shuffle: bool = False,
    subsample: float | None = None,
    reward_range: tuple[float, float] | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
) -> _result.ReplayResult:
    """Estimate the mean reward of a policy, which may learn, by replaying a log.

    The log is replayed in order. An event is kept if the policy chooses the logged action: its
    reward counts, and the policy learns from it. All other events are skipped and leave the
    policy unchanged (Li et al., 2012, Algorithms 1 and 2). The kept events are distributed as if
    the policy itself had been deployed, so the mean of their rewards is an unbiased estimate,
    whether or not the policy learns.

    Parameters
    ----------
    policy : object with select or predict, Pipeline, fitted search, or array-like of labels
        The policy to evaluate, starting from its current state: an unfitted policy starts cold
        (the transformers of a Pipeline must be fitted). A copy is replayed; `policy` itself is
        never changed. See Notes for the methods of a policy. Or an array or Series of shape
        (n_events,), the arm that a rule such as today's would choose on each event: pass the
        choices of the rule, not the logged actions.
    X : {array-like, sparse matrix, DataFrame} of shape (n_events, n_features)
        Contexts, in order of time.
    y : DataFrame or structured array with columns action and reward, or array of actions
        The log. Columns propensity, available and timestamp are read if present.
    learn : bool, default=True
        Whether a policy with `partial_fit` learns from the kept events.
    rule : {"select", "predict"}, default="select"
        The choice that is played: the exploring or the greedy one.
    deployment_share : float in [0, 1), default=0.0
        Share of the events, drawn at random, on which the greedy choice is played and nothing is
        learned (the deployment bucket, Li et al., section 5.1). `ReplayResult.deployment` has its
        figures: the reward of deploying the policy without further learning.
    available : array-like, default=None
        Arms available to each event: one tuple of labels per row, one list of labels for all
        rows, or a boolean table with one column per arm: an array's are those of the policy's
        `arms_`, or else the arms of the log in the order of their labels. None makes all arms of
        the log available.
    reward, propensity, timestamp : array-like of shape (n_events,), default=None
        Values that are not columns of `y`. `propensity` is the probability with which the action
        was chosen; without it, actions count as chosen uniformly among the available arms.
        `reward` may also be the name of a column of `y`.
    groups : array-like of shape (n_events,), default=None
        Events of one value, such as a person or a day, are dependent: the standard error and
        intervals count groups. A Series is put in the order of X by its index. None makes each
        event independent.
    columns : dict, default=None
        Names of the columns of `y`, if different, as in
        ``columns={"action": "arm_id", "propensity": "pscore"}``; None uses the policy's `columns`.
    arm_features : DataFrame of shape (n_arms, n_arm_features), default=None
        Features of the log's arms, for a `SharedGLMPolicy` that does not know them yet.
    acceptance : float, default=None
        c: an event whose action the policy chooses, logged with probability p, is kept with
        probability min(1, c/p). None uses the smallest p of the log, so that every match has the
        same probability to count. A larger c keeps more events, but those with p < c bias the
        estimate; a warning reports their share.
    max_accepted : int, default=None
        Stop when this many events have been kept in the learning bucket (T of Algorithm 1). None
        replays the whole log (Algorithm 2).
    n_repeats : int, default=1
        Number of runs, each with its own copy of the policy and its own random draws. They run
        in parallel within ``joblib.parallel_config(n_jobs=...)``, with the same results.
    shuffle : bool, default=False
        Whether each run replays the events in a random order of its own. This assumes a
        stationary environment. Timestamps stay in place, so that time still runs forward.
    subsample : float in (0, 1], default=None
        Each run replays a random share of the log, in the log's order.
    reward_range : (float, float), default=None
        Smallest and largest possible reward, to which intervals are clipped. None takes [0, 1],
        or those of the log beyond.
    random_state : int, RandomState instance or None, default=None
        Seed of order, subsamples, buckets and of which matches are kept. With an integer, they are
        the same for every policy. The first run derives the policy's random numbers from the
        policy's own `random_state` unless that is None; other runs derive them from this one.
    verbose : int, default=0
        If positive, report each finished run, and the progress of a run every ten seconds unless
        it is compiled. In parallel, the workers report.

    Returns
    -------
    ReplayResult
        With `mean_reward`, `lift`, `n_accepted`, `standard_error`, `interval` and `history`.

    Warns
    -----
    ReplayCoverageWarning
        If fewer than 10 events per run are kept, or fewer than `max_accepted`; or if their number
        is far from its expectation, c n_events, because the propensities are wrong, the log was not
        uniform, or the policy chooses unavailable arms.
    UserWarning
        If a policy that learns has learned events later than the first of the log; if there are no
        propensities and the logged actions are not uniform; if `acceptance` is
        larger than some propensity; if the policy chooses unavailable arms; if all runs are
        identical; if there are fewer than 20 groups. Of one group there is no interval.

    See Also
    --------
    replay_blocks : The same for a log larger than memory.
    ReplayScorer : Replay as a scorer, for model selection.
    off_policy_value : Uses every event, for policies that do not learn.

    Notes
    -----
    *The estimate* is the mean reward over the policy's first T = `n_accepted` events; for learning
    policies it depends on T. A log of K equally likely arms gives a horizon T of about
    n_events / K. Compare policies at equal T: on the same log it is nearly equal, and
    `ReplayResult.at` truncates results to a common T.

    *Assumptions*: contexts and rewards do not depend on earlier choices; propensities are known,
    and positive for every arm that the policy may choose.

    *A policy* is any object with ``select(X, *, available=None)``, its exploring choice, or
    ``predict(X, *, available=None)``, its greedy choice; both return an array of arm labels.
    `available` holds one tuple of labels per row; methods without this parameter are called
    without it. A policy that learns has ``partial_fit(X, y)``, where `y` is a DataFrame with
    columns action and reward (and timestamp if the log has one). If it has ``advance(timestamp)``
    and the log has timestamps, this is called before each choice. Policies that cannot change
    choose in batches, all others event by event; `GLMUCBPolicy` replays the log in compiled code,
    with the same decisions.

    *Random numbers of the copy* differ from those of `policy`, so that you can replay a policy on a
    log that it wrote itself. Random decisions of `replay` and of a loop over `select` and
    `partial_fit` therefore differ, but have the same distribution.

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
    <ReplayResult: 5 runs, mean reward 0.194... ± 0.00..., 1.9... x the log's, at horizon 5,025;
    kept 25,126 of 125,000 events, c = 0.2>
    >>> low, high = result.interval(0.95)
    >>> low < result.mean_reward < high
    True

    Stopped after 500 events, it would have earned less:

    >>> result.at(500).mean_reward < result.mean_reward
    True

    Compared with a rule that always chooses arm 0:

    >>> import numpy as np
    >>> today = np.zeros(50_000, dtype=int)
    >>> fixed = replay(today, log.X, log.y, subsample=0.5, n_repeats=5, random_state=0)
    >>> print("{:.3f} to {:.3f}".format(*(result - fixed).interval()))
    0.0... to 0.0...
    """
    options = ReplayOptions(
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
    refuse_lazy(
        {"policy": policy, "X": X, "y": y, "reward": reward, "available": available},
        ", or use replay_blocks",
    )
    if not isinstance(policy, type) and policy_of(policy) is None:
        warn_if_reordered({"X": X, "policy": policy})
        policy = FixedActions.of(policy)
    tables = X, y
    policy, X = behind_transformers(policy, X)
    if arm_features is not None:
        if not hasattr(policy, "describe_arms"):
            raise TypeError(
                f"arm_features was given, but {type(policy).__name__} takes none: it has no "
                "describe_arms, as SharedGLMPolicy does."
            )
        policy = copy.deepcopy(policy).describe_arms(arm_features)
    options.check_policy(policy)
    bounds = read_range(reward_range)
    named = logs.column_names(y) is not None
    columns, reward = name_columns(policy, columns, reward, named=named)
    given = {"reward": reward, "propensity": propensity, "timestamp": timestamp}
    X, log = read_replayed(policy, X, y, available=available, columns=columns, **given)
    if isinstance(policy, FixedActions):
        policy = policy.on(log)
    if bounds is not None:
        check_range(log.reward, bounds)
    _result.check_past(policy, X, log, options.learns(policy))
    group = read_groups(groups, len(log), *tables)
    result = replay_runs(policy, X, log, options, random_state, bounds, group)
    if _result.keeps_too_few(result):
        warn(f"replay: {_result.too_few(result)}.", ReplayCoverageWarning)
    return result


def read_replayed(
    policy: Any, X: Any, y: Any, *, available: Any = None, **options: Any
) -> tuple[Any, logs.Log]:
    """Return indexable contexts, and a log of as many events with its arms sorted."""
    warn_if_reordered({"X": X, "y": y, "reward": options.get("reward")})
    (X,) = indexable(as_contexts(X))
    available = logs.align_rows(available, X)
    log = logs.read_log(
        y, count_rows(X), available=available, table_arms=known_arms(policy), **options
    )
    if log.timestamp is not None:
        logs.check_in_order(log.timestamp, "replay")
    return X, log.with_sorted_arms()


def replay_runs(
    policy: Any,
    X: Any,
    log: logs.Log,
    options: ReplayOptions,
    random_state: Any,
    bounds: Range | None = None,
    group: np.ndarray | None = None,
) -> _result.ReplayResult:
    """Replay a log in `n_repeats` runs, in parallel, and warn of a biased estimate."""
    if log.propensity is None:
        logs.check_uniform(log, X)
    c = options.acceptance
    c = float(log.probability.min()) if c is None else float(c)
    seeds = seeds_of_runs(random_state, options.n_repeats)
    trajectories = in_parallel(
        partial(_run, policy, X, log, c, options, number, seed) for number, seed in enumerate(seeds)
    )
    totals, learns = _result.LogTotals.of(log, c), options.learns(policy)
    groups = of_several_rows(group)
    metadata = _result.ReplayMetadata(log.arms, totals, c, learns, bounds, options, groups)
    result = _result.ReplayResult(tuple(trajectories), metadata)
    _result.check_kept(result, options.max_accepted)
    return result


def seeds_of_runs(random_state: Any, n_repeats: int) -> list[np.random.SeedSequence]:
    """Return one seed per run."""
    entropy = check_random_state(random_state).randint(2**31, size=4).tolist()
    return np.random.SeedSequence(entropy).spawn(n_repeats)


def _run(
    policy: Any, X: Any, log: logs.Log, c: float, options: ReplayOptions, number: int,
    seed: np.random.SeedSequence,
) -> _result.Trajectory:  # fmt: skip
    """Replay the log once, with a copy of the policy and a schedule of its own."""
    began = time.perf_counter()
    streams = Streams.of(seed)
    request = draw_request(X, log, c, streams, options, options.max_accepted)
    policy = prepared_copy(policy, streams, keep_seed=number == 0)

    def report(message: str) -> None:
        if options.verbose:
            run = f"run {number + 1} of {options.n_repeats}"
            report_progress(f"[replay] {run}: {message}, {time.perf_counter() - began:.1f} s")

    trajectory = replay_request(policy, request, lambda share: report(f"{share:.0%} of the log"))
    report(f"kept {len(trajectory.event):,} of {trajectory.n_events:,} events")
    return trajectory


def prepared_copy(policy: Any, streams: Streams, keep_seed: bool) -> Any:
    """Return a copy of a policy to replay, with a random stream of its own.

    With `keep_seed` it is derived from the policy's own `random_state`, if set. It is never that of
    the policy itself, which may have chosen the logged actions.
    """
    policy = copy.deepcopy(policy)
    if isinstance(getattr(policy, "columns", None), Mapping):
        policy.columns = None
    random_state = getattr(policy, "random_state", None)
    if keep_seed and isinstance(random_state, Integral | np.random.RandomState):
        policy.random_state = seed_for("replayed policy", random_state) % 2**31
    elif hasattr(policy, "random_state") and not (keep_seed and random_state is not None):
        policy.random_state = streams.seed
    return policy


def replay_request(
    policy: Any, request: logs.ReplayRequest,
    report: Callable[[float], None] = lambda share: None,
) -> _result.Trajectory:  # fmt: skip
    """Replay a log, or the next block of one; `policy` is modified as it learns."""
    own_replay = getattr(policy, "_replay_log", lambda request: None)
    with logs.times_already_read():
        accepted, n_seen = own_replay(request) or replay_pass(policy, request, report)
    event, log = request.rows[accepted], request.log
    return _result.Trajectory(
        event=event,
        action=log.action[event],
        reward=log.reward[event],
        deployment=request.deployment[accepted],
        n_seen=accepted + 1,
        n_events=n_seen,
    )
