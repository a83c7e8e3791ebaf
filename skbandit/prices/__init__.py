"""Prices of goals: the dual of choosing decisions per row, and rules that meet goals as measured.

- `_dual`: multipliers of goals, and which goals cannot hold together; a function of arrays.
- `_search`: the best rule as measured, of classes; `_action_search`: of a policy's actions.
- `_promised`: bounds moved for a level; `_levels`: which level is best.
- `_calibrate`: what rules are, and the choice of one at a level.

Tests take names from here, so that files may change behind the door.
"""

from skbandit.prices._action_search import searched as searched
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
from skbandit.prices._problem import Prices as Prices
from skbandit.prices._problem import Problem as Problem
from skbandit.prices._problem import Use as Use
from skbandit.prices._promised import LESS as LESS
from skbandit.prices._promised import promised as promised
from skbandit.prices._search import Family as Family
from skbandit.prices._search import Outcomes as Outcomes
from skbandit.prices._search import Search as Search
from skbandit.prices._search import best_rule as best_rule
from skbandit.prices._search import every_table as every_table
from skbandit.prices._search import prove_conflict as prove_conflict
from skbandit.prices._search import representatives as representatives

__all__: list[str] = []
