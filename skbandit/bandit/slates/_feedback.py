"""Logged slates, and what they tell of single arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skbandit.logs import SlateLog

if TYPE_CHECKING:
    pass


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
