"""Exploration rules, one file per rule, and the switches between them.

A choice plays the arm of the largest score. The file of a rule may define

- `score`: the number that exploring choices compare, from the mean m and the variance v of the
  arm's linear predictor; others compare mean rewards, as greedy choices do;
- `proposes`: whether a choice considers another arm, drawn uniformly; it is played at once, or,
  with `COMPARES`, if `accepts` says so, given the scores of the best and of the proposed arm;
- `probability`: that of an arm, given its share of the probability that the best one is played; or
  `draw_probabilities`, of all arms, if scores are random draws;
- `alpha_scale`: how `alpha` depends on the unit of rewards;
- `SETS`: the same rule for arrays (`_sets`), for models without compiled code, and for slates.

Choices are numbered by t, the address of their random numbers (`_random`). Greedy choices draw
none and pass t = -1. A new rule is a file here, and a row of `skbandit.bandit._state.EXPLORATIONS`.
Files import numba, so this module is imported inside functions.
"""

from __future__ import annotations

import numpy as np

from skbandit.bandit._state import EXPLORATIONS, LINKS, ChoiceRule
from skbandit.bandit.exploration._greedy import count_best
from skbandit.bandit.links import mean_index
from skbandit.utils._compiled import called_exactly, compiled_exactly, inlined_exactly
from skbandit.utils._switch import files_of, switch

__all__: list[str] = []

FILES = files_of(__name__, EXPLORATIONS)


@inlined_exactly
def _mean(m: float, v: float, alpha: float, t: int, key: int, rule: ChoiceRule) -> float:
    return mean_index(m, v, rule)


@inlined_exactly
def _never(t: int) -> bool:
    return False


@inlined_exactly
def _same(value: float) -> float:
    return value


@called_exactly
def _no_draws(
    pool: np.ndarray, m: np.ndarray, v: np.ndarray, alpha: float, buffer: np.ndarray,
    out: np.ndarray,
) -> None:  # fmt: skip
    pass


_score, _proposes = switch(FILES, "score", _mean), switch(FILES, "proposes", _never)
accepts, _scale = switch(FILES, "accepts", _never), switch(FILES, "alpha_scale", _same)
_probability = switch(FILES, "probability", _same)
_draw_probabilities = switch(FILES, "draw_probabilities", _no_draws)
COMPARES = tuple(hasattr(file, "COMPARES") for file in FILES)
DRAWS = tuple(hasattr(file, "draw_probabilities") for file in FILES)
"""True for each rule that compares the proposed arm with the best one, rather than playing it at
once; and for each whose scores of exploring choices are random draws."""


def explores_by_score(rule: ChoiceRule) -> bool:
    """Return whether choices explore by the scores alone, without a random draw."""
    return not (DRAWS[rule.exploration] or hasattr(FILES[rule.exploration], "proposes"))


def linear_bounds(rule: ChoiceRule) -> ChoiceRule:
    """Return the rule whose exploring scores are m + α√v, and whose greedy ones are m."""
    codes = list(LINKS).index("linear"), list(EXPLORATIONS).index("ucb")
    return rule._replace(link=codes[0], exploration=codes[1])


@compiled_exactly
def alpha_scale(sigma: float, rule: ChoiceRule) -> float:
    """Factor of `alpha` by which the unit of linear rewards, of noise sigma, does not matter.

    Standard deviations are multiples of sigma.
    """
    return _scale(rule.exploration, sigma)


@inlined_exactly
def score(m: float, v: float, alpha: float, t: int, key: int, rule: ChoiceRule) -> float:
    """Score in choice t of the arm with this random key, where θ ~ N(m, v); larger is better."""
    if t >= 0:
        result = _score(rule.exploration, m, v, alpha, t, key, rule)
    else:
        result = mean_index(m, v, rule)
    return result


@inlined_exactly
def proposes(t: int, rule: ChoiceRule) -> bool:
    """Return whether choice t considers an arm drawn uniformly, whatever its score."""
    return t >= 0 and _proposes(rule.exploration, t, rule)


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
    if DRAWS[rule.exploration]:
        _draw_probabilities(rule.exploration, pool, m, v, alpha, buffer, out)
        return
    scores = buffer[0]
    n_best = count_best(best, pool, scores)
    first = -1
    for k in pool:
        if first >= 0 and scores[k] == best:
            out[k] = out[first]
        else:
            share = 1.0 / n_best if scores[k] == best else 0.0
            out[k] = _probability(
                rule.exploration, share, pool, rule, k, best, scores, alpha, n_events
            )
            first = k if scores[k] == best else first
