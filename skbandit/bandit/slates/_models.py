"""Models of single arms as slates use them: scores, moments and rewards; and their feedback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skbandit.bandit._arm_keys import arm_key
from skbandit.bandit._policy import GLMUCBPolicy
from skbandit.bandit._state import N_EVENTS, Rule, read_rule
from skbandit.bandit.shared._policy import SharedGLMPolicy
from skbandit.logs import SlateLog, align_rows, label_array


def check_models(policy: Any) -> None:
    """Require a policy whose models slates can use."""
    if not isinstance(policy, GLMUCBPolicy | SharedGLMPolicy):
        found = policy.__name__ if isinstance(policy, type) else type(policy).__name__
        raise TypeError(
            f"policy must be a GLMUCBPolicy or a SharedGLMPolicy, which predict rewards of single "
            f"arms, got {found}."
        )


@dataclass(frozen=True, eq=False)
class ArmModels:
    """A policy's posterior about the arms available to some rows.

    Parameters
    ----------
    policy : GLMUCBPolicy or SharedGLMPolicy
        In its current state.
    X : ndarray or csr_array of shape (n_rows, n_features)
        Checked contexts.
    posterior : object
        About known arms, and then new ones.
    labels : ndarray of shape (n_arms,)
        Of these arms; the first `n_known` are those of the policy.
    available : ndarray of bool, shape (n_rows, n_arms)
        Which of them may be shown.
    n_known : int
        Number of arms of the policy.
    """

    policy: Any
    X: Any
    posterior: Any
    labels: np.ndarray
    available: np.ndarray
    n_known: int

    @classmethod
    def of(cls, policy: Any, X: Any, available: Any) -> ArmModels:
        """Read contexts and availability; an unfitted policy begins with its prior."""
        available = align_rows(available, X)
        now, X = policy._ready(X, available)
        mask, codes = now._masked(X.shape[0], available)
        posterior = now._posterior_about(codes)
        n_known = len(now._codes)
        return cls(now, X, posterior, label_array(codes), mask, n_known)

    @property
    def n_events(self) -> int:
        """Number of events that the policy has learned."""
        return int(self.posterior.counters[N_EVENTS])

    @property
    def alpha(self) -> float:
        """Amount of exploration in the next choice, in the parameter's units."""
        return float(self.policy._alphas()[0])

    @property
    def epsilon(self) -> float:
        """Probability of a uniform choice."""
        return float(self.policy.epsilon)

    def uniforms(self, seed: int, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Uniform numbers of choices t, t + 1, ...: one per arm for ties, and again with a coin.

        Those of an arm that is new to the policy belong to its label.
        """
        (n_rows, n_arms), n = self.available.shape, self.n_known
        keys = [arm_key(label) % 2**64 for label in self.labels[n:].tolist()]
        u = np.empty((n_rows, 2 * n_arms + 1))
        for row in range(n_rows):
            known = np.random.default_rng([seed, t + row]).random(2 * n + 1)
            new = [np.random.default_rng([seed, t + row, key]).random(2) for key in keys]
            ties, others = np.reshape(new, (-1, 2)).T
            u[row] = np.concatenate([known[:n], ties, known[n:-1], others, known[-1:]])
        return u[:, :n_arms], u[:, n_arms:]

    def scores(self, seed: int, t: int) -> np.ndarray:
        """Scores of choices t, t + 1, ..., or of greedy ones if t is -1; -inf if not available."""
        return self._scores(t, self.policy._alpha(), read_rule(self.policy, seed))

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean of each linear predictor, and the standard deviation of its Thompson draw."""
        return self._moments(self.policy._alpha())

    def moments_of_prediction(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of each linear predictor."""
        return self._moments(1.0)

    def _moments(self, width: float) -> tuple[np.ndarray, np.ndarray]:
        """Mean of each linear predictor, and a multiple of its standard deviation."""
        from skbandit.bandit.exploration import linear_bounds

        rule = linear_bounds(read_rule(self.policy))
        mean = self._scores(-1, 0.0, rule)
        upper = self._scores(0, width, rule)
        there = self.available
        deviation = np.zeros(mean.shape)
        deviation[there] = np.maximum(upper[there] - mean[there], 0.0)
        return mean, deviation

    def rewards(self) -> np.ndarray:
        """Posterior mean rewards; -inf if not available."""
        from skbandit.bandit.links import mean_rewards

        rule = read_rule(self.policy)
        rewards = mean_rewards(np.where(self.available, self._scores(-1, 0.0, rule), 0.0), rule)
        return np.where(self.available, rewards, -np.inf)

    def _scores(self, t: int, width: float, rule: Rule) -> np.ndarray:
        from skbandit.bandit._passes import score_rows

        scores = self.policy._guard.read(lambda: score_rows(self.X, t, width, self.posterior, rule))
        return np.where(self.available, scores, -np.inf)


FEEDBACK = ("semi_bandit", "cascade", "slate")


def looked_at(clicks: np.ndarray) -> np.ndarray:
    """Clicks of a visitor who looks from the best place on until the first click.

    Parameters
    ----------
    clicks : ndarray of shape (n_events, n_places)
        Positive if clicked.

    Returns
    -------
    ndarray of the same shape
        nan after the first click: what was not looked at is unknown.
    """
    after = np.cumsum(np.nan_to_num(clicks) > 0, axis=1) - (np.nan_to_num(clicks) > 0)
    return np.where(after > 0, np.nan, clicks)


def clicks_at(position: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """Clicks of shape (n_events, n_places), 1 at a position counted from 0; nan is no click."""
    places = np.arange(shown.shape[1])
    clicks = (places == position[:, None]).astype(float)
    clicks[~shown] = np.nan
    return clicks


def read_cascade(log: SlateLog) -> np.ndarray:
    """Clicks by place, from these or from the position of the first click; nan if unknown."""
    rewards = log.reward
    first = rewards.iloc[0] if hasattr(rewards, "iloc") else rewards[0]
    if np.ndim(first):
        clicks = log.of_arms(rewards, "reward")
        wrong = np.argwhere((clicks != 0) & (clicks != 1) & ~np.isnan(clicks))
        if len(wrong):
            row, place = wrong[0]
            raise ValueError(
                f"a cascade needs clicks, 0 or 1: row {row} has the reward {clicks[row, place]:g}; "
                "for other rewards use feedback='semi_bandit', with nan for what was not looked at."
            )
        return looked_at(clicks)
    position = np.array([np.nan if at is None else at for at in rewards], dtype=np.float64)
    if len(position) != len(log):
        raise ValueError(f"reward has {len(position)} entries for {len(log)} slates.")
    known = ~np.isnan(position)
    wrong = known & ~(
        (position >= 0) & (position < log.sizes) & (position == np.floor(np.nan_to_num(position)))
    )
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"the position of the first click in row {row} is {position[row]:g}, but places are "
            f"counted from 0 to {log.sizes[row] - 1}; nan is no click."
        )
    return looked_at(clicks_at(position, log.shown))


def shares_of_slate_reward(
    reward: float, mean: np.ndarray, variance: np.ndarray, noise_variance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Rewards and weights of single arms that stand for the one reward of their slate.

    The reward is Σ θ_a + ε over the arms shown, with θ_a ~ N(mean, variance) independent and ε of
    the noise variance. For arm a it is an observation of θ_a, of the reward less the means of the
    others, with the noise of the others' variances on top. Learning each arm from it is the exact
    (Kalman) update of the arm; only the correlations between arms that it creates are dropped.

    Returns
    -------
    pseudo_reward, weight : ndarray of shape (n_places,)
        A weight w stands for a noise of the noise variance divided by w.
    """
    pseudo = reward - (mean.sum() - mean)
    return pseudo, noise_variance / (noise_variance + variance.sum() - variance)
