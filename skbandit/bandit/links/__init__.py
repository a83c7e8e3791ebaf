"""Reward models: one Bayesian step each for a scalar θ ~ N(m, v), lifted to weights elsewhere.

A step takes (m, v, r), with r the reward, to (g, h) such that the posterior of θ has mean m + v g
and variance v - v² h. Written so, nothing is divided by v and no differences cancel.
"""

__all__: list[str] = []
