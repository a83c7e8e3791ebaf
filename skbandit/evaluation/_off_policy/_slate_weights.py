"""Weights of logged slates, whose product with their rewards estimates another policy's value.

Let q_ja be the probability that the evaluated policy shows arm a at place j of m, and
π_a = Σ_j q_ja its inclusion probability. With the indicator vectors 1_s of logged slates over pairs
of a place and an arm, and Γ = E 1_s 1_sᵀ, the pseudo-inverse estimator is the mean of w(s) r with

    w(s) = qᵀ Γ⁺ 1_s

(Swaminathan et al., 2017, "Off-policy evaluation for slate recommendation"). It is unbiased if the
expected reward of a slate is a sum over its pairs, whatever the terms, and the logging policy shows
every pair that the evaluated one does. Here Γ⁺ is known in closed form:

- uniform logging, of ordered slates without repetition, of K arms. On vectors that sum to 0 over
  the arms of each place, Γ = (K I - J) ⊗ I / (K (K - 1)), with I and J (all ones) over places, so
  that for m < K

      w(s) = 1 + (K - 1) [Σ_j (q_{j,s_j} - 1/K) + (Σ_{a in s} π_a - m²/K) / (K - m)],

  and for m = K the second term is 0;
- independent logging, each place by itself with the probability p_j:

      w(s) = Σ_j q_{j,s_j}/p_j - m + 1.
"""

from __future__ import annotations

import numpy as np


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
    own = at_place.sum(axis=1) - m / n_arms
    spare = n_arms - m
    any_place = (included.sum(axis=1) - m * m / n_arms) / np.maximum(spare, 1)
    return 1.0 + (n_arms - 1) * (own + np.where(spare > 0, any_place, 0.0))


def weights_of_independent(at_place: np.ndarray, propensity: np.ndarray) -> np.ndarray:
    """Weights of slates whose places were logged independently, (n_events,)."""
    return (at_place / propensity).sum(axis=1) - at_place.shape[1] + 1.0


def weights_of_arms(included: np.ndarray, propensity: np.ndarray) -> np.ndarray:
    """Weights π_a/p_a of shown arms, nan in empty places, as 0 there."""
    return np.nan_to_num(included / propensity)
