"""Exploration rules, one file per rule but UCB, and the switch between them.

A choice plays the arm of the largest score. A rule defines

- `score`: the number it compares, from the mean m and the variance v of the arm's linear predictor;
  rules that do not define one compare mean rewards, as greedy choices do;
- possibly a proposal: an arm drawn uniformly, played in place of the best one;
- `probabilities`: the probability that `select` chooses each arm, unless it plays the best one; all
  but Thompson's are made of the shares of the best arms, which `probabilities` here computes.

Choices are numbered by t, the address of their random numbers (`_random`). Greedy choices draw
none and pass t = -1.

The functions below are the only ones that compare codes of rules. They import numba, so this
module is imported inside functions. `_sets` holds the same rules for arrays, by name: for models
without compiled code, and for slates.
"""

from __future__ import annotations

import math

import numpy as np

from skbandit.bandit._state import (
    EPSILON_GREEDY,
    LINKS,
    SQUARECB,
    THOMPSON,
    UCB,
    ChoiceRule,
)
from skbandit.bandit.exploration import _greedy as epsilon_greedy
from skbandit.bandit.exploration import _squarecb as squarecb
from skbandit.bandit.exploration import _thompson as thompson
from skbandit.bandit.links import mean_index, upper_index
from skbandit.utils._compiled import called_exactly, compiled_exactly, inlined_exactly

__all__: list[str] = []


@inlined_exactly
def draws_scores(rule: ChoiceRule) -> bool:
    """Whether scores of exploring choices are random draws."""
    return rule.exploration == THOMPSON


def explores_by_score(rule: ChoiceRule) -> bool:
    """Whether choices explore by the scores alone, without a random draw."""
    return rule.exploration not in (EPSILON_GREEDY, THOMPSON, SQUARECB)


def linear_bounds(rule: ChoiceRule) -> ChoiceRule:
    """The rule whose exploring scores are m + α√v, and whose greedy ones are m."""
    return rule._replace(link=LINKS.index("linear"), exploration=UCB)


@compiled_exactly
def alpha_scale(sigma: float, rule: ChoiceRule) -> float:
    """Factor of `alpha` by which the unit of linear rewards, of noise sigma, does not matter.

    Standard deviations are multiples of sigma; in SquareCB the square of `alpha` is in the unit of
    the reward.
    """
    return math.sqrt(sigma) if rule.exploration == SQUARECB else sigma


@inlined_exactly
def score(m: float, v: float, alpha: float, t: int, key: int, rule: ChoiceRule) -> float:
    """Score in choice t of the arm with this random key, where θ ~ N(m, v); larger is better."""
    if t >= 0 and rule.exploration == UCB:  # the default, without a call
        result = upper_index(m, v, alpha, rule)
    else:
        result = _other_score(m, v, alpha, t, key, rule)
    return result


@called_exactly
def _other_score(m: float, v: float, alpha: float, t: int, key: int, rule: ChoiceRule) -> float:
    """Scores of greedy choices and of rules other than UCB."""
    if t >= 0 and rule.exploration == THOMPSON:
        return thompson.score(m, v, alpha, t, key, rule)
    return mean_index(m, v, rule)


@inlined_exactly
def proposes(t: int, rule: ChoiceRule) -> bool:
    """Whether choice t considers an arm drawn uniformly, whatever its score."""
    result = t >= 0 and rule.exploration == SQUARECB
    if t >= 0 and rule.exploration == EPSILON_GREEDY:
        result = epsilon_greedy.proposes(t, rule)
    return result


@inlined_exactly
def compares_proposal(rule: ChoiceRule) -> bool:
    """Whether a proposed arm is compared with the best one, rather than played at once."""
    return rule.exploration == SQUARECB


@called_exactly
def accepts_proposal(
    best: float, proposed: float, n_arms: int, n_events: int, alpha: float, t: int, rule: ChoiceRule
) -> bool:
    """Whether choice t plays the proposed arm, given the scores of both and the number of arms."""
    return squarecb.accepts(best, proposed, n_arms, n_events, alpha, t, rule)


@called_exactly
def probabilities(
    best: float, pool: np.ndarray, m: np.ndarray, v: np.ndarray, alpha: float, n_events: int,
    rule: ChoiceRule, buffer: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Write into `out` the probability of each available arm; ties share theirs.

    `pool` holds the available arms, which `m`, `v`, `out` and the rows of `buffer` are indexed
    by; `n_events` is the number of events learned. Scores that are not draws are in buffer[0], and
    the largest of them is `best`; only draws need `m` and `v`.
    """
    if rule.exploration == THOMPSON:
        thompson.probabilities(pool, m, v, alpha, buffer, out)
        return
    scores = buffer[0]
    n_best = epsilon_greedy.count_best(best, pool, scores)
    first = -1
    for k in pool:
        if first >= 0 and scores[k] == best:
            out[k] = out[first]
        else:
            out[k] = _of_scores(k, best, n_best, pool, scores, alpha, n_events, rule)
            first = k if scores[k] == best else first


@called_exactly
def probability(
    k: int, best: float, pool: np.ndarray, m: np.ndarray, v: np.ndarray, alpha: float,
    n_events: int, rule: ChoiceRule, buffer: np.ndarray, out: np.ndarray,
) -> float:  # fmt: skip
    """Probability of one arm, as by `probabilities`; `out` is overwritten."""
    if rule.exploration == THOMPSON:
        thompson.probabilities(pool, m, v, alpha, buffer, out)
        return out[k]
    scores = buffer[0]
    n_best = epsilon_greedy.count_best(best, pool, scores)
    return _of_scores(k, best, n_best, pool, scores, alpha, n_events, rule)


@called_exactly
def _of_scores(
    k: int, best: float, n_best: int, pool: np.ndarray, scores: np.ndarray, alpha: float,
    n_events: int, rule: ChoiceRule,
) -> float:  # fmt: skip
    """Probability of an arm where scores are not draws, the largest of them on `n_best` arms."""
    share = 1.0 / n_best if scores[k] == best else 0.0
    if rule.exploration == EPSILON_GREEDY:
        return epsilon_greedy.probability(share, len(pool), rule)
    if rule.exploration == SQUARECB:
        return squarecb.probability(k, share, best, pool, scores, alpha, n_events, rule)
    return share
