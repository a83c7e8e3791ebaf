"""Choices of policies that hold a posterior of linear predictors, and replays of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbandit.bandit._arm_keys import lookalike_label
from skbandit.bandit._events import EncodedLog, encode_log, join, still_waiting, windows_of
from skbandit.bandit._sequential import SequentialPolicy
from skbandit.bandit._state import (
    N_CHOICES,
    N_EVENTS,
    ArmSets,
    ChoiceRule,
    read_alphas,
    read_interval,
    read_rule,
    unit_of_rewards,
)
from skbandit.logs import (
    Codes,
    ReplayRequest,
    align_rows,
    ascending,
    code_labels,
    label_array,
    mark_columns,
    one_known_tuple,
    read_times,
)
from skbandit.utils._fitting import atomic_fit

if TYPE_CHECKING:
    from typing import Self


MOST_OFFERED = 4
"""Arms that are not known but remembered, per arm of the latest choice that is not known."""


class Offered(NamedTuple):
    """Arms that a policy knows, and others that its choices were offered: they come again."""

    arms: Codes
    codes: Codes  # of these, and of the others in the order of their labels
    labels: np.ndarray
    kind: type  # of the labels of the others: equal ones of other types are returned as given
    state: tuple[Any, ...] = ()  # posterior, its events, and prior
    larger: Any = None  # posterior about all, made from this state


class PosteriorPolicy(SequentialPolicy):
    """Chooses by posteriors of linear predictors, in compiled passes."""

    link: str
    alpha: Any
    _posterior: Any
    _offered: Offered | None = None

    @property
    def n_updates_(self) -> np.ndarray:
        """Number of events learned per arm, of shape (n_arms,)."""
        check_is_fitted(self)
        return self._posterior.n_updates.copy()

    def advance(self, timestamp: Any = None) -> Self:
        """Advance the clock: learn the events of `update_every` windows that have ended.

        Parameters
        ----------
        timestamp : datetime or float, default=None
            Current time, in seconds if a number; None learns all delayed events.

        Returns
        -------
        self
            Fitted policy.
        """
        with self._guard.learning:
            if self.__sklearn_is_fitted__() and self._waiting:
                every = read_interval(self.update_every)
                if timestamp is None or every is None:
                    passed = True
                else:
                    now = windows_of(read_times([timestamp], 1), every)[0]
                    passed = now > self._waiting[0].window[0]
                if passed:
                    with atomic_fit(self) as draft:
                        draft._learn_waiting()
                        draft._note_step()
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores that `predict` compares: linear predictors of mean rewards.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Columns as `arms_`; larger is better. See `predict_reward` for the reward's scale.
        """
        return self._scores(X, 0, -1)

    def select_scores(self, X: Any) -> np.ndarray:
        """Return the scores that the next `select` compares.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            Columns as `arms_`: an increasing function of upper bounds; for Thompson sampling, one
            draw per arm; for ε-greedy and SquareCB, the scores of greedy choices.
        """
        check_is_fitted(self)
        return self._scores(X, *self._stream.take(0, self.random_state))

    def predict_reward(self, X: Any) -> np.ndarray:
        """Predict the posterior mean reward of every arm.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Contexts.

        Returns
        -------
        ndarray of shape (n_samples, n_arms)
            On the reward's scale; columns as `arms_`.
        """
        from skbandit.bandit.links import mean_rewards

        index = self.decision_function(X)
        return mean_rewards(index, read_rule(self))

    def _n_learned(self) -> int:
        return int(self._posterior.counters[N_EVENTS]) if self.__sklearn_is_fitted__() else 0

    def _sum_up(self, base: Self, workers: dict[str, Self], labels: list[Any]) -> None:
        states = []
        for policy in (base, *workers.values()):
            new = [label for label in labels if label not in policy._codes]
            codes = policy._codes | {label: len(policy._codes) + k for k, label in enumerate(new)}
            order = np.array([codes[label] for label in labels], dtype=np.int64)
            states.append(policy._posterior_about(codes).keep_arms(order).copy())
        self._posterior, lost = self._merged(states[0], states[1:])
        if lost.any():
            k, arm = np.argwhere(lost)[0]
            raise ValueError(
                f"base is not an earlier state of {list(workers)[k]}: it knows more of arm "
                f"{labels[arm]!r}."
            )
        self._know({label: k for k, label in enumerate(labels)})

    def _merged(self, base: Any, workers: list[Any]) -> tuple[Any, np.ndarray]:
        """The merged posterior, and whether a worker knows less of an arm than the base."""
        raise NotImplementedError

    def _posterior_about(self, codes: Codes) -> Any:
        """Posterior about the known arms and new ones."""
        raise NotImplementedError

    def _prior(self) -> Any:
        """Prior of new arms, and settings of learning."""
        raise NotImplementedError

    def _keep_arms(self, kept: np.ndarray) -> None:
        self._posterior = self._posterior.keep_arms(kept)

    def _grow(self, codes: Codes) -> None:
        self._posterior = self._posterior_about(codes)
        self._know(codes)

    def _check_rewards(self, reward: np.ndarray) -> None:
        from skbandit.bandit.links import check_rewards

        check_rewards(self.link, reward)

    def _alphas(self, n_events: int = 0) -> np.ndarray:
        """Values of `alpha` after the events learned, and after 1, 2, ..., n_events more."""
        return read_alphas(self.alpha, int(self._posterior.counters[N_EVENTS]), n_events)

    def _alpha(self) -> float:
        """Multiple of standard deviations in the next choice."""
        return float(self._alphas()[0])

    def _available(self, n_rows: int, available: Any) -> tuple[ArmSets, Codes]:
        """As of other policies; the new arms may be more than those available."""
        offered = self._offered
        if offered is not None and offered.arms is not self._codes:
            offered = None
        if offered is not None and (pools := one_known_tuple(available, offered.codes)):
            if n_rows == 1 and {*map(type, available[0])} == {offered.kind}:
                sets = ArmSets(pools.of_event, pools.start, pools.arms.astype(np.int64))
                return sets, offered.codes
        sets, codes = super()._available(n_rows, available)
        n_known, labels = len(self._codes), list(codes)
        kinds = {*map(type, labels[n_known:])}
        if n_rows > 1 or not (kinds <= {str} or kinds <= {int}) or not kinds:
            return sets, codes
        if lookalike_label(labels[n_known:], codes) is not None:  # warned of at each choice
            return sets, codes
        if offered is not None and {offered.kind} == kinds:
            more = offered.codes.keys() - codes.keys()
            if len(more) <= MOST_OFFERED * (len(codes) - n_known):
                ordered = ascending([*labels[n_known:], *more]) or []
                codes = self._codes | {label: n_known + k for k, label in enumerate(ordered)}
                number = np.array([codes[label] for label in labels], dtype=np.int64)
                sets = sets._replace(arms=number[sets.arms])
        self._offered = Offered(self._codes, codes, label_array(codes), kinds.pop())
        return sets, codes

    def _state_about(self, codes: Codes) -> tuple[tuple[Any, ...], Any]:
        """The state of learning, and the posterior about the known arms and new ones."""
        if len(codes) == len(self._codes):
            return (), self._posterior
        offered = self._offered
        posterior, n_events, prior = state = self._posterior, self._n_learned(), self._prior()
        if offered is not None and offered.codes is codes and offered.state:
            before, n_before, of_prior = offered.state
            if before is posterior and n_before == n_events and of_prior is prior:
                return state, offered.larger
        return state, self._posterior_about(codes)

    def _choose(
        self, X: Any, available: Any, *, exploring: bool, return_proba: bool = False,
        **described: Any,
    ) -> Any:  # fmt: skip
        """Labels of the chosen arms, and their probabilities if asked for."""
        from skbandit.bandit import _passes

        available = align_rows(available, X)
        now, X = self._ready(X, available, **described)
        n_rows = X.shape[0]
        sets, codes = now._available(n_rows, available)
        offered = now._offered
        labels = now._labels if len(codes) == len(now._codes) else None
        if offered is not None and offered.codes is codes:
            labels = offered.labels
        elif labels is None:
            offered, labels = None, label_array(codes)
        seed, t = now._stream.take(n_rows, now.random_state) if exploring else (0, -1)
        rule = read_rule(now, seed)

        choose: Any = _passes.choose_with_probabilities if return_proba else _passes.choose_rows

        def compute() -> Any:
            state, posterior = now._state_about(codes)
            return state, posterior, choose(X, sets, t, now._alpha(), posterior, rule)

        state, posterior, choice = self._guard.read(compute)
        if offered is not None and state:
            now._offered = offered._replace(state=state, larger=posterior)
        return (labels[choice[0]], choice[1]) if return_proba else labels[choice]

    def _choice_probabilities(self, X: Any, available: Any, **described: Any) -> np.ndarray:
        """Probability that `select` chooses each known arm."""
        from skbandit.bandit._passes import probability_rows

        available = align_rows(available, X)
        now, X = self._ready(X, available, **described)
        sets, codes = now._available(X.shape[0], available)
        rule = read_rule(now)

        def compute() -> np.ndarray:
            posterior = now._posterior_about(codes)
            return probability_rows(X, sets, now._alpha(), posterior, rule)

        return mark_columns(self._guard.read(compute)[:, : len(now._codes)], now._codes)

    def _scores(self, X: Any, seed: int, t: int) -> np.ndarray:
        """Scores of all arms in choices t, t + 1, ..., or in greedy ones if t is -1."""
        from skbandit.bandit._passes import score_rows

        check_is_fitted(self)
        now = self._now()
        X, rule = now._rows(X), read_rule(now, seed)

        def compute() -> np.ndarray:
            origin, spread = unit_of_rewards(now._posterior)
            return origin + spread * score_rows(X, t, now._alpha(), now._posterior, rule)

        return self._guard.read(compute)

    def _replay_log(self, request: ReplayRequest) -> tuple[np.ndarray, int] | None:
        """Replay a log in one compiled pass; see `skbandit.logs._blocks.ReplaysLogs`.

        Subclasses of users that choose or learn differently are replayed event by event.
        """
        for name in ("select", "predict", "partial_fit", "advance"):
            if not getattr(type(self), name).__module__.startswith("skbandit."):
                return None
        log, rows = request.log, request.rows
        _, X = self._ready(request.X, log.arms)
        self._check_rewards(log.reward)
        codes = dict(self._codes)
        code_labels(log.arms, codes)
        self._check_new_arms(codes)
        every = read_interval(self.update_every)
        ordered = every is not None or self._forgetting() < 1
        if ordered and log.timestamp is not None and self._latest is not None:
            if len(rows) and log.timestamp[rows[0]] < self._latest:
                return None  # `partial_fit` raises the error
        if self._waiting and every is None:
            self._learn_waiting()
        delayed = join(self._waiting) if self._waiting else None
        if delayed is not None and (log.timestamp is None or (delayed.weight != 1).any()):
            return None
        seed, n_choices = self._stream.take(0, self.random_state)
        encoded, codes = encode_log(request, X, every=every, delayed=delayed, codes=self._codes)
        accepted, n_seen = self._replay(request, encoded, codes, read_rule(self, seed), n_choices)
        self._stream.take(int(self._posterior.counters[N_CHOICES]) - n_choices, self.random_state)
        n_delayed = 0 if delayed is None else len(delayed)
        self._waiting = still_waiting(request, encoded, list(codes), n_delayed, accepted, n_seen)
        if log.timestamp is not None and request.learn:
            learned = accepted[~request.deployment[accepted]]
            self._note_times(log.timestamp[rows[learned]])
        self._note_step()
        return accepted, n_seen

    def _replay(
        self,
        request: ReplayRequest,
        log: EncodedLog,
        codes: Codes,
        rule: ChoiceRule,
        n_choices: int,
    ) -> tuple[np.ndarray, int]:
        """Replay a log of the arms in `codes`; return accepted positions and rows consumed."""
        raise NotImplementedError
