"""Prices of goals: the dual of choosing one decision per row, and rules that meet goals measured.

- `_dual`: multipliers of goals, and which goals cannot hold together; a function of arrays.
- `_calibrate`: bounds are moved until the rule meets the goals where they are measured.

Tests take names from here, so that files may change behind the door.
"""

from skbandit.prices._calibrate import calibrated as calibrated
from skbandit.prices._dual import DecisionProblem as DecisionProblem
from skbandit.prices._dual import attainable as attainable
from skbandit.prices._dual import best_prices as best_prices
from skbandit.prices._dual import conflicting as conflicting
from skbandit.prices._dual import dropped_prices as dropped_prices
from skbandit.prices._dual import told_apart as told_apart
from skbandit.prices._levels import LEVELS as LEVELS
from skbandit.prices._levels import VIOLATION_COST as VIOLATION_COST
from skbandit.prices._levels import best_quantile as best_quantile
from skbandit.prices._levels import level_of as level_of
from skbandit.prices._levels import quantile_of as quantile_of
from skbandit.prices._promised import LESS as LESS
from skbandit.prices._promised import promised as promised
from skbandit.prices._search import Family as Family
from skbandit.prices._search import Outcomes as Outcomes
from skbandit.prices._search import Search as Search
from skbandit.prices._search import best_rule as best_rule
from skbandit.prices._search import prove_conflict as prove_conflict
from skbandit.prices._search import representatives as representatives

__all__: list[str] = []
